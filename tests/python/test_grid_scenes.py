"""Scenes built in Python are those of scene files, key by key."""

import ast
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import trimesh
from grid_scenes import FLAT, PATH

from headrace import DataError, UsageError
from headrace.grid import scenes
from headrace.grid.solver import Layout, parse_scene
from headrace.grid.solver.model import build
from headrace.grid.solver.objects import kinds
from headrace.grid.solver.tables import SHAPES, Keys

ROOT = Path(__file__).parents[2]

CORNERS = {"low": [0.01, 0.02], "high": [0.05, 0.06]}
DEEP = {"low": [0.01, 0.02, 0.03], "high": [0.05, 0.06, 0.07]}


def small(**more: object) -> scenes.Scene:
    return scenes.Scene(
        **{
            "domain": scenes.Domain(size=[0.4, 0.3], spacing=0.01, cpml=0),
            "time": scenes.Time(steps=150),
            "materials": [scenes.Material(id="sand", permittivity=4.0, conductivity=0.01)],
            "objects": [scenes.HalfSpace(id="ground", axis="y", below=0.1, material="sand")],
            "sources": [scenes.Source(position=(0.2, 0.2), waveform="ricker", frequency=0.5e9)],
            "receivers": [scenes.Receiver(id="near", position=np.array([0.25, 0.2]), fields=["ez", "hx"])],
            "snapshots": scenes.Snapshots(interval=0.5e-9),
            "scan": scenes.Scan(step=[0.05, 0.0], count=3),
            "title": "Small",
            "path": PATH,
            **more,
        },
    )


def test_a_scene_of_python_is_that_of_a_file():
    assert small().checked() == parse_scene(FLAT, PATH)
    assert parse_scene(small().text(), PATH) == parse_scene(FLAT, PATH)
    assert tomllib.loads(small().text()) == tomllib.loads(FLAT)


def test_a_file_is_read_into_the_same_classes(tmp_path: Path):
    assert scenes.Scene.parse(FLAT, PATH).content() == small().content()
    path = tmp_path / "small.toml"
    small().write(path)
    again = scenes.Scene.read(path)
    assert again.content() == small().content()
    assert again.path == path


def test_it_runs():
    found = small().run(["cpu:0"], position=1)
    model = build(parse_scene(FLAT, PATH).moved(1), Layout())
    model.solver.step(150)
    assert list(found) == [("near", "ez"), ("near", "hx")]
    assert (found["near", "ez"].values == model.solver.trace(0)).all()
    assert found["near", "ez"].times[0] == pytest.approx(2 * found["near", "hx"].times[0])
    assert np.abs(found["near", "ez"].values).max() > 0


FLAT_OBJECTS = [
    scenes.Box(**CORNERS, material="pec", averaging=False),
    scenes.Cylinder(centre=[0.1, 0.1], radius=0.02, material="sand"),
    scenes.Ellipsoid(centre=[0.1, 0.1], radii=[0.02, 0.03], material="sand"),
    scenes.Triangle(first=[0, 0], second=[0.1, 0], third=[0, 0.1], material="sand", closed=False),
    scenes.Sector(centre=[0.1, 0.1], radius=0.05, start_angle=10, sweep=50, material="sand"),
    scenes.Plate(low=[0.1, 0.1], high=[0.1, 0.2], material="pec"),
    scenes.Wire(position=[0.1, 0.1], material="pec"),
    scenes.HalfSpace(axis="x", above=0.3, material=["pec", "pec", "sand"]),
]
DEEP_OBJECTS = [
    scenes.Box(**DEEP, material="pec"),
    scenes.Sphere(centre=[0.1, 0.1, 0.1], radius=0.02, material="sand"),
    scenes.Cylinder(start=[0.1, 0.1, 0.1], end=[0.1, 0.1, 0.2], radius=0.02, material="sand", closed=True),
    scenes.Ellipsoid(centre=[0.1, 0.1, 0.1], radii=[0.02, 0.03, 0.02], material="sand"),
    scenes.Cone(start=[0.1, 0.1, 0.1], end=[0.1, 0.1, 0.2], start_radius=0.02, end_radius=0, material="sand"),
    scenes.Triangle(first=[0, 0], second=[0.1, 0], third=[0, 0.1], axis="y", low=0.1, high=0.1, material="sand"),
    scenes.Sector(
        centre=[0.1, 0.1], radius=0.05, start_angle=10, sweep=50, axis="z", low=0.1, high=0.2, material="sand"
    ),
    scenes.Plate(low=[0.1, 0.1, 0.1], high=[0.1, 0.2, 0.2], material=["pec", "sand"]),
    scenes.Wire(start=[0.1, 0.1, 0.1], end=[0.1, 0.2, 0.1], material="pec"),
    scenes.HalfSpace(axis="z", below=0.1, material="sand"),
    scenes.Voxels(position=[0, 0, 0], file="cells.npy", material=["sand", "pec"]),
    scenes.Mesh(file="solid.stl", material="sand", position=[0.1, 0.1, 0.1], scale=0.5),
    scenes.FractalBox(
        **DEEP,
        dimension=1.5,
        material=["sand", "pec"],
        seed=3,
        weights=[1, 1, 2],
        spread="even",
        surfaces=[scenes.Surface(side="z+", lowest=0.05, highest=0.09, dimension=1, seed=2)],
    ),
]


