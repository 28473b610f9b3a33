"""Which link measurements exist, and how thorough they are."""

from collections.abc import Callable
from dataclasses import dataclass

import headrace
from headrace._core import Device
from headrace.errors import UsageError
from headrace.units import GIB, KIB, MIB

SECTIONS = (
    "topology",
    "bandwidth",
    "latency",
    "together",
    "batched",
    "chase",
    "atomics",
    "hiding",
    "peer",
    "counters",
)
_NEED_PAIR = {"together", "peer", "counters"}

_QUICK_SIZES = (1 * KIB, 64 * MIB, 4)
_FULL_SIZES = (1 * KIB, 1 * GIB, 2)
_QUICK_CHASE = (16 * KIB, 64 * MIB, 16)
_FULL_CHASE = (16 * KIB, 256 * MIB, 2)
STRIDE_BYTES = 4 * MIB
_CHAIN_LEAST = 4 * KIB
LINE = 128  # bytes of a GPU's cache line

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Settings:
    """What to measure, and how thoroughly."""

    devices: list[Device]
    sections: tuple[str, ...] = SECTIONS
    sizes: tuple[int, ...] = ()
    full: bool = False

    @property
    def samples(self) -> int:
        """Number of measurements per figure."""
        return 9 if self.full else 3

    @property
    def link_sizes(self) -> list[int]:
        """Transfer sizes."""
        return list(self.sizes) or headrace.measure.link_sizes(*(_FULL_SIZES if self.full else _QUICK_SIZES))

    @property
    def chain_sizes(self) -> list[int]:
        """Chain sizes: the requested ones that can hold a chain."""
        asked = [size for size in self.sizes if size >= _CHAIN_LEAST]
        return asked or headrace.measure.link_sizes(*(_FULL_CHASE if self.full else _QUICK_CHASE))

    @property
    def pairs(self) -> list[tuple[Device, Device]]:
        """Every ordered pair of devices of one kind."""
        return [(a, b) for a in self.devices for b in self.devices if a != b and a.kind == b.kind]


def chosen_sections(text: str | None) -> tuple[str, ...]:
    """The sections that "bandwidth,chase" names; all of them for None.

    Raises:
        UsageError: for an unknown section.
    """
    if text is None:
        return SECTIONS
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in SECTIONS:
            raise UsageError(f"there is no section '{name}': {', '.join(SECTIONS)}")
    return tuple(name for name in SECTIONS if name in names)


def default_devices() -> list[Device]:
    """Every CUDA device; on a machine without any, two CPU devices, so that there is a pair."""
    found = [device for device in Device.list() if device.kind.name == "cuda"]
    return found or [Device.parse("cpu:0"), Device.parse("cpu:1")]


def check_pairs(settings: Settings) -> None:
    """Refuses explicitly requested sections that need two devices when there is only one.

    Raises:
        UsageError: naming the devices present.
    """
    lacking = [section for section in settings.sections if section in _NEED_PAIR]
    if lacking and settings.sections != SECTIONS and not settings.pairs:
        names = ", ".join(device.name for device in settings.devices)
        raise UsageError(f"section {lacking[0]} needs two devices of one kind, but there is only {names}")
