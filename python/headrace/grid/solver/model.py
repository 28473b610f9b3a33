"""Converts a scene for the solver: arrays of materials, samples of sources, cells of receivers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headrace._core import Ranks
from headrace.grid.solver import lines, plane_wave
from headrace.grid.solver.painting import Laid, lay, paint
from headrace.grid.solver.poles import Media, in_step, mean_poles, values_needed
from headrace.grid.solver.scene import LIGHT, VACUUM_PERMEABILITY, VACUUM_PERMITTIVITY, Cell, Material, Scene, Source
from headrace.grid.solver.shapes import AXES
from headrace.grid.solver.smoothing import Smoothed, smooth
from headrace.grid.solver.waveforms import Samples
from headrace.grid.spacing import Spacing, area_across, in_space

Array = NDArray[Any]

_FLAT = 2  # number of dimensions

__all__ = ["Layout", "Model", "Solver", "build", "paint", "samples", "time_of", "times"]


class Solver(Protocol):
    """The interface of headrace.grid.Fdtd that this package uses."""

    @property
    def steps_done(self) -> int: ...  # noqa: D102
    @property
    def moved_bytes(self) -> int: ...  # noqa: D102
    @property
    def redundant(self) -> int: ...  # noqa: D102
    @property
    def parts(self) -> list[tuple[str, str]]: ...  # noqa: D102
    def set_materials(  # noqa: D102
        self,
        permittivity: Any,  # noqa: ANN401
        conductivity: Any,  # noqa: ANN401
        permeability: Any,  # noqa: ANN401
        *,
        edges: Any,  # noqa: ANN401
        media: Any = (),  # noqa: ANN401
        medium: Any = 0,  # noqa: ANN401
    ) -> None: ...
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
    """How the domain is distributed over devices."""

    devices: tuple[str, ...] = ("cpu:0",)
    cut: str | tuple[int, ...] = "best"
    redundant: int = 1
    push: str = "automatic"
    mode: str = "streams"
    ranks: Ranks | None = None  # processes that share the domain; `devices` are those of this one
    weights: tuple[float, ...] | None = None  # relative thickness of slabs along the last axis
    wait_limit: float = 30.0  # seconds, for kernels in mode "resident"
    device_memory: int = 0  # bytes of device memory for fields; 0 for what is free
    visit_steps: int = 0  # steps per visit of a slab, if slabs are needed; 0 to choose

    @property
    def first(self) -> bool:
        """Whether this process has complete fields and writes files."""
        return self.ranks is None or self.ranks.rank == 0

    @property
    def count(self) -> int:
        """Number of parts of the domain in all processes."""
        return len(self.devices) * (self.ranks.count if self.ranks else 1)

    @property
    def may_be_slabs(self) -> bool:
        """Whether a domain larger than its device's memory can be visited slab by slab."""
        return self.count == 1 and self.mode == "streams"

    def agree(self, numbers: list[int]) -> list[int]:
        """Returns the first process's numbers on all: decisions that depend on time or signals must be the same."""
        return self.ranks.agree(numbers) if self.ranks else numbers


@dataclass(frozen=True)
class Model:
    """A configured solver, and the numbers of its receivers by (receiver, field)."""

    solver: Solver
    receivers: dict[tuple[str, str], int]


def _values(cells: NDArray[np.uint16], materials: list[Material], name: str) -> Array | float:
    """One property of every cell; a single number, without an array, if all cells are alike."""
    used = np.unique(cells)
    table = np.array([getattr(material, name) for material in materials])
    if len(set(table[used].tolist())) == 1:
        return float(table[used[0]])
    return np.asarray(table[cells])


def _material_of(scene: Scene, name: str, cell: Cell, laid: Laid) -> Material:
    """The material of a component: that set for its edge, the mean of the cells around it, or that of its cell."""
    cells, materials = laid.cells, laid.materials
    own: Material = materials[cells[cell]]
    along = "xyz".index(name[1])
    if name.startswith("h"):
        if not scene.averaging or along >= scene.dimensions or scene.dimensions == _FLAT:
            return own
        below = (scene.index_before(at, axis) if axis == along else at for axis, at in enumerate(cell))
        before = materials[cells[tuple(below)]]
        return replace(own, permeability=2 / (1 / before.permeability + 1 / own.permeability))
    edge = laid.edge_material(name, cell)
    if edge is not None or not scene.averaging:
        return edge or own
    # An edge has two cells along each axis across it, but only one along z in two dimensions; at a wall that is not
    # periodic, the cells there count twice.
    near = [(at,) if axis == along else (scene.index_before(at, axis), at) for axis, at in enumerate(cell)]
    around = [materials[cells[place]] for place in product(*near)]
    return replace(
        own,
        permittivity=sum(one.permittivity for one in around) / len(around),
        conductivity=sum(one.conductivity for one in around) / len(around),
        poles=mean_poles(around, len(around)),
    )


