"""A server with gRPC clients that speak unusual, invalid, excessive or incomplete HTTP/2, and while it drains."""

import contextlib
import itertools
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import http2_frames as h2
import tritonclient.grpc as triton
from http2_frames import Frame, call, frame, frames
from tritonclient.utils import InferenceServerException
from wire_serving import SECONDS, samples, serving, third

from headrace import wire

SLOW = headrace.light(query_bytes=4, threads=1024, steps=1 << 20)  # hundreds of milliseconds in a thread
OPEN = h2.PREFACE + frame(h2.SETTINGS, 0, 0)
INTERNAL_ERROR, ENHANCE_YOUR_CALM = 2, 11  # codes of HTTP/2


def connect(server: wire.Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=SECONDS)


def infer_message(*values: float) -> bytes:
    made = triton.service_pb2.ModelInferRequest(model_name="third", raw_input_contents=[np.array(values).tobytes()])
    made.inputs.add(name="query", datatype="FP64", shape=[len(values)])
    return bytes(made.SerializeToString())


def thirds(*values: float) -> list[Any]:
    made = triton.InferInput("query", [len(values)], "FP64")
    made.set_data_from_numpy(np.array(values))
    return [made]


def slow_inputs(count: int) -> list[Any]:
    made = triton.InferInput("query", [count, 1], "UINT32")
    made.set_data_from_numpy(samples(SLOW, count))
    return [made]


def until_end_of(stream: int, peer: socket.socket) -> list[Frame]:
    """The frames of a stream, up to its last one."""
    found = []
    for one in frames(peer):
        if one.stream == stream:
            found.append(one)
            if one.flags & h2.END_STREAM and one.kind in (h2.DATA, h2.HEADERS):
                return found
    raise AssertionError(f"the connection ended behind {found}")


def headers_of(found: list[Frame]) -> bytes:
    return b"".join(one.payload for one in found if one.kind == h2.HEADERS)


def status_in(found: list[Frame]) -> bytes:
    """The value of grpc-status in the first reply of a connection, whose name nghttp2 encodes with Huffman's code."""
    _, _, rest = headers_of(found).partition(bytes.fromhex("9acac8b21234da8f"))
    return rest[1 : 1 + rest[0]]


