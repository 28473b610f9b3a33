"""Dispersive materials in scenes: their keys, errors, memory, checkpoints, scans and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import scenes
from headrace.grid.solver import checkpoint, memory, poles
from headrace.grid.solver.model import Layout, build
from headrace.grid.solver.reading import parse_scene
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.views import draw_scene

PATH = Path("wet.toml")
WATER = '{ type = "debye", difference = 75.2, relaxation_time = 9.231e-12 }'
METAL = '{ type = "lorentz", difference = 1.5, frequency = 14e9, damping = 6e9 }'


def text_of(given: str, *, size: str = "[0.05, 0.04]", domain: str = "", more: str = "", material: str = "wet") -> str:
    centre = [0.02] * (size.count(",") + 1)
    return f"""
[domain]
size = {size}
spacing = 1e-3
cpml = 4
{domain}
[time]
steps = 60
[[materials]]
id = "wet"
permittivity = 4.9
{given}
[[materials]]
id = "clay"
permittivity = 5
poles = [{METAL}]
[[objects]]
type = "half_space"
axis = "y"
below = 0.02
material = "{material}"
[[sources]]
position = {centre}
waveform = "ricker"
frequency = 5e9
[[receivers]]
position = {[0.025] * len(centre)}
{more}
"""


def scene_of(given: str = f"poles = [{WATER}]", **options: str) -> Scene:
    return parse_scene(text_of(given, **options), PATH)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('poles = [{ type = "debye", difference = 1, relaxation_time = -1e-12 }]', "-1e-12 is not above 0"),
        ('poles = [{ type = "debye", difference = 1, relaxation_time = 1e-13 }]', "below the time step"),
        ('poles = [{ type = "lorentz", difference = -1, frequency = 9e9, damping = 1e9 }]', "generate energy"),
        ('poles = [{ type = "lorentz", difference = 1, frequency = 9e11, damping = 1e9 }]', "quarter of a turn"),
        ('poles = [{ type = "lorentz", difference = 1, frequency = 9e9, damping = -1 }]', "-1 is below 0"),
        ('poles = [{ type = "drude", frequency = 9e9, rate = 0 }]', "0 is not above 0"),
        (f"conductivity = 1e10\npoles = [{WATER}]", "a perfect conductor, which cannot have poles"),
        ('poles = [{ type = "cole", difference = 1 }]', "there is no 'cole'"),
        ('poles = [{ type = "debye", difference = 1 }]', "relaxation_time: missing"),
    ],
)
def test_poles_that_cannot_be_are_one_line_that_names_the_material(given: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        scene_of(given)
    told = str(caught.value)
    assert "\n" not in told
    assert "[[materials]] 1 'wet'" in told


def test_a_plasma_says_which_courant_it_takes() -> None:
    given = 'poles = [{ type = "drude", frequency = 60e9, rate = 1e9 }]'
    with pytest.raises(UsageError, match=r"\[\[materials\]\] 1 'wet' poles: .* set \[time\] courant to 0\.\d+"):
        parse_scene(text_of(given).replace("permittivity = 4.9", "permittivity = 1"), PATH)


def test_smoothing_does_not_go_with_poles() -> None:
    with pytest.raises(UsageError, match="smoothing: cannot be combined with dispersive materials"):
        scene_of(domain="smoothing = true")
    assert scene_of("", domain="smoothing = true").smoothing


def test_a_plane_wave_does_not_begin_in_a_dispersive_medium() -> None:
    more = '[[plane_waves]]\ndirection = "+x"\nwaveform = "ricker"\nfrequency = 5e9\n'
    more += "low = [0.01, 0.01]\nhigh = [0.03, 0.03]"
    scene = parse_scene(text_of(f"poles = [{WATER}]", more=more).replace("below = 0.02", "below = 0.04"), PATH)
    with pytest.raises(UsageError, match="which is dispersive"):
        build(scene, Layout())


@pytest.mark.parametrize("size", ["[0.05, 0.04]", "[0.05, 0.04, 0.03]"])
def test_memory_is_what_the_solver_has(size: str) -> None:
    scene = scene_of(size=size)
    solver: Any = build(scene, Layout()).solver
    kept = [name for name in solver.state() if name.startswith(("pole_", "psi_", "e", "h"))]
    coefficients = 2 if scene.dimensions == 3 else 4
    assert memory.arrays_of(scene) == len(kept) + coefficients
    plain = scene_of("", size=size)
    assert memory.arrays_of(plain) == len([name for name in kept if not name.startswith("pole_")]) + min(
        3, coefficients
    )


def test_only_what_is_used_needs_memory() -> None:
    assert poles.values_of(scene_of(material="free_space")) == 0
    assert poles.values_of(scene_of()) == 1
    assert poles.values_of(scene_of(material="clay")) == 2
    meeting = '[[objects]]\ntype = "box"\nlow = [0, 0]\nhigh = [0.02, 0.01]\nmaterial = "clay"'
    assert poles.values_of(scene_of(more=meeting)) == 3
    assert poles.values_of(scene_of(more=meeting + "\naveraging = false")) == 2


def test_a_material_without_averaging_gives_its_edges_its_poles() -> None:
    scene = scene_of(f"averaging = false\npoles = [{WATER}]")
    assert not scene.objects[0].averaging
    means, own = (build(one, Layout()).solver for one in (scene_of(), scene))
    for solver in (means, own):
        solver.step(60)
    assert not np.array_equal(means.field("ez"), own.field("ez"))


def test_python_scenes_hold_poles_and_read_them_back() -> None:
    made = scenes.Scene(
        scenes.Domain(size=[0.05, 0.04], spacing=1e-3),
        scenes.Time(steps=30),
        materials=[
            scenes.Material(
                id="wet",
                permittivity=4.9,
                poles=[scenes.Pole(type="debye", difference=75.2, relaxation_time=9.231e-12)],
                averaging=False,
            )
        ],
    )
    again = scenes.Scene.parse(made.text())
    assert again.materials == made.materials
    assert again.checked().digest() == made.checked().digest()


def test_poles_are_part_of_what_a_checkpoint_is_of(tmp_path: Path) -> None:
    scene = scene_of()
    solver = build(scene, Layout()).solver
    solver.step(20)
    checkpoint.save(tmp_path / "state.npz", scene, 20, solver.state())
    solver.step(40)
    other = build(scene, Layout(("cpu:0", "cpu:0"))).solver
    checkpoint.restore(tmp_path / "state.npz", scene, other)
    other.step(40)
    assert np.array_equal(solver.field("ez"), other.field("ez"))
    drier = scene_of(f"poles = [{WATER.replace('75.2', '75.1')}]")
    with pytest.raises(UsageError, match="another scene"):
        checkpoint.restore(tmp_path / "state.npz", drier, build(drier, Layout()).solver)


def test_a_source_in_a_dispersive_medium_drives_its_current() -> None:
    """A pole too slow to matter acts like no pole; one as fast as the step allows acts like permittivity."""

    def peak(given: str) -> float:
        model = build(parse_scene(text_of(given).replace("below = 0.02", "below = 0.04"), PATH), Layout())
        model.solver.step(60)
        return float(np.abs(model.solver.trace(0)).max())

    plain = peak("")
    assert peak('poles = [{ type = "debye", difference = 1, relaxation_time = 1e-3 }]') == pytest.approx(
        plain, rel=1e-5
    )
    fast = peak('poles = [{ type = "debye", difference = 1e-3, relaxation_time = 2.4e-12 }]')
    assert fast == pytest.approx(plain, rel=1e-2)
    assert fast != plain


def test_a_resisting_source_keeps_the_poles_around_it() -> None:
    given = text_of(f"poles = [{WATER}]").replace('waveform = "ricker"', 'waveform = "ricker"\nresistance = 50')
    model = build(parse_scene(given, PATH), Layout())
    model.solver.step(60)
    assert np.isfinite(model.solver.trace(0)).all()


def test_a_picture_names_the_poles(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_scene(tmp_path / "scene.svg", scene_of())
    assert (tmp_path / "scene.svg").stat().st_size > 0
