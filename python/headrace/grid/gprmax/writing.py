"""Writes a model as the text of a scene, and finds what prevents that."""

import json
from pathlib import Path

from headrace.grid.gprmax import dispersion, layers
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Dipole, Model, Object, Probe, quoted
from headrace.grid.solver.keys import nearest
from headrace.grid.solver.scene import fields_of, nearest_node
from headrace.grid.spacing import plain

_BUILT_IN = ("pec", "free_space")
_THIN = ("plate", "wire")
_CELL_BY_CELL = ("fractal_box", "voxels")


def scene_text(model: Model, path: Path) -> str:
    """As much of the text as can be written; all problems go to the findings of the model."""
    parts = [
        f"# Made from {path.name} by headrace grid convert.\ntitle = {quoted(model.title or path.stem)}\n",
        _domain(model),
        _time(model),
        *(text + model.poles.get(name, "") for name, text in model.materials.items() if text),
    ]
    makers = [
        *((_object, one) for one in model.objects),
        *((_source, one) for one in model.sources),
        *((_receiver, one) for one in model.receivers),
    ]
    for maker, one in makers:
        with model.findings.noting():
            parts.append(maker(model, one))  # type: ignore[operator] # each has what it makes
    with model.findings.noting():
        parts.append(_scan(model))
    _conventions(model, path)
    return "\n".join(part for part in parts if part)


def _domain(model: Model) -> str:
    if model.domain is None or model.spacing is None:
        return ""
    command, size = model.domain
    shape, findings = model.shape, model.findings
    with findings.noting():
        if 0 in shape:
            raise command.error(f"{size[shape.index(0)]:g} m is less than a cell")
        for axis in range(2):
            if shape[axis] == 1:
                raise command.error(
                    f"one cell along {'xy'[axis]}: a scene of two dimensions is one cell thick along z only"
                )
    exact = [count * one for count, one in zip(shape, model.cell, strict=True)]
    if any(abs(one - other) > 1e-6 * cell for one, other, cell in zip(exact, size, model.cell, strict=True)):
        findings.note(f"{command.place}: rounded to {' x '.join(map(str, shape))} whole cells, as gprMax does")
    text = ""
    with findings.noting():
        text = layers.text_of(model, shape)
    return f"[domain]\nsize = {model.point(exact)}\nspacing = {plain(model.cell_in_scene)!r}\n{text}"


def _time(model: Model) -> str:
    if model.window is None:
        return ""
    courant = 1.0 if model.courant is None else model.courant
    return f"[time]\n{model.window[1]}\ncourant = {courant!r}\n"


def _keys(header: str, keys: dict[str, str]) -> str:
    return "\n".join([header, *(f"{key} = {value}" for key, value in keys.items()), ""])


def _named(model: Model, one: Object, material: str) -> str:
    """The scene's name of a material."""
    if material not in model.materials and material not in _BUILT_IN and not model.untold:
        raise one.command.error(f"there is no material '{material}'{nearest(material, [*model.materials, *_BUILT_IN])}")
    dispersion.check(model, material)
    text = model.materials.get(material, "")
    return str(json.loads(text.splitlines()[1].removeprefix("id = "))) if text else material


def _object(model: Model, one: Object) -> str:
    named = [_named(model, one, material) for material in one.materials]
    many = len(named) > 1 or one.kind == "voxels"
    keys = one.keys | {"material": json.dumps(named if many else named[0], ensure_ascii=False)}
    if not one.smoothed and one.kind not in _THIN and (len(named) == 1 or one.kind in _CELL_BY_CELL):
        keys["averaging"] = "false"
    # Warnings about the scene then name the line of the input file.
    name = model.name_for("object", f"{one.command.name}-line{one.command.line}")
    return _keys("[[objects]]", {"id": quoted(name), "type": quoted(one.kind), **keys})


def _inside(model: Model, command: Command, position: list[float]) -> None:
    """Refuses a position outside of the domain."""
    if not model.shape:
        return
    nodes = nearest_node(tuple(position), model.cell)
    for axis, (node, count) in enumerate(zip(nodes, model.shape, strict=True)):
        if model.flat and axis == 2:  # noqa: PLR2004
            continue
        if not 0 <= node < count:
            raise command.error(
                f"{position[axis]:g} m along {'xyz'[axis]} is node {node}, but the domain has nodes 0 to {count - 1} "
                "inside its walls"
            )


