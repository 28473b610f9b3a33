"""`headrace ingest` as a user runs it."""

import hashlib
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from captures import NUMBERED, capture
from conftest import Run
from ingest_network import GUARD_SECONDS, SMALL, started, without
from network_namespace import devices, isolated

from headrace import ingest


def send(address: str, count: int, seed: int = 1) -> None:
    sender = ingest.TcpSender(*ingest.resolve(address), seed=seed)
    ingest.send(sender, count, wait=False)
    sender.finish()


def test_synthetic_packets_as_json(run: Run):
    done = run("ingest", "synthetic", "8992B", "--packets", 1000, "--seed", 5, "--sha256", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["ended_by"] == "source"
    assert content["bytes"] == 1000 * 8992
    (stream,) = content["streams"]
    assert stream["bytes"] == 1000 * 8992
    assert stream["sha256"] == ingest.digest(5, 1000 * 8992)
    assert content["counters"]["source"]["packets"] == 1000
    assert "Making packets of 8,992 bytes: frames of 256 KiB to cpu" in done.stderr


def test_figures_for_people(run: Run):
    done = run("ingest", "synthetic", "1464B", "--packets", 500, "--sha256", *SMALL, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert f"{ingest.digest(1, 500 * NUMBERED)}  stream 0" in done.stdout
    assert "Gb/s" in done.stdout
    assert "gaps 0" in done.stdout


def test_frames_and_duration_end_it(run: Run):
    done = run("ingest", "synthetic", "8992B", "--frames", 3, "--json", *SMALL)
    assert json.loads(done.stdout)["ended_by"] == "frames"
    assert json.loads(done.stdout)["streams"][0]["frames"] == 3
    done = run("ingest", "synthetic", "8992B", "--duration", "300ms", "--rate", "10K", "--json", *SMALL)
    assert json.loads(done.stdout)["ended_by"] == "duration"
    assert done.returncode == 0


def test_intervals_are_json_lines(run: Run):
    done = run("ingest", "synthetic", "100B", "--rate", "5K", "--duration", "1s", "--interval", "100ms", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 3
    assert "streams" in lines[-1]
    assert all("streams" not in line for line in lines[:-1])
    assert lines[0]["total"]["packets"] <= lines[-2]["total"]["packets"] <= lines[-1]["packets"]
    said = run("ingest", "synthetic", "100B", "--rate", "5K", "--duration", "500ms", "--interval", "100ms").stdout
    assert " s  Gb/s " in said.splitlines()[0]


def test_a_capture(run: Run, tmp_path: Path):
    path = tmp_path / "one.pcap"
    capture(path, list(range(400)))
    done = run("ingest", "pcap", path, "--sha256", "--out", tmp_path / "out", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["sha256"] == ingest.digest(3, 400 * NUMBERED)
    assert stream["missing_bytes"] == 0
    assert (tmp_path / "out").read_bytes() == ingest.stream_bytes(3, 0, 400 * NUMBERED)
    done = run("ingest", "pcap", path, "--port", 9001, *SMALL)
    assert "400 packets were refused: 400 went to another port" in done.stdout
    assert_unused(done, 400)


def assert_unused(done: subprocess.CompletedProcess[str], packets: int) -> None:
    """The command failed because it used no packet of a capture, and says so in a line."""
    assert done.returncode == 1
    assert f"the capture has {packets} packets, but no stream was found in them: check --port" in done.stderr


def test_a_capture_of_which_nothing_is_used_is_an_error(run: Run, tmp_path: Path):
    path = tmp_path / "one.pcap"
    capture(path, list(range(40)))
    done = run("ingest", "pcap", path, "--follow", "tcp", "--json", "--frame", "64KiB", "--to", "cpu")
    assert json.loads(done.stdout)["streams"] == []
    assert_unused(done, 40)
    path.write_bytes(path.read_bytes()[:24])  # a capture without packets has nothing to refuse
    done = run("ingest", "pcap", path, *SMALL)
    assert done.returncode == 0, done.stderr


def test_refused_packets_are_told_by_reason(run: Run, tmp_path: Path):
    path = tmp_path / "odd.pcap"
    capture(path, list(range(40)))
    data = bytearray(path.read_bytes())
    size = (len(data) - 24) // 40
    data[24 + 16 + 8 : 24 + 16 + 12] = bytes(4)  # the first packet: no protocol, and therefore a wrong checksum
    for packet in (1, 2):
        data[24 + packet * size + 8] -= 1  # captured only in part
    path.write_bytes(data[: 24 + size] + data[24 + 3 * size :])
    done = run("ingest", "pcap", path, "--payload", NUMBERED // 2, "--from", "10.0.0.1", *SMALL)
    assert_unused(done, 38)
    assert "40 packets" not in done.stdout
    assert "38 packets were refused: 37 had more payload than --payload, 1 had a wrong IP checksum" in done.stdout
    assert "--trust-checksums" in done.stdout
    done = run("ingest", "pcap", path, "--from", "10.0.0.2", "--json", "--prometheus", tmp_path / "a.prom", *SMALL)
    assert json.loads(done.stdout)["counters"]["refused"]["other_sender"] == 37
    assert re.search(r"refused_other_sender_total\{.*\} 37\.0", (tmp_path / "a.prom").read_text())


def test_short_datagrams_are_zeros_and_told(run: Run, tmp_path: Path):
    path = tmp_path / "short.pcap"
    capture(path, list(range(50)))
    digests = set()
    for buffers in (2, 3, 8):
        how = ("--payload", NUMBERED + 20, "--frame", 4 * (NUMBERED + 20), "--buffers", buffers, "--to", "cpu")
        done = run("ingest", "pcap", path, "--sha256", "--out", tmp_path / "out", "--json", *how)
        (stream,) = json.loads(done.stdout)["streams"]
        assert (stream["missing_bytes"], stream["short_packets"]) == (0, 50)
        assert stream["bytes"] == 50 * NUMBERED + 49 * 20
        digests.add(stream["sha256"])
        file = (tmp_path / "out").read_bytes()
        assert file.startswith(bytes(ingest.stream_bytes(3, 0, NUMBERED)) + bytes(20))
        assert len(file) == stream["bytes"]
        assert hashlib.sha256(file).hexdigest() == stream["sha256"]
    assert len(digests) == 1
    done = run("ingest", "pcap", path, *how)
    assert "50 datagrams were shorter than --payload" in done.stdout


def test_rtp_is_said_by_options(run: Run, tmp_path: Path):
    path = tmp_path / "rtp.pcap"
    capture(path, list(range(300)))  # numbers of eight bytes: the last two count, followed by two more header bytes
    how = ("--payload", NUMBERED - 2, "--number-offset", 6, "--number-width", 2, "--header-bytes", 10)
    done = run("ingest", "pcap", path, "--out", tmp_path / "out", "--json", *how, "--to", "cpu")
    assert done.returncode == 0, done.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["missing_bytes"] == 0
    whole = ingest.stream_bytes(3, 0, 300 * NUMBERED)
    want = b"".join(bytes(whole[n * NUMBERED + 2 : (n + 1) * NUMBERED]) for n in range(300))
    assert (tmp_path / "out").read_bytes() == want
    done = run("ingest", "pcap", path, *how, "--frame", "64MiB", "--to", "cpu")
    assert done.returncode == 2
    assert "use frames of at most 16384 datagrams" in done.stderr
    little = ("--number-width", 1, "--number-offset", 7, "--little-endian", "--window-frames", 3)
    done = run("ingest", "pcap", path, "--payload", NUMBERED, *little, "--json", "--to", "cpu")
    assert json.loads(done.stdout)["streams"][0]["missing_bytes"] == 0


def test_missing_datagrams_are_zeros_in_the_file(run: Run, tmp_path: Path):
    path = tmp_path / "gaps.pcap"
    lost = {5, 6, 100}
    capture(path, [number for number in range(200) if number not in lost])
    done = run("ingest", "pcap", path, "--out", tmp_path / "out", "--json", "--frame", 50 * NUMBERED, "--to", "cpu")
    assert done.returncode == 0, done.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["missing_bytes"] == 3 * NUMBERED
    expected = bytearray(ingest.stream_bytes(3, 0, 200 * NUMBERED))
    for number in lost:
        expected[number * NUMBERED : (number + 1) * NUMBERED] = bytes(NUMBERED)
    assert (tmp_path / "out").read_bytes() == bytes(expected)


def test_a_stream_ends_with_the_last_datagram(run: Run, tmp_path: Path):
    path = tmp_path / "ends.pcap"
    capture(path, [number for number in range(130) if number != 110])
    done = run("ingest", "pcap", path, "--out", tmp_path / "out", "--json", "--frame", 50 * NUMBERED, "--to", "cpu")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    (stream,) = content["streams"]
    assert (stream["bytes"], stream["missing_bytes"]) == (130 * NUMBERED, NUMBERED)
    assert content["gaps"] == 1
    expected = bytearray(ingest.stream_bytes(3, 0, 130 * NUMBERED))
    expected[110 * NUMBERED : 111 * NUMBERED] = bytes(NUMBERED)
    assert (tmp_path / "out").read_bytes() == bytes(expected)


def test_a_stream_over_udp_ends_with_the_last_datagram():
    frames = ("--to", "cpu", "--frame", 50 * NUMBERED, "--frames", 3, "--timeout", "2s")
    with started("udp", "127.0.0.1:0", "--sha256", "--json", *frames) as verb:
        sender = ingest.UdpSender(
            *ingest.resolve(verb.address), 130, seed=4, payload_bytes=NUMBERED, packets_per_second=5000
        )
        ingest.send_datagrams(sender)
        done = verb.finish()  # the timeout closes the third frame
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    (stream,) = content["streams"]
    assert (stream["bytes"], stream["missing_bytes"]) == (130 * NUMBERED, 0)
    assert stream["sha256"] == ingest.digest(4, 130 * NUMBERED)
    assert content["gaps"] == 0


def test_speed_keeps_the_gaps_of_a_capture(run: Run, tmp_path: Path):
    path = tmp_path / "slow.pcap"
    capture(path, [0])
    second = path.read_bytes()[24:]
    late = struct.pack("<II", 2, 500_000) + second[8:16] + second[16:44] + second[44:]
    path.write_bytes(path.read_bytes() + late)
    began = time.monotonic()
    assert run("ingest", "pcap", path, "--speed", 1, *SMALL).returncode == 0
    assert time.monotonic() - began >= 1.4


@pytest.mark.parametrize("control", ["host", "resident"])
@isolated
def test_tcp_to_files(tmp_path: Path, control: str):
    out = tmp_path / "stream"
    arguments = ("--out", out, "--sha256", "--streams", 2, "--json", "--control", control, *SMALL)
    with started("tcp", ":9000", *arguments) as verb:
        for seed in (1, 2):
            send(verb.address, 3_000_000 + seed, seed)
        done = verb.finish()
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["control"] == control
    assert content["ended_by"] == "streams"
    assert content["round_trip"] > 0
    assert [stream["end"] for stream in content["streams"]] == ["finished", "finished"]
    for stream in content["streams"]:
        seed = 1 + stream["stream"]
        assert stream["sha256"] == ingest.digest(seed, 3_000_000 + seed)
        file = out if seed == 1 else tmp_path / "stream.1"
        assert stream["file"] == str(file)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == stream["sha256"]
    assert devices() == ["lo"]


@isolated
def test_the_command_line_sends_what_the_command_line_receives(run: Run):
    with started("tcp", "10.9.8.7:9000", "--streams", 1, "--sha256", "--json", *SMALL) as verb:
        assert verb.address == "10.9.8.7:9000"
        sent = run("ingest", "send", "tcp", "10.9.8.7:9000", "--bytes", "8MiB", "--sha256", "--json")
        done = verb.finish()
    assert json.loads(done.stdout)["streams"][0]["sha256"] == json.loads(sent.stdout)["sha256"]


@isolated
def test_a_bad_network():
    bad = ("--no-offloads", "--faults", "loss=0.02,reordering=0.02,duplication=0.01")
    with started("tcp", ":9000", *bad, "--streams", 1, "--sha256", "--json", *SMALL) as verb:
        send(verb.address, 4_000_000)
        done = verb.finish()
    content = json.loads(done.stdout)
    assert content["streams"][0]["sha256"] == ingest.digest(1, 4_000_000)
    assert content["gaps"] > 0
    assert content["sent_again"] > 0


@isolated
def test_ctrl_c_ends_it_with_totals_and_without_a_device():
    with started("tcp", ":9000", *SMALL) as verb:
        assert len(devices()) == 2
        host, port = ingest.resolve(verb.address)
        with socket.create_connection((host, port), timeout=GUARD_SECONDS) as connection:
            connection.sendall(ingest.stream_bytes(1, 0, 1_000_000))
            give_up = time.monotonic() + GUARD_SECONDS
            while ingest_outstanding(connection) > 0:
                assert time.monotonic() < give_up
                time.sleep(0.01)
            verb.process.send_signal(signal.SIGINT)
            done = verb.finish()
    assert done.returncode == 130
    assert "Gb/s" in done.stdout
    assert "976 KiB" in done.stdout or "977 KiB" in done.stdout
    assert "Traceback" not in done.stderr
    assert devices() == ["lo"]


def ingest_outstanding(connection: socket.socket) -> int:
    """Bytes that the peer has not acknowledged."""
    import array  # noqa: PLC0415
    import fcntl  # noqa: PLC0415

    count = array.array("i", [0])
    siocoutq = 0x5411
    fcntl.ioctl(connection, siocoutq, count)
    return count[0]


@isolated
def test_prometheus_while_it_runs(tmp_path: Path):
    path = tmp_path / "x.prom"
    with started("tcp", ":9000", "--prometheus", "19100", *SMALL) as verb:
        send(verb.address, 1_000_000)
        give_up = time.monotonic() + GUARD_SECONDS
        text = ""
        while "headrace_ingest_tcp_bytes_total" not in text or " 1e+06" not in text:
            assert time.monotonic() < give_up, text
            with urllib.request.urlopen("http://127.0.0.1:19100/metrics", timeout=60) as answer:
                text = answer.read().decode()
        verb.process.send_signal(signal.SIGINT)
        assert verb.finish().returncode == 130
    with started("tcp", ":9000", "--prometheus", path, "--streams", 1, *SMALL) as verb:
        send(verb.address, 1_000_000)
        assert verb.finish().returncode == 0
    assert "headrace_ingest_tcp_bytes_total" in path.read_text()
    assert " 1e+06" in path.read_text()


@pytest.mark.parametrize(
    ("capability", "arguments"),
    [
        ("net_admin", ("tcp", ":9000")),
        ("net_raw", ("udp", ":9000", "--via", "packet", "--interface", "lo")),
    ],
)
def test_a_right_that_is_lacking_is_named(capability: str, arguments: tuple[str, ...]):
    command = [*without(capability), sys.executable, "-m", "headrace", "ingest", *arguments, *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GUARD_SECONDS)
    assert done.returncode == 1
    assert f"CAP_{capability.upper()}" in done.stderr
    assert done.stderr.startswith("headrace: error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ((), 2, "Missing command"),
        (("tcp",), 2, "ADDRESS:PORT"),
        (("tcp", ":9000", "udp", ":9000"), 2, "unexpected extra argument"),
        (("tcp", "9000"), 2, "not an address with a port"),
        (("tcp", ":99999"), 2, "not an address with a port"),
        (("tcp", "banana:9000"), 2, "banana"),
        (("udp", "10.255.255.254:9000"), 1, "10.255.255.254"),
        (("udp", ":9000", "--via", "packet", "--interface", "nowhere0"), 2, "nowhere0"),
        (("udp", ":9000", "--via", "pigeon"), 2, "pigeon"),
        (("udp", ":9000", "--mtu", "1500"), 2, "No such option: --mtu"),
        (("synthetic", "100B", "--payload", "5"), 2, "No such option: --payload"),
        (("udp", ":9000", "--control", "resident"), 2, "No such option: --control"),
        (("tcp", ":9000", "--control", "moon"), 2, "'moon' is not a control: host, resident"),
        (
            ("tcp", ":9000", "--control", "resident", "--frame", "1TiB"),
            2,
            "4 frames of 1,099,511,627,776 bytes of each of 64 connections",
        ),
        (("udp", ":9000", "--payload", "0"), 2, "--payload"),
        (("udp", ":9000", "--number-offset", "1464"), 2, "fills a datagram of 1,472"),
        (("synthetic", "0B"), 2, "SIZE must be at least 1 byte"),
        (("synthetic", "90000B"), 2, "90000, but must be 1 to 65,535"),
        (("synthetic", "100B", "--frame", "0"), 2, "--frame must be at least 1 byte"),
        (("synthetic", "100B", "--frame", "banana"), 2, "banana"),
        (("synthetic", "100B", "--frame", "-5"), 2, "-5"),
        (("synthetic", "100B", "--frame", "1000TiB"), 2, "use a smaller --frame"),
        (("tcp", ":9000", "--frame", "1TiB"), 2, "4 frames of 1,099,511,627,776 bytes of each connection"),
        (("synthetic", "100B", "--to", "cuda:99"), 2, "cuda:99"),
        (("synthetic", "100B", "--way", "teleport"), 2, "teleport"),
        (("synthetic", "100B", "--faults", "loss=2"), 2, "from 0 to 1, not 2"),
        (("synthetic", "100B", "--faults", "gremlins=0.1"), 2, "gremlins"),
        (("synthetic", "100B", "--faults", "loss"), 2, "not a fault with its probability"),
        (("synthetic", "100B", "--prometheus", "x.txt"), 2, "neither a port"),
        (("synthetic", "100B", "--out", "/nowhere/x"), 1, "there is no folder /nowhere to write x to"),
        (("synthetic", "100B", "--duration", "5"), 2, "time above 0 with a unit"),
        (("pcap", "/nowhere/x.pcap"), 1, "/nowhere/x.pcap"),
    ],
)
def test_bad_input_gets_a_clear_error(run: Run, arguments: tuple[str, ...], status: int, says: str):
    done = run("ingest", *arguments, *(("--to", "cpu") if "--to" not in arguments and len(arguments) > 1 else ()))
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("headrace: error: ")


@isolated
def test_a_subnet_that_clashes_is_refused(run: Run):
    subprocess.run(["ip", "link", "add", "wire", "type", "veth"], check=True)
    subprocess.run(["ip", "addr", "add", "10.44.0.1/24", "dev", "wire"], check=True)
    subprocess.run(["ip", "link", "set", "wire", "up"], check=True)
    done = run("ingest", "tcp", "10.44.0.2:9000", *SMALL)
    assert done.returncode == 2
    assert "10.44.0." in done.stderr


@isolated
def test_an_address_in_use_is_refused(run: Run):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 9000))
        done = run("ingest", "udp", "127.0.0.1:9000", *SMALL)
    assert done.returncode == 1
    assert "in use" in done.stderr


def test_a_damaged_capture_says_where(run: Run, tmp_path: Path):
    path = tmp_path / "cut.pcap"
    capture(path, list(range(10)), cut=700)
    done = run("ingest", "pcap", path, "--json", *SMALL)
    assert done.returncode == 1
    assert f"{path}: byte " in done.stderr
    assert json.loads(done.stdout)["ended_by"] == "error"
    assert json.loads(done.stdout)["counters"]["source"]["packets"] == 9
    path.write_bytes(b"PNG is not a capture, is it?")
    done = run("ingest", "pcap", path, *SMALL)
    assert done.returncode == 1
    assert str(path) in done.stderr
    capture(path, [1], link=147)
    done = run("ingest", "pcap", path, *SMALL)
    assert done.returncode == 1
    assert "147" in done.stderr


def test_the_other_verbs_go_on(run: Run):
    assert run("ingest", "model").returncode == 0
    helped = run("ingest", "--help")
    assert helped.returncode == 0
    for word in ("tcp", "udp", "pcap", "synthetic", "send", "model"):
        assert word in helped.stdout


@pytest.mark.parametrize("when", ["waiting", "large frames"])
def test_ctrl_c_ends_it_soon(when: str):
    rate = ("--rate", "10") if when == "waiting" else ("--frame", "512MiB", "--buffers", "2", "--sha256")
    command = [sys.executable, "-m", "headrace", "ingest", "synthetic", "8992B", "--to", "cpu", *rate, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Making")
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    killer = threading.Timer(GUARD_SECONDS, process.kill)
    killer.start()
    out, err = process.communicate()
    killer.cancel()
    assert process.returncode == 130, err
    assert json.loads(out)["interrupted"]
