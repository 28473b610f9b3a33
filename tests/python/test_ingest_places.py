"""More connections than places, and slow consumers, as seen by unmodified Linux sockets."""

import contextlib
import hashlib
import json
import os
import resource
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ingest_network import GUARD_SECONDS, SMALL, Started, receiver, started
from network_namespace import isolated

from headrace import ingest

CONNECTIONS = int(os.environ.get("HEADRACE_INGEST_CONNECTIONS", "400"))

with_every_control = pytest.mark.parametrize("control", ["host", "resident"])


def content(number: int) -> bytes:
    return ingest.stream_bytes(number, 0, 1 + number * 37 % 3000)


def upload(address: str, data: bytes) -> bool:
    """Whether the receiver has acknowledged all data and the end."""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=GUARD_SECONDS) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1) == b""
    except OSError:
        return False


class Consumer:
    """Takes frames of streams from time to time."""

    def __init__(self, source: ingest.Receiver, pause: float) -> None:
        self.digests: Counter[str] = Counter()
        self._hashes: dict[int, hashlib._Hash] = {}
        self._source = source
        self._pause = pause

    def take(self, streams: int) -> None:
        give_up = time.monotonic() + GUARD_SECONDS
        while self.digests.total() < streams:
            assert time.monotonic() < give_up, self._source.counters()
            item = self._source.next(timeout=0.5)
            if isinstance(item, ingest.StreamOpened):
                self._hashes[item.stream] = hashlib.sha256()
            elif isinstance(item, ingest.Frame):
                self._hashes[item.stream].update(item.numpy())
                item.release()
            elif isinstance(item, ingest.StreamEnded):
                time.sleep(self._pause)
                digest = self._hashes.pop(item.stream).hexdigest()
                self.digests[digest if item.reason == "finished" else item.reason] += 1


@with_every_control
@isolated
def test_short_connections_with_few_places_and_a_slow_consumer(control: str):
    with receiver(connections=4, frame="64KiB", buffers=2, control=control) as source:
        consumer = Consumer(source, 0.002)
        with ThreadPoolExecutor(20) as senders:
            told = [senders.submit(upload, source.address, content(number)) for number in range(CONNECTIONS)]
            consumer.take(CONNECTIONS)
        assert all(one.result() for one in told)
        source.stop()
        counters = source.counters()
    assert consumer.digests == Counter(hashlib.sha256(content(n)).hexdigest() for n in range(CONNECTIONS))
    assert counters["tcp"]["waited"] > 0
    assert counters["streams"]["memory_failures"] == 0


@with_every_control
@isolated
def test_a_storm_of_connections_is_not_reset(control: str):
    count = 300
    with receiver(connections=8, frame="64KiB", buffers=2, control=control) as source:
        host, port = source.address.rsplit(":", 1)
        connections = []
        for _ in range(count):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex((host, int(port)))
            connections.append(connection)
        consumer = Consumer(source, 0)
        taking = threading.Thread(target=consumer.take, args=(count,), daemon=True)
        taking.start()

        def send(number: int) -> bool:
            connection = connections[number]
            connection.settimeout(GUARD_SECONDS)
            connection.sendall(content(number))
            connection.shutdown(socket.SHUT_WR)
            with connection:
                return connection.recv(1) == b""

        with ThreadPoolExecutor(count) as senders:
            assert all(senders.map(send, range(count)))
        taking.join(GUARD_SECONDS)
    assert consumer.digests == Counter(hashlib.sha256(content(n)).hexdigest() for n in range(count))


@isolated
def test_an_absent_consumer_lets_senders_wait():
    with receiver(connections=2, frame="64KiB", buffers=2) as source, ThreadPoolExecutor(10) as senders:
        told = [senders.submit(upload, source.address, content(number)) for number in range(10)]
        give_up = time.monotonic() + GUARD_SECONDS
        while source.counters()["tcp"]["connections"] < 10 or sum(one.done() for one in told) < 2:
            assert time.monotonic() < give_up, source.counters()
            time.sleep(0.01)
        assert source.counters()["tcp"]["finished"] == 2
        assert sum(one.done() for one in told) == 2
        consumer = Consumer(source, 0)
        consumer.take(10)
        assert all(one.result() for one in told)


@isolated
def test_silent_connections_take_neither_places_nor_memory():
    with receiver(connections=2, frame="64MiB", buffers=4, first_byte_seconds=1.0) as source:
        host, port = source.address.rsplit(":", 1)
        silent = [socket.create_connection((host, int(port)), timeout=GUARD_SECONDS) for _ in range(64)]
        assert upload_while(source, content(5))
        for connection in silent:  # each is reset in time
            connection.settimeout(GUARD_SECONDS)
            with pytest.raises(ConnectionResetError), connection:
                connection.recv(1)
        source.stop()
        assert source.counters()["tcp"]["silent_timed_out"] == 64
        assert source.counters()["tcp"]["opened"] == 1


