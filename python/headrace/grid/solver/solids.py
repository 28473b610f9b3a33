"""More shapes of objects: ellipsoids, cones, triangular prisms and sectors of cylinders; in two dimensions, cuts."""

import math
from dataclasses import dataclass, field

import numpy as np

from headrace.grid.solver.keys import Keys
from headrace.grid.solver.shapes import AXES, Axes, Mask, Point, along_line, around_line, closed

_FLAT = 2  # number of dimensions
_TURN = 360.0  # degrees


@dataclass(frozen=True)
class Ellipsoid:
    """A region around a point, with a radius along each axis; in two dimensions an ellipse."""

    centre: Point
    radii: Point

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """Its bounding box."""
        low = tuple(at - radius for at, radius in zip(self.centre, self.radii, strict=True))
        return low, tuple(at + radius for at, radius in zip(self.centre, self.radii, strict=True))

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Within its surface."""
        parts = zip(centres, self.centre, self.radii, strict=True)
        return np.asarray(sum(((axis - at) / (radius + slack)) ** 2 for axis, at, radius in parts) <= 1)

    def thickness(self) -> float:
        """Length of its shortest diameter."""
        return 2 * min(self.radii)


@dataclass(frozen=True)
class Cone:
    """A cone around the line between two points, with a radius at each, in three dimensions."""

    start: Point
    end: Point
    radii: tuple[float, float]
    closed: bool | None = field(default=None, repr=False)
    """Whether points exactly in its end disc belong to it; by default they do not."""

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """A bounding box, somewhat larger if it is slanted."""
        return around_line(self.start, self.end, max(self.radii))

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Close enough to the line, and between its ends."""
        share, distance = along_line(self.start, self.end, centres)
        ends = slack / math.dist(self.start, self.end)
        # If the radius is 0, rounding must not make it a disc again.
        radius = np.maximum(self.radii[0] + share * (self.radii[1] - self.radii[0]), 0) + slack
        between = (share >= -ends) & (share < 1 + (ends if self.closed else -ends))
        return np.asarray(between & (distance <= radius**2))

    def thickness(self) -> float:
        """Diameter of the ball that fits into it if its smaller radius is 0."""
        radius, length = max(self.radii), math.dist(self.start, self.end)
        return 2 * radius * length / (radius + math.hypot(radius, length))


@dataclass(frozen=True)
class Extent:
    """Range along an axis, including the low end."""

    axis: int
    low: float
    high: float


@dataclass(frozen=True)
class Triangle:
    """A prism across an axis with triangular faces; in two dimensions a triangle."""

    corners: tuple[Point, Point, Point]  # in the plane, its first axis first
    extent: Extent | None
    closed: bool | None = field(default=None, repr=False)
    """Whether points exactly on its three edges belong to it; by default they do."""

    def bounds(self, size: Point) -> tuple[Point, Point]:
        """Its bounding box."""
        columns = [[corner[axis] for corner in self.corners] for axis in range(_FLAT)]
        return _bounds([min(one) for one in columns], [max(one) for one in columns], self.extent, len(size))

    def covers(self, centres: Axes, slack: float) -> Mask:
        """On the inner side of its three edges."""
        right, up = _plane(centres, self.extent)
        inside = _between(centres, self.extent, slack)
        turn = 1.0 if _area(self.corners) > 0 else -1.0
        for first, second in zip(self.corners, (*self.corners[1:], self.corners[0]), strict=True):
            edge = (second[0] - first[0], second[1] - first[1])
            distance = turn * (edge[0] * (up - first[1]) - edge[1] * (right - first[0])) / math.hypot(*edge)
            inside = inside & (distance > (slack if self.closed is False else -slack))
        return inside

    def in_plane(self) -> "Triangle":
        """Its triangle without the height."""
        return Triangle(self.corners, None, self.closed)

    def thickness(self) -> float:
        """Diameter of its inscribed circle, or its height."""
        around = sum(math.dist(a, b) for a, b in zip(self.corners, (*self.corners[1:], self.corners[0]), strict=True))
        return min(4 * abs(_area(self.corners)) / around, _height(self.extent))


