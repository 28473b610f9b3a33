"""Slots for processes: a slot is room for one process, on one GPU or on the CPU."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace._core import Device
from headrace.errors import Errc, UsageError

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Slot:
    """Room for one process at a time, and the GPU that the process sees."""

    device: str  # name in this process: cuda:1, or cpu
    visible: str  # value of CUDA_VISIBLE_DEVICES in the process

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process in this slot."""
        return {**base, VISIBLE: self.visible}


def gpu_count() -> int:
    """Number of CUDA devices that this process sees."""
    return sum(1 for device in Device.list() if device.kind.name == "cuda")


def visible_names(count: int, environment: Mapping[str, str]) -> list[str]:
    """Values of CUDA_VISIBLE_DEVICES that make a process see exactly one of the `count` devices, for each of them.

    If the variable is already set, device i is its entry i, whether a number or a UUID; CUDA takes entries in order up
    to the first invalid one (CUDA C++ Programming Guide, "CUDA Environment Variables").

    Raises:
        UsageError: when the variable has fewer entries than there are devices.
    """
    if VISIBLE not in environment:
        return [str(number) for number in range(count)]
    entries = [entry.strip() for entry in environment[VISIBLE].split(",")]
    if len(entries) < count:
        raise UsageError(f"{VISIBLE}={environment[VISIBLE]} names fewer devices than the {count} present")
    return entries[:count]


def gpu_slots(
    names: Sequence[str] | None, per_device: int, count: int, environment: Mapping[str, str] = os.environ
) -> list[Slot]:
    """`per_device` slots on each GPU of `names`, or on all `count` GPUs; adjacent slots are on different GPUs.

    Raises:
        UsageError: for a name that is not a GPU of this machine, or one that is given twice.
    """
    visible = visible_names(count, environment)
    known = [f"cuda:{number}" for number in range(count)]
    chosen = known if names is None else list(names)
    for name in chosen:
        if name not in known:
            here = ", ".join(known) or "no GPU"
            raise UsageError(f"there is no device '{name}' to run on; here: {here}", Errc.not_found)
    if len(set(chosen)) < len(chosen):
        raise UsageError("a device is named twice: --slots-per-device runs several processes on one")
    return [Slot(name, visible[known.index(name)]) for _ in range(per_device) for name in chosen]


def cpu_slots(count: int | None = None) -> list[Slot]:
    """`count` slots that see no GPU; default: one per processor that this process may use."""
    return [Slot("cpu", "")] * (count or len(os.sched_getaffinity(0)))
