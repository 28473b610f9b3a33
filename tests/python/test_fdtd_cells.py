"""Cells with edges of different lengths: known solutions, other axes, layers, restarts."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import Cpml, Debye, Fdtd, Lorentz

LIGHT = 299792458.0
PERMEABILITY = 1.25663706127e-6
PERMITTIVITY = 1 / (PERMEABILITY * LIGHT**2)


def pulse(steps: int, width: float) -> np.ndarray:
    late = np.arange(steps) / width - 5
    return -late * np.exp(-(late**2) / 2)


def mode(
    shape: tuple[int, ...], spacing: tuple[float, ...], numbers: tuple[int, ...], polarisation: str
) -> dict[str, np.ndarray]:
    """A mode of a closed box without charges on its nodes, as Yee's scheme has it."""
    half = [np.pi * number / (2 * count) for number, count in zip(numbers, shape, strict=True)]  # k d / 2
    slopes = np.array([np.sin(one) * 2 / length for one, length in zip(half, spacing, strict=True)])
    if len(shape) == 3:
        strength = np.cross(slopes, [0.3, -1.0, 0.7])
    else:
        strength = [0, 0, 1] if polarisation == "tm" else [slopes[1], -slopes[0], 0]
    fields = {}
    for along in np.flatnonzero(strength):
        values = np.array(strength[along])
        for axis, count in enumerate(shape):
            at = np.arange(count) + (0.5 if axis == along else 0)
            wave = (np.cos if axis == along else np.sin)(2 * half[axis] * at)
            values = np.multiply.outer(values, wave)
        fields["e" + "xyz"[along]] = values
    return fields


