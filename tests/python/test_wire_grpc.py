"""tritonclient, unmodified, against a server over gRPC: every call, compared with those over HTTP."""

import asyncio
import queue
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import grpc
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
import tritonclient.http as triton_http
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException, np_to_triton_dtype
from wire_serving import SECONDS, halve, samples, serving, third

from headrace import wire

LIGHT = headrace.light()
SLOW = headrace.light(query_bytes=4, threads=1024, steps=1 << 20)  # hundreds of milliseconds in a thread
KINDS = {
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    "BOOL": "bool_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}
EVERY = np.dtype(
    [
        *(("b", "?", 3), ("i1", "i1", 5), ("i2", "<i2", (2, 2)), ("i4", "<i4"), ("i8", "<i8", 2)),
        *(("u1", "u1"), ("u2", "<u2", 3), ("u4", "<u4", 2), ("u8", "<u8"), ("f4", "<f4", 3)),
        *(("f8", "<f8", 2), ("rest", "V13")),
    ]
)


@pytest.fixture(scope="module")
def server() -> Iterator[wire.Server]:
    with serving(LIGHT, halve(), third(), grpc_port=0) as (made, _):
        yield made


def address(server: wire.Server) -> str:
    return f"127.0.0.1:{server.grpc_port}"


@pytest.fixture
def client(server: wire.Server) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(address(server)) as made:
        yield made


@pytest.fixture
def over_http(server: wire.Server) -> Iterator[triton_http.InferenceServerClient]:
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as made:
        yield made


@pytest.fixture
def stub(server: wire.Server) -> Iterator[service_pb2_grpc.GRPCInferenceServiceStub]:
    with grpc.insecure_channel(address(server)) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def tensor(name: str, data: np.ndarray[Any, Any], of: Any = triton) -> Any:
    made = of.InferInput(name, list(data.shape), np_to_triton_dtype(data.dtype))
    made.set_data_from_numpy(data)
    return made


def thirds(*values: float) -> list[Any]:
    return [tensor("query", np.array(values))]


def code_of(caught: pytest.ExceptionInfo[InferenceServerException]) -> str:
    return str(caught.value.status()).removeprefix("StatusCode.")


def plain(value: Any) -> Any:
    """JSON with numbers as strings, as protocol buffers write 64-bit numbers, and without empty values."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one not in ("", [], {}, 0)}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return str(value)


def test_live_and_ready(client: triton.InferenceServerClient):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("light")
    assert client.is_model_ready("light", "1")
    for name, version in (("light", "2"), ("heavy", "")):
        with pytest.raises(InferenceServerException) as caught:
            client.is_model_ready(name, version)
        assert code_of(caught) == "NOT_FOUND"


def test_descriptions_are_those_over_http(
    client: triton.InferenceServerClient, over_http: triton_http.InferenceServerClient
):
    assert plain(client.get_server_metadata(as_json=True)) == plain(over_http.get_server_metadata())
    for name in ("light", "halve", "third"):
        assert plain(client.get_model_metadata(name, as_json=True)) == plain(over_http.get_model_metadata(name))
        said = plain(client.get_model_config(name, as_json=True))["config"]
        expected = plain(over_http.get_model_config(name))
        assert expected["dynamic_batching"]["default_queue_policy"].pop("timeout_action") == "REJECT"  # the default
        for one in (*expected["input"], *expected["output"]):
            one.setdefault("reshape", {})
        for one in (*said["input"], *said["output"]):
            one.setdefault("reshape", {})
        assert said == expected
    listed = plain(client.get_model_repository_index(as_json=True))["models"]
    assert listed == plain(over_http.get_model_repository_index())


def test_statistics_count_requests_and_queries():
    with serving(third(), grpc_port=0) as (server, _), triton.InferenceServerClient(address(server)) as client:
        for count in (1, 5):
            client.infer("third", thirds(*np.ones(count)))
        with pytest.raises(InferenceServerException):
            client.infer("third", [tensor("query", np.ones((2, 2)))])
        for found in (client.get_inference_statistics(), client.get_inference_statistics("third", "1")):
            (one,) = found.model_stats
            assert (one.name, one.version, one.inference_count) == ("third", "1", 6)
            assert one.inference_stats.success.count == 2
            assert one.inference_stats.success.ns > 0
            assert one.last_inference > 0
        done = server.statistics()
        assert (done.connections, done.failed, done.refused, done.requests) == (1, 1, 0, 5)


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_batches_are_answered_as_over_http(
    client: triton.InferenceServerClient, over_http: triton_http.InferenceServerClient, count: int
):
    queries = samples(LIGHT, count, first=17)
    result = client.infer("light", [tensor("query", queries)], request_id="seven, ü")
    expected = over_http.infer("light", [tensor("query", queries, triton_http)])
    np.testing.assert_array_equal(result.as_numpy("answer"), expected.as_numpy("answer"))
    response = result.get_response()
    assert (response.model_name, response.model_version, response.id) == ("light", "1", "seven, ü")


def test_outputs_are_chosen_each_in_its_order(client: triton.InferenceServerClient):
    x, n = (np.arange(12, dtype=np.float32) / 7).reshape(4, 3), np.arange(4, dtype=np.int64) * 60
    inputs = [tensor("n", n), tensor("x", x)]
    result = client.infer("halve", inputs, outputs=[triton.InferRequestedOutput(name) for name in ("large", "y")])
    assert [one.name for one in result.get_response().outputs] == ["large", "y"]
    np.testing.assert_array_equal(result.as_numpy("y"), x.astype(np.float64) / 2)
    np.testing.assert_array_equal(result.as_numpy("large"), n > 100)
    every = client.infer("halve", inputs)
    np.testing.assert_array_equal(every.as_numpy("n"), -n)


def every_input(count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Tensors of each type except FP16, with arbitrary bits."""
    bits = np.random.default_rng(5).integers(0, 256, (count, EVERY.itemsize), np.uint8)
    made = {}
    for name in EVERY.names or ():
        kind, offset = (EVERY.fields or {})[name][:2]
        raw = np.ascontiguousarray(bits[:, offset : offset + kind.itemsize])
        if kind.base.kind == "V":
            made[name] = raw
        elif kind.base.kind == "b":
            made[name] = (raw & 1).view(bool)
        else:
            made[name] = raw.view(kind.base).reshape(count, *kind.shape)
        if kind.base.kind == "f":  # contents pass through Python numbers, which do not preserve the bits of NaN
            made[name] = np.nan_to_num(made[name])
    return made


def in_contents(model: str, inputs: dict[str, np.ndarray[Any, Any]]) -> service_pb2.ModelInferRequest:
    """A request with the tensors as numbers in protocol buffers."""
    made = service_pb2.ModelInferRequest(model_name=model)
    for name, data in inputs.items():
        datatype = np_to_triton_dtype(data.dtype)
        one = made.inputs.add(name=name, datatype=datatype, shape=data.shape)
        getattr(one.contents, KINDS[datatype]).extend(data.reshape(-1).tolist())
    return made


def test_every_type_raw_and_in_contents_is_as_over_http():
    light = headrace.light(query_bytes=EVERY.itemsize)
    answer = np.dtype([("h", "<f2", 4), ("b", "?", 3), ("t", "S5"), ("d", "<f8"), ("w", "<u4", 8), ("i", "<i2", 4)])
    inputs = every_input(20)
    with headrace.Engine("cpu", light) as engine:
        model = wire.model(engine, "all", query=EVERY, answer=answer)
        with (
            wire.Server([model], http_port=0, grpc_port=0) as server,
            triton.InferenceServerClient(address(server)) as client,
            triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as other,
            grpc.insecure_channel(address(server)) as channel,
        ):
            expected = other.infer("all", [tensor(name, data, triton_http) for name, data in inputs.items()])
            raw = client.infer("all", [tensor(name, data) for name, data in inputs.items()])
            request = in_contents("all", inputs)
            numbers = triton.InferResult(service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request))
    assert {one.datatype for one in model.inputs} == set(KINDS)
    for one in model.outputs:
        assert raw.as_numpy(one.name).tobytes() == expected.as_numpy(one.name).tobytes()
        assert numbers.as_numpy(one.name).tobytes() == expected.as_numpy(one.name).tobytes()


