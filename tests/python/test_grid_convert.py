"""gprMax's input files become scenes, and what is not covered is refused by line and name."""

import re
from pathlib import Path

import pytest

from headrace import DataError, SystemError, UsageError  # noqa: A004
from headrace.grid.solver.gprmax import Converted, convert, read
from headrace.grid.solver.reading import parse_scene
from headrace.grid.solver.shapes import Box, Cylinder, Sphere

FLAT = """\
#title: B-scan from a "metal" cylinder
#domain: 0.240 0.210 0.002
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 3e-9
Lines that begin otherwise are comments.
## and so are these

#material: 6 0.01 1 0 half_space
#waveform: ricker 1 1.5e9 my_ricker
#hertzian_dipole: z 0.100 0.170 0 my_ricker
#rx: 0.140 0.170 0
#box: 0 0 0 0.240 0.170 0.002 half_space
#cylinder: 0.120 0.080 0 0.120 0.080 0.002 0.010 pec n
"""

DEEP = """\
#domain: 0.1 0.1 0.1
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 300
#waveform: gaussian 2 1e9 pulse
#hertzian_dipole: x 0.05 0.05 0.05 pulse
#rx: 0.06 0.05 0.05 probe Ex Hz
#sphere: 0.05 0.05 0.03 0.01 pec n
#cylinder: 0.02 0.05 0.07 0.08 0.05 0.07 0.01 free_space n
"""

PATH = Path("cylinder.in")


def converted(text: str, old: str = "", new: str = "") -> Converted:
    assert old == "" or text.count(old) == 1
    return convert(text.replace(old, new) if old else text, PATH)


def test_two_dimensions():
    found = converted(FLAT)
    scene = found.scene
    assert scene.title == 'B-scan from a "metal" cylinder'
    assert (scene.shape, scene.spacing, scene.cpml) == ((120, 105), 0.002, 10)
    assert scene.steps * scene.dt == pytest.approx(3e-9, rel=0.01)
    material = scene.materials["half_space"]
    assert (material.permittivity, material.conductivity, material.permeability) == (6.0, 0.01, 1.0)
    assert [one.shape for one in scene.objects] == [Box((0.0, 0.0), (0.24, 0.17)), Sphere((0.12, 0.08), 0.01)]
    assert [one.material for one in scene.objects] == ["half_space", "pec"]
    source = scene.sources[0]
    assert (source.field, source.position, source.waveform) == ("ez", (0.1, 0.17), "ricker")
    assert (source.frequency, source.amplitude) == (1.5e9, 1.0)
    assert (scene.receivers[0].name, scene.receivers[0].fields) == ("rx1", ("ez", "hx", "hy"))
    assert len(found.notes) == 1
    assert "averages them" in found.notes[0]


def test_three_dimensions():
    found = converted(DEEP)
    scene = found.scene
    assert (scene.title, scene.shape, scene.steps) == ("cylinder", (50, 50, 50), 300)
    assert (scene.sources[0].field, scene.sources[0].amplitude, scene.sources[0].waveform) == ("ex", 2.0, "gaussian")
    assert (scene.receivers[0].name, scene.receivers[0].fields) == ("probe", ("ex", "hz"))
    assert [one.shape for one in scene.objects] == [
        Sphere((0.05, 0.05, 0.03), 0.01),
        Cylinder((0.02, 0.05, 0.07), (0.08, 0.05, 0.07), 0.01),
    ]
    assert found.notes == []


def test_the_text_is_the_scene():
    found = converted(FLAT)
    assert parse_scene(found.text, Path("cylinder.toml")) == found.scene


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("#rx:", "#snapshot:", "cylinder.in:11: #snapshot: not covered"),
        ("#material:", "#materials:", "cylinder.in:8: #materials: not covered; did you mean 'material'?"),
        ("#rx:", "#rx ", "cylinder.in:11: '#rx  0.140 0.170 0' is not a command"),
        ("6 0.01 1 0", "6 0.01 1 2", "#material: a magnetic loss of 2 Ohm/m is not covered"),
        ("6 0.01 1 0", "6 0.01 1", "#material: 4 parameters, not 5"),
        ("6 0.01 1 0", "6 0.01 one 0", "#material: 'one' is not a number"),
        ("ricker 1 ", "sine 1 ", "cylinder.in:9: #waveform: 'sine' is not covered; ricker and gaussian are"),
        ("0.170 0 my_ricker", "0.170 0 my_riker", "there is no waveform 'my_riker'; did you mean 'my_ricker'?"),
        ("0 my_ricker", "0 my_ricker 0 1e-9", "#hertzian_dipole: a time to start and one to stop are not covered"),
        ("dipole: z", "dipole: x", "#hertzian_dipole: in two dimensions a dipole along z is covered"),
        ("dipole: z", "dipole: w", "'w' is not x, y or z"),
        ("dz: 0.002 0.002", "dz: 0.002 0.001", "#dx_dy_dz: cells of 0.002 x 0.001 x 0.002 m are no cubes"),
        ("0.240 0.210 0.002\n#dx", "0.002 0.210 0.240\n#dx", "#domain: one cell along x"),
        ("0.002 half_space", "0.002 half_space pec pec", "#box: a material for each axis (anisotropy) is not covered"),
        ("0.002 half_space", "0.002", "#box: 6 parameters, not 6 numbers and a material"),
        ("#cylinder: 0.120", "#cylinder: 0.110", "#cylinder: in two dimensions only cylinders along z"),
        ("#rx: 0.140 0.170 0", "#rx: 0.140 0.170 0 a Ey", "#rx: the output 'ey' is not covered"),
        ("#time_window: 3e-9\n", "", "cylinder.in: there is no #time_window"),
        ("#title:", "#domain: 1 1 1\n#title:", "cylinder.in:3: #domain: there is another one above"),
        ("0.002 half_space", "0.002 halfspace", "there is no material 'halfspace'; did you mean 'half_space'?"),
        ("#rx: 0.140", "#rx: 0.340", "is not in the domain"),
    ],
)
def test_refusals(old: str, new: str, says: str):
    with pytest.raises(UsageError, match=re.escape(says)):
        converted(FLAT, old, new)


def test_files_that_are_none(tmp_path: Path):
    with pytest.raises(SystemError, match="there is no file"):
        read(tmp_path / "none.in")
    (tmp_path / "bad.in").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"bad\.in: not text"):
        read(tmp_path / "bad.in")
