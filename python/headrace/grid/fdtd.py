"""Finite differences in the time domain, with NumPy arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace._core import Device, FdtdCore, FdtdOptions, Ranks
from headrace.errors import UsageError
from headrace.grid.choice import MEASURED, Trial, take_speeds, take_trials
from headrace.grid.dispersion import Pole, medium_of
from headrace.grid.domain import AXES, cell_of, cuts_of, media_of, padded, per_cell, shape_of
from headrace.grid.layers import Cpml
from headrace.grid.records import Slabs, WorkSpan, bytes_of
from headrace.grid.spacing import in_space, spacing_of
from headrace.grid.walls import Walls

Array = NDArray[Any]

_TRACE = "trace_"
_STEPS = "steps"
_DIMENSIONS = (2, 3)
_ELECTRIC = ("ex", "ey", "ez")


class Fdtd:
    """Maxwell's equations by finite differences in the time domain, over one or several devices; see docs/fdtd.md.

    Arrays have the shape of the domain, x first. In two dimensions the fields are "ez", "hx" and "hy", or with
    polarisation="te" "hz", "ex" and "ey"; in three "ex", "ey", "ez", "hx", "hy" and "hz". Units are SI. Without
    absorbing layers (cpml=0) the domain is a closed metal box.
    """

    def __init__(
        self,
        shape: Sequence[int],
        spacing: float | Sequence[float],
        *,
        dt: float | None = None,
        devices: Sequence[str | Device] = ("best",),
        cut: str | Sequence[int] = "best",
        weights: Sequence[float] | None = None,
        redundant: int | str = 1,
        push: str = "automatic",
        mode: str = "streams",
        passes: str = "automatic",
        pass_steps: int = 4,
        wait_limit: float = 30.0,
        cpml: int | Cpml = 10,
        precision: str = "single",
        averaging: bool = True,
        per_component: bool = False,
        pole_values: int = 0,
        device_memory: int | str | None = None,
        visit_steps: int = 0,
        ranks: Ranks | None = None,
        polarisation: str = "tm",
        magnetic_walls: Sequence[str] = (),
        periodic: Sequence[str] = (),
    ) -> None:
        """Creates a domain of vacuum without fields; `spacing` is one number for all axes, or one for each.

        `spacing` is in metres, `dt` in seconds; None takes 0.99 of the largest stable step. Each of `devices` has a
        part; `cut` gives the number of parts along each axis, or "best". With "best", a CPU device that stands alone
        has a part for each of its cores, if the domain is large enough. Devices of different speeds get slabs along
        the last axis with thicknesses by `weights`, one per part, or by measured speed with `cut="measured"`.
        `redundant` (steps between exchanges) and `push` may be "measured": then trials of this domain on these devices
        choose them before the first step, and `trials` lists the trials; with `redundant` 1, the cores of a CPU device
        exchange as seldom as is worth it. Results are equal for all of these choices.
        `cpml` is the number of cells of the absorbing layers at each wall, or a Cpml, which also sets their grading and
        may have a different thickness at each wall. Layers are graded for the medium that set_materials() puts at each
        wall. `mode` is "streams", or "resident" for domains so small that launches dominate (docs/grid.md); a resident
        kernel that has waited `wait_limit` seconds for a neighbour ends, and step() raises DeviceError that names the
        parts that did not advance. `averaging` says whether a component takes the mean of the materials around it
        (set_materials()), which makes material boundaries second order. Without it all components of a cell take the
        material of that cell. `per_component` is for set_component_materials() in two dimensions: hx and hy then have
        their own coefficients, one more value per cell. `pole_values` is the number of memory values that each
        component of E keeps for the poles of dispersive media: one for a Debye or Drude pole, two for a Lorentz pole,
        as many as the medium that needs most, or as the media that meet around a component together; at most 14. Steps
        are then done one by one, without passes. `passes` is "never" to save the memory of passes over several steps,
        or "always" to have them on a CPU device as well, whose steps otherwise follow each other through its cache. A
        pass does at most `redundant` and at most `pass_steps` steps (1 to 4). `device_memory` (bytes, or text such as
        "8GiB") limits the device memory of the fields; default: what is free. A domain of one part that needs more
        stays in host memory, and the device visits it slab by slab (`slabs`), with `visit_steps` steps per visit.
        `ranks` (headrace.grid.ranks.joined()) shares the domain with other processes: `devices` are then those of this
        process, all processes call the same methods in the same order, and only rank 0 gets complete results from
        field() and state(). `polarisation` is
        "tm" (electric field across the plane) or "te" (magnetic field across it), and for two dimensions.
        `magnetic_walls` are the axes ("x" and so on) whose low wall is a magnetic conductor, beyond which the scene
        continues as its mirror image: such a wall has no layer, E along it is not 0, and all values are those of the
        whole scene, such as a current in the plane of the wall. `periodic` are the axes along which the domain
        continues at its other wall: index i + n is index i, and neither wall has a layer. This needs mode "streams"
        and a domain that its devices hold, and steps are done one by one, without passes. Raises UsageError for
        invalid arguments, such as an unstable dt.
        """
        self._shape = shape_of(shape, _DIMENSIONS)
        self._spacing = spacing_of(spacing, len(self._shape))
        names = [devices] if isinstance(devices, str | Device) else list(devices)
        self._walls = Walls.of(cpml, magnetic_walls, periodic, len(self._shape))
        options = FdtdOptions(
            dimensions=len(self._shape),
            shape=padded(self._shape, 1),
            spacing=in_space(self._spacing),
            time_step=None if dt is None else float(dt),
            devices=names,
            cut=None if cut == MEASURED else cuts_of(cut, len(self._shape)),
            redundant=1 if isinstance(redundant, str) else redundant,
            push="automatic" if push == MEASURED else push,
            mode=mode,
            passes=passes,
            pass_steps=pass_steps,
            wait_limit=wait_limit,
            cpml=self._walls.layers.cells,
            precision=precision,
            averaging=averaging,
            per_component=per_component,
            ranks=ranks,
            grading=self._walls.layers.grading,
            sides=self._walls.layers.walls(len(self._shape)),
            pole_values=pole_values,
            device_memory=bytes_of(device_memory),
            visit_steps=visit_steps,
            polarisation=polarisation,
            magnetic_walls=self._walls.magnetic,
            periodic=self._walls.periodic,
        )
        self._speeds = take_speeds(options, cut, weights, ranks)
        self._trials = take_trials(options, redundant, push)
        self._core = FdtdCore(options)
        self._type = np.dtype(np.float32 if precision == "single" else np.float64)

    def set_materials(
        self,
        permittivity: ArrayLike = 1.0,
        conductivity: ArrayLike = 0.0,
        permeability: ArrayLike = 1.0,
        *,
        edges: Mapping[str, tuple[ArrayLike, ...]] | None = None,
        media: Sequence[Sequence[Pole]] = (),
        medium: ArrayLike = 0,
    ) -> None:
        """Fills the domain from the next step on: each is a number for all cells, or an array of the domain's shape.

        With `averaging`, a component of E takes the mean permittivity and conductivity of the four cells around its
        edge (of the two beside it for "ex" and "ey" in two dimensions), so it is 0 on a perfect conductor. In three
        dimensions a component of H takes the harmonic mean of the permeabilities of the two cells that share its face;
        in two it takes the permeability of its cell. `edges` have other materials than the cells around them, such as
        wires, sheets and resistors: for each component of E they give the nodes, an array of (edges, axes), and the
        permittivity and conductivity, per edge or one for all. A fourth entry is the dispersive medium of each edge.
        `media` are the poles of dispersive media, whose permittivity is then that at infinite frequency, and `medium`
        gives the medium of each cell: 0 for none, 1 for the first. Means contain the poles of all media around a
        component, weighted by their shares. Permittivity and permeability are relative, conductivity is in S/m. Raises
        UsageError, with the cell, for invalid values (with the number of the medium), and if dt is not stable in these
        materials.
        """
        given = edges or {}
        for name in given:
            if name not in _ELECTRIC or name not in self.fields:
                raise UsageError(f"there are no edges of '{name}': edges belong to the components of E in this domain")
        self._core.set_materials(
            per_cell("permittivity", permittivity, self._shape),
            per_cell("conductivity", conductivity, self._shape),
            per_cell("permeability", permeability, self._shape),
            tuple(self._edges(name, *given.get(name, ((), (), ()))) for name in _ELECTRIC),
            [medium_of(poles) for poles in media],
            media_of(medium, self._shape),
        )

    def _edges(
        self, name: str, nodes: ArrayLike, permittivity: ArrayLike, conductivity: ArrayLike, medium: ArrayLike = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.uint16]]:
        """Edges of one component as ascending cell numbers, and their values."""
        places = np.asarray(nodes, dtype=np.int64).reshape(-1, len(self._shape))
        if np.any((places < 0) | (places >= np.array(self._shape))):
            bad = places[((places < 0) | (places >= np.array(self._shape))).any(axis=1)][0]
            raise UsageError(f"an edge of {name} at {tuple(bad.tolist())} lies outside a domain of {self._shape}")
        cells = np.asarray(np.ravel_multi_index(tuple(places.T), self._shape, order="F"), dtype=np.int64)
        order = np.argsort(cells, kind="stable")
        values = []
        for what, one in (("permittivity", permittivity), ("conductivity", conductivity)):
            column = np.asarray(one, dtype=np.float64)
            if column.shape not in {(), cells.shape}:
                raise UsageError(f"{what} of {name} has shape {column.shape}, but there are {len(cells)} edges")
            values.append(np.ascontiguousarray(np.broadcast_to(column, cells.shape)[order]))
        if np.any(np.diff(cells[order]) == 0):
            raise UsageError(f"an edge of {name} is given twice")
        media = np.broadcast_to(np.asarray(medium, dtype=np.uint16), cells.shape)
        return np.ascontiguousarray(cells[order]), values[0], values[1], np.ascontiguousarray(media[order])

    def set_component_materials(
        self,
        permittivity: ArrayLike = 1.0,
        conductivity: ArrayLike = 0.0,
        permeability_hx: ArrayLike = 1.0,
        permeability_hy: ArrayLike = 1.0,
    ) -> None:
        """Sets the material of each component of a two-dimensional domain directly: of ez, of hx and of hy.

        Needs `per_component`. It is for means that were computed elsewhere, and for contours that conductors shorten:
        if part of the way between two ez lies in a conductor, the permeability there is multiplied by the remaining
        share. The run is stable if, around every ez, (c dt)^2 / 2 times the sum of 1 / (permeability spacing^2) of the
        four components of h, with the spacing along the way to each, is at most its permittivity. Raises UsageError,
        with the cell, if it is not stable, and as set_materials() does.
        """
        self._core.set_component_materials(
            per_cell("permittivity", permittivity, self._shape),
            per_cell("conductivity", conductivity, self._shape),
            per_cell("permeability_hx", permeability_hx, self._shape),
            per_cell("permeability_hy", permeability_hy, self._shape),
        )

    def add_source(self, field: str, cell: Sequence[int], samples: ArrayLike) -> None:
        """Adds samples[n] to a field in one cell in step n, after that field's update, until the samples end."""
        values = np.ascontiguousarray(samples, dtype=np.float64)
        if values.ndim != 1:
            raise UsageError(f"samples must have one dimension, not {values.ndim}")
        self._core.add_source(field, cell_of(cell, self._shape), values)

    def add_sources(self, field: str, cells: ArrayLike, samples: ArrayLike) -> None:
        """Adds the same samples in each of many cells: an array of (cells, axes), such as the face of a box."""
        given = np.asarray(cells, dtype=np.int64)
        if given.ndim != 2 or given.shape[1] != len(self._shape):  # noqa: PLR2004 - a row a cell
            raise UsageError(f"cells have shape {given.shape}, but must have shape (cells, {len(self._shape)})")
        padding = np.zeros((len(given), AXES - given.shape[1]), dtype=np.int64)
        values = np.ascontiguousarray(samples, dtype=np.float64)
        if values.ndim != 1:
            raise UsageError(f"samples must have one dimension, not {values.ndim}")
        self._core.add_sources(field, np.ascontiguousarray(np.hstack([given, padding])), values)

    def add_receiver(self, field: str, cell: Sequence[int]) -> int:
        """Records a field in one cell at the end of each step from now on; returns the number for trace()."""
        return self._core.add_receiver(field, cell_of(cell, self._shape))

    def step(self, count: int = 1, *, check_every: int = 0) -> None:
        """Does `count` steps. Ctrl-C raises KeyboardInterrupt between steps, and the run can continue from there.

        With check_every above 0, it raises DataError, with the cell, when a field is no longer finite.
        """
        if count < 0 or check_every < 0:
            raise UsageError(f"count and check_every must be 0 or more, not {count} and {check_every}")
        self._core.step(count, check_every)

    def record_timeline(self, cycles: int) -> None:
        """Records the work of each part in the next cycles, from one exchange to the next; 0 stops recording.

        Raises UsageError in mode "resident".
        """
        if cycles < 0:
            raise UsageError(f"cycles must be 0 or more, not {cycles}")
        self._core.record_timeline(cycles)

    def timeline(self) -> list[WorkSpan]:
        """The recorded work of the parts of this process, each by the clock of its device."""
        return [WorkSpan(*span) for span in self._core.timeline()]

    def check_finite(self) -> None:
        """Raises DataError that names the first field and cell with a value that is not finite, and the steps done."""
        self._core.check_finite()

    def field(self, name: str) -> Array:
        """A copy of a field with the domain's shape, x contiguous."""
        return self._core.get(name).reshape(self._shape, order="F")

    def set_field(self, name: str, values: ArrayLike) -> None:
        """Sets a field: an array of the domain's shape, or a number."""
        given = np.asarray(values, dtype=self._type)
        if given.shape not in {(), self._shape}:
            raise UsageError(f"{name} has shape {given.shape}, but the domain has shape {self._shape}")
        self._core.set(name, np.broadcast_to(given, self._shape).ravel(order="F"))

    def trace(self, receiver: int) -> NDArray[np.float64]:
        """The trace of a receiver: one value per step, NaN for steps before it was added."""
        if receiver < 0:
            raise UsageError(f"there is no receiver {receiver}: receivers are numbered from 0")
        return self._core.trace(receiver)

    def state(self) -> dict[str, Array]:
        """Everything that a run needs to continue later, except its setup: materials, sources and receivers.

        Its fields are for restore(): where cells have unequal edges, they are in other units than those of field().
        """
        kept: dict[str, Array] = {
            name: self._core.get(name, as_stored=True).reshape(self._shape, order="F")
            for name in self._core.state_fields
        }
        kept[_STEPS] = np.array(self.steps_done, dtype=np.int64)
        kept |= self._walls.state()
        for receiver in range(self._core.receiver_count):
            kept[f"{_TRACE}{receiver}"] = self.trace(receiver)
        return kept

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Continues from a state() of a run with the same setup, which may have had other devices and cuts.

        Raises UsageError for a state of another shape, other layers or other receivers, and then changes nothing.
        """
        traces = [f"{_TRACE}{receiver}" for receiver in range(self._core.receiver_count)]
        wanted = {*self._core.state_fields, _STEPS, *self._walls.state(), *traces}
        if state.keys() != wanted:
            lacking, unknown = sorted(wanted - state.keys()), sorted(state.keys() - wanted)
            raise UsageError(f"this state is of a run with another setup: it lacks {lacking} and has {unknown}")
        arrays = {name: np.asarray(state[name], dtype=self._type) for name in self._core.state_fields}
        for name, values in arrays.items():
            if values.shape != self._shape:
                raise UsageError(f"{name} has shape {values.shape}, but the domain has shape {self._shape}")
        self._walls.check(state)
        steps = int(np.asarray(state[_STEPS]))
        if steps < 0:
            raise UsageError(f"a state cannot be after {steps} steps: the number must be 0 or more")
        self._core.resume(steps, [np.ascontiguousarray(state[name], dtype=np.float64) for name in traces])
        for name, values in arrays.items():
            self._core.set(name, values.ravel(order="F"), as_stored=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self._shape

    @property
    def cells(self) -> int:
        """Number of cells of the domain."""
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def layers(self) -> Cpml:
        """The absorbing layers."""
        return self._walls.layers

    @property
    def dt(self) -> float:
        """Time step in seconds."""
        return self._core.time_step

    @property
    def steps_done(self) -> int:
        """Number of steps done."""
        return self._core.steps_done

    @property
    def fields(self) -> list[str]:
        """Names of the fields."""
        return self._core.fields

    @property
    def moved_bytes(self) -> int:
        """Minimum bytes that a step reads and writes: every field that a phase reads or writes, once."""
        return self._core.moved_bytes

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Device of each part of this process, and its cells as text."""
        return self._core.parts

    @property
    def redundant(self) -> int:
        """Steps between two exchanges."""
        return self._core.redundant

    @property
    def slabs(self) -> Slabs | None:
        """The slabs of a domain larger than its device's memory, as of the last step; None for other domains."""
        return Slabs(*self._core.slabs) if self._core.slabs else None

    @property
    def steps_at_once(self) -> int:
        """Recommended minimum for step(): fewer steps take as long."""
        return self._core.steps_at_once

    @property
    def trials(self) -> list[Trial]:
        """The trials for redundant layers or the push, if they were measured."""
        return list(self._trials)

    @property
    def speeds(self) -> list[float]:
        """Speeds that determine the slabs of all parts: weights, or measured cells per second; empty otherwise."""
        return list(self._speeds)

    @property
    def push(self) -> str:
        """How border cells reach neighbours, with "automatic" resolved."""
        return self._core.push

    @property
    def mode(self) -> str:
        """How devices get their steps: "streams" or "resident"."""
        return self._core.mode
