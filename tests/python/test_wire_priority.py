"""Two priorities of requests: which goes first, which gives way, and that neither starves."""

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import http2_frames as h2
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from http2_frames import call, frame
from test_load_url import loaded, one_line
from test_wire_metrics import measured, scrape, value
from wire_serving import SECONDS, Replies, ask, connect, request, serving, waits

from headrace import wire
from headrace.cli.load_url_show import OUTCOMES

HIGH = {"priority": 1}
TURN, RUN = 8, 120  # queries: per turn, and of high priority in a row while others wait


def message(count: int, microseconds: int, *, high: bool) -> bytes:
    made = triton_grpc.service_pb2.ModelInferRequest(
        model_name="waits", raw_input_contents=[np.full(count, microseconds).tobytes()]
    )
    made.inputs.add(name="query", datatype="INT64", shape=[count])
    if high:
        made.parameters["priority"].uint64_param = 1
    return bytes(made.SerializeToString())


def infer(count: int, microseconds: int, **parameters: Any) -> bytes:
    tensor = {"name": "query", "datatype": "INT64", "shape": [count], "data": [microseconds] * count}
    body = json.dumps({"inputs": [tensor], "parameters": parameters})
    return request("/v2/models/waits/infer", body.encode())


@contextlib.contextmanager
def filled(count: int, batch: int, *, high: bool, waiting_max: int, microseconds: int = 1000) -> Iterator[wire.Server]:
    """A server with one slot; a gRPC client has put `count` requests of `batch` queries into its line."""
    calls = b"".join(call(1 + 2 * i, "ModelInfer", message(batch, microseconds, high=high)) for i in range(count))
    with (
        serving(waits(), plan=headrace.Plan(slots=1), grpc_port=0, waiting_max=waiting_max) as (server, _),
        socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=SECONDS) as peer,
    ):
        windows = struct.pack(">HI", 4, 1 << 24), struct.pack(">I", 1 << 24)
        peer.sendall(
            h2.PREFACE + frame(h2.SETTINGS, 0, 0, windows[0]) + frame(h2.WINDOW_UPDATE, 0, 0, windows[1]) + calls
        )
        end = time.monotonic() + SECONDS
        while server.model_statistics()[0].queries_waiting < (count - 1) * batch:
            assert time.monotonic() < end
        yield server


def test_clients_of_triton_say_which_priority_a_request_has():
    numbers = np.array([1, 2])
    with measured(waits(), grpc_port=0) as (server, address):
        over_http = triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}")
        over_grpc = triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
        for client, module in ((over_http, triton_http), (over_grpc, triton_grpc)):
            query = module.InferInput("query", [2], "INT64").set_data_from_numpy(numbers)
            for priority in (0, 1, 1, 2):
                answer = client.infer("waits", [query], priority=priority)
                assert answer.as_numpy("answer").tolist() == [1, 2]
        over_grpc.close()
        over_http.close()
        found, counted = scrape(address), server.model_statistics()[0]
    assert counted.high.requests.answered == counted.normal.requests.answered == 4
    assert counted.http.requests.answered == counted.grpc.requests.answered == 4
    labels = {"model": "waits", "version": "1", "priority": "high"}
    name = "headrace_serve_model_priority_requests_total"
    assert value(found, name, **labels, outcome="answered") == 4
    assert value(found, name, **labels, outcome="refused") == 0
    assert value(found, "headrace_serve_model_priority_queries_waiting", **labels) == 0


def test_a_priority_that_is_none_is_said():
    with serving(waits()) as (server, _):
        replies = ask(server, b"".join(infer(1, 1, priority=wrong) for wrong in (-1, "high", 1.5, True)), 4)
    assert [one.status for one in replies] == [400] * 4
    assert all(b"priority" in one.body for one in replies)


def test_a_request_of_high_priority_goes_before_those_that_wait():
    with filled(4, 500, high=False, waiting_max=4000) as server, connect(server) as peer:
        before = answered(server)
        peer.sendall(infer(20, 1000, **HIGH))
        assert Replies(peer).next().status == 200
        # In line with the others, its turns of 8 would alternate with theirs.
        assert answered(server) == before
        counted = server.model_statistics()[0]
    assert counted.high.requests.answered == 1
    assert counted.normal.queries_waiting > 1500


def answered(server: wire.Server) -> int:
    """Completed requests of normal priority."""
    return server.model_statistics()[0].normal.requests.answered


def test_requests_of_normal_priority_go_on_while_others_wait():
    """8 of them per 120, so 16 queries are answered while about 240 of the others are."""
    with filled(4, 500, high=True, waiting_max=4000) as server, connect(server) as peer:
        engine_had = total_of_engine(server)
        peer.sendall(infer(2 * TURN, 1000))
        assert Replies(peer).next().status == 200
        went = total_of_engine(server) - engine_had
        assert server.model_statistics()[0].high.queries_waiting > 0
    assert RUN < went <= 2 * (RUN + 2 * TURN) + TURN


def total_of_engine(server: wire.Server) -> int:
    """Queries that have left the line."""
    return 2000 - server.model_statistics()[0].high.queries_waiting