def test_every_kind_of_object_is_a_class():
    assert set(SHAPES) == set(kinds())
    assert {one.type for one in (*FLAT_OBJECTS, *DEEP_OBJECTS)} == set(SHAPES)


def test_objects_come_back_as_they_were(tmp_path: Path):
    np.save(tmp_path / "cells.npy", np.indices((3, 4, 5)).sum(axis=0) % 2)
    trimesh.creation.box(extents=[0.1, 0.1, 0.1]).export(tmp_path / "solid.stl")
    flat = small(objects=list(FLAT_OBJECTS))
    assert scenes.Scene.parse(flat.text(), PATH).objects == FLAT_OBJECTS
    deep = small(
        domain=scenes.Domain(
            size=[0.4, 0.3, 0.3], spacing=0.01, cpml=scenes.Cpml(cells=[[0, 5], [5, 5], [0, 0]], order=3)
        ),
        objects=list(DEEP_OBJECTS),
        sources=[scenes.Source(position=[0.1] * 3, waveform="impulse", field="ex", resistance=50, stop=1e-9)],
        plane_waves=[scenes.PlaneWave(direction="+x", waveform="ricker", frequency=1e9, field="ey", amplitude=2.0)],
        receivers=[scenes.Receiver(position=[0.2] * 3)],
        monitors=[
            scenes.Monitor(id="side", type="flux", low=[0.2, 0.1, 0.1], high=[0.2, 0.2, 0.2], band=[1e8, 1e9], count=3),
            scenes.Monitor(type="fields", **DEEP, frequencies=[1e9], fields=["ex"]),
        ],
        scan=None,
        path=tmp_path / "scene.toml",
    )
    again = scenes.Scene.parse(deep.text(), deep.path)
    assert again.objects == DEEP_OBJECTS
    assert again.content() == deep.content()
    assert again.checked().layers.sides == ((0, 5), (5, 5), (0, 0))


def test_classes_have_the_keys_that_the_reader_knows():
    """Every key that the reader asks for is a field of a class, so no part of a file is lost."""
    asked = set()
    folder = ROOT / "python/headrace/grid/solver"
    for name in (
        "reading.py",
        "objects.py",
        "shapes.py",
        "solids.py",
        "sheets.py",
        "voxels.py",
        "meshes.py",
        "monitors.py",
    ):
        for node in ast.walk(ast.parse((folder / name).read_text(encoding="utf-8"))):
            takes = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
            if takes and node.func.attr in {
                "number",
                "whole",
                "text",
                "flag",
                "choice",
                "point",
                "numbers",
                "words",
                "names",
                "pairs",
            }:
                key = node.args[0]
                if isinstance(key, ast.Constant):
                    asked.add(key.value)
    known = {"type", "title"}
    classes = list(Keys.__subclasses__())
    while classes:
        one = classes.pop()
        classes += one.__subclasses__()
        known |= {each.name for each in fields(one)}
    assert asked - known == set()
    assert len(asked) > 40


def test_what_is_wrong_is_named():
    with pytest.raises(UsageError, match=r"scene\.toml: \[domain\] size: 0.305 m along y"):
        small(domain=scenes.Domain(size=[0.4, 0.305], spacing=0.01, cpml=0)).checked()
    with pytest.raises(UsageError, match="there is no material 'sad'; did you mean 'sand'"):
        small(objects=[scenes.Box(**CORNERS, material="sad")]).run(["cpu:0"])
    with pytest.raises(DataError, match="not TOML"):
        scenes.Scene.parse("[domain", "a.toml")
    with pytest.raises(UsageError, match="there is no key 'radiuss'"):
        scenes.Scene.parse(FLAT.replace("below = 0.1", "below = 0.1\nradiuss = 1"))


def test_what_is_wrong_is_not_written(tmp_path: Path):
    path = tmp_path / "none.toml"
    with pytest.raises(UsageError):
        small(time=scenes.Time()).write(path)
    assert not path.exists()


def test_text_is_kept_whatever_it_has():
    title = 'a "title" \\ with\ttabs, umlauts (ü) and \x7f'
    assert scenes.Scene.parse(small(title=title).text(), PATH).title == title


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/scenes.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert len(names["scene"].objects) == 4
    assert np.abs(names["values"]).max() > 0
    assert scenes.Scene.read("cylinders.toml").content() == names["scene"].content()
