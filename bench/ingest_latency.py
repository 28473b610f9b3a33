"""How soon after its last byte a frame is READY, with packets arriving in a ring in pinned memory at a steady rate.

    python bench/ingest_latency.py [--device cuda:0] [--control host,resident] [--ring-access direct,slots] [--save F]

Packets arrive on a fixed schedule, at half of the rate that the same builder reaches when packets always wait (measured
first); one thread places received packets, as a receiver does, and takes frames. ingest.latency.p99 is the time from
the arrival of the packet with a frame's last byte until the frame was READY and taken, the median over samples; if a
builder falls behind, its figure includes the delay, and `kept_up` is false. The roof is a single packet: placed,
submitted and READY while nothing else happens. Control is on the host, or in a resident kernel on the device, to which
the other settings do not apply. With several settings, each has its own row, ingest.latency.<setting>; the best p99
among those that reach nine tenths of the fastest is then measured again as ingest.latency.p99. The last frames of each
sample are compared with what was sent. Takes seconds per setting on a GPU. Exit status: 0; 1 when an error ended it, or
no row could be measured or some row was not verified; 2 for wrong use; 130 after Ctrl-C, with the rows so far.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import headrace
from headrace import Device, results
from headrace.measure import FrameLatencies
from headrace.profiles import Json
from row_by_row import is_whole, run, say, size

_CONTROLS = ("host", "resident")
_ACCESSES = ("automatic", "direct", "slots", "payloads")
_KEPT_UP = 0.99  # share of the schedule's rate
_FAST_ENOUGH = 0.9  # share of the throughput of the fastest setting
_GIGABIT = 1e9


@dataclass(frozen=True)
class Setting:
    """How frames are built; the fields after control apply to the host's only."""

    control: str
    ring_access: str = "automatic"
    prompt_count: int = 1
    flush_bytes: int = 1 << 20

    @property
    def name(self) -> str:
        """The setting's part of an id."""
        if self.control == "resident":
            return self.control
        return f"{self.ring_access}.prompt{self.prompt_count}.flush{self.flush_bytes >> 10}"


T = TypeVar("T")


