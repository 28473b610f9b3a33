"""Where receivers listen: IPv6, and the same address again; and receivers whose interface is deleted."""

import hashlib
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from ingest_network import GUARD_SECONDS, SMALL, started
from ingest_serving import connect, serving, until
from network_namespace import devices, isolated, make_veth

import headrace
from headrace import ingest

SIX = "[fd00:9::2]:9000"


def tcp(address: str, **options: object) -> ingest.Receiver:
    """Like receiver(), at an address; skips the test without the necessary rights or without IPv6."""
    try:
        return ingest.tcp(address, **{"frame": "64KiB", "to": "cpu", "ring": "16MiB"} | options)  # type: ignore[arg-type]
    except headrace.Error as error:
        if error.code in (headrace.Errc.no_permission, headrace.Errc.not_supported):
            pytest.skip(str(error))
        raise


def received(source: ingest.Receiver, streams: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while streams:
        item = source.next(timeout=GUARD_SECONDS)
        assert item is not None, source.counters()
        if isinstance(item, ingest.Frame):
            found[item.stream] = found.get(item.stream, b"") + item.numpy().tobytes()
        elif isinstance(item, ingest.StreamEnded):
            assert item.reason == "finished"
            streams -= 1
    return found


@pytest.mark.parametrize("control", ["host", "resident"])
@isolated
def test_ipv6_from_linux_senders(control: str):
    data = ingest.stream_bytes(2, 0, 3_000_001)
    with tcp(SIX, control=control, connections=3, frame="1MiB") as source:
        assert source.address == SIX
        for _ in range(2):
            with connect(source) as connection:
                connection.sendall(data)
        if shutil.which("nc") is not None:
            subprocess.run(["nc", "-6", "-N", "fd00:9::2", "9000"], input=data, check=True, timeout=GUARD_SECONDS)
        streams = received(source, 2 + (shutil.which("nc") is not None))
        assert set(streams.values()) == {data}
        assert source.counters()["tcp"]["unparsed"] == 0


@isolated
def test_ipv6_over_a_bad_network_names_its_peer():
    data = ingest.stream_bytes(3, 0, 500_000)
    faults = ingest.Faults(loss=0.02, reordering=0.02, corruption=0.01, loss_sent=0.02, seed=5)
    with tcp("[::]:9000", offloads=False, faults=faults, open_at_first_byte=False) as source:
        assert source.address == "[2001:2::2]:9000"
        with connect(source) as connection:
            opened = source.next(timeout=GUARD_SECONDS)
            assert isinstance(opened, ingest.StreamOpened)
            assert opened.peer == f"[2001:2::1]:{connection.getsockname()[1]}"
            connection.sendall(data)
        assert received(source, 1) == {0: data}


@isolated
def test_the_command_and_its_sender_speak_ipv6():
    with started("tcp", SIX, "--streams", 1, "--sha256", "--json", *SMALL) as verb:
        assert verb.address == SIX
        command = [sys.executable, "-m", "headrace", "ingest", "send", "tcp", SIX, "--bytes", "3MB", "--sha256"]
        sent = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=GUARD_SECONDS, check=True)
        done = json.loads(verb.finish().stdout)
    assert done["address"] == SIX
    assert done["streams"][0]["sha256"] == json.loads(sent.stdout)["sha256"]


