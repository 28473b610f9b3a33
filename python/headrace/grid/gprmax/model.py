"""The content of an input file, as far as it has been read."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.grid.dispersion import Pole
from headrace.grid.gprmax.lines import Command, Findings
from headrace.grid.gprmax.soil import Soil
from headrace.grid.solver.scene import LIGHT, nearest_node
from headrace.grid.spacing import Spacing, stable_step

_FLAT_AXIS = 2


@dataclass(frozen=True)
class Object:
    """An object, with the keys of its shape as TOML."""

    command: Command
    kind: str
    keys: dict[str, str]
    materials: list[str]  # one, or one along each axis
    smoothed: bool


@dataclass(frozen=True)
class WaveForm:
    """A waveform, with its keys as TOML."""

    keys: dict[str, str]


@dataclass(frozen=True)
class Dipole:
    """A source: an electric or magnetic current, or a voltage behind a resistance."""

    command: Command
    field: str
    position: list[float]
    waveform: str
    start: float
    stop: float | None
    resistance: float | None = None
    line: bool = False
    """Whether it is a transmission line of that resistance."""


@dataclass(frozen=True)
class Probe:
    """A receiver."""

    command: Command
    position: list[float]
    name: str
    fields: list[str]


@dataclass(frozen=True)
class Profile:
    """How a quantity of a layer rises from its minimum to its maximum; `most` is None for the optimum."""

    order: int
    forward: bool
    least: float
    most: float | None


@dataclass(frozen=True)
class Fractal:
    """A fractal box, with its rough surfaces by axis and side; their keys are TOML."""

    low: list[float]
    high: list[float]
    keys: dict[str, str]  # keys of its object
    surfaces: dict[tuple[int, str], dict[str, str]]

    def write(self) -> None:
        """Writes the surfaces into the keys."""
        tables = (", ".join(f"{key} = {value}" for key, value in one.items()) for one in self.surfaces.values())
        self.keys["surfaces"] = "[" + ", ".join(f"{{ {one} }}" for one in tables) + "]"


@dataclass
class Model:
    """The complete model."""

    findings: Findings
    count: int | None = None  # number of runs, the positions of a scan
    untold: bool = False  # whether unexecuted code may define further names
    older: bool = False  # whether the file is of version 2
    title: str = ""
    domain: tuple[Command, list[float]] | None = None
    spacing: tuple[Command, list[float]] | None = None
    window: tuple[Command, str] | None = None
    courant: float | None = None
    layers: tuple[Command, list[int]] | None = None
    grading: list[tuple[Command, Profile, Profile, Profile]] = field(default_factory=list)  # alpha, kappa, sigma
    waveforms: dict[str, WaveForm] = field(default_factory=dict)
    materials: dict[str, str] = field(default_factory=dict)  # tables by gprMax's id
    magnetic: set[str] = field(default_factory=set)  # materials with a permeability other than 1
    dispersive: dict[str, Command] = field(default_factory=dict)  # materials with poles
    poles: dict[str, str] = field(default_factory=dict)  # tables of poles by id
    media: dict[str, tuple[Pole, ...]] = field(default_factory=dict)  # poles by id
    soils: dict[str, Soil] = field(default_factory=dict)  # components of soil mixtures
    mixtures: dict[str, tuple[Command, list[str]]] = field(default_factory=dict)  # lists of materials; [] for a soil
    fractals: dict[str, Fractal] = field(default_factory=dict)
    namesakes: set[str] = field(default_factory=set)  # names that several fractal boxes have
    objects: list[Object] = field(default_factory=list)
    sources: list[Dipole] = field(default_factory=list)
    receivers: list[Probe] = field(default_factory=list)
    steps: dict[str, tuple[Command, list[float]]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)

    @property
    def cell(self) -> Spacing:
        """The lengths of a cell along the three axes; 1 while they are unknown."""
        return tuple(self.spacing[1]) if self.spacing else (1.0,) * 3

    @property
    def cell_in_scene(self) -> Spacing:
        """The spacing of the scene, which has no z in two dimensions."""
        return self.cell[:_FLAT_AXIS] if self.flat else self.cell

    @property
    def shape(self) -> list[int]:
        """Cells along the three axes; empty while unknown."""
        if self.domain is None or self.spacing is None:
            return []
        return [max(0, one) for one in nearest_node(tuple(self.domain[1]), self.cell)]

    @property
    def flat(self) -> bool:
        """Whether the domain is one cell thick along z."""
        return self.shape[_FLAT_AXIS:] == [1]

    @property
    def step(self) -> float:
        """Time step in seconds: the longest stable one in vacuum, or the fraction of it that the file requests."""
        limit = stable_step(self.cell_in_scene, LIGHT)
        return limit if self.courant is None else self.courant * limit

    def point(self, values: Iterable[float]) -> str:
        """A point as TOML, without z in two dimensions."""
        return json.dumps(list(values)[: _FLAT_AXIS if self.flat else None])

    def on_node(self, values: Iterable[float]) -> list[float]:
        """Position of the nearest node, where gprMax puts objects too."""
        return [node * one for node, one in zip(nearest_node(tuple(values), self.cell), self.cell, strict=True)]

    def node_along(self, axis: int, value: float) -> float:
        """Coordinate of the nearest node along one axis."""
        (node,) = nearest_node((value,), (self.cell[axis],))
        return node * self.cell[axis]

    def name_for(self, kind: str, wanted: str) -> str:
        """A name that is valid in a scene and unique for its kind."""
        taken = self.names.setdefault(kind, set())
        plain = re.sub(r"[^\w.-]+", "_", wanted).strip("_") or kind
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name)
        return name


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False)  # JSON strings are TOML strings


def once(command: Command, before: object) -> None:
    """Refuses a second command of its kind."""
    if before:
        raise command.error("this command was already given above")
