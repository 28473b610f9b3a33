"""The permittivity of water and of Peplinski's soils, as Debye media."""

from dataclasses import dataclass

# Pure water at 25 degrees Celsius (Stogryn, IEEE Transactions on Microwave Theory and Techniques 19, 1971).
_CELSIUS = 25.0
WATER_AT_INFINITY = 4.9
WATER_AT_ZERO = 88.045 - 0.4147 * _CELSIUS + 6.295e-4 * _CELSIUS**2 + 1.075e-5 * _CELSIUS**3
_TURN = 6.283185307179586
WATER_RELAXES = (1.1109e-10 - 3.824e-12 * _CELSIUS + 6.938e-14 * _CELSIUS**2 - 5.096e-16 * _CELSIUS**3) / _TURN  # s


@dataclass(frozen=True)
class Soil:
    """Properties of a soil, and its minimum and maximum volume fraction of water."""

    sand: float
    clay: float
    bulk_density: float  # g/cm^3
    sand_density: float  # g/cm^3
    water: tuple[float, float]


def debye_of(soil: Soil, water: float) -> tuple[float, float, float, float]:
    """The Debye medium of a soil with a given volume fraction of water.

    Peplinski, Ulaby and Dobson (IEEE Transactions on Geoscience and Remote Sensing 33, 1995), 0.3 to 1.3 GHz: the real
    part is exact at 1.3 GHz, and the pole is that of water, weighted by the share that their imaginary part gives to
    it. The coefficient of sand in the conductivity is 0.411, as in gprMax (0.4111 in the paper).

    Returns:
        Permittivity at infinite frequency, conductivity in S/m, difference of the pole, its relaxation time in s.
    """
    shape = 0.65
    of_solid = (1.01 + 0.44 * soil.sand_density) ** 2 - 0.062
    power = 1.2748 - 0.519 * soil.sand - 0.152 * soil.clay
    power_of_loss = 1.33797 - 0.603 * soil.sand - 0.166 * soil.clay
    turn = _TURN * 1.3e9 * WATER_RELAXES
    of_water = WATER_AT_INFINITY + (WATER_AT_ZERO - WATER_AT_INFINITY) / (1 + turn**2)
    solid = soil.bulk_density / soil.sand_density
    real = 1.15 * (1 + solid * (of_solid**shape - 1) + water**power * of_water**shape - water) ** (1 / shape) - 0.68
    difference = water ** (power_of_loss / shape) * (WATER_AT_ZERO - WATER_AT_INFINITY)
    conducts = 0.0467 + 0.2204 * soil.bulk_density - 0.411 * soil.sand + 0.6614 * soil.clay
    conductivity = water ** (power_of_loss / shape - 1) * conducts * (1 - solid)
    return real - difference, conductivity, difference, WATER_RELAXES
