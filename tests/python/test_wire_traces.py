"""Traces of requests: OpenTelemetry's own packages read what the server writes; and dropped traces."""

import base64
import errno
import json
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import tritonclient.grpc as triton_grpc
from google.protobuf import json_format
from opentelemetry import trace as api
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from test_load_url import one_line
from test_wire_command import command
from test_wire_metrics import parse, value
from wire_serving import SECONDS, Replies, ask, connect, request, serving, waits

from headrace import wire
from headrace.exporter import Exporter
from headrace.serve_metrics import ServerCollector
from headrace.serve_traces import KEPT, Tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STAGES = ["read", "queue", "engine", "reply"]


def infer(microseconds: int, traceparent: str | None = None, *, more: str = "", **parameters: int) -> bytes:
    tensor = {"name": "query", "datatype": "INT64", "shape": [1], "data": [microseconds]}
    body = json.dumps({"inputs": [tensor], "parameters": parameters}).encode()
    header = "" if traceparent is None else f"traceparent: {traceparent}\r\n"
    return request("/v2/models/waits/infer", body, headers=f"Content-Length: {len(body)}\r\n{header}{more}")


def read(line: bytes) -> ExportTraceServiceRequest:
    """Parses OTLP JSON with OpenTelemetry's packages. Its identifiers are hexadecimal; protobuf's JSON has base64."""

    def to_base64(found: re.Match[str]) -> str:
        return f'"{found[1]}": "{base64.b64encode(bytes.fromhex(found[2])).decode()}"'

    text = json.dumps(json.loads(line))
    text = re.sub(r'"(traceId|spanId|parentSpanId)": "([0-9a-f]*)"', to_base64, text)
    return json_format.Parse(text, ExportTraceServiceRequest())


def spans_of(content: bytes) -> list[Span]:
    spans: list[Span] = []
    for line in content.splitlines():
        for resource in read(line).resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            assert named["service.name"] == "headrace"
            for scope in resource.scope_spans:
                spans.extend(scope.spans)
    return spans


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


