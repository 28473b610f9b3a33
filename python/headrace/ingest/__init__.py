"""Receives packets from the network into frames on a device, with senders for tests.

>>> from headrace import ingest
>>> for frame in ingest.tcp(":9000", frame="64MiB", to="cuda:0"):  # doctest: +SKIP
...     array = cupy.from_dlpack(frame)

>>> from headrace import ingest
>>> sender = ingest.TcpSender("127.0.0.1", 9000, seed=7)  # doctest: +SKIP
>>> ingest.send(sender, 1 << 30, chunk_bytes=1 << 20)  # doctest: +SKIP
SendReport(bytes=1073741824, units=1024, seconds=0.61)
"""

from headrace import display
from headrace._core import (
    DatagramLayout,
    Faults,
    Frame,
    FrameBuilder,
    FramePart,
    FrameTarget,
    Message,
    MessageReader,
    Receiver,
    SendReport,
    SocketReception,
    SocketRun,
    StreamEnded,
    StreamOpened,
    TcpSender,
    UdpSender,
    copy_ways,
    drop_capabilities,
    stream_bytes,
)
from headrace.ingest.answering import Answering, ProtocolError, Skip, Some, Talk, Wants
from headrace.ingest.body import Body
from headrace.ingest.http import HttpUploads
from headrace.ingest.iperf3 import Iperf3Server
from headrace.ingest.messages import LengthPrefix, Messages, body, messages
from headrace.ingest.receiving import Building, Numbering, pcap, synthetic, tcp, udp
from headrace.ingest.sending import Progress, digest, resolve, send, send_datagrams

__all__ = [
    "Answering",
    "Body",
    "Building",
    "DatagramLayout",
    "Faults",
    "Frame",
    "FrameBuilder",
    "FramePart",
    "FrameTarget",
    "HttpUploads",
    "Iperf3Server",
    "LengthPrefix",
    "Message",
    "MessageReader",
    "Messages",
    "Numbering",
    "Progress",
    "ProtocolError",
    "Receiver",
    "SendReport",
    "Skip",
    "SocketReception",
    "SocketRun",
    "Some",
    "StreamEnded",
    "StreamOpened",
    "Talk",
    "TcpSender",
    "UdpSender",
    "Wants",
    "body",
    "copy_ways",
    "digest",
    "drop_capabilities",
    "messages",
    "pcap",
    "resolve",
    "send",
    "send_datagrams",
    "stream_bytes",
    "synthetic",
    "tcp",
    "udp",
]

display.complete([globals()[name] for name in __all__])
