"""A scene: the checked content of a file (docs/scenes.md), in metres, seconds, hertz and cells."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.grid.dispersion import Pole
from headrace.grid.layers import Cpml
from headrace.grid.solver.places import Cell, nearest_node, whole_cells
from headrace.grid.solver.shapes import SLACK, Point, Shape
from headrace.grid.solver.sheets import Sheet, Thin, Wire
from headrace.grid.solver.waveforms import Wave
from headrace.grid.spacing import Spacing, is_even

LIGHT = 299_792_458.0  # m/s
VACUUM_PERMITTIVITY = 8.8541878128e-12  # F/m, CODATA 2018
VACUUM_PERMEABILITY = 1.25663706127e-6  # H/m, CODATA 2022
FIELDS = ("ex", "ey", "ez", "hx", "hy", "hz")
POLARISATIONS = ("tm", "te")

ELECTRIC, MAGNETIC = "electric", "magnetic"

__all__ = ["Cell", "Scene", "nearest_node", "whole_cells"]


@dataclass(frozen=True)
class Material:
    """Relative permittivity and permeability, and conductivity in S/m.

    With poles it is dispersive, and the permittivity is that at infinite frequency.
    """

    name: str
    permittivity: float = 1.0
    permeability: float = 1.0
    conductivity: float = 0.0
    poles: tuple[Pole, ...] = field(default=(), repr=False)
    averaging: bool = field(default=True, repr=False)
    """Whether edges of its objects take means; if not, objects of it are not averaged."""


# Such a good conductor that no field remains in it, but still a finite number to calculate with.
BUILT_IN = (Material("free_space"), Material("pec", conductivity=1e10))


@dataclass(frozen=True)
class Painted:
    """An object: a shape of a material. Later objects cover earlier ones."""

    name: str
    shape: Shape | Thin
    material: str
    line: int = field(default=0, compare=False, repr=False)  # line in the scene file; 0: unknown
    averaging: bool = field(default=True, repr=False)
    """Whether its edges take the mean of their surroundings; if not, they take its material."""
    axes: tuple[str, ...] = field(default=(), repr=False)
    """The material along each axis, for an object that differs between axes. It is not averaged."""

    @property
    def along(self) -> tuple[str, ...]:
        """The material along each of the three axes."""
        return self.axes or (self.material,) * 3


@dataclass(frozen=True)
class Source:
    """A current along one cell (a Hertzian dipole), or in two dimensions along a line across the plane.

    Its position is the one in the file; Scene.placed() is the node that the solver uses. If its field is magnetic, it
    is a magnetic current in V; with a resistance in ohms, it is a voltage source behind that resistance. As a line, it
    is a wave that arrives at the end of a transmission line of that resistance.
    """

    name: str
    field: str
    position: Point
    wave: Wave
    resistance: float | None = dataclasses.field(default=None, repr=False)
    line: bool = dataclasses.field(default=False, repr=False)


@dataclass(frozen=True)
class PlaneWave:
    """A wave along an axis, in a box of nodes `low` to `high`; outside there is only the scattered field."""

    name: str
    field: str
    axis: int
    forward: bool
    low: Cell
    high: Cell
    wave: Wave


@dataclass(frozen=True)
class Receiver:
    """A place where fields are recorded every step. Its position is the requested one, as for a source."""

    name: str
    position: Point
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Monitor:
    """The spectra of `fields` at the nodes from `low` to `high`, or the flux through the plane between them."""

    name: str
    kind: str  # "fields" or "flux"
    low: Cell
    high: Cell
    frequencies: tuple[float, ...] = field(repr=False)
    fields: tuple[str, ...]
    asked: tuple[Point, Point]
    """The corners in the file, in metres."""

    @property
    def axis(self) -> int:
        """The axis across the plane of a flux."""
        return next(axis for axis, (low, high) in enumerate(zip(self.low, self.high, strict=True)) if low == high)


@dataclass(frozen=True)
class Snapshots:
    """Which complete fields to keep, and at which interval in steps."""

    fields: tuple[str, ...]
    every: int


@dataclass(frozen=True)
class Scan:
    """A B-scan: sources and receivers, but not plane waves, move from one position to the next.

    They move by `cells`, whole numbers, so positions are evenly spaced; `step` is the requested displacement in metres.
    """

    step: Point
    count: int
    cells: Cell


@dataclass(frozen=True)
class Scene:
    """A complete scene. Axis 0 is x; cell i extends from i to i + 1 spacings of its axis, node i lies at i spacings."""

    path: Path
    title: str
    shape: Cell
    spacing: Spacing
    layers: Cpml
    precision: str
    averaging: bool
    """Whether components take the mean of the materials around them."""
    background: str
    dt: float
    steps: int
    materials: dict[str, Material]
    objects: tuple[Painted, ...]
    sources: tuple[Source, ...]
    receivers: tuple[Receiver, ...]
    snapshots: Snapshots
    scan: Scan | None = None
    plane_waves: tuple[PlaneWave, ...] = ()
    monitors: tuple[Monitor, ...] = ()
    polarisation: str = "tm"
    """In two dimensions "tm" (ez, hx, hy) or "te" (hz, ex, ey); in three always "tm"."""
    symmetry: tuple[str | None, ...] = ()
    """What the low wall of each axis is to the mirror image beyond it: ELECTRIC, MAGNETIC, or None for no symmetry."""
    periodic: tuple[int, ...] = ()
    """Axes along which the scene continues at its other wall."""
    smoothing: bool = False
    """Whether these means are taken over the exact shapes, and contours end where conductors begin."""
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.shape)

    @property
    def magnetic_walls(self) -> tuple[int, ...]:
        """Axes whose low wall is a magnetic conductor."""
        return tuple(axis for axis, kind in enumerate(self.symmetry) if kind == MAGNETIC)

    def walls_named(self) -> tuple[str, ...]:
        """The same by name."""
        return tuple("xyz"[axis] for axis in self.magnetic_walls)

    def periodic_named(self) -> tuple[str, ...]:
        """The periodic axes by name."""
        return tuple("xyz"[axis] for axis in self.periodic)

    @property
    def cpml(self) -> int:
        """Cells of the absorbing layers at each wall."""
        return self.layers.cells

    @property
    def size(self) -> Point:
        """Size of the domain in metres."""
        return self.at(self.shape)

    @property
    def cells(self) -> int:
        """Number of cells of the domain."""
        product = 1
        for count in self.shape:
            product *= count
        return product

    @property
    def fields(self) -> tuple[str, ...]:
        """Field components of the solver."""
        return fields_of(self.dimensions, self.polarisation)

    @property
    def main_field(self) -> str:
        """The field that is recorded and drawn where no other is named."""
        return main_field(self.fields)

    @property
    def electric_axes(self) -> tuple[int, ...]:
        """The axes along which there are components of E."""
        return electric_axes(self.fields)

    @property
    def solids(self) -> Iterator[tuple[Shape, str]]:
        """Shapes with volume in order, and the material of each."""
        return ((one.shape, one.material) for one in self.objects if not isinstance(one.shape, Sheet | Wire))

    def cell(self, position: Point) -> Cell:
        """The node nearest to a position; it may be outside. The last node of a periodic axis is the first one."""
        found = nearest_node(position, self.spacing)
        if not self.periodic:
            return found
        last = [axis in self.periodic and at == self.shape[axis] for axis, at in enumerate(found)]
        return tuple(0 if wraps else at for wraps, at in zip(last, found, strict=True))

    def index_before(self, index: int, axis: int) -> int:
        """The index of the cell before this one along an axis; at a wall, the first again unless it is periodic."""
        return index - 1 if index else self.shape[axis] - 1 if axis in self.periodic else 0

    def at(self, node: Iterable[int]) -> Point:
        """Position of a node in metres."""
        return tuple(number * one for number, one in zip(node, self.spacing, strict=True))

    def placed(self, position: Point) -> Point:
        """Position in metres of that node, which the solver uses."""
        return self.at(self.cell(position))

    def offset(self, name: str) -> Point:
        """Offset of a component from the node of its cell, in metres."""
        return tuple(share * one for share, one in zip(offset_of(name, self.dimensions), self.spacing, strict=True))

    def has_node(self, node: Sequence[int]) -> bool:
        """Whether a node belongs to the domain."""
        ends = (count + (axis in self.periodic) for axis, count in enumerate(self.shape))
        return all(0 <= at < end for at, end in zip(node, ends, strict=True))

    def is_placed(self, position: Point) -> bool:
        """Whether a position is that of a node, up to rounding."""
        return all(
            abs(at - node * one) <= SLACK * one
            for at, node, one in zip(position, nearest_node(position, self.spacing), self.spacing, strict=True)
        )

    def moved(self, number: int) -> "Scene":
        """The scene at a position of its scan, with the positions used there."""
        if self.scan is None or number == 0:
            return self
        return self._shifted(list(self.at(number * cells for cells in self.scan.cells)))

    def asked(self, number: int) -> "Scene":
        """Like moved(), with the step requested in the file."""
        if self.scan is None or number == 0:
            return self
        return self._shifted([number * step for step in self.scan.step])

    def _shifted(self, offset: list[float]) -> "Scene":
        return replace(
            self,
            sources=tuple(replace(one, position=_shifted(one.position, offset)) for one in self.sources),
            receivers=tuple(replace(one, position=_shifted(one.position, offset)) for one in self.receivers),
        )

    def digest(self) -> str:
        """A hash of everything that determines the fields: not the title, the length of the run, or the outputs."""
        parts = (
            *(
                self.shape,
                self.spacing[0] if is_even(self.spacing) else self.spacing,
                self.layers if self.cpml else 0,
                self.precision,
                self.averaging,
                self.background,
                self.dt,
            ),
            *(sorted(self.materials.items()), self.objects, self.sources, self.receivers),
            *self.plane_waves,
            *(("smoothing",) if self.smoothing else ()),
            *((self.polarisation,) if self.polarisation != "tm" else ()),
            *(("magnetic walls", *self.magnetic_walls) if self.magnetic_walls else ()),
            *(("periodic", *self.periodic) if self.periodic else ()),
            *(self.cell(one.position) for one in self.sources),
            *(self.cell(one.position) for one in self.receivers),
            # Default values add nothing, so that checkpoints of earlier versions stay valid.
            *((number, one.averaging, one.axes) for number, one in enumerate(self.objects) if not one.averaging),
            *(
                (number, closed)
                for number, one in enumerate(self.objects)
                if (closed := _closed(one.shape)) is not None
            ),
            *((one.name, one.resistance) for one in self.sources if one.resistance is not None),
            *((one.name, "line") for one in self.sources if one.line),
            *((self.layers.sides,) if self.layers.sides else ()),
            *((name, one.poles) for name, one in sorted(self.materials.items()) if one.poles),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def run_digest(self) -> str:
        """A hash of what determines a run: the fields, its length, and its outputs."""
        parts = (self.digest(), self.steps, self.snapshots, self.scan, *self.monitors)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def fields_of(dimensions: int, polarisation: str = "tm") -> tuple[str, ...]:
    """Field components in two dimensions (TM: E across the plane, TE: H across it) and in three."""
    if dimensions == 3:  # noqa: PLR2004
        return FIELDS
    return ("hz", "ex", "ey") if polarisation == "te" else ("ez", "hx", "hy")


def main_field(fields: Sequence[str]) -> str:
    """The one of these fields that is along z: ez if there is one, otherwise hz."""
    return "ez" if "ez" in fields else "hz"


def electric_axes(fields: Sequence[str]) -> tuple[int, ...]:
    """The axes along which these fields have components of E."""
    return tuple(axis for axis, letter in enumerate("xyz") if f"e{letter}" in fields)


def offset_of(name: str, dimensions: int) -> Point:
    """Offset of a component from the node of its cell in spacings: Yee's staggered grid."""
    along = "xyz".index(name[1])
    electric = name.startswith("e")
    return tuple(0.5 if (axis == along) == electric else 0.0 for axis in range(dimensions))


def _closed(shape: Shape | Thin) -> bool | None:
    """Whether a shape's border belongs to it, if the file says so."""
    found = getattr(getattr(shape, "outline", shape), "closed", None)
    return None if found is None else bool(found)


def _shifted(position: Point, offset: list[float]) -> Point:
    return tuple(at + more for at, more in zip(position, offset, strict=True))
