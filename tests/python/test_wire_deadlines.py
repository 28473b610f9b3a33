"""A request that would be late is refused at once instead."""

import json
import queue
import time

import pytest

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException
from wire_serving import SECONDS, Replies, connect, request, samples, serving

WORKING = headrace.light(query_bytes=4, threads=256, steps=1 << 14)  # some 0.3 ms in a thread
BATCH = 1000
CALLS = 8
TIMEOUT = 0.3  # seconds; the queries in line take several times as long


def inputs(count: int) -> list[triton.InferInput]:
    made = triton.InferInput("query", [count, 1], "UINT32")
    made.set_data_from_numpy(samples(WORKING, count).reshape(count, 1))
    return [made]


@pytest.mark.parametrize("slots", [2, 8192], ids=["in line", "in the engine"])
def test_a_request_that_would_be_late_is_refused_at_once_and_others_are_answered(slots: int):
    with (
        serving(WORKING, plan=headrace.Plan(slots=slots), grpc_port=0, waiting_max=2 * CALLS * BATCH) as (
            server,
            engines,
        ),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        done: queue.Queue[tuple[float, object]] = queue.Queue()

        def ask(count: int, timeout: float) -> None:
            client.async_infer(
                "light",
                inputs(count),
                lambda result, error: done.put((time.monotonic(), error or result)),
                client_timeout=timeout,
            )

        for _ in range(CALLS):
            ask(BATCH, 10 * SECONDS)
        end = time.monotonic() + SECONDS
        while engines[0].statistics().answered < BATCH // 2:
            assert time.monotonic() < end

        begun = time.monotonic()
        with pytest.raises(InferenceServerException, match="take longer than the request's timeout") as refused:
            client.infer("light", inputs(1), client_timeout=TIMEOUT)
        assert refused.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
        assert time.monotonic() - begun < TIMEOUT
        # A new client gets its turn soon, and one with enough time waits.
        with connect(server) as peer:
            tensor = {"name": "query", "datatype": "UINT32", "shape": [1, 1], "data": [1]}
            body = json.dumps({"parameters": {"timeout": int(SECONDS * 1e6)}, "inputs": [tensor]})
            peer.sendall(request("/v2/models/light/infer", body.encode()))
            assert Replies(peer).next().status == 200
        ask(1, 10 * SECONDS)
        results = [done.get(timeout=10 * SECONDS) for _ in range(CALLS + 1)]
        assert not [error for _, error in results if isinstance(error, InferenceServerException)]
        assert max(at for at, _ in results) - begun > TIMEOUT, "the one that was refused would have been late"
        assert client.infer("light", inputs(1), client_timeout=SECONDS).as_numpy("answer") is not None
        assert server.model_statistics()[0].grpc.queries.refused == 1
