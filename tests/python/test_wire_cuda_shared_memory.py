"""Tensors in GPU memory that clients register: what servers without it say, and on a GPU the tensors themselves.

The tests of a GPU talk plain HTTP and make the memory with CuPy. Their server is another process, because a process
cannot open a handle of its own.
"""

import base64
import contextlib
import json
import signal
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing import shared_memory as memory
from typing import Any

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from wire_serving import SECONDS, ask, request, serving, third

from headrace import wire

HANDLE_BYTES = 64
BLOCK = 2 << 20  # bytes; CUDA shares memory in blocks of this size
WORDS = 256  # of a query of light
ANSWER = 8  # words of an answer of light
OPERATORS = """
import headrace


@headrace.operator(query=[("n", "i8"), ("x", "f4", (3,))], answer=[("y", "f8", (3,)), ("n", "i8"), ("large", "?")])
def halve(_group, query, answer):
    for i in range(3):
        answer.y[i] = query.x[i] / 2
    answer.n = -query.n
    answer.large = query.n > 100
"""

GPU = any(device.name.startswith("cuda") for device in headrace.Device.list())
needs_gpu = pytest.mark.skipif(not GPU or find_spec("cupy") is None, reason="needs a GPU and CuPy")


def body_of(handle: bytes = bytes(HANDLE_BYTES), size: int = 8, device: int = 0) -> bytes:
    described = {"raw_handle": {"b64": base64.b64encode(handle).decode()}, "device_id": device, "byte_size": size}
    return json.dumps(described).encode()


# Without a GPU


@pytest.mark.parametrize("system", [False, True])
def test_it_is_off_unless_it_is_asked_for(system: bool):
    with serving(third(), shared_memory=system) as (server, _):
        extensions = json.loads(ask(server, request("/v2"))[0].body)["extensions"]
        assert ("system_shared_memory" in extensions) == system
        assert "cuda_shared_memory" not in extensions
        for content in (
            request("/v2/cudasharedmemory/status"),
            request("/v2/cudasharedmemory/region/a/status"),
            request("/v2/cudasharedmemory/region/a/register", body_of()),
            request("/v2/cudasharedmemory/region/a/unregister", b"{}"),
            request("/v2/cudasharedmemory/unregister", b"{}"),
        ):
            (reply,) = ask(server, content)
            assert reply.status == 501
            assert "does not offer" in reply.body.decode()
            assert "--cuda-shared-memory" in reply.body.decode()