def _source(model: Model, one: Dipole) -> str:
    if one.waveform not in model.waveforms:
        if model.untold:
            return ""
        raise one.command.error(f"there is no waveform '{one.waveform}'{nearest(one.waveform, model.waveforms)}")
    if model.flat and one.field not in fields_of(2):
        kind = "a magnetic dipole across z" if one.field.startswith("h") else "a source along z"
        raise one.command.error(f"in two dimensions only {kind} is supported, not one along {one.field[1]}")
    _inside(model, one.command, one.position)
    keys = {"field": quoted(one.field), "position": model.point(one.position)}
    keys |= model.waveforms[one.waveform].keys
    # Cells of a plane are as thick in gprMax as the file says, and in a scene as their shortest edge.
    thick = model.cell[2] / min(model.cell[:2]) if model.flat else 1.0
    if one.field.startswith("h"):
        # gprMax's amplitude is the moment: a magnetic current times the length of a cell.
        keys["amplitude"] = repr(float(keys.get("amplitude", "1")) / (model.cell["xyz".index(one.field[1])] * thick))
    if one.resistance is not None:
        keys["resistance"] = repr(one.resistance / thick)
        if thick != 1:  # the current of the voltage through its resistance stays the same
            keys["amplitude"] = repr(float(keys.get("amplitude", "1")) / thick)
    if one.line:
        keys["line"] = "true"
    if one.start:
        keys["delay"] = repr(one.start)
    if one.stop is not None:
        keys["stop"] = repr(one.stop)
    return _keys("[[sources]]", keys)


def _receiver(model: Model, one: Probe) -> str:
    _inside(model, one.command, one.position)
    known = fields_of(2 if model.flat else 3)
    fields = [name for name in one.fields if name in known]
    if len(fields) < len(one.fields):
        missing = ", ".join(name for name in one.fields if name not in known)
        model.findings.note(
            f"{one.command.place}: {missing}: always 0 in two dimensions with the electric field along z"
        )
    name = model.name_for("receiver", one.name or "rx1")
    if not one.name:
        name = _numbered(model, name)
    keys = {"id": quoted(name), "position": model.point(one.position), "fields": json.dumps(fields or list(known))}
    return _keys("[[receivers]]", keys)


def _numbered(model: Model, name: str) -> str:
    """Names receivers without a name rx1, rx2 and so on."""
    if name == "rx1":
        return name
    model.names["receiver"].discard(name)
    number = 2
    while f"rx{number}" in model.names["receiver"]:
        number += 1
    model.names["receiver"].add(f"rx{number}")
    return f"rx{number}"


def _scan(model: Model) -> str:
    """The scan, if sources and receivers move alike and the number of runs is known."""
    if not model.steps:
        return ""
    command = next(iter(model.steps.values()))[0]
    if model.count is None or model.count < 2:  # noqa: PLR2004
        model.findings.note(f"{command.place}: no [scan] is made: give --count, as gprMax's -n")
        return ""
    sources, receivers = (model.steps.get(name, (command, [0.0] * 3)) for name in ("src_steps", "rx_steps"))
    if nearest_node(tuple(sources[1]), model.cell) != nearest_node(tuple(receivers[1]), model.cell):
        raise command.error("sources and receivers move by different steps, which a scan does not support")
    return _keys("[scan]", {"step": model.point(sources[1]), "count": str(model.count)})


def _conventions(model: Model, path: Path) -> None:
    """Notes the differences from gprMax's computation."""
    note = model.findings.note
    rigid = [one for one in model.objects if not one.smoothed and set(one.materials) & model.magnetic]
    if rigid:
        here = "that of its cell" if model.flat else "the mean of the two cells that share its face"
        note(
            f"{rigid[0].command.place}: without smoothing, gprMax gives components of H its permeability; here "
            f"they take {here}"
        )
    note(
        f"{path}: traces begin after the first step, but gprMax's begin at time 0, when the fields are 0; "
        "headrace grid export adds that sample"
    )
