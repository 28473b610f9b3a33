"""A real TCP sender on this machine, through a TUN device, to frames on a device: packets, acknowledgements and all.

    python bench/ingest_end_to_end.py [--device cpu] [--bytes 4GiB] [--mtu 1500,9000] [--save F]

One connection from a separate process, which sends without pauses; control runs on the CPU. ingest.tcp.<device> uses
the kernel's super-packets of up to 64 KiB (TSO) at an MTU of 1,500, .mtuN another MTU, .segments no super-packets. The
roof is the kernel's own receiver in the same run: the same sender over the loopback, read into buffers with recv().

ingest.tcp.vs_kernel is the rate divided by that of the kernel's receiver to the same frames, in turns: the same sender
in a separate network namespace, over a veth pair with the same MTU and the kernel's own offloads, with recv() into
pinned memory in another namespace, and overlapping copies to the device (headrace.ingest.SocketReception).

All bytes of the first run are compared with what was sent, and in other runs the ends of each frame. Needs
CAP_NET_ADMIN; vs_kernel also needs CAP_SYS_ADMIN and the ip command. Exit status: 0; 1 when an error ended it, or some
row was not verified; 2 for wrong use; 130 after Ctrl-C, with the rows so far.
"""

import argparse
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import headrace
from headrace import Device, ingest, results
from headrace.profiles import Json
from row_by_row import run, say, size
from veth_pair import VethPair

