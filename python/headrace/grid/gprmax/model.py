"""What an input file describes, as far as it has been read."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.grid.dispersion import Pole
from headrace.grid.gprmax.lines import Command, Findings
from headrace.grid.gprmax.soil import Soil
from headrace.grid.solver.scene import LIGHT, nearest_node

_FLAT_AXIS = 2


@dataclass(frozen=True)
class Object:
    """An object: the keys of its shape, already as TOML."""

    command: Command
    kind: str
    keys: dict[str, str]
    materials: list[str]  # one, or one along each axis
    smoothed: bool


@dataclass(frozen=True)
class WaveForm:
    """A waveform: its keys as TOML."""

    keys: dict[str, str]


@dataclass(frozen=True)
class Dipole:
    """A source: a current, a magnetic one, or a voltage behind a resistance."""

    command: Command
    field: str
    position: list[float]
    waveform: str
    start: float
    stop: float | None
    resistance: float | None = None
    line: bool = False
    """Whether it is a transmission line: twice its voltage behind its resistance, after the way along it."""


@dataclass(frozen=True)
class Probe:
    """A receiver."""

    command: Command
    position: list[float]
    name: str
    fields: list[str]


@dataclass(frozen=True)
class Fractal:
    """A fractal box, and its rough surfaces by axis and side: their keys as TOML."""

    low: list[float]
    high: list[float]
    keys: dict[str, str]  # those of its object
    surfaces: dict[tuple[int, str], dict[str, str]]

    def write(self) -> None:
        """Puts the surfaces into the keys."""
        tables = (", ".join(f"{key} = {value}" for key, value in one.items()) for one in self.surfaces.values())
        self.keys["surfaces"] = "[" + ", ".join(f"{{ {one} }}" for one in tables) + "]"


@dataclass
class Model:
    """All of it."""

    findings: Findings
    count: int | None = None  # runs of the model: positions of a scan
    untold: bool = False  # whether names may come from code that was not run
    older: bool = False  # whether it is of version 2
    title: str = ""
    domain: tuple[Command, list[float]] | None = None
    spacing: tuple[Command, float] | None = None
    window: tuple[Command, str] | None = None
    courant: float | None = None
    layers: tuple[Command, list[int]] | None = None
    waveforms: dict[str, WaveForm] = field(default_factory=dict)
    materials: dict[str, str] = field(default_factory=dict)  # id of gprMax to its table
    magnetic: set[str] = field(default_factory=set)  # materials with a permeability other than 1
    dispersive: dict[str, Command] = field(default_factory=dict)  # materials with poles
    poles: dict[str, str] = field(default_factory=dict)  # id to the tables of its poles
    media: dict[str, tuple[Pole, ...]] = field(default_factory=dict)  # and to the poles
    soils: dict[str, Soil] = field(default_factory=dict)  # what mixtures of soil are made of
    mixtures: dict[str, tuple[Command, list[str]]] = field(default_factory=dict)  # lists of materials; [] of soil
    fractals: dict[str, Fractal] = field(default_factory=dict)
    objects: list[Object] = field(default_factory=list)
    sources: list[Dipole] = field(default_factory=list)
    receivers: list[Probe] = field(default_factory=list)
    steps: dict[str, tuple[Command, list[float]]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)

    @property
    def cell(self) -> float:
        """The length of a cell; 1 as long as it is not known."""
        return self.spacing[1] if self.spacing else 1.0

    @property
    def shape(self) -> list[int]:
        """Cells along the three axes; none where they are not known."""
        if self.domain is None or self.spacing is None:
            return []
        return [max(0, one) for one in nearest_node(tuple(self.domain[1]), self.cell)]

    @property
    def flat(self) -> bool:
        """Whether the domain is one cell thick along z."""
        return self.shape[_FLAT_AXIS:] == [1]

    @property
    def step(self) -> float:
        """The time step in seconds: the longest that is stable in vacuum, or the share of it that a file asks for."""
        limit = self.cell / (LIGHT * (2 if self.flat else 3) ** 0.5)
        return limit if self.courant is None else self.courant * limit

    def point(self, values: Iterable[float]) -> str:
        """A point as TOML, without z in two dimensions."""
        return json.dumps(list(values)[: _FLAT_AXIS if self.flat else None])

    def on_node(self, values: Iterable[float]) -> list[float]:
        """The place of the nearest node, where gprMax puts objects too."""
        return [node * self.cell for node in nearest_node(tuple(values), self.cell)]

    def name_for(self, kind: str, wanted: str) -> str:
        """A name that a scene takes, and that nothing of this kind has yet."""
        taken = self.names.setdefault(kind, set())
        plain = re.sub(r"[^\w.-]+", "_", wanted).strip("_") or kind
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name)
        return name


def quoted(text: str) -> str:
    """A string of TOML."""
    return json.dumps(text, ensure_ascii=False)  # the strings of JSON are strings of TOML


def once(command: Command, before: object) -> None:
    """Refuses a second command of its kind."""
    if before:
        raise command.error("this command was already given above")
