"""TCP connections of captures, from Python and the command line; compressed captures and pipes."""

import gzip
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace import DataError, UsageError, ingest
from headrace.ingest import taking

SYN, ACK, FIN, RST = 2, 16, 1, 4
CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
ROOT = Path(__file__).parents[2]


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Capture:
    """Writes a capture of Ethernet frames."""

    def __init__(self) -> None:
        self.bytes = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
        self._time = 0

    def add(self, packet: bytes, snap: int = 1 << 18) -> None:
        """Adds a packet, truncated to `snap` bytes."""
        self._time += 1000
        kept = packet[:snap]
        self.bytes += struct.pack("<IIII", 1 + self._time // 10**6, self._time % 10**6, len(kept), len(packet)) + kept

    def tcp(
        self,
        back: bool,
        ports: tuple[int, int],
        numbers: tuple[int, int],
        flags: int,
        payload: bytes = b"",
        snap: int = 1 << 18,
        wrong: bool = False,
    ) -> None:
        """Adds a segment from client to server, or back."""
        source, target = (SERVER, CLIENT) if back else (CLIENT, SERVER)
        source_port, target_port = reversed(ports) if back else ports
        head = struct.pack(
            "!HHIIBBHHH", source_port, target_port, numbers[0] % 2**32, numbers[1] % 2**32, 80, flags, 65535, 0, 0
        )
        pseudo = source + target + struct.pack("!BBH", 0, 6, 20 + len(payload))
        checksum = _checksum(pseudo + head + payload) ^ (0x5555 if wrong else 0)
        head = head[:16] + struct.pack("!H", checksum) + head[18:]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(payload), 1, 0, 64, 6, 0) + source + target
        ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
        self.add(b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + head + payload, snap)