def test_over_grpc_it_is_off_as_well():
    if not _core.built_with_grpc:
        pytest.skip("built without the libraries of gRPC")
    triton = pytest.importorskip("tritonclient.grpc")
    with (
        serving(third(), grpc_port=0, shared_memory=True) as (server, _),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        assert "cuda_shared_memory" not in client.get_server_metadata().extensions
        for call in (
            client.get_cuda_shared_memory_status,
            lambda: client.register_cuda_shared_memory("a", base64.b64encode(bytes(HANDLE_BYTES)), 0, 8),
            client.unregister_cuda_shared_memory,
            lambda: client.unregister_cuda_shared_memory("a"),
        ):
            with pytest.raises(Exception, match="--cuda-shared-memory") as caught:
                call()
            assert "UNIMPLEMENTED" in str(caught.value.status())  # type: ignore[attr-defined]
        assert not client.get_system_shared_memory_status().regions


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_a_server_of_a_program_needs_a_gpu():
    with (
        headrace.Engine("cpu", third()) as engine,
        pytest.raises(
            headrace.UsageError, match="CUDA shared memory needs a CUDA device, and there is none: "
        ) as caught,
    ):
        wire.Server([wire.model(engine)], http_port=0, cuda_shared_memory=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("more", [(), ("--shared-memory",), ("--shared-memory-max", "1GiB")])
def test_the_command_without_a_gpu_ends_with_one_line(run: Run, more: tuple[str, ...]):
    options = ("--device", "cpu", "--http", "0", "--grpc", "none", "--cuda-shared-memory")
    done = run("serve", "light", *options, *more, HEADRACE_DEVICES="cpu")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "CUDA shared memory needs a CUDA device, and there is none" in done.stderr
    assert done.stdout == ""


# On a GPU


def call(url: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    """The status of a reply and its JSON; a request with a body is a POST."""
    content = urllib.request.Request(f"{url}/v2{path}", body)
    try:
        with urllib.request.urlopen(content, timeout=SECONDS) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or "null")


def register(url: str, name: str, handle: bytes, size: int, device: int = 0) -> tuple[int, Any]:
    return call(url, f"/cudasharedmemory/region/{name}/register", body_of(handle, size, device))


def unregister(url: str, name: str = "") -> int:
    return call(url, f"/cudasharedmemory{f'/region/{name}' if name else ''}/unregister", b"")[0]


def status(url: str, name: str = "") -> dict[str, tuple[int, int]]:
    """Regions by name: device and size."""
    code, listed = call(url, f"/cudasharedmemory{f'/region/{name}' if name else ''}/status")
    assert code == 200
    return {one["name"]: (one["device_id"], one["byte_size"]) for one in listed}


def place(region: str, size: int, offset: int = 0) -> dict[str, Any]:
    """The parameters of a tensor that is in a region."""
    where = {"shared_memory_region": region, "shared_memory_byte_size": size}
    return {"parameters": where | ({"shared_memory_offset": offset} if offset else {})}


def infer(url: str, model: str, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> tuple[int, Any]:
    return call(url, f"/models/{model}/infer", json.dumps({"inputs": inputs, "outputs": outputs}).encode())


def light_input(count: int, where: dict[str, Any]) -> dict[str, Any]:
    return {"name": "query", "datatype": "UINT32", "shape": [count, WORDS]} | where


def light_output(where: dict[str, Any]) -> dict[str, Any]:
    return {"name": "answer"} | where


def queries_of(count: int) -> "np.ndarray[Any, Any]":
    return np.random.default_rng(count).integers(0, 1 << 32, (count, WORDS), np.uint32)


def answers_to(url: str, queries: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The answers of light to queries that are in the requests."""
    found = []
    for part in np.array_split(queries, max(1, len(queries) // 200)):
        code, said = infer(url, "light", [light_input(len(part), {"data": part.ravel().tolist()})], [])
        assert code == 200, said
        found.append(np.array(said["outputs"][0]["data"], np.uint64).reshape(-1, ANSWER))
    return np.concatenate(found)


class OfClient:
    """GPU memory of this process, from cudaMalloc, so that its handle stands for its first byte."""

    def __init__(self, size: int = BLOCK) -> None:
        self.cupy = pytest.importorskip("cupy")
        self._memory = self.cupy.cuda.Memory(size)
        self.size = size
        self.handle = bytes(self.cupy.cuda.runtime.ipcGetMemHandle(self._memory.ptr))
        self.put(np.full(size, 255, np.uint8))

    def _view(self, kind: Any, count: int, offset: int) -> Any:
        return self.cupy.ndarray((count,), kind, self.cupy.cuda.MemoryPointer(self._memory, offset))

    def put(self, array: "np.ndarray[Any, Any]", offset: int = 0) -> None:
        """Copies an array there, and waits for that."""
        self._view(array.dtype, array.size, offset).set(array.ravel())
        self.cupy.cuda.Device().synchronize()

    def get(self, kind: Any, count: int, offset: int = 0) -> "np.ndarray[Any, Any]":
        """What is there."""
        return np.array(self.cupy.asnumpy(self._view(kind, count, offset)))


@contextlib.contextmanager
def on_gpu(*arguments: object) -> Iterator[dict[str, Any]]:
    """What a server on the GPU says of itself; it has to live to the end."""
    grpc = "0" if _core.built_with_grpc else "none"
    options = ("--device", "cuda:0", "--cuda-shared-memory", "--http", "0", "--grpc", grpc, "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "serve", *map(str, arguments), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield json.loads(line)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert json.loads(out)["drained"]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server with light and, where Numba can compile it for the GPU, halve."""
    words: list[object] = ["light"]
    if find_spec("numba_cuda") is not None:
        file = tmp_path_factory.mktemp("operators") / "halving.py"
        file.write_text(OPERATORS)
        words.append(file)
    with on_gpu(*words, "--queries", 4096, "--shared-memory") as said:
        yield said


@pytest.fixture
def url(served: dict[str, Any]) -> Iterator[str]:
    yield served["url"]
    unregister(served["url"])
    call(served["url"], "/systemsharedmemory/unregister", b"")


@pytest.fixture
def halve(served: dict[str, Any]) -> str:
    if "halve" not in [one["name"] for one in served["models"]]:
        pytest.skip("no Numba for CUDA")
    return "halve"


@needs_gpu
def test_the_extension_is_told(url: str):
    assert {"system_shared_memory", "cuda_shared_memory"} <= set(call(url, "")[1]["extensions"])


@needs_gpu
@pytest.mark.parametrize("count", [1, 5, 1000, 3000])
def test_tensors_come_from_gpu_memory_and_go_there(url: str, count: int):
    queries = queries_of(count)
    size = count * ANSWER * 8
    given, taken = OfClient(queries.nbytes + BLOCK), OfClient()
    given.put(queries, 64)
    assert register(url, "in", given.handle, given.size)[0] == 200
    assert register(url, "out", taken.handle, taken.size)[0] == 200
    code, said = infer(
        url,
        "light",
        [light_input(count, place("in", queries.nbytes, 64))],
        [light_output(place("out", size + 8, 16))],
    )
    assert code == 200, said
    assert said["outputs"] == [
        {"name": "answer", "datatype": "UINT64", "shape": [count, ANSWER]} | place("out", size, 16)
    ]
    found = taken.get(np.uint64, count * ANSWER + 4)
    np.testing.assert_array_equal(found[2:-2].reshape(count, ANSWER), answers_to(url, queries))
    assert set(found[:2].tolist() + found[-2:].tolist()) == {2**64 - 1}  # nothing outside of the range


@needs_gpu
@pytest.mark.parametrize("count", [1, 7, 4000])
def test_rows_that_are_apart_in_the_server_lie_side_by_side(url: str, halve: str, count: int):
    x = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
    n = np.arange(count, dtype=np.int64) * 2
    given, taken = OfClient(), OfClient()
    given.put(x)
    given.put(n, 1 << 20)
    assert register(url, "in", given.handle, given.size)[0] == 200
    assert register(url, "out", taken.handle, taken.size)[0] == 200
    inputs = [
        {"name": "n", "datatype": "INT64", "shape": [count]} | place("in", n.nbytes, 1 << 20),
        {"name": "x", "datatype": "FP32", "shape": [count, 3]} | place("in", x.nbytes),
    ]
    outputs = [
        {"name": "y"} | place("out", 24 * count, 8),
        {"name": "large"} | place("out", count, 1 << 20),
        {"name": "n"} | place("out", 8 * count, 3 << 19),
    ]
    code, said = infer(url, halve, inputs, outputs)
    assert code == 200, said
    np.testing.assert_array_equal(taken.get(np.float64, 3 * count, 8).reshape(count, 3), x / 2)
    np.testing.assert_array_equal(taken.get(np.bool_, count, 1 << 20), n > 100)
    np.testing.assert_array_equal(taken.get(np.int64, count, 3 << 19), -n)
    assert taken.get(np.uint8, 8).tolist() == [255] * 8
    assert taken.get(np.uint8, 1, 8 + 24 * count)[0] == 255


@needs_gpu
def test_a_request_may_use_regions_of_both_kinds_and_its_own_data(url: str, halve: str):
    count = 100
    x = np.arange(3 * count, dtype=np.float32)
    n = np.arange(count, dtype=np.int64) * 2
    given = OfClient()
    given.put(x)
    taken = memory.SharedMemory(create=True, size=8 * count)
    try:
        assert register(url, "gpu", given.handle, given.size)[0] == 200
        key = json.dumps({"key": taken.name, "byte_size": 8 * count}).encode()
        assert call(url, "/systemsharedmemory/region/gpu/register", key)[0] == 409  # one set of names
        assert call(url, "/systemsharedmemory/region/host/register", key)[0] == 200
        assert register(url, "host", given.handle, 8)[0] == 409
        assert list(status(url)) == ["gpu"]
        code, said = infer(
            url,
            halve,
            [
                {"name": "x", "datatype": "FP32", "shape": [count, 3]} | place("gpu", x.nbytes),
                {"name": "n", "datatype": "INT64", "shape": [count], "data": n.tolist()},
            ],
            [
                {"name": "n"} | place("host", 8 * count),
                {"name": "y"} | place("gpu", 24 * count, 4096),
                {"name": "large"},
            ],
        )
        assert code == 200, said
        np.testing.assert_array_equal(np.frombuffer(bytes(taken.buf[: 8 * count]), np.int64), -n)
        np.testing.assert_array_equal(given.get(np.float64, 3 * count, 4096), x / 2)
        assert said["outputs"][2]["data"] == (n > 100).tolist()
    finally:
        taken.close()
        taken.unlink()


@needs_gpu
def test_regions_are_listed_and_go_one_by_one_or_all_together(url: str):
    given = OfClient()
    for name, size in (("b", 64), ("a", given.size)):
        assert register(url, name, given.handle, size)[0] == 200
    assert status(url) == {"a": (0, given.size), "b": (0, 64)}
    assert status(url, "b") == {"b": (0, 64)}
    code, said = register(url, "b", given.handle, 64)
    assert (code, "already registered" in said["error"]) == (409, True)
    assert unregister(url, "b") == 200
    assert unregister(url, "b") == 200  # as in Triton
    assert call(url, "/cudasharedmemory/region/b/status")[0] == 404
    assert infer(url, "light", [light_input(1, place("b", 4 * WORDS))], [])[0] == 404
    assert unregister(url) == 200
    assert status(url) == {}


@needs_gpu
def test_a_handle_may_be_registered_twice(url: str):
    queries = queries_of(3)
    expected = answers_to(url, queries)
    given = OfClient()
    given.put(queries)
    for name in ("first", "second"):
        assert register(url, name, given.handle, given.size)[0] == 200
    for region in ("first", "second"):  # "second" remains mapped after "first" has gone
        given.put(np.full(3 * ANSWER, 7, np.uint64), 1 << 20)
        code, said = infer(
            url,
            "light",
            [light_input(3, place(region, queries.nbytes))],
            [light_output(place("second", expected.nbytes, 1 << 20))],
        )
        assert code == 200, said
        np.testing.assert_array_equal(given.get(np.uint64, 3 * ANSWER, 1 << 20).reshape(3, ANSWER), expected)
        unregister(url, "first")


@needs_gpu
def test_what_cannot_be_mapped_is_refused_and_the_server_goes_on(url: str):
    queries = queries_of(2)
    expected = answers_to(url, queries)
    given = OfClient()
    for handle, size, device, says in (
        (bytes(HANDLE_BYTES), 64, 0, "another process shares"),
        (bytes(range(HANDLE_BYTES)), 64, 0, "another process shares"),
        (given.handle[:-1], 64, 0, "has 64 bytes, but this one has 63"),
        (given.handle, 0, 0, "at least 1 byte"),
        (given.handle, 1 << 30, 0, "the memory of its handle has"),
        (given.handle, 64, 99, "no CUDA device 99"),
        (given.handle, 64, -1, "no CUDA device -1"),
    ):
        code, said = register(url, "a", handle, size, device)
        assert (code, says in said["error"]) == (400, True), said
        assert "\n" not in said["error"]
    assert register(url, "a", given.handle, 1 << 40)[0] in {400, 429}  # also beyond the limit of all regions
    assert status(url) == {}
    np.testing.assert_array_equal(answers_to(url, queries), expected)
    assert register(url, "a", given.handle, given.size)[0] == 200


@needs_gpu
def test_ranges_outside_of_a_region_are_refused(url: str):
    given = OfClient()
    assert register(url, "a", given.handle, 4096)[0] == 200  # a part of the memory
    plain = [light_input(1, {"data": [1] * WORDS})]
    for size, offset in ((4 * WORDS, 4096 - 4), (4 * WORDS, 1 << 62), (1 << 63, 4096), (4096 + 4, 0)):
        code, said = infer(url, "light", [light_input(1, place("a", size, offset))], [])
        assert (code, "which has 4096" in said["error"]) == (400, True), said
        code, said = infer(url, "light", plain, [light_output(place("a", size, offset))])
        assert (code, "which has 4096" in said["error"]) == (400, True), said
    assert infer(url, "light", [light_input(1, place("a", 4 * WORDS - 4))], [])[0] == 400
    assert infer(url, "light", plain, [light_output(place("a", 8 * ANSWER - 1))])[0] == 400
    assert set(given.get(np.uint8, given.size).tolist()) == {255}


@needs_gpu
def test_a_client_that_dies_harms_no_other(url: str):
    queries = queries_of(4)
    expected = answers_to(url, queries)
    code = f"""
        import base64, json, sys, time, urllib.request
        import cupy

        memory = cupy.cuda.Memory({BLOCK})
        handle = bytes(cupy.cuda.runtime.ipcGetMemHandle(memory.ptr))
        described = {{"raw_handle": {{"b64": base64.b64encode(handle).decode()}}, "device_id": 0, "byte_size": {BLOCK}}}
        body = json.dumps(described).encode()
        urllib.request.urlopen({url!r} + "/v2/cudasharedmemory/region/dead/register", body, timeout={SECONDS}).read()
        print("ready", flush=True)
        time.sleep({SECONDS})
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
        finally:
            client.kill()
    assert status(url) == {"dead": (0, BLOCK)}
    given = OfClient()
    given.put(queries)
    assert register(url, "alive", given.handle, given.size)[0] == 200
    for _ in range(3):
        outputs = [light_output(place("dead", expected.nbytes))]
        used, said = infer(url, "light", [light_input(4, place("alive", queries.nbytes))], outputs)
        assert used in {200, 503}, said  # the memory remains while the server has it mapped
        np.testing.assert_array_equal(answers_to(url, queries), expected)
    assert unregister(url, "dead") == 200
    assert list(status(url)) == ["alive"]
    np.testing.assert_array_equal(answers_to(url, queries), expected)


@needs_gpu
def test_while_a_resident_kernel_runs_nothing_is_mapped():
    given = OfClient()
    with on_gpu("light", "--plan", "dispatched") as said:
        code, refused = register(said["url"], "a", given.handle, given.size)
        assert (code, "resident kernel" in refused["error"]) == (503, True), refused
        assert status(said["url"]) == {}
        assert answers_to(said["url"], queries_of(2)).shape == (2, ANSWER)


@needs_gpu
def test_over_grpc_it_is_the_same(url: str, served: dict[str, Any]):
    if served["grpc"] is None:
        pytest.skip("built without the libraries of gRPC")
    triton = pytest.importorskip("tritonclient.grpc")
    queries = queries_of(2)
    expected = answers_to(url, queries)
    given = OfClient()
    given.put(queries)
    with triton.InferenceServerClient(served["grpc"]) as client:
        assert "cuda_shared_memory" in client.get_server_metadata().extensions
        client.register_cuda_shared_memory("a", base64.b64encode(given.handle), 0, given.size)
        found = client.get_cuda_shared_memory_status().regions
        assert {name: (one.device_id, one.byte_size) for name, one in found.items()} == status(url)
        query = triton.InferInput("query", list(queries.shape), "UINT32")
        query.set_shared_memory("a", queries.nbytes)
        answer = triton.InferRequestedOutput("answer")
        answer.set_shared_memory("a", expected.nbytes, 1 << 20)
        client.infer("light", [query], outputs=[answer])
        np.testing.assert_array_equal(given.get(np.uint64, 2 * ANSWER, 1 << 20).reshape(2, ANSWER), expected)
        with pytest.raises(Exception, match="another process shares"):
            client.register_cuda_shared_memory("b", base64.b64encode(bytes(HANDLE_BYTES)), 0, 8)
        client.unregister_cuda_shared_memory("a")
    assert status(url) == {}
