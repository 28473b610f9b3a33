"""Senders that wait for answers: iperf3, HTTP uploads, and custom protocols."""

import json
import shutil
import socket
import struct
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run
from ingest_network import BYTES, GUARD_SECONDS, SMALL, receiver, started
from ingest_serving import Serving, connect, exactly, serve, serving, until_reset
from network_namespace import isolated

import headrace
from headrace import Errc, ingest
from headrace.ingest.taking import Taker

COUNT = BYTES // 4


class Iperf3(threading.Thread):
    """`iperf3 -c` with JSON output."""

    def __init__(self, address: str, *arguments: object) -> None:
        super().__init__(daemon=True)
        if shutil.which("iperf3") is None:
            pytest.skip("there is no iperf3 here")
        host, port = address.rsplit(":", 1)
        command = ["iperf3", "-c", host, "-p", port, "--json", *map(str, arguments)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said: dict[str, Any] = {}
        self.status = -1
        self.start()

    def run(self) -> None:
        out, _ = self._process.communicate(timeout=GUARD_SECONDS)
        self.said = json.loads(out)
        self.status = self._process.returncode


class Payload:
    """iperf3's --repeating-payload is 0123456789012..., and restarts wherever a write was cut short."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self.anew = 0

    def look(self, frame: ingest.Frame) -> None:
        digits = frame.numpy()[37 if frame.number == 0 else 0 :] - ord("0")
        if len(digits) == 0:
            return
        before = np.concatenate(([self._last.get(frame.stream, 9)], digits[:-1]))
        anew = digits != (before + 1) % 10
        assert not digits[anew].any()
        self.anew += int(np.count_nonzero(anew))
        self._last[frame.stream] = int(digits[-1])


@pytest.mark.parametrize("arguments", [(), ("-P", 3, "-l", "50K"), ("-l", 1000)], ids=["plain", "parallel", "short"])
@isolated
def test_iperf3_sends_what_arrives(arguments: tuple[object, ...]):
    payload = Payload()
    with receiver(connections=8) as source:
        client = Iperf3(source.address, "-n", COUNT, "--repeating-payload", *arguments)
        server = ingest.Iperf3Server(source)
        taker = Taker(body=server.body)
        parallel = 3 if "-P" in arguments else 1
        serve(source, server, taker, lambda: taker.ended == parallel and not server.busy, look=payload.look)
        client.join(GUARD_SECONDS)
    assert client.status == 0, client.said
    end = client.said["end"]
    assert end["sum_sent"]["bytes"] >= COUNT
    assert end["sum_received"]["bytes"] == end["sum_sent"]["bytes"]
    sent = [stream["sender"]["bytes"] for stream in end["streams"]]
    assert [stream["receiver"]["bytes"] for stream in end["streams"]] == sent
    assert [taker.streams[number].bytes for number in sorted(taker.streams)] == sent  # in either order
    assert {stream.end for stream in taker.streams.values()} == {"finished"}
    assert payload.anew < 1000 * parallel


@isolated
def test_iperf3_over_a_bad_network():
    with receiver(offloads=False, faults=ingest.Faults(loss=0.01, reordering=0.01, loss_sent=0.01, seed=3)) as source:
        client = Iperf3(source.address, "-n", "2M")
        server = ingest.Iperf3Server(source)
        taker = Taker(body=server.body)
        serve(source, server, taker, lambda: taker.ended == 1 and not server.busy)
        client.join(GUARD_SECONDS)
    assert client.status == 0, client.said
    assert taker.streams.popitem()[1].bytes == client.said["end"]["sum_sent"]["bytes"]


@isolated
def test_a_file_by_iperf3_has_the_same_digest(tmp_path: Path):
    """As much as a socket's buffer takes: of more, iperf3 itself sends other bytes where a write is cut short."""
    path = tmp_path / "file"
    path.write_bytes(ingest.stream_bytes(4, 0, 100_001))
    arguments = ("--answer", "iperf3", "--streams", 1, "--sha256", "--out", tmp_path / "out", "--json", *SMALL)
    with started("tcp", ":5201", *arguments) as verb:
        assert "answering iperf3" in verb.title
        client = Iperf3(verb.address, "-F", path, "-w", "200K", "-l", "8K")
        done = verb.finish()
        client.join(GUARD_SECONDS)
    assert client.status == 0, client.said
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["bytes"] == 100_001
    assert stream["sha256"] == ingest.digest(4, 100_001)
    assert (tmp_path / "out").read_bytes() == path.read_bytes()


@isolated
def test_one_test_follows_another_and_those_that_cannot_be_are_refused():
    with receiver() as source:
        server = ingest.Iperf3Server(source)
        taker = Taker(body=server.body)
        for arguments in (("-R", "-n", "1M"), ("-u", "-n", "1M"), ("--bidir", "-n", "1M")):
            client = Iperf3(source.address, *arguments)
            serve(source, server, taker, lambda client=client: not client.is_alive())
            assert "not implemented" in client.said["error"]
        assert not server.busy
        for number in (1, 2):
            client = Iperf3(source.address, "-n", "3M")
            serve(source, server, taker, lambda number=number: taker.ended == number and not server.busy)
            client.join(GUARD_SECONDS)
            assert client.status == 0, client.said


def served(source: ingest.Receiver, cookie: bytes) -> socket.socket:
    """A control connection of iperf3 that has its test; the end of the previous test may still be pending."""
    give_up = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < give_up:
        connection = connect(source)
        connection.sendall(cookie)
        if (state := exactly(connection, 1)) == b"\x09":
            return connection
        assert state == b"\xff"
        connection.close()
    raise AssertionError("it is not served")


@isolated
def test_iperf3_clients_that_come_in_between_or_say_nonsense():
    def cookie(letter: str) -> bytes:
        return letter.encode() * 36 + b"\0"

    with receiver() as source:
        serving = Serving(source, ingest.Iperf3Server(source))
        with connect(source) as first:
            first.sendall(cookie("a")[:10])
            first.sendall(cookie("a")[10:])
            assert exactly(first, 1) == b"\x09"
            with connect(source) as second:  # while the first one has its test
                second.sendall(cookie("b"))
                assert exactly(second, 5) == b"\xff"
            first.sendall(struct.pack(">I", 2) + b"{}")
            assert exactly(first, 1) == b"\x0a"
        for nonsense in (
            struct.pack(">I", 5) + b"hello",
            struct.pack(">I", 2) + b"[]",
            struct.pack(">I", 15) + b'{"parallel": 0}',
            struct.pack(">I", 1 << 30),
        ):
            with served(source, cookie("c")) as one:
                one.sendall(nonsense)
                until_reset(one)
        serving.stop()
        assert serving.taker.streams == {}


DEEP = b"[" * 60_000


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":' + DEEP,
        b'{"a":' + b'{"a":' * 5000,
        b'{"parallel": 99999999999999999999999999}',
        b'{"parallel": Infinity}',
        b'{"parallel": NaN}',
        b'{"parallel": 1e999}',
        b'{"parallel": true}',
        b'{"parallel": -1}',
        b'{"parallel": 1.5}',
        b'{"parallel": "1"}',
        b'{"parallel": null}',
        b"\xff\xfe{}",
        b"",
    ],
    ids=range(13),
)
@isolated
def test_hostile_parameters_of_iperf3_end_their_stream_alone(text: bytes):
    cookie = b"c" * 36 + b"\0"
    with receiver() as source, serving(source, ingest.Iperf3Server(source)):
        with served(source, cookie) as one:
            one.sendall(struct.pack(">I", len(text)) + text)
            until_reset(one)
        with served(source, cookie) as other:
            other.sendall(struct.pack(">I", 2) + b"{}")
            assert exactly(other, 1) == b"\x0a"


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (b'{"streams":[{"id":1,"bytes":1000}]}', 1000),
        (b'{"streams":[{"id":1,"bytes":1e3}]}', 1000),
        (b'{"streams":[{"id":1,"bytes":Infinity}]}', None),
        (b'{"streams":[{"id":1,"bytes":99999999999999999999999999}]}', None),
        (b'{"streams":[{"id":1,"bytes":9223372036854775808}]}', None),
        (b'{"streams":[{"id":1,"bytes":-5}]}', None),
        (b'{"streams":[{"id":1,"bytes":true}]}', None),
        (b'{"streams":[{"id":"1","bytes":"1000"}]}', None),
        (b'{"streams":[[1]]}', None),
        (b'{"streams":{"1":2}}', None),
        (b'{"streams":null}', None),
        (b'{"streams":[' + b'{"id":1,"bytes":1},' * 200 + b'{"id":1,"bytes":1}]}', None),
    ],
    ids=range(12),
)
@isolated
def test_hostile_results_of_iperf3_end_their_stream_alone(results: bytes, told: int | None):
    cookie = b"d" * 36 + b"\0"
    with receiver() as source, serving(source, ingest.Iperf3Server(source)):
        with served(source, cookie) as control, connect(source) as data:
            control.sendall(struct.pack(">I", 2) + b"{}")
            assert exactly(control, 1) == b"\x0a"
            data.sendall(cookie + b"z" * 1000)
            assert exactly(control, 2) == b"\x01\x02"
            control.sendall(b"\x04")
            assert exactly(control, 1) == b"\x0d"
            control.sendall(struct.pack(">I", len(results)) + results)
            if told is None:
                until_reset(control)
            else:
                (length,) = struct.unpack(">I", exactly(control, 4))
                assert json.loads(exactly(control, length))["streams"][0]["bytes"] == told
        served(source, cookie).close()


