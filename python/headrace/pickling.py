"""Pickles devices by name, plans as JSON, and indexes as the bytes of an index file."""

import copyreg
import os
from collections.abc import Callable
from pathlib import Path

from headrace._core import Device, Index, Plan


def device_of(name: str) -> Device:
    """The device with that name in this process. Raises UsageError if there is none."""
    return Device.parse(name)


def plan_of(text: str) -> Plan:
    """Restores a plan from Plan.to_json()."""
    return Plan.from_json(text)


def index_of(content: bytes) -> Index:
    """Restores an index from the bytes of Index.save().

    Raises:
        DataError: for bytes that are not an index.
    """
    with os.fdopen(os.memfd_create("headrace-index", os.MFD_CLOEXEC), "wb") as file:
        file.write(content)
        file.flush()
        return Index.load(f"/proc/self/fd/{file.fileno()}")  # this maps the file


def _device(device: Device) -> tuple[Callable[[str], Device], tuple[str]]:
    return device_of, (device.name,)


def _plan(plan: Plan) -> tuple[Callable[[str], Plan], tuple[str]]:
    return plan_of, (plan.to_json(),)


def _index(index: Index) -> tuple[Callable[[bytes], Index], tuple[bytes]]:
    import tempfile  # noqa: PLC0415 # takes 5 ms, and few programs pickle an index

    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        path = Path(folder) / "index.hridx"
        index.save(path)
        return index_of, (path.read_bytes(),)


def register() -> None:
    """Registers the types with pickle and copy."""
    copyreg.pickle(Device, _device)
    copyreg.pickle(Plan, _plan)
    copyreg.pickle(Index, _index)
