"""Reads commands of objects with volume as the keys of a scene's objects."""

import json
import math
from collections.abc import Callable

from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Model, Object, quoted

_SMOOTHING = ("y", "n")
_LETTERS = ("x", "y", "z")
_ALONG = 3  # number of axes that may each have a material

Keys = dict[str, str]
Shape = tuple[str, Keys] | None  # None: no part of it lies in the domain


def object_reader(numbers: int, shape: Callable[[Model, Command], Shape]) -> Reader:
    """Reads an object with this many numbers, its material, and whether it is smoothed."""

    def read_object(model: Model, command: Command) -> None:
        named = command.words[numbers:]
        smoothed = True
        if named and named[-1] in _SMOOTHING and len(named) > 1:
            smoothed = named.pop() == "y"
            if smoothed and len(named) == _ALONG:
                raise command.error("an object with a material for each axis cannot be smoothed")
        if len(named) not in (1, _ALONG):
            raise command.error(f"has {len(command.words)} parameters, not {numbers} and one material, or one per axis")
        found = shape(model, command)
        if found is None:
            model.findings.note(f"{command.place}: left out: no part of it lies in the one cell along z")
            return
        model.objects.append(Object(command, *found, named, smoothed and len(named) == 1))

    return read_object


def in_the_cell(model: Model, low: float, high: float) -> bool:
    """Whether an extent from low to high along z covers the one cell of two dimensions."""
    first, last = (model.node_along(2, at) for at in (low, high))
    return first < model.cell[2] / 2 < last


def _radius(command: Command, index: int) -> float:
    radius = command.number(index)
    if radius <= 0:
        raise command.error(f"a radius of {radius:g} m is not above 0")
    return radius


def _box(model: Model, command: Command) -> Shape:
    low, high = command.numbers(0, 3), command.numbers(3, 3)
    for letter, first, last in zip(_LETTERS, model.on_node(low), model.on_node(high), strict=True):
        if first >= last:
            raise command.error(f"it has no volume: it is less than a cell thick along {letter}")
    if model.flat and not in_the_cell(model, low[2], high[2]):
        return None
    return "box", {"low": model.point(low), "high": model.point(high)}


def _cylinder(model: Model, command: Command) -> Shape:
    start, end = model.on_node(command.numbers(0, 3)), model.on_node(command.numbers(3, 3))
    radius = _radius(command, 6)
    if start == end:
        raise command.error("it has no length")
    if not model.flat:
        keys = {"start": model.point(start), "end": model.point(end), "radius": repr(radius)}
        return "cylinder", keys | _closed(start, end)
    if start[:2] != end[:2]:
        raise command.error("in two dimensions a cylinder must lie along z")
    if not in_the_cell(model, min(start[2], end[2]), max(start[2], end[2])):
        return None
    return "cylinder", {"centre": model.point(start), "radius": repr(radius)}


def _closed(start: list[float], end: list[float]) -> Keys:
    """In gprMax, points exactly in the far end of a slanted cylinder belong to it; those of a straight one do not."""
    straight = sum(first != last for first, last in zip(start, end, strict=True)) == 1
    return {} if straight else {"closed": "true"}


def _sphere(model: Model, command: Command) -> Shape:
    centre, radius = model.on_node(command.numbers(0, 3)), _radius(command, 3)
    if not model.flat:
        return "sphere", {"centre": model.point(centre), "radius": repr(radius)}
    squared = radius**2 - (model.cell[2] / 2 - centre[2]) ** 2
    if squared <= 0:
        return None
    return "cylinder", {"centre": model.point(centre), "radius": repr(math.sqrt(squared))}


def _ellipsoid(model: Model, command: Command) -> Shape:
    centre = model.on_node(command.numbers(0, 3))
    radii = [_radius(command, index) for index in range(3, 6)]
    if model.flat:
        squared = 1 - ((model.cell[2] / 2 - centre[2]) / radii[2]) ** 2
        if squared <= 0:
            return None
        radii = [radius * math.sqrt(squared) for radius in radii]
    return "ellipsoid", {"centre": model.point(centre), "radii": model.point(radii)}


