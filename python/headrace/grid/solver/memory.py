"""How much memory a scene needs, and whether it is there."""

from headrace._core import Device
from headrace.errors import DeviceError, Errc
from headrace.grid.solver.model import Layout
from headrace.grid.solver.scene import Scene
from headrace.tables import figure

_GIB = 1 << 30
_PLANE = 2
_LEAST_ON_CPU = 4  # steps a pass, below which CPU devices have none


def arrays_of(scene: Scene) -> int:
    """Arrays of the whole domain on devices: components, three factors a cell, and what absorbing layers remember."""
    remembered = {2: 4, 3: 12}[scene.dimensions] if scene.cpml else 0
    return len(scene.fields) + 3 + remembered


def spare_of(scene: Scene, layout: Layout) -> int:
    """Arrays that passes over memory store into: components once more."""
    kinds = {Device.parse(name).kind.name for name in layout.devices}
    least = _LEAST_ON_CPU if "cpu" in kinds else 2 if scene.cpml else 1
    passes = scene.dimensions == _PLANE and layout.mode == "streams" and layout.redundant >= least
    return len(scene.fields) if passes else 0


def device_bytes(scene: Scene, layout: Layout) -> int:
    """What the fields need on all devices together, without ghost cells."""
    arrays = arrays_of(scene) + spare_of(scene, layout)
    return scene.cells * arrays * (4 if scene.precision == "single" else 8)


def check(scene: Scene, layout: Layout) -> None:
    """Whether the devices have the room.

    Raises:
        DeviceError: saying how much is needed, how much there is, and how many such devices would do.
    """
    needed = device_bytes(scene, layout) * len(layout.devices) // layout.count
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
