"""Rights needed only to open a source are dropped: by the command, and by programs on request."""

import json
import os
import re
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ingest_network import GUARD_SECONDS, SMALL, Started, started
from network_namespace import isolated, make_veth

from headrace import ingest

DROPPED = 1 << 12 | 1 << 13 | 1 << 39  # CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
PEER = "10.77.0.2"
PAYLOAD = 1464
COUNT = 700

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: there are no rights to give up")


def held(process: int) -> dict[str, dict[str, int]]:
    """The rights of DROPPED that each thread of a process has, by set."""
    threads = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        sets = re.findall(r"^(Cap\w+):\s+([0-9a-f]+)$", (task / "status").read_text(), re.MULTILINE)
        threads[task.name] = {name: int(value, 16) & DROPPED for name, value in sets}
    return threads


def check_none_held(verb: Started) -> None:
    threads = held(verb.process.pid)
    assert len(threads) > 1
    assert all(tuple(sets) == SETS for sets in threads.values())
    assert not [name for name, sets in threads.items() if any(sets.values())]


@isolated
def test_a_receiver_of_tcp_has_none_and_receives():
    own = held(os.getpid())[str(os.getpid())]
    assert own["CapEff"] & 1 << 12, "the test would say nothing"
    count = 3_000_000
    with started("tcp", ":9000", "--streams", 2, "--sha256", "--json", *SMALL) as verb:
        check_none_held(verb)
        for seed in (1, 2):
            sender = ingest.TcpSender(*ingest.resolve(verb.address), seed=seed)
            ingest.send(sender, count, wait=False)
            check_none_held(verb)
            sender.finish()
        done = verb.finish()
    assert done.returncode == 0, done.stderr
    streams = json.loads(done.stdout)["streams"]
    assert {stream["sha256"] for stream in streams} == {ingest.digest(seed, count) for seed in (1, 2)}
    links = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout
    assert "headrace" not in links


@pytest.mark.parametrize("via", ["packet", "xdp"])
@isolated
def test_receivers_of_interfaces_have_none_and_receive(via: str):
    make_veth()
    address = f"{PEER}:9000" if via == "xdp" else ":9000"
    how = ("--via", via, "--interface", "right", "--json", "--sha256", "--frame", f"{100 * PAYLOAD}B", "--to", "cpu")
    trust = ("--trust-checksums",) if via == "xdp" else ()
    try:
        verb = Started("udp", address, *how, *trust, "--frames", COUNT // 100)
    except AssertionError as error:
        if "libxdp" in str(error) or "AF_XDP" in str(error):
            pytest.skip(str(error))
        raise
    try:
        check_none_held(verb)
        sender = ingest.UdpSender(PEER, 9000, COUNT, seed=3, payload_bytes=PAYLOAD, packets_per_second=5000)
        ingest.send_datagrams(sender)
        done = verb.finish()
    finally:
        verb.process.kill()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["counters"]["datagrams"]["accepted"] == COUNT
    assert said["streams"][0]["sha256"] == ingest.digest(3, COUNT * PAYLOAD)
    program = subprocess.run(["ip", "link", "show", "right"], check=True, capture_output=True, text=True).stdout
    assert "prog/xdp" not in program  # it was removed with its receiver


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_SECONDS,
    )


EMBEDDER = """
    import pathlib, re, signal, threading
    from headrace import SystemError, ingest

    def held():
        found = set()
        for task in pathlib.Path("/proc/self/task").iterdir():
            sets = re.findall(r"^Cap(?:Prm|Eff):\\s+(\\w+)$", (task / "status").read_text(), re.MULTILINE)
            found |= {int(value, 16) >> 12 & 1 for value in sets}
        return found

    leave = threading.Event()
    def wait():
        BLOCKS
        leave.wait()
    threads = [threading.Thread(target=wait, name="of the program") for _ in range(20)]
    for thread in threads:
        thread.start()
"""


@isolated
def test_a_program_keeps_them_until_it_asks():
    done = run(
        EMBEDDER.replace("BLOCKS", "pass")
        + """
    with ingest.tcp(":9000", frame="64KiB", to="cpu", ring="4MiB"):
        assert held() == {1}
        ingest.drop_capabilities()
        assert held() == {0}
        ingest.drop_capabilities()
    later = threading.Thread(target=lambda: print("later", held()))
    later.start()
    later.join()
    leave.set()
    for thread in threads:
        thread.join()
    try:
        ingest.tcp(":9000", frame="64KiB", to="cpu", ring="4MiB")
    except SystemError as error:
        print(error)
    """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("later {0}\n")
    assert "permission denied; this needs CAP_NET_ADMIN" in done.stdout


@isolated
def test_a_thread_that_blocks_signals_is_named():
    done = run(
        EMBEDDER.replace("BLOCKS", "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())")
        + """
    try:
        ingest.drop_capabilities()
    except SystemError as error:
        print(error)
    leave.set()
    """
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"CAP_BPF: thread \d+ \(\S+\) still holds them; it may be blocking signals", done.stdout)


@isolated
def test_the_command_ends_with_an_error_where_it_cannot():
    done = run(
        """
    import signal, sys, threading
    from headrace.cli import main

    def wait():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Event().wait()
    threading.Thread(target=wait, daemon=True).start()
    sys.argv = ["headrace", "ingest", "tcp", ":9000", "--to", "cpu", "--frame", "64KiB", "--ring", "4MiB"]
    sys.exit(main())
    """
    )
    assert done.returncode == 1
    assert done.stderr.startswith("headrace: error: dropping CAP_NET_ADMIN")
    assert len(done.stderr.splitlines()) == 1


@isolated
def test_a_process_without_rights_is_left_alone():
    command = ["setpriv", "--bounding-set=-net_admin,-net_raw,-bpf", "--inh-caps=-net_admin,-net_raw,-bpf"]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no setpriv: rights cannot be given up")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = subprocess.run(
        [*command, sys.executable, "-m", "headrace", "ingest", "udp", f"127.0.0.1:{port}", "--duration", "0.2s",
         "--to", "cpu"],
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
