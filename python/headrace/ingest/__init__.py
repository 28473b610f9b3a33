"""Packets from the network to frames on a device, and senders to try it with.

>>> from headrace import ingest
>>> sender = ingest.TcpSender("127.0.0.1", 9000, seed=7)  # doctest: +SKIP
>>> ingest.send(sender, 1 << 30, chunk_bytes=1 << 20)  # doctest: +SKIP
SendReport(bytes=1073741824, units=1024, seconds=0.61)
"""

from headrace._core import SendReport, TcpSender, UdpSender, stream_bytes
from headrace.ingest.sending import Progress, digest, resolve, send, send_datagrams

__all__ = [
    "Progress",
    "SendReport",
    "TcpSender",
    "UdpSender",
    "digest",
    "resolve",
    "send",
    "send_datagrams",
    "stream_bytes",
]
