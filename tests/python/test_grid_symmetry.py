"""`symmetry` in scenes: parts of symmetric scenes give the traces of the whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid_scenes import PATH

from headrace import UsageError
from headrace.grid import scenes
from headrace.grid.solver import parse_scene
from headrace.grid.solver.pictures import Plane, draw
from headrace.grid.solver.views import draw_scene

CPU = ["cpu:0"]
PULSE = {"waveform": "gaussiandotnorm", "frequency": 1e9}


def traces(scene: scenes.Scene) -> dict[tuple[str, str], np.ndarray]:
    return {key: trace.values for key, trace in scene.run(CPU).items()}


def check_alike(part: scenes.Scene, whole: scenes.Scene, most: float = 1e-12) -> None:
    here, there = traces(part), traces(whole)
    assert here.keys() == there.keys()
    for key, right in there.items():
        assert np.abs(right).max() > 0, key
        np.testing.assert_allclose(here[key], right, rtol=0, atol=most * np.abs(right).max(), err_msg=str(key))


def plane(
    low: float, kind: str, *, smoothing: bool = False, source: Any = None, polarisation: str = "tm"
) -> scenes.Scene:
    """The right half of a scene, from x = 0, or with `low` below 0 all of it, moved so that the domain begins at 0."""
    symmetry = {"x": kind} if low == 0 else None

    def moved(*point: float) -> list[float]:
        return [point[0] - low, point[1]]

    mirrored = -1 if kind == "electric" else 1
    # The fields along the wall, which lie in it, and all of the plane.
    along, fields = ("ez", ["ez", "hx", "hy"]) if polarisation == "tm" else ("ey", ["hz", "ex", "ey"])
    sources = source or [(along, (0.08, 0.2), 1.0)]
    on = [along] if polarisation == "te" else ["ez", "hx"]
    found = []
    for field, (x, y), amplitude in sources:
        found.append(scenes.Source(position=moved(x, y), field=field, amplitude=amplitude, **PULSE))
        if low < 0 and x:
            found.append(scenes.Source(position=moved(-x, y), field=field, amplitude=mirrored * amplitude, **PULSE))
    return scenes.Scene(
        scenes.Domain(
            size=[0.24 - low, 0.28],
            spacing=[0.01, 0.008],
            precision="double",
            cpml=6,
            smoothing=smoothing,
            symmetry=symmetry,
            polarisation=polarisation,
        ),
        scenes.Time(steps=180),
        materials=[scenes.Material(id="clay", permittivity=6.0, conductivity=0.02)],
        objects=[
            scenes.HalfSpace(axis="y", below=0.1, material="clay"),
            scenes.Cylinder(centre=moved(0, 0.1), radius=0.043, material="pec" if smoothing else "clay"),
        ],
        sources=found,
        receivers=[
            scenes.Receiver(id="beside", position=moved(0.13, 0.16), fields=fields),
            *([scenes.Receiver(id="on", position=moved(0, 0.18), fields=on)] if kind == "magnetic" else []),
        ],
    )


@pytest.mark.parametrize("polarisation", ["tm", "te"])
@pytest.mark.parametrize("kind", ["magnetic", "electric"])
def test_half_of_a_plane_gives_the_traces_of_the_whole(kind: str, polarisation: str):
    check_alike(*(plane(low, kind, polarisation=polarisation) for low in (0, -0.24)))


def test_smoothing_continues_beyond_the_wall():
    check_alike(plane(0, "magnetic", smoothing=True), plane(-0.24, "magnetic", smoothing=True), 1e-9)


@pytest.mark.parametrize(("polarisation", "field"), [("tm", "ez"), ("te", "ey")])
def test_a_source_in_the_plane_is_that_of_the_whole(polarisation: str, field: str):
    source = [(field, (0.0, 0.2), 1.0)]
    check_alike(*(plane(low, "magnetic", source=source, polarisation=polarisation) for low in (0, -0.24)))


def space(part: bool) -> scenes.Scene:
    """A quarter of a scene around a dipole along z with a resistance: the planes of x and y are magnetic walls."""
    size, centre = ([0.1, 0.12], [0.0, 0.0]) if part else ([0.2, 0.24], [0.1, 0.12])

    def moved(*point: float) -> list[float]:
        return [at + by for at, by in zip(point, (*centre, 0.0), strict=True)]

    return scenes.Scene(
        scenes.Domain(
            size=[*size, 0.2],
            spacing=[0.01, 0.012, 0.008],
            precision="double",
            cpml=4,
            symmetry={"x": "magnetic", "y": "magnetic"} if part else None,
        ),
        scenes.Time(steps=120),
        objects=[
            scenes.Box(low=moved(0.0 if part else -0.05, 0.0 if part else -0.06, 0.04), high=moved(0.05, 0.06, 0.08),
                       material="clay"),
            scenes.Wire(start=moved(0, 0, 0.088), end=moved(0, 0, 0.12), material="pec"),
            scenes.Wire(start=moved(0, 0, 0.128), end=moved(0, 0, 0.16), material="pec"),
        ],
        materials=[scenes.Material(id="clay", permittivity=6.0, conductivity=0.02)],
        sources=[scenes.Source(position=moved(0, 0, 0.12), resistance=50.0, **PULSE)],
        receivers=[
            scenes.Receiver(id="off", position=moved(0.04, 0.048, 0.12), fields=["ex", "ey", "ez", "hx", "hy", "hz"]),
            scenes.Receiver(id="at", position=moved(0, 0, 0.12), fields=["ez"]),
        ],
    )  # fmt: skip


def test_a_quarter_of_space_gives_the_traces_of_the_whole():
    check_alike(space(part=True), space(part=False))


TEXT = """
[domain]
size = [0.3, 0.2]
spacing = 0.01
cpml = 5
symmetry = {{ {} }}
[time]
steps = 20
[[sources]]
position = [0.0, 0.1]
waveform = "ricker"
frequency = 1e9
"""


def test_walls_that_are_planes_of_symmetry_have_no_layers():
    scene = parse_scene(TEXT.format('x = "magnetic"'), PATH)
    assert scene.layers.sides == ((0, 5), (5, 5))
    assert scene.symmetry == ("magnetic", None)
    assert scene.digest() != parse_scene(TEXT.format('x = "electric"'), PATH).digest()
    again = scenes.Scene.parse(TEXT.format('x = "magnetic"'))
    assert again.domain.symmetry == {"x": "magnetic"}
    assert scenes.Scene.parse(again.text()).content() == again.content()


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ('x = "mirror"', r"\[domain.symmetry\] x: there is no 'mirror'; there are electric, magnetic"),
        ('z = "magnetic"', "there is no key 'z'"),
    ],
)
def test_other_symmetries_are_refused(keys: str, text: str):
    with pytest.raises(UsageError, match=text):
        parse_scene(TEXT.format(keys), PATH)


def test_a_layer_at_a_plane_of_symmetry_is_refused():
    text = TEXT.format('x = "magnetic"').replace("cpml = 5", "cpml = { cells = [[5, 5], [5, 0]] }")
    with pytest.raises(
        UsageError, match=r"symmetry: the mirror image begins at the low wall of x, .* layer of 5 cells"
    ):
        parse_scene(text, PATH)


def test_dispersive_materials_of_a_plane_with_ez_are_refused():
    text = TEXT.format('x = "magnetic"') + (
        '[[materials]]\nid = "wet"\npoles = [{ type = "debye", difference = 2.0, relaxation_time = 1e-10 }]\n'
        '[[objects]]\ntype = "box"\nlow = [0, 0]\nhigh = [0.1, 0.1]\nmaterial = "wet"\n'
    )
    with pytest.raises(UsageError, match=r"symmetry: with polarisation = .tm. a magnetic wall cannot be combined with"):
        parse_scene(text, PATH)
    te = text.replace("cpml = 5", 'cpml = 5\npolarisation = "te"').replace("position", 'field = "ey"\nposition')
    assert parse_scene(te, PATH).magnetic_walls


def test_pictures_show_planes_of_symmetry(tmp_path: Path):
    pytest.importorskip("matplotlib")
    scene = parse_scene(TEXT.format('x = "magnetic", y = "electric"').replace("0.0, 0.1", "0.1, 0.1"), PATH)
    draw_scene(tmp_path / "scene.svg", scene)
    text = (tmp_path / "scene.svg").read_text(encoding="utf-8")
    assert "mirror, magnetic wall" in text
    assert "mirror, electric wall" in text
    plain = parse_scene(TEXT.format("").replace("0.0, 0.1", "0.1, 0.1"), PATH)
    pixels = []
    for one in (scene, plain):
        picture = Plane.of(one, "xy")
        draw(tmp_path / "field.png", picture, "ez", picture.frame(np.zeros(one.shape), 0.0))
        pixels.append((tmp_path / "field.png").read_bytes())
    assert pixels[0] != pixels[1]
