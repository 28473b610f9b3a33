"""Materials per component in three dimensions: boundaries of media, against known solutions and symmetry."""

from collections.abc import Callable

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import Fdtd

LIGHT = 299792458.0
PERFECT = 1e10  # S/m

Medium = tuple[float, float]  # permittivity and permeability


def root_between(function: Callable[[float], float], low: float, high: float) -> float:
    """The root by bisection; the function has one in the interval."""
    sign = function(low) > 0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) == sign else (low, middle)
    return low


class HalfFilled:
    """The lowest mode of a metal box with two media that meet in a plane across an axis.

    Modes that have no E along the normal of that plane ("lse", with f = sin) or no H ("lsm", with f = cos): see
    Collin, Field Theory of Guided Waves (2nd edition), chapter 6. With k the wave number along the normal in each
    medium, tan(k1 d1) mu1 / k1 + tan(k2 d2) mu2 / k2 = 0, or tan(k1 d1) k1 / eps1 + tan(k2 d2) k2 / eps2 = 0.
    """

    cells = np.array([10, 6, 8])  # along the normal and the two following axes; the media meet after the first 4
    first = 4

    def __init__(self, kind: str, media: tuple[Medium, Medium], spacing: float) -> None:
        self.kind, self.media = kind, media
        self.depths = np.array([self.first, self.cells[0] - self.first]) * spacing
        self.across = np.pi / (self.cells[1:] * spacing)
        floor = np.linalg.norm(self.across) * LIGHT
        slowest = np.sqrt(max(eps * mu for eps, mu in media))
        # The first zero above the frequency at which the slower medium begins to carry the wave.
        frequencies = np.linspace(1.0001 * floor / slowest, 3 * floor, 20_000)
        values = np.array([self._mismatch(one) for one in frequencies])
        at = np.flatnonzero(values[:-1] * values[1:] < 0)[0]
        self.frequency = root_between(self._mismatch, frequencies[at], frequencies[at + 1])  # in radians per second

    def _along(self, frequency: float) -> list[complex]:
        squares = [frequency**2 * eps * mu / LIGHT**2 - np.sum(self.across**2) for eps, mu in self.media]
        return [np.sqrt(complex(square)) for square in squares]

    def _mismatch(self, frequency: float) -> float:
        k1, k2 = self._along(frequency)
        (eps1, mu1), (eps2, mu2) = self.media
        first, second = k1 * self.depths[0], k2 * self.depths[1]
        if self.kind == "lse":  # without the poles of the tangents
            both = np.sin(first) * np.cos(second) * mu1 / k1 + np.cos(first) * np.sin(second) * mu2 / k2
        else:
            both = np.sin(first) * np.cos(second) * k1 / eps1 + np.cos(first) * np.sin(second) * k2 / eps2
        return float(np.real(both))

    def normal(self, places: np.ndarray, *, derived: bool) -> np.ndarray:
        """f at places along the normal, or f' / permittivity: both are continuous."""
        k1, k2 = self._along(self.frequency)
        length = np.sum(self.depths)
        low = places <= self.depths[0]
        if self.kind == "lse":  # divided by k, which is imaginary where a wave fades
            height = np.sin(k1 * self.depths[0]) / k1 / np.sin(k2 * self.depths[1])
            return np.real(np.where(low, np.sin(k1 * places) / k1, height * np.sin(k2 * (length - places))))
        height = np.cos(k1 * self.depths[0]) / np.cos(k2 * self.depths[1])
        if not derived:
            return np.real(np.where(low, np.cos(k1 * places), height * np.cos(k2 * (length - places))))
        (eps1, _), (eps2, _) = self.media
        return np.real(
            np.where(low, -k1 * np.sin(k1 * places) / eps1, height * k2 * np.sin(k2 * (length - places)) / eps2)
        )

    def electric(self, along: int, places: list[np.ndarray]) -> np.ndarray:
        """The component of E along the normal (0) or one of the two following axes, at places along the three."""
        x, y, z = places
        ky, kz = self.across
        if self.kind == "lse":
            f = self.normal(x, derived=False)
            return [
                0 * x * y * z,
                -kz * f * np.cos(ky * y) * np.sin(kz * z),
                ky * f * np.sin(ky * y) * np.cos(kz * z),
            ][along]
        if along == 0:
            eps = np.where(x <= self.depths[0], self.media[0][0], self.media[1][0])
            return (ky**2 + kz**2) * self.normal(x, derived=False) / eps * np.sin(ky * y) * np.sin(kz * z)
        sloped = self.normal(x, derived=True)
        if along == 1:
            return sloped * ky * np.cos(ky * y) * np.sin(kz * z)
        return sloped * kz * np.sin(ky * y) * np.cos(kz * z)


