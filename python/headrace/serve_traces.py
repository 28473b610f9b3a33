"""Exports traces of server requests: OpenTelemetry spans as OTLP JSON, to a file and to a collector.

The server does no sampling of its own: it traces a request if its caller asks for it (W3C Trace Context).
"""

import http.client
import json
import queue
import random
import threading
import time
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from headrace import _core
from headrace.errors import SystemError  # noqa: A004 - the name that C++ has
from headrace.profiles import Json

if TYPE_CHECKING:
    from headrace.wire import RequestTrace, Server

KEPT = 4096  # maximum number of requests that wait in the server
_BATCH = 256  # requests per line and per message
_QUEUE = 16  # messages that wait for the collector, as many as KEPT requests
_LOOK_SECONDS = 0.2
_COLLECTOR_SECONDS = 2.0  # time limit for one message, and for all of them at the end
_STAGES = (("read", "arrived", "began"), ("queue", "began", "submitted"), ("engine", "submitted", "back"))
_OK = 200
_KIND_INTERNAL, _KIND_SERVER = 1, 2  # kinds of spans by their OTLP numbers
_STATUS_ERROR = 2


def _text(name: str, value: str) -> Json:
    return {"key": name, "value": {"stringValue": value}}


def _number(name: str, value: int) -> Json:
    return {"key": name, "value": {"intValue": str(value)}}


def _identifier() -> str:
    """An identifier for a new span: 8 bytes, not all zero."""
    return f"{random.randrange(1, 1 << 64):016x}"


def _stages_of(request: "RequestTrace") -> Iterator[tuple[str, int, int]]:
    """The stages of a request, each with its begin and end."""
    for name, first, last in _STAGES:
        begin, end = getattr(request, first), getattr(request, last)
        if begin == 0:
            return
        yield name, begin, end or request.ended
    if request.back:
        yield "reply", request.back, request.ended


def spans_of(request: "RequestTrace") -> list[Json]:
    """The spans of a request and of each of its stages, as OTLP JSON."""
    trace, own = request.trace_id.hex(), _identifier()
    attributes = [
        _text("headrace.model", request.model),
        _text("headrace.version", request.version),
        _text("headrace.priority", "high" if request.high else "normal"),
        _number("headrace.queries", request.queries),
    ]
    if request.protocol == "http":
        attributes.append(_number("http.response.status_code", request.status))
    else:
        attributes.append(_text("rpc.system", "grpc"))
    whole: Json = {
        "traceId": trace,
        "spanId": own,
        "parentSpanId": request.parent_span_id.hex(),
        "name": f"infer {request.model}",
        "kind": _KIND_SERVER,
        "startTimeUnixNano": str(request.arrived),
        "endTimeUnixNano": str(request.ended),
        "attributes": attributes,
    }
    if request.status != _OK:
        whole["status"] = {"code": _STATUS_ERROR, "message": f"HTTP {request.status}"}
    return [whole] + [
        {
            "traceId": trace,
            "spanId": _identifier(),
            "parentSpanId": own,
            "name": name,
            "kind": _KIND_INTERNAL,
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(end),
        }
        for name, begin, end in _stages_of(request)
    ]


def encode(requests: Sequence["RequestTrace"]) -> bytes:
    """Requests as one ExportTraceServiceRequest of OTLP, as JSON on one line."""
    resource = [_text("service.name", "headrace"), _text("service.version", _core.version)]
    scope = {"name": "headrace.serve", "version": _core.version}
    spans = [span for request in requests for span in spans_of(request)]
    found = {"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": spans}]}
    return json.dumps({"resourceSpans": [found]}, separators=(",", ":")).encode()


class Counts:
    """Number of requests whose spans reached a destination, and of those whose spans did not. Thread-safe."""

    def __init__(self) -> None:
        self.written = 0
        self.dropped = 0
        self._lock = threading.Lock()

    def add(self, *, written: int = 0, dropped: int = 0) -> None:
        """Adds to the counts."""
        with self._lock:
            self.written += written
            self.dropped += dropped