def request_of(**more: Any) -> service_pb2.ModelInferRequest:
    """A request for thirds of 3 and 6, with contents."""
    made = service_pb2.ModelInferRequest(model_name="third", **more)
    made.inputs.add(name="query", datatype="FP64", shape=[2]).contents.fp64_contents.extend([3, 6])
    return made


def changed(**changes: Any) -> service_pb2.ModelInferRequest:
    made = request_of()
    for name, value in changes.items():
        setattr(made.inputs[0], name, value)
    return made


def shaped(*shape: int) -> service_pb2.ModelInferRequest:
    made = request_of()
    made.inputs[0].shape[:] = shape
    return made


def with_contents(**contents: Any) -> service_pb2.ModelInferRequest:
    made = request_of()
    made.inputs[0].contents.CopyFrom(service_pb2.InferTensorContents(**contents))
    return made


def with_parameter(name: str, **value: Any) -> service_pb2.ModelInferRequest:
    made = request_of()
    made.parameters[name].CopyFrom(service_pb2.InferParameter(**value))
    return made


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (service_pb2.ModelInferRequest(), "NOT_FOUND", "no model ''"),
        (service_pb2.ModelInferRequest(model_name="ü"), "NOT_FOUND", "no model 'ü'"),
        (request_of(model_version="9"), "NOT_FOUND", "no version '9'"),
        (service_pb2.ModelInferRequest(model_name="ü" * 4000), "NOT_FOUND", "üüü"),
        (request_of(id="x" * 1025), "INVALID_ARGUMENT", "id"),
        (service_pb2.ModelInferRequest(model_name="third"), "INVALID_ARGUMENT", 'no input "query"'),
        (changed(name="x"), "INVALID_ARGUMENT", 'no input "x"'),
        (changed(datatype="FP32"), "INVALID_ARGUMENT", "needs FP64"),
        (changed(datatype="BYTES"), "INVALID_ARGUMENT", "BYTES"),
        (shaped(3), "INVALID_ARGUMENT", "16 bytes, but its shape takes 24"),
        (shaped(1), "INVALID_ARGUMENT", "more elements"),
        (shaped(-2), "INVALID_ARGUMENT", "shape [-2]"),
        (shaped(0), "INVALID_ARGUMENT", "shape [0]"),
        (shaped(2, 1), "INVALID_ARGUMENT", "shape [2, 1]"),
        (shaped(1 << 40), "INVALID_ARGUMENT", "1 to 1024"),
        (shaped(*[1] * 17), "INVALID_ARGUMENT", "too many dimensions"),
        (with_contents(fp32_contents=[1, 2]), "INVALID_ARGUMENT", "a type other than FP64"),
        (with_contents(bytes_contents=[b"12345678"] * 2), "INVALID_ARGUMENT", "a type other than FP64"),
        (request_of(raw_input_contents=[bytes(16)]), "INVALID_ARGUMENT", "raw_input_contents"),
        (with_parameter("timeout", string_param="7"), "INVALID_ARGUMENT", "timeout"),
        (with_parameter("timeout", int64_param=-7), "INVALID_ARGUMENT", "timeout"),
        (with_parameter("sequence_id", int64_param=7), "INVALID_ARGUMENT", "sequence_id"),
        (
            request_of(outputs=[service_pb2.ModelInferRequest.InferRequestedOutputTensor(name="y")]),
            "INVALID_ARGUMENT",
            'no output "y"',
        ),
    ],
)
def test_requests_that_cannot_be_answered(
    stub: service_pb2_grpc.GRPCInferenceServiceStub, request_: service_pb2.ModelInferRequest, code: str, says: str
):
    with pytest.raises(grpc.RpcError) as caught:
        stub.ModelInfer(request_)
    assert caught.value.code().name == code
    assert says in caught.value.details()
    assert triton.InferResult(stub.ModelInfer(request_of())).as_numpy("answer").tolist() == [1, 2]


