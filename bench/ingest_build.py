"""Copies payloads from a receive ring into frames in every way, with the roofs of the same run.

    python bench/ingest_build.py [--device cuda:0] [--only ingest.device.8000] [--ways gather,bulk] [--save F]

ingest.device.* have packets and their list in device memory: the roof is a copy of the same number of bytes within the
device. ingest.pinned.* have a ring in pinned host memory, around which a builder goes while a stream takes every frame:
the roof is the link. ingest.resident.* are the same with a resident kernel instead of the builder and the host: it
reads headers, acknowledges and copies. An id without a suffix is the builder's own choice; a suffix names the way to
copy or to access the ring. Every byte is compared with that of a plain copy. Takes less than a minute on a GPU. Cases
that a device does not support are left out. Exit status: 0; 1 when an error ended it, or no row could be measured or
some row was not verified; 2 for wrong use; 130 after Ctrl-C, with the rows so far.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import headrace
from headrace import Device, results
from headrace.measure import BuildRuns
from headrace.profiles import Json
from row_by_row import is_whole, run, say

MIB = 1 << 20
WAYS = tuple(headrace.ingest.copy_ways())
RING_ACCESSES = ("automatic", "direct", "slots", "payloads")
# For ways with one call per packet or two, this many packets show the cost of one.
_BY_CALLS = ("device-copy", "device-copy-2", "device-copy-32", "host-copy", "host-copy-2", "host-copy-32")
_BY_CALLS_PACKETS = 8192
_HEADER = 54  # bytes of Ethernet, IPv4 and TCP headers without options
_IP_HEADER = 40  # bytes of IPv4 and TCP headers


@dataclass(frozen=True)
class Packets:
    """The layout of packets."""

    name: str
    payload_bytes: int
    payload_max: int = 0
    header_bytes: int = _HEADER
    in_ring: bool = False

    @property
    def lead_bytes(self) -> int:
        """Bytes before the headers: in a ring, so many that payloads start on lines of 64 bytes, see slot_lead()."""
        return -self.header_bytes % 64 if self.in_ring else 0

    @property
    def slot_bytes(self) -> int:
        """The smallest multiple of 16, or of 256 in a ring, that holds the longest packet."""
        multiple = 256 if self.in_ring else 16
        longest = self.lead_bytes + self.header_bytes + max(self.payload_bytes, self.payload_max)
        return -(-longest // multiple) * multiple

    def conditions(self) -> Json:
        """The conditions of a row."""
        payload: Json = {"payload_bytes": self.payload_bytes}
        if self.payload_max:
            payload = {"payload_bytes": [self.payload_bytes, self.payload_max]}
        return payload | {
            "lead_bytes": self.lead_bytes,
            "header_bytes": self.header_bytes,
            "slot_bytes": self.slot_bytes,
        }


_DEVICE = (Packets("8000", 8000), Packets("1460", 1460), Packets("64", 64), Packets("mixed", 64, 9000, 55))
# Includes packets as a TUN device delivers them, without a link header.
_PINNED = (
    Packets("8000", 8000, in_ring=True),
    Packets("1460", 1460, in_ring=True),
    Packets("1460.ip", 1460, header_bytes=_IP_HEADER, in_ring=True),
)
_RESIDENT = _DEVICE[:1]


def _names(text: str, known: tuple[str, ...], what: str) -> list[str]:
    names = [word for word in text.split(",") if word]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"'{name}' is not a {what}: {', '.join(known)}")
    return names


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument(
        "--ways",
        type=lambda text: _names(text, WAYS, "way"),
        default=list(WAYS),
        metavar="W,W",
        help="ways to copy on the device",
    )
    parser.add_argument(
        "--ring-access",
        type=lambda text: _names(text, RING_ACCESSES, "way to read the ring"),
        default=list(RING_ACCESSES),
        metavar="A,A",
        help="over the link",
    )
    parser.add_argument("--total", type=int, default=1024, metavar="MIB", help="MiB of slots that a run goes through")
    parser.add_argument("--ring", type=int, default=128, metavar="MIB", help="MiB of the ring in pinned memory")
    parser.add_argument("--frame", type=int, default=64, metavar="MIB", help="MiB of a frame")
    parser.add_argument("--flush", type=int, default=32768, metavar="KIB", help="flush threshold of the builder in KiB")
    parser.add_argument("--runs", type=int, default=9, help="number of runs per case")
    parser.add_argument("--save", type=Path, help="write the results file ingest.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    for name, least in (("total", 1), ("ring", 1), ("frame", 1), ("flush", 256), ("runs", 1)):
        if getattr(given, name) < least:
            parser.error(f"--{name} must be {least} or more")
    return given


class Bench:
    """State that all cases share."""

    def __init__(self, device: Device, given: argparse.Namespace) -> None:
        self.device = device
        self.given = given
        self.roofs: dict[str, float] = {}

    def _row(self, identity: str, found: BuildRuns, roof: float, roof_is: str, about: Json) -> Json:
        bits = 8 * found.payload_bytes
        rates = [bits / seconds for seconds in found.seconds]
        about |= {
            "packets": found.packets,
            "packets_per_second": found.packets / median(found.seconds),
            "verified": found.verified,
        }
        return results.row(identity, rates, "bit/s", (roof, roof_is), about)

    def on_device(self, packets: Packets, way: str) -> Json | None:
        """Packets in device memory; None if the device does not support the way."""
        name = f"device.{packets.name}"
        total = self.given.total * MIB
        if way in _BY_CALLS:
            total = min(total, _BY_CALLS_PACKETS * packets.slot_bytes)
        found = headrace.measure.device_build(
            self.device,
            way=way,
            payload_bytes=packets.payload_bytes,
            payload_max=packets.payload_max,
            header_bytes=packets.header_bytes,
            slot_bytes=packets.slot_bytes,
            total_bytes=max(total, packets.slot_bytes),
            runs=self.given.runs,
        )
        if not is_whole(found.supported, len(found.seconds), self.given.runs):
            return None
        if way not in _BY_CALLS or name not in self.roofs:  # a roof from within a cache does not apply beyond it
            self.roofs[name] = 8 * found.payload_bytes / median(found.plain_seconds)
        identity = f"ingest.{name}" + ("" if way == "automatic" else f".{way}")
        about = packets.conditions() | {"way": way, "parts": found.parts}
        return self._row(identity, found, self.roofs[name], "device copy of as many bytes", about)

    def from_host(self, packets: Packets, ring_access: str) -> Json | None:
        """A ring in pinned memory."""
        found = headrace.measure.ring_build(
            self.device,
            ring_access=ring_access,
            payload_bytes=packets.payload_bytes,
            payload_max=packets.payload_max,
            header_bytes=packets.lead_bytes + packets.header_bytes,
            slot_bytes=packets.slot_bytes,
            total_bytes=4 * self.given.total * MIB,
            ring_bytes=self.given.ring * MIB,
            frame_bytes=self.given.frame * MIB,
            flush_bytes=self.given.flush * 1024,
            runs=self.given.runs,
        )
        if not is_whole(found.supported, len(found.seconds), self.given.runs):
            return None
        identity = f"ingest.pinned.{packets.name}" + ("" if ring_access == "automatic" else f".{ring_access}")
        about = packets.conditions() | {
            "ring_access": ring_access,
            "ring_mib": self.given.ring,
            "frame_mib": self.given.frame,
            "flush_kib": self.given.flush,
        }
        roof = 8 * found.payload_bytes / median(found.plain_seconds)
        return self._row(identity, found, roof, "pinned link, host to device", about)

    def resident(self, packets: Packets) -> Json | None:
        """A ring in pinned memory, with control on the device."""
        found = headrace.measure.resident_build(
            self.device,
            payload_bytes=packets.payload_bytes,
            slot_bytes=packets.slot_bytes,
            total_bytes=4 * self.given.total * MIB,
            ring_bytes=self.given.ring * MIB,
            frame_bytes=self.given.frame * MIB,
            runs=self.given.runs,
        )
        if not is_whole(found.supported, len(found.seconds), self.given.runs):
            return None
        about = packets.conditions() | {"ring_mib": self.given.ring, "frame_mib": self.given.frame}
        roof = 8 * found.payload_bytes / median(found.plain_seconds)
        return self._row(f"ingest.resident.{packets.name}", found, roof, "pinned link, host to device", about)

    def _make(self, name: str, packets: Packets, how: str) -> Json | None:
        if ".device." in name:
            return self.on_device(packets, how)
        return self.resident(packets) if ".resident." in name else self.from_host(packets, how)

    def rows(self) -> Iterator[Json]:
        """Every requested row that the device supports."""
        only = self.given.only
        cases = [(f"ingest.device.{packets.name}", packets, way) for packets in _DEVICE for way in self.given.ways]
        cases += [
            (f"ingest.pinned.{packets.name}", packets, way) for packets in _PINNED for way in self.given.ring_access
        ]
        cases += [(f"ingest.resident.{packets.name}", packets, "automatic") for packets in _RESIDENT]
        for name, packets, how in cases:
            identity = name + ("" if how == "automatic" else f".{how}")
            if only and not any(identity.startswith(word) for word in only):
                continue
            began = time.monotonic()
            made = self._make(name, packets, how)
            took = f"{time.monotonic() - began:.1f} s" if made else "left out: this device does not support it"
            if made:
                yield made
            say(f"{identity}: {took}")


def main() -> int:
    """Runs the program."""
    given = _parse()
    return run("ingest", given, lambda device: Bench(device, given).rows())


if __name__ == "__main__":
    sys.exit(main())
