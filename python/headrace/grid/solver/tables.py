"""Tables of scene files as classes whose fields are the keys. docs/scenes.md explains them.

A key that is None is left out and takes its default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

Point = Sequence[float]
Table = dict[str, Any]


@dataclass(kw_only=True)
class Keys:
    """A table of a scene file; its fields are the keys."""

    def table(self) -> Table:
        """Its keys and values as in a scene file."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {key: _plain(value) for key, value in found.items() if value is not None}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a key may hold
    """A value in TOML's types: no classes, tuples, or NumPy numbers and arrays."""
    if isinstance(value, Keys):
        return value.table()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value


@dataclass(kw_only=True)
class Cpml(Keys):
    """`[domain.cpml]`: thickness and grading of the absorbing layers, equal at all walls or as a pair per axis."""

    cells: int | Sequence[Sequence[int]] | None = None
    order: float | None = None
    sigma: float | None = None
    kappa: float | None = None
    kappa_order: float | None = None
    alpha: float | None = None
    alpha_order: float | None = None


@dataclass(kw_only=True)
class Domain(Keys):
    """`[domain]`."""

    size: Point
    spacing: float | Point
    polarisation: str | None = None
    cpml: int | Cpml | None = None
    precision: str | None = None
    averaging: bool | None = None
    smoothing: bool | None = None
    background: str | None = None
    symmetry: Mapping[str, str] | None = None
    periodic: Sequence[str] | None = None


@dataclass(kw_only=True)
class Time(Keys):
    """`[time]`: either `window` or `steps`."""

    window: float | None = None
    steps: int | None = None
    courant: float | None = None
    step: float | None = None


@dataclass(kw_only=True)
class Pole(Keys):
    """One of the `poles` of a dispersive material: `type` is "debye", "lorentz" or "drude"."""

    type: str
    difference: float | None = None
    relaxation_time: float | None = None
    frequency: float | None = None
    damping: float | None = None
    rate: float | None = None


@dataclass(kw_only=True)
class Material(Keys):
    """`[[materials]]`."""

    id: str
    permittivity: float | None = None
    permeability: float | None = None
    conductivity: float | None = None
    poles: Sequence[Pole] | None = None
    averaging: bool | None = None


@dataclass(kw_only=True)
class Object(Keys):
    """Common keys of `[[objects]]`. `material` is an id, or one per axis."""

    type: ClassVar[str]
    material: str | Sequence[str]
    id: str | None = None
    averaging: bool | None = None

    def table(self) -> Table:
        """Its keys and values, including its type."""
        return {"type": self.type, **super().table()}


@dataclass(kw_only=True)
class Box(Object):
    """A box between two corners."""

    type: ClassVar[str] = "box"
    low: Point
    high: Point


@dataclass(kw_only=True)
class Cylinder(Object):
    """A disc around `centre` in two dimensions; in three a cylinder from `start` to `end`."""

    type: ClassVar[str] = "cylinder"
    radius: float
    centre: Point | None = None
    start: Point | None = None
    end: Point | None = None
    closed: bool | None = None


@dataclass(kw_only=True)
class Sphere(Object):
    """A ball."""

    type: ClassVar[str] = "sphere"
    centre: Point
    radius: float


@dataclass(kw_only=True)
class HalfSpace(Object):
    """Everything below, or above, a plane across an axis."""

    type: ClassVar[str] = "half_space"
    axis: str
    below: float | None = None
    above: float | None = None


@dataclass(kw_only=True)
class Ellipsoid(Object):
    """An ellipsoid, or an ellipse, with a radius along each axis."""

    type: ClassVar[str] = "ellipsoid"
    centre: Point
    radii: Point


@dataclass(kw_only=True)
class Cone(Object):
    """A cone, or a truncated one, from `start` to `end`."""

    type: ClassVar[str] = "cone"
    start: Point
    end: Point
    start_radius: float
    end_radius: float
    closed: bool | None = None


