"""How much memory a scene needs, and whether it is there."""

from headrace._core import Device
from headrace.errors import DeviceError, Errc
from headrace.grid.solver.model import Layout
from headrace.grid.solver.scene import Scene
from headrace.tables import figure

_GIB = 1 << 30


def arrays_of(scene: Scene) -> int:
    """Arrays of the whole domain on devices: components, three factors a cell, and what absorbing layers remember."""
    remembered = {2: 4, 3: 12}[scene.dimensions] if scene.cpml else 0
    return len(scene.fields) + 3 + remembered


def device_bytes(scene: Scene) -> int:
    """What the fields need on all devices together, without ghost cells."""
    return scene.cells * arrays_of(scene) * (4 if scene.precision == "single" else 8)


def check(scene: Scene, layout: Layout) -> None:
    """Whether the devices have the room.

    Raises:
        DeviceError: saying how much is needed, how much there is, and how many such devices would do.
    """
    needed = device_bytes(scene) * len(layout.devices) // layout.count
    # CPU devices share one memory.
    devices = [Device.parse(name) for name in layout.devices]
    unlike = {("cpu" if device.kind.name == "cpu" else device.name): device for device in devices}
    free = [device.memory().free_bytes for device in unlike.values()]
    if needed <= sum(free):
        return
    more = f"; {-(-needed // min(free))} such devices would do" if min(free) and "cpu" not in unlike else ""
    raise DeviceError(
        f"{scene.path}: {figure(scene.cells)} cells in {scene.precision} precision need {needed / _GIB:.3g} GiB, and "
        f"{', '.join(device.name for device in devices)} {'has' if len(devices) == 1 else 'have'} "
        f"{sum(free) / _GIB:.3g} GiB free{more}",
        Errc.out_of_memory,
    )
