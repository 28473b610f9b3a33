"""`headrace ingest send`: plain receivers get exactly what was sent."""

import hashlib
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conftest import Run

import headrace
from headrace import ingest

GUARD_SECONDS = 120  # long enough for any machine


class Receiver(threading.Thread):
    """Receives one connection over the kernel's TCP, until its end or `most` bytes."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(GUARD_SECONDS)
        self._most = most
        self.port = self._listener.getsockname()[1]
        self.count = 0
        self.sha256 = hashlib.sha256()
        self.start()

    def run(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(GUARD_SECONDS)
        with connection, self._listener:
            while self._most is None or self.count < self._most:
                piece = connection.recv(1 << 20)
                if not piece:
                    return
                self.count += len(piece)
                self.sha256.update(piece)
            # Closing with unread bytes is a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@contextmanager
def udp_receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(GUARD_SECONDS)
        yield receiver


def test_stream_bytes_are_parts_of_one_stream():
    whole = ingest.stream_bytes(3, 0, 100_000)
    assert ingest.stream_bytes(3, 33_333, 40_000) == whole[33_333:73_333]
    assert ingest.stream_bytes(4, 0, 100) != whole[:100]
    assert ingest.digest(3, 100_000) == hashlib.sha256(whole).hexdigest()
    assert len(set(whole)) == 256


@pytest.mark.parametrize("wait", [True, False])
def test_a_plain_receiver_gets_the_stream(wait: bool):
    receiver = Receiver()
    sender = ingest.TcpSender("127.0.0.1", receiver.port, seed=7)
    seen = []
    report = ingest.send(sender, 30_000_001, chunk_bytes=1_000_000, wait=wait, progress=seen.append)
    assert report.bytes == 30_000_001
    assert report.units == 31
    assert report.seconds > 0
    assert report.round_trips.count == (31 if wait else 0)
    if wait:
        assert 0 < report.round_trips.p50 <= report.round_trips.max <= report.seconds
    assert all(one.bytes <= 30_000_001 for one in seen)
    more = ingest.send(sender, 999, wait=wait)
    assert (more.bytes, more.units) == (999, 1)
    sender.finish()
    receiver.join(GUARD_SECONDS)
    assert receiver.count == 30_001_000
    assert receiver.sha256.hexdigest() == ingest.digest(7, 30_001_000)


def test_small_segments():
    receiver = Receiver()
    sender = ingest.TcpSender("127.0.0.1", receiver.port, segment_bytes=536, kernel_buffer_bytes=16384)
    ingest.send(sender, 300_000, chunk_bytes=10_000)
    sender.finish()
    receiver.join(GUARD_SECONDS)
    assert receiver.sha256.hexdigest() == ingest.digest(1, 300_000)


def test_a_receiver_that_goes_away_is_an_error():
    receiver = Receiver(most=1 << 20)
    sender = ingest.TcpSender("127.0.0.1", receiver.port)
    with pytest.raises(headrace.SystemError, match=r"sending to 127.0.0.1 port \d+, after \d+ bytes: "):
        ingest.send(sender, 1 << 30)
    assert 0 < sender.report().bytes < 1 << 30


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(headrace.SystemError, match=f"connecting to 127.0.0.1 port {port}: Connection refused"):
        ingest.TcpSender("127.0.0.1", port)


def test_what_cannot_be_sent():
    with pytest.raises(headrace.UsageError, match="not an IPv4 or IPv6 address"):
        ingest.TcpSender("localhost", 1)
    with pytest.raises(headrace.UsageError, match="from 1 to 65535"):
        ingest.TcpSender("127.0.0.1", 0)
    with pytest.raises(headrace.UsageError, match="from 88 to 32767 bytes"):
        ingest.TcpSender("127.0.0.1", 1, segment_bytes=10)
    with pytest.raises(headrace.UsageError, match="number of datagrams to send must be at least 1"):
        ingest.UdpSender("127.0.0.1", 1, 0)
    with pytest.raises(headrace.UsageError, match="at least 1 byte of payload"):
        ingest.UdpSender("127.0.0.1", 1, 1, payload_bytes=0)
    with pytest.raises(headrace.UsageError, match="4 or 8 bytes, not 3"):
        ingest.UdpSender("127.0.0.1", 1, 1, number_width=3)
    with pytest.raises(headrace.UsageError, match="at most 65507 bytes, not 65500 bytes of payload after 8"):
        ingest.UdpSender("127.0.0.1", 1, 1, payload_bytes=65500)
    with pytest.raises(headrace.UsageError, match="too short for its sequence number"):
        ingest.UdpSender("127.0.0.1", 1, 1, number_offset=2**32 - 1)
    with pytest.raises(headrace.UsageError, match="packets/s"):
        ingest.UdpSender("127.0.0.1", 1, 1, packets_per_second=-1)
    receiver = Receiver()
    sender = ingest.TcpSender("127.0.0.1", receiver.port)
    for count, chunk in ((0, 1), (1, 0)):
        with pytest.raises(headrace.UsageError, match="must each have at least 1 byte"):
            sender.begin(count, chunk)
    sender.begin(1, 1)
    with pytest.raises(headrace.UsageError, match="previous part of the stream has not been sent"):
        sender.begin(1, 1)


@pytest.mark.parametrize(
    ("target", "expected"),
    [("10.0.0.2:9000", ("10.0.0.2", 9000)), ("[::1]:80", ("::1", 80)), (" 127.0.0.1:1 ", ("127.0.0.1", 1))],
)
def test_targets(target: str, expected: tuple[str, int]):
    assert ingest.resolve(target) == expected


@pytest.mark.parametrize("target", ["", "10.0.0.2", "10.0.0.2:", "10.0.0.2:0", "10.0.0.2:65536", "::1:80", "a:b", ":9"])
def test_wrong_targets(target: str):
    with pytest.raises(headrace.UsageError, match="is not an address with a port"):
        ingest.resolve(target)


def test_datagrams_are_numbered():
    with udp_receiver() as receiver:
        sender = ingest.UdpSender(
            "127.0.0.1", receiver.getsockname()[1], 100, seed=5, payload_bytes=492, number_offset=4, number_width=4
        )
        report = ingest.send_datagrams(sender)
        assert (report.units, report.bytes, report.refused) == (100, 100 * 492, 0)
        data = b""
        for number in range(100):
            datagram = receiver.recv(65535)
            assert datagram[:8] == bytes(4) + number.to_bytes(4, "big")
            data += datagram[8:]
    assert data == ingest.stream_bytes(5, 0, 100 * 492)


def test_datagrams_keep_to_a_rate():
    with udp_receiver() as receiver:
        sender = ingest.UdpSender("127.0.0.1", receiver.getsockname()[1], 51, packets_per_second=1000)
        assert ingest.send_datagrams(sender).seconds >= 0.05


def test_the_verb_over_tcp(run: Run):
    receiver = Receiver()
    done = run(
        "ingest", "send", "tcp", f"localhost:{receiver.port}", "--bytes", "3MiB", "--chunk", "64KiB,1MiB",
        "--seed", 9, "--sha256", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    receiver.join(GUARD_SECONDS)
    content = json.loads(done.stdout)
    assert [row["chunk_bytes"] for row in content["rows"]] == [1 << 16, 1 << 20]
    assert [row["units"] for row in content["rows"]] == [48, 3]
    assert all(row["bytes"] == 3 << 20 and row["gigabits_per_second"] > 0 for row in content["rows"])
    assert all(row["round_trip"]["p50"] > 0 for row in content["rows"])
    assert content["sha256"] == receiver.sha256.hexdigest()
    assert receiver.count == 6 << 20


def test_the_verb_prints_a_table(run: Run):
    receiver = Receiver()
    done = run("ingest", "send", "tcp", f"127.0.0.1:{receiver.port}", "--bytes", "1MiB", "--no-wait")
    assert done.returncode == 0, done.stderr
    for word in (f"Sent to 127.0.0.1:{receiver.port} over TCP", "chunk", "Gb/s", "round trip", "1,048,576"):
        assert word in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_the_verb_over_udp(run: Run):
    with udp_receiver() as receiver:
        port = receiver.getsockname()[1]
        done = run(
            "ingest", "send", "udp", f"127.0.0.1:{port}", "--bytes", 10_000, "--payload", 1000, "--rate", "5K",
            "--sha256", "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        content = json.loads(done.stdout)
        row = content["rows"][0]
        assert (row["units"], row["bytes"], row["payload_bytes"]) == (10, 10_000, 1000)
        data = b"".join(receiver.recv(65535)[8:] for _ in range(10))
        assert content["sha256"] == hashlib.sha256(data).hexdigest()


def test_ctrl_c_prints_what_was_sent():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(GUARD_SECONDS)
        port = listener.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "headrace",
            "ingest",
            "send",
            "tcp",
            f"127.0.0.1:{port}",
            "--json",
            "--sha256",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1) != b""  # and no more, so that its window closes
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    content = json.loads(output)
    assert content["interrupted"] is True
    assert 0 < content["rows"][0]["bytes"] < 1 << 30
    assert "sha256" not in content


def test_the_verb_refuses(run: Run):
    both = run("ingest", "send", "tcp", "127.0.0.1:1", "udp", "127.0.0.1:1")
    assert both.returncode == 2
    assert "unexpected extra argument" in both.stderr
    assert run("ingest", "send").returncode == 2
    nowhere = run("ingest", "send", "tcp", "no-such-host.invalid:1")
    assert nowhere.returncode == 1
    assert "no-such-host.invalid" in nowhere.stderr
    for option, value in (("--payload", "0"), ("--number-width", "3"), ("--number-offset", "1470")):
        wrong = run("ingest", "send", "udp", "127.0.0.1:1", option, value)
        assert wrong.returncode == 2, wrong.stderr
        assert wrong.stderr.splitlines()[-1].startswith("headrace: error: ")