@pytest.mark.parametrize("protocol", [ingest.Iperf3Server, ingest.HttpUploads])
@isolated
def test_garbage_leaves_a_server_that_serves(protocol: type[ingest.Answering]):
    """Random bytes, and valid conversations with changed bytes, cut off anywhere."""
    right = {
        ingest.Iperf3Server: b"x" * 36 + b"\0" + struct.pack(">I", 15) + b'{"parallel": 1}' + b"\x04\x10\x0c",
        ingest.HttpUploads: b"PUT /x HTTP/1.1\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n" + b"y" * 40,
    }[protocol]
    random = np.random.default_rng(5)
    with receiver(buffers=2, frame="64KiB", connections=256) as source:  # this many ends may wait
        serving = Serving(source, protocol(source))
        for number in range(150):
            made = np.frombuffer(right, np.uint8).copy()
            if number % 3 == 0:
                made = random.integers(0, 256, random.integers(1, 300), np.uint8)
            else:
                made[random.integers(0, len(made), number % 4)] = random.integers(0, 256)
                made = made[: random.integers(1, len(made) + 1)]
            with connect(source) as connection, suppress(OSError):  # the server may reset it at once
                connection.sendall(made.tobytes())
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1000):
                    pass
        if protocol is ingest.HttpUploads:
            with connect(source) as connection:
                connection.sendall(right)
                assert b"HTTP/1.1 200 OK\r\n" in exactly(connection, 1 << 20)
        else:
            with served(source, right[:37]) as connection:
                connection.sendall(right[37 : 37 + 4 + 15])
                assert exactly(connection, 1) == b"\x0a"
        serving.stop()


