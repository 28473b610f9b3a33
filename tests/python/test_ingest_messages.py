"""Messages of TCP senders, each delivered when it is complete."""

import socket
import struct
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from ingest_network import GUARD_SECONDS, receiver
from ingest_serving import connect
from network_namespace import isolated

from headrace import DataError, ingest


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize("frame", ["64MiB", "64KiB", "100"])
@isolated
def test_a_message_comes_when_it_is_complete(frame: str):
    """Each is awaited before the next is sent, whatever a frame holds."""
    sizes = [100, 0, 1, 65_532, 65_536, 5, 190_000, 3] if frame != "100" else [10, 0, 96, 200, 5, 296, 1]
    with receiver(frame=frame) as source, connect(source) as connection:
        messages = ingest.messages(source)
        for number, size in enumerate(sizes):
            body = ingest.stream_bytes(number, 0, size)
            whole = framed(body)
            for begin, end in pairwise([0, 2, 4 + size // 2, len(whole)]):  # in pieces
                connection.sendall(whole[begin:end])
            message = next(messages)
            assert ingest.body(message).tobytes() == body
            assert sum(count for _, _, count in message.parts) == size
            del message


@isolated
def test_messages_are_arrays_without_a_copy():
    with receiver() as source, connect(source) as connection:
        messages = ingest.messages(source)
        connection.sendall(framed(b"one") + framed(b"two"))
        first, second = next(messages), next(messages)
        (frame, offset, count), *rest = second.parts
        assert not rest
        assert np.from_dlpack(frame)[offset : offset + count].tobytes() == b"two"
        assert ingest.body(first).tobytes() == b"one"


@isolated
def test_a_bad_length_is_reported_at_once_and_others_go_on():
    with receiver() as source, connect(source) as bad, connect(source) as good:
        messages = ingest.messages(source, body_max=1000)
        bad.sendall(framed(b"right") + struct.pack(">I", 1001))
        assert ingest.body(next(messages)).tobytes() == b"right"
        began = time.monotonic()
        with pytest.raises(DataError, match=r"stream 0: the message at byte 9 gives its length as 1001 bytes"):
            next(messages)
        assert time.monotonic() - began < GUARD_SECONDS / 2
        with pytest.raises(ConnectionResetError):
            bad.recv(1)
        good.sendall(framed(b"still"))
        assert ingest.body(next(messages)).tobytes() == b"still"


@isolated
def test_messages_of_many_senders_at_full_speed():
    """None is lost, doubled or out of order, however parts and frames arrive."""
    senders, count = 4, 3000

    def send(connection: socket.socket, number: int) -> None:
        random = np.random.default_rng(number)
        for index in range(count):
            connection.sendall(framed(struct.pack(">II", number, index) + bytes(random.integers(0, 2000))))
        connection.shutdown(socket.SHUT_WR)

    with receiver(frame="64KiB", buffers=4) as source:
        connections = [connect(source) for _ in range(senders)]
        threads = [threading.Thread(target=send, args=(one, i)) for i, one in enumerate(connections)]
        for thread in threads:
            thread.start()
        expected = [0] * senders
        messages = ingest.messages(source)
        for _ in range(senders * count):
            body = ingest.body(next(messages))
            number, index = struct.unpack(">II", body[:8].tobytes())
            assert index == expected[number]
            expected[number] += 1
        for thread in threads:
            thread.join(GUARD_SECONDS)
        for connection in connections:
            connection.close()
    assert expected == [count] * senders


@isolated
def test_with_resident_control_messages_come_with_their_frames():
    with receiver(control="resident", frame="4KiB", connections=2) as source, connect(source) as connection:
        assert not source.has_parts
        connection.sendall(framed(bytes(3000)) + framed(bytes(2000)))
        messages = ingest.messages(source)
        assert next(messages).bytes == 3000
        connection.shutdown(socket.SHUT_WR)
        assert next(messages).bytes == 2000
