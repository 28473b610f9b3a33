"""HTTP server for metrics that silent, slow and large requests can neither block nor grow."""

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
"""Maximum number of simultaneous connections, one thread each; a new connection cuts the oldest one."""
HEAD_BYTES_MOST = 16 << 10
"""Limit on a request's first line and headers together; the server answers a longer head with 431."""
REQUEST_SECONDS = 5.0
"""Time from a connection's start to the end of its answer, after which the server cuts it."""

_LEAVE_SECONDS = 10.0
"""Time for the thread of a cut connection to end: microseconds, except on a very busy machine."""
_LOOK_SECONDS = 0.5


class _Head(io.BufferedReader):
    """Reads the lines of a head, up to HEAD_BYTES_MOST."""

    _left = HEAD_BYTES_MOST

    def readline(self, size: int | None = -1, /) -> bytes:
        """Reads a line, truncated if the head is too long.

        Raises:
            LineTooLong: after truncation; http.server answers it with 431.
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
        """Writes nothing: standard error belongs to the command."""


def _cut(connection: socket.socket) -> None:
    """Wakes the thread that reads from or writes to the connection; both fail from then on."""
    with suppress(OSError):  # the peer or the thread has already closed it
        connection.shutdown(socket.SHUT_RDWR)


class MetricsServer(ThreadingWSGIServer):
    """Answers HTTP with a registry's metrics, in its own threads, until close().

    Args:
        port: 0 takes a free one, given by `server_port`.

    Raises:
        OSError: for a host without an address, or a port that is in use or not allowed.
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
        """Stops answering and cuts open connections."""
        self.shutdown()
        self.server_close()
        self._cut_older_than(0.0)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Starts a thread for a connection, and cuts the oldest connection if there is no place."""
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
        """Closes a connection and frees its place."""
        super().close_request(request)
        with self._changed:
            self._began.pop(request, None)
            self._changed.notify_all()

    def service_actions(self) -> None:
        """Cuts connections that have taken too long; serve_forever() calls this at least twice a second."""
        self._cut_older_than(REQUEST_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Ignores broken connections, which are not an error of the server."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _cut_older_than(self, seconds: float) -> None:
        now = time.monotonic()
        with self._changed:
            old = [connection for connection, began in self._began.items() if now - began >= seconds]
        for connection in old:
            _cut(connection)
