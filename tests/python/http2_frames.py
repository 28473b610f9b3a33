"""Hand-written HTTP/2, for messages that no client library would send."""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GRPC = {":method": "POST", ":scheme": "http", ":path": "/inference.GRPCInferenceService/ServerLive", ":authority": "a"}


@dataclass
class Frame:
    """One frame from a server."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def fields(**headers: str) -> bytes:
    """Uncompressed headers (RFC 7541, section 6.2.2); underscores become hyphens."""
    return block({name.replace("_", "-"): value for name, value in headers.items()})


def block(headers: dict[str, str]) -> bytes:
    """A header block without compression."""
    return b"".join(b"\x00" + text(name) + text(value) for name, value in headers.items())


def text(value: str) -> bytes:
    """A header's text, shorter than 127 bytes or of any length."""
    raw = value.encode()
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest, length = len(raw) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 | 128])
        rest //= 128
    return length + bytes([rest]) + raw


def call(stream: int, method: str = "ServerLive", message: bytes | None = b"", **headers: str) -> bytes:
    """A complete call; without a message only its headers, with more to follow."""
    path = f"/inference.GRPCInferenceService/{method}"
    head = block({**GRPC, ":path": path, "content-type": "application/grpc"}) + fields(**headers)
    opened = frame(HEADERS, END_HEADERS, stream, head)
    if message is None:
        return opened
    return opened + frame(DATA, END_STREAM, stream, b"\0" + struct.pack(">I", len(message)) + message)


def frames(peer: socket.socket) -> Iterator[Frame]:
    """Frames from the server until it ends the connection."""
    rest = b""
    while True:
        while len(rest) < 9 or len(rest) < 9 + int.from_bytes(rest[:3], "big"):
            try:
                more = peer.recv(1 << 16)
            except ConnectionError:
                more = b""
            if not more:
                return
            rest += more
        length = int.from_bytes(rest[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", rest[3:9])
        yield Frame(kind, flags, stream, rest[9 : 9 + length])
        rest = rest[9 + length :]
