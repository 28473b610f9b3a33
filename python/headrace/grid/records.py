"""Records that a simulation on a grid returns."""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.base import parse_bytes


class WorkSpan(NamedTuple):
    """Work of a part; times in seconds since it began the first recorded cycle."""

    part: int
    cycle: int
    work: str  # "body", "border", "push", "messages", "receive" or "interior"
    begin: float
    end: float


@dataclass(frozen=True)
class Slabs:
    """How a domain larger than its device's memory is cut along its last axis."""

    rows: int  # of a slab; in three dimensions, planes
    count: int
    steps: int  # per visit, from copying a slab in to copying it out
    bytes_in: int  # copied to the device when every slab is visited once,
    bytes_out: int  # and copied back
    device_bytes: int  # device memory of the fields
    host_bytes: int  # page-locked host memory of the fields


def bytes_of(size: int | str | None) -> int:
    """A size in bytes, given as a number or as text such as "8GiB"; 0 for None.

    Raises:
        UsageError: for text that is not a size.
    """
    if size is None:
        return 0
    return parse_bytes(size) if isinstance(size, str) else int(size)
