"""Objects without volume: sheets, which cover faces of cells, and wires, which cover edges."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.grid.solver.keys import Keys
from headrace.grid.solver.places import nearest_node
from headrace.grid.solver.shapes import AXES, SLACK, Box, Point, Shape
from headrace.grid.solver.solids import Sector, Triangle
from headrace.grid.spacing import Spacing

Nodes = NDArray[np.int64]  # (nodes, dimensions)

_FLAT = 2


@dataclass(frozen=True)
class Sheet:
    """A plane across an axis, at the node nearest to `at`, within an outline.

    In two dimensions it is a line. It gives its material to the edges of all faces whose centres lie inside its
    outline.
    """

    axis: int
    at: float
    outline: Box | Triangle | Sector
    """A shape in the plane's axes, in the order x, y, z."""

    def bounds(self, size: Point) -> tuple[Point, Point]:
        """Corners of its bounding box, which is flat."""
        low, high = self.outline.bounds(tuple(one for axis, one in enumerate(size) if axis != self.axis))
        return _with(low, self.axis, self.at), _with(high, self.axis, self.at)

    def edges(self, shape: tuple[int, ...], spacing: Spacing, alongs: tuple[int, ...]) -> dict[int, Nodes]:
        """The edges of its faces in a domain of this shape, by the axis along them, one of `alongs`: their nodes."""
        axes = [axis for axis in range(len(shape)) if axis != self.axis]
        (at,) = nearest_node((self.at,), (spacing[self.axis],))
        centres = np.meshgrid(*((np.arange(shape[axis]) + 0.5) * spacing[axis] for axis in axes), indexing="ij")
        inside = self.outline.covers(list(centres), SLACK * min(spacing))
        faces = np.argwhere(inside & np.ones(centres[0].shape, dtype=bool))
        found = {}
        for along in alongs:
            if along == self.axis:
                continue
            both = [faces + np.array([step if axis != along else 0 for axis in axes]) for step in (0, 1)]
            nodes = np.unique(np.concatenate(both), axis=0)
            found[along] = np.insert(nodes, self.axis, at, axis=1).astype(np.int64)
        return found


@dataclass(frozen=True)
class Wire:
    """A line along an axis, between the nodes nearest to its ends; in two dimensions, if they are equal, across it."""

    start: Point
    end: Point

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """Its ends, the lower one first."""
        low = tuple(min(pair) for pair in zip(self.start, self.end, strict=True))
        return low, tuple(max(pair) for pair in zip(self.start, self.end, strict=True))

    def edges(self, shape: tuple[int, ...], spacing: Spacing, alongs: tuple[int, ...]) -> dict[int, Nodes]:
        """Its edges in a domain of this shape, by the axis along them, one of `alongs`: their nodes."""
        low, high = (nearest_node(corner, spacing) for corner in self.bounds(()))
        if self.start == self.end:
            return {2: np.array([low], dtype=np.int64)} if 2 in alongs else {}  # noqa: PLR2004 - across the plane
        along = max(range(len(shape)), key=lambda axis: high[axis] - low[axis])
        if along not in alongs:
            return {}
        nodes = np.repeat(np.array([low], dtype=np.int64), high[along] - low[along], axis=0)
        nodes[:, along] += np.arange(len(nodes))
        return {along: nodes}


# Objects that give their material to edges instead of cells.
Thin = Sheet | Wire


def _with(values: Point, axis: int, value: float) -> Point:
    return (*values[:axis], value, *values[axis:])


def read_plate(keys: Keys, dimensions: int) -> Sheet:
    """Reads a rectangle across an axis; in two dimensions a line."""
    low, high = keys.point("low", [dimensions]), keys.point("high", [dimensions])
    across = [axis for axis in range(dimensions) if low[axis] == high[axis]]
    if len(across) != 1:
        raise keys.error(
            "high must equal low along exactly one axis of a plate and be above it along the others", "high"
        )
    axis = across[0]
    rest = [one for one in range(dimensions) if one != axis]
    for one in rest:
        if low[one] > high[one]:
            raise keys.error(f"{high[one]:g} along {AXES[one]} is not above low, {low[one]:g}", "high")
    return Sheet(axis, low[axis], Box(tuple(low[one] for one in rest), tuple(high[one] for one in rest)))


def read_wire(keys: Keys, dimensions: int) -> Wire:
    """Reads a line of edges; in two dimensions it may also be across the plane."""
    if dimensions == _FLAT and ("position" in keys or not ("start" in keys or "end" in keys)):
        position = keys.point("position", [_FLAT])
        return Wire(position, position)
    start, end = keys.point("start", [dimensions]), keys.point("end", [dimensions])
    if sum(first != last for first, last in zip(start, end, strict=True)) != 1:
        raise keys.error("a wire lies along one axis: its ends must differ along that axis only", "end")
    return Wire(start, end)


def flattened(shape: Shape) -> Shape | Sheet:
    """Converts a prism or a sector of zero height to a sheet; other shapes are returned unchanged."""
    if not isinstance(shape, Triangle | Sector) or shape.extent is None or shape.extent.low < shape.extent.high:
        return shape
    return Sheet(shape.extent.axis, shape.extent.low, shape.in_plane())
