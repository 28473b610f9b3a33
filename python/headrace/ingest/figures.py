"""Derives figures for people from a receiver's counters: rates over a time, and totals."""

from dataclasses import asdict, dataclass
from typing import Any

from headrace.units import GIGABIT, NANO

Counters = dict[str, dict[str, int]]
"""The result of Receiver.counters(): counts by part and name."""


@dataclass(frozen=True)
class Figures:
    """Figures of a receiver over a time. Values that a protocol does not have are 0."""

    seconds: float
    bytes: int
    """Accepted bytes of payload."""
    packets: int
    """Packets of the source: those that a kernel has merged count as one."""
    frames: int
    gaps: int
    """TCP: places where bytes were missing for a while, or for good in captures. Datagrams: those that never came."""
    sent_again: int
    """Packets with bytes that arrived late or repeatedly: retransmissions as seen by a receiver."""
    dropped: int
    """Packets for which the source or the receiver had no room."""
    window_bytes: int
    """The smallest window currently offered on an open connection."""
    round_trip: float
    """Latest round trip of any connection, in seconds."""
    connections: int
    """Open connections."""

    @property
    def gigabits_per_second(self) -> float:
        """Rate of payload."""
        return self.bytes / self.seconds / GIGABIT if self.seconds > 0 else 0.0

    @property
    def packets_per_second(self) -> float:
        """Rate by the source's count."""
        return self.packets / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The figures for JSON, with rates."""
        return asdict(self) | {
            "gigabits_per_second": self.gigabits_per_second,
            "packets_per_second": self.packets_per_second,
        }


def accepted_bytes(counters: Counters) -> int:
    """Payload accepted so far, with any protocol."""
    return counters["tcp"]["bytes"] + counters["datagrams"]["bytes"] + counters["follow"]["bytes"]


def figures(before: Counters | None, after: Counters, seconds: float) -> Figures:
    """Figures between two readings `seconds` apart, or since the start if there is no first reading."""
    tcp, datagrams = _less(before, after, "tcp"), _less(before, after, "datagrams")
    source, frames = _less(before, after, "source"), _less(before, after, "frames")
    follow = _less(before, after, "follow")
    return Figures(
        seconds=seconds,
        bytes=tcp["bytes"] + datagrams["bytes"] + follow["bytes"],
        packets=source["packets"],
        frames=frames["frames"],
        gaps=tcp["gaps"] + datagrams["missing"] + follow["gaps"],
        sent_again=follow["duplicates"] + tcp["late"] + tcp["duplicates"] + datagrams["late"] + datagrams["duplicates"],
        dropped=source["dropped"] + tcp["no_room"] + datagrams["no_space"],
        window_bytes=after["streams"]["window_least_bytes"],
        round_trip=after["tcp"]["round_trip_ns"] * NANO,
        connections=after["streams"]["open_streams"],
    )


def _less(before: Counters | None, after: Counters, part: str) -> dict[str, int]:
    if before is None:
        return after[part]
    return {name: value - before[part][name] for name, value in after[part].items()}