def frequency_error(kind: str, media: tuple[Medium, Medium], axis: int, finer: int) -> float:
    """Relative error of the frequency of the mode that the fields start with."""
    spacing = 1e-3 / finer
    mode = HalfFilled(kind, media, 1e-3)
    turn = [axis, (axis + 1) % 3, (axis + 2) % 3]  # the domain's axes for those of the mode
    counts = mode.cells * finer
    shape = tuple(int(counts[turn.index(one)]) for one in range(3))
    run = Fdtd(shape, spacing, cpml=0, precision="double")
    place = np.arange(shape[axis]) < mode.first * finer
    low = np.broadcast_to(place.reshape([-1 if one == axis else 1 for one in range(3)]), shape)
    run.set_materials(
        *(np.where(low, media[0][i], media[1][i]) for i in (0,)), 0, np.where(low, media[0][1], media[1][1])
    )
    for along in range(3):
        places = []
        for one in range(3):
            half = 0.5 if one == along else 0.0
            line = (np.arange(shape[turn[one]]) + half) * spacing
            places.append(line.reshape([-1 if other == turn[one] else 1 for other in range(3)]))
        run.set_field("e" + "xyz"[turn[along]], np.broadcast_to(mode.electric(along, places), shape))
    cell = [0, 0, 0]  # where the media meet
    for one, at in zip(turn, (mode.first, 3, 3), strict=True):
        cell[one] = at * finer
    receiver = run.add_receiver("e" + "xyz"[turn[1 if kind == "lsm" else 2]], cell)
    run.step(200 * finer)
    trace = run.trace(receiver)
    # A pure oscillation satisfies trace[n - 1] + trace[n + 1] = 2 cos(frequency dt) trace[n].
    cosine = np.sum(trace[1:-1] * (trace[:-2] + trace[2:])) / (2 * np.sum(trace[1:-1] ** 2))
    return float(np.arccos(cosine) / run.dt / mode.frequency - 1)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    ("kind", "media"),
    [
        ("lse", ((1, 1), (5, 1))),  # E lies in the plane between the media
        ("lsm", ((1, 1), (5, 1))),  # E lies across it
        ("lsm", ((5, 1), (1, 1))),
        ("lse", ((1, 4), (1, 1))),  # H lies across it
        ("lse", ((1, 1), (1, 4))),
        ("lse", ((2, 3), (5, 1))),
    ],
)
def test_where_media_meet_errors_fall_with_the_square_of_the_spacing(
    kind: str, media: tuple[Medium, Medium], axis: int
):
    coarse, fine = (abs(frequency_error(kind, media, axis, finer)) for finer in (2, 4))
    assert fine < 6e-4
    assert np.log2(coarse / fine) > 1.9


def pulse(steps: int, width: float = 6) -> np.ndarray:
    late = np.arange(steps) / width - 4
    return -late * np.exp(-(late**2) / 2)