@dataclass(kw_only=True)
class Triangle(Object):
    """A triangle; in three dimensions a prism, or a patch if its height is 0."""

    type: ClassVar[str] = "triangle"
    first: Point
    second: Point
    third: Point
    axis: str | None = None
    low: float | None = None
    high: float | None = None
    closed: bool | None = None


@dataclass(kw_only=True)
class Sector(Object):
    """A slice of a disc; in three dimensions one of a cylinder, or a patch if its height is 0."""

    type: ClassVar[str] = "sector"
    centre: Point
    radius: float
    start_angle: float
    sweep: float
    axis: str | None = None
    low: float | None = None
    high: float | None = None


@dataclass(kw_only=True)
class Plate(Object):
    """A rectangle without thickness; in two dimensions a line."""

    type: ClassVar[str] = "plate"
    low: Point
    high: Point


@dataclass(kw_only=True)
class Wire(Object):
    """A line of edges from `start` to `end`; in two dimensions one across the plane, at `position`."""

    type: ClassVar[str] = "wire"
    start: Point | None = None
    end: Point | None = None
    position: Point | None = None


@dataclass(kw_only=True)
class Voxels(Object):
    """Cells of an array in a file, starting at `position`; `material` has one entry for each number, from 0."""

    type: ClassVar[str] = "voxels"
    position: Point
    file: str | Path


@dataclass(kw_only=True)
class Mesh(Object):
    """A solid whose surface is a closed mesh (STL, PLY, OBJ), times `scale`, with its origin at `position`."""

    type: ClassVar[str] = "mesh"
    file: str | Path
    position: Point | None = None
    scale: float | None = None


@dataclass(kw_only=True)
class Surface(Keys):
    """A rough side of a fractal box."""

    side: str
    lowest: float
    highest: float
    dimension: float
    weights: Point | None = None
    seed: int | None = None
    low: Point | None = None
    high: Point | None = None
    water: float | None = None
    water_material: str | None = None


@dataclass(kw_only=True)
class FractalBox(Object):
    """A box with a fractal distribution of materials."""

    type: ClassVar[str] = "fractal_box"
    low: Point
    high: Point
    dimension: float
    weights: Point | None = None
    seed: int | None = None
    spread: str | None = None
    surfaces: Sequence[Surface] | None = None


@dataclass(kw_only=True)
class Source(Keys):
    """`[[sources]]`."""

    position: Point
    waveform: str
    id: str | None = None
    field: str | None = None
    frequency: float | None = None
    amplitude: float | None = None
    delay: float | None = None
    stop: float | None = None
    resistance: float | None = None
    line: bool | None = None
    file: str | Path | None = None
    column: str | None = None


@dataclass(kw_only=True)
class PlaneWave(Keys):
    """`[[plane_waves]]`."""

    direction: str
    waveform: str
    id: str | None = None
    field: str | None = None
    low: Point | None = None
    high: Point | None = None
    frequency: float | None = None
    amplitude: float | None = None
    delay: float | None = None
    stop: float | None = None
    file: str | Path | None = None
    column: str | None = None


@dataclass(kw_only=True)
class Receiver(Keys):
    """`[[receivers]]`."""

    position: Point
    id: str | None = None
    fields: Sequence[str] | None = None


@dataclass(kw_only=True)
class Monitor(Keys):
    """`[[monitors]]`: `type` is "fields" or "flux"; either `frequencies` or `band` with `count`."""

    type: str
    low: Point
    high: Point
    id: str | None = None
    frequencies: Sequence[float] | None = None
    band: Point | None = None
    count: int | None = None
    fields: Sequence[str] | None = None


@dataclass(kw_only=True)
class Snapshots(Keys):
    """`[snapshots]`."""

    interval: float | None = None
    fields: Sequence[str] | None = None


@dataclass(kw_only=True)
class Scan(Keys):
    """`[scan]`."""

    step: Point
    count: int


SHAPES: dict[str, type[Object]] = {
    one.type: one
    for one in (
        *(Box, Cylinder, Sphere, HalfSpace, Ellipsoid, Cone, Triangle, Sector),
        *(Plate, Wire, Voxels, Mesh, FractalBox),
    )
}