def samples(scene: Scene, source: Source, material: Material) -> Samples:
    """What a source adds to its field in each step, in V/m.

    A current I adds -dt / eps J / (1 + sigma dt / (2 eps)), where J is I over the face of a cell across it: the current
    of a dipole as long as the cell, or in two dimensions of a line across it. For currents in it, a plane is one cell
    thick. The current is evaluated in the middle of the step. A magnetic current adds -dt / mu M to its field, which
    belongs to a time half a step earlier, so it is evaluated at the beginning of the step. A voltage behind a
    resistance is the current that it drives through the resistance when shorted; the resistance is part of the edge's
    material, see resisting(). For a line, see lines.py.
    """
    # After its end a pulse is exactly 0, however long the run is.
    count = int(min(scene.steps, max(1, math.ceil(min(source.wave.end(scene.dt) / scene.dt, scene.steps)))))
    if source.line:
        count = min(scene.steps, count + lines.LATE)
    begins = np.asarray(np.arange(count) * scene.dt, dtype=np.float64)
    material = in_step(material, scene.dt)
    face = area_across(scene.spacing, AXES.index(source.field[1]))
    if source.field.startswith("h"):
        factor = -scene.dt / (material.permeability * VACUUM_PERMEABILITY) / face
        return np.asarray(factor * source.wave.at(begins, begins, scene.dt))
    permittivity = material.permittivity * VACUUM_PERMITTIVITY
    loss = material.conductivity * scene.dt / (2 * permittivity)
    factor = -scene.dt / permittivity / (1 + loss) / face / (source.resistance or 1)
    if source.line:
        return np.asarray(factor * lines.arriving(source.wave, count, scene.dt))
    return np.asarray(factor * source.wave.at(begins, begins + scene.dt / 2, scene.dt))


def resisting(source: Source, scene: Scene, material: Material) -> Material:
    """A material with the resistance of a source added: its conductance over the length of an edge, as a conductivity.

    The current through the face of a cell around the edge is spread over its area, so it is the length of the edge over
    the resistance and that area.
    """
    assert source.resistance is not None
    first, second, along = _turned(in_space(scene.spacing), AXES.index(source.field[1]))
    # In cubes exactly the spacing.
    return replace(material, conductivity=material.conductivity + 1 / (source.resistance * (first * (second / along))))


def _turned(spacing: Spacing, axis: int) -> tuple[float, float, float]:
    """The lengths of an edge across an axis, the other one, and the one along it; the shorter one first."""
    shorter, longer = sorted(one for other, one in enumerate(spacing) if other != axis)
    return shorter, longer, spacing[axis]


def _sum(first: Samples, second: Samples) -> Samples:
    """Adds two sources, one of which may end earlier."""
    total = np.zeros(max(first.size, second.size))
    total[: first.size] += first
    total[: second.size] += second
    return total


def _with_resistances(
    scene: Scene, laid: Laid, smoothed: Smoothed | None
) -> dict[tuple[str, tuple[int, ...]], Material]:
    """The material of each source's component, with the resistances of sources there; also set in `smoothed`."""
    found: dict[tuple[str, tuple[int, ...]], Material] = {}
    ends = {(source.field, scene.cell(source.position)) for source in scene.sources if source.line}
    for source in scene.sources:
        cell = scene.cell(source.position)
        key = (source.field, cell)
        if key not in found:
            found[key] = smoothed.at(source.field, cell) if smoothed else _material_of(scene, source.field, cell, laid)
            if key in ends:  # whose end replaces what the edge is made of
                found[key] = replace(found[key], conductivity=0.0, poles=())
        if source.resistance is None:
            continue
        found[key] = resisting(source, scene, found[key])
        if smoothed:
            smoothed.conductivity[cell] = found[key].conductivity
    # The step is stable in vacuum, so a shorter one is stable for less.
    shortest = min(scene.spacing)
    shares = sum((shortest / one) ** 2 for one in scene.spacing)  # in cubes, exactly the number of dimensions
    least = min(1.0, (LIGHT * scene.dt / shortest) ** 2 * shares)
    for key in ends:
        found[key] = lines.ended(found[key], scene.dt, least)
        if smoothed:
            smoothed.permittivity[key[1]] = found[key].permittivity
    return found


