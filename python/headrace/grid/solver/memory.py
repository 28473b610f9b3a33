"""The memory that a scene needs, and whether it is available."""

import os
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headrace._core import Device
from headrace.errors import DeviceError, Errc
from headrace.grid.solver.model import Layout
from headrace.grid.solver.painting import lay
from headrace.grid.solver.poles import is_dispersive, values_of
from headrace.grid.solver.scene import Material, Scene
from headrace.grid.spacing import is_even
from headrace.tables import figure
from headrace.units import GIB

_PLANE = 2
_AROUND = 7  # cells on whose materials the components of E in a cell depend
_COMBINATION = {"single": 32 + 16, "double": 48 + 32}  # bytes, for E and H
_RUNS = 2 * 4 / 8  # bytes per cell if rows have long runs of one combination, for E and H
_SMALL = 0.01  # share of the fields: tables that cannot exceed it are not counted cell by cell


def arrays_of(scene: Scene) -> int:
    """Arrays over the whole domain on devices: components, coefficients, and memory of absorbing layers.

    With ez in two dimensions a cell has three coefficients, four with smoothing, magnetic walls or cells that are no
    squares; otherwise it has the numbers of two combinations.
    """
    own = scene.smoothing or bool(scene.magnetic_walls) or not (is_even(scene.spacing) or values_of(scene))
    coefficients = 2 if _in_combinations(scene) else 3 + int(own)
    remembered = {2: 4, 3: 12}[scene.dimensions] if scene.cpml else 0
    return len(scene.fields) + coefficients + remembered + _arrays_of_poles(scene)


def _in_combinations(scene: Scene) -> bool:
    """Whether cells have the numbers of combinations of coefficients instead of coefficients."""
    return scene.dimensions > _PLANE or scene.polarisation == "te"


def _arrays_of_poles(scene: Scene) -> int:
    """Memory of the poles of dispersive materials; with ez in two dimensions also the medium number of each cell."""
    values = values_of(scene)
    if values == 0:
        return 0
    return len(scene.electric_axes) * values if _in_combinations(scene) else values + 1


def spare_of(scene: Scene, layout: Layout) -> int:
    """Arrays that passes over memory write to: a second set of components. CPU devices do without such passes."""
    kinds = {Device.parse(name).kind.name for name in layout.devices}
    least = 2 if scene.cpml else 1
    passes = scene.dimensions == _PLANE and layout.mode == "streams" and layout.redundant >= least
    passes = passes and "cpu" not in kinds
    passes = passes and not is_dispersive(scene) and not scene.periodic
    return len(scene.fields) if passes else 0


def device_bytes(scene: Scene, layout: Layout) -> int:
    """Memory of fields and tables on all devices together, without ghost cells."""
    arrays = arrays_of(scene) + spare_of(scene, layout)
    fields = scene.cells * arrays * (4 if scene.precision == "single" else 8)
    if not _in_combinations(scene):
        return fields
    table = _COMBINATION[scene.precision] * layout.count
    most = combinations_most(scene)
    if most * table > _SMALL * fields:
        most = min(most, _mixed_cells(scene))
    return fields + most * table + int(_RUNS * scene.cells)


def combinations_most(scene: Scene) -> int:
    """Upper bound on the number of material combinations around the cells of a scene."""
    if any(not painted.averaging for painted in scene.objects):
        return scene.cells
    used = {scene.background, *(painted.material for painted in scene.objects)}
    unlike = {_properties(scene.materials[name]) for name in used}
    return min(int(len(unlike) ** (_AROUND if scene.averaging else 1)), scene.cells)


def _properties(material: Material) -> tuple[object, ...]:
    return material.permittivity, material.conductivity, material.permeability, material.poles


def _mixed_cells(scene: Scene) -> int:
    """Number of cells that have several materials around them, or edges of their own.

    Each of them may be a separate combination.
    """
    laid = lay(scene)
    cells, materials = laid.cells, laid.materials
    mixed: NDArray[np.bool_] = np.zeros(scene.shape, dtype=np.bool_, order="F")
    for by in product((0, 1), repeat=scene.dimensions):
        here = tuple(slice(one, None) for one in by)
        before = tuple(slice(None, -one or None) for one in by)
        mixed[here] |= cells[here] != cells[before]
    return int(np.count_nonzero(mixed)) + len(materials) + sum(own.cells.size for own in laid.edges.values())


def in_slabs(scene: Scene, layout: Layout) -> bool:
    """Whether a scene exceeds its device's memory limit and is therefore visited slab by slab."""
    room = layout.device_memory or Device.parse(layout.devices[0]).memory().free_bytes
    return _may_be_slabs(scene, layout) and device_bytes(scene, layout) > room


def _may_be_slabs(scene: Scene, layout: Layout) -> bool:
    return layout.may_be_slabs and not scene.periodic


def _host_bytes(scene: Scene) -> int:
    """Host memory of a scene in slabs, without the memory of layers and poles."""
    arrays = len(scene.fields) + (2 if _in_combinations(scene) else 0)
    return scene.cells * arrays * (4 if scene.precision == "single" else 8)


def check(scene: Scene, layout: Layout) -> None:
    """Checks the memory of the devices, or of the host for a scene that is visited slab by slab.

    Raises:
        DeviceError: saying how much is needed, how much there is, and how many such devices would suffice.
    """
    needed = device_bytes(scene, layout) * len(layout.devices) // layout.count
    # CPU devices share one memory.
    devices = [Device.parse(name) for name in layout.devices]
    unlike = {("cpu" if device.kind.name == "cpu" else device.name): device for device in devices}
    free = [device.memory().free_bytes for device in unlike.values()]
    if needed <= sum(free):
        return
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if _may_be_slabs(scene, layout) and _host_bytes(scene) <= host:
        return
    beside = f", and the host {host / GIB:.3g} GiB" if _may_be_slabs(scene, layout) else ""
    more = f"; {-(-needed // min(free))} such devices would suffice" if min(free) and "cpu" not in unlike else ""
    raise DeviceError(
        f"{scene.path}: {figure(scene.cells)} cells in {scene.precision} precision need {needed / GIB:.3g} GiB, and "
        f"{', '.join(device.name for device in devices)} {'has' if len(devices) == 1 else 'have'} "
        f"{sum(free) / GIB:.3g} GiB free{beside}{more}",
        Errc.out_of_memory,
    )