def mirrored(field: np.ndarray, name: str, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A field and its mirror image across the middle of an axis, where both have values."""
    at_nodes = (name[0] == "e") != (name[1] == "xyz"[axis])
    sign = 1 if at_nodes else -1
    inner = np.delete(field, 0, axis) if at_nodes else field
    return inner, sign * np.flip(inner, axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("cpml", [0, 5])
@pytest.mark.parametrize("material", [(6.0, 0.02, 1.0), (1.0, PERFECT, 1.0), (2.0, 0.0, 5.0)], ids=str)
def test_a_scene_that_is_its_own_mirror_image_has_mirrored_fields(
    material: tuple[float, float, float], cpml: int, axis: int
):
    shape = (24, 20, 22)
    run = Fdtd(shape, 1e-3, cpml=cpml, precision="double")
    inside = np.zeros(shape, bool)
    inside[8:16, 6:14, 7:15] = True
    inside[8:16, 6:14, 14][(np.indices((8, 8)).sum(0) % 3) == 0] = False  # asymmetric across z only
    if axis == 2:
        inside[8:16, 6:14, 7:15] = (np.indices((8, 8)).sum(0) % 3 > 0)[:, :, None]
    else:
        inside &= np.flip(inside, axis)
    run.set_materials(*(np.where(inside, its, other) for its, other in zip(material, (1, 0, 1), strict=True)))
    source = [5, 4, 5]
    source[axis] = shape[axis] // 2
    run.add_source("ex" if axis == 2 else "ez", source, pulse(60))
    run.step(150)
    for name in run.fields:
        field, image = mirrored(run.field(name), name, axis)
        np.testing.assert_allclose(field, image, rtol=0, atol=1e-13 * np.max(np.abs(field)), err_msg=name)
        assert np.max(np.abs(field)) > 0


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_box_of_metal_is_as_large_as_the_cells_within(precision: str):
    """Its modes are those between the walls of a domain of the same size."""
    inner = (12, 9, 10)
    traces = []
    for thick in (0, 3):
        run = Fdtd([count + 2 * thick for count in inner], 0.01, cpml=0, precision=precision)
        metal = np.ones(run.shape, bool)
        metal[tuple(slice(thick, thick + count) for count in inner)] = False
        run.set_materials(1, np.where(metal, PERFECT, 0))
        run.add_source("ey", [thick + at for at in (5, 3, 4)], pulse(60))
        receivers = [run.add_receiver(name, [thick + at for at in (8, 6, 7)]) for name in run.fields]
        run.step(1500)
        traces.append(np.array([run.trace(receiver) for receiver in receivers]))
    limit = 2e-7 if precision == "double" else 2e-4
    for kind in (slice(0, 3), slice(3, 6)):  # E and H
        walls, metal_walls = (each[kind] for each in traces)
        np.testing.assert_allclose(metal_walls, walls, rtol=0, atol=limit * np.max(np.abs(walls)))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("above", [False, True])
def test_steel_reflects_as_a_perfect_conductor_from_every_side(axis: int, above: bool):
    """Includes steel with a permeability of 1000: E changes its sign."""
    turn = [axis, (axis + 1) % 3, (axis + 2) % 3]

    def reflected(conductivity: float, permeability: float) -> np.ndarray:
        traces = []
        for there in (True, False):
            shape = [0, 0, 0]
            for one, count in zip(turn, (36, 30, 30), strict=True):
                shape[one] = count
            run = Fdtd(shape, 2e-3, cpml=8, precision="double")
            plate = np.zeros(shape, bool)
            plate[tuple(slice(15, 21) if one == axis else slice(None) for one in range(3))] = there
            run.set_materials(1, np.where(plate, conductivity, 0), np.where(plate, permeability, 1))
            cell = [15, 15, 15]
            cell[axis] = 26 if above else 10
            run.add_source("e" + "xyz"[turn[1]], cell, pulse(120, 10))
            receiver = run.add_receiver("e" + "xyz"[turn[1]], [at + (one == turn[2]) for one, at in enumerate(cell)])
            run.step(120)
            traces.append(run.trace(receiver))
        return np.asarray(traces[0] - traces[1])

    perfect, steel = reflected(PERFECT, 1), reflected(1.4e6, 1000)
    assert np.max(np.abs(perfect)) > 0
    np.testing.assert_allclose(steel, perfect, rtol=0, atol=5e-3 * np.max(np.abs(perfect)))


def test_averages_change_nothing_in_one_medium_and_may_be_switched_off():
    half = np.where(np.arange(20)[:, None, None] < 10, 1.0, 9.0) * np.ones((20, 14, 12))
    for permittivity, changes in ((np.full(half.shape, 3.7), False), (half, True)):
        fields = []
        for averaging in (True, False):
            run = Fdtd(half.shape, 1e-3, cpml=0, averaging=averaging, precision="double")
            run.set_materials(permittivity, 0.1, 1.3)
            run.add_source("ez", (8, 7, 6), pulse(60))
            run.step(50)
            fields.append(run.field("ez"))
        differ = np.max(np.abs(fields[0] - fields[1])) / np.max(np.abs(fields[0]))
        assert differ > 1e-3 if changes else differ == 0


@pytest.mark.parametrize("precision", ["single", "double"])
def test_parts_have_the_same_bits_where_materials_meet(precision: str):
    """The runs of a row with equal cells begin at different places in each part."""
    shape = (75, 14, 18)
    x, y, z = np.indices(shape)
    ball = (x - 31) ** 2 + (y - 7) ** 2 + (z - 9) ** 2 < 36
    materials = np.where(ball, 4.0, 1 + (z < 5)), np.where(x + y > 70, PERFECT, 0.01 * ball), np.where(x < 3, 7.0, 1.0)

    def fields(devices: int, **options: object) -> dict[str, np.ndarray]:
        run = Fdtd(shape, 1e-3, cpml=4, precision=precision, devices=["cpu:0"] * devices, **options)
        run.set_materials(*materials)
        run.add_source("ey", (40, 7, 9), pulse(40))
        run.step(40)
        return {name: run.field(name) for name in run.fields}

    whole = fields(1)
    for options in ({"devices": 2, "cut": (2, 1, 1)}, {"devices": 4, "cut": (2, 2, 1), "redundant": 2}, {"devices": 4}):
        for name, values in fields(**options).items():
            np.testing.assert_array_equal(values, whole[name], err_msg=f"{name} {options}")


def test_materials_may_change_between_steps():
    """The result is as if the new materials had been there from the start, before there was a field."""
    shape = (40, 10, 12)
    odd = np.random.default_rng(3).random(shape)
    last = []
    for changes in ((odd,), (np.where(odd > 0.5, 2.0, 1.0), 5 * odd, 1.0, odd)):
        run = Fdtd(shape, 1e-3, cpml=0, devices=["cpu:0", "cpu:0"])
        for permittivity in changes:
            run.set_materials(1 + np.asarray(permittivity), 0.1 * np.asarray(permittivity))
            if permittivity is not changes[-1]:
                run.step(2)
        run.set_field("hy", odd)
        run.step(10)
        last.append(run.field("ez"))
    np.testing.assert_array_equal(*last)


def test_as_many_combinations_as_cells():
    """If every cell has a different medium, the table is as long as the domain."""
    shape = (20, 18, 16)
    random = np.random.default_rng(5)
    run = Fdtd(shape, 1e-3, cpml=0, precision="double")
    run.set_materials(1 + random.random(shape), random.random(shape), 1 + random.random(shape))
    run.add_source("ez", (10, 9, 8), pulse(40))
    run.step(100)
    run.check_finite()
    with pytest.raises(UsageError, match="permittivity is inf in cell"):
        run.set_materials(np.where(random.random(shape) > 0.5, np.inf, 1))
