"""Clients of a server take turns, however much one of them asks for."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import http2_frames as h2
import tritonclient.grpc as triton
from http2_frames import call, frame, frames
from wire_serving import SECONDS, Replies, connect, request, samples, serving

from headrace import wire

WORKING = headrace.light(query_bytes=4, threads=256, steps=1 << 8)  # some 0.2 ms in a thread
BATCH = 1000
CALLS = 4  # requests of the greedy client: as many queries as may wait


def message(count: int) -> bytes:
    made = triton.service_pb2.ModelInferRequest(
        model_name="light", raw_input_contents=[samples(WORKING, count).tobytes()]
    )
    made.inputs.add(name="query", datatype="UINT32", shape=[count, 1])
    return bytes(made.SerializeToString())


def asked(count: int) -> bytes:
    """The same over HTTP."""
    data = ",".join(map(str, samples(WORKING, count).reshape(-1)))
    body = f'{{"inputs":[{{"name":"query","datatype":"UINT32","shape":[{count},1],"data":[{data}]}}]}}'
    return request("/v2/models/light/infer", body.encode())


@contextlib.contextmanager
def greedy(slots: int) -> Iterator[tuple[wire.Server, headrace.Engine, socket.socket]]:
    """A server whose line a gRPC client has filled, and that client's connection."""
    calls = b"".join(call(1 + 2 * i, "ModelInfer", message(BATCH)) for i in range(CALLS))
    with (
        serving(WORKING, plan=headrace.Plan(slots=slots), grpc_port=0, waiting_max=CALLS * BATCH) as (server, engines),
        socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=SECONDS) as peer,
    ):
        windows = struct.pack(">HI", 4, 1 << 24), struct.pack(">I", 1 << 24)  # windows per stream, and of all together
        peer.sendall(
            h2.PREFACE + frame(h2.SETTINGS, 0, 0, windows[0]) + frame(h2.WINDOW_UPDATE, 0, 0, windows[1]) + calls
        )
        end = time.monotonic() + SECONDS
        while server.model_statistics()[0].queries_waiting < (CALLS - 1) * BATCH:
            assert time.monotonic() < end
        yield server, engines[0], peer


def test_a_client_with_little_to_ask_waits_for_a_turn_and_not_for_all_of_another():
    with greedy(slots=2) as (server, engine, _), connect(server) as peer:
        replies = Replies(peer)
        before = engine.statistics().answered
        for _ in range(5):
            peer.sendall(asked(1))
            assert replies.next().status == 200
        # After the other's requests in line, each would be answered after all of its queries.
        assert engine.statistics().answered - before < (CALLS - 1) * BATCH // 2


def test_where_all_places_in_line_are_taken_the_client_with_most_gives_way():
    with greedy(slots=1) as (server, engine, other), connect(server) as peer:
        peer.sendall(asked(BATCH))
        assert Replies(peer).next().status == 200
        answered: dict[int, bytes] = {}
        ended: set[int] = set()
        for one in frames(other):
            if one.kind == h2.DATA:
                answered[one.stream] = answered.get(one.stream, b"") + one.payload
            if one.kind == h2.HEADERS and one.flags & h2.END_STREAM:
                ended.add(one.stream)
            if len(ended) == CALLS:
                break
        refused = server.model_statistics()[0].grpc.requests.refused
        assert 1 <= refused == CALLS - len(answered) < CALLS
        with engine.connect() as direct:
            want = np.asarray(direct.ask_many(samples(WORKING, BATCH))[0]).tobytes()
        assert all(want in one for one in answered.values())
