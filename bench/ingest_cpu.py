"""Processor time per received byte of a TCP stream, compared with the kernel's own receiver.

    python bench/ingest_cpu.py [--bytes 2GiB] [--mtu 1500] [--runs 5] [--json] [--save F]

ingest.tcp.cpu_ratio: user and system time of our receiver's process, divided by that of a process that reads the same
stream with recv() into one buffer. Both run in turns on this machine's processors: the same sender (headrace ingest
send) in a separate network namespace, with the kernel's own offloads; our receiver behind a TUN device there, the plain
one behind a veth pair with the same MTU. Time that the kernel spends for a receiver in other processes counts for
neither.

Our receiver puts the bytes into frames on the CPU device, and reads 64 KiB at both ends of each; the plain one has them
in its buffer, and reads the same number of them. In a first run of each, which does not count, every byte is compared.
Timing starts for both once every frame has been used: the kernel clears memory when a process first touches it, and
that cost depends on the host of a virtual machine. `ours_first_seconds_per_gb` is the time before that. Needs
CAP_SYS_ADMIN and the ip command. Exit status: 0; 1 when an error ended it, or a run was not verified; 2 for wrong use;
130 after Ctrl-C.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import headrace
from headrace import ingest, results
from headrace.profiles import Json
from row_by_row import run, say, size
from veth_pair import VethPair

_SEED = 7
_LOOKED_AT = 64 << 10
_GUARD_SECONDS = 60.0
_GB = 1e9


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu"], help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=size, default=2 << 30, help="bytes per run")
    parser.add_argument("--frame", type=size, default=64 << 20, help="bytes per frame of our receiver")
    parser.add_argument("--frames", type=int, default=4)
    parser.add_argument("--ring", type=size, default=0, help="bytes of the ring of our receiver; 0 takes its default")
    parser.add_argument("--buffer", type=size, default=1 << 20, help="bytes of the buffer of the plain receiver")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument(
        "--no-offloads", dest="offloads", action="store_false", help="our receiver takes single segments"
    )
    parser.add_argument("--runs", type=int, default=5, help="number of runs of each receiver")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument("--save", type=Path, help="write the results file ingest.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    parser.add_argument("--receive", choices=["ours", "plain"], help=argparse.SUPPRESS)  # for a receiver's process
    parser.add_argument("--whole", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.runs < 1 or given.frames < 2 or given.buffer < _LOOKED_AT:  # noqa: PLR2004
        parser.error("--runs must be 1 or more, --frames 2 or more, --buffer 64KiB or more")
    if given.bytes < 2 * _warm(given):
        parser.error("--bytes must fill every frame twice: timing starts with the second time")
    return given


def _cpu() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def _is_sent(offset: int, data: bytes | memoryview) -> bool:
    return bytes(data) == ingest.stream_bytes(_SEED, offset, len(data))


def _ours(given: argparse.Namespace) -> tuple[int, bool]:
    """Receives one stream to frames; returns the number of bytes, and whether they were right."""
    how = {"ring": given.ring} if given.ring else {}
    with ingest.tcp(
        "10.88.0.2:9000",
        frame=given.frame,
        buffers=given.frames,
        to="cpu",
        mtu=given.mtu,
        offloads=given.offloads,
        **how,
    ) as receiver:
        print(receiver.address, flush=True)
        came, right = 0, True
        while (item := receiver.next(_GUARD_SECONDS)) is not None:
            if isinstance(item, ingest.StreamOpened):
                _count(given, came, 0)
            elif isinstance(item, ingest.StreamEnded):
                return came, right
            elif isinstance(item, ingest.Frame):
                view = memoryview(item)
                step = item.bytes if given.whole else min(item.bytes, _LOOKED_AT)
                for at in {0, item.bytes - step}:
                    right = _is_sent(item.stream_offset + at, view[at : at + step]) and right
                came += item.bytes
                del view
                _count(given, came, item.bytes)
                item.release()
    raise headrace.Error(f"no byte arrived for {_GUARD_SECONDS:.0f} s")


def _plain(given: argparse.Namespace) -> tuple[int, bool]:
    """Receives one stream with recv()."""
    with socket.create_server((VethPair.address, 0)) as server:
        server.settimeout(_GUARD_SECONDS)
        print(f"{VethPair.address}:{server.getsockname()[1]}", flush=True)
        connection, _ = server.accept()
    connection.setblocking(True)
    buffer = memoryview(bytearray(given.buffer))
    came, looked, right = 0, 0, True
    _count(given, 0, 0)
    with connection:
        while count := connection.recv_into(buffer):
            if given.whole:
                right = _is_sent(came, buffer[:count]) and right
            elif came >= looked:
                step = min(count, 2 * _LOOKED_AT)
                right = _is_sent(came, buffer[:step]) and right
                looked += given.frame
            came += count
            _count(given, came, count)
    return came, right


_Reading = tuple[float, tuple[float, float]]
_readings: list[_Reading] = []


def _count(given: argparse.Namespace, came: int, last: int) -> None:
    """Reads the clocks at the first byte, and when every frame has been used once; `last` bytes of `came` are new."""
    warm = _warm(given)
    if came == 0 or came - last < warm <= came:
        _readings.append((time.monotonic(), _cpu()))


def _warm(given: argparse.Namespace) -> int:
    """Number of bytes that fill every frame once."""
    frame, frames = int(given.frame), int(given.frames)
    return frame * frames


def _receive(given: argparse.Namespace) -> None:
    """One run in this process: prints its address, and then its times."""
    came, right = (_ours if given.receive == "ours" else _plain)(given)
    first, warm = _readings
    seconds = time.monotonic() - warm[0]
    user, system = (now - then for now, then in zip(_cpu(), warm[1], strict=True))
    before = sum(warm[1]) - sum(first[1])
    done = {"seconds": seconds, "user": user, "system": system, "first": before, "bytes": came, "right": right}
    print(json.dumps(done), flush=True)


class Bench:
    """Runs both receivers in turns."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given

    def _run(self, net: VethPair, which: str, *, whole: bool) -> Json:
        given = self.given
        words = ["--receive", which, "--bytes", given.bytes, "--frame", given.frame, "--frames", given.frames]
        words += ["--ring", given.ring, "--buffer", given.buffer, "--mtu", given.mtu]
        words += ["--whole"] * whole + ["--no-offloads"] * (not given.offloads)
        command = [sys.executable, str(Path(__file__)), *map(str, words)]
        space = net.sender if which == "ours" else net.receiver
        with space.run(subprocess.Popen, command, stdout=subprocess.PIPE, text=True) as receiver:
            address = receiver.stdout.readline().strip()
            if not address:
                raise headrace.Error(f"the receiver ended with status {receiver.wait()}")
            send = ["ingest", "send", "tcp", address, "--bytes", str(given.bytes), "--no-wait", "--seed", str(_SEED)]
            sender = net.sender.run(
                subprocess.Popen, [sys.executable, "-m", "headrace", *send, "--json"], stdout=subprocess.DEVNULL
            )
            said = receiver.stdout.readline()
            sender.wait()
        if not said:
            raise headrace.Error(f"the receiver ended with status {receiver.returncode}")
        done: Json = json.loads(said)
        done["right"] = done["right"] and done["bytes"] == given.bytes
        done["cpu"] = done["user"] + done["system"]
        return done

    def rows(self) -> Iterator[Json]:
        """The one case."""
        given = self.given
        identity = "ingest.tcp.cpu_ratio"
        runs: dict[str, list[Json]] = {"ours": [], "plain": []}
        with closing(VethPair(given.mtu)) as net:
            for turn in range(given.runs + 1):
                for which, done in runs.items():
                    done.append(self._run(net, which, whole=turn == 0))
        verified = all(one["right"] for done in runs.values() for one in done)
        counted = given.bytes - _warm(given)
        about: Json = {
            "mtu": given.mtu,
            "offloads": given.offloads,
            "connections": 1,
            "bytes": given.bytes,
            "cores": os.cpu_count(),
            "frame_mib": given.frame / (1 << 20),
            "frames": given.frames,
            "ring_bytes": given.ring or None,
            "plain_buffer_kib": given.buffer >> 10,
        }
        for which, done in runs.items():
            for name in ("cpu", "user", "system"):
                figure = median(one[name] for one in done[1:]) / counted * _GB
                about[f"{which}_{name}_seconds_per_gb"] = round(figure, 4)
            first = median(one["first"] for one in done[1:]) / _warm(given) * _GB
            about[f"{which}_first_seconds_per_gb"] = round(first, 4)
            rate = median(8 * counted / one["seconds"] for one in done[1:])
            about[f"{which}_gbit_per_second"] = round(rate / _GB, 2)
        about["verified"] = verified
        ratios = [ours["cpu"] / plain["cpu"] for ours, plain in zip(runs["ours"][1:], runs["plain"][1:], strict=True)]
        yield results.row(identity, ratios, "ratio", None, about)
        say(identity)


def main() -> int:
    """Runs the program."""
    given = _parse()
    if given.receive is not None:
        _receive(given)
        return 0
    return run("ingest", given, lambda _: Bench(given).rows())


if __name__ == "__main__":
    sys.exit(main())
