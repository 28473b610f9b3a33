"""A server whose threads answer themselves (schedule caller): many clients, deadlines, and engines that stop."""

import os
import threading
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import tritonclient.grpc as triton
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException
from wire_serving import SECONDS, serving, third

CALLER = headrace.serve.find_rung("caller").plan
SLOW = headrace.light(query_bytes=4, threads=1024, steps=1 << 20)  # hundreds of milliseconds


def ask(client: Any, module: Any, value: float, **options: Any) -> float:
    """A third of the value, asked by an HTTP or gRPC client."""
    tensor = module.InferInput("query", [1], "FP64")
    tensor.set_data_from_numpy(np.array([value]))
    return float(client.infer("third", [tensor], **options).as_numpy("answer")[0])


@pytest.mark.parametrize("threads", [1, 2])
def test_clients_of_every_kind_get_their_own_answers(threads: int) -> None:
    name = f"wire-caller-{os.getpid()}"
    with serving(third(), plan=CALLER, grpc_port=0, threads=threads, shm=name) as (server, engines):
        wrong: list[tuple[float, float]] = []

        def run(number: int) -> None:
            over_grpc = triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
            over_http = triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}")
            with over_grpc, over_http, headrace.Client(f"shm://{name}/third") as rings:
                for index in range(100):
                    value = float(1000 * number + index)
                    found = [
                        ask(over_grpc, triton, value),
                        ask(over_http, triton_http, value),
                        float(rings.ask(np.float64(value))),
                    ]
                    wrong.extend((value, one) for one in found if one != value / 3)

        clients = [threading.Thread(target=run, args=(number,)) for number in range(6)]
        for one in clients:
            one.start()
        for one in clients:
            one.join(SECONDS)
        assert wrong == []
        assert engines[0].statistics().answered == 6 * 300
        assert server.statistics().memory_bytes == 0 or server.drain(1.0)


def test_a_large_batch_goes_through_in_parts() -> None:
    with serving(third(), plan=CALLER, grpc_port=0) as (server, _):
        values = np.arange(1000, dtype=np.float64)
        tensor = triton.InferInput("query", [1000], "FP64")
        tensor.set_data_from_numpy(values)
        with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            assert np.array_equal(client.infer("third", [tensor]).as_numpy("answer"), values / 3)


def test_what_comes_while_the_thread_is_busy_is_late_where_its_deadline_passes() -> None:
    slow = triton.InferInput("query", [1, 1], "UINT32")
    slow.set_data_from_numpy(np.zeros((1, 1), np.uint32))
    with (
        serving(third(), SLOW, plan=CALLER, grpc_port=0) as (server, engines),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        busy: list[Any] = []
        done = threading.Event()

        def told(result: Any, error: Any) -> None:
            busy.append(error or result)
            done.set()

        client.async_infer("light", [slow], told)
        late = 0
        while not done.is_set():
            try:
                ask(client, triton, 1.0, client_timeout=0.02)
            except InferenceServerException:
                late += 1
        assert late > 0
        assert not isinstance(busy[0], Exception)
        assert ask(client, triton, 3.0) == 1.0  # after all that were given up
        answered = engines[0].statistics().answered
        assert ask(client, triton, 3.0) == 1.0
        assert engines[0].statistics().answered == answered + 1


def test_an_engine_that_has_been_stopped_is_an_error_of_each_request() -> None:
    with (
        serving(third(), plan=CALLER, grpc_port=0) as (server, engines),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        assert ask(client, triton, 3.0) == 1.0
        engines[0].stop()
        with pytest.raises(InferenceServerException, match="has been stopped"):
            ask(client, triton, 3.0)