def resident() -> int:
    """Resident memory of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def assert_serves(server: wire.Server) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        assert client.infer("third", thirds(3.0), client_timeout=SECONDS).as_numpy("answer").tolist() == [1.0]


def wait_until(done: Any) -> None:
    end = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(
    "content",
    [
        b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20),  # the beginning of TLS
        h2.PREFACE + frame(h2.PING, 0, 0, bytes(8)),  # SETTINGS must come first
        OPEN + frame(h2.DATA, 0, 1, b"x"),  # on a stream that does not exist
        OPEN + frame(h2.HEADERS, h2.END_HEADERS, 2, b"\x82"),  # streams of clients have odd numbers
        OPEN + frame(h2.HEADERS, h2.END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"),  # invalid HPACK
        OPEN + frame(h2.PING, 0, 0, bytes(7)),
        OPEN + frame(h2.WINDOW_UPDATE, 0, 0, bytes(4)),
        OPEN + b"\xff\xff\xff" + struct.pack(">BBI", h2.DATA, 0, 1),  # longer than the limit of frames
        OPEN + frame(h2.HEADERS, 0, 1, b"") + frame(h2.CONTINUATION, 0, 1, b"") * 1000,
    ],
)
def test_what_is_no_http2_ends_the_connection_and_no_other(content: bytes):
    with serving(third(), grpc_port=0) as (server, _):
        with connect(server) as peer:
            with contextlib.suppress(ConnectionError):
                peer.sendall(content)
            assert len(list(frames(peer))) < 10
        assert_serves(server)


def test_a_call_may_come_byte_by_byte():
    with serving(third(), grpc_port=0) as (server, _), connect(server) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for one in OPEN + call(1, "ModelInfer", infer_message(3.0, 6.0)):
            peer.sendall(bytes([one]))
        found = until_end_of(1, peer)
    assert np.array([1.0, 2.0]).tobytes() in b"".join(one.payload for one in found if one.kind == h2.DATA)


def test_a_stream_may_send_all_its_messages_and_its_end_at_once():
    """More messages than the server answers at a time wait after the end of the stream."""
    count = 200
    messages = [infer_message(3.0 * i) for i in range(count)]
    content = b"".join(struct.pack(">BI", 0, len(message)) + message for message in messages)
    with serving(third(), grpc_port=0) as (server, _), connect(server) as peer:
        middle = len(content) // 2 - 3
        peer.sendall(
            OPEN
            + call(1, "ModelStreamInfer", None)
            + frame(h2.DATA, 0, 1, content[:middle])
            + frame(h2.DATA, h2.END_STREAM, 1, content[middle:])
        )
        found = until_end_of(1, peer)
    answers = b"".join(one.payload for one in found if one.kind == h2.DATA)
    place = 0
    for i in range(count):
        place = answers.find(struct.pack("<d", 1.0 * i), place) + 1
        assert place > 0, f"no answer to message {i} behind the one before"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({":method": "GET"}, b"405"),
        ({"content-type": "application/json"}, b"415"),
        ({"content-type": "application/grpcx"}, b"415"),
    ],
)
def test_requests_that_are_none_of_grpc_have_a_status_of_http(headers: dict[str, str], status: bytes):
    head = h2.block({**h2.GRPC, "content-type": "application/grpc", **headers})
    with serving(third(), grpc_port=0) as (server, _), connect(server) as peer:
        peer.sendall(OPEN + frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, head) + call(3))
        found = until_end_of(1, peer)
        assert len(found) == 1
        assert status in found[0].payload


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (call(1, **{f"x{i}": "" for i in range(500)}), b"8"),
        (call(1, grpc_timeout="soon"), b"3"),
        (call(1, grpc_encoding="gzip"), b"12"),
        (call(1, "Nothing"), b"12"),
        (call(1, "ModelInfer", b"\xff"), b"3"),
        (call(1, "ModelReady", b""), b"3"),
        (call(1, message=None) + frame(h2.DATA, h2.END_STREAM, 1, b"\0\0\0\0\5abc"), b"3"),
        (call(1, message=None) + frame(h2.DATA, h2.END_STREAM, 1), b"3"),
        (call(1, message=None) + frame(h2.DATA, 0, 1, b"\1\0\0\0\0"), b"12"),
        (call(1, message=None) + frame(h2.DATA, 0, 1, b"\7\0\0\0\0"), b"3"),
        (call(1, message=None) + frame(h2.DATA, 0, 1, b"\0\0\0\0\0\0"), b"3"),
        (call(1, message=None) + frame(h2.DATA, 0, 1, b"\0\xff\xff\xff\xff"), b"8"),
        (call(1, "ModelStreamInfer", None) + frame(h2.DATA, h2.END_STREAM, 1, b"\0\0"), b"3"),
    ],
)
def test_calls_that_cannot_be_done_end_with_a_status_and_leave_the_connection(content: bytes, code: bytes):
    with serving(third(), grpc_port=0) as (server, _), connect(server) as peer:
        peer.sendall(OPEN + content)
        found = until_end_of(1, peer)
        assert [one.kind for one in found] == [h2.HEADERS]
        assert status_in(found) == code
        peer.sendall(call(3, "ModelInfer", infer_message(3.0)))
        assert np.array([1.0]).tobytes() in b"".join(one.payload for one in until_end_of(3, peer))


def test_streams_that_are_reset_as_fast_as_they_open_end_the_connection():
    attack = b"".join(call(i, "ModelInfer", None) + frame(h2.RST_STREAM, 0, i, bytes(4)) for i in range(1, 40_001, 2))
    with serving(third(), grpc_port=0) as (server, _):
        with connect(server) as peer:
            with contextlib.suppress(ConnectionError):
                peer.sendall(OPEN + attack)
            assert h2.GOAWAY in {one.kind for one in frames(peer)}  # which ends it too
        assert_serves(server)
        wait_until(lambda: server.statistics().memory_bytes == 0)


def test_streams_that_the_server_has_to_reset_end_the_connection():
    """A window of more than 2 GiB makes the server reset the stream, which limits on resets by clients do not count."""
    attack = b"".join(
        call(i, "ModelInfer", None) + frame(h2.WINDOW_UPDATE, 0, i, b"\x7f\xff\xff\xff") for i in range(1, 4_001, 2)
    )
    with serving(third(), grpc_port=0) as (server, _):
        with connect(server) as peer:
            with contextlib.suppress(ConnectionError):
                peer.sendall(OPEN + attack)
            assert h2.GOAWAY in {one.kind for one in frames(peer)}
        assert_serves(server)


def test_pings_that_nobody_takes_the_answers_of_end_the_connection():
    with serving(third(), grpc_port=0, idle_max=0.3) as (server, _):
        with connect(server) as peer, contextlib.suppress(ConnectionError):
            peer.sendall(OPEN)
            wait_until(lambda: server.statistics().connections_open == 1)
            while server.statistics().connections_open > 0:
                peer.sendall(frame(h2.PING, 0, 0, bytes(8)) * 10_000)
        assert_serves(server)


def test_more_streams_than_there_may_be_are_refused_and_the_rest_answered():
    with serving(third(), grpc_port=0) as (server, _), connect(server) as peer:
        opened = b"".join(call(i, "ModelInfer", None) for i in range(1, 601, 2))
        peer.sendall(OPEN + opened + frame(h2.DATA, h2.END_STREAM, 1, b"\0\0\0\0\0"))
        refused = set()
        for one in frames(peer):
            if one.kind == h2.RST_STREAM and one.payload == struct.pack(">I", 7):
                refused.add(one.stream)
            if len(refused) == 300 - 256:
                break
        assert refused == set(range(513, 601, 2))


def test_a_stream_that_says_nothing_and_a_silent_connection_end_in_time():
    with serving(third(), grpc_port=0, request_max=0.2, idle_max=0.2) as (server, _):
        for content, code in (
            (call(1, message=None), b"4"),
            (call(1, message=None) + frame(h2.DATA, 0, 1, b"\0\0"), b"4"),
            (call(1, "ModelStreamInfer", None), b"14"),
            (call(1, "ModelStreamInfer", None) + frame(h2.DATA, 0, 1, b"\0\0"), b"4"),
        ):
            with connect(server) as peer:
                peer.sendall(OPEN + content)
                assert status_in(until_end_of(1, peer)) == code
        with connect(server) as peer:
            peer.sendall(OPEN)
            assert h2.GOAWAY in {one.kind for one in frames(peer)}
        with connect(server) as peer:
            list(frames(peer))


def test_a_client_that_takes_no_reply_holds_its_memory_no_longer_than_idle():
    with serving(third(), grpc_port=0, idle_max=0.3) as (server, _), connect(server) as peer:
        window = frame(h2.SETTINGS, 0, 0, struct.pack(">HI", 4, 0))  # per stream: 0 bytes
        peer.sendall(h2.PREFACE + window + call(1, "ModelInfer", infer_message(3.0)))
        for one in frames(peer):
            if one.kind == h2.RST_STREAM:
                break
        wait_until(lambda: server.statistics().memory_bytes == 0)


def test_headers_take_no_memory_once_a_call_has_begun():
    """14 KB of headers for each of 255 open calls in each of 20 connections: 70 MiB."""
    head = {
        **h2.GRPC,
        ":path": "/inference.GRPCInferenceService/ModelInfer",
        "content-type": f"application/grpc;{'x' * 14_000}",
    }
    calls = b"".join(frame(h2.HEADERS, h2.END_HEADERS, i, h2.block(head)) for i in range(1, 511, 2))
    with serving(third(), grpc_port=0) as (server, _), contextlib.ExitStack() as stack:
        assert_serves(server)
        before = resident()
        for _ in range(20):
            peer = stack.enter_context(connect(server))
            peer.sendall(OPEN + calls + call(511))
            assert until_end_of(511, peer)
        assert resident() - before < 20 << 20


def bomb(stream: int, references: int) -> bytes:
    """A call with a header of 4,000 bytes that HPACK's table keeps, and `references` to it of one byte each."""
    head = h2.block({**h2.GRPC, "content-type": "application/grpc"})
    kept = b"\x40" + h2.text("x") + h2.text("y" * 4000)
    return frame(h2.HEADERS, h2.END_HEADERS, stream, head + kept + b"\xbe" * references)


