"""Metrics of a server: exact counts of what clients sent over HTTP and gRPC, as Prometheus reads them."""

import contextlib
import http.client
import json
import signal
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from prometheus_client.parser import text_string_to_metric_families
from test_wire_command import command
from wire_serving import SECONDS, Replies, ask, connect, halve, request, samples, serving, third

from headrace import wire
from headrace.exporter import Exporter
from headrace.serve_metrics import OUTCOMES, ServerCollector

needs_grpc = pytest.mark.skipif(not _core.built_with_grpc, reason="built without the libraries of gRPC")
GRPC_PORT = 0 if _core.built_with_grpc else None
SLOW = headrace.light(query_bytes=4, threads=1024, steps=1 << 20)  # hundreds of milliseconds in a thread
QUERY_OF_SLOW = {"inputs": [{"name": "query", "datatype": "UINT32", "shape": [1, 1], "data": [7]}]}

Scraped = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parse(text: str) -> Scraped:
    """Samples by name and labels, parsed by the client library; duplicates are an error."""
    found: Scraped = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def scrape(address: str) -> Scraped:
    with urllib.request.urlopen(address, timeout=SECONDS) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return parse(answer.read().decode())


def value(scraped: Scraped, name: str, **labels: str) -> float:
    return scraped[name, frozenset(labels.items())]


def outcomes(scraped: Scraped, name: str, **labels: str) -> dict[str, float]:
    """The outcomes that are not 0."""
    found = {one: scraped.get((name, frozenset({**labels, "outcome": one}.items()))) for one in OUTCOMES}
    return {one: count for one, count in found.items() if count}


def of_outcomes(counted: wire.Outcomes) -> dict[str, int]:
    return {one: getattr(counted, one) for one in OUTCOMES if getattr(counted, one)}


def buckets(scraped: Scraped, **labels: str) -> list[tuple[float, float]]:
    """Bounds and cumulative counts of the durations."""
    name = "headrace_serve_model_request_duration_seconds_bucket"
    found = [
        (float(dict(key)["le"]), count)
        for (of, key), count in scraped.items()
        if of == name and labels.items() <= dict(key).items()
    ]
    return sorted(found)


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def infer_third(values: list[float]) -> bytes:
    tensor = {"name": "query", "datatype": "FP64", "shape": [len(values)], "data": values}
    return request("/v2/models/third/infer", json.dumps({"inputs": [tensor]}).encode())


def infer_slow(**parameters: int) -> bytes:
    return request("/v2/models/light/infer", json.dumps({**QUERY_OF_SLOW, "parameters": parameters}).encode())


@contextlib.contextmanager
def measured(*operators: headrace.Operator, **options: Any) -> Iterator[tuple[wire.Server, str]]:
    """A server of these operators, and the address of its metrics."""
    with serving(*operators, **options) as (server, engines):
        exporter = Exporter("0", ServerCollector(server, engines[0].device))
        try:
            yield server, exporter.address
        finally:
            exporter.close()


def test_requests_over_http_are_counted_exactly():
    with measured(third(), halve(), grpc_port=GRPC_PORT) as (server, address):
        began = time.monotonic()
        replies = ask(server, infer_third([1.0]) * 5 + infer_third([1.0, 2.0, 3.0]) * 4, 9)
        took = time.monotonic() - began
        assert [one.status for one in replies] == [200] * 9
        found = scrape(address)
        done = {one.name: one for one in server.model_statistics()}
    of_http = {"model": "third", "version": "1", "protocol": "http"}
    assert outcomes(found, "headrace_serve_model_requests_total", **of_http) == {"answered": 9}
    assert outcomes(found, "headrace_serve_model_queries_total", **of_http) == {"answered": 17}
    assert outcomes(found, "headrace_serve_requests_total", protocol="http") == {"answered": 9}
    assert value(found, "headrace_serve_model_request_duration_seconds_count", **of_http) == 9
    total = value(found, "headrace_serve_model_request_duration_seconds_sum", **of_http)
    assert total == done["third"].http.durations.sum
    assert 0 < total <= took
    assert value(found, "nv_inference_request_success", model="third", version="1") == 9
    assert value(found, "nv_inference_count", model="third", version="1") == 17
    microseconds = value(found, "nv_inference_request_duration_us", model="third", version="1")
    assert microseconds == pytest.approx(total * 1e6, abs=1)
    assert outcomes(found, "headrace_serve_model_requests_total", **of_http | {"model": "halve"}) == {}
    if GRPC_PORT is not None:
        assert outcomes(found, "headrace_serve_model_requests_total", **of_http | {"protocol": "grpc"}) == {}
    assert [one.name for one in server.model_statistics()] == ["third", "halve"]  # also after the server's end


