"""Transverse electric fields in a plane against exact solutions, and against three dimensions without change in z."""

import numpy as np
import pytest
from test_fdtd_physics import LIGHT, PERMEABILITY, PERMITTIVITY, gaussian_1, gaussian_2, root_mean_square

from headrace import UsageError
from headrace.grid import Cpml, Debye, Fdtd, Lorentz

TE = {"polarisation": "te", "devices": ["cpu:0"]}


@pytest.mark.parametrize("mode", [(1, 0), (0, 1), (2, 3)])
def test_a_mode_of_a_closed_box_turns_at_the_frequency_of_the_scheme(mode: tuple[int, int]):
    """Hz is a product of cosines, whose frequency follows from the dispersion of Yee's scheme exactly."""
    shape, spacing = (40, 30), 1e-3
    run = Fdtd(shape, spacing, cpml=0, precision="double", **TE)
    waves = [np.pi * number / count for number, count in zip(mode, shape, strict=True)]
    along = [np.cos(wave * (np.arange(count) + 0.5)) for wave, count in zip(waves, shape, strict=True)]
    start = along[0][:, None] * along[1]
    run.set_field("hz", start)
    steps, reached = 501, LIGHT * run.dt / spacing
    run.step(steps)
    turn = 2 * np.arcsin(reached * np.hypot(*np.sin(np.array(waves) / 2)))
    expected = start * np.cos(turn * (steps - 0.5)) / np.cos(turn / 2)
    assert np.abs(run.field("hz") - expected).max() < 1e-11
    # dE/dt = curl H / epsilon: Ex at a node follows Hz above and below it.
    sine = np.sin(waves[1] * np.arange(shape[1]))
    curl = along[0][:, None] * (-2 * np.sin(waves[1] / 2) * sine)
    amplitude = run.dt / (PERMITTIVITY * spacing) / (2 * np.sin(turn / 2) * np.cos(turn / 2))
    assert np.abs(run.field("ex") - amplitude * curl * np.sin(turn * steps)).max() < 1e-11 * PERMEABILITY * LIGHT


def hz_of_magnetic_line(cells_a_metre: int) -> float:
    """The relative error of Hz at 15 m from a line of magnetic current: the dual of Ez of a line current."""
    spacing = 1 / cells_a_metre
    width, end = 3 / LIGHT, 45 / LIGHT
    count = 60 * cells_a_metre
    run = Fdtd((count, count), spacing, cpml=0, precision="double", **TE)
    steps = int(np.ceil(end / run.dt))
    time = np.arange(steps) * run.dt
    centre = count // 2
    run.add_source("hz", (centre, centre), -run.dt / (PERMEABILITY * spacing**2) * gaussian_1(time, width))
    receiver = run.add_receiver("hz", (centre + 9 * cells_a_metre, centre + 12 * cells_a_metre))
    run.step(steps)
    exact = np.zeros(steps)
    for step, now in enumerate(time + run.dt / 2):
        if now * LIGHT > 15:
            u = np.linspace(0, np.arccosh(now * LIGHT / 15), 2001)
            exact[step] = (
                -PERMITTIVITY / (2 * np.pi) * np.trapezoid(gaussian_2(now - 15 / LIGHT * np.cosh(u), width), u)
            )
    return root_mean_square(run.trace(receiver) - exact) / root_mean_square(exact)


def hz_of_electric_line(field: str, cells_a_metre: int) -> float:
    """The relative error of Hz near a line of dipoles m(t) along x or y.

    A_x = mu / (2 pi) integral of m(t - (r / c) cosh u) over u from 0, and Hz = -(dA_x / dy) / mu; for y, +(dA_y / dx).
    """
    spacing = 1 / cells_a_metre
    width, end = 3 / LIGHT, 45 / LIGHT
    count = 60 * cells_a_metre
    run = Fdtd((count, count), spacing, cpml=0, precision="double", **TE)
    steps = int(np.ceil(end / run.dt))
    time = np.arange(steps) * run.dt
    centre = count // 2
    moment = gaussian_1(time + run.dt / 2, width)
    run.add_source(field, (centre, centre), -run.dt / (PERMITTIVITY * spacing**2) * moment)
    at = (centre + 9 * cells_a_metre, centre + 12 * cells_a_metre)
    receiver = run.add_receiver("hz", at)
    run.step(steps)
    # Hz lies in the middle of its cell, the dipole in the middle of the low edge of its own.
    x, y = ((number - centre + (letter != field[1]) / 2) * spacing for letter, number in zip("xy", at, strict=True))
    away, lever = np.hypot(x, y), y if field == "ex" else -x
    exact = np.zeros(steps)
    for step, now in enumerate(time + run.dt / 2):
        if now * LIGHT > away:
            u = np.linspace(0, np.arccosh(now * LIGHT / away), 2001)
            rate = gaussian_2(now - away / LIGHT * np.cosh(u), width) * np.cosh(u)
            exact[step] = lever / (2 * np.pi * away * LIGHT) * np.trapezoid(rate, u)
    return root_mean_square(run.trace(receiver) - exact) / root_mean_square(exact)


def test_a_magnetic_line_in_free_space_and_second_order():
    coarse, fine = hz_of_magnetic_line(1), hz_of_magnetic_line(2)
    assert fine < 0.012
    assert 3.5 < coarse / fine < 5


@pytest.mark.parametrize("field", ["ex", "ey"])
def test_a_line_of_dipoles_in_free_space_and_second_order(field: str):
    coarse, fine = hz_of_electric_line(field, 1), hz_of_electric_line(field, 2)
    assert fine < 0.012
    assert 3.5 < coarse / fine < 5


