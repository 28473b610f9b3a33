"""`headrace grid view`: the content of a scene's picture, before and after a run."""

from pathlib import Path

import numpy as np
import pytest
from grid_scenes import FLAT, changed, flat
from matplotlib.colors import to_rgb
from PIL import Image
from typer.testing import CliRunner

from headrace import UsageError
from headrace.cli import app
from headrace.grid.solver import Layout, Outputs, parse_scene, run_one, run_scan, views
from headrace.grid.solver.scene import Material

CONES = """
[[objects]]
type = "box"
low = [0.05, 0.12]
high = [0.15, 0.22]
material = "pec"

[[sources]]"""


def view(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["grid", "view", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def pixels_of(path: Path, colour: str) -> int:
    """How many pixels have exactly this colour."""
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    wanted = np.round(np.array(to_rgb(colour)) * 255).astype(int)
    return int((np.abs(image - wanted).max(axis=-1) <= 1).sum())


def test_areas_have_the_colours_of_their_materials(tmp_path: Path):
    scene, path = flat(("[[sources]]", CONES)), tmp_path / "a.png"
    views.draw_scene(path, scene)
    colours = views.Colours.for_scene(list(scene.materials.values()))
    sand, metal = (pixels_of(path, colours.of[name]) for name in ("sand", "pec"))
    assert sand > 10_000
    # Ground of 40 x 10 cells, metal of 10 x 10; their patches in the legend and marks take a little.
    assert metal / sand == pytest.approx(0.25, rel=0.05)


def test_materials_have_colours_of_their_own():
    some = [Material("air"), Material("steel", conductivity=1e6), Material("a", 4.0), Material("b", 4.0, 2.0)]
    colours = views.Colours.for_scene(some).of
    assert len(set(colours.values())) == 4
    assert colours["air"] == "#ffffff"


def test_layers_are_hatched(tmp_path: Path):
    found = []
    for cpml in ("cpml = 0", "cpml = 8"):
        path = tmp_path / f"{cpml[-1]}.png"
        views.draw_scene(path, flat(("cpml = 0", cpml)))
        found.append(np.asarray(Image.open(path).convert("L")).mean())
    assert found[1] < found[0]


def test_three_cuts_through_the_first_source(tmp_path: Path):
    scene = flat(
        ("[0.4, 0.3]", "[0.4, 0.3, 0.2]"),
        ("position = [0.2, 0.2]", "position = [0.2, 0.2, 0.05]"),
        ("position = [0.25, 0.2]", "position = [0.25, 0.2, 0.05]"),
        ("step = [0.05, 0.0]", "step = [0.05, 0.0, 0.0]"),
        (
            "[[sources]]",
            '[[objects]]\ntype = "plate"\nlow = [0.1, 0.12, 0.05]\nhigh = [0.3, 0.18, 0.05]\nmaterial = "pec"\n'
            "[[sources]]",
        ),
    )
    assert [plane.index for plane in views.planes_of(scene)] == [5, 20, 20]
    path = tmp_path / "a.png"
    views.draw_scene(path, scene)
    without = tmp_path / "b.png"
    views.draw_scene(without, parse_scene(scene_without_plate(scene.path), scene.path))
    metal = views.Colours.for_scene(list(scene.materials.values())).of["pec"]
    assert pixels_of(path, metal) > pixels_of(without, metal) + 100


def scene_without_plate(_path: Path) -> str:
    return changed(
        ("[0.4, 0.3]", "[0.4, 0.3, 0.2]"),
        ("position = [0.2, 0.2]", "position = [0.2, 0.2, 0.05]"),
        ("position = [0.25, 0.2]", "position = [0.25, 0.2, 0.05]"),
        ("step = [0.05, 0.0]", "step = [0.05, 0.0, 0.0]"),
    )


def test_the_command_writes_beside_the_scene(tmp_path: Path):
    path = tmp_path / "small.toml"
    path.write_text(FLAT, encoding="utf-8")
    assert f"Wrote {tmp_path / 'small.png'}" in view(path).replace("\n", "")
    assert size_of(tmp_path / "small.png")[0] > 800
    view(path, "-o", tmp_path / "b.svg")
    assert "<svg" in (tmp_path / "b.svg").read_text(encoding="utf-8")


def test_traces_come_below_the_scene(tmp_path: Path):
    path = tmp_path / "small.toml"
    path.write_text(FLAT, encoding="utf-8")
    scene = parse_scene(FLAT, path)
    run_one(scene, Layout(), Outputs(traces=tmp_path / "one.h5"))
    run_scan(scene, Layout(), Outputs(traces=tmp_path / "scan.h5"))
    heights = []
    for arguments in ((), ("--traces", tmp_path / "one.h5", "--field", "hx"), ("--traces", tmp_path / "scan.h5")):
        view(path, "-o", tmp_path / "a.png", *arguments)
        heights.append(size_of(tmp_path / "a.png")[1])
    assert heights[0] < heights[1] == heights[2]


def test_receivers_that_there_are_not(tmp_path: Path):
    scene = flat()
    assert views.key_of(scene, None, "hx") == ("near", "hx")
    with pytest.raises(UsageError, match="there is no receiver that records hy"):
        views.key_of(scene, None, "hy")
    with pytest.raises(UsageError, match="no receiver 'far' that records ez"):
        views.key_of(scene, "far", "ez")
    path = tmp_path / "small.toml"
    path.write_text(FLAT, encoding="utf-8")
    done = CliRunner().invoke(app, ["grid", "view", str(path), "-o", str(tmp_path / "none" / "a.png")])
    assert done.exit_code != 0
