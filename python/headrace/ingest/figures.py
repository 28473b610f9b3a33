"""What a receiver's counters say to people: rates over a time, and totals."""

from dataclasses import asdict, dataclass
from typing import Any

from headrace.units import GIGABIT, NANO

Counters = dict[str, dict[str, int]]
"""The result of Receiver.counters(): by the part that counts, and by name."""


@dataclass(frozen=True)
class Figures:
    """A receiver over a time. What a protocol does not know is 0."""

    seconds: float
    bytes: int
    """Bytes of payload that were accepted."""
    packets: int
    """As the source gave them: those that a kernel has merged are one."""
    frames: int
    gaps: int
    """TCP: places where bytes were missing for a while; in captures, those that stayed. Datagrams that never came."""
    sent_again: int
    """Packets with bytes that came late or once too often: a retransmission as a receiver sees it."""
    dropped: int
    """Packets for which source or receiver had no room."""
    window_bytes: int
    """The smallest that an open connection is offered now."""
    round_trip: float
    """Seconds; the latest of any connection."""
    connections: int
    """Open now."""

    @property
    def gigabits_per_second(self) -> float:
        """The rate of payload."""
        return self.bytes / self.seconds / GIGABIT if self.seconds > 0 else 0.0

    @property
    def packets_per_second(self) -> float:
        """By the source's count."""
        return self.packets / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the rates."""
        return asdict(self) | {
            "gigabits_per_second": self.gigabits_per_second,
            "packets_per_second": self.packets_per_second,
        }


def accepted_bytes(counters: Counters) -> int:
    """Payload so far, by whichever protocol."""
    return counters["tcp"]["bytes"] + counters["datagrams"]["bytes"] + counters["follow"]["bytes"]


def figures(before: Counters | None, after: Counters, seconds: float) -> Figures:
    """What happened from one reading to another, `seconds` later; from the start, where there is no first."""
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
