"""Histograms of the stages of requests, with delays made by tests: in the operator, in line and on the way in."""

import json
import threading
import time
import urllib.request
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import headrace
from headrace import _core, wire

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from wire_serving import SECONDS, Replies, ask, connect, request, serving, third, waits

from headrace.exporter import Exporter
from headrace.serve_metrics import STAGES, ServerCollector

NAME = "headrace_serve_model_stage_duration_seconds"
WHOLE = "headrace_serve_model_request_duration_seconds"
GRPC_PORT = 0 if _core.built_with_grpc else None
PROTOCOLS = ["http", *(["grpc"] if _core.built_with_grpc else [])]


def body_of(microseconds: list[int]) -> bytes:
    tensor = {"name": "query", "datatype": "INT64", "shape": [len(microseconds)], "data": microseconds}
    return json.dumps({"inputs": [tensor]}).encode()


def infer(microseconds: int) -> bytes:
    return request("/v2/models/waits/infer", body_of([microseconds]))


def ask_by(protocol: str, server: wire.Server, microseconds: int, count: int) -> None:
    """Asks one request after the other."""
    if protocol == "http":
        assert [one.status for one in ask(server, infer(microseconds) * count, count)] == [200] * count
        return
    import tritonclient.grpc as triton  # noqa: PLC0415 - as in builds without gRPC

    client = triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
    query = triton.InferInput("query", [1], "INT64").set_data_from_numpy(np.array([microseconds]))
    for _ in range(count):
        assert client.infer("waits", [query]).as_numpy("answer").tolist() == [microseconds]
    client.close()


def stages_of(server: wire.Server, protocol: str) -> dict[str, Any]:
    counted = getattr(server.model_statistics()[0], protocol)
    return {stage: getattr(counted.stages, stage) for stage in STAGES} | {"whole": counted.durations}


def median_bound(histogram: Any) -> float:
    """The bound of the bucket with the median."""
    where = int(np.searchsorted(np.cumsum(histogram.counts), histogram.count / 2))
    return float([*histogram.bounds, float("inf")][where])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_time_of_the_operator_is_in_the_stage_of_the_engine(protocol: str):
    with serving(waits(), grpc_port=GRPC_PORT) as (server, _):
        ask_by(protocol, server, 3000, 20)
        found = stages_of(server, protocol)
    assert {histogram.count for histogram in found.values()} == {20}
    assert found["engine"].sum >= 20 * 3e-3
    assert found["engine"].counts[: found["engine"].bounds.index(2e-3) + 1] == [0] * 11  # none is faster
    for stage in ("read", "queue", "reply"):
        assert median_bound(found[stage]) <= 1e-3, stage
    parts = sum(found[stage].sum for stage in ("queue", "engine", "reply"))
    assert parts == pytest.approx(found["whole"].sum, abs=1e-8)


def test_a_request_that_waits_for_a_slot_waits_in_the_queue():
    """One slot, and 8 requests of 5 ms at once: request k waits for k others."""
    with serving(waits(), plan=headrace.Plan(slots=1)) as (server, _):
        peers = [connect(server) for _ in range(8)]
        for peer in peers:
            peer.sendall(infer(5000))
        for peer in peers:
            assert Replies(peer).next().status == 200
            peer.close()
        found = stages_of(server, "http")
    assert found["queue"].count == found["engine"].count == 8
    assert found["queue"].sum >= 0.9 * sum(range(8)) * 5e-3
    assert found["engine"].sum >= 8 * 5e-3
    assert found["queue"].sum > 2 * found["read"].sum


def test_a_request_that_comes_slowly_takes_its_time_to_be_read():
    with serving(waits()) as (server, _), connect(server) as peer:
        content = infer(10)
        peer.sendall(content[:-5])
        time.sleep(0.06)
        peer.sendall(content[-5:])
        assert Replies(peer).next().status == 200
        found = stages_of(server, "http")
    assert 0.05 <= found["read"].sum < SECONDS
    assert found["queue"].sum + found["reply"].sum < found["read"].sum
    assert found["whole"].count == 1
    assert found["whole"].counts[-1] == 0


