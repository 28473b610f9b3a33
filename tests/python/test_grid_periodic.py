"""`periodic` in scenes: a period of a scene gives the traces of several."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid_scenes import PATH

from headrace import UsageError
from headrace.grid import scenes
from headrace.grid.solver import parse_scene
from headrace.grid.solver.painting import lay
from headrace.grid.solver.pictures import Plane, draw
from headrace.grid.solver.views import draw_scene

CPU = ["cpu:0"]
PULSE = {"waveform": "gaussiandotnorm", "frequency": 2e9}
LAST = 0.12  # m, the far wall of x in one period


def strip(copies: int, *, polarisation: str = "tm", at: float = 0.0, **keys: Any) -> scenes.Scene:
    """Periods of a plane side by side, with things at the walls between them; `at` is the wall used by one period."""
    objects, sources, receivers = [], [], []
    for copy in range(copies):
        low = copy * LAST
        for first, last in ((low, low + 0.03), (low + LAST - 0.02, low + LAST)):  # a stone that crosses the wall
            objects.append(scenes.Box(low=[first, 0.1], high=[last, 0.13], material="clay"))
        wall = low + at if copies == 1 else low
        objects.append(scenes.Box(low=[low + 0.05, 0.15], high=[low + LAST, 0.17], material="rigid", averaging=False))
        sources.append(scenes.Source(field="ez" if polarisation == "tm" else "ey", position=[wall, 0.2], **PULSE))
        fields = ["ez", "hx", "hy"] if polarisation == "tm" else ["hz", "ex", "ey"]
        receivers.append(scenes.Receiver(id=f"wall{copy}", position=[wall, 0.11], fields=fields))
        receivers.append(scenes.Receiver(id=f"in{copy}", position=[low + 0.04, 0.14], fields=fields))
    return scenes.Scene(
        domain=scenes.Domain(
            size=[copies * LAST, 0.3],
            spacing=0.01,
            cpml=4,
            precision="double",
            periodic=["x"],
            polarisation=polarisation,
        ),
        time=scenes.Time(steps=120),
        objects=objects,
        materials=[
            scenes.Material(id="clay", permittivity=6.0, conductivity=0.02),
            scenes.Material(id="rigid", permittivity=3.0, conductivity=0.05),
        ],
        sources=sources,
        receivers=receivers,
        **keys,
    )


def traces(scene: scenes.Scene, devices: list[str] = CPU) -> dict[tuple[str, str], np.ndarray]:
    return {key: trace.values for key, trace in scene.run(devices).items()}


@pytest.mark.parametrize("polarisation", ["tm", "te"])
def test_a_period_gives_the_traces_of_several(polarisation: str):
    one, several = traces(strip(1, polarisation=polarisation)), traces(strip(3, polarisation=polarisation))
    far = traces(strip(1, polarisation=polarisation, at=LAST), CPU * 2)
    for (name, field), values in one.items():
        assert np.abs(values).max() > 0, (name, field)
        for copy in range(3):
            np.testing.assert_array_equal(several[f"{name[:-1]}{copy}", field], values)
        np.testing.assert_array_equal(far[name, field], values)


def space(copies: int, far: bool = False) -> scenes.Scene:
    """Periods of space along x and y, with thin objects and a voltage source at the walls between them."""
    size = (0.08, 0.07)
    wires, boxes, sources, receivers = [], [], [], []
    for x in range(copies):
        for y in range(copies):
            low = [x * size[0], y * size[1]]
            wall = [along + by * far for along, by in zip(low, size, strict=True)]
            wires.append(scenes.Wire(start=[*wall, 0.06], end=[*wall, 0.08], material="pec"))
            wires.append(scenes.Wire(start=[*wall, 0.09], end=[*wall, 0.11], material="pec"))
            boxes.append(
                scenes.Box(
                    low=[low[0] + 0.05, low[1] + 0.04, 0.05],
                    high=[low[0] + size[0], low[1] + size[1], 0.07],
                    material=["rigid", "clay", "rigid"],
                )
            )
            sources.append(scenes.Source(position=[*wall, 0.08], resistance=50.0, **PULSE))
            receivers.append(
                scenes.Receiver(id=f"at{x}{y}", position=[low[0] + 0.07, wall[1], 0.07], fields=["ex", "ez", "hy"])
            )
    return scenes.Scene(
        domain=scenes.Domain(
            size=[copies * size[0], copies * size[1], 0.16],
            spacing=0.01,
            cpml=scenes.Cpml(cells=[[0, 0], [0, 0], [4, 4]]),
            precision="double",
            periodic=["x", "y"],
        ),
        time=scenes.Time(steps=60),
        objects=[*wires, *boxes],  # a box covers the ends of wires at its corner, whichever period they are of
        materials=[
            scenes.Material(id="clay", permittivity=6.0, conductivity=0.02),
            scenes.Material(id="rigid", permittivity=3.0, conductivity=0.05),
        ],
        sources=sources,
        receivers=receivers,
    )


def test_a_period_of_space_does_too():
    one, several, far = (traces(scene) for scene in (space(1), space(2), space(1, far=True)))
    for (name, field), values in one.items():
        assert np.abs(values).max() > 0, (name, field)
        for copy in ("00", "01", "10", "11"):
            np.testing.assert_array_equal(several[f"{name[:-2]}{copy}", field], values)
        np.testing.assert_array_equal(far[name, field], values)


def test_edges_at_the_far_wall_are_those_at_the_near_one():
    near, far = (lay(parse_scene(space(1, far=one).text(), PATH)).edges for one in (False, True))
    for name, own in near.items():
        np.testing.assert_array_equal(far[name].cells, own.cells)
        np.testing.assert_array_equal(far[name].materials, own.materials)
    assert near["ez"].cells[0] // (8 * 7) == 5, "the box reaches node (0, 0)"


TEXT = """
[domain]
size = [0.3, 0.2]
spacing = 0.01
cpml = 5
periodic = ["x"]
[time]
steps = 20
[[sources]]
position = [0.3, 0.1]
waveform = "ricker"
frequency = 1e9
"""


def test_periodic_walls_have_no_layers_and_are_kept():
    scene = parse_scene(TEXT, PATH)
    assert scene.layers.sides == ((0, 0), (5, 5))
    assert scene.periodic == (0,)
    assert scene.cell((0.3, 0.1)) == (0, 10)
    assert not [warning for warning in scene.warnings if "lies between nodes" in warning]
    assert scene.digest() != parse_scene(TEXT.replace('["x"]', '["y"]').replace("0.3, 0.1", "0, 0.1"), PATH).digest()
    again = scenes.Scene.parse(TEXT)
    assert list(again.domain.periodic) == ["x"]
    assert scenes.Scene.parse(again.text()).content() == again.content()


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ('["x"]', '["z"]', r"\[domain\] periodic: there is no 'z'"),
        ('["x"]', '"x"', r"\[domain\] periodic: 'x' is not a list of words, such as \['x'\]"),
        ('["x"]', '["x"]\nsymmetry = { x = "electric" }', "periodic: x also has a plane of symmetry"),
        ("cpml = 5", "cpml = { cells = [[5, 0], [5, 5]] }", "periodic: the walls of x are periodic, but have layers"),
        ("cpml = 5", "cpml = 5\nsmoothing = true", "smoothing: cannot be combined with periodic walls"),
        ('["x"]', '["y"]', "on the far wall of the domain, which is a conductor"),
    ],
)
def test_what_cannot_be_is_refused(before: str, after: str, text: str):
    with pytest.raises(UsageError, match=text):
        parse_scene(TEXT.replace(before, after), PATH)


def test_a_plane_wave_cannot_cross_periodic_walls():
    text = TEXT.replace("[[sources]]\nposition = [0.3, 0.1]", '[[plane_waves]]\ndirection = "+y"')
    assert parse_scene(text, PATH).plane_waves
    with pytest.raises(UsageError, match="must lie within 6 to 24, clear of the absorbing layers and walls"):
        parse_scene(text + "low = [0.0, 0.07]\nhigh = [0.3, 0.13]\n", PATH)


def test_flux_through_a_whole_period_is_that_of_several():
    monitor = {"id": "through", "type": "flux", "frequencies": [1e9, 2e9]}
    found = []
    for copies in (1, 3):
        across = scenes.Monitor(low=[0, 0.16], high=[copies * LAST, 0.16], **monitor)
        along = scenes.Monitor(low=[0, 0.05], high=[0, 0.25], **{**monitor, "id": "wall"})
        spectra = strip(copies, monitors=[across, along]).record(CPU).spectra
        found.append((spectra["through", "flux"].values, spectra["wall", "flux"].values))
    assert (np.abs(found[0][0]) > 0).all()
    np.testing.assert_allclose(found[1][0], 3 * found[0][0], rtol=1e-10)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-10, atol=1e-12 * np.abs(found[0][0]).max())


def test_pictures_show_periodic_walls(tmp_path: Path):
    pytest.importorskip("matplotlib")
    scene = parse_scene(TEXT, PATH)
    draw_scene(tmp_path / "scene.svg", scene)
    assert "periodic wall" in (tmp_path / "scene.svg").read_text(encoding="utf-8")
    pixels = []
    for one in (scene, parse_scene(TEXT.replace('periodic = ["x"]', "").replace("0.3, 0.1", "0, 0.1"), PATH)):
        picture = Plane.of(one, "xy")
        draw(tmp_path / "field.png", picture, "ez", picture.frame(np.zeros(one.shape), 0.0))
        pixels.append((tmp_path / "field.png").read_bytes())
    assert pixels[0] != pixels[1]
