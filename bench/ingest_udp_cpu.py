"""Processor time per datagram: our receiver of a UDP socket, and a plain loop of recvmmsg(), in turns.

    python bench/ingest_udp_cpu.py [--device cpu] [--rate 100000] [--seconds 3] [--runs 5] [--save F]

A separate process sends numbered datagrams over the loopback (`headrace ingest send`). ingest.udp.cpu_ratio is the
processor time per datagram of our receiver, which puts them into frames of 8 MiB, divided by that of recvmmsg_loop.c,
which leaves them in the same 64 buffers; each counts received datagrams, and user and system time of its own process.
Ours starts counting once each of its four frames has been used: the kernel clears memory when a process first touches
it, and that cost depends on the host of a virtual machine. The loop's program is compiled with cc. Every frame of the
first run is compared with what was sent, and in other runs the ends of each frame. Exit status: as of
ingest_end_to_end.py.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from headrace import Device, Error, ingest, results
from headrace.profiles import Json
from row_by_row import run, say

_SEED = 7
_NUMBER = 8
_LOOKED_AT = 64 << 10
_SILENCE = 2.0
_FRAMES = {"frame": 8 << 20, "buffers": 4}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="device: cpu, cuda:0, ...")
    parser.add_argument("--rate", type=int, default=100_000, help="datagrams per second")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a run")
    parser.add_argument("--payload", type=int, default=1472, help="bytes per datagram")
    parser.add_argument("--runs", type=int, default=5, help="number of runs of each receiver, taken in turns")
    parser.add_argument("--save", type=Path, help="write the results file ingest-udp.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    if given.runs < 1 or given.rate < 1 or given.seconds <= 0 or given.payload <= _NUMBER:
        parser.error("--runs and --rate must be 1 or more, --seconds above 0, --payload above 8")
    return given


@dataclass
class _Cost:
    """One run of a receiver."""

    datagrams: int
    cpu: float
    right: bool

    @property
    def microseconds(self) -> float:
        """Time per datagram."""
        return self.cpu / max(self.datagrams, 1) * 1e6


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Bench:
    """Both receivers."""

    def __init__(self, device: Device, given: argparse.Namespace, folder: Path) -> None:
        self._device = device
        self._given = given
        self._loop = folder / "recvmmsg_loop"
        source = Path(__file__).with_name("recvmmsg_loop.c")
        built = subprocess.run(["cc", "-O2", "-o", self._loop, source], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise Error(f"compiling {source.name}: {built.stderr.strip()}")

    def _send(self, port: int) -> "subprocess.Popen[bytes]":
        given = self._given
        count = int(given.rate * given.seconds)
        words = [
            "--bytes",
            str(count * (given.payload - _NUMBER)),
            "--payload",
            str(given.payload - _NUMBER),
            "--rate",
            str(given.rate),
        ]
        command = [sys.executable, "-m", "headrace", "ingest", "send", "udp", f"127.0.0.1:{port}", *words]
        return subprocess.Popen([*command, "--seed", str(_SEED)], stdout=subprocess.DEVNULL)

    def ours(self, *, whole: bool) -> _Cost:
        """Our receiver, whose frames are compared with what was sent."""
        payload = self._given.payload - _NUMBER
        with ingest.udp("127.0.0.1:0", to=self._device, payload_bytes=payload, **_FRAMES) as receiver:
            _, port = ingest.resolve(receiver.address)
            before, accepted = _cpu(), 0
            checked = 0.0
            right = True
            frames = 0
            heard = time.monotonic()
            with self._send(port) as sender:
                while sender.poll() is None or time.monotonic() - heard < _SILENCE / 2:
                    item = receiver.next(timeout=0.2)
                    if isinstance(item, ingest.Frame):
                        heard = time.monotonic()
                        began = time.thread_time()
                        right &= self._is_right(item, whole)
                        checked += time.thread_time() - began
                        item.release()
                        frames += 1
                        if frames == _FRAMES["frames"]:
                            before, checked = _cpu(), 0.0
                            accepted = receiver.counters()["datagrams"]["accepted"]
                    del item
            used = _cpu() - before - checked
            receiver.stop()
            return _Cost(receiver.counters()["datagrams"]["accepted"] - accepted, used, right)

    @staticmethod
    def _is_right(frame: ingest.Frame, whole: bool) -> bool:
        if frame.missing_bytes:
            return True  # the kernel dropped some; accepted datagrams are counted
        at = [(0, frame.bytes)] if whole else [(0, min(_LOOKED_AT, frame.bytes))]
        if not whole:
            at.append((frame.bytes - at[0][1], at[0][1]))
        return all(
            frame.to_host(start, count).tobytes() == ingest.stream_bytes(_SEED, frame.stream_offset + start, count)
            for start, count in at
        )

    def loop(self) -> _Cost:
        """The plain loop."""
        command = [self._loop, str(self._given.payload)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
            assert receiver.stdout is not None
            with self._send(int(receiver.stdout.readline())):
                pass
            datagrams, numbers, cpu = receiver.stdout.readline().split()
        count = int(self._given.rate * self._given.seconds)
        # Datagrams dropped by the kernel are missing from the sum.
        whole = int(datagrams) < count or int(numbers) == count * (count - 1) // 2
        return _Cost(int(datagrams), float(cpu), whole)

    def rows(self) -> Iterator[Json]:
        """The ratio."""
        checked = self.ours(whole=True)
        say(f"verified: {checked.right}, {checked.datagrams:,} datagrams")
        pairs = []
        for _ in range(self._given.runs):
            pairs.append((self.ours(whole=False), self.loop()))
            ours, loop = pairs[-1]
            say(f"ours {ours.microseconds:.2f} us, loop {loop.microseconds:.2f} us a datagram")
        about: Json = {
            "rate": self._given.rate,
            "payload": self._given.payload,
            "datagrams": [ours.datagrams for ours, _ in pairs],
            "ours_us": round(median(ours.microseconds for ours, _ in pairs), 3),
            "loop_us": round(median(loop.microseconds for _, loop in pairs), 3),
            "verified": checked.right and all(one.right and one.datagrams > 0 for pair in pairs for one in pair),
        }
        ratios = [ours.microseconds / loop.microseconds for ours, loop in pairs]
        yield results.row("ingest.udp.cpu_ratio", ratios, "ratio", None, about)


def main() -> int:
    """Runs the program."""
    given = _parse()
    with tempfile.TemporaryDirectory() as folder:
        return run("ingest-udp", given, lambda device: Bench(device, given, Path(folder)).rows())


if __name__ == "__main__":
    sys.exit(main())