def test_requests_without_an_answer_have_no_stages():
    with serving(waits()) as (server, _):
        late = json.dumps({**json.loads(body_of([200_000])), "parameters": {"timeout": 1000}}).encode()
        statuses = [one.status for one in ask(server, request("/v2/models/waits/infer", late) + infer(1), 2)]
        wrong = ask(server, request("/v2/models/waits/infer", b"{}"))[0].status
        found = stages_of(server, "http")
    assert statuses == [504, 200]
    assert wrong == 400
    assert {histogram.count for histogram in found.values()} == {1}


def test_prometheus_reads_cumulative_buckets_that_agree_with_count_and_sum():
    """Checked while requests are answered, as by a scraper, and exactly once they are."""
    with serving(waits(), third(), grpc_port=GRPC_PORT) as (server, engines):
        exporter = Exporter("0", ServerCollector(server, engines[0].device))
        asking = threading.Thread(target=ask_by, args=("http", server, 50, 2000))
        asking.start()
        while asking.is_alive():
            check_text(scrape(exporter.address))
            time.sleep(0.05)
        asking.join()
        last = check_text(scrape(exporter.address))
        exporter.close()
        done = server.model_statistics()[0].http
    assert set(last) == {
        (model, protocol, stage) for model in ("waits", "third") for protocol in PROTOCOLS for stage in STAGES
    }
    for stage in STAGES:
        counted = getattr(done.stages, stage)
        assert last["waits", "http", stage] == (2000, counted.sum)
        assert sum(counted.counts) == counted.count == 2000


def scrape(address: str) -> str:
    with urllib.request.urlopen(address, timeout=SECONDS) as answer:
        return str(answer.read().decode())


def check_text(text: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Checks a scrape against the rules of the text format; returns counts and sums by model, protocol and stage."""
    families = {one.name: one for one in text_string_to_metric_families(text)}
    assert families[NAME].type == families[WHOLE].type == "histogram"
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for sample in families[NAME].samples:
        labels = dict(sample.labels)
        series = found.setdefault((labels["model"], labels["protocol"], labels["stage"]), {"buckets": []})
        if sample.name.endswith("_bucket"):
            series["buckets"].append((float(labels["le"]), sample.value))
        else:
            series[sample.name.removeprefix(NAME)] = sample.value
    for series in found.values():
        bounds, counts = zip(*series["buckets"], strict=True)
        assert list(bounds) == sorted(set(bounds))
        assert (bounds[0], bounds[-1]) == (1e-6, float("inf"))
        assert list(counts) == sorted(counts)
        assert counts[-1] == series["_count"]
        most = sum(np.diff([0, *counts[:-1]]) * bounds[:-1]) if counts[-1] == counts[-2] else float("inf")
        assert series["_sum"] <= most + 1e-3 + 0.01 * most  # a request may be counted between the two readings
    return {key: (series["_count"], series["_sum"]) for key, series in found.items()}


@pytest.mark.skipif(not _core.built_with_grpc, reason="built without the libraries of gRPC")
def test_through_shared_memory_the_engine_is_the_only_stage():
    with serving(waits(), shm="stages-of-tests") as (server, engines):
        with headrace.Client("shm://stages-of-tests/waits") as client:
            assert client.ask(np.int64(2000)) == 2000
        exporter = Exporter("0", ServerCollector(server, engines[0].device))
        found = check_text(scrape(exporter.address))
        exporter.close()
    of_shm = {stage: figures for (_, protocol, stage), figures in found.items() if protocol == "shm"}
    assert list(of_shm) == ["engine"]
    assert of_shm["engine"][0] == 1
    assert of_shm["engine"][1] >= 2e-3