@isolated
def test_uploads_and_iperf3_over_ipv6(tmp_path: Path):
    for tool in ("curl", "iperf3"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")
    path = tmp_path / "file"
    path.write_bytes(ingest.stream_bytes(4, 0, 200_000))
    with tcp(SIX) as source, serving(source, ingest.HttpUploads(source)) as served:
        subprocess.run(["curl", "-sS", "-g", "-T", str(path), f"http://{SIX}/x"], check=True, timeout=GUARD_SECONDS)
        until(lambda: served.taker.ended == 1)
        stream = served.taker.streams[0]
        assert stream.hash.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    with tcp(SIX) as source:
        server = ingest.Iperf3Server(source)
        with serving(source, server):
            client = ["iperf3", "-c", "fd00:9::2", "-p", "9000", "-n", "2M", "--json"]
            done = subprocess.run(client, capture_output=True, text=True, timeout=GUARD_SECONDS, check=True)
    end = json.loads(done.stdout)["end"]
    assert end["sum_received"]["bytes"] == end["sum_sent"]["bytes"] >= 2 << 20


@isolated
def test_two_receivers_at_addresses_of_both_kinds():
    with tcp(SIX) as six, tcp("10.9.0.2:9000") as four, tcp("[::]:9000") as chosen:
        for source in (six, four, chosen):
            with connect(source) as connection:
                connection.sendall(source.address.encode())
        for source in (six, four, chosen):
            assert received(source, 1) == {0: source.address.encode()}


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("fd00:9::2:9000", "not an address with a port"),
        ("[fd00:9::2]", "not an address with a port"),
        ("[fd00:9::2:9000", "not an address with a port"),
        ("[fd00:9::2]:0", "not an address with a port"),
        ("[fd00:9::2]:90000", "not an address with a port"),
        ("[fd00:9::xyz]:9000", "not an IPv4 or IPv6 address"),
        ("[fe80::2]:9000", "link-local"),
        ("[::1]:9000", "loopback"),
        ("[ff02::5]:9000", "multicast"),
        ("[::ffff:10.0.0.2]:9000", "give the IPv4 address"),
    ],
)
def test_addresses_that_cannot_be(run: Run, address: str, says: str):
    with pytest.raises(headrace.UsageError, match=says):
        ingest.tcp(address, to="cpu", frame="64KiB")
    done = run("ingest", "tcp", address, *SMALL)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@isolated
def test_small_packets_cannot_carry_ipv6():
    with pytest.raises(headrace.UsageError, match="the MTU for IPv6 must be from 1280"):
        ingest.tcp(SIX, mtu=1000, to="cpu", frame="64KiB")


@pytest.mark.parametrize("address", ["198.18.0.2:9000", SIX])
@isolated
def test_the_same_address_again_while_frames_are_held(address: str):
    held: list[object] = []
    arrays = []
    for number in range(3):
        with tcp(address, name="again", open_at_first_byte=False) as source:
            assert source.address == address
            with connect(source) as connection:
                source.next(timeout=GUARD_SECONDS)
                source.peek(0, 0)
                connection.sendall(bytes([number]) * 70_000)
                held += [source, ingest.messages(source)]
                item = None
                while not isinstance(item, ingest.Frame):
                    item = source.next(timeout=GUARD_SECONDS)
                    assert item is not None
                    held.append(item)  # the first frame, and perhaps part of it
                arrays.append(item.numpy())
            assert source.interface == "again"
            packets = source.counters()["source"]["packets"]
        assert "again" not in devices()
        assert source.counters()["source"]["packets"] >= packets, "counters stay"
        assert source.ended or source.next(timeout=GUARD_SECONDS) is not None
    assert [array[0] for array in arrays] == [0, 1, 2]


@isolated
def test_udp_at_the_same_address_again():
    held = []
    for _ in range(2):
        with ingest.udp("127.0.0.1:9123", payload_bytes=92, frame=92, to="cpu") as source:
            sender = ingest.UdpSender("127.0.0.1", 9123, 1, payload_bytes=92)
            ingest.send_datagrams(sender)
            held += [source, source.next(timeout=GUARD_SECONDS), source.next(timeout=GUARD_SECONDS)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", 9123))


@pytest.mark.parametrize("via", ["packet", "xdp"])
@isolated
def test_an_interface_again_and_one_that_is_deleted(via: str):
    make_veth()
    held = []
    try:
        for _ in range(2):
            with ingest.udp(":9000", via=via, interface="right", to="cpu", frame="64KiB") as source:
                held.append(source)
        source = ingest.udp(":9000", via=via, interface="right", to="cpu", frame="64KiB")
    except headrace.Error as error:
        if error.code in (headrace.Errc.no_permission, headrace.Errc.not_supported):
            pytest.skip(str(error))
        raise
    with source:
        subprocess.run(["ip", "link", "del", "left"], check=True)
        with pytest.raises(headrace.SystemError, match="the network interface right has been deleted"):
            source.next(timeout=GUARD_SECONDS)


@isolated
def test_a_deleted_device_is_named_by_the_command():
    with started("tcp", ":9000", "--json", *SMALL) as verb:
        subprocess.run(["ip", "link", "del", "headrace0"], check=True)
        done = verb.finish()
    assert done.returncode == 1
    assert "the network device headrace0 has been deleted" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