def _edges(
    scene: Scene, laid: Laid, around: dict[tuple[str, tuple[int, ...]], Material], media: Media
) -> dict[str, Any]:
    """Edges with their own materials, by component: nodes, permittivities, conductivities, dispersive media."""
    found: dict[str, Any] = {}
    resisted = {
        (source.field, scene.cell(source.position)) for source in scene.sources if source.resistance is not None
    }
    for name in {*laid.edges, *(field for field, _ in resisted)}:
        own = laid.edges.get(name)
        cells = own.cells if own else np.zeros(0, dtype=np.int64)
        values = {
            key: np.array([getattr(one, key) for one in laid.materials])[own.materials] if own else np.zeros(0)
            for key in ("permittivity", "conductivity")
        }
        extra = [key for key in sorted(resisted) if key[0] == name]
        numbers = np.array([np.ravel_multi_index(cell, scene.shape, order="F") for _, cell in extra], dtype=np.int64)
        kept = ~np.isin(cells, numbers)
        nodes = np.concatenate([cells[kept], numbers])
        columns = [
            np.concatenate([values[key][kept], [getattr(around[one], key) for one in extra]])
            for key in ("permittivity", "conductivity")
        ]
        numbers_of = np.array([media.number(one) for one in laid.materials], dtype=np.uint16)
        its = numbers_of[own.materials][kept] if own else np.zeros(0, dtype=np.uint16)
        its = np.concatenate([its, np.array([media.number(around[one]) for one in extra], dtype=np.uint16)])
        if its.any():
            columns.append(its)
        found[name] = (np.stack(np.unravel_index(nodes, scene.shape, order="F"), axis=1), *columns)
    return found


def build(scene: Scene, layout: Layout, maker: Callable[..., Solver] | None = None) -> Model:
    """A solver for the scene; `maker` is headrace.grid.Fdtd, or a substitute."""
    if maker is None:
        from headrace.grid import Fdtd  # noqa: PLC0415 - loads the extension

        maker = Fdtd
    shared: dict[str, Any] = {"ranks": layout.ranks} if layout.ranks else {}
    if scene.polarisation != "tm":
        shared["polarisation"] = scene.polarisation
    if scene.smoothing:
        shared["per_component"] = True
    open_walls = {"magnetic_walls": scene.walls_named(), "periodic": scene.periodic_named()}
    shared |= {name: axes for name, axes in open_walls.items() if axes}
    if layout.device_memory or layout.visit_steps:
        shared |= {"device_memory": layout.device_memory, "visit_steps": layout.visit_steps}
    laid = lay(scene)
    values = values_needed(scene, laid)
    if values:
        shared["pole_values"] = values
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
    smoothed = smooth(scene) if scene.smoothing else None
    around = _with_resistances(scene, laid, smoothed)
    if smoothed:
        solver.set_component_materials(
            permittivity=smoothed.permittivity,
            conductivity=smoothed.conductivity,
            permeability_hx=smoothed.permeability_hx,
            permeability_hy=smoothed.permeability_hy,
        )
    else:
        media = Media([])
        edges = _edges(scene, laid, around, media)
        cells = media.of_cells(laid)
        dispersive: dict[str, Any] = {"media": media.listed, "medium": cells} if values else {}
        solver.set_materials(
            permittivity=_values(laid.cells, laid.materials, "permittivity"),
            conductivity=_values(laid.cells, laid.materials, "conductivity"),
            permeability=_values(laid.cells, laid.materials, "permeability"),
            edges=edges,
            **dispersive,
        )
    sums: dict[tuple[str, tuple[int, ...]], Samples] = {}
    for source in scene.sources:
        cell = scene.cell(source.position)
        key = (source.field, cell)
        added = samples(scene, source, around[key])
        sums[key] = _sum(sums[key], added) if key in sums else added
    for (field, cell), total in sums.items():
        solver.add_source(field, cell, total)
    for wave in scene.plane_waves:
        for face in plane_wave.faces(scene, wave, laid.cells, laid.materials):
            solver.add_sources(face.field, face.cells, face.samples)
    receivers = {
        (receiver.name, field): solver.add_receiver(field, scene.cell(receiver.position))
        for receiver in scene.receivers
        for field in receiver.fields
    }
    return Model(solver, receivers)


def time_of(scene: Scene, field: str, steps: int) -> float:
    """The time in seconds of the values of a field after this many steps.

    Electric fields are those at the end of the last step, magnetic ones those of half a step earlier.
    """
    return (steps - (0.0 if field.startswith("e") else 0.5)) * scene.dt


def times(scene: Scene, field: str, steps: int) -> Samples:
    """The times of a trace in seconds: electric fields at the end of a step, magnetic ones in the middle."""
    return np.asarray((np.arange(steps) + (1.0 if field.startswith("e") else 0.5)) * scene.dt, dtype=np.float64)
