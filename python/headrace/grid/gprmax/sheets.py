"""Reads commands of objects without volume as the keys of a scene's objects."""

from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Model, Object
from headrace.grid.gprmax.solids import in_the_cell

_LETTERS = ("x", "y", "z")
_CORNERS = 6  # numbers before the materials
_Z = 2


def _plate(model: Model, command: Command) -> None:
    """A rectangle across an axis, with one material, or one for each axis of its plane."""
    low, high = model.on_node(command.numbers(0, 3)), model.on_node(command.numbers(3, 3))
    materials = command.words[_CORNERS:]
    if len(materials) not in (1, 2):
        raise command.error(f"has {len(command.words)} parameters, not {_CORNERS} and one material, or one per axis")
    across = [axis for axis in range(3) if low[axis] == high[axis]]
    if len(across) != 1:
        raise command.error("a plate must be flat along exactly one axis and at least a cell long along the others")
    for letter, first, last in zip(_LETTERS, low, high, strict=True):
        if first > last:
            raise command.error(f"it ends at {last:g} m along {letter}, below where it begins")
    if model.flat:
        if across[0] == _Z or not in_the_cell(model, low[_Z], high[_Z]):
            _left_out(model, command)
            return
        materials = materials[-1:]  # the material along z, the last of its plane
    elif len(materials) > 1 and len(set(materials)) == 1:
        materials = materials[:1]
    model.objects.append(
        Object(command, "plate", {"low": model.point(low), "high": model.point(high)}, materials, False)
    )


def _edge(model: Model, command: Command) -> None:
    """A line along an axis, of one material."""
    command.expect(_CORNERS + 1)
    start, end = model.on_node(command.numbers(0, 3)), model.on_node(command.numbers(3, 3))
    along = [axis for axis in range(3) if start[axis] != end[axis]]
    if len(along) != 1:
        raise command.error("an edge must lie along exactly one axis and be at least a cell long")
    if start[along[0]] > end[along[0]]:
        raise command.error(f"it ends at {end[along[0]]:g} m along {_LETTERS[along[0]]}, below where it begins")
    materials = command.words[_CORNERS:]
    if not model.flat:
        keys = {"start": model.point(start), "end": model.point(end)}
    elif along[0] != _Z or not in_the_cell(model, start[_Z], end[_Z]):
        _left_out(model, command)
        return
    else:
        keys = {"position": model.point(start)}
    model.objects.append(Object(command, "wire", keys, materials, False))


def _left_out(model: Model, command: Command) -> None:
    model.findings.note(
        f"{command.place}: left out: in two dimensions with the electric field along z, it has no edges along z"
    )


READERS: dict[str, Reader] = {"plate": _plate, "edge": _edge}
