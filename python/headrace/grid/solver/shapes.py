"""Shapes of objects: which cells each covers. A shape covers a cell if it contains the cell's centre."""

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headrace.grid.solver.keys import Keys

Point = tuple[float, ...]
Mask = NDArray[np.bool_]
Axes = list[NDArray[np.float64]]  # the centres along each axis, shaped to broadcast

AXES = ("x", "y", "z")
# Coordinates are sums of decimals: whether a point is on an edge must not depend on the last bits. A share of the
# spacing.
SLACK = 1e-6


class Shape(Protocol):
    """A shape that can be painted."""

    def bounds(self, size: Point) -> tuple[Point, Point]:
        """Corners of the region it may cover in a domain of this size, in metres."""

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Whether it covers each of these centres; points closer to its surface than `slack` metres are on it."""

    def thickness(self) -> float:
        """Diameter of the largest ball inside it, or slightly less, in metres."""


@dataclass(frozen=True)
class Box:
    """The region between two corners, including the low one."""

    low: Point
    high: Point

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """Its corners."""
        return self.low, self.high

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Between the corners along every axis."""
        inside: Mask = np.ones((1,) * len(centres), dtype=bool)
        for axis, low, high in zip(centres, self.low, self.high, strict=True):
            inside = inside & (axis >= low - slack) & (axis < high - slack)
        return inside

    def thickness(self) -> float:
        """Length of its shortest edge."""
        return min(high - low for low, high in zip(self.low, self.high, strict=True))


@dataclass(frozen=True)
class Sphere:
    """A ball around a point; in two dimensions a disc, the cut through a cylinder along z."""

    centre: Point
    radius: float

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """Its bounding box."""
        low = tuple(at - self.radius for at in self.centre)
        return low, tuple(at + self.radius for at in self.centre)

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Within the radius."""
        squared = sum((axis - at) ** 2 for axis, at in zip(centres, self.centre, strict=True))
        return np.asarray(squared <= (self.radius + slack) ** 2)

    def thickness(self) -> float:
        """Its diameter."""
        return 2 * self.radius


def around_line(start: Point, end: Point, radius: float) -> tuple[Point, Point]:
    """Corners of a box that contains everything within `radius` of a line."""
    low = tuple(min(pair) - radius for pair in zip(start, end, strict=True))
    return low, tuple(max(pair) + radius for pair in zip(start, end, strict=True))


def along_line(start: Point, end: Point, centres: Axes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The nearest place on a line for each centre, from 0 at its start to 1 at its end, and the squared distance."""
    along = [last - first for first, last in zip(start, end, strict=True)]
    offsets = [axis - first for axis, first in zip(centres, start, strict=True)]
    share = sum(offset * part for offset, part in zip(offsets, along, strict=True)) / sum(part * part for part in along)
    distance = sum((offset - share * part) ** 2 for offset, part in zip(offsets, along, strict=True))
    return np.asarray(share), np.asarray(distance)


@dataclass(frozen=True)
class Cylinder:
    """A cylinder around the line between two points, in three dimensions."""

    start: Point
    end: Point
    radius: float
    closed: bool | None = field(default=None, repr=False)
    """Whether points exactly in its end disc belong to it; by default they do not."""

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """A bounding box, somewhat larger if it is slanted."""
        return around_line(self.start, self.end, self.radius)

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Close enough to the line, and between its ends."""
        share, distance = along_line(self.start, self.end, centres)
        ends = slack / math.dist(self.start, self.end)
        between = (share >= -ends) & (share < 1 + (ends if self.closed else -ends))
        return np.asarray(between & (distance <= (self.radius + slack) ** 2))

    def thickness(self) -> float:
        """The smaller of its diameter and its length."""
        return min(2 * self.radius, math.dist(self.start, self.end))


@dataclass(frozen=True)
class HalfSpace:
    """Everything below, or above, a plane across an axis."""

    axis: int
    below: float | None
    above: float | None

    def bounds(self, size: Point) -> tuple[Point, Point]:
        """The part of the domain on its side of the plane."""
        low, high = [0.0] * len(size), list(size)
        if self.below is not None:
            high[self.axis] = self.below
        if self.above is not None:
            low[self.axis] = self.above
        return tuple(low), tuple(high)

    def covers(self, centres: Axes, slack: float) -> Mask:
        """On its side of the plane."""
        axis = centres[self.axis]
        return axis < self.below - slack if self.below is not None else axis >= (self.above or 0.0) - slack

    def thickness(self) -> float:
        """Unlimited."""
        return math.inf


def closed(keys: Keys) -> bool | None:
    """Whether a border belongs to a shape, if the file says so."""
    return keys.flag("closed", False) if "closed" in keys else None


def read_box(keys: Keys, dimensions: int) -> Box:
    """Reads a box."""
    low, high = keys.point("low", [dimensions]), keys.point("high", [dimensions])
    for axis, (least, most) in enumerate(zip(low, high, strict=True)):
        if least >= most:
            raise keys.error(f"{most:g} along {AXES[axis]} is not above low, {least:g}", "high")
    return Box(low, high)


def read_cylinder(keys: Keys, dimensions: int) -> Sphere | Cylinder:
    """Reads a cylinder along any line; in two dimensions one along z, a disc."""
    if dimensions == 2:  # noqa: PLR2004 - its axis is z
        return _sphere(keys, dimensions)
    ends = keys.point("start", [3]), keys.point("end", [3])
    found = Cylinder(*ends, keys.number("radius", above=0), closed(keys))
    if found.start == found.end:
        raise keys.error("it equals start, but a cylinder needs a length", "end")
    return found


def _sphere(keys: Keys, dimensions: int) -> Sphere:
    return Sphere(keys.point("centre", [dimensions]), keys.number("radius", above=0))


def read_sphere(keys: Keys, dimensions: int) -> Sphere:
    """Reads a sphere."""
    if dimensions == 2:  # noqa: PLR2004
        raise keys.error("a sphere needs three dimensions: in two, use a cylinder (along z), which is a disc", "type")
    return _sphere(keys, dimensions)


def read_half_space(keys: Keys, dimensions: int) -> HalfSpace:
    """Reads one side of a plane."""
    axis = AXES.index(keys.choice("axis", AXES[:dimensions]))
    side = keys.either("below", "above")
    at = keys.number(side)
    return HalfSpace(axis, at if side == "below" else None, at if side == "above" else None)
