"""Finite differences in the time domain against Maxwell: known solutions, resonances, reflections of layers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from grid_reference import at_edge, at_face
from numpy.typing import NDArray

from headrace.grid import Cpml, Fdtd

LIGHT = 299792458.0
PERMEABILITY = 1.25663706127e-6
PERMITTIVITY = 1 / (PERMEABILITY * LIGHT**2)


def gaussian(time: np.ndarray, width: float) -> np.ndarray:
    """A Gaussian that starts near 0, and below, its time derivatives."""
    return np.exp(-((time / width - 6) ** 2) / 2)


def gaussian_1(time: np.ndarray, width: float) -> np.ndarray:
    late = time / width - 6
    return -late / width * np.exp(-(late**2) / 2)


def gaussian_2(time: np.ndarray, width: float) -> np.ndarray:
    late = time / width - 6
    return (late**2 - 1) / width**2 * np.exp(-(late**2) / 2)


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def line_source_error(cells_a_metre: int) -> float:
    """The relative error of Ez at 15 m from a line current, before a reflection arrives.

    A line current I makes Ez = -(mu / 2 pi) integral of I'(t - (r / c) cosh u) over u from 0.
    """
    spacing = 1 / cells_a_metre
    width, end = 3 / LIGHT, 45 / LIGHT
    count = 60 * cells_a_metre
    run = Fdtd((count, count), spacing, cpml=0, precision="double")
    steps = int(np.ceil(end / run.dt))
    time = np.arange(steps) * run.dt
    centre = count // 2
    current = gaussian_1(time + run.dt / 2, width)
    run.add_source("ez", (centre, centre), -run.dt / (PERMITTIVITY * spacing**2) * current)
    receiver = run.add_receiver("ez", (centre + 9 * cells_a_metre, centre + 12 * cells_a_metre))
    run.step(steps)
    exact = np.zeros(steps)
    for step, now in enumerate(time + run.dt):
        if now * LIGHT > 15:
            u = np.linspace(0, np.arccosh(now * LIGHT / 15), 2001)
            exact[step] = (
                -PERMEABILITY / (2 * np.pi) * np.trapezoid(gaussian_2(now - 15 / LIGHT * np.cosh(u), width), u)
            )
    return root_mean_square(run.trace(receiver) - exact) / root_mean_square(exact)


def test_line_source_in_free_space_and_second_order():
    coarse, fine = line_source_error(1), line_source_error(2)
    assert fine < 0.012
    assert 3.5 < coarse / fine < 5


def dipole_error(cells_a_metre: int) -> float:
    """The relative error of Ez in the plane across a short dipole p(t) along z, before a reflection arrives.

    There Ez = -(p'' / (c^2 r) + p' / (c r^2) + p / r^3) / (4 pi epsilon), taken r / c earlier.
    """
    spacing = 1 / cells_a_metre
    width, end = 2.5 / LIGHT, 31 / LIGHT
    count = 38 * cells_a_metre
    run = Fdtd((count, count, count), spacing, cpml=0, precision="double")
    steps = int(np.ceil(end / run.dt))
    time = np.arange(steps) * run.dt
    centre = count // 2
    rate = gaussian_1(time + run.dt / 2, width)
    run.add_source("ez", (centre, centre, centre), -run.dt / (PERMITTIVITY * spacing**3) * rate)
    receiver = run.add_receiver("ez", (centre + 4 * cells_a_metre, centre + 3 * cells_a_metre, centre))
    run.step(steps)
    away = 5.0
    then = time + run.dt - away / LIGHT
    exact = -(
        gaussian_2(then, width) / (LIGHT**2 * away)
        + gaussian_1(then, width) / (LIGHT * away**2)
        + gaussian(then, width) / away**3
    ) / (4 * np.pi * PERMITTIVITY)
    return root_mean_square(run.trace(receiver) - exact) / root_mean_square(exact)


def test_dipole_in_free_space_and_second_order():
    coarse, fine = dipole_error(1), dipole_error(2)
    assert fine < 0.015
    assert 3.5 < coarse / fine < 5


@pytest.mark.parametrize(
    ("shape", "mode"), [((80, 60), (1, 1)), ((80, 60), (2, 1)), ((80, 60), (1, 2)), ((40, 30, 12), (1, 1))]
)
def test_resonances_of_a_closed_box(shape: tuple[int, ...], mode: tuple[int, int]):
    run = Fdtd(shape, 1e-3, cpml=0)
    at = [tuple(int(share * count) for count in shape) for share in (0.28, 0.64)]
    run.add_source("ez", at[0], gaussian_1(np.arange(400) * 1.0, 20))
    receiver = run.add_receiver("ez", at[1])
    steps = 8192
    run.step(steps)
    trace = run.trace(receiver)[400:]
    bins = np.abs(np.fft.rfft(trace * np.hanning(len(trace))))
    wanted = LIGHT / 2 * np.hypot(*(count / (cells * 1e-3) for count, cells in zip(mode, shape, strict=False)))
    near = round(wanted * len(trace) * run.dt)
    peak = near - 3 + int(np.argmax(bins[near - 3 : near + 4]))
    left, top, right = np.log(bins[peak - 1 : peak + 2])
    found = (peak + (left - right) / (2 * (left - 2 * top + right))) / (len(trace) * run.dt)
    assert found == pytest.approx(wanted, rel=1e-3)


def energy_of(run: Fdtd, permittivity: np.ndarray, permeability: np.ndarray) -> float:
    """The sum E^n E^n + H^(n-1/2) H^(n+1/2), weighted, which Yee's scheme conserves without loss. Does one step."""
    electric = {name: run.field(name).astype(float) for name in run.fields if name.startswith("e")}
    magnetic = {name: run.field(name).astype(float) for name in run.fields if name.startswith("h")}
    run.step(1)
    epsilon = {name: PERMITTIVITY * at_edge(permittivity, run.shape, name) for name in electric}
    mu = {name: PERMEABILITY * at_face(permeability, run.shape, name) for name in magnetic}
    stored = sum(np.sum(epsilon[name] * values**2) for name, values in electric.items())
    crossed = sum(np.sum(mu[name] * values * run.field(name)) for name, values in magnetic.items())
    return float(stored + crossed)


def box_with_energy(shape: tuple[int, ...], **options: object) -> tuple[Fdtd, np.ndarray, np.ndarray]:
    run = Fdtd(shape, 1e-3, cpml=0, **options)
    random = np.random.default_rng(3)
    permittivity, permeability = 1 + random.random(shape), 1 + random.random(shape)
    run.set_materials(permittivity, 0, permeability)
    run.add_source("ez", [count // 2 for count in shape], random.standard_normal(20))
    run.step(20)
    return run, permittivity, permeability


@pytest.mark.parametrize("shape", [(24, 19), (11, 9, 10)])
def test_energy_of_a_closed_box_stays(shape: tuple[int, ...]):
    box = box_with_energy(shape, precision="double", devices=["cpu:0", "cpu:1"])
    start = energy_of(*box)
    assert start > 0
    for _ in range(5):
        box[0].step(200)
        assert energy_of(*box) == pytest.approx(start, rel=1e-11)


@pytest.mark.parametrize("shape", [(24, 19), (11, 9, 10)])
@pytest.mark.parametrize(("precision", "share"), [("double", 1e-9), ("single", 0.02)])
def test_energy_is_bounded_for_100_000_steps(shape: tuple[int, ...], precision: str, share: float):
    box = box_with_energy(shape, precision=precision)
    start = energy_of(*box)
    for _ in range(10):
        box[0].step(10_000)
        assert energy_of(*box) == pytest.approx(start, rel=share)
    assert box[0].steps_done > 100_000


def reflection(
    dimensions: int, *, inner: int, layer: int, beyond: int, steps: int, width: float, index: int = 1, **options: Any
) -> float:
    """The reflection of layers next to them, in dB of the outgoing wave, against a larger closed domain."""
    traces = []
    for margin, cpml in ((layer, layer), (beyond, 0)):
        count = inner + 2 * margin
        run = Fdtd((count,) * dimensions, 1e-3, cpml=cpml, **{"precision": "double", **options})
        run.set_materials(permittivity=index**2)
        time = np.arange(steps * index) / index
        run.add_source("ez", (count // 2,) * dimensions, gaussian_1(time, width))
        beside = [count // 2] * dimensions
        beside[0] = margin + 2
        corner = [margin + 2] * dimensions
        receivers = [run.add_receiver("ez", cell) for cell in (beside, corner)]
        run.step(steps * index)
        traces.append([run.trace(receiver) for receiver in receivers])
    return max(
        20 * np.log10(np.max(np.abs(absorbed - free)) / np.max(np.abs(free)))
        for absorbed, free in zip(*traces, strict=True)
    )


def test_layers_reflect_less_than_a_thousandth_in_a_plane():
    assert reflection(2, inner=40, layer=10, beyond=110, steps=260, width=10) < -80


@pytest.mark.parametrize(("index", "precision"), [(1, "double"), (1, "single"), (3, "double"), (5, "single")])
def test_layers_reflect_less_than_a_thousandth_in_space(index: int, precision: str):
    level = reflection(3, inner=16, layer=10, beyond=34, steps=110, width=6, index=index, precision=precision)
    assert level < -60


LAYER_SPACING, LAYER_PULSE = 2e-3, 0.9e9  # the strongest wave is 166 cells long


def layered_trace(
    count: int,
    margin: int,
    steps: int,
    slowness: float,
    materials: Callable[[int], tuple[Any, Any, Any]],
    **options: Any,
) -> list[NDArray[np.float64]]:
    """A pulse in the middle of a square, recorded on the way to a side and to a corner."""
    size = count + 2 * margin
    run = Fdtd((size, size), LAYER_SPACING, **options)
    run.set_materials(*materials(size))
    time = (np.arange(steps) + 0.5) * run.dt
    phase = (np.pi * LAYER_PULSE / slowness * (time - np.sqrt(2) * slowness / LAYER_PULSE)) ** 2
    run.add_source(run.fields[0], (size // 2, size // 2), (1 - 2 * phase) * np.exp(-phase))
    side, corner = (size // 2 + 15, size // 2), (size // 2 + 18, size // 2 + 18)
    receivers = [run.add_receiver(run.fields[0], cell) for cell in (side, corner)]
    run.step(steps)
    return [run.trace(receiver) for receiver in receivers]


def reflection_in(
    materials: Callable[[int], tuple[Any, Any, Any]],
    slowness: float,
    *,
    steps: int | None = None,
    margin: int = 150,
    precision: str = "double",
    cpml: int | Cpml = 10,
    polarisation: str = "tm",
) -> float:
    """The reflection of layers of ten cells, in dB of the incident wave, against a domain with walls out of reach."""
    steps = steps or round(500 * slowness)
    options = {"precision": precision, "polarisation": polarisation}
    absorbed = layered_trace(80, 0, steps, slowness, materials, cpml=cpml, **options)
    free = layered_trace(80, margin, steps, slowness, materials, cpml=0, **options)
    return max(
        float(20 * np.log10(np.max(np.abs(one - other)) / np.max(np.abs(other))))
        for one, other in zip(absorbed, free, strict=True)
    )


@pytest.mark.parametrize(
    ("permittivity", "permeability", "precision", "level"),
    [
        (1, 1, "double", -110),
        (6, 1, "double", -110),
        (25, 1, "double", -110),
        (81, 1, "double", -110),
        (1, 100, "double", -110),
        (25, 1, "single", -95),
    ],
)
def test_layers_absorb_equally_well_in_every_medium(
    permittivity: float, permeability: float, precision: str, level: float
):
    index = np.sqrt(permittivity * permeability)
    assert reflection_in(lambda _: (permittivity, 0, permeability), index, precision=precision) < level


@pytest.mark.parametrize(("permittivity", "permeability"), [(1, 1), (25, 1), (1, 100)])
def test_layers_absorb_hz_equally_well(permittivity: float, permeability: float):
    index = np.sqrt(permittivity * permeability)
    assert reflection_in(lambda _: (permittivity, 0, permeability), index, polarisation="te") < -110


def test_layers_absorb_in_a_medium_that_conducts():
    for conductivity in (1e-3, 0.1):
        assert reflection_in(lambda _, given=conductivity: (9, given, 1), 3) < -108  # type: ignore[misc]


@pytest.mark.parametrize(("below", "above", "height"), [(9, 1, 24), (25, 1, 40), (25, 9, 24), (81, 4, 24)])
def test_layers_absorb_where_two_media_reach_into_them(below: float, above: float, height: int):
    def ground(size: int) -> tuple[NDArray[np.float64], float, float]:
        permittivity = np.full((size, size), float(above))
        permittivity[:, : (size - 80) // 2 + height] = below
        return permittivity, 0.0, 1.0

    index = np.sqrt(above)
    assert reflection_in(ground, index, steps=round(700 * index), margin=260) < -105


def test_how_layers_are_graded_is_what_is_asked_for():
    """Conductivity five times as high, as if a medium of permittivity 25 had layers for vacuum, reflects far more."""
    usual = Cpml()
    strong = Cpml(sigma=5 * usual.sigma, alpha=5 * usual.alpha)
    assert -60 < reflection_in(lambda _: (25, 0, 1), 5, cpml=strong) < -30


@pytest.mark.parametrize(
    ("shape", "one", "other"),
    [
        ((30, 26), ("ez", (9, 8)), ("ez", (20, 17))),
        ((18, 17, 16), ("ez", (6, 7, 8)), ("ex", (11, 9, 7))),
    ],
)
def test_source_and_receiver_may_be_exchanged(
    shape: tuple[int, ...], one: tuple[str, tuple[int, ...]], other: tuple[str, tuple[int, ...]]
):
    """Reciprocity: the same current at either end makes the same field at the other, whatever lies between."""
    random = np.random.default_rng(4)
    permittivity = 1 + 3 * random.random(shape)
    conductivity = 0.1 * random.random(shape)
    permeability = 1 + random.random(shape)
    traces = []
    for (source, from_cell), (field, to_cell) in ((one, other), (other, one)):
        run = Fdtd(shape, 1e-3, cpml=5, precision="double", devices=["cpu:0", "cpu:1"])
        run.set_materials(permittivity, conductivity, permeability)
        epsilon = PERMITTIVITY * at_edge(permittivity, shape, source)[from_cell]
        moved = run.dt / epsilon / (1 + at_edge(conductivity, shape, source)[from_cell] * run.dt / (2 * epsilon))
        run.add_source(source, from_cell, moved / run.dt * gaussian_1(np.arange(120) * 1.0, 4))
        receiver = run.add_receiver(field, to_cell)
        run.step(120)
        traces.append(run.trace(receiver))
    np.testing.assert_allclose(traces[0], traces[1], atol=1e-10 * np.max(np.abs(traces[0])))


def metal_box(shape: tuple[int, int], low: int, high: int) -> np.ndarray:
    """The conductivity of a perfect conductor outside of the cells from low to high along x."""
    conductivity = np.full(shape, 1e10)
    conductivity[low:high, :] = 0
    return conductivity


def test_a_gap_between_conductors_is_as_wide_as_its_cells():
    """A cavity that objects make resonates as one between the walls of the domain (TM11)."""
    length, width, steps = 20, 15, 30_000
    run = Fdtd((length + 10, width), 0.01, cpml=0, precision="double")
    run.set_materials(1, metal_box(run.shape, 5, 5 + length))
    run.add_source("ez", (12, 6), gaussian_1(np.arange(200) * 1.0, 12))
    receiver = run.add_receiver("ez", (18, 9))
    run.step(steps)
    spectrum = np.abs(np.fft.rfft(run.trace(receiver) * np.hanning(steps), 1 << 19))
    frequency = np.fft.rfftfreq(1 << 19, run.dt)
    near = (frequency > 0.9e9) & (frequency < 1.5e9)
    found = frequency[near][np.argmax(spectrum[near])]
    assert found == pytest.approx(299792458.0 / 2 * np.hypot(1 / (length * 0.01), 1 / (width * 0.01)), rel=5e-4)


@pytest.mark.parametrize("kind", ["dielectric", "conductor"])
@pytest.mark.parametrize("cpml", [0, 10])
def test_a_scene_that_is_its_own_mirror_image_gives_equal_traces(kind: str, cpml: int):
    """For as long as waves, or what layers leave of them, travel between the walls."""
    run = Fdtd((60, 50), 1e-3, cpml=cpml, precision="double")
    inside = np.zeros(run.shape, bool)
    inside[25:35, 30:36] = True  # from node 25 to node 35, and the domain from 0 to 60: the middle of both is node 30
    run.set_materials(
        np.where(inside & (kind == "dielectric"), 6.0, 1.0), np.where(inside & (kind == "conductor"), 1e10, 0)
    )
    run.add_source("ez", (30, 14), gaussian_1(np.arange(300) * 1.0, 8))
    left, right = run.add_receiver("ez", (22, 20)), run.add_receiver("ez", (38, 20))
    run.step(400)
    np.testing.assert_allclose(run.trace(left), run.trace(right), rtol=0, atol=1e-12 * np.max(np.abs(run.trace(left))))


@pytest.mark.parametrize("permeability", [1.0, 1000.0])
@pytest.mark.parametrize("below", [False, True])
def test_a_good_conductor_reflects_as_a_perfect_one_from_either_side(permeability: float, below: bool):
    """Includes steel with a large permeability: E changes its sign."""

    def reflected(conductivity: float, its_permeability: float) -> np.ndarray:
        traces = []
        for there in (True, False):
            run = Fdtd((90, 90), 2e-3, precision="double")
            plate = np.zeros(run.shape, bool)
            plate[12:78, 40:50] = there
            run.set_materials(1, np.where(plate, conductivity, 0), np.where(plate, its_permeability, 1))
            place = 30 if below else 60  # at the same distance from either face
            run.add_source("ez", (45, place), gaussian_1(np.arange(300) * 1.0, 12))
            receiver = run.add_receiver("ez", (50, place))
            run.step(160)
            traces.append(run.trace(receiver))
        return np.asarray(traces[0] - traces[1])

    perfect, steel = reflected(1e10, 1), reflected(1.4e6, permeability)
    np.testing.assert_allclose(steel, perfect, atol=2e-3 * np.max(np.abs(perfect)))


def test_averages_may_be_switched_off_in_a_plane():
    half = np.where(np.arange(40)[:, None] < 20, 1.0, 9.0) * np.ones((40, 30))
    fields = []
    for averaging in (True, False):
        run = Fdtd((40, 30), 1e-3, averaging=averaging, precision="double")
        run.set_materials(half)
        run.add_source("ez", (12, 15), gaussian_1(np.arange(100) * 1.0, 5))
        run.step(60)
        fields.append(run.field("ez"))
    assert np.max(np.abs(fields[0] - fields[1])) > 1e-3 * np.max(np.abs(fields[0]))