def test_where_no_more_may_wait_normal_priority_gives_way():
    with filled(4, 500, high=False, waiting_max=2000) as server:
        with connect(server) as peer:
            peer.sendall(infer(1000, 100, **HIGH))
            assert Replies(peer).next().status == 200
        counted = server.model_statistics()[0]
        assert counted.normal.requests.refused >= 1
        assert counted.high.requests.refused == 0
        # The line never has room for a new request of normal priority, which is refused at once.
        peers = [connect(server) for _ in range(2)]
        peers[0].sendall(infer(1000, 1000, **HIGH))
        wait_until(lambda: server.model_statistics()[0].high.queries_waiting > 500)
        peers[1].sendall(infer(1000, 1))
        assert Replies(peers[1]).next().status == 429
        for one in peers:
            one.close()


def wait_until(holds: Any) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_high_priority_leaves_a_sixteenth_of_the_line():
    with filled(3, 400, high=True, waiting_max=1600) as server:
        with connect(server) as peer:  # 1,500 of them are as many as may wait
            peer.sendall(infer(400, 1, **HIGH))
            assert Replies(peer).next().status == 200
        assert server.model_statistics()[0].high.requests.refused == 1  # of the client with most of them
        assert server.model_statistics()[0].high.queries_waiting <= 1500
        with connect(server) as peer:
            peer.sendall(infer(TURN, 1))
            assert Replies(peer).next().status == 200
        assert server.model_statistics()[0].normal.requests.refused == 0


def test_within_high_priority_clients_take_turns():
    with filled(4, 500, high=True, waiting_max=4000) as server, connect(server) as peer:
        replies = Replies(peer)
        before = total_of_engine(server)
        for _ in range(3):
            peer.sendall(infer(1, 1000, **HIGH))
            assert replies.next().status == 200
        assert total_of_engine(server) - before < 500  # in line it would have come after all of them


def test_a_deadline_is_held_against_what_a_priority_gets():
    """The next turn of normal priority comes after up to 120 queries of 1 ms, that of high priority after about 8."""
    with filled(4, 500, high=True, waiting_max=4000) as server, connect(server) as peer:
        began = server.model_statistics()[0].high.queries_waiting
        wait_until(lambda: server.model_statistics()[0].high.queries_waiting < began - 100)  # now the rate is known
        replies = Replies(peer)
        found = {}
        for name, parameters in {
            "short": {"timeout": 100_000},
            "high": {"timeout": 100_000, **HIGH},
            "long": {"timeout": 60_000_000},
        }.items():
            peer.sendall(infer(1, 1000, **parameters))
            found[name] = replies.next().status
        assert server.model_statistics()[0].high.queries_waiting > 500
    assert found == {"short": 429, "high": 200, "long": 200}


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_at_three_times_the_capacity_high_priority_is_answered_and_the_other_refused(
    run: Run, tmp_path: Path, scheme: str
):
    """An operator of 4 ms in one thread; requests of high priority ask for half of its capacity."""
    np.save(path := tmp_path / "milliseconds.npy", np.full(16, 4000))
    words = ("--input", f"query={path}", "--connections", 8 if scheme == "grpc" else 256)
    with serving(waits(), plan=headrace.Plan(slots=4, threads=1), grpc_port=0, waiting_max=32) as (server, _):
        url = f"{scheme}://127.0.0.1:{server.grpc_port if scheme == 'grpc' else server.http_port}/waits"
        capacity = loaded(run, url, "--rate", 600, "--duration", "2s", *words)["load"]["measured_per_second"]
        before = server.model_statistics()[0]
        words = ("--rate", round(3 * capacity), "--duration", "4s", "--high-share", 1 / 6, *words)
        said = loaded(run, url, *words)
        after = server.model_statistics()[0]
    high, normal = said["priorities"]["high"], said["priorities"]["normal"]
    for outcome in ("answered", "refused"):
        assert high[outcome] == getattr(after.high.requests, outcome) - getattr(before.high.requests, outcome)
        assert normal[outcome] == getattr(after.normal.requests, outcome) - getattr(before.normal.requests, outcome)
        assert high[outcome] + normal[outcome] == said["requests"][outcome]
    offered = sum(high[name] for name in OUTCOMES)
    print(f"{capacity:.0f}/s, high {high}, normal {normal}")
    assert offered > 200
    assert high["answered"] >= 0.95 * offered
    assert normal["refused"] > normal["answered"] > 0
    assert high["refused"] <= 0.02 * offered
    assert high["latency_us"]["p99"] < normal["latency_us"]["p99"]
    assert high["latency_us"]["p50"] < normal["latency_us"]["p50"]


def test_mistakes_are_one_line(run: Run):
    for share in ("-0.1", "1.1", "much"):
        done = run("load", "--url", "http://127.0.0.1:1/x", "--rate", 1, "--high-share", share)
        one_line(done, 2, "--high-share")
    one_line(run("load", "--url", "shm://x", "--rate", 1, "--high-share", 0.5), 2, "no priority")
