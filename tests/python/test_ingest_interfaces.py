"""Receiving from a network interface, by AF_PACKET and AF_XDP: end to end over a veth pair, like a user.

Each test has its own network, and is skipped without the necessary rights.
"""

import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ingest_network import GUARD_SECONDS, SMALL, started, without
from network_namespace import isolated, make_veth

import headrace
from headrace import ingest

PEER = "10.77.0.2"  # on the right, unknown to the kernel
PAYLOAD = 1464
COUNT = 2000
LAYOUT = {"payload_bytes": PAYLOAD, "frame": 500 * PAYLOAD, "buffers": 8, "timeout": 60.0, "to": "cpu"}


def lacking(error: headrace.Error) -> bool:
    return error.code in (headrace.Errc.no_permission, headrace.Errc.not_supported)


@contextmanager
def datagrams(via: str, **options: Any) -> Iterator[ingest.Receiver]:
    """A receiver on the right; skips the test without the necessary rights."""
    make_veth(options.pop("mtu", 1500))
    given = {"trust_checksums": True} if via == "xdp" else {}
    address = f"{PEER}:9000" if via == "xdp" and "raw_offset" not in options else ":9000"
    try:
        made = ingest.udp(address, via=via, interface="right", **(LAYOUT | given | options))
    except headrace.Error as error:
        if lacking(error):
            pytest.skip(str(error))
        raise
    with made:
        assert made.interface == "right"
        yield made


def take(source: ingest.Receiver, frames: int) -> tuple[list[int], str]:
    """The missing bytes of each of this many frames, and their digest."""
    lacks: list[int] = []
    whole = hashlib.sha256()
    give_up = time.monotonic() + GUARD_SECONDS
    while len(lacks) < frames:
        assert time.monotonic() < give_up, source.counters()
        item = source.next(timeout=0.2)
        if isinstance(item, ingest.Frame):
            lacks.append(item.missing_bytes)
            whole.update(item.numpy())
            item.release()
    return lacks, whole.hexdigest()