@pytest.mark.parametrize(
    ("shape", "spacing", "numbers", "polarisation"),
    [
        ((24, 18), (1e-3, 2e-3), (2, 3), "tm"),
        ((24, 18), (3e-3, 1e-3), (1, 2), "tm"),
        ((24, 18), (1e-3, 2e-3), (2, 3), "te"),
        ((24, 18), (3e-3, 1e-3), (1, 2), "te"),
        ((12, 10, 8), (1e-3, 2e-3, 0.7e-3), (1, 2, 1), "tm"),
        ((9, 12, 11), (2e-3, 1e-3, 2e-3), (2, 1, 3), "tm"),
    ],
)
def test_a_mode_of_a_box_oscillates_as_numerical_dispersion_says(
    shape: tuple[int, ...], spacing: tuple[float, ...], numbers: tuple[int, ...], polarisation: str
):
    """sin^2(omega dt / 2) = (c dt)^2 sum of (sin(k d / 2) / d)^2: Taflove and Hagness, chapter 4."""
    run = Fdtd(shape, spacing, cpml=0, precision="double", devices=["cpu:0"], polarisation=polarisation)
    half = [np.pi * number / (2 * count) for number, count in zip(numbers, shape, strict=True)]
    squares = sum((np.sin(one) / length) ** 2 for one, length in zip(half, spacing, strict=True))
    turn = 2 * np.arcsin(LIGHT * run.dt * np.sqrt(squares))
    fields = mode(shape, spacing, numbers, polarisation)
    for name, values in fields.items():
        run.set_field(name, values)
    strongest = max(np.abs(values).max() for values in fields.values())
    at = tuple(count // 3 for count in shape)
    receivers = {name: run.add_receiver(name, at) for name in fields}
    steps = 700
    run.step(steps)
    # H is 0 half a step before the first one.
    swing = np.cos((np.arange(1, steps + 1) + 0.5) * turn) / np.cos(turn / 2)
    for name, values in fields.items():
        np.testing.assert_allclose(run.field(name), values * swing[-1], atol=1e-10 * strongest)
        np.testing.assert_allclose(run.trace(receivers[name]), values[at] * swing, atol=1e-10 * strongest)


def test_the_largest_stable_step_is_that_of_the_three_spacings():
    spacing = (1e-3, 2e-3, 4e-3)
    limit = 1 / (LIGHT * np.sqrt(sum(1 / one**2 for one in spacing)))
    assert Fdtd((8, 8, 8), spacing, cpml=0).dt == pytest.approx(0.99 * limit, rel=1e-12)
    run = Fdtd((12, 12, 12), spacing, cpml=0, dt=limit * (1 - 1e-9), precision="double")
    run.add_source("ey", (6, 5, 4), np.random.default_rng(1).standard_normal(20))
    run.step(20_000)
    assert np.abs(run.field("ey")).max() < 50
    with pytest.raises(UsageError, match=r"not stable.* for a spacing of 0.001 x 0.002 x 0.004 m in 3 dimensions"):
        Fdtd((8, 8, 8), spacing, cpml=0, dt=limit * (1 + 1e-9))


def random_run(order: tuple[int, ...], **options: Any) -> tuple[Fdtd, int]:
    """A run whose axes are the first, second and third of `order`, among those of one scene."""
    shape, spacing = (15, 17, 13), (1e-3, 1.7e-3, 2.2e-3)
    random = np.random.default_rng(6)
    permittivity = 1 + 3 * random.random(shape)
    conductivity = 0.2 * random.random(shape)
    permeability = 1 + random.random(shape)
    sides = ((4, 3), (0, 4), (2, 2))
    run = Fdtd(
        [shape[axis] for axis in order],
        [spacing[axis] for axis in order],
        cpml=Cpml(4, sides=tuple(sides[axis] for axis in order)),
        **{"precision": "double", "devices": ["cpu:0"], **options},
    )
    run.set_materials(*(np.transpose(one, order) for one in (permittivity, conductivity, permeability)))
    source, receiver = (7, 8, 6), (9, 6, 8)
    samples = random.standard_normal(30)
    run.add_source("e" + "xyz"[order.index(1)], [source[axis] for axis in order], samples)
    return run, run.add_receiver("h" + "xyz"[order.index(0)], [receiver[axis] for axis in order])


@pytest.mark.parametrize("order", [one for one in permutations(range(3)) if one != (0, 1, 2)])
def test_other_names_of_the_axes_give_the_same_fields(order: tuple[int, ...]):
    (run, receiver), (other, same) = random_run((0, 1, 2)), random_run(order)
    # A reflection turns H around.
    mirrored = -1 if np.linalg.det(np.eye(3)[list(order)]) < 0 else 1
    run.step(120)
    other.step(120)
    for new, old in enumerate(order):
        for kind, sign in (("e", 1), ("h", mirrored)):
            here = np.transpose(run.field(kind + "xyz"[old]), order)
            assert np.abs(here).max() > 0
            there = sign * other.field(kind + "xyz"[new])
            np.testing.assert_allclose(there, here, rtol=0, atol=1e-12 * np.abs(here).max())
    trace = run.trace(receiver)
    np.testing.assert_allclose(mirrored * other.trace(same), trace, rtol=0, atol=1e-12 * np.abs(trace).max())


@pytest.mark.parametrize("precision", ["single", "double"])
def test_cuts_give_the_same_bits_and_a_restart_too(precision: str):
    run, _ = random_run((0, 1, 2), precision=precision)
    run.step(80)
    cut, _ = random_run((0, 1, 2), precision=precision, devices=["cpu:0"] * 4, cut=(2, 1, 2), redundant=2)
    cut.step(38)
    again, _ = random_run((0, 1, 2), precision=precision)
    again.restore(cut.state())
    cut.step(42)
    again.step(42)
    for name in run.fields:
        assert (run.field(name) == cut.field(name)).all(), name
        assert (run.field(name) == again.field(name)).all(), name


@pytest.mark.parametrize(("polarisation", "sources"), [("tm", ("ez", "hy")), ("te", ("hz", "ey"))])
def test_passes_of_a_plane_give_the_same_bits(polarisation: str, sources: tuple[str, str]):
    fields = []
    for passes, redundant in (("never", 1), ("always", 4)):
        run = Fdtd(
            (90, 70),
            (1e-3, 1.5e-3),
            passes=passes,
            redundant=redundant,
            devices=["cpu:0"],
            polarisation=polarisation,
        )
        for field, x in zip(sources, (40, 30), strict=True):
            run.add_source(field, (x, 33), pulse(60, 6))
        run.step(96)
        fields.append({name: run.field(name) for name in run.fields})
    assert all((fields[0][name] == fields[1][name]).all() for name in fields[0])


@pytest.mark.parametrize("polarisation", [None, "tm", "te"])
def test_a_field_that_is_set_is_the_one_that_is_read(polarisation: str | None):
    if polarisation is None:
        run = Fdtd((6, 5, 4), (1e-3, 3e-3, 2e-3), cpml=0, precision="double")
    else:
        run = Fdtd((6, 5), (1e-3, 3e-3), cpml=0, precision="double", polarisation=polarisation)
    for number, name in enumerate(run.fields):
        values = np.random.default_rng(number).standard_normal(run.shape)
        run.set_field(name, values)
        np.testing.assert_allclose(run.field(name), values, rtol=1e-15)


def dipole_error(refined: int, along: str) -> float:
    """As test_fdtd_physics.dipole_error(), in cells of 1 x 3/4 x 1/2 m and less, for a dipole along any axis."""
    axis = "xyz".index(along)
    spacing = np.array([1.0, 0.75, 0.5]) / refined
    width, end = 2.5 / LIGHT, 31 / LIGHT
    shape = np.ceil(38 / spacing).astype(int)
    run = Fdtd(shape.tolist(), spacing.tolist(), cpml=0, precision="double")
    steps = int(np.ceil(end / run.dt))
    time = np.arange(steps) * run.dt
    centre = shape // 2
    across = [one for one in range(3) if one != axis]
    away = np.zeros(3, dtype=int)
    away[across] = np.round(np.array([3.0, 3.0]) / spacing[across]).astype(int)
    late = (time + run.dt / 2) / width - 6
    run.add_source(
        f"e{along}", centre.tolist(), run.dt / (PERMITTIVITY * np.prod(spacing)) * late / width * np.exp(-(late**2) / 2)
    )
    receiver = run.add_receiver(f"e{along}", (centre + away).tolist())
    run.step(steps)
    distance = float(np.linalg.norm(away * spacing))
    then = (time + run.dt - distance / LIGHT) / width - 6
    moment = np.exp(-(then**2) / 2)
    exact = -(
        (then**2 - 1) / width**2 * moment / (LIGHT**2 * distance)
        - then / width * moment / (LIGHT * distance**2)
        + moment / distance**3
    ) / (4 * np.pi * PERMITTIVITY)
    return float(np.linalg.norm(run.trace(receiver) - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("along", ["x", "y", "z"])
def test_a_dipole_along_any_axis_radiates_the_exact_field(along: str):
    assert dipole_error(1, along) < 0.06


def test_errors_fall_with_the_square_of_the_spacings():
    coarse, fine = dipole_error(1, "y"), dipole_error(2, "y")
    assert fine < 0.015
    assert 3.4 < coarse / fine < 5


def layers_return(spacing: tuple[float, ...], *, cells: int, wave: int) -> float:
    """What layers of ten cells return of a pulse from the middle, in dB, against walls out of reach.

    The strongest wave is so many of the longest cells long, in domains with as many cells along every axis.
    """
    frequency, traces = LIGHT / (wave * max(spacing)), []
    for far in (False, True):
        dt = Fdtd((4,) * len(spacing), spacing, cpml=0, devices=["cpu:0"]).dt
        steps = round(2.1 / frequency / dt)
        # Waves that reach a wall do not return in time.
        margins = [int(steps * dt * LIGHT / (2 * one)) + 8 if far else 0 for one in spacing]
        shape = [cells + 2 * margin for margin in margins]
        run = Fdtd(shape, spacing, cpml=0 if far else 10, precision="double", devices=["cpu:0"])
        phase = (np.pi * frequency * ((np.arange(steps) + 0.5) * run.dt - np.sqrt(2) / frequency)) ** 2
        middle = [count // 2 for count in shape]
        run.add_source("ez", middle, (1 - 2 * phase) * np.exp(-phase))
        places = [list(middle) for _ in range(len(spacing) + 1)]
        for axis, place in enumerate(places[:-1]):
            place[axis] += (cells // 2 - 10) // 2
        places[-1] = [at + (cells // 2 - 10) // 2 for at in middle]
        receivers = [run.add_receiver("ez", place) for place in places]
        run.step(steps)
        traces.append([run.trace(one) for one in receivers])
    return max(
        float(20 * np.log10(np.abs(one - other).max() / np.abs(other).max()))
        for one, other in zip(*traces, strict=True)
    )


@pytest.mark.parametrize(("spacing", "wave"), [((1e-3, 2e-3), 100), ((3e-3, 1e-3), 60)])
def test_layers_absorb_long_waves_of_a_plane_as_in_squares(spacing: tuple[float, float], wave: int):
    assert layers_return(spacing, cells=80, wave=wave) < -100


def test_layers_absorb_in_space_as_in_cubes():
    assert layers_return((1e-3, 1.5e-3, 1.2e-3), cells=40, wave=28) < -100


def test_a_scene_that_is_its_own_mirror_image_stays_so():
    run = Fdtd((30, 24, 20), (1e-3, 2e-3, 1.5e-3), cpml=5, precision="double")
    permittivity = np.ones(run.shape)
    permittivity[12:18, 6:15, 5:12] = 5  # from node 12 to node 18: the middle is node 15
    run.set_materials(permittivity)
    run.add_source("ez", (15, 12, 9), pulse(80, 6))
    left, right = run.add_receiver("ez", (9, 9, 7)), run.add_receiver("ez", (21, 9, 7))
    run.step(160)
    trace = run.trace(left)
    np.testing.assert_allclose(run.trace(right), trace, rtol=0, atol=1e-12 * np.abs(trace).max())


def reflected(permittivity: float, spacing: tuple[float, float], wave: float, **medium: Any) -> complex:
    """What a half-space above y = 0 returns at a wavelength, of a wave that fills the width: as in one dimension.

    The walls of x conduct, so a mode of the guide between them takes the wave; here Ez = sin(pi x / width).
    """
    shape = (30, round(1.6 / spacing[1]))
    width = shape[0] * spacing[0]
    across = np.sin(np.pi * np.arange(shape[0]) / shape[0])
    surface = shape[1] // 2
    omega = 2 * np.pi * LIGHT / wave
    traces = []
    for there in (True, False):
        run = Fdtd(shape, spacing, cpml=Cpml(30, sides=((0, 0), (30, 30))), precision="double", **medium.get("run", {}))
        above = (np.arange(shape[1]) >= surface)[None, :] & np.full((shape[0], 1), there)
        keys = {"media": medium["media"], "medium": above * 1} if "media" in medium else {}
        run.set_materials(np.where(above, permittivity, 1.0), **keys)
        steps = int(14 / (LIGHT * run.dt))
        time = np.arange(steps) * run.dt
        samples = np.sin(omega * time) * np.exp(-(((time * LIGHT - 3.2) / 1.0) ** 2))
        for x in range(1, shape[0]):
            run.add_source("ez", (x, surface // 2), across[x] * samples)
        receiver = run.add_receiver("ez", (shape[0] // 2, surface // 2 + 20))
        run.step(steps)
        traces.append(np.sum(run.trace(receiver) * np.exp(-1j * omega * time)))
    guide = np.sqrt((omega / LIGHT) ** 2 - (np.pi / width) ** 2)
    travelled = 2 * (surface - surface // 2 - 20) * spacing[1]
    return complex((traces[0] - traces[1]) / traces[1] * np.exp(1j * guide * travelled))


def fresnel(permittivity: complex, wave: float, width: float) -> complex:
    """The reflection of a mode of a guide: Fresnel's formula with the wave numbers along the guide."""
    k, across = 2 * np.pi / wave, np.pi / width
    one, other = np.sqrt(k**2 - across**2), np.sqrt(permittivity * k**2 - across**2 + 0j)
    return complex((one - other) / (one + other))


@pytest.mark.parametrize("spacing", [(1e-2, 5e-3), (1e-2, 1.4e-2)])
def test_a_half_space_reflects_as_fresnel_says(spacing: tuple[float, float]):
    wave = 0.4
    found = reflected(4.0, spacing, wave)
    assert found == pytest.approx(fresnel(4.0, wave, 30 * spacing[0]), abs=0.012)


def test_a_dispersive_half_space_does_too():
    wave, spacing = 0.4, (1e-2, 4e-3)
    omega = 2 * np.pi * LIGHT / wave
    poles = [Debye(3.0, 2e-10), Lorentz(1.5, 2e9, 1e9)]
    found = reflected(2.0, spacing, wave, run={"pole_values": 3}, media=[poles])
    permittivity = 2.0 + sum(one.permittivity(omega / (2 * np.pi)) for one in poles)
    assert found == pytest.approx(fresnel(permittivity, wave, 30 * spacing[0]), abs=0.012)


@pytest.mark.parametrize(
    ("spacing", "text"),
    [
        ((1e-3, 2e-3), "spacing has 2 numbers, but must have one, or one for each of 3 axes"),
        ((1e-3, 0.0, 1e-3), "the spacing is 0 m"),
        ((1e-3, float("inf"), 1e-3), "the spacing is inf m"),
    ],
)
def test_wrong_spacings_are_refused(spacing: tuple[float, ...], text: str):
    with pytest.raises(UsageError, match=text):
        Fdtd((8, 8, 8), spacing, cpml=0)
