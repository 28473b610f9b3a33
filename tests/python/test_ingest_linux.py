"""Receiving: frames contain exactly what unmodified Linux senders send.

Each test has its own network, and is skipped if no TUN device can be made. HEADRACE_INGEST_BYTES=10GiB makes tests of
complete streams send this much, and the others a share of it. HEADRACE_INGEST_PAUSE is the number of seconds for which
a receiver pauses.
"""

import hashlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ingest_network import BYTES, GUARD_SECONDS, receiver
from network_namespace import devices, isolated

from headrace import ingest

PAUSE_SECONDS = float(os.environ.get("HEADRACE_INGEST_PAUSE", "10"))
PIECE = 1 << 20


with_every_control = pytest.mark.parametrize("control", ["host", "resident"])


class Taken:
    """What was received of one stream, and its digest; checked for holes."""

    def __init__(self) -> None:
        self.bytes = 0
        self.sha256 = hashlib.sha256()
        self.reason = ""

    def add(self, frame: ingest.Frame) -> None:
        assert frame.stream_offset == self.bytes
        assert frame.missing_bytes == 0
        self.bytes += frame.bytes
        self.sha256.update(frame.numpy())


def take(source: ingest.Receiver, streams: int = 1) -> dict[int, Taken]:
    """Takes everything until this many streams have ended."""
    taken: dict[int, Taken] = {}
    ended = 0
    give_up = time.monotonic() + GUARD_SECONDS
    while ended < streams:
        assert time.monotonic() < give_up, source.counters()
        item = source.next(timeout=1.0)
        if isinstance(item, ingest.StreamOpened):
            taken[item.stream] = Taken()
        elif isinstance(item, ingest.Frame):
            taken[item.stream].add(item)
            item.release()
        elif isinstance(item, ingest.StreamEnded):
            assert item.bytes == taken[item.stream].bytes
            taken[item.stream].reason = item.reason
            ended += 1
    return taken


def final(source: ingest.Receiver) -> dict[str, int]:
    """The TCP counters at the end; counters may be stale before."""
    source.stop()
    return source.counters()["tcp"]


class Sender(threading.Thread):
    """A plain socket that sends `count` bytes of stream_bytes(seed), and waits for the end."""

    def __init__(self, address: str, count: int, seed: int = 1) -> None:
        super().__init__(daemon=True)
        host, port = address.rsplit(":", 1)
        self._to = (host, int(port))
        self._count = count
        self._seed = seed
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with socket.create_connection(self._to, timeout=GUARD_SECONDS) as connection:
                for at in range(0, self._count, PIECE):
                    connection.sendall(ingest.stream_bytes(self._seed, at, min(PIECE, self._count - at)))
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1) == b""
        except BaseException as error:
            self.failure = error

    def finish(self) -> None:
        self.join(GUARD_SECONDS)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure


def check_one(source: ingest.Receiver, count: int, seed: int = 1) -> None:
    """One sender; the frames must have its bytes."""
    sender = Sender(source.address, count, seed)
    (stream,) = take(source).values()
    sender.finish()
    assert stream.reason == "finished"
    assert stream.bytes == count
    assert stream.sha256.hexdigest() == ingest.digest(seed, count)