def test_the_histogram_is_cumulative_from_1_us_to_10_s_and_agrees_with_its_sum():
    with measured(third()) as (server, address):
        ask(server, infer_third([1.0]) * 200, 200)
        found = scrape(address)
        durations = server.model_statistics()[0].http.durations
    of_http = {"model": "third", "version": "1", "protocol": "http"}
    bounds, counts = zip(*buckets(found, **of_http), strict=True)
    assert bounds[:4] == (1e-6, 2e-6, 5e-6, 1e-5)
    assert bounds[-4:] == (2.0, 5.0, 10.0, float("inf"))
    assert len(bounds) == 23
    assert list(counts) == np.cumsum(durations.counts).tolist()
    assert counts[-1] == durations.count == 200
    edges = [0.0, *durations.bounds]
    least = sum(count * edge for count, edge in zip(durations.counts, edges, strict=True))
    most = sum(count * edge for count, edge in zip(durations.counts, edges[1:], strict=False))
    assert durations.counts[-1] == 0
    assert least < durations.sum <= most


@needs_grpc
def test_requests_over_grpc_are_counted_exactly():
    import tritonclient.grpc as triton  # noqa: PLC0415
    from tritonclient.utils import InferenceServerException  # noqa: PLC0415

    def tensor(values: np.ndarray[Any, Any], name: str = "query") -> triton.InferInput:
        made = triton.InferInput(name, list(values.shape), "FP64")
        made.set_data_from_numpy(values)
        return made

    with (
        measured(third(), grpc_port=0) as (server, address),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        for count in (1, 2, 3):
            client.infer("third", [tensor(np.ones(count))])
        with pytest.raises(InferenceServerException, match='no input "x"'):
            client.infer("third", [tensor(np.ones(1), "x")])
        with pytest.raises(InferenceServerException, match="no model"):
            client.infer("fourth", [tensor(np.ones(1))])
        assert client.is_server_live()
        found = scrape(address)
        ask(server, infer_third([1.0]))
        both = scrape(address)
    of_grpc = {"model": "third", "version": "1", "protocol": "grpc"}
    assert outcomes(found, "headrace_serve_model_requests_total", **of_grpc) == {"answered": 3, "invalid": 1}
    assert outcomes(found, "headrace_serve_model_queries_total", **of_grpc) == {"answered": 6}
    assert outcomes(found, "headrace_serve_requests_total", protocol="grpc") == {"answered": 4, "invalid": 2}
    assert outcomes(found, "headrace_serve_requests_total", protocol="http") == {}
    assert value(found, "headrace_serve_model_request_duration_seconds_count", **of_grpc) == 3
    assert value(both, "nv_inference_request_success", model="third", version="1") == 4
    assert value(both, "nv_inference_count", model="third", version="1") == 7


def test_malformed_requests_are_invalid_of_the_model_where_they_name_one():
    bad = [
        request("/v2/models/third/infer", b"{"),
        request("/v2/models/third/infer", b'{"inputs": []}'),
        infer_third([]),
        infer_third([1.0] * 1025),
        request("/v2/models/fourth/infer", b"{}"),
        request("/nothing"),
        request("/v2/models/third/infer", method="PUT"),
    ]
    with measured(third()) as (server, address):
        statuses = [reply.status for one in bad for reply in ask(server, one)]
        assert all(400 <= one < 500 for one in statuses)
        ask(server, b"what is this\r\n\r\n")
        found = scrape(address)
        of_model = server.model_statistics()[0].http
        assert of_outcomes(server.statistics().http) == {"invalid": 8}
    assert outcomes(found, "headrace_serve_requests_total", protocol="http") == {"invalid": 8}
    of_http = {"model": "third", "version": "1", "protocol": "http"}
    assert outcomes(found, "headrace_serve_model_requests_total", **of_http) == {"invalid": 4}
    assert outcomes(found, "headrace_serve_model_queries_total", **of_http) == {}
    assert of_model.durations.count == 0
    assert of_model.unanswered == 0


def test_late_refused_and_cancelled_requests_are_told_apart():
    plan = headrace.Plan(slots=1, threads=1)
    with measured(SLOW, plan=plan, waiting_max=1) as (server, address), contextlib.ExitStack() as stack:

        def send(content: bytes) -> socket.socket:
            peer = stack.enter_context(connect(server))
            peer.sendall(content)
            return peer

        def model() -> wire.ModelStatistics:
            return server.model_statistics()[0]

        first = send(infer_slow())
        eventually(lambda: model().queries_in_flight == 1)
        leaves = send(infer_slow())
        eventually(lambda: model().queries_waiting == 1)
        now = scrape(address)
        assert value(now, "headrace_serve_model_queries_in_flight", model="light", version="1") == 1
        assert value(now, "headrace_serve_model_queries_waiting", model="light", version="1") == 1
        assert value(now, "headrace_serve_memory_bytes") > 0
        assert value(now, "headrace_serve_connections_open") == 2
        refused = Replies(send(infer_slow())).next()
        assert refused.status == 429
        leaves.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaves.close()  # with a reset: a client that only stops sending may still wait for its answer
        assert Replies(first).next().status == 200
        eventually(lambda: model().http.requests.cancelled == 1)
        assert ask(server, infer_slow(timeout=1))[0].status == 504
        found = scrape(address)
        of_model = model().http
    of_http = {"model": "light", "version": "1", "protocol": "http"}
    expected = {"answered": 1, "refused": 1, "late": 1, "cancelled": 1}
    assert outcomes(found, "headrace_serve_model_requests_total", **of_http) == expected
    assert outcomes(found, "headrace_serve_model_queries_total", **of_http) == expected
    assert outcomes(found, "headrace_serve_requests_total", protocol="http") == {"answered": 1, "refused": 1, "late": 1}
    assert value(found, "headrace_serve_model_request_duration_seconds_count", **of_http) == 1
    assert of_model.unanswered > 0
    assert value(found, "headrace_serve_model_queries_in_flight", model="light", version="1") == 0
    assert value(found, "headrace_serve_model_queries_waiting", model="light", version="1") == 0


def test_requests_to_an_engine_that_was_stopped_are_refused():
    with serving(third()) as (server, engines):
        exporter = Exporter("0", ServerCollector(server, engines[0].device))
        assert value(scrape(exporter.address), "headrace_serve_model_ready", model="third", version="1") == 1
        engines[0].stop()
        assert ask(server, infer_third([1.0]))[0].status == 503
        found = scrape(exporter.address)
        exporter.close()
    assert value(found, "headrace_serve_model_ready", model="third", version="1") == 0
    of_http = {"model": "third", "version": "1", "protocol": "http"}
    assert outcomes(found, "headrace_serve_model_requests_total", **of_http) == {"refused": 1}


def test_connections_memory_device_process_and_build():
    with measured(third(), memory_max=1 << 27) as (server, address):
        with connect(server), connect(server):
            eventually(lambda: server.statistics().connections_open == 2)
            two = scrape(address)
        eventually(lambda: server.statistics().connections_open == 0)
        found = scrape(address)
    assert value(two, "headrace_serve_connections_accepted_total") == 2
    assert value(two, "headrace_serve_connections_closed_total") == 0
    assert value(found, "headrace_serve_connections_closed_total") == 2
    assert value(found, "headrace_serve_connections_refused_total") == 0
    assert value(found, "headrace_serve_memory_bytes") == 0
    assert value(found, "headrace_serve_memory_limit_bytes") == 1 << 27
    limit = value(found, "headrace_device_memory_limit_bytes", device="cpu:0")
    assert limit == headrace.Device.parse("cpu").memory().total_bytes
    assert 0 < value(found, "headrace_device_memory_used_bytes", device="cpu:0") <= limit
    assert value(found, "headrace_process_cpu_seconds_total") > 0
    (build,) = [dict(labels) for name, labels in found if name == "headrace_build_info"]
    assert build["version"] == headrace.__version__


def test_scrapes_under_load_only_grow_and_end_exact():
    count, threads = 300, 4
    with measured(third(), threads=2, plan=headrace.Plan(clients_max=2)) as (server, address):

        def send() -> None:
            with connect(server) as peer:
                replies = Replies(peer)
                for _ in range(count):
                    peer.sendall(infer_third([1.0, 2.0]))
                    assert replies.next().status == 200

        senders = [threading.Thread(target=send) for _ in range(threads)]
        for one in senders:
            one.start()
        of_http = {"model": "third", "version": "1", "protocol": "http"}
        before = scrape(address)
        while any(one.is_alive() for one in senders):
            now = scrape(address)
            for key, old in before.items():
                if key[0].endswith(("_total", "_bucket", "_sum", "_count")):
                    assert now[key] >= old, key
            counts = [one for _, one in buckets(now, **of_http)]
            assert counts == sorted(counts)
            answered = value(now, "headrace_serve_model_requests_total", **of_http, outcome="answered")
            assert counts[-1] == answered
            before = now
        for one in senders:
            one.join()
        found = scrape(address)
    assert outcomes(found, "headrace_serve_model_requests_total", **of_http) == {"answered": count * threads}
    assert outcomes(found, "headrace_serve_model_queries_total", **of_http) == {"answered": 2 * count * threads}
    assert outcomes(found, "headrace_serve_requests_total", protocol="http") == {"answered": count * threads}


def test_the_command_says_where_its_metrics_are_and_drains_with_them():
    with command("light", "--prometheus", "0") as (process, said):
        assert said["prometheus"].startswith("http://127.0.0.1:")
        port = int(said["url"].rpartition(":")[2])
        query = samples(headrace.light(), 1)[0].tolist()
        body = {"inputs": [{"name": "query", "datatype": "UINT32", "shape": [1, 256], "data": query}]}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
            connection.request("POST", "/v2/models/light/infer", json.dumps(body))
            assert connection.getresponse().read()
        found = scrape(said["prometheus"])
        assert value(found, "nv_inference_request_success", model="light", version="1") == 1
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as peer:
            head = "POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
            peer.sendall(f"{head}Content-Length: {len(json.dumps(body))}\r\n\r\n".encode())
            assert peer.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"  # a request has begun
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Finishing requests in progress")
            found = scrape(said["prometheus"])  # the server drains, and still exports metrics
            assert value(found, "nv_inference_request_success", model="light", version="1") == 1
            peer.sendall(json.dumps(body).encode())
            assert Replies(peer).next().status in {200, 503}
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert json.loads(out)["drained"]
    with pytest.raises(OSError, match="refused"):
        scrape(said["prometheus"])


def test_a_file_of_metrics_has_the_last_figures(tmp_path: Path):
    path = tmp_path / "serve.prom"
    with command("light", "--prometheus", path) as (process, said):
        assert said["prometheus"] == str(path)
        with urllib.request.urlopen(f"{said['url']}/v2/health/live", timeout=SECONDS):
            pass
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    found = parse(path.read_text())
    assert outcomes(found, "headrace_serve_requests_total", protocol="http") == {"answered": 1}
    assert value(found, "headrace_serve_connections_open") == 0


def test_a_port_of_metrics_that_is_taken_is_one_line(run: Run):
    with measured(third()) as (_, address):
        port = address.rpartition(":")[2].removesuffix("/metrics")
        options = ("--device", "cpu", "--http", "0", "--grpc", "none")
        done = run("serve", "light", *options, "--prometheus", port)
        scrape(address)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"--prometheus {port}: Address already in use" in done.stderr
    assert done.stdout == ""


def test_a_place_for_metrics_that_is_none_is_one_line(run: Run):
    done = run("serve", "light", "--device", "cpu", "--http", "0", "--grpc", "none", "--prometheus", "x.txt")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "neither a port" in done.stderr
