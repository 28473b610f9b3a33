"""tritonclient, unmodified, against a server: every call of its HTTP client."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException, np_to_triton_dtype
from wire_serving import SECONDS, halve, samples, serving, third

from headrace import wire

LIGHT = headrace.light()
RANDOM = np.random.default_rng(11)

# Every type of the protocol except BYTES, in the 128 bytes of a query, out of order and with a gap.
EVERYTHING = np.dtype(
    {
        "names": ["b", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "part", "scalar"],
        "formats": [
            *("?", "i1", "<i2", "<i4", "<i8", ("u1", 3), "<u2", "<u4", "<u8", "<f2", ("<f4", (2, 3)), "<f8"),
            [("text", "S5"), ("raw", "V3"), ("deep", [("x", "<f4", 2)])],
            "<i4",
        ],
        "offsets": [127, 0, 1, 3, 7, 15, 18, 20, 24, 32, 34, 58, 66, 100],
        "itemsize": 128,
    }
)


@pytest.fixture(scope="module")
def server() -> Iterator[wire.Server]:
    with serving(LIGHT, halve(), third()) as (made, _):
        yield made


@pytest.fixture
def client(server: wire.Server) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(f"127.0.0.1:{server.http_port}") as made:
        yield made


def tensor(name: str, data: np.ndarray[Any, Any], *, binary: bool = True) -> triton.InferInput:
    made = triton.InferInput(name, list(data.shape), np_to_triton_dtype(data.dtype))
    made.set_data_from_numpy(data, binary_data=binary)
    return made


def answers_of(operator: headrace.Operator, queries: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with headrace.Engine("cpu", operator) as engine, engine.connect() as asking:
        answers, status = asking.ask_many(queries)
    assert not status.any()
    return answers


def status_of(caught: pytest.ExceptionInfo[InferenceServerException]) -> str:
    return str(caught.value.status())


def halve_inputs(count: int, *, binary: tuple[bool, bool] = (True, True)) -> list[triton.InferInput]:
    return [
        tensor("x", (np.arange(count * 3, dtype=np.float32) / 7).reshape(count, 3), binary=binary[0]),
        tensor("n", np.arange(count, dtype=np.int64) * 60, binary=binary[1]),
    ]


def assert_halved(result: triton.InferResult, count: int) -> None:
    x, n = (np.arange(count * 3, dtype=np.float32) / 7).reshape(count, 3), np.arange(count, dtype=np.int64) * 60
    np.testing.assert_array_equal(result.as_numpy("y"), x.astype(np.float64) / 2)
    np.testing.assert_array_equal(result.as_numpy("n"), -n)
    np.testing.assert_array_equal(result.as_numpy("large"), n > 100)


def test_live_and_ready(client: triton.InferenceServerClient):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("light")
    assert client.is_model_ready("light", "1")
    assert not client.is_model_ready("light", "2")
    assert not client.is_model_ready("heavy")


def test_the_server_says_what_it_is_and_which_extensions_it_has(client: triton.InferenceServerClient):
    said = client.get_server_metadata()
    assert said["name"] == "headrace"
    assert said["version"] == headrace.__version__
    assert "binary_tensor_data" in said["extensions"]
    assert not {"system_shared_memory", "cuda_shared_memory", "trace", "logging", "sequence"} & set(said["extensions"])


def test_metadata_of_models(client: triton.InferenceServerClient):
    assert client.get_model_metadata("halve") == {
        "name": "halve",
        "versions": ["1"],
        "platform": "headrace",
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "n", "datatype": "INT64", "shape": [-1]},
        ],
        "outputs": [
            {"name": "y", "datatype": "FP64", "shape": [-1, 3]},
            {"name": "n", "datatype": "INT64", "shape": [-1]},
            {"name": "large", "datatype": "BOOL", "shape": [-1]},
        ],
    }
    assert client.get_model_metadata("light", "1")["inputs"][0]["shape"] == [-1, 256]


def test_config_of_models(client: triton.InferenceServerClient):
    config = client.get_model_config("halve")
    assert (config["name"], config["max_batch_size"]) == ("halve", 1024)
    assert [(one["name"], one["data_type"], one["dims"]) for one in config["input"]] == [
        ("x", "TYPE_FP32", [3]),
        ("n", "TYPE_INT64", [1]),
    ]
    assert config["input"][1]["reshape"] == {"shape": []}
    assert [one["name"] for one in config["output"]] == ["y", "n", "large"]
    assert client.get_model_config("light", "1")["output"][0]["data_type"] == "TYPE_UINT64"


def test_the_repository_lists_models(client: triton.InferenceServerClient):
    assert [(one["name"], one["version"], one["state"]) for one in client.get_model_repository_index()] == [
        ("light", "1", "READY"),
        ("halve", "1", "READY"),
        ("third", "1", "READY"),
    ]


def test_statistics_count_requests_and_queries():
    with serving(third()) as (server, _), triton.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        for count in (1, 5):
            client.infer("third", [tensor("query", np.ones(count))])
        with pytest.raises(InferenceServerException):
            client.infer("third", [tensor("query", np.ones((2, 2)))])
        for found in (client.get_inference_statistics(), client.get_inference_statistics("third", "1")):
            assert [one["name"] for one in found["model_stats"]] == ["third"]
            of_model = found["model_stats"][0]
            assert of_model["inference_count"] == 6
            assert of_model["inference_stats"]["success"]["count"] == 2
            assert of_model["inference_stats"]["success"]["ns"] > 0
            assert of_model["last_inference"] > 0
        done = server.statistics()
        assert (done.connections, done.connections_open, done.failed, done.refused) == (1, 1, 1, 0)
        assert done.requests >= 4


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_binary_batches_are_answered_as_an_engine_does(client: triton.InferenceServerClient, count: int):
    queries = samples(LIGHT, count, first=17)
    result = client.infer("light", [tensor("query", queries)])
    np.testing.assert_array_equal(result.as_numpy("answer"), answers_of(LIGHT, queries))
    assert result.get_response()["model_name"] == "light"
    assert result.get_response()["model_version"] == "1"


@pytest.mark.parametrize("binary", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("binary_output", [True, False])
def test_json_and_binary_data_in_any_mixture(
    client: triton.InferenceServerClient, binary: tuple[bool, bool], binary_output: bool
):
    wanted = [triton.InferRequestedOutput(name, binary_data=binary_output) for name in ("y", "n", "large")]
    result = client.infer("halve", halve_inputs(9, binary=binary), outputs=wanted)
    assert_halved(result, 9)
    assert ("data" in result.get_output("y")) == (not binary_output)


def test_outputs_are_chosen_each_in_its_form_and_order(client: triton.InferenceServerClient):
    wanted = [
        triton.InferRequestedOutput("large", binary_data=False),
        triton.InferRequestedOutput("y", binary_data=True),
    ]
    result = client.infer("halve", halve_inputs(4), outputs=wanted)
    assert [one["name"] for one in result.get_response()["outputs"]] == ["large", "y"]
    assert result.get_output("large")["data"] == [False, False, True, True]
    np.testing.assert_array_equal(
        result.as_numpy("y"), (np.arange(12, dtype=np.float32) / 7).reshape(4, 3).astype(np.float64) / 2
    )
    assert result.as_numpy("n") is None


def test_inputs_may_come_in_any_order(client: triton.InferenceServerClient):
    assert_halved(client.infer("halve", halve_inputs(5)[::-1]), 5)


def test_numbers_survive_json_to_the_last_bit(client: triton.InferenceServerClient):
    queries = np.concatenate(
        [RANDOM.standard_normal(200), [5e-324, 1.7976931348623157e308, -0.0, 0.1, 2.0**53 + 1, 1e23]]
    )
    wanted = [triton.InferRequestedOutput("answer", binary_data=False)]
    result = client.infer("third", [tensor("query", queries, binary=False)], outputs=wanted)
    assert result.as_numpy("answer").tobytes() == (queries / 3).tobytes()


def test_whole_numbers_of_64_bits_survive_json(client: triton.InferenceServerClient):
    queries = samples(LIGHT, 3)
    wanted = [triton.InferRequestedOutput("answer", binary_data=False)]
    result = client.infer("light", [tensor("query", queries, binary=False)], outputs=wanted)
    assert result.get_output("answer")["data"] == answers_of(LIGHT, queries).reshape(-1).tolist()


def test_what_json_cannot_write_is_refused_or_comes_in_binary(client: triton.InferenceServerClient):
    queries = np.array([1.0, np.nan, np.inf])
    result = client.infer("third", [tensor("query", queries)])
    np.testing.assert_array_equal(result.as_numpy("answer"), queries / 3)
    with pytest.raises(InferenceServerException, match="JSON cannot write") as caught:
        client.infer("third", [tensor("query", queries)], outputs=[triton.InferRequestedOutput("answer", False)])
    assert status_of(caught) == "500"


def test_every_type_in_queries_and_answers():
    """Queries are assembled from 16 tensors, and answers split into as many."""
    light = headrace.light(query_bytes=128)
    answer = np.dtype(
        [("h", "<f2", 4), ("b", "?", 3), ("t", "S5"), ("d", "<f8"), ("i", "<i2", (2, 2)), ("w", "<u4", 8)]
    )
    queries = np.zeros(20, EVERYTHING)
    bits = RANDOM.integers(0, 256, (20, 128), np.uint8)
    tensors = []
    with headrace.Engine("cpu", light) as engine:
        model = wire.model(engine, "all", query=EVERYTHING, answer=answer)
        for one in model.inputs:
            field: Any = queries
            for name in one.name.split("."):
                field = field[name]
            raw = bits[:, one.offset : one.offset + one.bytes]
            raw = raw & 1 if one.datatype == "BOOL" else raw
            shape = (20, *one.shape)
            tensors.append(triton.InferInput(one.name, list(shape), one.datatype))
            tensors[-1].set_data_from_numpy(np.ascontiguousarray(raw).view(_numpy_type(one.datatype)).reshape(shape))
            stored = np.ascontiguousarray(raw).view(
                field.dtype if field.dtype.kind in "SV" else _numpy_type(one.datatype)
            )
            field[...] = stored.reshape(field.shape)
        with (
            wire.Server([model], http_port=0) as server,
            triton.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client,
        ):
            result = client.infer("all", tensors)
    assert [one.datatype for one in model.inputs] == [
        *("BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "FP32", "FP64"),
        *("UINT8", "UINT8", "FP32", "INT32"),
    ]
    expected = answers_of(light, queries.view(np.uint8).reshape(20, 128)).view(answer).reshape(-1)
    for one in model.outputs:
        assert result.as_numpy(one.name).tobytes() == np.ascontiguousarray(expected[one.name]).tobytes()


def _numpy_type(datatype: str) -> str:
    return {"BOOL": "?", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8"}.get(datatype, datatype.lower())


def test_a_request_keeps_its_id(client: triton.InferenceServerClient):
    for name in ("7", 'a "quoted" one, ü'):
        assert client.infer("third", [tensor("query", np.ones(1))], request_id=name).get_response()["id"] == name
    assert "id" not in client.infer("third", [tensor("query", np.ones(1))]).get_response()


def test_a_timeout_that_passes_is_an_error_and_one_that_does_not_is_none():
    with (
        serving(headrace.light(steps=1 << 20)) as (server, _),
        triton.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client,
    ):
        queries = tensor("query", samples(LIGHT, 1))
        with pytest.raises(InferenceServerException, match="timeout") as caught:
            client.infer("light", [queries], timeout=1)
        assert status_of(caught) == "504"
        assert client.infer("light", [queries], timeout=SECONDS * 1_000_000).as_numpy("answer").shape == (1, 8)


def test_many_requests_at_once_by_one_client(server: wire.Server):
    queries = samples(LIGHT, 40)
    with triton.InferenceServerClient(f"127.0.0.1:{server.http_port}", concurrency=4) as client:
        asked = [
            client.async_infer("light", [tensor("query", queries[i : i + 1])], request_id=str(i)) for i in range(40)
        ]
        results = [one.get_result(timeout=SECONDS) for one in asked]
    assert [one.get_response()["id"] for one in results] == [str(i) for i in range(40)]
    np.testing.assert_array_equal(
        np.concatenate([one.as_numpy("answer") for one in results]), answers_of(LIGHT, queries)
    )


def test_the_client_for_asyncio(server: wire.Server):
    queries = samples(LIGHT, 12)

    async def ask() -> list[triton.InferResult]:
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
            assert await client.is_server_live()
            assert await client.is_model_ready("light")
            assert (await client.get_server_metadata())["name"] == "headrace"
            assert (await client.get_model_metadata("light"))["name"] == "light"
            assert (await client.get_model_config("light"))["name"] == "light"
            assert len(await client.get_model_repository_index()) == 3
            assert len((await client.get_inference_statistics())["model_stats"]) == 3
            return await asyncio.gather(
                *(client.infer("light", [tensor("query", queries[i : i + 1])]) for i in range(12))
            )

    results = asyncio.run(ask())
    np.testing.assert_array_equal(
        np.concatenate([one.as_numpy("answer") for one in results]), answers_of(LIGHT, queries)
    )


def test_threads_with_clients_of_their_own_get_their_own_answers():
    plan = headrace.Plan(threads=2)
    queries = samples(LIGHT, 60)
    expected = answers_of(LIGHT, queries)
    wrong: list[int] = []
    with serving(LIGHT, plan=plan, threads=3) as (server, _):

        def ask(first: int) -> None:
            with triton.InferenceServerClient(f"127.0.0.1:{server.http_port}", network_timeout=SECONDS) as client:
                for i in range(first, 60, 6):
                    result = client.infer("light", [tensor("query", queries[i : i + 1])])
                    if not np.array_equal(result.as_numpy("answer"), expected[i : i + 1]):
                        wrong.append(i)

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.statistics().requests == 60
    assert wrong == []


def _with(name: str = "x", shape: tuple[int, ...] = (2, 3), dtype: str = "f4") -> list[triton.InferInput]:
    return [tensor(name, np.zeros(shape, dtype)), tensor("n", np.zeros(2, np.int64))]


@pytest.mark.parametrize(
    ("model", "inputs", "status", "says"),
    [
        ("heavy", _with(), "404", "no model 'heavy'"),
        ("halve", _with("z"), "400", 'no input "z"'),
        ("halve", _with()[:1], "400", 'no input "n"'),
        ("halve", [*_with(), *_with()], "400", '"x"'),
        ("halve", _with(dtype="f8"), "400", "FP64"),
        ("halve", _with(shape=(2, 4)), "400", "[2, 4]"),
        ("halve", _with(shape=(2,)), "400", "[2]"),
        ("halve", _with(shape=(3, 3)), "400", "queries"),
        ("halve", [], "400", "input"),
        ("third", [tensor("query", np.ones(1025))], "400", "1024"),
        ("third", [tensor("query", np.ones(0))], "400", "[0]"),
    ],
)
def test_wrong_requests_are_refused_by_name(
    client: triton.InferenceServerClient, model: str, inputs: list[triton.InferInput], status: str, says: str
):
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, inputs)
    assert status_of(caught) == status
    assert says in caught.value.message()
    assert_halved(client.infer("halve", halve_inputs(3)), 3)  # the connection continues


def test_wrong_outputs_and_versions_are_refused_by_name(client: triton.InferenceServerClient):
    with pytest.raises(InferenceServerException, match='no output "z"'):
        client.infer("halve", halve_inputs(1), outputs=[triton.InferRequestedOutput("z")])
    with pytest.raises(InferenceServerException, match="version '2'"):
        client.infer("halve", halve_inputs(1), model_version="2")


def test_what_the_server_does_not_offer_is_a_clear_error(client: triton.InferenceServerClient):
    calls = [
        lambda: client.load_model("light"),
        lambda: client.unload_model("light"),
        client.get_trace_settings,
        lambda: client.get_trace_settings(model_name="third"),
        lambda: client.update_trace_settings(settings={"trace_level": "OFF"}),
        client.get_log_settings,
        lambda: client.update_log_settings({"log_verbose_level": 1}),
        client.get_system_shared_memory_status,
        lambda: client.register_system_shared_memory("a", "/a", 8),
        client.unregister_system_shared_memory,
        client.get_cuda_shared_memory_status,
        lambda: client.register_cuda_shared_memory("a", b"handle", 0, 8),
        client.unregister_cuda_shared_memory,
    ]
    for call in calls:
        with pytest.raises(InferenceServerException, match="does not offer") as caught:
            call()
        assert status_of(caught) == "501"
    shared = triton.InferInput("query", [1], "FP64")
    shared.set_shared_memory("a", 8)
    with pytest.raises(InferenceServerException, match="shared_memory_region"):
        client.infer("third", [shared])
    with pytest.raises(InferenceServerException, match="sequence"):
        client.infer("third", [tensor("query", np.ones(1))], sequence_id=5)
    with pytest.raises(InferenceServerException, match="classification"):
        client.infer(
            "third", [tensor("query", np.ones(1))], outputs=[triton.InferRequestedOutput("answer", class_count=2)]
        )
    with pytest.raises(InferenceServerException, match="compressed"):
        client.infer("third", [tensor("query", np.ones(1))], request_compression_algorithm="gzip")


def test_a_reply_that_may_be_compressed_need_not_be(client: triton.InferenceServerClient):
    result = client.infer("third", [tensor("query", np.ones(1))], response_compression_algorithm="gzip")
    assert result.as_numpy("answer") == 1 / 3


def test_an_engine_that_was_stopped_answers_no_more():
    with (
        serving(third()) as (server, engines),
        triton.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client,
    ):
        assert client.is_model_ready("third")
        engines[0].stop()
        assert client.is_server_live()
        assert not client.is_server_ready()
        assert not client.is_model_ready("third")
        assert client.get_model_repository_index()[0]["state"] == "UNAVAILABLE"
        with pytest.raises(InferenceServerException, match="stopped") as caught:
            client.infer("third", [tensor("query", np.ones(1))])
        assert status_of(caught) == "503"
