"""Reads commands of dispersive materials, and of soils, whose mixtures become Debye media."""

from collections.abc import Callable

from headrace.errors import UsageError
from headrace.grid.dispersion import Debye, Drude, Lorentz, Pole, medium_of
from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Model, quoted
from headrace.grid.gprmax.soil import WATER_AT_INFINITY, WATER_AT_ZERO, WATER_RELAXES, Soil, debye_of

_KINDS = {
    "add_dispersion_debye": ("debye", ("difference", "relaxation_time")),
    "add_dispersion_lorentz": ("lorentz", ("difference", "frequency", "damping")),
    "add_dispersion_drude": ("drude", ("frequency", "rate")),
}
_POLES: dict[str, Callable[..., Pole]] = {"debye": Debye, "lorentz": Lorentz, "drude": Drude}
_SOIL = 7  # number of parameters


def poles_text(kind: str, keys: tuple[str, ...], values: list[float]) -> str:
    """The tables of poles, from their numbers in sequence. gprMax does not average edges of dispersive materials."""
    tables = []
    for first in range(0, len(values), len(keys)):
        pairs = zip(keys, values[first : first + len(keys)], strict=True)
        tables.append(
            "\n".join(
                ["[[materials.poles]]", f"type = {quoted(kind)}", *(f"{key} = {value!r}" for key, value in pairs), ""]
            )
        )
    return "\n".join(["averaging = false\n", *tables])


def debye_text(name: str, permittivity: float, conductivity: float, difference: float, relaxation_time: float) -> str:
    """The table of a material with one Debye pole."""
    return (
        f"[[materials]]\nid = {quoted(name)}\npermittivity = {permittivity!r}\nconductivity = {conductivity!r}\n"
        + poles_text("debye", ("difference", "relaxation_time"), [difference, relaxation_time])
    )


def _dispersion(model: Model, command: Command) -> None:
    """Reads the poles of a material. As in gprMax, a second such command replaces the first."""
    kind, keys = _KINDS[command.name]
    if not command.words:
        command.expect(1)
    count = command.whole(0)
    if not count:
        raise command.error(f"'{command.words[0]}' is not a number of poles: give a whole number of 1 or more")
    command.expect(2 + count * len(keys))
    values, name = command.numbers(1, count * len(keys)), command.words[-1]
    if name not in model.materials:
        raise command.error(f"there is no material '{name}' above")
    for first in range(0, len(values), len(keys)):
        for key, value in zip(keys, values[first : first + len(keys)], strict=True):
            if key != "difference" and value <= 0:
                raise command.error(f"material '{name}': a {key.replace('_', ' ')} of {value:g} is not above 0")
    if name in model.dispersive:
        line = model.dispersive[name].line
        model.findings.note(f"{command.place}: replaces the poles that line {line} gives to '{name}', as in gprMax")
    model.dispersive[name] = command
    model.poles[name] = poles_text(kind, keys, values)
    made = _POLES[kind]
    model.media[name] = tuple(made(*values[first : first + len(keys)]) for first in range(0, len(values), len(keys)))


def _soil(model: Model, command: Command) -> None:
    """Reads a mixture; a fractal box makes as many materials from it as it needs."""
    command.expect(_SOIL)
    sand, clay, bulk, density, *water = command.numbers(0, _SOIL - 1)
    for value, what in ((sand, "sand fraction"), (clay, "clay fraction")):
        if not 0 <= value <= 1:
            raise command.error(f"a {what} of {value:g} is not between 0 and 1")
    if not 0 < bulk <= density:
        raise command.error(
            f"a bulk density of {bulk:g} is out of range: it must be above 0 and at most that of sand, {density:g}"
        )
    if not 0 < water[0] <= water[1] <= 1:
        raise command.error(f"water fractions {water[0]:g} and {water[1]:g} must ascend between 0 and 1")
    model.mixtures[command.words[-1]] = (command, [])
    model.soils[command.words[-1]] = Soil(sand, clay, bulk, density, (water[0], water[1]))


def soil_materials(model: Model, command: Command, mixture: str, count: int) -> list[str]:
    """Adds `count` materials of a soil to the model, from dry to wet, and returns their names."""
    soil = model.soils[mixture]
    low, high = soil.water
    names = []
    for number in range(count):
        water = low + (high - low) * (number + 0.5) / count
        permittivity, conductivity, difference, relaxes = debye_of(soil, water)
        if conductivity < 0 or permittivity <= 0:
            raise command.error(f"'{mixture}' with a water fraction of {water:.3g} has no physical permittivity")
        name = f"{mixture}.{count}.{number + 1}"
        if name not in model.materials:
            called = model.name_for("material", name)
            model.materials[name] = debye_text(called, permittivity, conductivity, difference, relaxes)
            model.dispersive[name] = model.mixtures[mixture][0]
            model.media[name] = (Debye(difference, relaxes),)
        names.append(name)
    return names


def water_material(model: Model, command: Command) -> None:
    """Makes the material `water`, unless the file defines one."""
    if "water" not in model.materials:
        called = model.name_for("material", "water")
        difference = WATER_AT_ZERO - WATER_AT_INFINITY
        model.materials["water"] = debye_text(called, WATER_AT_INFINITY, 0.0, difference, WATER_RELAXES)
        model.dispersive["water"] = command
        model.media["water"] = (Debye(difference, WATER_RELAXES),)


def check(model: Model, material: str) -> None:
    """Refuses a material with poles that the model's time step cannot handle, naming the line of its poles."""
    if model.spacing is None or material not in model.media:
        return
    command = model.dispersive[material]
    try:
        problem = medium_of(model.media[material]).problem(model.step)
    except UsageError as error:
        problem = str(error)
    if problem:
        raise command.error(f"material '{material}': {problem}")


READERS: dict[str, Reader] = {**dict.fromkeys(_KINDS, _dispersion), "soil_peplinski": _soil}