SHAPE = (24, 20)
STEPS = 14
THICK = 2 * STEPS + 3


def both(**options: object) -> tuple[Fdtd, Fdtd]:
    """A plane with Hz, and a domain that repeats it along z with room for STEPS steps around its middle."""
    dt = 0.98 * 1e-3 / (LIGHT * 3**0.5)
    common = {"dt": dt, "precision": "double", "devices": ["cpu:0"], **options}
    layers = {"cpml": Cpml(4, sides=((4, 4), (4, 4)))}, {"cpml": Cpml(4, sides=((4, 4), (4, 4), (0, 0)))}
    return Fdtd(SHAPE, 1e-3, polarisation="te", **layers[0], **common), Fdtd(
        (*SHAPE, THICK), 1e-3, **layers[1], **common
    )


def add_sources(plane: Fdtd, space: Fdtd) -> None:
    random = np.random.default_rng(5)
    for field, cell in (("hz", (12, 9)), ("ex", (8, 12)), ("ey", (15, 6))):
        samples = random.standard_normal(STEPS)
        plane.add_source(field, cell, samples)
        space.add_sources(field, np.array([(*cell, z) for z in range(1, THICK)]), samples)


def expect_alike(plane: Fdtd, space: Fdtd) -> None:
    add_sources(plane, space)
    plane.step(STEPS)
    space.step(STEPS)
    for field in plane.fields:
        values = plane.field(field)
        assert np.abs(values).max() > 0
        assert np.array_equal(values, space.field(field)[:, :, THICK // 2]), field


def deep(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[:, :, None], THICK, axis=2)


@pytest.mark.parametrize("averaging", [True, False])
def test_dispersive_media_and_edges_are_those_of_three_dimensions(averaging: bool):
    random = np.random.default_rng(2)
    media = [[Debye(3, 2e-11)], [Lorentz(1, 2e10, 1e9), Debye(1, 4e-11)]]
    # The layers are in one material: sums over their cells, which grade them, are then equal to the last bit.
    inner = np.zeros(SHAPE, dtype=bool)
    inner[5:-5, 5:-5] = True
    permittivity = np.where(inner, 1 + random.random(SHAPE), 1.0)
    conductivity = np.where(inner, 0.1 * random.random(SHAPE), 0.0)
    permeability = np.where(inner, 1 + random.random(SHAPE), 1.0)
    medium = np.where(inner, random.integers(0, 3, SHAPE), 0)
    plane, space = both(averaging=averaging, pole_values=12)
    nodes = np.array([(10, 7), (11, 7), (12, 7)])
    own = {"ex": (nodes, 2.0, 1e10, 0), "ey": (nodes, 3.0, 0.2, 1)}
    plane.set_materials(permittivity, conductivity, permeability, edges=own, media=media, medium=medium)
    rows = np.array([(x, y, z) for x, y in nodes for z in range(THICK)])
    space.set_materials(
        deep(permittivity),
        deep(conductivity),
        deep(permeability),
        edges={name: (rows, *values[1:]) for name, values in own.items()},
        media=media,
        medium=deep(medium),
    )
    expect_alike(plane, space)


def test_dispersive_runs_are_equal_for_every_cut_and_after_a_restart():
    def made(**options: object) -> Fdtd:
        run = Fdtd((30, 26), 1e-3, cpml=4, pole_values=4, polarisation="te", **options)
        medium = np.arange(30 * 26).reshape(30, 26) % 3
        run.set_materials(2.0, 0.01, 1.0, media=[[Debye(3, 2e-11)], [Lorentz(1, 2e10, 1e9)]], medium=medium)
        run.add_source("hz", (14, 12), np.ones(9))
        run.add_receiver("ex", (20, 9))
        return run

    whole = made(devices=["cpu:0"])
    whole.step(30)
    cut = made(devices=["cpu:0"] * 4, cut=(2, 2), redundant=2)
    cut.step(13)
    other = made(devices=["cpu:0"] * 2, cut=(1, 2))
    other.restore(cut.state())
    other.step(17)
    state, again = whole.state(), other.state()
    assert {"pole_ex_0", "pole_ey_3", "psi_hzx", "psi_exy"} <= state.keys()
    assert state.keys() == again.keys()
    for name, values in state.items():
        assert np.array_equal(values, again[name], equal_nan=True), name


def test_what_it_refuses():
    with pytest.raises(UsageError, match="polarisation te is for two dimensions"):
        Fdtd((5, 5, 5), 1e-3, cpml=0, **TE)
    with pytest.raises(UsageError, match=r"'tx'.*tm.*te"):
        Fdtd((5, 5), 1e-3, cpml=0, polarisation="tx")
    with pytest.raises(UsageError, match="with polarisation tm only"):
        Fdtd((5, 5), 1e-3, cpml=0, per_component=True, **TE)
    run = Fdtd((5, 5), 1e-3, cpml=0, **TE)
    assert run.fields == ["hz", "ex", "ey"]
    with pytest.raises(
        UsageError, match="no field 'ez' in 2 dimensions with polarisation te; the fields are hz, ex, ey"
    ):
        run.add_source("ez", (2, 2), [1.0])
    with pytest.raises(UsageError, match=r"'ez'.*components of E in this domain"):
        run.set_materials(edges={"ez": ([(1, 1)], 1.0, 0.0)})
    for field, cell in (("ex", (2, 0)), ("ey", (0, 2))):
        with pytest.raises(UsageError, match="lies on a wall"):
            run.add_source(field, cell, [1.0])
    run.add_source("hz", (0, 0), [1.0])
    run.add_source("ex", (0, 2), [1.0])