@pytest.mark.parametrize("count", [0, 2])
def test_raw_contents_that_are_not_one_for_each_input(stub: service_pb2_grpc.GRPCInferenceServiceStub, count: int):
    made = request_of(raw_input_contents=[bytes(16)] * count)
    made.inputs[0].ClearField("contents")
    with pytest.raises(grpc.RpcError) as caught:
        stub.ModelInfer(made)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_whole_numbers_that_do_not_fit_are_refused():
    with serving(headrace.light(query_bytes=4), grpc_port=0) as (server, engines):
        del server
        model = wire.model(engines[0], "small", query=np.dtype(("i1", 4)))
        with (
            wire.Server([model], http_port=0, grpc_port=0) as other,
            grpc.insecure_channel(address(other)) as channel,
        ):
            infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
            request = in_contents("small", {"query": np.array([[-128, 127, 0, -1]], np.int8)})
            assert len(infer(request).raw_output_contents) == 1
            for wrong in (128, -129):
                request.inputs[0].contents.int_contents[0] = wrong
                with pytest.raises(grpc.RpcError, match=f"{wrong} is not a valid INT8"):
                    infer(request)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.load_model("third"),
        lambda client: client.unload_model("third"),
        lambda client: client.get_system_shared_memory_status(),
        lambda client: client.get_cuda_shared_memory_status(),
        lambda client: client.register_system_shared_memory("a", "b", 1),
        lambda client: client.get_trace_settings(),
        lambda client: client.get_log_settings(),
        lambda client: client.infer("third", thirds(1), compression_algorithm="gzip"),
    ],
)
def test_what_is_not_offered_says_so(client: triton.InferenceServerClient, ask: Any):
    with pytest.raises(InferenceServerException, match=r"does not offer|not supported") as caught:
        ask(client)
    assert code_of(caught) == "UNIMPLEMENTED"
    assert client.is_server_live()


