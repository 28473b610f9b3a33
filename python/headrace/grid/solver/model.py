"""A scene as what the solver takes: arrays of materials, samples of sources, cells of receivers."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headrace._core import Ranks
from headrace.grid.solver import plane_wave
from headrace.grid.solver.scene import VACUUM_PERMITTIVITY, Cell, Material, Scene, Source
from headrace.grid.solver.shapes import SLACK, Axes, Mask, Shape
from headrace.grid.solver.smoothing import smooth
from headrace.grid.solver.waveforms import Samples

Array = NDArray[Any]

# How many cells are looked at at once while an object is painted.
_SLAB_CELLS = 1 << 22


class Solver(Protocol):
    """What headrace.grid.Fdtd is to this package."""

    @property
    def steps_done(self) -> int: ...  # noqa: D102
    @property
    def moved_bytes(self) -> int: ...  # noqa: D102
    def set_materials(self, permittivity: Any, conductivity: Any, permeability: Any) -> None: ...  # noqa: ANN401, D102
    def set_component_materials(  # noqa: D102
        self,
        permittivity: Any,  # noqa: ANN401
        conductivity: Any,  # noqa: ANN401
        permeability_hx: Any,  # noqa: ANN401
        permeability_hy: Any,  # noqa: ANN401
    ) -> None: ...
    def add_source(self, field: str, cell: tuple[int, ...], samples: Samples) -> None: ...  # noqa: D102
    def add_sources(self, field: str, cells: NDArray[np.int64], samples: Samples) -> None: ...  # noqa: D102
    def add_receiver(self, field: str, cell: tuple[int, ...]) -> int: ...  # noqa: D102
    def step(self, count: int) -> None: ...  # noqa: D102
    def field(self, name: str) -> Array: ...  # noqa: D102
    def trace(self, receiver: int) -> Array: ...  # noqa: D102
    def state(self) -> dict[str, Array]: ...  # noqa: D102
    def restore(self, state: dict[str, Array]) -> None: ...  # noqa: D102


@dataclass(frozen=True)
class Layout:
    """How the domain is spread over devices."""

    devices: tuple[str, ...] = ("cpu:0",)
    cut: str | tuple[int, ...] = "best"
    redundant: int = 1
    push: str = "automatic"
    mode: str = "streams"
    ranks: Ranks | None = None  # the processes that share it; `devices` are those of this one
    weights: tuple[float, ...] | None = None  # slabs along the last axis are as thick as these say
    wait_limit: float = 30.0  # s, of kernels in mode "resident"

    @property
    def first(self) -> bool:
        """Whether this process is the one that has whole fields, and writes files."""
        return self.ranks is None or self.ranks.rank == 0

    @property
    def count(self) -> int:
        """Parts of the domain, in all processes."""
        return len(self.devices) * (self.ranks.count if self.ranks else 1)

    def agree(self, numbers: list[int]) -> list[int]:
        """The numbers of the first process, on all: what depends on time or on a signal, they must do alike."""
        return self.ranks.agree(numbers) if self.ranks else numbers


@dataclass(frozen=True)
class Model:
    """A solver that is set up, and the numbers of its receivers by (receiver, field)."""

    solver: Solver
    receivers: dict[tuple[str, str], int]


def paint(scene: Scene) -> tuple[NDArray[np.uint16], list[Material]]:
    """The material of every cell, as a number in the list that comes with it; x is contiguous, as for the solver."""
    materials = list(scene.materials.values())
    number = {material.name: index for index, material in enumerate(materials)}
    cells = np.full(scene.shape, number[scene.background], dtype=np.uint16, order="F")
    for painted in scene.objects:
        _paint(cells, painted.shape, number[painted.material], scene)
    return cells, materials


def _paint(cells: NDArray[np.uint16], shape: Shape, number: int, scene: Scene) -> None:
    """Gives the cells of a shape that number."""
    for slab, mask in _covered(shape, scene):
        part = cells[slab]
        part[np.broadcast_to(mask, part.shape)] = number


def cells_of(shape: Shape, scene: Scene) -> int:
    """How many cells of the domain a shape covers."""
    return sum(
        int(np.count_nonzero(np.broadcast_to(mask, [one.stop - one.start for one in slab])))
        for slab, mask in _covered(shape, scene)
    )


def _covered(shape: Shape, scene: Scene) -> Iterator[tuple[tuple[slice, ...], Mask]]:
    """Slabs of cells around a shape, and which of them it covers; along the last axis, so that arrays stay small."""
    ranges = []
    for low, high, count in zip(*shape.bounds(scene.size), scene.shape, strict=True):
        first, end = np.clip(np.floor([low / scene.spacing - 1, high / scene.spacing + 2]), 0, count)
        ranges.append(range(int(first), int(end)))
    if any(len(one) == 0 for one in ranges):
        return
    last = ranges[-1]
    thickness = max(1, _SLAB_CELLS // int(np.prod([len(one) for one in ranges[:-1]])))
    for first in range(last.start, last.stop, thickness):
        slab = [*ranges[:-1], range(first, min(first + thickness, last.stop))]
        mask = shape.covers(_centres(slab, scene.spacing), SLACK * scene.spacing)
        yield tuple(slice(one.start, one.stop) for one in slab), mask


def _centres(ranges: list[range], spacing: float) -> Axes:
    """The centres of those cells along each axis, shaped so that they broadcast."""
    found = []
    for axis, one in enumerate(ranges):
        shape = [1] * len(ranges)
        shape[axis] = len(one)
        found.append(np.asarray((np.arange(one.start, one.stop) + 0.5) * spacing, dtype=np.float64).reshape(shape))
    return found


def _values(cells: NDArray[np.uint16], materials: list[Material], name: str) -> Array | float:
    """One property of every cell: a number where all are alike, which needs no array."""
    used = np.unique(cells)
    table = np.array([getattr(material, name) for material in materials])
    if len(set(table[used].tolist())) == 1:
        return float(table[used[0]])
    return np.asarray(table[cells])


def _material_of(scene: Scene, name: str, cell: Cell, cells: NDArray[np.uint16], materials: list[Material]) -> Material:
    """What a component of E lies in: the mean of the four cells around its edge, or the material of its cell."""
    own: Material = materials[cells[cell]]
    if not scene.averaging:
        return own
    along = "xyz".index(name[1])
    # An edge has two cells along each axis across it; those at a wall count as if they went on beyond.
    near = [(at,) if axis == along else (max(at - 1, 0), at) for axis, at in enumerate(cell)]
    around = [materials[cells[place]] for place in product(*near)]
    return replace(
        own,
        permittivity=sum(one.permittivity for one in around) / len(around),
        conductivity=sum(one.conductivity for one in around) / len(around),
    )


def samples(scene: Scene, source: Source, material: Material) -> Samples:
    """What a source adds to its field in each step, in V/m.

    A current I adds -dt / eps J / (1 + sigma dt / (2 eps)), where J is I / spacing^2: the current of a line across
    the cell in two dimensions, that of a dipole as long as the cell in three. It is taken half way through the step.
    """
    # Past its end a pulse is exactly 0, however long the run is.
    count = int(min(scene.steps, max(1, math.ceil(min(source.wave.end(scene.dt) / scene.dt, scene.steps)))))
    begins = np.asarray(np.arange(count) * scene.dt, dtype=np.float64)
    permittivity = material.permittivity * VACUUM_PERMITTIVITY
    loss = material.conductivity * scene.dt / (2 * permittivity)
    factor = -scene.dt / permittivity / (1 + loss) / scene.spacing**2
    return np.asarray(factor * source.wave.at(begins, begins + scene.dt / 2, scene.dt))


def _sum(first: Samples, second: Samples) -> Samples:
    """Add two sources, of which one may end before the other."""
    total = np.zeros(max(first.size, second.size))
    total[: first.size] += first
    total[: second.size] += second
    return total


def build(scene: Scene, layout: Layout, maker: Callable[..., Solver] | None = None) -> Model:
    """A solver for the scene; `maker` is headrace.grid.Fdtd, or what can stand in for it."""
    if maker is None:
        from headrace.grid import Fdtd  # noqa: PLC0415 - loads the extension

        maker = Fdtd
    shared: dict[str, Any] = {"ranks": layout.ranks} if layout.ranks else {}
    if scene.smoothing:
        shared["per_component"] = True
    solver = maker(
        shape=scene.shape,
        spacing=scene.spacing,
        dt=scene.dt,
        devices=list(layout.devices),
        cut=layout.cut,
        weights=layout.weights,
        redundant=layout.redundant,
        push=layout.push,
        mode=layout.mode,
        wait_limit=layout.wait_limit,
        cpml=scene.layers,
        precision=scene.precision,
        averaging=scene.averaging,
        **shared,
    )
    cells, materials = paint(scene)
    smoothed = smooth(scene) if scene.smoothing else None
    if smoothed:
        solver.set_component_materials(
            permittivity=smoothed.permittivity,
            conductivity=smoothed.conductivity,
            permeability_hx=smoothed.permeability_hx,
            permeability_hy=smoothed.permeability_hy,
        )
    else:
        solver.set_materials(
            permittivity=_values(cells, materials, "permittivity"),
            conductivity=_values(cells, materials, "conductivity"),
            permeability=_values(cells, materials, "permeability"),
        )
    sums: dict[tuple[str, tuple[int, ...]], Samples] = {}
    for source in scene.sources:
        cell = scene.cell(source.position)
        around = smoothed.at(cell) if smoothed else _material_of(scene, source.field, cell, cells, materials)
        added = samples(scene, source, around)
        key = (source.field, cell)
        sums[key] = _sum(sums[key], added) if key in sums else added
    for (field, cell), total in sums.items():
        solver.add_source(field, cell, total)
    for wave in scene.plane_waves:
        for face in plane_wave.faces(scene, wave, cells, materials):
            solver.add_sources(face.field, face.cells, face.samples)
    receivers = {
        (receiver.name, field): solver.add_receiver(field, scene.cell(receiver.position))
        for receiver in scene.receivers
        for field in receiver.fields
    }
    return Model(solver, receivers)


def time_of(scene: Scene, field: str, steps: int) -> float:
    """When the values of a field are that are there after so many steps, in seconds.

    Electric fields are those of the end of the last step, magnetic ones of half a step before.
    """
    return (steps - (0.0 if field.startswith("e") else 0.5)) * scene.dt


def times(scene: Scene, field: str, steps: int) -> Samples:
    """When the values of a trace were, in seconds: electric fields at the end of a step, magnetic ones half way."""
    return np.asarray((np.arange(steps) + (1.0 if field.startswith("e") else 0.5)) * scene.dt, dtype=np.float64)
