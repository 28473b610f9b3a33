"""A server with clients that speak unusual or invalid HTTP, slowly or not at all."""

import contextlib
import json
import re
import socket
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from forking import in_child
from wire_serving import SECONDS, Replies, Reply, ask, connect, halve, request, samples, serving, third

from headrace import wire

SLOW = headrace.light(threads=1024, steps=1 << 20)  # hundreds of milliseconds in a thread
ENDLESS = headrace.light(query_bytes=4, threads=1024, steps=1 << 20)
LIVE = request("/v2/health/live")


def infer_json(values: list[float], **more: Any) -> bytes:
    tensor = {"name": "query", "datatype": "FP64", "shape": [len(values)], "data": values}
    return json.dumps({"inputs": [tensor], **more}).encode()


def infer(values: list[float], headers: str = "") -> bytes:
    return request("/v2/models/third/infer", infer_json(values), headers=headers)


def slow_query() -> bytes:
    tensor = {"name": "query", "datatype": "UINT32", "shape": [1, 256], "data": [7] * 256}
    return request("/v2/models/light/infer", json.dumps({"inputs": [tensor]}).encode())


def data_of(reply: Reply) -> Any:
    return json.loads(reply.body)["outputs"][0]["data"]


def error_of(reply: Reply) -> str:
    return str(json.loads(reply.body)["error"])


def endless(count: int = 1024) -> bytes:
    """A request that keeps any machine busy for longer than a test takes."""
    tensor = {"name": "query", "datatype": "UINT32", "shape": [count, 1], "data": list(range(count))}
    return request("/v2/models/light/infer", json.dumps({"inputs": [tensor]}).encode())