def upload_while(source: ingest.Receiver, data: bytes) -> bool:
    with ThreadPoolExecutor(1) as sender:
        told = sender.submit(upload, source.address, data)
        Consumer(source, 0).take(1)
        return told.result()


@isolated
def test_a_file_that_cannot_be_written_ends_one_stream(tmp_path: Path):
    (tmp_path / "out.1").mkdir()
    with started("tcp", ":9000", *SMALL, "--out", tmp_path / "out", "--streams", 3, "--json") as verb:
        assert upload(verb.address, content(1))
        upload(verb.address, content(2))  # received, but not written
        assert upload(verb.address, content(3))
        done = verb.finish()
    assert done.returncode == 1
    assert "1 of 3 streams were not written" in done.stderr
    assert "out.1: Is a directory" in done.stderr
    said = json.loads(done.stdout)
    assert [("error" in stream) for stream in said["streams"]] == [False, True, False]
    assert said["stream_totals"]["failed"] == 1
    assert (tmp_path / "out").read_bytes() == content(1)


@isolated
def test_files_have_limits_and_empty_streams_have_none(tmp_path: Path):
    arguments = ("--out", tmp_path / "out", "--out-files", 2, "--streams", 4, "--json")
    with started("tcp", ":9000", *SMALL, *arguments) as verb:
        assert upload(verb.address, b"")
        for number in range(3):
            upload(verb.address, content(number))
        done = verb.finish()
    assert done.returncode == 1
    assert "the limit of 2 files has been reached" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.1"]
    assert (tmp_path / "out").read_bytes() == content(0)
    with started("tcp", ":9000", *SMALL, "--out", tmp_path / "small", "--out-bytes", "100B", "--streams", 1) as verb:
        upload(verb.address, bytes(101))
        done = verb.finish()
    assert done.returncode == 1
    assert "all files together would exceed their limit of bytes" in done.stderr


def begin_streams(verb: Started, out: Path, count: int) -> list[socket.socket]:
    """Opens connections one after the other, whose first frames are in their files."""
    host, port = verb.address.rsplit(":", 1)
    connections = []
    for number in range(count):
        connections.append(socket.create_connection((host, int(port)), timeout=GUARD_SECONDS))
        connections[-1].sendall(ingest.stream_bytes(number, 0, 70_000))  # more than a frame of 64 KiB
        path = Path(f"{out}.{number}") if number else out
        give_up = time.monotonic() + GUARD_SECONDS
        while not path.exists() or path.stat().st_size == 0 < number:  # the first file is buffered while it stays open
            assert time.monotonic() < give_up
            time.sleep(0.005)
    return connections


@isolated
def test_more_streams_than_descriptors_are_written_and_a_file_that_is_gone_is_an_error(tmp_path: Path):
    """Files are closed to open those of other streams. A removed file is not restarted in its middle."""
    count, out = 12, tmp_path / "out"
    options = ("--frame", "64KiB", "--out", out, "--streams", count, "--json")
    with started("tcp", ":9000", *SMALL, *options) as verb:
        pid = verb.process.pid
        limit = len(list(Path(f"/proc/{pid}/fd").iterdir())) + 3
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
        connections = begin_streams(verb, out, count)
        (tmp_path / "out.1").unlink()
        for number, connection in enumerate(connections):
            with connection, contextlib.suppress(OSError):  # this connection is reset
                connection.sendall(ingest.stream_bytes(number, 70_000, 70_000))
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
        done = verb.finish()
    assert done.returncode == 1
    assert f"1 of {count} streams were not written: {out}.1: No such file or directory" in done.stderr
    assert not (tmp_path / "out.1").exists()
    for number in {*range(count)} - {1}:
        path = Path(f"{out}.{number}") if number else out
        assert path.read_bytes() == ingest.stream_bytes(number, 0, 140_000)


@isolated
def test_many_streams_are_summed_up_and_the_last_are_listed():
    with started("tcp", ":9000", *SMALL, "--json", "--keep-streams", 100) as verb:
        with ThreadPoolExecutor(10) as senders:
            assert all(senders.map(lambda number: upload(verb.address, content(number)), range(150)))
        verb.process.send_signal(signal.SIGINT)
        done = verb.finish()
    said = json.loads(done.stdout)
    assert len(said["streams"]) == 100
    assert said["stream_totals"]["streams"] == 150
    assert said["stream_totals"]["bytes"] == sum(len(content(number)) for number in range(150))
    assert said["stream_totals"]["ends"] == {"finished": 150}