@with_every_control
@isolated
def test_a_linux_sender_arrives_whole(control: str):
    with receiver(frame="8MiB", connections=2, control=control) as source:
        check_one(source, BYTES + 12_345)
        counters = final(source)
    assert counters["bytes"] == BYTES + 12_345
    assert counters["resets_sent"] == 0


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
@with_every_control
@isolated
def test_with_loss(loss: float, control: str):
    faults = ingest.Faults(loss=loss, loss_sent=loss, seed=7)
    with receiver(offloads=False, faults=faults, control=control) as source:
        check_one(source, BYTES // 8)
        counters = final(source)
    assert counters["gaps"] > 0
    assert counters["late"] > 0


@with_every_control
@isolated
def test_with_loss_of_super_packets(control: str):
    """With the kernel's offloads, up to 64 KiB are lost at once."""
    faults = ingest.Faults(loss=0.02, duplication=0.02, reordering=0.02, loss_sent=0.02, seed=8)
    with receiver(mtu=9000, faults=faults, control=control) as source:
        check_one(source, BYTES // 4)
        counters = final(source)
    assert counters["gaps"] > 0


@pytest.mark.parametrize(
    ("faults", "counter"),
    [
        ({"duplication": 0.02, "seed": 2}, "duplicates"),
        ({"reordering": 0.02, "seed": 3}, "out_of_order"),
        ({"corruption": 0.01, "seed": 4}, "unparsed"),
        ({"loss": 0.01, "duplication": 0.01, "corruption": 0.01, "reordering": 0.02, "loss_sent": 0.01}, "gaps"),
    ],
    ids=["duplication", "reordering", "corruption", "all"],
)
@with_every_control
@isolated
def test_with_other_faults(faults: dict[str, float], counter: str, control: str):
    with receiver(offloads=False, faults=ingest.Faults(**faults), control=control) as source:
        check_one(source, BYTES // 8)
        counters = final(source)
    if control == "resident" and counter == "duplicates":
        counter = "duplicate_bytes"  # the kernel merges a repeated packet with the following one
    assert counters[counter] > 0


@pytest.mark.parametrize("offloads", [True, False], ids=["tso", "no-tso"])
@pytest.mark.parametrize("mtu", [576, 1500, 9000, 65535])
@with_every_control
@isolated
def test_mtus(mtu: int, offloads: bool, control: str):
    with receiver(mtu=mtu, offloads=offloads, control=control) as source:
        check_one(source, BYTES // 8 + 1)
        counters = final(source)
    if not offloads:
        assert counters["segments"] >= (BYTES // 8) // mtu


@pytest.mark.parametrize("count", [8, 64])
@with_every_control
@isolated
def test_many_connections(count: int, control: str):
    each = BYTES // 2 // count
    with receiver(frame="128KiB", buffers=2, connections=count, control=control) as source:
        senders = {seed: Sender(source.address, each + seed, seed) for seed in range(count)}
        taken = take(source, count)
        for sender in senders.values():
            sender.finish()
        assert final(source)["opened"] == count
    expected = {each + seed: ingest.digest(seed, each + seed) for seed in range(count)}
    assert {stream.bytes: stream.sha256.hexdigest() for stream in taken.values()} == expected


@with_every_control
@isolated
def test_a_paused_receiver_closes_the_window_and_loses_nothing(control: str):
    with receiver(frame="256KiB", buffers=2, control=control) as source:
        sender = Sender(source.address, BYTES // 8)
        give_up = time.monotonic() + GUARD_SECONDS
        while source.counters()["tcp"]["zero_windows"] == 0:
            assert time.monotonic() < give_up
            time.sleep(0.05)
        time.sleep(PAUSE_SECONDS)
        assert source.counters()["tcp"]["bytes"] == 512 << 10, "no more than there is space for"
        (stream,) = take(source).values()
        sender.finish()
        assert final(source)["probes"] > 0
    assert stream.sha256.hexdigest() == ingest.digest(1, BYTES // 8)


_ENDLESS = """
import socket, sys
from headrace import ingest
to = socket.create_connection((sys.argv[1], 9000))
for at in range(0, 1 << 40, 1 << 20):
    to.sendall(ingest.stream_bytes(1, at, 1 << 20))
"""


def endless(source: ingest.Receiver) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _ENDLESS, source.address.split(":")[0]])


@with_every_control
@isolated
def test_a_killed_sender_leaves_what_it_sent(control: str):
    with receiver(control=control) as source:
        sender = endless(source)
        taken = Taken()
        give_up = time.monotonic() + GUARD_SECONDS
        reason = ""
        while not reason:
            assert time.monotonic() < give_up
            item = source.next(timeout=1.0)
            if isinstance(item, ingest.Frame):
                taken.add(item)
                item.release()
                if taken.bytes == 4 << 20:
                    sender.kill()
            elif isinstance(item, ingest.StreamEnded):
                reason = item.reason
                assert item.bytes == taken.bytes
        sender.wait(GUARD_SECONDS)
    assert reason in {"finished", "reset"}  # its kernel reports either of them
    assert taken.bytes >= 4 << 20
    assert taken.sha256.hexdigest() == ingest.digest(1, taken.bytes)


@with_every_control
@isolated
def test_a_reset_keeps_what_came_in_order(control: str):
    with receiver(control=control) as source:
        host, port = source.address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=GUARD_SECONDS)
        connection.sendall(ingest.stream_bytes(1, 0, 300_000))
        give_up = time.monotonic() + GUARD_SECONDS
        while source.counters()["tcp"]["bytes"] < 300_000:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        (stream,) = take(source).values()
    assert stream.reason == "reset"
    assert stream.sha256.hexdigest() == ingest.digest(1, 300_000)


@with_every_control
@isolated
def test_connections_follow_each_other(control: str):
    with receiver(connections=2, frame="64KiB", buffers=2, control=control) as source:
        for seed in range(6):
            check_one(source, 200_000 + seed, seed)
        assert source.counters()["streams"]["memory_failures"] == 0


@with_every_control
@isolated
def test_the_device_goes_with_the_receiver(control: str):
    with receiver(control=control) as source:
        assert source.interface in devices()
    del source
    assert devices() == ["lo"]


def _by_program(command: Callable[[str, str], list[str]], program: str) -> Taken:
    """What a program sends that reads BYTES // 8 bytes of a stream from its input."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    with receiver() as source:
        host, port = source.address.rsplit(":", 1)
        sender = subprocess.Popen(command(host, port), stdin=subprocess.PIPE)

        def feed() -> None:
            assert sender.stdin is not None
            with sender.stdin:
                for at in range(0, BYTES // 8, PIECE):
                    sender.stdin.write(ingest.stream_bytes(5, at, PIECE))

        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        (stream,) = take(source).values()
        feeder.join(GUARD_SECONDS)
        sender.wait(GUARD_SECONDS)
    return stream


@isolated
def test_nc():
    stream = _by_program(lambda host, port: ["nc", "-N", host, port], "nc")
    assert stream.sha256.hexdigest() == ingest.digest(5, BYTES // 8)


@isolated
def test_curl_uploads(tmp_path: Path):
    """Its request precedes the bytes, and it waits for an answer that never comes."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    size = BYTES // 8
    path = tmp_path / "upload"
    with path.open("wb") as file:
        for at in range(0, size, PIECE):
            file.write(ingest.stream_bytes(5, at, PIECE))
    stream = bytearray()
    with receiver() as source:
        command = ["curl", "--silent", "--header", "Expect:", "--upload-file", str(path)]
        sender = subprocess.Popen([*command, f"http://{source.address}/frame"])
        give_up = time.monotonic() + GUARD_SECONDS
        item = None
        while not isinstance(item, ingest.StreamEnded):
            assert time.monotonic() < give_up
            begin = stream.find(b"\r\n\r\n")
            if begin >= 0 and source.counters()["tcp"]["bytes"] == begin + 4 + size:
                sender.terminate()
            item = source.next(timeout=0.1)
            if isinstance(item, ingest.Frame):
                stream += item.numpy().tobytes()
                item.release()
        sender.wait(GUARD_SECONDS)
    head, _, body = bytes(stream).partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /frame HTTP/1.1\r\n")
    assert f"Content-Length: {size}".encode() in head
    assert hashlib.sha256(body).hexdigest() == ingest.digest(5, size)


@isolated
def test_headrace_send_arrives(run: Callable[..., subprocess.CompletedProcess[str]]):
    with receiver() as source:
        results: list[subprocess.CompletedProcess[str]] = []
        sending = threading.Thread(
            target=lambda: results.append(
                run("ingest", "send", "tcp", source.address, "--bytes", BYTES // 8, "--seed", 9, "--chunk", "1MiB")
            )
        )
        sending.start()
        (stream,) = take(source).values()
        sending.join(GUARD_SECONDS)
    assert results[0].returncode == 0, results[0].stderr
    assert stream.sha256.hexdigest() == ingest.digest(9, BYTES // 8)


@isolated
def test_datagrams_over_a_socket():
    layout = {"payload_bytes": 1464, "frame": 1464 * 100, "buffers": 16, "timeout": 2.0}
    with ingest.udp("127.0.0.1:9100", to="cpu", **layout) as source:
        sender = ingest.UdpSender("127.0.0.1", 9100, 1000, seed=3, payload_bytes=1464, packets_per_second=5000)
        ingest.send_datagrams(sender)
        whole = hashlib.sha256()
        frames = []
        while len(frames) < 10:
            item = source.next(timeout=GUARD_SECONDS)
            assert item is not None
            if isinstance(item, ingest.Frame):
                frames.append((item.number, item.missing_bytes))
                whole.update(item.numpy())
                item.release()
    assert frames == [(number, 0) for number in range(10)]
    assert whole.hexdigest() == ingest.digest(3, 1464 * 1000)
