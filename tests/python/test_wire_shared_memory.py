"""Tensors in shared memory that clients register, with tritonclient over HTTP and gRPC, unmodified."""

import asyncio
import base64
import fcntl
import json
import os
import queue
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import shared_memory as memory
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as http_aio
import tritonclient.utils.shared_memory as shm
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException
from wire_serving import SECONDS, ask, halve, request, serving, third

from headrace import wire

ROW = np.dtype("f8").itemsize
SLOW = headrace.light(query_bytes=4, threads=1024, steps=1 << 20)  # hundreds of milliseconds in a thread
BOTH = [triton_http, triton_grpc]


@headrace.operator(query=[("f", "?"), ("n", "i4")], answer=[("n", "i8")])
def add_flag(_group, query, answer):
    """One more than n if the flag is set."""
    answer.n = query.n + query.f


@pytest.fixture(scope="module")
def server() -> Iterator[wire.Server]:
    with serving(third(), halve(), add_flag(), grpc_port=0, shared_memory=True) as (made, _):
        yield made


def client_of(server: wire.Server, of: ModuleType) -> Any:
    port = server.http_port if of.__name__.startswith("tritonclient.http") else server.grpc_port
    return of.InferenceServerClient(f"127.0.0.1:{port}")


@pytest.fixture(params=BOTH, ids=["http", "grpc"])
def of(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def client(server: wire.Server, of: ModuleType) -> Iterator[Any]:
    with client_of(server, of) as made:
        yield made
        made.unregister_system_shared_memory()


@contextmanager
def region(size: int, name: str = "") -> Iterator[Any]:
    """A shared-memory object: tritonclient's handle, with a key that begins with a slash as in its examples."""
    key = f"/headrace-test-{uuid.uuid4().hex}"
    handle = shm.create_shared_memory_region(name or key[1:], key, size)
    try:
        yield handle
    finally:
        shm.destroy_shared_memory_region(handle)


def key_of(handle: Any) -> str:
    return str(handle._shm_key)


def path_of(handle: Any) -> Path:
    return Path("/dev/shm") / key_of(handle)[1:]


def shared_input(of: ModuleType, name: str, kind: str, shape: list[int], *where: Any) -> Any:
    made = of.InferInput(name, shape, kind)
    made.set_shared_memory(*where)
    return made


def shared_output(of: ModuleType, name: str, *where: Any) -> Any:
    made = of.InferRequestedOutput(name)
    made.set_shared_memory(*where)
    return made


def plain_input(of: ModuleType, name: str, data: "np.ndarray[Any, Any]", kind: str) -> Any:
    made = of.InferInput(name, list(data.shape), kind)
    made.set_data_from_numpy(data)
    return made


def status(client: Any, name: str = "") -> dict[str, tuple[str, int, int]]:
    """Regions by name: key, offset and size."""
    found = client.get_system_shared_memory_status(name)
    listed = found if isinstance(found, list) else list(found.regions.values())
    as_dicts = [
        one if isinstance(one, dict) else {key: getattr(one, key) for key in ("name", "key", "offset", "byte_size")}
        for one in listed
    ]
    if not isinstance(found, list):
        assert list(found.regions) == [one["name"] for one in as_dicts]
    return {one["name"]: (one["key"], one["offset"], one["byte_size"]) for one in as_dicts}


def descriptors_of(name: str) -> int:
    """Number of this process's descriptors of a shared-memory object."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder's own descriptor
            found += name in str(one.readlink())
    return found


def code_of(caught: pytest.ExceptionInfo[InferenceServerException]) -> str:
    """gRPC's name of the code, for either protocol."""
    code = str(caught.value.status()).removeprefix("StatusCode.")
    return {"400": "INVALID_ARGUMENT", "404": "NOT_FOUND", "409": "ALREADY_EXISTS", "429": "RESOURCE_EXHAUSTED"}.get(
        code, code
    )


@contextmanager
def refused(code: str, match: str) -> Iterator[None]:
    with pytest.raises(InferenceServerException, match=match) as caught:
        yield
    assert code_of(caught) == code


@pytest.mark.parametrize("count", [1, 5, 1000])
def test_tensors_come_from_shared_memory_and_go_there(client: Any, of: ModuleType, count: int):
    size = count * ROW
    queries = np.arange(count) * 3.0
    with region(size) as given, region(2 * size + 8) as taken:
        shm.set_shared_memory_region(given, [queries])
        before = np.full(2 * count + 1, -1.0)
        shm.set_shared_memory_region(taken, [before])
        client.register_system_shared_memory("in put", key_of(given), size)
        client.register_system_shared_memory("out", key_of(taken), 2 * size + 8)
        result = client.infer(
            "third",
            [shared_input(of, "query", "FP64", [count], "in put", size)],
            request_id="seven",
            outputs=[shared_output(of, "answer", "out", size + 8, 8)],
        )
        found = shm.get_contents_as_numpy(taken, np.float64, [2 * count + 1]).copy()
        np.testing.assert_array_equal(found[1 : count + 1], np.arange(count) * 1.0)
        assert (found[0], *found[count + 1 :]) == tuple([-1.0] * (count + 1))  # nothing outside of the range
        output = result.get_output("answer")
        if of is triton_http:
            assert result.get_response()["id"] == "seven"
            assert output == {
                "name": "answer",
                "datatype": "FP64",
                "shape": [count],
                "parameters": {
                    "shared_memory_region": "out",
                    "shared_memory_offset": 8,
                    "shared_memory_byte_size": size,
                },
            }
        else:
            assert (output.datatype, list(output.shape)) == ("FP64", [count])
            said = output.parameters
            assert said["shared_memory_region"].string_param == "out"
            assert said["shared_memory_offset"].int64_param == 8
            assert said["shared_memory_byte_size"].int64_param == size
            assert result.get_response().id == "seven"


def test_some_tensors_may_be_shared_and_others_not(of: ModuleType):
    """Rows that lie among those of other tensors, more than one system call takes."""
    count = 2500
    x = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
    n = np.arange(count) * 2
    with (
        headrace.Engine("cpu", halve()) as engine,
        wire.Server([wire.model(engine, batch_max=count)], http_port=0, grpc_port=0, shared_memory=True) as server,
        client_of(server, of) as client,
        region(x.nbytes) as given,
        region(8 * count) as taken,
    ):
        shm.set_shared_memory_region(given, [x])
        client.register_system_shared_memory("x", key_of(given), x.nbytes)
        client.register_system_shared_memory("n", key_of(taken), 8 * count)
        outputs = [
            of.InferRequestedOutput("y"),
            shared_output(of, "n", "n", 8 * count),
            of.InferRequestedOutput("large"),
        ]
        for swapped in (False, True):
            inputs = [shared_input(of, "x", "FP32", [count, 3], "x", x.nbytes), plain_input(of, "n", n, "INT64")]
            result = client.infer("halve", inputs[::-1] if swapped else inputs, outputs=outputs)
            np.testing.assert_array_equal(result.as_numpy("y"), x / 2)
            np.testing.assert_array_equal(result.as_numpy("large"), n > 100)
            np.testing.assert_array_equal(shm.get_contents_as_numpy(taken, np.int64, [count]), -n)


def test_a_region_may_be_part_of_an_object_and_be_input_and_output(client: Any, of: ModuleType):
    with region(100 * ROW) as handle:
        shm.set_shared_memory_region(handle, [np.arange(100) * 3.0])
        client.register_system_shared_memory("part", key_of(handle), 50 * ROW, offset=10 * ROW)
        client.infer(
            "third",
            [shared_input(of, "query", "FP64", [4], "part", 4 * ROW, 2 * ROW)],
            outputs=[shared_output(of, "answer", "part", 4 * ROW, 2 * ROW)],
        )
        expected = np.arange(100) * 3.0
        expected[12:16] /= 3
        np.testing.assert_array_equal(shm.get_contents_as_numpy(handle, np.float64, [100]), expected)


def test_regions_are_listed_and_go_one_by_one_or_all_together(client: Any, server: wire.Server, of: ModuleType):
    other = client_of(server, triton_grpc if of is triton_http else triton_http)
    with region(64) as handle, other:
        key = key_of(handle)
        for name, offset, size in (("b", 8, 16), ("a", 0, 64), ("c", 63, 1)):
            client.register_system_shared_memory(name, key, size, offset=offset)
        everything = {"a": (key, 0, 64), "b": (key, 8, 16), "c": (key, 63, 1)}
        assert status(client) == status(other) == everything
        assert status(client, "b") == {"b": everything["b"]}
        client.unregister_system_shared_memory("b")
        client.unregister_system_shared_memory("none such")  # as in Triton
        with refused("NOT_FOUND", '"b"'):
            status(client, "b")
        assert status(other) == {name: everything[name] for name in ("a", "c")}
        client.register_system_shared_memory("b", key[1:], 2)  # without a slash
        assert status(client, "b") == {"b": (key[1:], 0, 2)}
        client.unregister_system_shared_memory()
        assert status(client) == status(other) == {}


def test_aio_clients_do_the_same(server: wire.Server):
    async def run(of: ModuleType) -> list[float]:
        async with client_of(server, of) as client:
            with region(16) as handle:
                shm.set_shared_memory_region(handle, [np.array([9.0, 6.0])])
                await client.register_system_shared_memory("aio", key_of(handle), 16)
                assert await client.get_system_shared_memory_status("aio")
                inputs = [shared_input(of, "query", "FP64", [2], "aio", 16)]
                await client.infer("third", inputs, outputs=[shared_output(of, "answer", "aio", 16)])
                await client.unregister_system_shared_memory("aio")
                return list(shm.get_contents_as_numpy(handle, np.float64, [2]))

    assert asyncio.run(run(http_aio)) == asyncio.run(run(grpc_aio)) == [3.0, 2.0]


def test_a_stream_of_grpc_takes_regions_and_outlives_their_errors(server: wire.Server):
    results: list[Any] = []
    came = threading.Semaphore(0)

    def note(result: Any, error: Any) -> None:
        results.append(error if result is None else result)
        came.release()

    with region(16) as handle, client_of(server, triton_grpc) as client:
        shm.set_shared_memory_region(handle, [np.array([9.0, 6.0])])
        client.register_system_shared_memory("stream", key_of(handle), 16)
        client.start_stream(note)
        for name in ("stream", "none"):
            inputs = [shared_input(triton_grpc, "query", "FP64", [2], name, 16)]
            outputs = [shared_output(triton_grpc, "answer", "stream", 16)]
            client.async_stream_infer("third", inputs, request_id=name, outputs=outputs)
            assert came.acquire(timeout=SECONDS)
        client.stop_stream()
        assert list(shm.get_contents_as_numpy(handle, np.float64, [2])) == [3.0, 2.0]
        client.unregister_system_shared_memory()
    assert results[0].get_response().id == "stream"
    assert "no region" in str(results[1])


def test_the_extension_is_told_only_where_it_is_on(server: wire.Server, of: ModuleType):
    def told(of_server: wire.Server) -> list[str]:
        with client_of(of_server, of) as client:
            said = client.get_server_metadata()
            return list(said["extensions"] if isinstance(said, dict) else said.extensions)

    assert "system_shared_memory" in told(server)
    assert "cuda_shared_memory" not in told(server)
    with serving(third(), grpc_port=0) as (off, _):
        assert "system_shared_memory" not in told(off)
        with client_of(off, of) as client, region(8) as handle:
            for call in (
                lambda: client.register_system_shared_memory("a", key_of(handle), 8),
                client.unregister_system_shared_memory,
                client.get_system_shared_memory_status,
            ):
                with pytest.raises(InferenceServerException, match="does not offer") as caught:
                    call()
                assert str(caught.value.status()) in {"501", "StatusCode.UNIMPLEMENTED"}
            with refused("INVALID_ARGUMENT", "does not offer"):
                client.infer("third", [shared_input(of, "query", "FP64", [1], "a", 8)])
            with refused("INVALID_ARGUMENT", "does not offer"):
                inputs = [plain_input(of, "query", np.ones(1), "FP64")]
                client.infer("third", inputs, outputs=[shared_output(of, "answer", "a", 8)])


def test_cuda_memory_says_that_it_is_not_offered(client: Any):
    with pytest.raises(InferenceServerException, match="does not offer") as caught:
        client.register_cuda_shared_memory("a", base64.b64encode(b"handle"), 0, 8)
    assert str(caught.value.status()) in {"501", "StatusCode.UNIMPLEMENTED"}


@pytest.mark.parametrize(
    "key",
    ["", "/", ".", "..", "/..", "../etc/passwd", "a/b", "//dev/shm/a", "/dev/shm/a", "a\0b", "x" * 255, "x" * 70_000],
)
def test_keys_lead_nowhere_but_to_shared_memory(client: Any, key: str):
    with refused("INVALID_ARGUMENT", "a shared memory key must have"):
        client.register_system_shared_memory("a", key, 1)
    assert status(client) == {}


def test_what_is_no_shared_memory_is_not_opened(client: Any, tmp_path: Path):
    name = f"headrace-test-{uuid.uuid4().hex}"
    at = Path("/dev/shm") / name
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret, secret")
    with refused("NOT_FOUND", "there is no shared memory"):
        client.register_system_shared_memory("a", name, 1)
    for make, remove in (
        (lambda: at.symlink_to(secret), at.unlink),
        (lambda: os.mkfifo(at), at.unlink),
        (at.mkdir, at.rmdir),
    ):
        make()
        try:
            with refused("INVALID_ARGUMENT", name):
                client.register_system_shared_memory("a", name, 1)
        finally:
            remove()
    with socket.socket(socket.AF_UNIX) as peer:
        peer.bind(str(at))
        try:
            with refused("INVALID_ARGUMENT", name):
                client.register_system_shared_memory("a", name, 1)
        finally:
            at.unlink()
    assert status(client) == {}


def test_a_lease_of_an_object_holds_nobody_up(client: Any):
    """Opening a file with a lease waits for up to 45 s, unless it is opened without blocking."""
    at = Path("/dev/shm") / f"headrace-test-{uuid.uuid4().hex}"
    at.write_bytes(bytes(64))
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        with at.open("r+b") as file:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError as error:
                pytest.skip(f"no leases here: {error}")
            began = time.monotonic()
            with refused("INVALID_ARGUMENT", "unavailable"):
                client.register_system_shared_memory("a", at.name, 64)
            assert time.monotonic() - began < 30
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            client.register_system_shared_memory("a", at.name, 64)
    finally:
        signal.signal(signal.SIGIO, before)
        at.unlink()


@pytest.mark.parametrize(
    ("size", "offset"),
    [(0, 0), (65, 0), (64, 1), (1, 64), (1, 1 << 40), (1 << 63, 0), (2**64 - 8, 16), (8, 2**64 - 4)],
)
def test_sizes_beyond_the_object_are_refused(client: Any, size: int, offset: int):
    with region(64) as handle:
        with refused("INVALID_ARGUMENT", "has 64" if size else "at least 1 byte"):
            client.register_system_shared_memory("a", key_of(handle), size, offset=offset)
        assert status(client) == {}


def test_names_are_taken_once_and_can_be_printed(client: Any, of: ModuleType):
    with region(64) as handle, region(8) as other:
        client.register_system_shared_memory("a", key_of(handle), 64)
        with refused("ALREADY_EXISTS", "already registered"):
            client.register_system_shared_memory("a", key_of(other), 8)
        assert status(client)["a"] == (key_of(handle), 0, 64)
        for name in ("é", "a\nb", "x" * 257):
            with refused("INVALID_ARGUMENT", "name of a region"):
                client.register_system_shared_memory(name, key_of(other), 8)
        if of is triton_grpc:  # HTTP's path has no place for it
            with refused("INVALID_ARGUMENT", "name of a region"):
                client.register_system_shared_memory("", key_of(other), 8)
        client.register_system_shared_memory("x" * 256, key_of(other), 8)


def test_ranges_outside_of_a_region_are_refused(client: Any, of: ModuleType):
    with region(128) as handle:
        shm.set_shared_memory_region(handle, [np.arange(16) * 3.0])
        client.register_system_shared_memory("a", key_of(handle), 64)
        right = [shared_input(of, "query", "FP64", [2], "a", 16)]
        outside = [(72, 0), (16, 56), (16, 64), (16, 1 << 62), (16, 2**63 - 1)]
        if of is triton_http:  # unsigned 64-bit numbers
            outside += [(16, 2**64 - 8), (2**64 - 8, 16)]
        for size, offset in outside:
            with refused("INVALID_ARGUMENT", "which has 64"):
                client.infer("third", [shared_input(of, "query", "FP64", [2], "a", size, offset)])
            with refused("INVALID_ARGUMENT", "which has 64"):
                client.infer("third", right, outputs=[shared_output(of, "answer", "a", size, offset)])
        with refused("INVALID_ARGUMENT", "has 24 bytes, but its shape takes 16"):
            client.infer("third", [shared_input(of, "query", "FP64", [2], "a", 24)])
        with refused("INVALID_ARGUMENT", "has 8 bytes of shared memory, but needs 16"):
            client.infer("third", right, outputs=[shared_output(of, "answer", "a", 8)])
        with refused("NOT_FOUND", "no region"):
            client.infer("third", [shared_input(of, "query", "FP64", [2], "b", 16)])
        with refused("NOT_FOUND", "no region"):
            client.infer("third", right, outputs=[shared_output(of, "answer", "b", 16)])
        np.testing.assert_array_equal(shm.get_contents_as_numpy(handle, np.float64, [16]), np.arange(16) * 3.0)


def test_flags_in_shared_memory_are_0_or_1(client: Any, of: ModuleType):
    with region(3) as handle:
        shm.set_shared_memory_region(handle, [np.array([1, 0, 1], np.uint8)])
        client.register_system_shared_memory("a", key_of(handle), 3)
        inputs = [
            shared_input(of, "f", "BOOL", [3], "a", 3),
            plain_input(of, "n", np.array([10, 20, 30], np.int32), "INT32"),
        ]
        assert list(client.infer("add_flag", inputs).as_numpy("n")) == [11, 20, 31]
        handle._mpsm_handle.buf[1] = 2
        with refused("INVALID_ARGUMENT", "neither 0 nor 1"):
            client.infer("add_flag", inputs)


def test_memory_that_is_cut_short_is_an_error_and_stays_short(client: Any, of: ModuleType):
    size = 1 << 20
    count = 512
    with region(size) as handle:
        client.register_system_shared_memory("a", key_of(handle), size)
        inputs = [shared_input(of, "query", "FP64", [count], "a", count * ROW)]
        os.truncate(path_of(handle), 100)
        with refused("INVALID_ARGUMENT", "cut short"):
            client.infer("third", inputs)
        values = [plain_input(of, "query", np.ones(count), "FP64")]
        for offset in (0, size // 2):
            with refused("INVALID_ARGUMENT", "cut short"):
                client.infer("third", values, outputs=[shared_output(of, "answer", "a", count * ROW, offset)])
        assert path_of(handle).stat().st_size == 100
        os.truncate(path_of(handle), size)
        client.infer("third", inputs, outputs=[shared_output(of, "answer", "a", count * ROW)])


def test_memory_that_shrinks_and_grows_meanwhile_ends_nothing(client: Any, of: ModuleType):
    size = 1 << 16
    count = 1024
    over = threading.Event()
    with region(size) as handle:
        client.register_system_shared_memory("a", key_of(handle), size)
        path = path_of(handle)

        def shake() -> None:
            while not over.is_set():
                os.truncate(path, 0)
                os.truncate(path, size)

        shaking = threading.Thread(target=shake)
        shaking.start()
        try:
            failed = 0
            for _ in range(300):
                try:
                    client.infer(
                        "third",
                        [shared_input(of, "query", "FP64", [count], "a", count * ROW)],
                        outputs=[shared_output(of, "answer", "a", count * ROW, size // 2)],
                    )
                except InferenceServerException as error:
                    assert "cut short" in str(error)  # noqa: PT017 (an answer is as right)
                    failed += 1
        finally:
            over.set()
            shaking.join()
        assert path.stat().st_size == size
        assert client.is_server_live()


def test_a_region_lives_as_long_as_requests_that_use_it():
    """The region is unregistered, and its object unlinked, while the engine has the queries."""
    results: queue.Queue[Any] = queue.Queue()
    queries = np.arange(2, dtype=np.uint32).reshape(2, 1)
    with serving(SLOW, grpc_port=0, shared_memory=True) as (busy, _), client_of(busy, triton_grpc) as client:
        expected = client.infer("light", [plain_input(triton_grpc, "query", queries, "UINT32")]).as_numpy("answer")
        made = memory.SharedMemory(f"headrace-test-{uuid.uuid4().hex}", create=True, size=expected.nbytes)
        try:
            made.buf[: queries.nbytes] = queries.tobytes()
            client.register_system_shared_memory("a", made.name, expected.nbytes)
            client.async_infer(
                "light",
                [shared_input(triton_grpc, "query", "UINT32", [2, 1], "a", queries.nbytes)],
                lambda result, error: results.put(error if result is None else result),
                outputs=[shared_output(triton_grpc, "answer", "a", expected.nbytes)],
            )
            while busy.model_statistics()[0].queries_in_flight == 0 and results.empty():
                time.sleep(0.001)
            client.unregister_system_shared_memory("a")
            assert status(client) == {}
        finally:
            made.unlink()
        assert results.get(timeout=SECONDS).get_output("answer").datatype == "UINT64"
        found = np.frombuffer(bytes(made.buf[: expected.nbytes]), np.uint64).reshape(expected.shape)
        np.testing.assert_array_equal(found, expected)
        made.close()
        assert descriptors_of(made.name) == 0


def test_a_request_without_answers_leaves_shared_memory_alone():
    with serving(SLOW, grpc_port=0, shared_memory=True) as (server, _):
        for of in BOTH:
            with client_of(server, of) as client, region(4096) as handle:
                shm.set_shared_memory_region(handle, [np.full(4096, 7, np.uint8)])
                client.register_system_shared_memory("a", key_of(handle), 4096)
                with pytest.raises(InferenceServerException):
                    client.infer(
                        "light",
                        [shared_input(of, "query", "UINT32", [8, 1], "a", 32)],
                        outputs=[shared_output(of, "answer", "a", 4096)],
                        timeout=1,
                    )
                assert set(handle._mpsm_handle.buf) == {7}
                client.unregister_system_shared_memory()


def test_regions_and_their_bytes_are_limited(of: ModuleType):
    with (
        serving(third(), grpc_port=0, shared_memory=True, shared_memory_max=1000) as (server, _),
        client_of(server, of) as client,
        region(1001) as handle,
    ):
        key = key_of(handle)
        with refused("RESOURCE_EXHAUSTED", "1000 bytes"):
            client.register_system_shared_memory("a", key, 1001)
        client.register_system_shared_memory("a", key, 600)
        with refused("RESOURCE_EXHAUSTED", "600 are already registered"):
            client.register_system_shared_memory("b", key, 401)
        client.register_system_shared_memory("b", key, 400)
        client.unregister_system_shared_memory("a")
        with refused("RESOURCE_EXHAUSTED", "400 are already registered"):
            client.register_system_shared_memory("a", key, 601)
        client.unregister_system_shared_memory()
        before = descriptors_of(key[1:])  # the test's own
        for i in range(256):
            client.register_system_shared_memory(f"region {i}", key, 1)
        assert descriptors_of(key[1:]) == before + 256
        with refused("RESOURCE_EXHAUSTED", "256 regions"):
            client.register_system_shared_memory("one more", key, 1)
        assert len(status(client)) == 256
        client.unregister_system_shared_memory()
        assert descriptors_of(key[1:]) == before
        client.register_system_shared_memory("one more", key, 1000)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"shared_memory_region": "a"}, "needs both"),
        ({"shared_memory_byte_size": 16}, "needs both"),
        ({"shared_memory_offset": 0}, "needs both"),
        ({"shared_memory_region": 1, "shared_memory_byte_size": 16}, "not a string"),
        ({"shared_memory_region": "a", "shared_memory_byte_size": "16"}, "not a whole number"),
        ({"shared_memory_region": "a", "shared_memory_byte_size": -16}, "not a whole number"),
        (
            {"shared_memory_region": "a", "shared_memory_byte_size": 16, "shared_memory_offset": -1},
            "not a whole number",
        ),
    ],
)
def test_parameters_have_to_make_sense(server: wire.Server, parameters: dict[str, Any], match: str):
    tensor = {"name": "query", "datatype": "FP64", "shape": [2]}
    body = json.dumps({"inputs": [tensor | {"parameters": parameters}]}).encode()
    (reply,) = ask(server, request("/v2/models/third/infer", body))
    assert reply.status == 400
    assert match in reply.body.decode()
    output = {"name": "answer", "parameters": parameters}
    body = json.dumps({"inputs": [tensor | {"data": [3, 6]}], "outputs": [output]}).encode()
    (reply,) = ask(server, request("/v2/models/third/infer", body))
    assert reply.status == 400
    assert match in reply.body.decode()

    message = service_pb2.ModelInferRequest(model_name="third")
    given = message.inputs.add(name="query", datatype="FP64", shape=[2])
    for name, value in parameters.items():
        field = "string_param" if isinstance(value, str) else "int64_param"
        setattr(given.parameters[name], field, value)
    with client_of(server, triton_grpc) as client, pytest.raises(Exception, match=match):
        client._client_stub.ModelInfer(message)