def test_headers_that_grow_by_references_to_one_are_not_read_to_their_end():
    with serving(third(), grpc_port=0) as (server, _), connect(server) as peer:
        peer.sendall(OPEN + bomb(1, 10) + bomb(3, 10_000) + call(5))
        found = list(itertools.takewhile(lambda one: one.stream != 5, frames(peer)))
        assert status_in([one for one in found if one.stream == 1]) == b"8"  # RESOURCE_EXHAUSTED
        assert [(one.kind, one.payload) for one in found if one.stream == 3] == [
            (h2.RST_STREAM, struct.pack(">I", INTERNAL_ERROR))
        ]
        peer.sendall(b"".join(bomb(stream, 10_000) for stream in range(7, 207, 2)))
        ended = [one for one in frames(peer) if one.kind == h2.GOAWAY]
        assert [one.payload[4:8] for one in ended] == [struct.pack(">I", ENHANCE_YOUR_CALM)]
        assert_serves(server)


def test_connections_are_spread_evenly_over_the_threads():
    def watched() -> dict[str, int]:
        """Number of descriptors that each epoll instance of this process watches."""
        found = {}
        for one in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(one.readlink()) == "anon_inode:[eventpoll]":
                    found[one.name] = Path(f"/proc/self/fdinfo/{one.name}").read_text(encoding="ascii").count("tfd:")
        return found

    with serving(third(), grpc_port=0, threads=4) as (server, _), contextlib.ExitStack() as stack:
        wait_until(lambda: server.statistics().connections_open == 0)
        before = watched()
        for _ in range(20):
            peer = stack.enter_context(connect(server))
            peer.sendall(OPEN + call(1))
            assert until_end_of(1, peer)
        more = [now - before.get(name, 0) for name, now in watched().items()]
        assert [count for count in more if count > 0] == [5, 5, 5, 5]


