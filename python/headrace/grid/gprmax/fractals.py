"""Reads commands of objects given cell by cell: fractal boxes, their surfaces, and arrays in files."""

from dataclasses import replace
from pathlib import Path

from headrace.grid.gprmax.dispersion import READERS as DISPERSION
from headrace.grid.gprmax.dispersion import soil_materials, water_material
from headrace.grid.gprmax.general import READERS as GENERAL
from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command, plain, read
from headrace.grid.gprmax.model import Fractal, Model, Object, quoted

_LETTERS = ("x", "y", "z")
_Z = 2
_SMOOTHING = ("y", "n")
_BOX = 13  # parameters of a fractal box before its seed
_ROUGH = 12  # parameters of a rough surface
_GEOMETRY = 5  # parameters of an array in a file before its smoothing


def _list(model: Model, command: Command) -> None:
    if len(command.words) < 3:  # noqa: PLR2004 - two materials and a name
        raise command.error("a list needs at least two materials and a name")
    *materials, name = command.words
    model.mixtures[name] = (command, materials)


def _seed(model: Model, command: Command, index: int) -> int:
    """The seed of a command, or a fixed one."""
    if len(command.words) <= index:
        model.findings.note(f"{command.place}: it has no seed: 0 is used, so that runs can be repeated")
        return 0
    seed = command.whole(index)
    if seed is None:
        raise command.error(f"'{command.words[index]}' is not a seed: give a whole number")
    return seed


def _fractal_box(model: Model, command: Command) -> None:
    command.expect(_BOX, _BOX + 1, _BOX + 2)
    low, high = model.on_node(command.numbers(0, 3)), model.on_node(command.numbers(3, 3))
    dimension, weights = command.number(6), command.numbers(7, 3)
    count, mixture, name = command.whole(10), command.words[11], command.words[12]
    if not count:
        raise command.error(f"'{command.words[10]}' is not a number of materials")
    if name in model.fractals:
        model.namesakes.add(name)
    keys = {
        "low": model.point(low),
        "high": model.point(high),
        "dimension": repr(dimension),
        "weights": model.point(weights),
        "seed": "0",
        "spread": quoted("gprmax"),
    }
    model.fractals[name] = Fractal(low, high, keys, {})  # added even if invalid, because other commands refer to it
    materials = [mixture]
    if mixture in model.mixtures:
        materials = model.mixtures[mixture][1]
        if mixture in model.soils:
            materials = soil_materials(model, command, mixture, count)
        if len(materials) != count:
            raise command.error(f"it asks for {count} materials, but '{mixture}' has {len(materials)}")
    elif count != 1:
        raise command.error(f"it asks for {count} materials, but '{mixture}' is not a list of materials")
    for letter, first, last in zip(_LETTERS, low, high, strict=True):
        if first >= last:
            raise command.error(f"it is less than a cell thick along {letter}")
    smoothed = len(command.words) <= _BOX + 1 or command.words[-1] == "y"
    if command.words[-1] not in _SMOOTHING and len(command.words) > _BOX + 1:
        raise command.error(f"'{command.words[-1]}' is neither y nor n")
    keys["seed"] = str(_seed(model, command, _BOX))
    model.objects.append(Object(command, "fractal_box", keys, materials, smoothed))


def _side(model: Model, command: Command, name: str) -> tuple[Fractal, int, str, dict[str, str]]:
    """The box and side that a command refers to: its axis, - or +, and the part of the side."""
    if name not in model.fractals:
        raise command.error(f"there is no fractal box '{name}'")
    if name in model.namesakes:
        raise command.error(f"there are several fractal boxes '{name}' above: give each its own name")
    box = model.fractals[name]
    low, high = model.on_node(command.numbers(0, 3)), model.on_node(command.numbers(3, 3))
    across = [axis for axis in range(3) if low[axis] == high[axis]]
    if len(across) != 1:
        raise command.error("a surface must be flat along exactly one axis")
    axis = across[0]
    ends = {"-": box.low[axis], "+": box.high[axis]}
    side = next((sign for sign, at in ends.items() if abs(low[axis] - at) < model.cell[axis] / 2), None)
    if side is None:
        raise command.error(f"it does not lie on a side of '{name}'")
    rest = [one for one in range(_Z if model.flat else 3) if one != axis]
    keys = {"side": quoted(f"{_LETTERS[axis]}{side}")}
    if any(low[one] > box.low[one] or high[one] < box.high[one] for one in rest):
        keys |= {"low": repr([low[one] for one in rest]), "high": repr([high[one] for one in rest])}
    return box, axis, side, keys


def _roughness(model: Model, command: Command) -> None:
    command.expect(_ROUGH, _ROUGH + 1)
    box, axis, side, keys = _side(model, command, command.words[11])
    if model.flat and axis == _Z:
        model.findings.note(f"{command.place}: left out: it lies in the plane of the domain")
        return
    if (axis, side) in box.surfaces:
        raise command.error("a command above already gives that side a rough surface")
    weights = command.numbers(7, 2)
    lowest, highest = command.numbers(9, 2)
    if lowest >= highest:
        raise command.error(f"its limits {lowest:g} and {highest:g} must ascend")
    keys |= {
        "lowest": repr(lowest),
        "highest": repr(highest),
        "dimension": repr(command.number(6)),
        "weights": repr(weights[: 1 if model.flat else 2]),
        "seed": str(_seed(model, command, _ROUGH)),
    }
    box.surfaces[axis, side] = keys
    box.write()


def _water(model: Model, command: Command) -> None:
    command.expect(8)
    box, axis, side, _ = _side(model, command, command.words[7])
    if (axis, side) not in box.surfaces:
        raise command.error("water needs a rough surface on that side: give #add_surface_roughness above")
    water_material(model, command)
    box.surfaces[axis, side] |= {"water": repr(command.number(6)), "water_material": quoted("water")}
    box.write()


def _geometry(model: Model, command: Command) -> None:
    """Reads an array from a file; its numbers select materials of a second file, in their order."""
    command.expect(_GEOMETRY, _GEOMETRY + 1)
    position = model.on_node(command.numbers(0, 3))
    data, materials = (command.path.parent / word for word in command.words[3:5])
    if materials.suffix == ".json":
        raise command.error(
            "materials in JSON are not supported: write them as #material commands, as in versions 2 and 3"
        )
    names = []
    for one in plain(read(materials), materials, model.findings):
        if one.name not in ("material", "add_dispersion_debye", "add_dispersion_lorentz", "add_dispersion_drude"):
            continue
        if not one.words:
            one.expect(5)
        # Materials of another file may have the same names.
        own = f"{Path(materials).stem}.{one.words[-1]}"
        if one.name == "material":
            names.append(own)
            if own in model.materials:
                continue
        {**GENERAL, **DISPERSION}[one.name](model, replace(one, words=[*one.words[:-1], own]))
    if not names:
        raise command.error(f"{materials} has no #material command")
    keys = {"position": model.point(position), "file": quoted(str(Path(data).absolute()))}
    model.objects.append(Object(command, "voxels", keys, names, command.words[_GEOMETRY:] == ["y"]))


READERS: dict[str, Reader] = {
    "material_list": _list,
    "fractal_box": _fractal_box,
    "add_surface_roughness": _roughness,
    "add_surface_water": _water,
    "geometry_objects_read": _geometry,
}