class Echo(ingest.Answering):
    """Echoes lines."""

    def talk(self, stream: int) -> ingest.Talk:
        while True:
            line = yield b"\n"
            if line == b"bye\n":
                self.receiver.close(stream)
                return
            if line == b"nonsense\n":
                raise ingest.ProtocolError
            self.say(stream, line)


@isolated
def test_a_protocol_of_ones_own():
    with receiver() as source:
        serving = Serving(source, Echo(source))
        connections = [connect(source) for _ in range(3)]
        for round_number in range(20):
            for number, connection in enumerate(connections):
                line = f"{number} {round_number} {'z' * 100 * round_number}\n".encode()
                connection.sendall(line)
                assert exactly(connection, len(line)) == line
        connections[0].sendall(b"bye\n")
        assert connections[0].recv(1) == b""
        connections[1].sendall(b"nonsense\n")
        until_reset(connections[1])
        connections[2].sendall(b"x\n" * 1000)
        assert exactly(connections[2], 2000) == b"x\n" * 1000
        for connection in connections:
            connection.close()
        serving.stop()


class Fragile(Echo):
    """Fails in every way that a conversation can."""

    def talk(self, stream: int) -> ingest.Talk:
        if stream == 0:
            raise KeyError("before it has begun")
        return self._talk(stream)

    def _talk(self, stream: int) -> ingest.Talk:
        kind = yield b"\n"
        if kind == b"divide\n":
            self.say(stream, bytes(1 // 0))
        elif kind == b"recurse\n":
            self._recurse()
        elif kind == b"later\n":
            self.when(stream, 12, lambda: {}[stream])
        elif kind == b"much\n":
            self.say(stream, bytes(2 << 20))  # more than the limit of waiting bytes
        elif kind == b"type\n":
            yield "nothing that can be waited for"  # type: ignore[misc]
        elif kind == b"slow\n":
            self.deadline(stream, 0.05)
            try:
                yield 1000
            except TimeoutError:
                self.say(stream, b"too slow\n")
                self.receiver.close(stream)
        elif kind == b"slower\n":
            self.deadline(stream, 0.05)
            yield 1000
        else:
            yield from super().talk(stream)

    def _recurse(self) -> None:
        self._recurse()

    def ended(self, stream: int) -> None:
        raise RuntimeError(f"at the end of stream {stream}")


@isolated
def test_whatever_fails_ends_its_conversation_alone(caplog: pytest.LogCaptureFixture):
    with receiver(open_at_first_byte=False) as source, serving(source, Fragile(source)):
        with pytest.raises(ConnectionResetError), connect(source) as first:  # or connect() itself fails
            list(iter(lambda: first.recv(100), b""))
        with connect(source) as honest:
            for kind in (b"divide\n", b"recurse\n", b"later\nabcdef", b"much\n", b"type\n", b"slower\n"):
                with connect(source) as one:
                    one.sendall(kind)
                    until_reset(one)
            with connect(source) as slow:
                slow.sendall(b"slow\n")
                assert exactly(slow, 100) == b"too slow\n"
            honest.sendall(b"anything\nstill here\n")
            assert exactly(honest, 11) == b"still here\n"
    assert "stream 0 is reset: its conversation failed: KeyError('before it has begun')" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "at the end of stream 2" in caplog.text


class Counting(ingest.Answering):
    """Takes 5 MB, copies 3 bytes of each megabyte, and reports how many bytes it was given."""

    def talk(self, stream: int) -> ingest.Talk:
        told = 0
        for _ in range(5):
            told += len((yield 3)) + len((yield ingest.Skip((1 << 20) - 3)))
        some = yield ingest.Some(10)
        self.say(stream, f"{told} {self.position(stream)} {some[:1]!r}".encode())
        self.receiver.close(stream)


@isolated
def test_bytes_that_are_skipped_are_not_given():
    with receiver(frame="512KiB") as source, serving(source, Counting(source)), connect(source) as connection:
        connection.sendall(bytes(5 << 20) + b"!")
        assert exactly(connection, 100) == f"15 {(5 << 20) + 1} b'!'".encode()


class ClosedByBoth(Echo):
    """Closes once the sender has closed."""

    def ended(self, stream: int) -> None:
        self.receiver.close(stream)


@isolated
def test_what_came_as_a_part_is_not_read_again_with_its_frame():
    with receiver(close_when_finished=False) as source:
        serving = Serving(source, ClosedByBoth(source))
        with connect(source) as connection:
            connection.sendall(b"once\n")
            assert exactly(connection, 5) == b"once\n"
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(5) == b""
        serving.stop()


@isolated
def test_a_sender_that_has_finished_is_answered():
    with receiver(close_when_finished=False) as source, connect(source) as connection:
        connection.sendall(b"what is it?")
        connection.shutdown(socket.SHUT_WR)
        while not isinstance(source.next(timeout=GUARD_SECONDS), ingest.StreamEnded):
            pass
        answer = ingest.stream_bytes(6, 0, 100_000)
        source.send(0, answer)
        source.close(0)
        assert exactly(connection, len(answer) + 1) == answer


@isolated
def test_parts_come_before_their_frame_is_full():
    with receiver(open_at_first_byte=False) as source, connect(source) as connection:
        assert isinstance(source.next(timeout=GUARD_SECONDS), ingest.StreamOpened)
        source.peek(0, 0)
        connection.sendall(b"hello")
        part = source.next(timeout=GUARD_SECONDS)
        assert isinstance(part, ingest.FramePart)
        assert part.to_host().tobytes() == b"hello"
        assert (part.stream, part.stream_offset, part.bytes) == (0, 0, 5)
        assert part.peer == f"198.18.0.1:{connection.getsockname()[1]}"
        source.peek(0, 6)  # the second byte of the following data
        connection.sendall(b" world")
        second = source.next(timeout=GUARD_SECONDS)
        assert isinstance(second, ingest.FramePart)
        assert second.to_host().tobytes() == b"world"
        part.release()
        with pytest.raises(headrace.UsageError, match="released"):
            part.to_host()
        connection.shutdown(socket.SHUT_WR)
        frame = source.next(timeout=GUARD_SECONDS)
        assert isinstance(frame, ingest.Frame)
        assert frame.numpy().tobytes() == b"hello world"


@isolated
def test_parts_are_arrays_as_frames_are():
    with receiver(frame="64KiB", buffers=2, open_at_first_byte=False) as source, connect(source) as connection:
        assert isinstance(source.next(timeout=GUARD_SECONDS), ingest.StreamOpened)
        source.peek(0, 0, 300)
        sent = ingest.stream_bytes(9, 0, 300)
        connection.sendall(sent[:100])
        assert source.next(timeout=0.3) is None, "not before so much has come"
        connection.sendall(sent[100:])
        part = source.next(timeout=GUARD_SECONDS)
        assert isinstance(part, ingest.FramePart)
        assert len(part) == part.bytes == 300
        assert part.__dlpack_device__() == (1, 0)
        arrays = [np.from_dlpack(part), part.numpy(), np.asarray(part), np.frombuffer(memoryview(part), np.uint8)]
        for array in arrays:
            assert array.dtype == np.uint8
            assert array.tobytes() == sent
        assert bytes(part) == sent
        assert part.to_host(10, 5).tobytes() == sent[10:15]
        assert not hasattr(part, "__cuda_array_interface__")
        with pytest.raises(headrace.UsageError, match="does not have 2"):
            part.to_host(299, 2)
        assert np.shares_memory(arrays[0], arrays[1]), "not copied"
        part.release()
        for misuse in (part.numpy, part.to_host, part.__dlpack__, lambda: len(part)):
            with pytest.raises(headrace.UsageError, match="released"):
                misuse()
        with pytest.raises(BufferError, match="released"):
            memoryview(part)
        connection.sendall(bytes(65536 - 300 + 65536))
        for number in range(2):
            frame = source.next(timeout=GUARD_SECONDS)
            assert isinstance(frame, ingest.Frame)
            assert frame.number == number
            frame.release()
        connection.sendall(bytes(65536))
        assert source.next(timeout=0.3) is None, "the arrays keep the first frame's buffer"
        assert arrays[3].tobytes() == sent
        arrays.clear()
        del array
        frame = source.next(timeout=GUARD_SECONDS)
        assert isinstance(frame, ingest.Frame)
        assert frame.number == 2


@isolated
def test_more_answers_than_may_wait_are_refused():
    with receiver(open_at_first_byte=False) as source, connect(source):
        assert isinstance(source.next(timeout=GUARD_SECONDS), ingest.StreamOpened)
        with pytest.raises(headrace.DeviceError, match="more than 1 MiB of answers would be waiting") as refused:
            source.send(0, bytes((1 << 20) + 1))
        assert refused.value.code == Errc.full


@isolated
def test_what_cannot_be_answered_says_so():
    with receiver(control="resident") as source:
        for ask in (lambda: source.send(0, b"x"), lambda: source.close(0), lambda: source.peek(0, 0)):
            with pytest.raises(headrace.UsageError, match="show parts of frames; use host control"):
                ask()
    with receiver(conversion="swap2") as source, pytest.raises(headrace.UsageError, match="converted"):
        source.peek(0, 0)
    with (
        ingest.synthetic(100, to="cpu", buffers=2, frame="1KiB") as source,
        pytest.raises(headrace.UsageError, match="a stream of datagrams cannot be answered"),
    ):
        source.send(0, b"x")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tcp", ":9000", "--answer", "gopher"), "'gopher' is not a protocol to answer; there are iperf3, http"),
        (("tcp", ":9000", "--answer", "http", "--control", "resident"), "resident control cannot answer"),
        (("tcp", ":9000", "--answer", "http", "--conversion", "swap2"), "--conversion none"),
        (("udp", ":9000", "--answer", "http"), "No such option: --answer"),
    ],
)
def test_the_command_refuses(run: Run, arguments: tuple[str, ...], says: str):
    done = run("ingest", *arguments, *SMALL)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