def test_messages_beyond_their_limit_and_beyond_memory_are_refused():
    limits = {"body_bytes_max": 1 << 20, "memory_max": 1 << 20}
    with (
        serving(third(), grpc_port=0, **limits) as (server, _),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        for inputs, code in ((thirds(*np.ones(200_000)), "RESOURCE_EXHAUSTED"), (thirds(*np.ones(1024)), "")):
            if code:
                with pytest.raises(InferenceServerException) as caught:
                    client.infer("third", inputs)
                assert str(caught.value.status()) == f"StatusCode.{code}"
            else:
                client.infer("third", inputs)
        held = [connect(server) for _ in range(2)]
        part = call(1, "ModelInfer", None) + b"".join(
            frame(h2.DATA, 0, 1, one) for one in (b"\0\0\x0f\0\0", *[bytes(16_000)] * 32)
        )
        for peer in held:
            peer.sendall(OPEN + part)
        wait_until(lambda: server.statistics().memory_bytes >= 2 * 16_000 * 32)
        with pytest.raises(InferenceServerException, match="memory") as caught:
            client.infer("third", thirds(*np.ones(1024)))
        assert str(caught.value.status()) == "StatusCode.UNAVAILABLE"
        for peer in held:
            peer.close()
        wait_until(lambda: server.statistics().memory_bytes == 0)
        client.infer("third", thirds(*np.ones(1024)))


def test_large_tensors_go_through_windows_smaller_than_they_are():
    light = headrace.light(query_bytes=1 << 16)
    queries = np.random.default_rng(3).integers(0, 1 << 32, (256, 1 << 14), np.uint32)
    with (
        serving(light, grpc_port=0) as (server, engines),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        made = triton.InferInput("query", list(queries.shape), "UINT32")
        made.set_data_from_numpy(queries)
        found = client.infer("light", [made]).as_numpy("answer")
        with engines[0].connect() as asking:
            np.testing.assert_array_equal(found, asking.ask_many(queries)[0])


def test_the_queries_of_a_call_that_is_cancelled_are_dropped():
    """Two of the 1024 have a slot of the engine. All of them would take minutes."""
    with (
        serving(SLOW, third(), plan=headrace.Plan(slots=2), grpc_port=0) as (server, _),
        triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        context = client.async_infer("light", slow_inputs(1024), lambda _result, _error: None)
        wait_until(lambda: server.statistics().memory_bytes > 0)
        context.cancel()
        wait_until(lambda: server.statistics().memory_bytes == 0)
        of_model = client.get_inference_statistics("light").model_stats[0]
        assert of_model.inference_count < 1024
        assert (of_model.inference_stats.success.count, of_model.inference_stats.fail.count) == (
            0,
            1,
        )  # counted as by Triton
        assert_serves(server)


def test_a_server_that_drains_answers_what_has_begun_and_says_goodbye():
    answered: list[Any] = []
    done = threading.Event()

    def take(result: Any, error: Any) -> None:
        answered.append((result, error))
        done.set()

    with serving(SLOW, third(), grpc_port=0) as (server, _):
        with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client, connect(server) as peer:
            client.async_infer("light", slow_inputs(4), take)
            peer.sendall(OPEN)
            wait_until(lambda: server.statistics().memory_bytes > 0)
            assert server.drain(SECONDS)
            assert done.wait(SECONDS)
            assert h2.GOAWAY in {one.kind for one in frames(peer)}
        (result, error) = answered[0]
        assert error is None
        assert result.as_numpy("answer").shape == (4, 8)


def test_a_server_without_grpc_has_no_port_for_it():
    with serving(third()) as (server, _):
        assert server.grpc_port is None
    with serving(third(), grpc_port=0) as (server, _), serving(third()) as (other, _):
        assert server.grpc_port not in (None, 0, server.http_port, other.http_port)
        with pytest.raises(headrace.SystemError), serving(third(), grpc_port=server.grpc_port):
            pass