def _talk(capture: Capture, port: int, up: bytes, down: bytes, *, seed: int = 0, wrong: bool = False) -> None:
    """Adds a connection with segments out of order and repeated."""
    chance = random.Random(seed)
    ports = (port, 80)
    first, second = chance.randrange(2**32), chance.randrange(2**32)
    capture.tcp(False, ports, (first, 0), SYN)
    capture.tcp(True, ports, (second, first + 1), SYN | ACK)
    segments = [(False, at, up[at : at + 1000]) for at in range(0, len(up), 1000)]
    segments += [(True, at, down[at : at + 1000]) for at in range(0, len(down), 1000)]
    segments += chance.sample(segments, len(segments) // 5)
    order = sorted(range(len(segments)), key=lambda one: one + chance.uniform(0, 5))
    for back, at, payload in (segments[one] for one in order):
        numbers = (second + 1 + at, first + 1) if back else (first + 1 + at, second + 1)
        capture.tcp(back, ports, numbers, ACK, payload, wrong=wrong and not back)
    capture.tcp(False, ports, (first + 1 + len(up), second + 1 + len(down)), FIN | ACK)
    capture.tcp(True, ports, (second + 1 + len(down), first + 2 + len(up)), FIN | ACK)


@pytest.fixture
def talks(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A capture, and its streams by sender."""
    capture = Capture()
    streams = {}
    for number in range(20):
        up, down = random.Random(number).randbytes(3000 * number + 1), random.Random(-number).randbytes(7000)
        _talk(capture, 4000 + number, up, down, seed=number)
        streams[f"10.0.0.1:{4000 + number}"] = up
        streams[f"10.0.0.2:80 {4000 + number}"] = down
    path = tmp_path / "talks.pcap"
    path.write_bytes(capture.bytes)
    return path, streams


def _received(receiver: ingest.Receiver) -> dict[str, bytes]:
    found: dict[int, bytes] = {}
    names: dict[int, str] = {}
    with receiver:
        while not receiver.ended:
            delivery = receiver.next(timeout=10)
            if isinstance(delivery, ingest.StreamOpened):
                found[delivery.stream] = b""
                server = delivery.peer == "10.0.0.2:80"
                names[delivery.stream] = delivery.peer + f" {delivery.destination.rpartition(':')[2]}" * server
            elif isinstance(delivery, ingest.Frame):
                assert delivery.stream_offset == len(found[delivery.stream])
                found[delivery.stream] += delivery.to_host().tobytes()
                delivery.release()
        receiver.next(timeout=0)  # raises the error
    return {names[stream]: data for stream, data in found.items()}


@pytest.mark.parametrize("connections", [1, 3, 64])
def test_streams_are_what_was_sent(talks: tuple[Path, dict[str, bytes]], connections: int) -> None:
    path, streams = talks
    receiver = ingest.pcap(path, follow="tcp", to="cpu", frame="4KiB", connections=connections)
    assert _received(receiver) == streams
    follow = receiver.counters()["follow"]
    assert follow["connections"] == 20
    assert follow["missing_bytes"] == 0
    assert follow["bytes"] == sum(map(len, streams.values()))
    assert follow["duplicates"] > 0
    assert follow["out_of_order"] > 0


@pytest.mark.parametrize("tool", ["tshark", "tcpflow"])
def test_other_tools_say_the_same(talks: tuple[Path, dict[str, bytes]], tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    script = ROOT / "bench" / "follow_check.py"
    command = [sys.executable, str(script), "--json", "--tool", tool, str(talks[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[tool] == {"equal": 40}


def _command(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "headrace", "ingest", *arguments, "--to", "cpu"]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)


def test_the_command_writes_every_stream(talks: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    path, streams = talks
    out = tmp_path / "out"
    done = _command("pcap", str(path), "--follow", "tcp", "--sha256", "--json", "--out", str(out), "--frame", "8KiB")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["streams"]) == 40
    for stream in told["streams"]:
        server = stream["peer"] == "10.0.0.2:80"
        data = streams[stream["peer"] + f" {stream['destination'].rpartition(':')[2]}" * server]
        assert stream["sha256"] == hashlib.sha256(data).hexdigest()
        assert Path(stream["file"]).read_bytes() == data
        assert stream["end"] == "finished"


def test_more_streams_than_files_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "_FILES_MOST", 2)
    capture = Capture()
    data = {port: random.Random(port).randbytes(150_000) for port in range(4000, 4010)}
    for port in data:
        capture.tcp(False, (port, 80), (10, 0), SYN)
    for at in range(0, 150_000, 1000):
        for port, stream in data.items():
            capture.tcp(False, (port, 80), (11 + at, 1), ACK, stream[at : at + 1000])
    path, out = tmp_path / "many.pcap", tmp_path / "out"
    path.write_bytes(capture.bytes)
    taker = taking.Taker(out=out)
    with ingest.pcap(path, follow="tcp", to="cpu", frame="16KiB", connections=3) as receiver:
        while not receiver.ended:
            if (delivery := receiver.next(timeout=1)) is not None:
                taker.take(delivery)
    taker.close()
    for stream in taker.streams.values():
        assert stream.path is not None
        assert stream.path.read_bytes() == data[int(stream.peer.rpartition(":")[2])]
    assert len(taker.streams) == 10


def test_gaps_are_zeros_and_said(tmp_path: Path) -> None:
    capture = Capture()
    data = random.Random(1).randbytes(3000)
    capture.tcp(False, (4000, 80), (10, 0), SYN)
    for begin in (0, 2000):
        capture.tcp(False, (4000, 80), (11 + begin, 1), ACK, data[begin : begin + 1000])
    capture.tcp(True, (4000, 80), (1, 3011), ACK)
    capture.tcp(False, (4000, 80), (3011, 1), FIN | ACK)
    path = tmp_path / "gap.pcap"
    path.write_bytes(capture.bytes)
    with ingest.pcap(path, follow="tcp", to="cpu", frame="64KiB") as receiver:
        frames = list(receiver)
    assert [frame.missing for frame in frames] == [[(1000, 2000)]]
    assert frames[0].missing_bytes == 1000
    assert frames[0].to_host().tobytes() == data[:1000] + bytes(1000) + data[2000:]
    done = _command("pcap", str(path), "--follow", "tcp")
    assert "1,000 bytes are missing from the capture and were replaced by zeros" in " ".join(
        done.stdout.decode().split()
    )
    assert done.returncode == 0


def test_packets_that_were_cut_are_gaps(tmp_path: Path) -> None:
    capture = Capture()
    capture.tcp(False, (4000, 80), (10, 0), SYN)
    capture.tcp(False, (4000, 80), (11, 1), ACK, b"a" * 100, snap=14 + 40 + 30)
    capture.tcp(False, (4000, 80), (111, 1), ACK, b"b" * 100, snap=14 + 40 + 30)
    capture.tcp(False, (4000, 80), (211, 1), FIN | ACK)
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture.bytes)
    receiver = ingest.pcap(path, follow="tcp", to="cpu", frame="64KiB")
    assert _received(receiver) == {"10.0.0.1:4000": b"a" * 30 + bytes(70) + b"b" * 30 + bytes(70)}
    assert receiver.counters()["follow"]["cut_bytes"] == 140


def test_wrong_checksums_can_be_trusted(tmp_path: Path) -> None:
    capture = Capture()
    up, down = random.Random(1).randbytes(5000), random.Random(2).randbytes(5000)
    _talk(capture, 4000, up, down, wrong=True)
    path = tmp_path / "offload.pcap"
    path.write_bytes(capture.bytes)
    done = _command("pcap", str(path), "--follow", "tcp")
    assert "wrong checksums were refused" in " ".join(done.stdout.decode().split())
    trusting = ingest.pcap(path, follow="tcp", to="cpu", trust_checksums=True, frame="1MiB")
    assert _received(trusting) == {"10.0.0.1:4000": up, "10.0.0.2:80 4000": down}


@pytest.mark.parametrize("flags", [SYN | FIN, SYN | FIN | ACK, SYN | RST, SYN | FIN | RST | ACK])
def test_a_syn_that_ends_as_well_divides_no_connection(tmp_path: Path, flags: int) -> None:
    capture = Capture()
    ports = (4000, 80)
    capture.tcp(False, ports, (100, 0), SYN)
    capture.tcp(True, ports, (500, 101), SYN | ACK)
    capture.tcp(False, ports, (101, 501), ACK, b"one ")
    capture.tcp(False, ports, (7000, 501), flags, b"stray")
    capture.tcp(False, ports, (105, 501), ACK, b"stream")
    capture.tcp(False, ports, (111, 501), FIN | ACK)
    path = tmp_path / "syn.pcap"
    path.write_bytes(capture.bytes)
    with ingest.pcap(path, follow="tcp", to="cpu") as receiver:
        assert list(_received(receiver).values()) == [b"one stream"]
        counters = receiver.counters()
    assert counters["follow"]["connections"] == 1
    assert counters["follow"]["malformed"] == (0 if flags & RST else 1)


def test_a_capture_that_is_cut_short_gives_what_it_has(talks: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    whole = talks[0].read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[:-10])
    done = _command("pcap", str(path), "--follow", "tcp", "--json", "--sha256")
    assert done.returncode == 1
    assert b"the file ends inside a packet" in done.stderr
    told = json.loads(done.stdout)
    assert {stream["sha256"] for stream in told["streams"]} == {
        hashlib.sha256(data).hexdigest() for data in talks[1].values()
    }


def _fragments(packet: bytes, each: int, number: int) -> list[bytes]:
    """An Ethernet frame with IPv4, cut into fragments with this much payload."""
    link, ip, payload = packet[:14], packet[14:34], packet[34:]
    made = []
    for at in range(0, len(payload), each):
        part = payload[at : at + each]
        place = at // 8 | (0x2000 if at + each < len(payload) else 0)
        head = ip[:2] + struct.pack("!HHH", 20 + len(part), number, place) + ip[8:10] + b"\0\0" + ip[12:]
        made.append(link + head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + part)
    return made


def test_segments_in_ip_fragments(talks: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    whole = talks[0].read_bytes()
    capture = Capture()
    at, number = 24, 0
    while at < len(whole):
        length = struct.unpack_from("<I", whole, at + 8)[0]
        packet = whole[at + 16 : at + 16 + length]
        parts = _fragments(packet, 400, number % 65536) if length > 500 else [packet]
        for part in reversed(parts):
            capture.add(part)
        at += 16 + length
        number += 1
    path = tmp_path / "fragments.pcap"
    path.write_bytes(capture.bytes)
    receiver = ingest.pcap(path, follow="tcp", to="cpu", frame="64KiB")
    assert _received(receiver) == talks[1]
    assert receiver.counters()["fragments"]["datagrams"] > 100


def test_datagrams_in_ip_fragments(tmp_path: Path) -> None:
    capture = Capture()
    payloads = [random.Random(number).randbytes(3000) for number in range(50)]
    for number, payload in enumerate(payloads):
        data = number.to_bytes(8, "big") + payload
        udp = struct.pack("!HHHH", 4000, 9000, 8 + len(data), 0) + data
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), number, 0, 64, 17, 0) + CLIENT + SERVER
        frame = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + udp
        parts = _fragments(frame, 1480, number)
        if number == 10:
            parts.pop()  # leaves one datagram incomplete
        for part in parts:
            capture.add(part)
    path = tmp_path / "datagrams.pcap"
    path.write_bytes(capture.bytes)
    with ingest.pcap(path, to="cpu", payload_bytes=3000, frame=50 * 3000) as receiver:
        frames = list(receiver)
        counters = receiver.counters()
    assert frames[0].missing_bytes == 3000
    got = frames[0].to_host().tobytes()
    assert all(got[3000 * n : 3000 * (n + 1)] == payload for n, payload in enumerate(payloads) if n != 10)
    assert counters["fragments"]["datagrams"] == 49
    assert counters["fragments"]["incomplete"] == 1
    done = _command("pcap", str(path), "--payload", "3000")
    assert "1 datagrams lack IP fragments" in " ".join(done.stdout.decode().split())


def test_tcp_without_following_says_how(talks: tuple[Path, dict[str, bytes]]) -> None:
    done = _command("pcap", str(talks[0]))
    assert "--follow tcp" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--follow", "udp"), "'udp' is not a protocol to follow"),
        (("--follow", "tcp", "--payload", "100"), "--payload is for datagrams"),
        (("--connections", "3"), "--connections needs --follow tcp"),
        (("--follow", "tcp", "--hold", "1KiB"), "hold_bytes is 1024"),
        (("--follow", "tcp", "--control", "resident"), "No such option: --control"),
    ],
)
def test_options_that_cannot_be(talks: tuple[Path, dict[str, bytes]], arguments: tuple[str, ...], said: str) -> None:
    done = _command("pcap", str(talks[0]), *arguments)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.decode().split())


def test_following_has_no_one_to_answer(talks: tuple[Path, dict[str, bytes]]) -> None:
    with (
        ingest.pcap(talks[0], follow="tcp", to="cpu") as receiver,
        pytest.raises(UsageError, match="between other hosts"),
    ):
        receiver.send(0, b"hello")


def _packers() -> list[str]:
    return ["gzip", *(["zstd"] if shutil.which("zstd") else [])]


def _pack(packer: str, data: bytes) -> bytes:
    if packer == "gzip":
        half = len(data) // 2
        return gzip.compress(data[:half]) + gzip.compress(data[half:])  # two members, as written by pigz and bgzip
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("packer", _packers())
def test_packed_captures(talks: tuple[Path, dict[str, bytes]], tmp_path: Path, packer: str) -> None:
    path, streams = talks
    packed = tmp_path / "packed"
    packed.write_bytes(_pack(packer, path.read_bytes()))
    assert _received(ingest.pcap(packed, follow="tcp", to="cpu", frame="64KiB")) == streams


@pytest.mark.parametrize("packer", _packers())
def test_packed_captures_that_are_cut_or_damaged(
    talks: tuple[Path, dict[str, bytes]], tmp_path: Path, packer: str
) -> None:
    whole = _pack(packer, talks[0].read_bytes())
    path = tmp_path / "packed"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.raises(DataError, match=rf"the file is truncated: it ends in the middle of its {packer} data"):
        _received(ingest.pcap(path, follow="tcp", to="cpu", frame="64KiB"))
    done = _command("pcap", str(path), "--follow", "tcp", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert len(told["streams"]) > 20
    assert sum(stream["end"] == "finished" for stream in told["streams"]) > 20
    bad = bytearray(whole)
    at = len(bad) * 3 // 4
    bad[at : at + 64] = bytes(64)
    path.write_bytes(bad)
    with pytest.raises(DataError):
        _received(ingest.pcap(path, follow="tcp", to="cpu", frame="64KiB"))


@pytest.mark.parametrize("packed", [False, True])
def test_captures_come_through_pipes(talks: tuple[Path, dict[str, bytes]], packed: bool) -> None:
    path, streams = talks
    data = path.read_bytes()
    done = _command("pcap", "-", "--follow", "tcp", "--json", "--sha256", stdin=gzip.compress(data) if packed else data)
    assert done.returncode == 0, done.stderr
    assert {stream["sha256"] for stream in json.loads(done.stdout)["streams"]} == {
        hashlib.sha256(one).hexdigest() for one in streams.values()
    }


def test_a_pipe_may_bring_a_packet_in_parts(talks: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    path, streams = talks
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = path.read_bytes()

    def write() -> None:
        with pipe.open("wb", buffering=0) as to:
            for at in range(0, 3000, 7):
                to.write(data[at : min(at + 7, 3000)])
            to.write(data[3000:])

    writer = threading.Thread(target=write)
    writer.start()
    assert _received(ingest.pcap(pipe, follow="tcp", to="cpu", frame="64KiB")) == streams
    writer.join()


def test_a_silent_pipe_can_be_left(talks: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)  # so that no open() waits for the other end
    os.write(held, talks[0].read_bytes()[:1000])
    with ingest.pcap(pipe, follow="tcp", to="cpu", frame="64KiB") as receiver:
        assert receiver.next(timeout=0.2) is None
        assert not receiver.ended
    kinds = []
    while (delivery := receiver.next(timeout=0)) is not None:
        kinds.append(type(delivery))
    assert receiver.ended
    os.close(held)
