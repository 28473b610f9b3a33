"""The HTTP server of metrics: silent, slow and large requests neither hold it up nor make it grow."""

import io
import socket
import sys
import threading
import time
from contextlib import suppress
from http.client import LineTooLong
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from headrace.threads import Started

CONNECTIONS_MOST = 16
"""At the same time, each with a thread; the next connection cuts the oldest one."""
HEAD_BYTES_MOST = 16 << 10
"""The limit of a request's line and headers together; a longer head is answered with 431."""
REQUEST_SECONDS = 5.0
"""From a connection's start to the end of its answer, after which it is cut."""

_LEAVE_SECONDS = 10.0
"""For the thread of a connection that was cut, which takes microseconds but on a machine that is very busy."""
_LOOK_SECONDS = 0.5


class _Head(io.BufferedReader):
    """Gives the lines of a head up to HEAD_BYTES_MOST."""

    _left = HEAD_BYTES_MOST

    def readline(self, size: int | None = -1, /) -> bytes:
        """Reads a line, cut where the head is too long.

        Raises:
            LineTooLong: behind the cut, which http.server answers with 431.
        """
        if self._left == 0:
            raise LineTooLong("head")
        line = super().readline(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(line)
        return line


class _Handler(WSGIRequestHandler):
    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = _Head(self.connection.makefile("rb", buffering=0))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keeps standard error for the command."""


def _cut(connection: socket.socket) -> None:
    """Wakes the thread that reads from the connection or writes to it; both fail from now on."""
    with suppress(OSError):  # the peer or the thread has closed it
        connection.shutdown(socket.SHUT_RDWR)


class MetricsServer(ThreadingWSGIServer):
    """Answers HTTP with a registry's metrics, in threads of its own, until close().

    Args:
        port: 0 takes a free one, which `server_port` names.

    Raises:
        OSError: for a host that has no address, and a port that is in use or not allowed.
    """

    request_queue_size = 128

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self._began: dict[Any, float] = {}
        self._changed = threading.Condition()
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = found[0]
        super().__init__((host, port), _Handler)
        self.set_app(make_wsgi_app(registry))
        Started(lambda: self.serve_forever(_LOOK_SECONDS))

    def close(self) -> None:
        """Stops answering, and cuts what is open."""
        self.shutdown()
        self.server_close()
        self._cut_older_than(0.0)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Starts a thread for a connection, where need be in the place of the oldest one."""
        with self._changed:
            if len(self._began) >= CONNECTIONS_MOST:
                _cut(next(iter(self._began)))
                self._changed.wait_for(lambda: len(self._began) < CONNECTIONS_MOST, _LEAVE_SECONDS)
            full = len(self._began) >= CONNECTIONS_MOST
            if not full:
                self._began[request] = time.monotonic()
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:  # noqa: ANN401
        """Closes a connection, whose place is free then."""
        super().close_request(request)
        with self._changed:
            self._began.pop(request, None)
            self._changed.notify_all()

    def service_actions(self) -> None:
        """Cuts connections that have taken too long; serve_forever() calls this twice a second and more."""
        self._cut_older_than(REQUEST_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Passes over connections that have broken, which is no error of this side."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _cut_older_than(self, seconds: float) -> None:
        now = time.monotonic()
        with self._changed:
            old = [connection for connection, began in self._began.items() if now - began >= seconds]
        for connection in old:
            _cut(connection)
