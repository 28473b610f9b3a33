"""Plane waves: the box contains the requested wave, and only the scattered field is outside."""

import numpy as np
import pytest
from grid_scenes import PATH

from headrace import UsageError
from headrace.grid import Fdtd
from headrace.grid.solver import Layout, Scene, parse_scene
from headrace.grid.solver.model import build
from headrace.grid.solver.waveforms import gaussian

LIGHT = 299_792_458.0
IMPEDANCE = 4e-7 * np.pi * LIGHT

SCENE = """
[domain]
size = {size}
spacing = 0.01
cpml = 8
precision = "{precision}"
[time]
steps = {steps}
[[materials]]
id = "dense"
permittivity = 4.0
[[plane_waves]]
direction = "{direction}"
field = "{field}"
waveform = "gaussian"
frequency = 1.0e9
amplitude = 2.0
{more}
"""


def scene(direction: str = "+x", field: str = "ez", size: str = "[0.7, 0.6]", **more: object) -> Scene:
    values = {"precision": "double", "steps": 60, "more": "", **more}
    return parse_scene(SCENE.format(direction=direction, field=field, size=size, **values), PATH)


def stepped(given: Scene, **layout: object) -> Fdtd:
    solver = build(given, Layout(**layout)).solver
    assert isinstance(solver, Fdtd)
    solver.step(given.steps)
    return solver


def boxes(given: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Cells well inside the box, and cells well outside."""
    wave = given.plane_waves[0]
    inside, near = np.zeros(given.shape, bool), np.zeros(given.shape, bool)
    inside[tuple(slice(low, high) for low, high in zip(wave.low, wave.high, strict=True))] = True
    near[tuple(slice(low - 1, high + 1) for low, high in zip(wave.low, wave.high, strict=True))] = True
    return inside, ~near


SPACE = "[0.34, 0.32, 0.33]"
WAYS = [
    *[(direction, "ez", "[0.7, 0.6]") for direction in ("+x", "-x", "+y", "-y")],
    *[("+x", "ey", SPACE), ("-x", "ez", SPACE), ("+y", "ex", SPACE), ("-y", "ez", SPACE)],
    *[("+z", "ey", SPACE), ("-z", "ex", SPACE)],
]


@pytest.mark.parametrize(("direction", "field", "size"), WAYS)
def test_it_is_the_analytic_wave_inside_and_nothing_outside(direction: str, field: str, size: str):
    given = scene(direction, field, size)
    solver = stepped(given)
    wave, time = given.plane_waves[0], given.steps * given.dt
    inside, outside = boxes(given)
    place = np.arange(given.shape[wave.axis])
    entry = wave.low[wave.axis] - 1 if wave.forward else wave.high[wave.axis] + 1
    distance = np.abs(place - entry) * given.spacing[wave.axis]
    right = 2.0 * gaussian(time - distance / LIGHT, 1e9) * (time > distance / LIGHT)
    shape = [1] * given.dimensions
    shape[wave.axis] = -1
    right = np.broadcast_to(right.reshape(shape), given.shape)
    found = solver.field(field)
    error = np.linalg.norm((found - right)[inside]) / np.linalg.norm(right[inside])
    assert np.abs(right[inside]).max() > 1.5
    assert error < 0.02, error
    for name in solver.fields:
        # Without a scatterer, steps leave only rounding errors. Magnetic fields are in units of electric ones.
        unit = 1.0 if name[0] == "e" else IMPEDANCE
        assert np.abs(solver.field(name)[outside]).max() * unit < 1e-12, name


def test_the_error_falls_with_the_square_of_the_spacing():
    errors = []
    for refined in (1, 2):
        text = SCENE.format(
            direction="+x", field="ez", size="[0.7, 0.6]", precision="double", steps=60 * refined, more=""
        )
        text = text.replace("spacing = 0.01", f"spacing = {0.01 / refined}").replace(
            "cpml = 8", f"cpml = {8 * refined}"
        )
        text += "low = [0.1, 0.1]\nhigh = [0.6, 0.5]\n"
        given = parse_scene(text, PATH)
        solver = stepped(given)
        wave, time = given.plane_waves[0], given.steps * given.dt
        place = (np.arange(wave.low[0], wave.high[0]) - wave.low[0] + 1) * given.spacing[wave.axis]
        right = 2.0 * gaussian(time - place / LIGHT, 1e9) * (time > place / LIGHT)
        found = solver.field("ez")[wave.low[0] : wave.high[0], given.shape[1] // 2]
        errors.append(np.linalg.norm(found - right) / np.linalg.norm(right))
    assert 3.0 < errors[0] / errors[1] < 5.0, errors


def test_a_rod_scatters_and_cuts_agree_to_the_last_bit():
    rod = '[[objects]]\ntype = "cylinder"\ncentre = [0.35, 0.3]\nradius = 0.05\nmaterial = "dense"'
    given = scene(more=rod, precision="single", steps=120)
    one = stepped(given)
    _, outside = boxes(given)
    assert np.abs(one.field("ez")[outside]).max() > 1e-2
    several = stepped(given, devices=("cpu:0",) * 4, cut=(2, 2), redundant=2)
    for name in one.fields:
        assert (one.field(name) == several.field(name)).all(), name


def test_it_travels_in_the_material_that_it_comes_through():
    given = scene(more="", steps=110)
    dense = parse_scene(
        SCENE.format(direction="+x", field="ez", size="[0.7, 0.6]", precision="double", steps=110, more="").replace(
            "precision", 'background = "dense"\nprecision'
        ),
        PATH,
    )
    peak = [int(np.argmax(stepped(one).field("ez")[:, 30])) - one.plane_waves[0].low[0] for one in (given, dense)]
    delay = 1e-9 * LIGHT / 0.01  # cells: until the pulse peaks where it enters
    travelled = 110 * given.dt * LIGHT / 0.01 - delay
    assert peak[1] == pytest.approx(travelled / 2, abs=2)


@pytest.mark.parametrize(
    ("direction", "more", "says"),
    [
        ("+q", "", "there is no '+q'"),
        ("+x", "low = [0.0, 0.1]\nhigh = [0.5, 0.5]", "its box goes from cell 0 to 50 along x"),
        ("+x", "low = [0.5, 0.1]\nhigh = [0.4, 0.5]", "its box goes from cell 50 to 40 along x"),
        ("+x", "ampltude = 1.0", "there is no key 'ampltude'"),
    ],
)
def test_what_cannot_be_is_refused(direction: str, more: str, says: str):
    with pytest.raises(UsageError) as refused:
        scene(direction, more=more)
    assert says in str(refused.value)


def test_along_its_own_field_there_is_no_wave():
    with pytest.raises(UsageError, match="a wave along z has no ez"):
        scene("+z", "ez", SPACE)


def test_materials_on_its_faces_are_refused():
    slab = '[[objects]]\ntype = "half_space"\naxis = "y"\nbelow = 0.3\nmaterial = "{}"'
    with pytest.raises(UsageError, match=r"ends in several materials \(dense, free_space\)"):
        stepped(scene(more=slab.format("dense")))
    wet = '[[materials]]\nid = "wet"\nconductivity = 0.1\n' + slab.format("wet").replace("0.3", "1.0")
    with pytest.raises(UsageError, match="ends in wet, which conducts"):
        stepped(scene(more=wet))
