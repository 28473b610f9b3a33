"""Shared by tests that serve a protocol on a receiver's connections."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ingest_network import GUARD_SECONDS

from headrace import ingest
from headrace.ingest.taking import Taker


def serve(
    source: ingest.Receiver, answering: ingest.Answering, taker: Taker, over: Callable[[], bool], **checks: Any
) -> None:
    """Takes deliveries until `over` returns true."""
    give_up = time.monotonic() + GUARD_SECONDS
    while not over():
        assert time.monotonic() < give_up, source.counters()
        delivery = source.next(timeout=0.05)
        answering.take(delivery)
        if delivery is None:
            continue
        if "look" in checks and isinstance(delivery, ingest.Frame) and answering.body(delivery.stream):
            checks["look"](delivery)
        taker.take(delivery)


class Serving:
    """Serves a protocol in a separate thread."""

    def __init__(self, source: ingest.Receiver, answering: ingest.Answering) -> None:
        self.taker = Taker(sha256=True, body=answering.body)
        self._over = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, args=(source, answering), daemon=True)
        self._thread.start()

    def _serve(self, source: ingest.Receiver, answering: ingest.Answering) -> None:
        try:
            serve(source, answering, self.taker, lambda: self._over)
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        self._over = True
        self._thread.join(GUARD_SECONDS)
        if self.failure is not None:
            raise self.failure


@contextmanager
def serving(source: ingest.Receiver, answering: ingest.Answering) -> Iterator[Serving]:
    """Serves while the context is active; raises its errors."""
    made = Serving(source, answering)
    try:
        yield made
    finally:
        made.stop()


def until(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    give_up = time.monotonic() + GUARD_SECONDS
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def connect(source: ingest.Receiver) -> socket.socket:
    host, port = source.address.rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), timeout=GUARD_SECONDS)


def exactly(connection: socket.socket, count: int) -> bytes:
    """This many bytes, or fewer if the other side ends first."""
    found = b""
    while len(found) < count and (more := connection.recv(count - len(found))):
        found += more
    return found


def until_reset(connection: socket.socket) -> None:
    with pytest.raises(ConnectionResetError):
        list(iter(lambda: connection.recv(100), b""))