class Tracing:
    """Takes traced requests from a server in a thread and writes their spans until close().

    A collector has its own thread: while it is slow or unreachable, the file continues, and what the collector misses
    is dropped and counted. KEPT requests in the server and _QUEUE messages here bound the memory.

    Args:
        server: has `traces_max` set.
        file: OTLP JSON is appended to it, one line for several requests.
        collector: accepts OTLP over HTTP as JSON.

    Raises:
        SystemError: when the file cannot be opened.
    """

    def __init__(self, server: "Server", file: Path | None, collector: SplitResult | None) -> None:
        self._server = server
        self.counts: dict[str, Counts] = {}
        self._file: FileIO | None = None
        self._is_cut = False
        if file is not None:
            try:
                self._file = FileIO(file, "ab")
            except OSError as error:
                raise SystemError(f"writing {file}: {error.strerror}", native=error.errno or 0) from None
            self.counts["file"] = Counts()
        self._messages: queue.Queue[tuple[bytes, int] | None] = queue.Queue(_QUEUE)
        self._collector = collector
        self._ends_at = float("inf")  # monotonic time after which the collector gets nothing more
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._take, name="headrace-traces", daemon=True)]
        if collector is not None:
            self.counts["collector"] = Counts()
            self._threads.append(threading.Thread(target=self._send, name="headrace-collector", daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def dropped_by_server(self) -> int:
        """Requests that the server dropped because too many waited to be taken."""
        return self._server.statistics().traces_dropped

    def close(self) -> None:
        """Writes the server's remaining traces and waits briefly for the collector. Call it once the server stopped."""
        if self._closing.is_set():
            return
        self._ends_at = time.monotonic() + _COLLECTOR_SECONDS
        self._closing.set()
        for thread in self._threads:
            thread.join(2 * _COLLECTOR_SECONDS)
        if self._file is not None and not self._threads[0].is_alive():
            self._file.close()

    def _take(self) -> None:
        ends = False
        while not ends:
            ends = self._closing.wait(_LOOK_SECONDS)  # collects many requests in one message
            while requests := self._server.take_traces(_BATCH, 0.0):
                self._hand_on(encode(requests), len(requests))
        if self._collector is not None:
            self._messages.put(None)  # the other thread will make room

    def _hand_on(self, message: bytes, count: int) -> None:
        if self._file is not None:
            counts = self.counts["file"]
            try:
                self._write_line(self._file, message)
                counts.add(written=count)
            except OSError:  # for example because the disk is full, which may pass
                counts.add(dropped=count)
        if self._collector is not None:
            try:
                self._messages.put_nowait((message, count))
            except queue.Full:
                self.counts["collector"].add(dropped=count)

    def _write_line(self, file: FileIO, message: bytes) -> None:
        """Writes a line, after completing a line that a full disk has cut short."""
        left = memoryview((b"\n" if self._is_cut else b"") + message + b"\n")
        while left:
            written = file.write(left)
            self._is_cut = self._is_cut or written > 0
            left = left[written:]
        self._is_cut = False

    def _send(self) -> None:
        assert self._collector is not None
        counts = self.counts["collector"]
        connection: http.client.HTTPConnection | None = None
        while (taken := self._messages.get()) is not None:
            message, count = taken
            left = min(self._ends_at - time.monotonic(), _COLLECTOR_SECONDS)
            try:
                if left <= 0:
                    raise TimeoutError
                if connection is None:
                    connection = http.client.HTTPConnection(
                        self._collector.hostname or "", self._collector.port or 80, timeout=left
                    )
                _post(connection, self._collector.path, message)
                counts.add(written=count)
            except (OSError, http.client.HTTPException):
                counts.add(dropped=count)
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()


def _post(connection: http.client.HTTPConnection, path: str, message: bytes) -> None:
    """Sends a message. Raises HTTPException if the answer is not a success."""
    connection.request("POST", path, message, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    reply.read(1 << 16)
    if reply.status // 100 != _OK // 100:
        raise http.client.HTTPException(f"status {reply.status}")