def _cone(model: Model, command: Command) -> Shape:
    start, end = model.on_node(command.numbers(0, 3)), model.on_node(command.numbers(3, 3))
    radii = command.numbers(6, 2)
    if model.flat:
        raise command.error("the solver does not support cones in two dimensions")
    if start == end or min(radii) < 0 or max(radii) == 0:
        raise command.error("it has no volume")
    keys = {"start": model.point(start), "end": model.point(end)} | _closed(start, end)
    return "cone", keys | {"start_radius": repr(radii[0]), "end_radius": repr(radii[1])}


def _extent(model: Model, axis: int, low: float, high: float) -> Keys | None:
    """The extent of a prism along its axis; empty in two dimensions, None outside."""
    if model.flat:
        return {} if in_the_cell(model, low, high) else None
    return {"axis": quoted(_LETTERS[axis]), "low": repr(low), "high": repr(high)}


def _triangle(model: Model, command: Command) -> Shape:
    corners = [model.on_node(command.numbers(first, 3)) for first in (0, 3, 6)]
    thickness = command.number(9)
    across = [axis for axis in range(3) if len({corner[axis] for corner in corners}) == 1]
    if len(across) != 1:
        raise command.error("its corners must span a plane across one axis")
    axis = across[0]
    if thickness < 0:
        raise command.error(f"a thickness of {thickness:g} m is below 0")
    bottom = corners[0][axis]
    height = model.node_along(axis, bottom + thickness) if model.node_along(axis, thickness) else bottom
    if model.flat and height <= corners[0][axis]:
        return None
    if model.flat and axis != 2:  # noqa: PLR2004
        raise command.error("in two dimensions a triangle must lie across z")
    extent = _extent(model, axis, corners[0][axis], height)
    if extent is None:
        return None
    plane = [json.dumps([at for other, at in enumerate(corner) if other != axis]) for corner in corners]
    # gprMax excludes cells whose centres lie exactly on a side.
    return "triangle", dict(zip(("first", "second", "third"), plane, strict=True)) | extent | {"closed": "false"}


def _sector(model: Model, command: Command) -> Shape:
    letter = command.words[0].lower()
    if letter not in _LETTERS:
        raise command.error(f"'{command.words[0]}' is not x, y or z")
    axis = _LETTERS.index(letter)
    plane = [other for other in range(3) if other != axis]
    centre = [model.node_along(other, at) for other, at in zip(plane, command.numbers(1, 2), strict=True)]
    low, high = (model.node_along(axis, at) for at in command.numbers(3, 2))
    start, sweep = command.numbers(6, 2)
    if low > high:
        raise command.error(f"its axis ends at {high:g} m, below where it begins")
    if model.flat and low == high:
        return None
    if model.flat and axis != 2:  # noqa: PLR2004
        raise command.error("in two dimensions a sector must lie across z")
    if not 0 < sweep <= 360:  # noqa: PLR2004 - degrees
        raise command.error(f"an angle of {sweep:g} degrees is out of range: it must be above 0 and at most 360")
    extent = _extent(model, axis, low, high)
    if extent is None:
        return None
    keys = {"centre": json.dumps(centre), "radius": repr(_radius(command, 5))}
    return "sector", keys | {"start_angle": repr(start), "sweep": repr(sweep)} | extent


READERS: dict[str, Reader] = {
    "box": object_reader(6, _box),
    "cylinder": object_reader(7, _cylinder),
    "sphere": object_reader(4, _sphere),
    "ellipsoid": object_reader(6, _ellipsoid),
    "cone": object_reader(8, _cone),
    "triangle": object_reader(10, _triangle),
    "cylindrical_sector": object_reader(8, _sector),
}
