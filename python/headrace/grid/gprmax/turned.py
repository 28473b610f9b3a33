"""Rotates the axes of all commands of two-dimensional models across x or y, because scenes are across z only."""

from collections.abc import Iterator

from headrace.grid.gprmax.lines import Command, Findings

_INFINITE = "inf"
_AXES = "xyz"
_Z = 2
# Positions of points, or of three numbers along the axes, in each command.
_POINTS: dict[str, tuple[int, ...]] = {
    "domain": (0,),
    "dx_dy_dz": (0,),
    "box": (0, 3),
    "plate": (0, 3),
    "edge": (0, 3),
    "cylinder": (0, 3),
    "cone": (0, 3),
    "sphere": (0,),
    "ellipsoid": (0, 3),
    "triangle": (0, 3, 6),
    "rx": (0,),
    "rx_array": (0, 3, 6),
    "hertzian_dipole": (1,),
    "magnetic_dipole": (1,),
    "voltage_source": (1,),
    "transmission_line": (1,),
    "src_steps": (0,),
    "rx_steps": (0,),
}
_POLARISED = ("hertzian_dipole", "magnetic_dipole", "voltage_source", "transmission_line")
# Parameters before the materials of an object.
_NUMBERS = {"box": 6, "cylinder": 7, "cone": 8, "sphere": 4, "ellipsoid": 6, "triangle": 10}
_SIX = 6


def translated(commands: list[Command], findings: Findings) -> Iterator[Command]:
    """The commands with the axis across the plane turned to z; unchanged if it is z already or there is no plane."""
    order = axes(commands)
    axis = order[_Z]
    if axis == _Z:
        yield from commands
        return
    names = ", ".join(f"{_AXES[old]} is now {_AXES[new]}" for new, old in enumerate(order))
    place = next(one.place for one in commands if one.name == "domain")
    findings.note(
        f"{place}: one cell along {_AXES[axis]}: axes are rotated, because the plane of a scene is across z: {names}"
    )
    for command in commands:
        with findings.noting():
            yield _turned(command, order)


def axes(commands: list[Command]) -> list[int]:
    """The old axes that become x, y and z: a rotation, not a reflection. The axis across a plane comes last."""
    axis = _flat_axis(commands)
    return [0, 1, 2] if axis is None else [(axis + 1) % 3, (axis + 2) % 3, axis]


def _flat_axis(commands: list[Command]) -> int | None:
    """The axis along which the domain is one cell thick."""
    domain = next((one for one in commands if one.name == "domain" and len(one.words) == 3), None)  # noqa: PLR2004
    cells = next((one for one in commands if one.name == "dx_dy_dz" and len(one.words) == 3), None)  # noqa: PLR2004
    if domain is None or cells is None:
        return None
    flat = []
    for axis, (size, cell) in enumerate(zip(domain.words, cells.words, strict=True)):
        try:
            alike = abs(float(size) - float(cell)) < 1e-6 * float(cell)
        except ValueError:
            continue
        if alike or size == _INFINITE:
            flat.append(axis)
    return flat[0] if len(flat) == 1 else None


def _turned(command: Command, order: list[int]) -> Command:
    words = list(command.words)
    for first in _POINTS.get(command.name, ()):
        if len(words) < first + 3:
            return command  # its reader reports the error
        words[first : first + 3] = [words[first + old] for old in order]
    if command.name in _POLARISED:
        words[0] = _letter(words[0], order)
    if command.name == "rx":
        words[4:] = [word[:-1] + _letter(word[-1], order) for word in words[4:]]
    if command.name == "pml_cells" and len(words) == _SIX:
        words = [words[first + old] for first in (0, 3) for old in order]
    if command.name == "cylindrical_sector":
        words = _sector(words, order)
    first = _NUMBERS.get(command.name, len(words))
    if len(words) >= first + 3:  # one material per axis
        words[first : first + 3] = [words[first + old] for old in order]
    return command.as_other(command.name, *words)


def _letter(word: str, order: list[int]) -> str:
    return _AXES[order.index(_AXES.index(word.lower()))] if word.lower() in tuple(_AXES) else word


def _sector(words: list[str], order: list[int]) -> list[str]:
    """A sector lies in the plane across its axis, whose two axes may swap: angles are then mirrored."""
    if len(words) < 8 or words[0].lower() not in tuple(_AXES):  # noqa: PLR2004
        return words
    axis = _AXES.index(words[0].lower())
    plane = [order.index(one) for one in range(3) if one != axis]
    turned = [_letter(words[0], order), *words[1:]]
    if plane[0] < plane[1]:
        return turned
    turned[1], turned[2] = words[2], words[1]
    start, sweep = float(words[6]), float(words[7])
    turned[6] = repr((90 - start - sweep) % 360)
    return turned
