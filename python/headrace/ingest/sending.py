"""Sends data over the kernel's sockets that a receiver can check."""

import hashlib
import re
import socket
from collections.abc import Callable

from headrace._core import SendReport, TcpSender, UdpSender, stream_bytes
from headrace.errors import SystemError, UsageError  # noqa: A004

Progress = Callable[[SendReport], None]

_PORT_MOST = 65535
_STEP_SECONDS = 0.1
_PIECE_BYTES = 4 << 20


def resolve(target: str) -> tuple[str, int]:
    """Numeric address and port of "10.0.0.2:9000", "[fe80::1]:9000" or "host:9000".

    Raises:
        UsageError: for a target without a port from 1 to 65535.
        SystemError: for a name without an address.
    """
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+)):(\d+)", target.strip())
    if match is None or not 0 < int(match[3]) <= _PORT_MOST:
        raise UsageError(f"'{target}' is not an address with a port, such as 10.0.0.2:9000 or [::1]:9000")
    host = match[1] or match[2]
    try:
        found = socket.getaddrinfo(host, int(match[3]), type=socket.SOCK_DGRAM)
    except socket.gaierror as error:
        raise SystemError(f"{host}: {error.strerror}") from None
    return str(found[0][4][0]), int(match[3])


def send(
    sender: TcpSender, count: int, *, chunk_bytes: int = 1 << 20, wait: bool = True, progress: Progress | None = None
) -> SendReport:
    """Sends the next `count` bytes of the sender's stream; with `wait`, a chunk once the previous is acknowledged."""
    sender.begin(count, chunk_bytes, wait)
    return _run(sender, progress)


def send_datagrams(sender: UdpSender, *, progress: Progress | None = None) -> SendReport:
    """Sends all datagrams of a sender."""
    return _run(sender, progress)


def _run(sender: TcpSender | UdpSender, progress: Progress | None) -> SendReport:
    while not sender.run(_STEP_SECONDS):
        if progress is not None:
            progress(sender.report())
    return sender.report()


def digest(seed: int, count: int) -> str:
    """The SHA-256 of the first `count` bytes of a stream in hexadecimal."""
    whole = hashlib.sha256()
    for offset in range(0, count, _PIECE_BYTES):
        whole.update(stream_bytes(seed, offset, min(_PIECE_BYTES, count - offset)))
    return whole.hexdigest()