def _each(parse: Callable[[str], T]) -> Callable[[str], list[T]]:
    def parse_list(text: str) -> list[T]:
        try:
            return [parse(word) for word in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse_list


def _one_of(known: tuple[str, ...], what: str) -> Callable[[str], list[str]]:
    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(f"'{text}' is not {what}: {', '.join(known)}")
        return text

    return _each(parse)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument("--way", default="automatic", help="way to copy, one of headrace.ingest.copy_ways()")
    parser.add_argument(
        "--control", type=_one_of(_CONTROLS, "a control"), default=["host"], metavar="C,C", help=", ".join(_CONTROLS)
    )
    parser.add_argument(
        "--ring-access",
        type=_one_of(_ACCESSES, "a way to read the ring"),
        default=["automatic"],
        metavar="A,A",
        help=", ".join(_ACCESSES),
    )
    parser.add_argument(
        "--prompt",
        type=_each(int),
        default=[1],
        metavar="N,N",
        help="submit every burst at once while fewer than this many are in flight",
    )
    parser.add_argument(
        "--flush",
        type=_each(size),
        default=[1 << 20],
        metavar="S,S",
        help="flush threshold: bytes that are submitted in any case",
    )
    parser.add_argument("--lists", type=int, default=4, help="maximum number of bursts in flight")
    parser.add_argument("--burst", type=int, default=256, help="maximum number of packets taken from the ring at once")
    parser.add_argument("--payload", type=size, default=8000, help="bytes per packet")
    parser.add_argument("--ring", type=size, default=128 << 20)
    parser.add_argument("--frame", type=size, default=1 << 20, help="bytes per frame")
    parser.add_argument("--frames", type=int, default=16, help="number of frames in their ring")
    parser.add_argument("--load", type=float, default=0.5, help="load, as a share of the rate that the builder reaches")
    parser.add_argument(
        "--rate", type=float, default=0.0, metavar="GBIT", help="load in Gb/s of payload, instead of --load"
    )
    parser.add_argument("--count", type=int, default=10_000, help="number of frames in a sample")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--save", type=Path, help="write the results file ingest.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    for name in ("lists", "burst", "payload", "frames", "count", "samples"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} must be 1 or more")
    if any(count < 0 for count in given.prompt):
        parser.error("--prompt must be 0 or more")
    return given


class Bench:
    """State that all settings share."""

    def __init__(self, device: Device, given: argparse.Namespace) -> None:
        self.device = device
        self.given = given

    def measure(self, setting: Setting) -> FrameLatencies | None:
        """Returns None if the device does not support it."""
        given = self.given
        found = headrace.measure.frame_latency(
            self.device,
            control=setting.control,
            way=given.way,
            ring_access=setting.ring_access,
            prompt_count=setting.prompt_count,
            flush_bytes=setting.flush_bytes,
            payload_bytes=given.payload,
            ring_bytes=given.ring,
            frame_bytes=given.frame,
            frame_count=given.frames,
            list_count=given.lists,
            burst=given.burst,
            load=given.load,
            bytes_per_second=given.rate * _GIGABIT / 8,
            frames=given.count,
            samples=given.samples,
        )
        return found if is_whole(found.supported, len(found.samples), given.samples) else None

    def row(self, identity: str, setting: Setting, found: FrameLatencies) -> Json:
        """The row of one setting."""
        samples = found.samples

        def us(seconds: Callable[[headrace.measure.FrameLatencySample], float]) -> float:
            return round(1e6 * median(map(seconds, samples)), 1)

        reached = min(sample.bytes_per_second for sample in samples) / found.bytes_per_second
        about: Json = {"control": setting.control}
        if setting.control == "host":
            about |= {
                "ring_access": setting.ring_access,
                "prompt_count": setting.prompt_count,
                "flush_kib": setting.flush_bytes >> 10,
                "list_count": self.given.lists,
                "way": self.given.way,
            }
        about |= {
            "payload_bytes": self.given.payload,
            "frame_kib": self.given.frame >> 10,
            "frames": self.given.frames,
            "arrivals": "even, by a schedule",
            "gbit_per_second": round(8 * found.bytes_per_second / _GIGABIT, 1),
            "reached_gbit_per_second": round(8 * found.reached_per_second / _GIGABIT, 1),
            "burst_kib": round(found.burst_bytes / 1024, 1),
            "frames_of_a_sample": self.given.count,
            "p50_us": us(lambda sample: sample.latency.p50),
            "p999_us": us(lambda sample: sample.latency.p999),
            "max_us": us(lambda sample: sample.latency.max),
            "waited_p99_us": us(lambda sample: sample.waited.p99),
            "kept_up": reached >= _KEPT_UP,
            "verified": found.verified,
        }
        if not about["kept_up"]:
            say(f"{identity}: fell behind and delivered {reached:.1%} of the packets")
        values = [1e6 * sample.latency.p99 for sample in samples]
        return results.row(identity, values, "us", (1e6 * found.alone_seconds, "one packet alone"), about)

    def rows(self) -> Iterator[Json]:
        """The rows of every setting, and of the best one."""
        given = self.given
        by_host = itertools.product(["host"], given.ring_access, given.prompt, given.flush)
        settings = [Setting(*how) for how in by_host] if "host" in given.control else []
        settings += [Setting("resident")] if "resident" in given.control else []
        tried: list[tuple[Setting, float, float]] = []
        for setting in settings if len(settings) > 1 else []:
            found = self.measure(setting)
            if found is None:
                say(f"ingest.latency.{setting.name}: left out: this device does not support it")
                continue
            made = self.row(f"ingest.latency.{setting.name}", setting, found)
            say(f"{made['id']}: p99 {made['value']:.1f} us")
            tried.append((setting, found.reached_per_second, made["value"]))
            yield made
        best = settings[0]
        if tried:
            fastest = max(reached for _, reached, _ in tried)
            best = min((one for one in tried if one[1] >= _FAST_ENOUGH * fastest), key=lambda one: one[2])[0]
            say(f"ingest.latency.p99 is {best.name}")
        found = self.measure(best)
        if found is not None:
            yield self.row("ingest.latency.p99", best, found)


def main() -> int:
    """Runs the program."""
    given = _parse()
    return run("ingest", given, lambda device: Bench(device, given).rows())


if __name__ == "__main__":
    sys.exit(main())
