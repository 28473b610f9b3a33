"""Commands of dispersive materials, and Peplinski's soils, whose mixtures are Debye media."""

from dataclasses import dataclass

from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Model, quoted

_KINDS = {
    "add_dispersion_debye": ("debye", ("difference", "relaxation_time")),
    "add_dispersion_lorentz": ("lorentz", ("difference", "frequency", "damping")),
    "add_dispersion_drude": ("drude", ("frequency", "rate")),
}
_SOIL = 7  # parameters

# Pure water at 25 degrees Celsius (Stogryn, IEEE Transactions on Microwave Theory and Techniques 19, 1971).
_CELSIUS = 25.0
_WATER_AT_INFINITY = 4.9
_WATER_AT_ZERO = 88.045 - 0.4147 * _CELSIUS + 6.295e-4 * _CELSIUS**2 + 1.075e-5 * _CELSIUS**3
_TURN = 6.283185307179586
_WATER_RELAXES = (
    1.1109e-10 - 3.824e-12 * _CELSIUS + 6.938e-14 * _CELSIUS**2 - 5.096e-16 * _CELSIUS**3
) / _TURN  # s


@dataclass(frozen=True)
class Soil:
    """The measures of a soil, and the volume fraction of water that it has at least and at most."""

    sand: float
    clay: float
    bulk_density: float  # g/cm^3
    sand_density: float  # g/cm^3
    water: tuple[float, float]


def poles_text(kind: str, keys: tuple[str, ...], values: list[float]) -> str:
    """The tables of poles, whose numbers follow each other. gprMax averages no edges of dispersive materials."""
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
    """Poles of a material. As in gprMax, a second such command replaces the first."""
    kind, keys = _KINDS[command.name]
    if not command.words:
        command.expect(1)
    count = command.whole(0)
    if not count:
        raise command.error(f"'{command.words[0]}' is not a number of poles, 1 or more")
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


def _soil(model: Model, command: Command) -> None:
    """A mixture whose materials a fractal box makes, as many as it asks for."""
    command.expect(_SOIL)
    sand, clay, bulk, density, *water = command.numbers(0, _SOIL - 1)
    for value, what in ((sand, "sand fraction"), (clay, "clay fraction")):
        if not 0 <= value <= 1:
            raise command.error(f"a {what} of {value:g} is not from 0 to 1")
    if not 0 < bulk <= density:
        raise command.error(f"a bulk density of {bulk:g} is not above 0 and at most that of sand, {density:g}")
    if not 0 < water[0] <= water[1] <= 1:
        raise command.error(f"water fractions {water[0]:g} and {water[1]:g} do not ascend between 0 and 1")
    model.mixtures[command.words[-1]] = (command, [])
    model.soils[command.words[-1]] = Soil(sand, clay, bulk, density, (water[0], water[1]))


def debye_of(soil: Soil, water: float) -> tuple[float, float, float, float]:
    """The Debye medium that a soil with a volume fraction of water is.

    Peplinski, Ulaby and Dobson (IEEE Transactions on Geoscience and Remote Sensing 33, 1995), 0.3 to 1.3 GHz: the real
    part is right at 1.3 GHz, and the pole is that of water with the share that their imaginary part gives to it. The
    coefficient of sand in the conductivity is 0.411, as gprMax has it (0.4111 in the paper).

    Returns:
        Permittivity at infinite frequency, conductivity in S/m, difference of the pole, its relaxation time in s.
    """
    shape = 0.65
    of_solid = (1.01 + 0.44 * soil.sand_density) ** 2 - 0.062
    power = 1.2748 - 0.519 * soil.sand - 0.152 * soil.clay
    power_of_loss = 1.33797 - 0.603 * soil.sand - 0.166 * soil.clay
    turn = _TURN * 1.3e9 * _WATER_RELAXES
    of_water = _WATER_AT_INFINITY + (_WATER_AT_ZERO - _WATER_AT_INFINITY) / (1 + turn**2)
    solid = soil.bulk_density / soil.sand_density
    real = 1.15 * (1 + solid * (of_solid**shape - 1) + water**power * of_water**shape - water) ** (1 / shape) - 0.68
    difference = water ** (power_of_loss / shape) * (_WATER_AT_ZERO - _WATER_AT_INFINITY)
    conducts = 0.0467 + 0.2204 * soil.bulk_density - 0.411 * soil.sand + 0.6614 * soil.clay
    conductivity = water ** (power_of_loss / shape - 1) * conducts * (1 - solid)
    return real - difference, conductivity, difference, _WATER_RELAXES


def soil_materials(model: Model, command: Command, mixture: str, count: int) -> list[str]:
    """Names of so many materials of a soil, from dry to wet, which the model is given."""
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
        names.append(name)
    return names


def water_material(model: Model, command: Command) -> None:
    """Makes the material `water`, unless the file has one."""
    if "water" not in model.materials:
        called = model.name_for("material", "water")
        difference = _WATER_AT_ZERO - _WATER_AT_INFINITY
        model.materials["water"] = debye_text(called, _WATER_AT_INFINITY, 0.0, difference, _WATER_RELAXES)
        model.dispersive["water"] = command


READERS: dict[str, Reader] = {**dict.fromkeys(_KINDS, _dispersion), "soil_peplinski": _soil}