_SEED = 7
_LOOKED_AT = 64 << 10  # bytes compared at both ends of a frame
_RECEIVE = 1 << 20
_GUARD_SECONDS = 60.0
_GB = 1e9


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument("--bytes", type=size, default=2 << 30, help="bytes per run")
    parser.add_argument("--frame", type=size, default=64 << 20, help="bytes per frame")
    parser.add_argument("--frames", type=int, default=4)
    parser.add_argument("--prompt", type=int, default=0, help="prompt_count of our receiver")
    parser.add_argument(
        "--chunk", type=size, default=1 << 20, help="bytes per recv() and per copy of the kernel's receiver"
    )
    parser.add_argument("--chunks", type=int, default=8, help="chunks of the kernel's receiver in pinned memory")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument("--mtu", default="1500,9000,65535", help="MTUs to measure with super-packets")
    parser.add_argument("--runs", type=int, default=5, help="number of runs per case")
    parser.add_argument("--save", type=Path, help="write the results file ingest.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    if given.runs < 1 or given.frames < 2 or not all(word.isdigit() for word in given.mtu.split(",")):  # noqa: PLR2004
        parser.error("--runs must be 1 or more, --frames 2 or more, and --mtu a list of numbers")
    if given.chunk < 1 or given.chunks < 2 or given.prompt < 0:  # noqa: PLR2004
        parser.error("--chunk must be 1 byte or more, --chunks 2 or more, --prompt 0 or more")
    return given


@dataclass
class _Run:
    """One transfer."""

    seconds: float
    receiver_cpu: float
    sender_cpu: float
    right: bool
    retransmitted: int = 0


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _sender(address: str, count: int) -> "subprocess.Popen[bytes]":
    words = ["ingest", "send", "tcp", address, "--bytes", str(count), "--no-wait", "--seed", str(_SEED), "--json"]
    return subprocess.Popen([sys.executable, "-m", "headrace", *words], stdout=subprocess.DEVNULL)


def _is_right(frame: ingest.Frame, whole: bool) -> bool:
    step = frame.bytes if whole else min(frame.bytes, _LOOKED_AT)
    for at in {0, frame.bytes - step}:
        if frame.to_host(at, step).tobytes() != ingest.stream_bytes(_SEED, frame.stream_offset + at, step):
            return False
    return True


class Bench:
    """State that all cases share."""

    def __init__(self, device: Device, given: argparse.Namespace) -> None:
        self.device = device
        self.given = given

    def receive(self, mtu: int, offloads: bool, whole: bool) -> _Run:
        """One run to frames."""
        with ingest.tcp(
            ":9000",
            frame=self.given.frame,
            buffers=self.given.frames,
            to=self.device,
            mtu=mtu,
            offloads=offloads,
            prompt_count=self.given.prompt,
        ) as receiver:
            children = _cpu(resource.RUSAGE_CHILDREN)
            sender = _sender(receiver.address, self.given.bytes)
            began, used, came, right = 0.0, 0.0, 0, True
            while True:
                item = receiver.next(_GUARD_SECONDS)
                if item is None:
                    raise headrace.Error(f"no byte arrived for {_GUARD_SECONDS:.0f} s")
                if isinstance(item, ingest.StreamOpened):
                    began, used = time.monotonic(), _cpu(resource.RUSAGE_SELF)
                elif isinstance(item, ingest.StreamEnded):
                    break
                else:
                    right = right and _is_right(item, whole) and item.stream_offset == came
                    came += item.bytes
                    item.release()
            seconds, used = time.monotonic() - began, _cpu(resource.RUSAGE_SELF) - used
            sender.wait()
            again = receiver.counters()["tcp"]["duplicates"]
        sender_cpu = _cpu(resource.RUSAGE_CHILDREN) - children
        return _Run(seconds, used, sender_cpu, right and came == self.given.bytes, again)

    def kernel(self) -> float:
        """The kernel's own receiver, in bits per second."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            sender = _sender(f"127.0.0.1:{server.getsockname()[1]}", self.given.bytes)
            connection, _ = server.accept()
            buffer = bytearray(_RECEIVE)
            began, came = time.monotonic(), 0
            with connection:
                while count := connection.recv_into(buffer):
                    came += count
            seconds = time.monotonic() - began
            sender.wait()
        return 8 * came / seconds

    def kernel_to_frames(self, net: VethPair, to: ingest.SocketReception, whole: bool) -> _Run:
        """One run of the kernel's own receiver to frames, over veth."""
        with net.receiver.run(socket.create_server, (net.address, 0)) as server:
            server.settimeout(_GUARD_SECONDS)
            children = _cpu(resource.RUSAGE_CHILDREN)
            sender = net.sender.run(_sender, f"{net.address}:{server.getsockname()[1]}", self.given.bytes)
            try:
                connection, _ = server.accept()
            except TimeoutError as error:
                raise headrace.Error(f"no connection arrived over veth for {_GUARD_SECONDS:.0f} s") from error
            connection.setblocking(True)
            used = _cpu(resource.RUSAGE_SELF)
            with connection:
                run = to.receive(connection.fileno(), whole=whole)
            used = _cpu(resource.RUSAGE_SELF) - used
            sender.wait()
        sender_cpu = _cpu(resource.RUSAGE_CHILDREN) - children
        return _Run(run.seconds, used, sender_cpu, run.right and run.bytes == self.given.bytes)

    def vs_kernel(self, identity: str, mtu: int) -> Json:
        """Both receivers in turns: one run that compares every byte, then those that count."""
        given = self.given
        reception = ingest.SocketReception(
            self.device,
            frame_bytes=given.frame,
            frame_count=given.frames,
            chunk_bytes=min(given.chunk, given.frame),
            chunk_count=given.chunks,
            seed=_SEED,
        )
        ours: list[_Run] = []
        theirs: list[_Run] = []
        with closing(VethPair(mtu)) as net:
            for turn in range(given.runs + 1):
                ours.append(self.receive(mtu, offloads=True, whole=turn == 0))
                theirs.append(self.kernel_to_frames(net, reception, whole=turn == 0))
        verified = all(one.right for one in ours + theirs)
        ours, theirs = ours[1:], theirs[1:]
        about: Json = {
            "mtu": mtu,
            "offloads": "TSO, to a TUN device and to veth",
            "connections": 1,
            "sender": "headrace ingest send, a process of its own",
            "cores": os.cpu_count(),
            "frame_mib": given.frame >> 20,
            "frames": given.frames,
            "bytes": given.bytes,
            "prompt_count": given.prompt,
            "kernel_chunk_kib": min(given.chunk, given.frame) >> 10,
            "kernel_chunks": given.chunks,
        }
        for name, runs in (("ours", ours), ("kernel", theirs)):
            about[f"{name}_gbit_per_second"] = round(median(8 * given.bytes / one.seconds for one in runs) / _GB, 2)
            about[f"{name}_cpu_seconds_per_gb"] = round(median(one.receiver_cpu for one in runs) / given.bytes * _GB, 3)
        about["verified"] = verified
        ratios = [kernel.seconds / one.seconds for one, kernel in zip(ours, theirs, strict=True)]
        return results.row(identity, ratios, "ratio", None, about)

    def row(self, identity: str, mtu: int, offloads: bool) -> Json:
        """One case: one run that compares every byte, then those that count."""
        checked = self.receive(mtu, offloads, whole=True)
        runs: list[_Run] = []
        roofs: list[float] = []
        for _ in range(self.given.runs):
            runs.append(self.receive(mtu, offloads, whole=False))
            roofs.append(self.kernel())
        gigabytes = self.given.bytes / _GB
        about: Json = {
            "mtu": mtu,
            "offloads": offloads,
            "connections": 1,
            "frame_mib": self.given.frame >> 20,
            "frames": self.given.frames,
            "bytes": self.given.bytes,
            "prompt_count": self.given.prompt,
            "receiver_cpu_seconds_per_gb": round(median(one.receiver_cpu for one in runs) / gigabytes, 3),
            "sender_cpu_seconds_per_gb": round(median(one.sender_cpu for one in runs) / gigabytes, 3),
            "came_twice": max(one.retransmitted for one in runs),
            "verified": checked.right and all(one.right for one in runs),
        }
        rates = [8 * self.given.bytes / one.seconds for one in runs]
        return results.row(identity, rates, "bit/s", (median(roofs), "kernel's receiver over loopback"), about)

    def rows(self) -> Iterator[Json]:
        """Every requested case."""
        name = f"ingest.tcp.{'cpu' if self.device.name.startswith('cpu') else 'cuda'}"
        cases: list[tuple[str, Callable[[str], Json]]] = []
        for at, mtu in enumerate(int(word) for word in self.given.mtu.split(",")):
            suffix = "" if at == 0 else f".mtu{mtu}"
            cases.append((f"{name}{suffix}", partial(self.row, mtu=mtu, offloads=True)))
            cases.append((f"ingest.tcp.vs_kernel{suffix}", partial(self.vs_kernel, mtu=mtu)))
            if at == 0:
                cases.append((f"{name}.segments", partial(self.row, mtu=mtu, offloads=False)))
        for identity, measure in cases:
            if not self.given.only or any(identity.startswith(word) for word in self.given.only):
                yield measure(identity)
                say(identity)


def main() -> int:
    """Runs the program."""
    given = _parse()
    return run("ingest", given, lambda device: Bench(device, given).rows())


if __name__ == "__main__":
    sys.exit(main())