@dataclass(frozen=True)
class Sector:
    """A slice of a cylinder along an axis, anticlockwise from an angle; in two dimensions a slice of a disc."""

    centre: Point  # in the plane, its first axis first
    radius: float
    start: float  # degrees from the first axis of the plane
    sweep: float  # degrees
    extent: Extent | None

    def bounds(self, size: Point) -> tuple[Point, Point]:
        """Bounding box of the whole cylinder."""
        low, high = ([at + sign * self.radius for at in self.centre] for sign in (-1, 1))
        return _bounds(low, high, self.extent, len(size))

    def covers(self, centres: Axes, slack: float) -> Mask:
        """Within the radius and between the angles."""
        right, up = (axis - at for axis, at in zip(_plane(centres, self.extent), self.centre, strict=True))
        distance = right**2 + up**2
        angle = np.degrees(np.arctan2(up, right)) - self.start
        # The angular tolerance for a place to be within `slack` of the edge.
        off = np.degrees(slack / np.maximum(np.sqrt(distance), slack))
        turned = np.mod(angle + off, _TURN)
        inside = (distance <= (self.radius + slack) ** 2) & (turned <= np.minimum(self.sweep + 2 * off, _TURN))
        return inside & _between(centres, self.extent, slack)

    def in_plane(self) -> "Sector":
        """Its slice of a disc without the height."""
        return Sector(self.centre, self.radius, self.start, self.sweep, None)

    def thickness(self) -> float:
        """Diameter of its inscribed circle, or its height."""
        half = math.sin(math.radians(min(self.sweep, _TURN / 2) / 2))
        return min(2 * self.radius * half / (1 + half), _height(self.extent))


def _area(corners: tuple[Point, Point, Point]) -> float:
    """The area of a triangle; negative if its corners are in clockwise order."""
    (a, b), (c, d), (e, f) = corners
    return ((c - a) * (f - b) - (e - a) * (d - b)) / 2


def _height(extent: Extent | None) -> float:
    return math.inf if extent is None else extent.high - extent.low


def _plane(centres: Axes, extent: Extent | None) -> Axes:
    return [one for axis, one in enumerate(centres) if extent is None or axis != extent.axis]


def _between(centres: Axes, extent: Extent | None, slack: float) -> Mask:
    if extent is None:
        return np.ones((1,) * len(centres), dtype=bool)
    axis = centres[extent.axis]
    return np.asarray((axis >= extent.low - slack) & (axis < extent.high - slack))


def _bounds(low: list[float], high: list[float], extent: Extent | None, dimensions: int) -> tuple[Point, Point]:
    if extent is not None:
        low.insert(extent.axis, extent.low)
        high.insert(extent.axis, extent.high)
    return tuple(low[:dimensions]), tuple(high[:dimensions])


def read_ellipsoid(keys: Keys, dimensions: int) -> Ellipsoid:
    """Reads an ellipsoid, or in two dimensions an ellipse."""
    found = Ellipsoid(keys.point("centre", [dimensions]), keys.point("radii", [dimensions]))
    if min(found.radii) <= 0:
        raise keys.error(f"{min(found.radii):g} is not above 0", "radii")
    return found


def read_cone(keys: Keys, dimensions: int) -> Cone:
    """Reads a cone, or a truncated one between two discs."""
    if dimensions == _FLAT:
        raise keys.error("a cone needs three dimensions: in two, use a triangle", "type")
    radii = keys.number("start_radius", least=0), keys.number("end_radius", least=0)
    found = Cone(keys.point("start", [3]), keys.point("end", [3]), radii, closed(keys))
    if found.start == found.end:
        raise keys.error("it equals start, but a cone needs a length", "end")
    if max(radii) == 0:
        raise keys.error("both radii are 0", "end_radius")
    return found


def _extent(keys: Keys, dimensions: int) -> Extent | None:
    if dimensions == _FLAT:
        return None
    extent = Extent(AXES.index(keys.choice("axis", AXES)), keys.number("low"), keys.number("high"))
    if extent.low > extent.high:
        raise keys.error(f"{extent.high:g} is below low, {extent.low:g}", "high")
    return extent


def read_triangle(keys: Keys, dimensions: int) -> Triangle:
    """Reads a triangle, or in three dimensions a prism."""
    corners = keys.point("first", [2]), keys.point("second", [2]), keys.point("third", [2])
    if _area(corners) == 0:
        raise keys.error("it lies on one line with the other two corners", "third")
    return Triangle(corners, _extent(keys, dimensions), closed(keys))


def read_sector(keys: Keys, dimensions: int) -> Sector:
    """Reads a sector of a disc, or in three dimensions of a cylinder."""
    centre, radius = keys.point("centre", [2]), keys.number("radius", above=0)
    start, sweep = keys.number("start_angle"), keys.number("sweep", above=0)
    if sweep > _TURN:
        raise keys.error(f"{sweep:g} degrees are more than a turn", "sweep")
    return Sector(centre, radius, start, sweep, _extent(keys, dimensions))
