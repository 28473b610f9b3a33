"""Honest clients for bench/ingest_attacks.py, which starts this program in a namespace; it ends with standard input.

    python bench/attack_clients.py plain|http|iperf3 HOST:PORT RATE FIRST

Each client is an unmodified socket of this machine's kernel. Clients arrive at an even rate, regardless of earlier
ones. A time counts from when a client was due, so that a stall counts for every client that was due in it. Prints
"ready", and one JSON object: the numbers of the clients that succeeded, how many were tried, their times in
milliseconds, and the first failure.
"""

import json
import socket
import struct
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

from headrace import ingest

BYTES = 16 << 10
"""The bytes of an upload."""
_AT_ONCE = 64
_TIMEOUT_SECONDS = 10.0
_BUSY = b"\xff"
_RETRY_SECONDS = 0.02


def content(number: int) -> bytes:
    """The upload of client `number`: its number, and bytes derived from it."""
    return struct.pack(">Q", number) + ingest.stream_bytes(number, 0, BYTES - 8)


def _connect(address: tuple[str, int]) -> socket.socket:
    made = socket.create_connection(address, timeout=_TIMEOUT_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _exactly(connection: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        piece = connection.recv(count - len(got))
        if not piece:
            raise ConnectionError(f"the server closed after {len(got)} of {count} bytes")
        got += piece
    return got


def plain(address: tuple[str, int], number: int) -> None:
    """Uploads, closes, and waits until the receiver has closed too, which means that it has acknowledged everything."""
    with _connect(address) as connection:
        connection.sendall(content(number))
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(1) != b"":
            raise ConnectionError("the receiver sent data")


def http(address: tuple[str, int], number: int) -> None:
    """Uploads, and expects the answer 200."""
    head = f"PUT /{number} HTTP/1.1\r\nHost: here\r\nContent-Length: {BYTES}\r\n\r\n".encode()
    with _connect(address) as connection:
        connection.sendall(head + content(number))
        got = b""
        while piece := connection.recv(1 << 12):
            got += piece
    if not got.startswith(b"HTTP/1.1 200 ") or not got.endswith(f"{BYTES} bytes\n".encode()):
        raise ConnectionError(f"answered {got[:60]!r}")


def iperf3(address: tuple[str, int], number: int) -> None:
    """Runs an iperf3 test with one stream; asks again if the server is serving another test."""
    cookie = f"{number:036d}".encode() + b"\0"
    give_up = time.monotonic() + _TIMEOUT_SECONDS
    while not _iperf3_test(address, cookie):
        if time.monotonic() > give_up:
            raise ConnectionError("the server was busy")
        time.sleep(_RETRY_SECONDS)


def _message(connection: socket.socket, value: object) -> None:
    text = json.dumps(value).encode()
    connection.sendall(struct.pack(">I", len(text)) + text)


def _iperf3_test(address: tuple[str, int], cookie: bytes) -> bool:
    """Returns False if the server is serving another test."""
    with _connect(address) as control:
        control.sendall(cookie)
        if _exactly(control, 1) == _BUSY:
            return False
        _message(control, {"tcp": True, "omit": 0, "time": 1, "parallel": 1, "len": 131072, "client_version": "3.12"})
        if _exactly(control, 1) != b"\x0a":
            raise ConnectionError("the server accepts no streams")
        with _connect(address) as data:
            data.sendall(cookie + bytes(BYTES))
            if _exactly(control, 2) != b"\x01\x02":
                raise ConnectionError("the test did not start")
            control.sendall(b"\x04")
            if _exactly(control, 1) != b"\x0d":
                raise ConnectionError("the server accepts no results")
            _message(control, {"cpu_util_total": 0.0, "streams": [{"id": 1, "bytes": BYTES}]})
            results = json.loads(_exactly(control, struct.unpack(">I", _exactly(control, 4))[0]))
            if _exactly(control, 1) != b"\x0e" or results["streams"][0]["bytes"] != BYTES:
                raise ConnectionError(f"results {results}")
            control.sendall(b"\x10")
    return True


class _Clients:
    def __init__(self, kind: str, address: tuple[str, int]) -> None:
        self._call = {"plain": plain, "http": http, "iperf3": iperf3}[kind]
        self._address = address
        self._lock = threading.Lock()
        self.tried = 0
        self.succeeded: list[int] = []
        self.times: list[float] = []
        self.failure = ""

    def one(self, number: int, due: float) -> None:
        try:
            self._call(self._address, number)
            failed = ""
        except (OSError, ValueError, KeyError) as error:
            failed = f"client {number}: {type(error).__name__}: {error}"
        took = time.monotonic() - due
        with self._lock:
            self.tried += 1
            self.times.append(round(1e3 * took, 3))
            if failed:
                self.failure = self.failure or failed
            else:
                self.succeeded.append(number)


def main() -> None:
    """Runs the program."""
    kind, where, rate, first = sys.argv[1:]
    host, port = where.rsplit(":", 1)
    clients = _Clients(kind, (host, int(port)))
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    began = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        started: list[Future[None]] = []
        while True:
            due = began + len(started) / float(rate)
            if ended.wait(max(0.0, due - time.monotonic())):
                break
            started.append(pool.submit(clients.one, int(first) + len(started), due))
        for one in started:
            one.result()
    found = {
        "tried": clients.tried,
        "succeeded": clients.succeeded,
        "times": clients.times,
        "failure": clients.failure,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
