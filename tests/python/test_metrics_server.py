"""The HTTP server of metrics with connections that are silent, slow or too large."""

import contextlib
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter

from headrace import metrics_server
from headrace.metrics_server import MetricsServer


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    """A server with one counter, answered."""
    registry = CollectorRegistry()
    Counter("answered", "Of this test.", registry=registry).inc(42)
    made = MetricsServer("127.0.0.1", 0, registry)
    yield made
    made.close()


def _connect(server: MetricsServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=60)


def _scrape(server: MetricsServer) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=60) as answer:
        return answer.read().decode()


def _send_until_cut(peer: socket.socket, content: bytes) -> bytes:
    """Sends as much of `content` as the server accepts, and returns its answer."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        peer.sendall(content)
    with contextlib.suppress(ConnectionError):
        while got := peer.recv(4096):
            answer += got
    return answer


def test_silent_connections_do_not_keep_scrapes_out(server: MetricsServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metrics_server, "REQUEST_SECONDS", 1e9)  # so that only the number of connections is limited
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(_connect(server)) for _ in range(200)]
        assert "answered_total 42.0" in _scrape(server)
        end = time.monotonic() + 60
        while threading.active_count() - before > metrics_server.CONNECTIONS_MOST:  # threads that were cut are leaving
            assert time.monotonic() < end
            time.sleep(0.01)
        assert silent[0].recv(1) == b""  # the oldest one was cut
    assert "answered_total 42.0" in _scrape(server)


def test_a_silent_connection_is_cut_in_time(server: MetricsServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metrics_server, "REQUEST_SECONDS", 0.2)
    with _connect(server) as peer:
        assert peer.recv(1) == b""


def test_a_trickled_head_is_cut_in_time(server: MetricsServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metrics_server, "REQUEST_SECONDS", 0.5)
    ended = threading.Event()
    with _connect(server) as peer:

        def trickle() -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.05):
                    peer.sendall(b"a")

        sender = threading.Thread(target=trickle)
        sender.start()
        with contextlib.suppress(ConnectionError):
            assert peer.recv(1) == b""
        ended.set()
        sender.join()
    assert "answered_total 42.0" in _scrape(server)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 50_000,
        b"GET /metrics HTTP/1.1\r\na: " + b"b" * 60_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["many headers", "a long header", "a long path"],
)
def test_long_heads_are_refused(server: MetricsServer, head: bytes):
    with _connect(server) as peer:
        assert b"answered_total" not in _send_until_cut(peer, head)
    assert "answered_total 42.0" in _scrape(server)


def test_a_head_just_too_long_is_answered_with_431(server: MetricsServer):
    line = b"GET /metrics HTTP/1.1\r\na: "
    with _connect(server) as peer:
        answer = _send_until_cut(peer, line + b"b" * (metrics_server.HEAD_BYTES_MOST - len(line)))
    assert answer.startswith((b"HTTP/1.0 431 ", b"HTTP/1.1 431 ")), answer


def test_a_head_just_short_enough_is_answered(server: MetricsServer):
    line, end = b"GET /metrics HTTP/1.1\r\na: ", b"\r\n\r\n"
    with _connect(server) as peer:
        rest = b"b" * (metrics_server.HEAD_BYTES_MOST - len(line) - len(end))
        assert b"answered_total 42.0" in _send_until_cut(peer, line + rest + end)


def test_close_cuts_open_connections(server: MetricsServer):
    with _connect(server) as peer:
        server.close()
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        _connect(server)