def test_a_tensor_is_in_one_place_alone(server: wire.Server):
    where = {"shared_memory_region": "a", "shared_memory_byte_size": 8}
    with region(8) as handle, client_of(server, triton_grpc) as client:
        client.register_system_shared_memory("a", key_of(handle), 8)
        tensor = {"name": "query", "datatype": "FP64", "shape": [1]}
        for more in ({"data": [1], "parameters": where}, {"parameters": where | {"binary_data_size": 8}}):
            body = json.dumps({"inputs": [tensor | more]}).encode()
            (reply,) = ask(server, request("/v2/models/third/infer", body))
            assert (reply.status, b"is in shared memory" in reply.body) == (400, True)
        body = json.dumps({"inputs": [tensor | {"data": [1]}], "parameters": where}).encode()
        (reply,) = ask(server, request("/v2/models/third/infer", body))
        assert (reply.status, b"allowed only for inputs and outputs" in reply.body) == (400, True)

        message = service_pb2.ModelInferRequest(model_name="third")
        given = message.inputs.add(name="query", datatype="FP64", shape=[1])
        given.parameters["shared_memory_region"].string_param = "a"
        given.parameters["shared_memory_byte_size"].int64_param = 8
        given.contents.fp64_contents.append(1)
        with pytest.raises(Exception, match="is in shared memory"):
            client._client_stub.ModelInfer(message)
        given.ClearField("contents")
        message.raw_input_contents.append(bytes(8))
        with pytest.raises(Exception, match="0 inputs that need one"):
            client._client_stub.ModelInfer(message)
        message.ClearField("raw_input_contents")
        message.parameters["shared_memory_region"].string_param = "a"
        with pytest.raises(Exception, match="allowed only for inputs and outputs"):
            client._client_stub.ModelInfer(message)
        client.unregister_system_shared_memory()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'"a"',
        b'{"key": "a"}',
        b'{"key": 5, "byte_size": 8}',
        b'{"key": "a", "byte_size": -8}',
        b'{"key": "a", "byte_size": 8.5}',
        b'{"key": "a", "byte_size": 8, "offset": "0"}',
        b'{"key": "a", "byte_size": 8, "offset": null}',
        b'{"key": "a", "byte_size": 18446744073709551616}',
        b'{"key": "\xff", "byte_size": 8}',
        b"[" * 100_000,
    ],
)
def test_a_registration_over_http_has_to_be_whole(server: wire.Server, body: bytes):
    content = request("/v2/systemsharedmemory/region/a/register", body, method="POST")
    (reply,) = ask(server, content if body else request("/v2/systemsharedmemory/region/a/register", method="POST"))
    assert (reply.status, b"a register request must be a JSON object" in reply.body) == (400, True)


@pytest.mark.parametrize(
    ("target", "method", "expected"),
    [
        ("", "GET", 404),
        ("/region", "GET", 404),
        ("/region/a", "GET", 404),
        ("/region/a/other", "GET", 404),
        ("/region/a/b/status", "GET", 404),
        ("/register", "POST", 404),
        ("/status", "POST", 405),
        ("/region/a/register", "GET", 405),
        ("/unregister", "GET", 405),
        ("/region/a/status", "GET", 404),
        ("/region/%ff/status", "GET", 404),
        ("/region/a/unregister", "POST", 200),
    ],
)
def test_paths_and_methods_are_those_of_the_extension(server: wire.Server, target: str, method: str, expected: int):
    headers = "Content-Length: 0\r\n" if method == "POST" else ""
    (reply,) = ask(server, request(f"/v2/systemsharedmemory{target}", method=method, headers=headers))
    assert reply.status == expected
