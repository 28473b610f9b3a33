"""What a simulation on a grid tells of itself."""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.base import parse_bytes


class WorkSpan(NamedTuple):
    """A part did something; seconds from where it began the first cycle that was recorded."""

    part: int
    cycle: int
    work: str  # "body", "border", "push", "messages", "receive" or "interior"
    begin: float
    end: float


@dataclass(frozen=True)
class Slabs:
    """How a domain that is larger than the memory of its device is cut along its last axis."""

    rows: int  # of a slab: in space, planes
    count: int
    steps: int  # of a visit: from a slab's way in to its way out
    bytes_in: int  # that a visit of all slabs copies to the device,
    bytes_out: int  # and back
    device_bytes: int  # of the fields, in the memory of the device
    host_bytes: int  # of the fields, in page-locked memory of the host


def bytes_of(size: int | str | None) -> int:
    """A size in bytes, as a number or in words such as "8GiB"; 0 for None.

    Raises:
        UsageError: for words that are no size.
    """
    if size is None:
        return 0
    return parse_bytes(size) if isinstance(size, str) else int(size)