def assert_live(server: wire.Server) -> None:
    """Checks that the server answers. Retries, because limits are so short that a busy machine may send too late."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            assert ask(server, LIVE)[0].status == 200
        except (AssertionError, ConnectionError):
            assert time.monotonic() < end
        else:
            return


def wait_until(done: Any) -> None:
    end = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_pipelined_requests_are_answered_in_their_order():
    with serving(third()) as (server, _):
        content = b"".join(infer([3.0 * i]) + LIVE for i in range(50))
        replies = ask(server, content, 100)
    assert [data_of(one) for one in replies[::2]] == [[float(i)] for i in range(50)]
    assert {(one.status, one.body) for one in replies[1::2]} == {(200, b"")}


def test_a_request_may_come_byte_by_byte():
    with serving(third()) as (server, _), connect(server) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(content := infer([3.0, 6.0]))):
            peer.sendall(content[i : i + 1])
        assert data_of(Replies(peer).next()) == [1.0, 2.0]


def test_a_body_in_chunks_is_as_one_with_a_length():
    body = infer_json([3.0, 9.0])
    chunks = b"".join(b"%x;name=1\r\n%s\r\n" % (len(body[i : i + 7]), body[i : i + 7]) for i in range(0, len(body), 7))
    head = b"POST /v2/models/third/infer HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving(third()) as (server, _):
        content = head + chunks + b"0\r\nTrailer: 1\r\n\r\n"
        assert [data_of(one) for one in ask(server, content + infer([12.0]), 2)] == [[1.0, 3.0], [4.0]]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        # The content of such a body must not be read as the next request.
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n" + LIVE, 501),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + LIVE, 501),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na" + LIVE, 501),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n" + LIVE, 501),
        (b"GET /v2 HTTP/1.1\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /v2 HTTP/3.7\r\nHost: a\r\n\r\n", 400),
        (b"GET /v2\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # the beginning of TLS
        (b"\x00" * 100, 400),
        (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20000, 431),
        (b"GET /" + b"x" * 20000, 431),
        (b"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n", 413),
        (b"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", None),
    ],
)
def test_what_is_no_request_is_answered_and_the_connection_closed(content: bytes, status: int | None):
    with serving(third(), body_bytes_max=4096) as (server, _):
        with connect(server) as peer:
            peer.sendall(content)
            replies = Replies(peer)
            reply = replies.next()
            assert reply.status in ({400, 413} if status is None else {status})
            assert error_of(reply)
            assert reply.headers["connection"] == "close"
            assert replies.ended()
        assert ask(server, LIVE)[0].status == 200


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 431)])
@pytest.mark.parametrize("cut", [None, 10, 5000, -1])
def test_a_head_is_as_long_however_it_is_cut(more: int, status: int, cut: int | None):
    head = b"GET /v2/health/live?" + b"q" * 4000 + b" HTTP/1.1\r\nHost: a\r\nX: "
    head += b"x" * (4500 - len(head) - 4 + more) + b"\r\n\r\n"
    with serving(third(), head_bytes_max=4500) as (server, _), connect(server) as peer:
        peer.sendall(head[:cut])
        if cut is not None:
            time.sleep(0.05)
            peer.sendall(head[cut:])
        assert Replies(peer).next().status == status


def test_chunks_beyond_the_limit_of_a_body_are_refused():
    head = b"POST /v2 HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving(third(), body_bytes_max=4096) as (server, _), connect(server) as peer:
        with contextlib.suppress(ConnectionError):
            peer.sendall(head + b"400\r\n%s\r\n" % (b"x" * 1024) * 5)
        assert Replies(peer).next().status == 413


@pytest.mark.parametrize(
    "trailer",
    ["Host: elsewhere", "Inference-Header-Content-Length: 3", "Content-Encoding: gzip", "Expect: 100-continue"],
)
def test_trailers_are_no_headers(trailer: str):
    body = infer_json([3.0, 9.0])
    head = b"POST /v2/models/third/infer HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    content = head + b"%x\r\n%s\r\n0\r\n%s\r\n\r\n" % (len(body), body, trailer.encode())
    with serving(third()) as (server, _):
        found = ask(server, content + LIVE, 2)
    assert data_of(found[0]) == [1.0, 3.0]
    assert found[1].status == 200


@pytest.mark.parametrize(
    "text",
    [
        b"[" * (4 << 20),
        b'{"a":' * 800_000,
        b"[" * 100 + b"]" * 100,
        b"[" + b"[]," * 1_000_000 + b"[]]",
        b"[0" + b",0" * 2_000_000,
    ],
    ids=["arrays", "objects", "closed", "many", "long"],
)
def test_json_that_no_request_can_be_is_refused_before_it_is_read(text: bytes):
    """Parsing 4 MiB of "[" took a second, in which the thread answered no other client."""
    began = time.process_time()
    with serving(third()) as (server, _):
        reply = ask(server, request("/v2/models/third/infer", text))[0]
        assert reply.status == 400
        assert "nests deeper" in error_of(reply) or "more elements" in error_of(reply)
        assert time.process_time() - began < 10
        values = np.ones((1024, 1)).tolist()  # the maximum number of arrays and elements
        tensor = {"name": "query", "datatype": "FP64", "shape": [1024], "data": values}
        full = ask(
            server, request("/v2/models/third/infer", json.dumps({"inputs": [tensor], "id": '"\\[' * 9}).encode())
        )[0]
        assert len(data_of(full)) == 1024


def test_json_beyond_its_limit_is_refused():
    with serving(third()) as (server, _):
        refused, right = ask(server, request("/v2/models/third/infer", b" " * (5 << 20)) + infer([3.0]), 2)
    assert refused.status == 413
    assert "JSON" in error_of(refused)
    assert data_of(right) == [1.0]


@pytest.mark.parametrize(
    ("method", "target", "status", "allow"),
    [
        ("PUT", "/v2/health/live", 405, "GET, HEAD"),
        ("DELETE", "/v2/models/third", 405, "GET, HEAD"),
        ("GET", "/v2/models/third/infer", 405, "POST"),
        ("GET", "/v2/repository/index", 405, "POST"),
        ("POST", "/", 405, "GET, HEAD"),
        ("DELETE", "/status.json", 405, "GET, HEAD"),
        ("GET", "/v1", 404, None),
        ("GET", "/v2/nothing", 404, None),
        ("GET", "/v2/models", 404, None),
        ("GET", "/v2/models/none", 404, None),
        ("GET", "/v2/models/third/versions/9", 404, None),
        ("GET", "/v2/models/third/none", 404, None),
        ("GET", "/v2/models/third/ready/none", 404, None),
        ("GET", "/v2/models/%zz", 400, None),
        ("GET", "/v2/models/%", 400, None),
        ("GET", "/v2/models/a%00b", 400, None),
        ("GET", "http://here/v1", 404, None),
        ("GET", "http://here/v1?/v2/models/third", 404, None),
    ],
)
def test_paths_and_methods_that_there_are_not(method: str, target: str, status: int, allow: str | None):
    with serving(third()) as (server, _):
        reply, after = ask(server, request(target, method=method) + LIVE, 2)
    assert (reply.status, reply.headers.get("allow")) == (status, allow)
    assert error_of(reply)
    assert after.status == 200


def test_an_error_quotes_little_of_what_a_client_sent():
    with serving(third()) as (server, _):
        (reply,) = ask(server, request(f"/v2/models/{'ñ' * 4000}"))
    assert reply.status == 404
    assert re.fullmatch(r"there is no model 'ñ{490,512} \.\.\.", error_of(reply))


def test_head_gives_the_head_of_get():
    with serving(third()) as (server, _), connect(server) as peer:
        peer.sendall(request("/v2/models/third", method="HEAD") + request("/v2/models/third"))
        replies = Replies(peer)
        of_head, of_get = replies.next(of_head=True), replies.next()
    assert of_head.status == of_get.status == 200
    assert of_head.headers == of_get.headers
    assert len(of_get.body) == int(of_head.headers["content-length"])


def test_paths_may_have_escapes_a_query_and_empty_parts():
    with serving(third()) as (server, _):
        for target in (
            "/v2/models/thir%64",
            "//v2//models/third/",
            "/v2/models/third?verbose=1",
            "http://here:80/v2/models/third?a=b://c/d",
            "HTTP://here//v2/models/third",
        ):
            assert json.loads(ask(server, request(target))[0].body)["name"] == "third"


def test_a_connection_is_closed_where_the_client_wants_it():
    for content in (
        request("/v2/health/live", headers="Connection: close\r\n"),
        b"GET /v2/health/live HTTP/1.0\r\n\r\n",
    ):
        with serving(third()) as (server, _), connect(server) as peer:
            peer.sendall(content)
            replies = Replies(peer)
            assert replies.next().status == 200
            assert replies.ended()


def test_a_client_that_waits_to_be_told_is_told_to_go_on():
    content = infer([3.0], headers="Expect: 100-continue\r\n")
    head, _, body = content.partition(b"\r\n\r\n")
    with serving(third()) as (server, _), connect(server) as peer:
        peer.sendall(head + b"\r\n\r\n")
        assert peer.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(body)
        assert data_of(Replies(peer).next()) == [1.0]


def test_a_client_of_http_1_0_is_not_told_to_go_on():
    head, _, body = infer([3.0], headers="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    with serving(third()) as (server, _), connect(server) as peer:
        peer.sendall(head.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n\r\n")
        time.sleep(0.1)
        peer.sendall(body)
        assert data_of(Replies(peer).next()) == [1.0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'"text"', "object"),
        (b"{}", 'the request has no array "inputs"'),
        (b'{"inputs":{}}', "inputs"),
        (b'{"inputs":[7]}', "object"),
        (b'{"inputs":[{"name":7}]}', "name"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","data":[1]}]}', 'input "query" has no array "shape"'),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1]}]}', "data"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1],"data":[1,2]}]}', "more"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[2],"data":[1]}]}', "fewer"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1],"data":["1"]}]}', "FP64"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1],"data":[null]}]}', "FP64"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1],"data":1}]}', "array"),
        (b'{"inputs":[{"name":"query","datatype":"FP65","shape":[1],"data":[1]}]}', "FP65"),
        (b'{"inputs":[{"name":"query","datatype":"BYTES","shape":[1],"data":["a"]}]}', "BYTES"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[-1],"data":[1]}]}', "shape"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1e9],"data":[1]}]}', "shape"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":"1","data":[1]}]}', "shape"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[18446744073709551615],"data":[1]}]}', "shape"),
        (b'{"id":7,"inputs":[]}', "id"),
        (b'{"inputs":[{"name":"\xff","datatype":"FP64","shape":[1],"data":[1]}]}', "JSON"),
        (b"[" * 100_000, "JSON"),
        (b'{"inputs":[{"name":"query","datatype":"FP64","shape":[1],"data":' + b"[" * 50 + b"]" * 50 + b"}]}", "nests"),
    ],
)
def test_bodies_that_are_no_request_for_inference_are_refused(body: bytes, says: str):
    with serving(third()) as (server, _):
        refused, right = ask(server, request("/v2/models/third/infer", body) + infer([3.0]), 2)
    assert refused.status == 400
    assert says in error_of(refused)
    assert data_of(right) == [1.0]


@pytest.mark.parametrize(
    ("said", "sent", "says"),
    [
        ("8", 16, "follow"),
        ("24", 16, "takes 16"),
        ("16", 8, "ends"),
        ("-16", 16, "whole"),
        ('"16"', 16, "whole"),
        ("17", 17, "has 17"),
    ],
)
def test_binary_tensors_of_another_size_than_their_shape_are_refused(said: str, sent: int, says: str):
    shape = 1 if said == "8" else 2
    text = (
        f'{{"inputs":[{{"name":"query","datatype":"FP64","shape":[{shape}],'
        f'"parameters":{{"binary_data_size":{said}}}}}]}}'
    ).encode()
    headers = f"Inference-Header-Content-Length: {len(text)}\r\n"
    with serving(third()) as (server, _):
        reply = ask(server, request("/v2/models/third/infer", text + bytes(sent), headers=headers))[0]
    assert reply.status == 400
    assert says in error_of(reply)


@pytest.mark.parametrize("length", ["5", "100000", "-1", "x", "1, 2"])
def test_a_wrong_length_of_the_json_is_refused(length: str):
    with serving(third()) as (server, _):
        reply = ask(server, infer([3.0], headers=f"Inference-Header-Content-Length: {length}\r\n"))[0]
    assert reply.status == 400
    assert error_of(reply)


def test_binary_answers_lie_behind_the_json_that_says_so():
    text = json.dumps(
        {
            "inputs": [
                {"name": "x", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}},
                {"name": "n", "datatype": "INT64", "shape": [2], "data": [1, 200]},
            ],
            "parameters": {"binary_data_output": True},
            "outputs": [{"name": "n", "parameters": {"binary_data": False}}, {"name": "large"}, {"name": "y"}],
        }
    ).encode()
    x = np.arange(6, dtype="<f4")
    headers = f"Inference-Header-Content-Length: {len(text)}\r\n"
    with serving(halve()) as (server, _):
        reply = ask(server, request("/v2/models/halve/infer", text + x.tobytes(), headers=headers))[0]
    length = int(reply.headers["inference-header-content-length"])
    assert json.loads(reply.body[:length])["outputs"] == [
        {"name": "n", "datatype": "INT64", "shape": [2], "data": [-1, -200]},
        {"name": "large", "datatype": "BOOL", "shape": [2], "parameters": {"binary_data_size": 2}},
        {"name": "y", "datatype": "FP64", "shape": [2, 3], "parameters": {"binary_data_size": 48}},
    ]
    assert reply.body[length:] == b"\0\1" + (x / 2).astype("<f8").tobytes()


def test_a_client_that_ends_in_the_middle_of_a_request_leaves_nothing_behind():
    content = infer([3.0] * 500)
    with serving(third()) as (server, _):
        for length in (1, 20, 100, len(content) // 2, len(content) - 1):
            with connect(server) as peer:
                peer.sendall(content[:length])
                peer.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    while peer.recv(4096):
                        pass
        wait_until(lambda: server.statistics().connections_open == 0)
        assert server.statistics().memory_bytes == 0
        assert ask(server, LIVE)[0].status == 200


def test_clients_that_vanish_while_their_query_is_answered_harm_nobody():
    with serving(SLOW) as (server, engines):
        for _ in range(3):
            with connect(server) as peer:
                before = engines[0].statistics().submitted
                peer.sendall(slow_query())
                wait_until(lambda before=before: engines[0].statistics().submitted > before)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
        reply = ask(server, slow_query())[0]
        wait_until(lambda: server.statistics().connections_open == 0 and server.statistics().memory_bytes == 0)
    queries = np.full((1, 256), 7, np.uint32)
    with headrace.Engine("cpu", SLOW) as engine, engine.connect() as client:
        assert data_of(reply) == client.ask_many(queries)[0].reshape(-1).tolist()


def test_a_client_that_does_not_read_is_cut_and_others_go_on():
    """Replies of 4 MB each wait for a client that does not read: it makes no progress for longer than idle_max."""
    big = headrace.operators.reference(query_bytes=4, answer_bytes=1 << 20, blocks=1, steps=1)
    tensor = {"name": "query", "datatype": "UINT32", "shape": [4, 1], "data": [1, 2, 3, 4]}
    body = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    with serving(big, idle_max=0.3) as (server, _), connect(server) as peer:
        with contextlib.suppress(ConnectionError):
            peer.sendall(request("/v2/models/reference/infer", body) * 20)
        wait_until(lambda: server.statistics().connections_open == 0)
        assert_live(server)
        wait_until(lambda: server.statistics().memory_bytes == 0)


def test_connections_that_are_silent_are_closed_in_time():
    with serving(third(), idle_max=0.2) as (server, _), connect(server) as peer:
        assert peer.recv(1) == b""
        assert_live(server)
        wait_until(lambda: server.statistics().connections_open == 0)


def test_requests_that_trickle_are_cut_in_time():
    for begun in (b"GET /v2 HTTP/1.1\r\nX: ", infer([3.0], headers="Content-Length: 1000000\r\n")):
        with serving(third(), request_max=0.3) as (server, _), connect(server) as peer:
            ended = threading.Event()
            peer.sendall(begun)

            def trickle(peer: socket.socket = peer, ended: threading.Event = ended) -> None:
                with contextlib.suppress(OSError):
                    while not ended.wait(0.02):
                        peer.sendall(b" ")

            sender = threading.Thread(target=trickle)
            sender.start()
            reply = b""
            with contextlib.suppress(ConnectionError):
                while got := peer.recv(4096):
                    reply += got
            ended.set()
            sender.join()
            assert reply == b"" or reply.startswith(b"HTTP/1.1 408 ")


def test_silent_connections_give_way_to_new_ones():
    with serving(third(), connections_max=3) as (server, _), contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _ in range(3)]
        for peer in silent:  # each is accepted, one after the other
            peer.sendall(LIVE)
            assert Replies(peer).next().status == 200
        silent[0].sendall(LIVE[:9])  # an unfinished request counts as silence too
        for _ in range(3):
            new = stack.enter_context(connect(server))
            new.sendall(LIVE)
            assert Replies(new).next().status == 200
        assert server.statistics().connections_refused == 3
        for peer in silent:
            with contextlib.suppress(ConnectionError):
                assert peer.recv(1) == b""


def test_memory_of_all_requests_is_bounded():
    """If an unfinished request has most of the memory, nothing is left for another."""
    values = [1 / 3] * 1000  # some 20 KB
    with serving(third(), body_bytes_max=40_000, memory_max=50_000) as (server, _), connect(server) as first:
        first.sendall(request("/v2/models/third/infer", b" " * 39_000)[:-1])
        wait_until(lambda: server.statistics().memory_bytes > 38_000)
        with connect(server) as peer:
            with contextlib.suppress(ConnectionError):
                peer.sendall(infer(values))
            reply = Replies(peer).next()
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert "memory" in error_of(reply)
        assert server.statistics().refused == 1
        first.sendall(b" ")
        assert Replies(first).next().status == 400
        wait_until(lambda: server.statistics().memory_bytes == 0)
        assert len(data_of(ask(server, infer(values[:100]))[0])) == 100


def test_queries_beyond_those_that_may_wait_are_refused_at_once():
    with (
        serving(ENDLESS, plan=headrace.Plan(slots=1), waiting_max=1023) as (server, engines),
        connect(server) as first,
    ):
        first.sendall(endless())  # one query has the slot, and the others wait
        wait_until(lambda: engines[0].statistics().submitted == 1)
        refused = ask(server, endless(1024))[0]
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert "wait" in error_of(refused)
        done = server.statistics()
        assert (done.requests, done.failed, done.refused) == (1, 1, 1)


def test_draining_answers_what_has_begun_and_takes_nothing_new():
    with serving(SLOW) as (server, engines), connect(server) as peer, connect(server) as idle:
        idle.sendall(LIVE)
        assert Replies(idle).next().status == 200
        peer.sendall(slow_query())
        wait_until(lambda: engines[0].statistics().submitted == 1)
        assert server.drain(SECONDS)
        replies = Replies(peer)
        assert replies.next().status == 200
        assert replies.ended()
        assert idle.recv(1) == b""
        with pytest.raises(ConnectionError):
            connect(server)
        wait_until(lambda: server.statistics().connections_open == 0)


def test_draining_gives_up_in_time_and_meanwhile_refuses_queries():
    plan = headrace.Plan(slots=1)
    with serving(ENDLESS, plan=plan) as (server, engines), connect(server) as peer, connect(server) as half:
        half.sendall(request("/v2/models/light/infer", b" " * 99, headers="Expect: 100-continue\r\n")[:-9])
        assert half.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"  # its request has begun
        peer.sendall(endless())
        wait_until(lambda: engines[0].statistics().submitted > 0)
        assert not server.drain(0.1)
        half.sendall(bytes(9))
        replies = Replies(half)
        reply = replies.next()
        assert (reply.status, reply.headers["connection"]) == (503, "close")
        assert "stop" in error_of(reply)
        assert replies.ended()


def test_stopping_waits_for_queries_under_way_and_drops_their_answers():
    with serving(SLOW) as (server, engines), connect(server) as peer:
        peer.sendall(slow_query())
        wait_until(lambda: engines[0].statistics().submitted == 1)
        server.stop()
        with contextlib.suppress(ConnectionError):
            while peer.recv(4096):
                pass
        assert engines[0].statistics().answered == 1


def test_garbage_of_any_kind_harms_nobody():
    random = np.random.default_rng(3)
    good = infer([3.0, 6.0])
    with serving(third()) as (server, _):
        for _ in range(300):
            content = bytearray(good)
            for place in random.integers(0, len(content), random.integers(1, 6)):
                content[place] = random.integers(0, 256)
            with connect(server) as peer:
                peer.sendall(content)
                peer.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    while peer.recv(4096):
                        pass
        assert data_of(ask(server, good)[0]) == [1.0, 2.0]
        wait_until(lambda: server.statistics().connections_open == 0)
        assert server.statistics().memory_bytes == 0


def test_a_forked_child_lets_go_of_a_server_and_the_parent_goes_on():
    with serving(third()) as (server, _), connect(server) as peer:
        replies = Replies(peer)
        peer.sendall(LIVE)
        assert replies.next().status == 200
        in_child(server.stop)
        peer.sendall(infer([3.0]))
        assert data_of(replies.next()) == [1.0]
        assert_live(server)


def test_ipv6():
    with contextlib.ExitStack() as stack:
        server, _ = stack.enter_context(serving(third(), address="::1"))
        peer = stack.enter_context(socket.create_connection(("::1", server.http_port), timeout=SECONDS))
        peer.sendall(LIVE)
        assert Replies(peer).next().status == 200


def test_words_of_a_light_query_in_json():
    queries = samples(headrace.light(), 2)
    tensor = {"name": "query", "datatype": "UINT32", "shape": [2, 256], "data": queries.tolist()}
    with serving(headrace.light()) as (server, engines), engines[0].connect() as client:
        reply = ask(server, request("/v2/models/light/infer", json.dumps({"inputs": [tensor]}).encode()))[0]
        assert data_of(reply) == client.ask_many(queries)[0].reshape(-1).tolist()
