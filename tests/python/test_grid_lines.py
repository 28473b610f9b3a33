"""Transmission lines that end in a scene, against a grid in NumPy with the line's own grid of voltages and currents."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace import UsageError
from headrace.grid.solver import parse_scene
from headrace.grid.solver.model import Layout, build, samples
from headrace.grid.solver.scene import LIGHT, VACUUM_PERMEABILITY, VACUUM_PERMITTIVITY, Material, Scene

Values = NDArray[np.float64]

CELL, COUNT, FEED, SEEN = 1e-3, 14, (6, 7, 7), (9, 9, 8)
TEXT = """\
[domain]
size = [0.014, 0.014, 0.014]
spacing = 0.001
cpml = 0
precision = "double"
[time]
steps = {steps}
courant = {courant}
[[sources]]
position = [0.006, 0.007, 0.007]
waveform = "gaussian"
frequency = {frequency}
amplitude = 2
resistance = {ohms}
line = true
[[receivers]]
id = "near"
position = [0.009, 0.009, 0.008]
"""


def scene_of(ohms: float = 50, frequency: float = 6e9, steps: int = 260, courant: float = 1) -> Scene:
    text = TEXT.format(ohms=ohms, frequency=frequency, steps=steps, courant=courant)
    return parse_scene(text, Path("line.toml"))


def coupled(scene: Scene, ohms: float) -> Values:
    """Ez at the receiver, of a box in plain NumPy whose edge at the feed is the last node of a line."""
    ratio, wave, dt = 3**-0.5, scene.sources[0].wave, scene.dt
    shape = (COUNT + 1,) * 3
    e, h = [np.zeros(shape) for _ in range(3)], [np.zeros(shape) for _ in range(3)]
    source = scene.steps
    last = source + 5
    voltages, currents = np.zeros(last + 1), np.zeros(last)
    found = np.zeros(scene.steps)
    for step in range(scene.steps):
        begin = np.array([step * dt])
        for axis in range(3):
            first, second = (axis + 1) % 3, (axis + 2) % 3
            curl = _forward(e[second], first) - _forward(e[first], second)
            h[axis] -= dt / VACUUM_PERMEABILITY / CELL * curl
        currents -= ratio / ohms * np.diff(voltages)
        currents[source - 1] += ratio / ohms * wave.at(begin, begin + dt / 2, dt)[0]
        for axis in range(3):
            first, second = (axis + 1) % 3, (axis + 2) % 3
            curl = _backward(h[second], first) - _backward(h[first], second)
            if axis == 2:
                around = CELL * curl[FEED]
            e[axis] += dt / VACUUM_PERMITTIVITY / CELL * curl
            for across in (first, second):
                for wall in (0, COUNT):
                    e[axis][tuple(wall if one == across else slice(None) for one in range(3))] = 0
        voltages[1:-1] -= ratio * ohms * np.diff(currents)
        voltages[-1] -= ratio * ohms * (around - currents[-1])
        voltages[source] += ratio * wave.at(begin, begin, dt)[0]
        e[2][FEED] = -voltages[-1] / CELL
        found[step] = e[2][SEEN]
    return found


def _forward(values: Values, axis: int) -> Values:
    return np.diff(values, axis=axis, append=0)


def _backward(values: Values, axis: int) -> Values:
    return np.diff(values, axis=axis, prepend=0)


@pytest.mark.parametrize(
    ("ohms", "frequency", "courant", "most"),
    [(50, 1.5e9, 1, 2e-4), (50, 6e9, 1, 2e-3), (150, 6e9, 1, 2e-3), (75, 3e9, 0.6, 1e-3)],
)
def test_an_edge_where_a_line_ends_is_as_with_the_line(ohms: float, frequency: float, courant: float, most: float):
    scene = scene_of(ohms, frequency, round(2.2 / frequency * LIGHT / CELL * 3**0.5 / courant), courant)
    model = build(scene, Layout())
    model.solver.step(scene.steps)
    ours, wanted = model.solver.trace(model.receivers["near", "ez"]), coupled(scene, ohms)
    assert np.abs(ours - wanted).max() < most * np.abs(wanted).max()


def test_a_wave_leaves_a_long_line_after_its_pulse():
    scene = scene_of(steps=3000)
    found = samples(scene, scene.sources[0], Material("edge", permittivity=3.0, conductivity=20.0))
    assert found.size < 3000
    assert np.abs(found[-1]) < 1e-6 * np.abs(found).max()


def test_what_the_edge_was_made_of_does_not_count():
    traces = []
    for more in ("", '[[materials]]\nid = "clay"\npermittivity = 9\nconductivity = 0.5\n[[objects]]\ntype = "wire"\n'
                 'start = [0.006, 0.007, 0.007]\nend = [0.006, 0.007, 0.008]\nmaterial = "clay"\n'):  # fmt: skip
        text = TEXT.format(ohms=50, frequency=6e9, steps=80, courant=1) + more
        scene = parse_scene(text, Path("line.toml"))
        model = build(scene, Layout())
        model.solver.step(80)
        traces.append(model.solver.trace(0))
    assert (traces[0] == traces[1]).all()


def test_a_line_needs_a_resistance():
    text = TEXT.format(ohms=50, frequency=6e9, steps=80, courant=1).replace("resistance = 50\n", "")
    with pytest.raises(UsageError, match="line: is a transmission line, which needs its resistance"):
        parse_scene(text, Path("line.toml"))


def test_a_line_is_another_scene():
    scene = scene_of()
    text = TEXT.format(ohms=50, frequency=6e9, steps=260, courant=1)
    assert parse_scene(text.replace("line = true\n", ""), scene.path).digest() != scene.digest()
