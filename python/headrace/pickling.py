"""How devices, plans and indexes are pickled: by name, as JSON, and as the bytes of an index file."""

import copyreg
import os
from collections.abc import Callable
from pathlib import Path

from headrace._core import Device, Index, Plan


def device_of(name: str) -> Device:
    """The device of that name in this process. Raises UsageError where it has none."""
    return Device.parse(name)


def plan_of(text: str) -> Plan:
    """The plan that Plan.to_json() wrote."""
    return Plan.from_json(text)


def index_of(content: bytes) -> Index:
    """The index of the bytes that Index.save() wrote.

    Raises:
        DataError: for bytes that are none.
    """
    with os.fdopen(os.memfd_create("headrace-index", os.MFD_CLOEXEC), "wb") as file:
        file.write(content)
        file.flush()
        return Index.load(f"/proc/self/fd/{file.fileno()}")  # which maps it


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
    """Tells pickle and copy."""
    copyreg.pickle(Device, _device)
    copyreg.pickle(Plan, _plan)
    copyreg.pickle(Index, _index)