def test_timeouts_that_pass_are_errors_and_others_are_none():
    with serving(SLOW, grpc_port=0) as (server, _), triton.InferenceServerClient(address(server)) as client:
        inputs = [tensor("query", samples(SLOW, 1))]
        for timeout in ({"timeout": 1}, {"headers": {"grpc-timeout": "1n"}}, {"client_timeout": 1e-6}):
            with pytest.raises(InferenceServerException) as caught:
                client.infer("light", inputs, **timeout)
            assert code_of(caught) == "DEADLINE_EXCEEDED"
        right = client.infer("light", inputs, timeout=SECONDS * 1_000_000, client_timeout=SECONDS)
        assert right.as_numpy("answer").shape == (1, 8)


def test_many_calls_at_once_on_one_connection(server: wire.Server):
    answered: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with triton.InferenceServerClient(address(server)) as client:
        for i in range(400):
            client.async_infer(
                "third", thirds(3.0 * i), lambda result, error: answered.put((result, error)), request_id=str(i)
            )
        done = [answered.get(timeout=SECONDS) for _ in range(400)]
    assert [error for _, error in done if error is not None] == []
    found = {int(result.get_response().id): result.as_numpy("answer").tolist() for result, _ in done}
    assert found == {i: [float(i)] for i in range(400)}


def test_the_client_for_asyncio(server: wire.Server):
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for i in range(200):
            yield {"model_name": "third", "inputs": thirds(3.0 * i), "request_id": f"a{i}"}

    async def ask() -> tuple[list[Any], list[tuple[Any, Any]]]:
        async with triton_aio.InferenceServerClient(address(server)) as client:
            assert await client.is_server_live()
            assert await client.is_model_ready("third")
            assert (await client.get_model_metadata("third")).name == "third"
            assert (await client.get_model_config("third")).config.name == "third"
            assert len((await client.get_model_repository_index()).models) == 3
            assert len((await client.get_inference_statistics()).model_stats) == 3
            unary = await asyncio.gather(*(client.infer("third", thirds(3.0 * i)) for i in range(50)))
            return unary, [one async for one in client.stream_infer(requests())]

    unary, stream = asyncio.run(ask())
    assert [one.as_numpy("answer").tolist() for one in unary] == [[float(i)] for i in range(50)]
    assert [error for _, error in stream if error is not None] == []
    assert [result.get_response().id for result, _ in stream] == [f"a{i}" for i in range(200)]
    assert [result.as_numpy("answer").tolist() for result, _ in stream] == [[float(i)] for i in range(200)]


def test_a_stream_answers_in_order_and_outlives_errors(server: wire.Server):
    answered: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with triton.InferenceServerClient(address(server)) as client:
        client.start_stream(lambda result, error: answered.put((result, error)))
        for i in range(300):
            name = "none" if i % 50 == 49 else "third" if i % 2 else "light"
            inputs = thirds(3.0 * i) if name != "light" else [tensor("query", samples(LIGHT, 1, first=i))]
            client.async_stream_infer(name, inputs, request_id=str(i))
        done = [answered.get(timeout=SECONDS) for _ in range(300)]
        client.stop_stream()
    for i, (result, error) in enumerate(done):
        if i % 50 == 49:
            assert "no model 'none'" in str(error)
        else:
            assert error is None
            assert result.get_response().id == str(i)
            assert result.as_numpy("answer").shape == ((1,) if i % 2 else (1, 8))
            assert i % 2 == 0 or result.as_numpy("answer").tolist() == [float(i)]