class Collector(ThreadingHTTPServer):
    """Receives OTLP over HTTP, or delays its answers for as long as a test wants."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.content: list[bytes] = []
        self.held = threading.Event()
        self.held.set()
        self.url = urlsplit(f"http://127.0.0.1:{self.server_address[1]}/v1/traces")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors: senders may leave."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Collector

    def do_POST(self) -> None:
        """Receives a message."""
        assert self.path == "/v1/traces"
        assert self.headers["Content-Type"] == "application/json"
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.held.wait(SECONDS)
        self.server.content.append(content)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments: Any) -> None:
        """Logs nothing."""


@contextmanager
def collector(status: int = 200) -> Iterator[Collector]:
    with Collector(status) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield made
        finally:
            made.held.set()
            made.shutdown()
            thread.join()


@contextmanager
def traced(file: Path | None = None, to: Any = None, **options: Any) -> Iterator[tuple[wire.Server, Tracing]]:
    with serving(waits(), grpc_port=0, **{"traces_max": KEPT, **options}) as (server, _):
        tracing = Tracing(server, file, to)
        try:
            yield server, tracing
        finally:
            server.stop()
            tracing.close()


def test_a_request_over_http_is_a_span_with_its_stages(tmp_path: Path):
    before = time.time_ns()
    with traced(file := tmp_path / "traces.jsonl") as (server, _), connect(server) as peer:
        content = infer(3000, PARENT, more="tracestate: a=b\r\n", priority=1)
        peer.sendall(content[:-3])
        time.sleep(0.02)
        peer.sendall(content[-3:])
        assert Replies(peer).next().status == 200
    whole, *stages = spans_of(file.read_bytes())
    assert (whole.trace_id.hex(), whole.parent_span_id.hex()) == (PARENT[3:35], PARENT[36:52])
    assert (whole.name, whole.kind) == ("infer waits", Span.SPAN_KIND_SERVER)
    assert whole.status.code == Status.STATUS_CODE_UNSET
    said = attributes(whole)
    assert said == {
        "headrace.model": "waits",
        "headrace.version": "1",
        "headrace.priority": "high",
        "headrace.queries": 1,
        "http.response.status_code": 200,
    }
    assert [one.name for one in stages] == STAGES
    assert {one.parent_span_id for one in stages} == {whole.span_id}
    assert {one.trace_id for one in stages} == {whole.trace_id}
    assert len({one.span_id for one in (whole, *stages)}) == 5
    times = [whole.start_time_unix_nano, *(one.end_time_unix_nano for one in stages)]
    assert times == sorted(times)
    assert [one.start_time_unix_nano for one in stages] == times[:-1]
    assert times[-1] == whole.end_time_unix_nano
    assert before <= times[0] <= times[-1] <= time.time_ns() + 10**6
    took = {one.name: one.end_time_unix_nano - one.start_time_unix_nano for one in stages}
    assert took["read"] >= 15e6
    assert took["engine"] >= 3e6


def test_spans_are_children_of_those_that_opentelemetry_makes(tmp_path: Path):
    tracer = TracerProvider().get_tracer("tests")
    with traced(file := tmp_path / "traces.jsonl") as (server, _):
        client = triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
        query = triton_grpc.InferInput("query", [2], "INT64").set_data_from_numpy(np.array([1, 2]))
        with tracer.start_as_current_span("caller"):
            headers: dict[str, str] = {}
            TraceContextTextMapPropagator().inject(headers)
            client.infer("waits", [query], headers=headers)
            mine = api.get_current_span().get_span_context()
        client.infer("waits", [query])
        client.close()
    whole, *stages = spans_of(file.read_bytes())
    assert int.from_bytes(whole.trace_id, "big") == mine.trace_id
    assert int.from_bytes(whole.parent_span_id, "big") == mine.span_id
    assert attributes(whole)["rpc.system"] == "grpc"
    assert attributes(whole)["headrace.queries"] == 2
    assert [one.name for one in stages] == STAGES


@pytest.mark.parametrize(
    "header",
    [
        PARENT[:-1] + "0",
        "ff" + PARENT[2:],
        PARENT.upper(),
        PARENT + "-00",
        PARENT[:-3],
        PARENT.replace("-", "_"),
        "00-" + "0" * 32 + PARENT[35:],
        PARENT[:36] + "0" * 16 + PARENT[52:],
        "g0" + PARENT[2:],
        "x" * 1000,
        "",
    ],
)
def test_headers_that_sample_no_trace_are_passed_over(tmp_path: Path, header: str):
    with traced(file := tmp_path / "traces.jsonl") as (server, _):
        replies = ask(server, infer(1, header) + infer(1), 2)
    assert [one.status for one in replies] == [200, 200]
    assert file.read_bytes() == b""


def test_a_later_version_of_the_header_is_read(tmp_path: Path):
    with traced(file := tmp_path / "traces.jsonl") as (server, _):
        ask(server, infer(1, "01" + PARENT[2:] + "-more"))
        ask(server, infer(1, PARENT[:-2] + "03"))
    assert len(spans_of(file.read_bytes())) == 2 * 5


def test_requests_without_an_answer_end_where_they_got_to(tmp_path: Path):
    with traced(file := tmp_path / "traces.jsonl") as (server, _):
        assert ask(server, infer(100_000, PARENT, timeout=1000))[0].status == 504
        assert ask(server, infer(1))[0].status == 200
    whole, *stages = spans_of(file.read_bytes())
    assert whole.status.code == Status.STATUS_CODE_ERROR
    assert attributes(whole)["http.response.status_code"] == 504
    assert [one.name for one in stages] == STAGES[: len(stages)]


def test_a_server_that_does_not_trace_keeps_nothing():
    with serving(waits()) as (server, _):
        ask(server, infer(1, PARENT) * 10, 10)
        assert server.take_traces(10, 0.0) == []
        assert server.statistics().traces_dropped == 0


def test_what_nobody_takes_is_dropped_and_counted():
    with serving(waits(), traces_max=16) as (server, _):
        assert [one.status for one in ask(server, infer(1, PARENT) * 50, 50)] == [200] * 50
        assert len(server.take_traces(1000, 1.0)) == 16
        assert server.statistics().traces_dropped == 34
        assert server.take_traces(1000, 0.0) == []


def test_a_collector_gets_what_the_file_gets(tmp_path: Path):
    with collector() as to, traced(file := tmp_path / "traces.jsonl", to.url) as (server, tracing):
        ask(server, infer(1, PARENT) * 500, 500)
        server.stop()
        tracing.close()
        assert {name: (one.written, one.dropped) for name, one in tracing.counts.items()} == {
            "file": (500, 0),
            "collector": (500, 0),
        }
    assert sorted(to.content) == sorted(file.read_bytes().splitlines())
    assert len(spans_of(b"\n".join(to.content))) == 500 * 5


def took(server: wire.Server, count: int) -> float:
    began = time.monotonic()
    assert [one.status for one in ask(server, infer(1, PARENT) * count, count)] == [200] * count
    return time.monotonic() - began


@pytest.mark.parametrize("kind", ["away", "silent", "failing"])
def test_a_collector_that_is_no_help_drops_and_never_holds_up(tmp_path: Path, kind: str):
    """Away: no server listens. Silent: it never answers. Failing: status 503."""
    with collector(503) as to, socket.create_server(("127.0.0.1", 0)) as unused:
        at = {
            "away": urlsplit(f"http://127.0.0.1:{unused.getsockname()[1]}/v1/traces"),
            "silent": to.url,
            "failing": to.url,
        }[kind]
        if kind == "away":
            unused.close()
        elif kind == "silent":
            to.held.clear()
        with traced(file := tmp_path / "traces.jsonl", at) as (server, tracing):
            exporter = Exporter("0", ServerCollector(server, headrace.Device.parse("cpu"), tracing))
            assert took(server, 5000) < SECONDS / 4
            assert tracing._messages.qsize() <= tracing._messages.maxsize
            server.stop()
            began = time.monotonic()
            tracing.close()
            assert time.monotonic() - began < 10
            found = parse(_scraped(exporter.address))
            exporter.close()
    name = "headrace_serve_traced_requests_total"
    assert value(found, name, destination="collector", outcome="written") == 0
    lost = value(found, "headrace_serve_traces_dropped_total")
    to_file = value(found, name, destination="file", outcome="written")
    assert to_file + lost == 5000
    if kind != "silent":  # its last message may still be in flight
        assert value(found, name, destination="collector", outcome="dropped") == to_file
    assert len(spans_of(file.read_bytes())) == to_file * 5


def _scraped(address: str) -> str:
    with urllib.request.urlopen(address, timeout=SECONDS) as reply:
        return str(reply.read().decode())


def test_a_full_disk_is_counted():
    with traced(Path("/dev/full")) as (server, tracing):
        ask(server, infer(1, PARENT) * 10, 10)
        server.stop()
        tracing.close()
    assert (tracing.counts["file"].written, tracing.counts["file"].dropped) == (0, 10)


class CutShort(FileIO):
    """A file on a disk that is full after the tenth byte, and later has room again."""

    calls = 0

    def write(self, content: Any) -> int:
        """Writes ten bytes, then none, then all."""
        self.calls += 1
        if self.calls == 2:
            raise OSError(errno.ENOSPC, "no space")
        return super().write(content[:10] if self.calls == 1 else content)


def test_a_line_that_is_cut_short_spoils_no_other(tmp_path: Path):
    file = tmp_path / "traces.jsonl"
    with traced(file) as (server, tracing):
        opened = tracing._file
        assert opened is not None
        opened.close()
        tracing._file = CutShort(file, "ab")  # a disk cannot be filled here
        for written in (0, 1):
            ask(server, infer(1, PARENT))
            counts, end = tracing.counts["file"], time.monotonic() + SECONDS
            while (counts.written, counts.dropped) != (written, 1):
                assert time.monotonic() < end
                time.sleep(0.01)
    first, second = file.read_bytes().splitlines()
    assert len(first) == 10
    assert len(spans_of(second)) == 5


def test_the_command_writes_traces_and_says_how_many(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        'import headrace\n\n\n@headrace.operator(query="i8", answer="i8")\n'
        "def waits(_group, query, answer):\n    answer[0] = query[0]\n"
    )
    file = tmp_path / "traces.jsonl"
    file.write_bytes(b"")
    with collector() as to:
        options = ("--trace-file", file, "--trace-collector", to.url.geturl())
        with command(tmp_path / "mine.py", "--prometheus", 0, *options) as (_, said):
            port = urlsplit(said["url"]).port
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as peer:
                peer.sendall(infer(7, PARENT) + infer(8))
                replies = Replies(peer)
                assert [replies.next().status for _ in range(2)] == [200, 200]
            name, found = "headrace_serve_traced_requests_total", {}
            end = time.monotonic() + SECONDS
            while not all(found.get((name, _labels(one))) for one in ("file", "collector")):
                assert time.monotonic() < end
                found = parse(_scraped(said["prometheus"]))
        assert len(spans_of(file.read_bytes())) == 5
        assert to.content == file.read_bytes().splitlines()


def _labels(destination: str) -> frozenset[tuple[str, str]]:
    return frozenset({"destination": destination, "outcome": "written"}.items())


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (("--trace-collector", "http://192.0.2.1:4318"), 2, "only to this machine"),
        (("--trace-collector", "https://127.0.0.1:4318"), 2, "is not of the form"),
        (("--trace-collector", "http://127.0.0.1"), 2, "is not of the form"),
        (("--trace-collector", "127.0.0.1:4318"), 2, "is not of the form"),
        (("--trace-file", "/proc/none/traces"), 1, "/proc/none/traces"),
        (("--trace-file", "/"), 1, "writing /"),
    ],
)
def test_mistakes_are_one_line(run: Run, options: tuple[str, ...], status: int, says: str):
    one_line(run("serve", "light", "--http", 0, "--grpc", "none", "--device", "cpu", *options), status, says)