@isolated
def test_datagrams_in_fragments():
    """The sender's kernel cuts each datagram into three packets."""
    payload, count = 4000, 500
    with datagrams("packet", payload_bytes=payload, frame=100 * payload) as source:
        sender = ingest.UdpSender(PEER, 9000, count, seed=3, payload_bytes=payload, packets_per_second=2000)
        ingest.send_datagrams(sender)
        lacks, digest = take(source, count // 100)
        source.stop()
        counters = source.counters()
    assert lacks == [0] * (count // 100)
    assert digest == ingest.digest(3, count * payload)
    assert counters["fragments"]["fragments"] == 3 * count
    assert counters["fragments"]["datagrams"] == count


@pytest.mark.parametrize("via", ["packet", "xdp"])
@isolated
def test_numbered_datagrams(via: str):
    with datagrams(via) as source:
        sender = ingest.UdpSender(PEER, 9000, COUNT, seed=3, payload_bytes=PAYLOAD, packets_per_second=10_000)
        ingest.send_datagrams(sender)
        lacks, digest = take(source, COUNT // 500)
        source.stop()
        counters = source.counters()
    assert lacks == [0] * (COUNT // 500)
    assert digest == ingest.digest(3, COUNT * PAYLOAD)
    assert counters["datagrams"]["accepted"] == COUNT
    assert counters["source"]["dropped"] == 0


@pytest.mark.parametrize("via", ["packet", "xdp"])
@isolated
def test_datagrams_of_9000_bytes(via: str):
    """AF_XDP delivers them in parts of 4 KiB, which are reassembled."""
    bytes_each = 8900
    with datagrams(via, mtu=9000, payload_bytes=bytes_each, frame=100 * bytes_each) as source:
        sender = ingest.UdpSender(PEER, 9000, 300, seed=4, payload_bytes=bytes_each, packets_per_second=5_000)
        ingest.send_datagrams(sender)
        lacks, digest = take(source, 3)
    assert lacks == [0] * 3
    assert digest == ingest.digest(4, 300 * bytes_each)


@pytest.mark.parametrize("via", ["packet", "xdp"])
@isolated
def test_raw_packets(via: str):
    """Packets of a custom protocol: the number follows the Ethernet header."""
    kind = 0x88B5  # for experiments (IEEE 802)
    with datagrams(via, raw_offset=14, payload_bytes=1000, frame=50 * 1000) as source:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind(("left", kind))
            head = bytes.fromhex("020000000002") + bytes(6) + kind.to_bytes(2, "big")
            for number in range(200):
                payload = ingest.stream_bytes(5, number * 1000, 1000)
                sender.send(head + number.to_bytes(8, "big") + payload)
                time.sleep(1e-4)
        lacks, digest = take(source, 4)
    assert lacks == [0] * 4
    assert digest == ingest.digest(5, 200 * 1000)


@pytest.mark.parametrize("control", ["host", "resident"])
@isolated
def test_tcp_by_xdp(control: str):
    """At an address that the kernel does not have, on an interface that it has."""
    make_veth()
    count = 20_000_001
    try:
        source = ingest.tcp(
            f"{PEER}:9000", interface="right", trust_checksums=True, to="cpu", frame="1MiB", control=control
        )
    except headrace.Error as error:
        if lacking(error):
            pytest.skip(str(error))
        raise
    with source:
        assert (source.address, source.interface) == (f"{PEER}:9000", "right")
        sender = ingest.TcpSender(PEER, 9000, seed=6)
        sending = threading.Thread(target=lambda: (ingest.send(sender, count), sender.finish()), daemon=True)
        sending.start()
        whole = hashlib.sha256()
        give_up = time.monotonic() + GUARD_SECONDS
        item = None
        while not isinstance(item, ingest.StreamEnded):
            assert time.monotonic() < give_up, source.counters()
            item = source.next(timeout=0.2)
            if isinstance(item, ingest.Frame):
                whole.update(item.numpy())
                item.release()
        sending.join(GUARD_SECONDS)
    assert (item.reason, item.bytes) == ("finished", count)
    assert whole.hexdigest() == ingest.digest(6, count)


@pytest.mark.parametrize(
    "arguments",
    [
        ("udp", ":9000", "--via", "packet", "--promiscuous"),
        ("udp", f"{PEER}:9000", "--via", "xdp", "--trust-checksums"),
        ("tcp", f"{PEER}:9000", "--trust-checksums"),
    ],
    ids=["packet", "xdp", "tcp"],
)
@isolated
def test_the_command(arguments: tuple[str, ...]):
    make_veth()
    tcp = "tcp" in arguments
    ends = ("--streams", 1) if tcp else ("--frames", 4, "--timeout", "60s")
    with started(*arguments, "--interface", "right", *SMALL, *ends, "--sha256", "--json") as verb:
        assert "(right)" in verb.title
        if "--promiscuous" in arguments:
            shown = subprocess.run(["ip", "-d", "link", "show", "right"], check=True, capture_output=True, text=True)
            assert "promiscuity 1" in shown.stdout
        frame = (256 << 10) // PAYLOAD * PAYLOAD
        if tcp:
            sender = ingest.TcpSender(PEER, 9000, seed=7)
            ingest.send(sender, 4 * frame)
            sender.finish()
        else:
            packets = 4 * frame // PAYLOAD
            datagram_sender = ingest.UdpSender(
                PEER, 9000, packets, seed=7, payload_bytes=PAYLOAD, packets_per_second=10_000
            )
            ingest.send_datagrams(datagram_sender)
        done = verb.finish()
    assert done.returncode == 0, done.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["sha256"] == ingest.digest(7, 4 * frame)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("udp", f"{PEER}:9000", "--via", "xdp"), "had a wrong UDP checksum"),
        (("tcp", f"{PEER}:9000"), "every packet has a wrong checksum"),
    ],
    ids=["udp", "tcp"],
)
@isolated
def test_checksums_that_a_veth_leaves_out_are_named(arguments: tuple[str, ...], says: str):
    make_veth()
    with started(*arguments, "--interface", "right", *SMALL, "--duration", "2s") as verb:
        if "tcp" in arguments:
            with socket.socket() as sender:
                sender.settimeout(1.5)
                with pytest.raises(TimeoutError):
                    sender.connect((PEER, 9000))
        else:
            sender = ingest.UdpSender(PEER, 9000, 100, payload_bytes=PAYLOAD)
            ingest.send_datagrams(sender)
        done = verb.finish()
    assert says in " ".join(done.stdout.split())
    assert "--trust-checksums" in done.stdout


@isolated
def test_an_interface_that_goes_ends_the_receiver_with_an_error():
    with datagrams("packet") as source:
        subprocess.run(["ip", "link", "delete", "left"], check=True)
        with pytest.raises(headrace.SystemError, match="Network is down"):
            source.next(timeout=GUARD_SECONDS)
        assert source.ended


@isolated
def test_another_program_at_the_interface_is_named():
    with datagrams("xdp"), pytest.raises(headrace.SystemError, match="another"):
        ingest.udp(f"{PEER}:9000", via="xdp", interface="right", **LAYOUT)


@pytest.mark.parametrize("via", ["packet", "xdp"])
@isolated
def test_an_interface_that_is_down_is_named(via: str):
    with datagrams(via):
        pass  # the necessary rights are present
    subprocess.run(["ip", "link", "set", "right", "down"], check=True)
    with pytest.raises(headrace.SystemError, match="right is down; bring it up first"):
        ingest.udp(f"{PEER}:9000", via=via, interface="right", **LAYOUT)


@isolated
def test_what_cannot_be_says_so():
    make_veth()

    def says(words: str) -> Any:
        return pytest.raises(headrace.UsageError, match=words)

    for via in ("packet", "xdp"):
        with says("there is no network interface 'nowhere0'; this machine has: lo"):
            ingest.udp(f"{PEER}:9000", via=via, interface="nowhere0", **LAYOUT)
        with says(f"via='{via}' needs an interface"):
            ingest.udp(f"{PEER}:9000", via=via, **LAYOUT)
    with says("there is no network interface 'nowhere0'"):
        ingest.tcp(f"{PEER}:9000", interface="nowhere0", to="cpu")
    for address in ("10.77.0.1:9000", ":9000"):
        with says("an address that is not the kernel's"):
            ingest.tcp(address, interface="right", to="cpu")
    with says("::1 is not an IPv4 address"):
        ingest.udp("[::1]:9000", via="xdp", interface="right", **LAYOUT)
    with says("trust_checksums is for via='xdp', not for 'packet'"):
        ingest.udp(":9000", via="packet", interface="right", trust_checksums=True, **LAYOUT)
    with says("promiscuous is for via='packet', not for 'socket'"):
        ingest.udp(":9000", promiscuous=True, **LAYOUT)
    with says("trust_checksums needs an interface"):
        ingest.tcp(":9000", trust_checksums=True, to="cpu")


@pytest.mark.parametrize(
    ("lacks", "names", "arguments"),
    [
        (("net_raw",), "CAP_NET_RAW", ("udp", ":9000", "--via", "packet")),
        (("net_raw",), "CAP_NET_RAW", ("udp", f"{PEER}:9000", "--via", "xdp")),
        (("net_raw",), "CAP_NET_RAW", ("tcp", f"{PEER}:9000")),
        (("net_admin", "sys_admin", "bpf"), "CAP_NET_ADMIN", ("udp", f"{PEER}:9000", "--via", "xdp")),
    ],
)
@isolated
def test_a_right_that_is_lacking_is_named(lacks: tuple[str, ...], names: str, arguments: tuple[str, ...]):
    command = without(*lacks)
    make_veth()
    where = ("--interface", "right", *SMALL)
    done = subprocess.run(
        [*command, sys.executable, "-m", "headrace", "ingest", *arguments, *where],
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_SECONDS,
    )
    if "libxdp-dev" in done.stderr:
        pytest.skip("built without AF_XDP")
    assert done.returncode == 1
    assert names in done.stderr
    assert done.stderr.startswith("headrace: error: ")
    assert len(done.stderr.splitlines()) == 1


@isolated
def test_a_timeout_that_is_shorter_than_a_pause_loses_nothing():
    """A frame takes longer to arrive than the timeout for its datagrams: the following ones are late."""
    make_veth()
    frame_packets = (256 << 10) // PAYLOAD
    how = ("--timeout", "1ms", "--frames", 2, "--interval", "100ms")
    with (
        started("udp", ":9000", "--via", "packet", "--interface", "right", *SMALL, *how) as verb,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):

        def send(numbers: range) -> None:
            for number in numbers:
                sender.sendto(number.to_bytes(8, "big") + bytes(PAYLOAD), (PEER, 9000))

        send(range(1))
        assert verb.process.stdout is not None
        while "frames 1" not in (line := verb.process.stdout.readline()):  # its timeout closed it
            assert line, "the verb has ended"
        send(range(1, 2 * frame_packets))
        done = verb.finish()
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "gaps 0, resent 0, dropped 0" in said
    assert "arrived after" not in said
