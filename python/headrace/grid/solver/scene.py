"""A scene: what a file says (docs/scenes.md), checked, in metres, seconds, hertz and cells."""

import hashlib
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.grid.solver.shapes import Point, Shape

LIGHT = 299_792_458.0  # m/s
VACUUM_PERMITTIVITY = 8.8541878128e-12  # F/m, CODATA 2018

Cell = tuple[int, ...]


@dataclass(frozen=True)
class Material:
    """Relative permittivity and permeability, and conductivity in S/m."""

    name: str
    permittivity: float = 1.0
    permeability: float = 1.0
    conductivity: float = 0.0


# So good a conductor that nothing is left of a field in it, and still a number to calculate with.
BUILT_IN = (Material("free_space"), Material("pec", conductivity=1e10))


@dataclass(frozen=True)
class Painted:
    """An object: a shape of a material. Later ones cover earlier ones."""

    name: str
    shape: Shape
    material: str


@dataclass(frozen=True)
class Source:
    """A current: in two dimensions along a line across the plane, in three along one cell (a Hertzian dipole)."""

    name: str
    field: str
    position: Point
    waveform: str
    frequency: float
    amplitude: float  # A
    delay: float  # s


@dataclass(frozen=True)
class PlaneWave:
    """A wave along an axis, in a box of nodes `low` to `high`; outside there is only what is scattered."""

    name: str
    field: str
    axis: int
    forward: bool
    low: Cell
    high: Cell
    waveform: str
    frequency: float
    amplitude: float  # V/m
    delay: float  # s


@dataclass(frozen=True)
class Receiver:
    """Where fields are recorded every step."""

    name: str
    position: Point
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Snapshots:
    """Which fields are kept as a whole, and every how many steps."""

    fields: tuple[str, ...]
    every: int


@dataclass(frozen=True)
class Scan:
    """A B-scan: sources and receivers, but no plane waves, move by `step` metres from one position to the next."""

    step: Point
    count: int


@dataclass(frozen=True)
class Scene:
    """All of it. Axis 0 is x; cell i holds what lies from i to i + 1 spacings, and is known by its centre."""

    path: Path
    title: str
    shape: Cell
    spacing: float
    cpml: int
    precision: str
    averages: bool
    """Whether Ez takes the mean of the materials around it."""
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
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.shape)

    @property
    def size(self) -> Point:
        """Of the domain, in metres."""
        return tuple(count * self.spacing for count in self.shape)

    @property
    def cells(self) -> int:
        """Of the domain."""
        product = 1
        for count in self.shape:
            product *= count
        return product

    @property
    def fields(self) -> tuple[str, ...]:
        """The components that the solver has."""
        return fields_of(self.dimensions)

    def cell(self, position: Point) -> Cell:
        """The cell that a position lies in; it may be outside."""
        return cell_of(position, self.spacing)

    def moved(self, number: int) -> "Scene":
        """The scene at a position of its scan."""
        if self.scan is None or number == 0:
            return self
        offset = [number * step for step in self.scan.step]
        return replace(
            self,
            sources=tuple(replace(one, position=_shifted(one.position, offset)) for one in self.sources),
            receivers=tuple(replace(one, position=_shifted(one.position, offset)) for one in self.receivers),
        )

    def digest(self) -> str:
        """A hash of all that decides the fields: not the title, the length of the run, or what is kept of it."""
        parts = (
            *(self.shape, self.spacing, self.cpml, self.precision, self.averages, self.background, self.dt),
            *(sorted(self.materials.items()), self.objects, self.sources, self.receivers),
            *self.plane_waves,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def fields_of(dimensions: int) -> tuple[str, ...]:
    """The components of two dimensions (TM: across the plane) and of three."""
    return ("ez", "hx", "hy") if dimensions == 2 else ("ex", "ey", "ez", "hx", "hy", "hz")  # noqa: PLR2004


def cell_of(position: Point, spacing: float) -> Cell:
    """The cell that a position lies in. On the edge of two it is the upper one, whatever the last bits say."""
    return tuple(math.floor(at / spacing + 1e-6) for at in position)


def _shifted(position: Point, offset: list[float]) -> Point:
    return tuple(at + more for at, more in zip(position, offset, strict=True))
