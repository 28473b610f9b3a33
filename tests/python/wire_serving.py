"""Engines and servers for several tests of headrace.wire, and hand-written HTTP."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace
from headrace import wire

SECONDS = 120  # time limit for each operation on a busy machine


@headrace.operator(query=[("x", "f4", (3,)), ("n", "i8")], answer=[("y", "f8", (3,)), ("n", "i8"), ("large", "?")])
def halve(_group, query, answer):
    """Half of x, the negative of n, and whether n is above 100."""
    for i in range(3):
        answer.y[i] = query.x[i] / 2
    answer.n = -query.n
    answer.large = query.n > 100


@headrace.operator(query="f8", answer="f8")
def third(_group, query, answer):
    """A third, which has no finite decimal form."""
    answer[0] = query[0] / 3


@dataclass
class Reply:
    """One reply of a server."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def serving(
    *operators: headrace.Operator, plan: headrace.Plan | None = None, **options: Any
) -> Iterator[tuple[wire.Server, list[headrace.Engine]]]:
    """A server of these operators at a free port, and their engines."""
    with ExitStack() as stack:
        engines = [
            stack.enter_context(headrace.Engine("cpu", operator, headrace.Plan() if plan is None else plan))
            for operator in operators
        ]
        models = [wire.model(engine) for engine in engines]
        yield stack.enter_context(wire.Server(models, **{"http_port": 0, **options})), engines


def connect(server: wire.Server) -> socket.socket:
    """A connection to the server."""
    return socket.create_connection(("127.0.0.1", server.http_port), timeout=SECONDS)


def request(target: str, body: bytes = b"", method: str = "", headers: str = "") -> bytes:
    """A request; `headers` has further lines, each with its line end."""
    method = method or ("POST" if body else "GET")
    length = f"Content-Length: {len(body)}\r\n" if body and not headers.startswith("Content-Length") else ""
    return f"{method} {target} HTTP/1.1\r\nHost: here\r\n{headers}{length}\r\n".encode() + body


class Replies:
    """Reads the replies on a connection one by one."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._rest = b""

    def next(self, *, of_head: bool = False) -> Reply:
        """The next reply; a reply to HEAD has no body, whatever its length says."""
        head, _, self._rest = self._until(lambda: b"\r\n\r\n" in self._rest).partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if of_head else int(headers["content-length"])
        self._until(lambda: len(self._rest) >= length)
        body, self._rest = self._rest[:length], self._rest[length:]
        return Reply(int(first.split()[1]), headers, body)

    def ended(self) -> bool:
        """Waits for the end of the connection, and returns whether nothing else arrived."""
        try:
            return self._rest == b"" and self._peer.recv(1) == b""
        except ConnectionError:
            return True

    def _until(self, enough: Callable[[], bool]) -> bytes:
        while not enough():
            more = self._peer.recv(1 << 16)
            assert more, f"the connection ended behind {self._rest!r}"
            self._rest += more
        return self._rest


def ask(server: wire.Server, content: bytes, count: int = 1) -> list[Reply]:
    """The replies to content sent on a new connection."""
    with connect(server) as peer:
        peer.sendall(content)
        replies = Replies(peer)
        return [replies.next() for _ in range(count)]


def samples(operator: headrace.Operator, count: int, first: int = 0) -> np.ndarray[Any, Any]:
    """Queries of a shipped operator, as words."""
    return operator.sample(count, first).view(np.uint32)


def waits() -> headrace.Operator:
    """An operator that takes as many microseconds as its query says, and answers that number. CPU devices only.

    From a millisecond on it sleeps, so that other programs hardly affect the rate of an engine.
    """
    kind = headrace.operators.from_source(
        """
        #include <chrono>
        #include <thread>
        void waits(Group, const Query& query, Answer& answer) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(query);
          if (query >= 1000) std::this_thread::sleep_until(end);
          while (std::chrono::steady_clock::now() < end) continue;
          answer = query;
        }
        """,
        "waits",
        query="i8",
        answer="i8",
        sample=lambda index: np.int64(index % 10),
    )
    return kind()
