"""gprMax's input files become scenes; unsupported commands are refused by line and name."""

import errno
import os
import platform
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from headrace import DataError, Error, SystemError, UsageError  # noqa: A004
from headrace.grid import Debye
from headrace.grid.gprmax import Converted, InputFileError, blocks, convert, read
from headrace.grid.solver.model import paint
from headrace.grid.solver.reading import parse_scene
from headrace.grid.solver.scene import LIGHT
from headrace.grid.solver.shapes import Box, Cylinder, Sphere
from headrace.grid.solver.waveforms import Wave

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

# A model of version 2, in two dimensions.
OLD = """\
#title: an old model
#domain: 0.4 0.3
#dx_dy: 0.01 0.01
#time_window: 4e-9
#number_of_media: 4
#medium: 4.0 0.0 0.0 0.01 1.0 0.0 sand
#abc_type: pml
#pml_layers: 8
#box: 0 0 0.4 0.1 sand
#cylinder: 0.2 0.05 0.02 pec
#triangle: 0.05 0.15 0.15 0.15 0.1 0.25 sand
#line_source: 1.0 600e6 ricker source
#analysis: 3 old.out b
#tx: 0.15 0.2 source 0.0 4e-9
#rx: 0.25 0.2
#tx_steps: 0.02 0
#rx_steps: 0.02 0
#end_analysis:
"""

PATH = Path("cylinder.in")
USUAL = "constant forward 0 0 constant forward 1 1 quartic forward 0 None"


def converted(text: str, old: str = "", new: str = "", **more: object) -> Converted:
    assert old == "" or text.count(old) == 1
    return convert(text.replace(old, new) if old else text, PATH, **more)


def test_two_dimensions():
    found = converted(FLAT)
    scene = found.scene
    assert scene.title == 'B-scan from a "metal" cylinder'
    assert (scene.shape, scene.spacing, scene.cpml) == ((120, 105), (0.002, 0.002), 10)
    assert scene.steps * scene.dt == pytest.approx(3e-9, rel=0.01)
    material = scene.materials["half_space"]
    assert (material.permittivity, material.conductivity, material.permeability) == (6.0, 0.01, 1.0)
    assert [one.shape for one in scene.objects] == [Box((0.0, 0.0), (0.24, 0.17)), Sphere((0.12, 0.08), 0.01)]
    assert [one.name for one in scene.objects] == ["box-line12", "cylinder-line13"]
    assert [one.material for one in scene.objects] == ["half_space", "pec"]
    source = scene.sources[0]
    assert (source.field, source.position) == ("ez", (0.1, 0.17))
    assert source.wave == Wave("ricker", 1.5e9, 1.0, 0.0)
    assert (scene.receivers[0].name, scene.receivers[0].fields) == ("rx1", ("ez", "hx", "hy"))
    assert [one.averaging for one in scene.objects] == [True, False]
    assert len(found.notes) == 1
    assert "traces begin after the first step" in found.notes[0]


def test_the_step_is_the_longest_and_samples_are_those_of_gprmax():
    scene = converted(DEEP).scene
    assert scene.dt == pytest.approx(0.002 / LIGHT / 3**0.5, rel=1e-12)
    # gprMax counts time 0 as its first iteration.
    assert scene.steps == 299
    slow = converted(DEEP, "#time_window", "#time_step_stability_factor: 0.5\n#time_window").scene
    assert slow.dt == pytest.approx(scene.dt / 2)
    seconds = converted(DEEP, "window: 300", f"window: {300 * scene.dt!r}").scene
    assert seconds.steps == 300


def test_three_dimensions():
    found = converted(DEEP)
    scene = found.scene
    assert (scene.title, scene.shape) == ("cylinder", (50, 50, 50))
    assert scene.sources[0].field == "ex"
    assert scene.sources[0].wave == Wave("gaussian", 1e9, 2.0, 0.0)
    assert (scene.receivers[0].name, scene.receivers[0].fields) == ("probe", ("ex", "hz"))
    shapes = [one.shape for one in scene.objects]
    assert isinstance(shapes[0], Sphere)
    assert isinstance(shapes[1], Cylinder)
    assert (*shapes[0].centre, shapes[0].radius) == pytest.approx((0.05, 0.05, 0.03, 0.01))
    assert (*shapes[1].start, *shapes[1].end, shapes[1].radius) == pytest.approx(
        (0.02, 0.05, 0.07, 0.08, 0.05, 0.07, 0.01)
    )
    assert not any("averages" in note for note in found.notes)


def test_the_text_is_the_scene():
    found = converted(FLAT)
    assert parse_scene(found.text, Path("cylinder.toml")) == found.scene


def test_positions_take_the_nearest_node_half_down():
    scene = converted(FLAT, "#rx: 0.140 0.170 0", "#rx: 0.141 0.1711 0").scene
    place = scene.receivers[0].position
    assert scene.cell(place) == (70, 86)
    assert place == (0.141, 0.1711)
    assert any("lies between nodes" in warning for warning in scene.warnings)


@pytest.mark.parametrize("name", ["gaussiandotnorm", "gaussiandoubleprime", "sine", "contsine", "impulse"])
def test_waveforms_keep_their_names(name: str):
    wave = converted(FLAT, "ricker 1 ", f"{name} 3 ").scene.sources[0].wave
    assert (wave.waveform, wave.amplitude) == (name, 3.0)
    assert wave.frequency == (0 if name == "impulse" else 1.5e9)


def test_a_source_starts_and_stops():
    wave = converted(FLAT, "0 my_ricker", "0 my_ricker 1e-10 2e-9").scene.sources[0].wave
    assert (wave.delay, wave.stop) == (1e-10, 2e-9)


def test_a_waveform_from_a_file(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("time one two\n0 0 0\n1e-9 1 -1\n3e-9 0 0\n", encoding="utf-8")
    path = tmp_path / "a.in"
    text = FLAT.replace("#waveform: ricker 1 1.5e9 my_ricker", "#excitation_file: mine.txt").replace(
        "0 my_ricker", "0 two"
    )
    scene = convert(text, path).scene
    table = scene.sources[0].wave.table
    assert table is not None
    assert table.at(np.array([0.5e-9, 2e-9, 5e-9]), scene.dt) == pytest.approx([-0.5, -0.5, 0])
    with pytest.raises(InputFileError, match=r"a\.in:9: #excitation_file: .*none\.txt"):
        convert(text.replace("mine.txt", "none.txt"), path)
    with pytest.raises(InputFileError, match="interpolation 'cubic' is not supported"):
        convert(text.replace("mine.txt", "mine.txt cubic extrapolate"), path)


def test_receivers_in_an_array():
    scene = converted(FLAT, "#rx: 0.140 0.170 0", "#rx_array: 0.1 0.1 0 0.12 0.104 0 0.01 0.002 0").scene
    assert [one.position for one in scene.receivers] == [
        (pytest.approx(x), pytest.approx(y)) for x in (0.1, 0.11, 0.12) for y in (0.1, 0.102, 0.104)
    ]
    assert [one.name for one in scene.receivers] == [f"rx{number}" for number in range(1, 10)]


def test_steps_make_a_scan():
    steps = "#src_steps: 0.002 0 0\n#rx_steps: 0.002 0 0\n#rx:"
    scan = converted(FLAT, "#rx:", steps, count=7).scene.scan
    assert scan is not None
    assert (scan.cells, scan.count) == ((1, 0), 7)
    single = converted(FLAT, "#rx:", steps)
    assert single.scene.scan is None
    assert any("give --count" in note for note in single.notes)
    with pytest.raises(InputFileError, match="move by different steps"):
        converted(FLAT, "#rx:", "#src_steps: 0.002 0 0\n#rx:", count=7)


def covered(command: str) -> np.ndarray:
    """The cells of 50 x 50 x 50 that an object covers."""
    text = DEEP.split("#sphere", maxsplit=1)[0] + command
    cells, materials = paint(convert(text, PATH).scene)
    return cells == [material.name for material in materials].index("pec")


def test_solids():
    x, y, z = np.indices((50, 50, 50)) + 0.5
    assert (
        covered("#ellipsoid: 0.05 0.05 0.05 0.02 0.01 0.03 pec")
        == (((x - 25) / 10) ** 2 + ((y - 25) / 5) ** 2 + ((z - 25) / 15) ** 2 <= 1)
    ).all()
    cone = covered("#cone: 0.05 0.05 0.02 0.05 0.05 0.08 0.02 0 pec n")
    assert (cone == ((z > 10) & (z < 40) & (np.hypot(x - 25, y - 25) <= (40 - z) / 3))).all()
    prism = covered("#triangle: 0.02 0.02 0.04 0.08 0.02 0.04 0.08 0.08 0.04 0.01 pec")
    assert (prism == ((x < 40) & (y > 10) & (y - 10 < x - 10 - 1e-6) & (z > 20) & (z < 25))).all()
    sector = covered("#cylindrical_sector: y 0.05 0.05 0.02 0.03 0.02 0 90 pec")
    assert (sector == ((y > 10) & (y < 15) & (x > 25) & (z > 25) & (np.hypot(x - 25, z - 25) <= 10))).all()


def test_a_sphere_in_two_dimensions_is_its_cut():
    scene = converted(
        FLAT, "#cylinder: 0.120 0.080 0 0.120 0.080 0.002 0.010 pec n", "#sphere: 0.12 0.08 0 0.01 pec"
    ).scene
    assert scene.objects[-1].shape == Sphere((0.12, 0.08), pytest.approx((0.01**2 - 0.001**2) ** 0.5))


def test_commands_that_say_how_to_run_are_notes():
    text = FLAT + (
        "#messages: n\n#num_threads: 4\n#output_dir: out\n#geometry_view: 0 0 0 1 1 1 1 1 1 a n\n"
        "#snapshot: 0 0 0 1 1 1 1 1 1 1e-9 a\n#snapshot: 0 0 0 1 1 1 1 1 1 2e-9 b\n#pml_formulation: MRIPML\n"
        "#cpu_freq: 3\n"
    )
    found = converted(text)
    for line, name in (
        (14, "messages"),
        (15, "num_threads"),
        (16, "output_dir"),
        (17, "geometry_view"),
        (20, "pml_formulation"),
    ):
        assert any(note.startswith(f"cylinder.in:{line}: #{name}: left out") for note in found.notes)
    assert any("#snapshot: left out (and 1 more)" in note for note in found.notes)
    assert found.scene == converted(FLAT).scene


@pytest.mark.parametrize(("words", "cells"), [("8", 8), ("0", 0), ("6 6 0 6 6 0", 6), ("7 7 9 7 7 9", 7)])
def test_absorbing_layers(words: str, cells: int):
    assert converted(FLAT, "#rx:", f"#pml_cells: {words}\n#rx:").scene.cpml == cells


def test_layers_are_graded_as_gprmax_grades_them():
    """gprMax's user guide: quartic up to the optimum, without stretch and alpha. The optimum is the unit of `sigma`."""
    layers = converted(FLAT).scene.layers
    assert (layers.order, layers.sigma, layers.kappa, layers.alpha) == (4, 1, 1, 0)
    unit = 0.8 * 4 / (376.730313 * 0.002)
    for words, wanted in (
        ("constant forward 0 0 constant forward 1 1 quartic forward 0 None", (4, 1, 1, 0)),
        ("constant forward 0.05 0.05 quartic forward 1 8 cubic forward 0 7.5", (3, 7.5 / unit, 8, 0.05 / unit)),
        ("linear reverse 0 0.04 quadratic forward 1 5 cubic forward 0 None", (3, 1, 5, 0.04 / unit)),
    ):
        found = converted(FLAT, "#rx:", f"#pml_cfs: {words}\n#rx:").scene.layers
        assert (found.order, found.sigma, found.kappa, found.alpha) == pytest.approx(wanted), words
    assert (found.kappa_order, found.alpha_order) == (2, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("constant forward 0 0 constant forward 1 1 quartic reverse 0 None", "such profiles are not supported"),
        ("linear forward 0 1 constant forward 1 1 quartic forward 0 None", "such profiles are not supported"),
        ("constant forward 0 0 constant forward 2 2 quartic forward 0 None", "such profiles are not supported"),
        (f"{USUAL}\n#pml_cfs: {USUAL}", "layers with two poles are not supported"),
    ],
)
def test_other_layers_are_a_note(words: str, says: str):
    found = converted(FLAT, "#rx:", f"#pml_cfs: {words}\n#rx:")
    assert found.scene.layers == converted(FLAT).scene.layers
    assert sum(says in note for note in found.notes) == 1


def test_version_2():
    found = converted(OLD)
    scene = found.scene
    assert (scene.shape, scene.cpml, scene.title) == ((40, 30), 8, "an old model")
    assert (scene.materials["sand"].permittivity, scene.materials["sand"].conductivity) == (4.0, 0.01)
    # Version 2's ricker is the first derivative of a Gaussian.
    assert scene.sources[0].wave == Wave("gaussiandotnorm", 600e6, 1.0, 0.0, 4e-9)
    assert (scene.sources[0].position, scene.receivers[0].position) == ((0.15, 0.2), (0.25, 0.2))
    assert scene.scan is not None
    assert (scene.scan.cells, scene.scan.count) == ((2, 0), 3)
    cells, materials = paint(scene)
    names = np.array([material.name for material in materials])[cells]
    x, y = np.indices((40, 30)) + 0.5
    right = np.full((40, 30), "free_space")
    right[y < 10] = "sand"
    right[np.hypot(x - 20, y - 5) <= 2] = "pec"
    right[(y > 15) & (y - 15 <= 2 * (x - 5) + 1e-6) & (y - 15 <= 2 * (15 - x) + 1e-6)] = "sand"
    assert (names == right).all()
    assert any("#line_source: the ricker of version 2" in note for note in found.notes)


def test_version_2_in_three_dimensions():
    text = """\
#domain: 0.2 0.2 0.2
#dx_dy_dz: 0.01 0.01 0.01
#time_window: 1e-9
#medium: 4.0 0.0 0.0 0.01 1.0 0.0 sand
#pml_layers: 4
#cylinder: y 0.05 0.15 0.1 0.12 0.03 sand
#hertzian_dipole: 2.0 900e6 gaussian mine
#analysis: 1 a.out b
#tx: x 0.1 0.1 0.1 mine 0.0 1e-9
#rx: 0.12 0.1 0.1
#end_analysis:
"""
    scene = convert(text, PATH).scene
    shape = scene.objects[0].shape
    assert isinstance(shape, Cylinder)
    assert (*shape.start, *shape.end) == pytest.approx((0.1, 0.05, 0.12, 0.1, 0.15, 0.12))
    assert (scene.sources[0].field, scene.sources[0].wave) == ("ex", Wave("gaussian", 900e6, 2.0, 0.0, 1e-9))
    wet = convert(text.replace("4.0 0.0 0.0 0.01", "4.0 2.5 1e-9 0.01"), PATH).scene.materials["sand"]
    assert (wet.permittivity, wet.conductivity, wet.poles) == (2.5, 0.01, (Debye(1.5, 1e-9),))


def test_two_dimensions_as_version_4_writes_them():
    text = FLAT.replace("0.240 0.210 0.002\n#dx", "0.240 0.210 inf\n#domain_mode: TM\n#dx")
    text = text.replace("0.240 0.170 0.002", "0.240 0.170 inf").replace("0.170 0\n", "0.170 inf\n")
    assert converted(text).scene.shape == (120, 105)
    assert [one.shape for one in converted(text).scene.objects] == [one.shape for one in converted(FLAT).scene.objects]
    with pytest.raises(InputFileError, match="mode TE is not supported"):
        converted(text, "#domain_mode: TM", "#domain_mode: TE")


def test_names_that_a_scene_does_not_take():
    text = FLAT.replace("half_space", "half/space").replace(
        "#rx: 0.140 0.170 0", "#rx: 0.140 0.170 0 a(1)\n#rx: 0.150 0.170 0 a(1)"
    )
    scene = converted(text).scene
    assert scene.objects[0].material == "half_space"
    assert [one.name for one in scene.receivers] == ["a_1", "a_1-2"]


def test_files_that_are_included(tmp_path: Path):
    (tmp_path / "media.txt").write_text("#material: 6 0.01 1 0 half_space\n", encoding="utf-8")
    text = FLAT.replace("#material: 6 0.01 1 0 half_space", "#include_file: media.txt")
    assert convert(text, tmp_path / "a.in").scene.materials["half_space"].permittivity == 6
    (tmp_path / "media.txt").write_text(
        "\n#material: 6 0.01 1 0.5 half_space\n#include_file: media.txt\n", encoding="utf-8"
    )
    with pytest.raises(InputFileError) as caught:
        convert(text, tmp_path / "a.in")
    said = "\n".join(caught.value.lines)
    assert f"{tmp_path / 'media.txt'}:2: #material: the solver does not support a magnetic loss of 0.5 Ohm/m" in said
    assert "files include one another more than 16 levels deep" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "#rx:",
            "#bowtie: 0\n#rx:",
            "cylinder.in:11: #bowtie: the solver does not support a bowtie antenna",
        ),
        ("#rx:", "#eigenmode_port: 1\n#rx:", "#eigenmode_port: the solver does not support a waveguide port"),
        ("#rx:", "#rhubarb: 1\n#rx:", "cylinder.in:11: #rhubarb: there is no such command"),
        ("#rx:", "#rotated_box: 0 0 0 1 1 0 pec\n#rx:", "#rotated_box: the solver does not support a rotated box"),
        ("#rx:", "#voltage_source: z 0.1 0.1 0 50 a\n#rx:", ":11: #voltage_source: there is no waveform 'a'"),
        (
            "#rx:",
            "#voltage_source: z 0.1 0.1 0 0 my_ricker\n#rx:",
            ":11: #voltage_source: the solver does not support hard sources (0 Ohm)",
        ),
        ("#rx:", "#voltage_source: z 0.1 0.1 0 -5 my_ricker\n#rx:", "a resistance of -5 Ohm is below 0"),
        ("#rx:", "#pml_cfs: a b\n#rx:", "#pml_cfs: has 2 parameters, not 12"),
        ("#rx:", f"#pml_cfs: steep{USUAL[8:]}\n#rx:", "there is no profile 'steep'"),
        ("#rx:", f"#pml_cfs: constant up{USUAL[16:]}\n#rx:", "'up' is neither forward nor reverse"),
        ("#rx:", f"#pml_cfs: {USUAL[:-4]}much\n#rx:", "'much' is not a number"),
        ("#rx:", "#transmission_line: z 0.1 0.1 0 50 a\n#rx:", "#transmission_line: there is no waveform 'a'"),
        (
            "#rx:",
            "#transmission_line: z 0.1 0.1 0 400 my_ricker\n#rx:",
            "a resistance of 400 Ohm is out of range: it must be above 0 and below that of vacuum, 376.73",
        ),
        (
            "#rx:",
            "#add_dispersion_debye: 0 half_space\n#rx:",
            ":11: #add_dispersion_debye: '0' is not a number of poles",
        ),
        ("#rx:", "#add_dispersion_debye: 2 2 1e-11 half_space\n#rx:", "has 4 parameters, not 6"),
        ("#rx:", "#add_dispersion_debye: 1 2 1e-11 sand\n#rx:", "there is no material 'sand' above"),
        ("#rx:", "#add_dispersion_debye: 1 2 -1e-11 half_space\n#rx:", "'half_space': a relaxation time of -1e-11"),
        ("#rx:", "#add_dispersion_debye: 1 2 1e-14 half_space\n#rx:", "below the time step"),
        ("#material:", "#materials:", "cylinder.in:8: #materials: there is no such command; did you mean 'material'?"),
        ("#rx:", "#rx ", "cylinder.in:11: '#rx  0.140 0.170 0' is not a command"),
        ("6 0.01 1 0", "6 0.01 1 2", "#material: the solver does not support a magnetic loss of 2 Ohm/m"),
        ("6 0.01 1 0", "6 0.01 1", "#material: has 4 parameters, not 5"),
        ("6 0.01 1 0", "6 0.01 one 0", "#material: 'one' is not a number"),
        (
            "ricker 1 ",
            "rickr 1 ",
            "cylinder.in:9: #waveform: there is no waveform of type 'rickr'; did you mean 'ricker'?",
        ),
        ("1 1.5e9", "1 0", "#waveform: a frequency of 0 Hz is not above 0"),
        ("0.170 0 my_ricker", "0.170 0 my_riker", "there is no waveform 'my_riker'; did you mean 'my_ricker'?"),
        (
            "0 my_ricker",
            "0 my_ricker 2e-9 1e-9",
            "#hertzian_dipole: a stop at 1e-09 s is not after its start at 2e-09 s",
        ),
        ("dipole: z", "dipole: x", "#hertzian_dipole: in two dimensions only a source along z is supported"),
        ("dipole: z", "dipole: w", "'w' is not x, y or z"),
        ("dz: 0.002 0.002", "dz: 0.002 -0.001", "#dx_dy_dz: -0.001 m is not above 0"),
        ("0.240 0.210 0.002\n#dx", "0.002 0.210 0.002\n#dx", "#domain: one cell along x"),
        ("0.002 half_space", "0.002 half_space pec", "#box: has 8 parameters, not 6 and one material, or one per axis"),
        ("0.002 half_space", "0.002 half_space pec pec y", "#box: an object with a material for each axis cannot be"),
        ("#rx:", "#plate: 0 0 0 0.1 0.1 0.1 pec\n#rx:", "#plate: a plate must be flat along exactly one axis"),
        ("#rx:", "#plate: 0 0.1 0 0.1 0.1 0.002\n#rx:", "#plate: has 6 parameters, not 6 and one material"),
        ("#rx:", "#plate: 0.1 0.1 0 0.05 0.1 0.002 pec\n#rx:", "#plate: it ends at 0.05 m along x, below where it"),
        ("#rx:", "#edge: 0 0 0 0.1 0.1 0.1 pec\n#rx:", "#edge: an edge must lie along exactly one axis"),
        ("#rx:", "#edge: 0.1 0.1 0.002 0.1 0.1 0 pec\n#rx:", "#edge: it ends at 0 m along z, below where it"),
        ("0.002 half_space", "0.002", "#box: has 6 parameters, not 6 and one material"),
        ("0.240 0.170 0.002", "0.240 0.0 0.002", "#box: it has no volume: it is less than a cell thick along y"),
        ("#cylinder: 0.120", "#cylinder: 0.110", "#cylinder: in two dimensions a cylinder must lie along z"),
        ("#rx: 0.140 0.170 0", "#rx: 0.140 0.170 0 a Eq", "#rx: there is no output 'eq'"),
        ("#time_window: 3e-9\n", "", "cylinder.in: there is no #time_window"),
        ("#title:", "#domain: 1 1 1\n#title:", "cylinder.in:3: #domain: this command was already given above"),
        (
            "0.002 half_space",
            "0.002 halfspace",
            ":12: #box: there is no material 'halfspace'; did you mean 'half_space'?",
        ),
        (
            "#rx: 0.140",
            "#rx: 0.340",
            "cylinder.in:11: #rx: 0.34 m along x is node 170, but the domain has nodes 0 to 119",
        ),
        ("#rx:", "#pml_cells: 60 5 5 61 6 5\n#rx:", "absorbing layers of 60 and 61 cells at both ends leave nothing"),
        ("#rx:", "#pml_cells: 60\n#rx:", "#pml_cells: absorbing layers of 60 cells at both ends leave nothing"),
        ("#rx:", "#time_step_stability_factor: 1.5\n#rx:", "1.5 is out of range: it must be above 0 and at most 1"),
        (
            "#rx:",
            "#python:\nprint('#rx: 0 0 0')\n#end_python:\n#rx:",
            ":11: #python: a block of code runs only with --trust",
        ),
        ("#rx:", "#python:\nprint(1)\n#rx:", ":11: #python: it has no #end_python"),
    ],
)
def test_refusals(old: str, new: str, says: str):
    with pytest.raises(InputFileError) as caught:
        converted(FLAT, old, new)
    assert any(says in line for line in caught.value.lines), caught.value.lines


def test_all_problems_are_told_at_once():
    text = (
        FLAT.replace("6 0.01 1 0 half", "6 0.01 1 3 half")
        .replace("ricker 1 ", "blip 1 ")
        .replace("#rx: 0.140", "#rx: 9.0")
    )
    with pytest.raises(InputFileError, match="and 4 more problems") as caught:
        converted(text + "#bowtie: 0 0 0 1 1 0 pec\n#box: 0 0 0 1 1 1 mud\n")
    lines = [int(line.split(":")[1]) for line in caught.value.lines]
    assert sorted(lines) == [8, 9, 11, 14, 15]


def test_files_that_are_none(tmp_path: Path):
    with pytest.raises(SystemError, match="there is no file"):
        read(tmp_path / "none.in")
    (tmp_path / "bad.in").write_bytes(b"#title: \xff")
    with pytest.raises(DataError, match=r"bad\.in: not text"):
        read(tmp_path / "bad.in")
    (tmp_path / "old.in").write_bytes(b"a comment of 1998: f\xfcr\n#title: a\n")
    assert "#title: a" in read(tmp_path / "old.in")
    with pytest.raises(InputFileError) as caught:
        convert("", PATH)
    assert len(caught.value.lines) == 3


PYTHON = """\
#python:
from gprMax.input_cmd_funcs import *
import numpy as np
size = domain(0.240, 0.210, 0.002)
for x in np.arange(3):
    cylinder(0.05 + 0.02 * x, 0.05, 0, 0.05 + 0.02 * x, 0.05, size[2], 0.006, 'pec')
#end_python:
#python:
print('#title: {} cells, {} runs, {:.0f}'.format(size[0] / 0.002, number_model_runs, c))
#end_python:
"""


def test_functions_of_blocks_return_places_by_letter():
    code = """\
#python:
from gprMax.input_cmd_funcs import *
size = domain(x=0.240, y=0.210, z=0.002)
low, high = box(0, 0, 0, size.x, size.y / 2, size.z, 'half_space')
command('title', high.y, hertzian_dipole('z', 0.1, 0.17, 0, 'my_ricker').y)
src_steps(dx=0.002)
rx_steps(dx=0.002)
#end_python:
"""
    text = FLAT.replace('#title: B-scan from a "metal" cylinder\n#domain: 0.240 0.210 0.002\n', code)
    found = convert(text, PATH, runner=blocks.runner(PATH, 5), count=5)
    assert found.scene.title == "0.105 0.17"
    assert found.scene.scan.cells == (1, 0)


def trusted(code: str, **more: int) -> Converted:
    text = FLAT.replace('#title: B-scan from a "metal" cylinder\n#domain: 0.240 0.210 0.002\n', code)
    return convert(text, PATH, runner=blocks.runner(PATH, 5, **more))


def test_blocks_of_python_are_run_where_they_are_trusted():
    scene = trusted(PYTHON).scene
    assert scene.title == "120.0 cells, 5 runs, 299792458"
    assert [one.name for one in scene.objects][:3] == ["cylinder-line1", "cylinder-line1-2", "cylinder-line1-3"]
    assert [one.shape.centre[0] for one in scene.objects[:3]] == pytest.approx([0.05, 0.07, 0.09])


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1 / 0", r"cylinder\.in:3: #python: ZeroDivisionError"),
        ("def f(:", r"cylinder\.in:3: #python: SyntaxError"),
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("a = bytearray(8 << 30)", "MemoryError"),
        ("while True: pass", "ended by signal"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9"),
        ("import os; os._exit(3)", "failed: status 3"),
        ("import os; os.fork()", "BlockingIOError|PermissionError"),
        ("while True: print('#' * 10**6)", "it prints too much output"),
        ("open('/etc/shadow').read()", "PermissionError"),
        ("open('a.txt', 'w').write('a')", "OSError|PermissionError"),
        ("import socket; socket.create_connection(('127.0.0.1', 9), 1)", "OSError|ModuleNotFoundError"),
    ],
)
def test_blocks_can_do_little(code: str, says: str):
    with pytest.raises(Error, match=says):
        trusted(f"#python:\nsize = 1\n{code}\n#end_python:\n", seconds=2)


def test_blocks_without_a_file_descriptor_to_spare_are_an_error_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", none_left)
    monkeypatch.setattr(os, "open", none_left)  # used to remove folders that are not empty
    with pytest.raises(
        Error, match=r"cylinder\.in: its Python blocks need a separate process, .*: Too many open files"
    ):
        trusted(PYTHON)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["os.truncate(path, 0)", "os.remove(path)", "open(path, 'w')", "os.mkdir(path + 'x')"])
def test_blocks_change_no_files(how: str):
    if tuple(int(part) for part in platform.release().split(".")[:2]) < (6, 2):
        pytest.skip("needs Landlock with truncation, of Linux 6.2")
    # Everybody may write there, including the user nobody.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        mine = Path(folder) / "mine"
        mine.write_text("keep", encoding="utf-8")
        mine.chmod(0o666)
        with pytest.raises(Error, match="PermissionError"):
            trusted(f"#python:\nimport os\npath = {str(mine)!r}\n{how}\n#end_python:\n")
        assert mine.read_text(encoding="utf-8") == "keep"
        assert list(Path(folder).iterdir()) == [mine]


def test_blocks_see_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_SECRET", "told")
    told = "os.environ.get('A_SECRET'), os.getuid() != 0, len(os.listdir('.'))"
    code = f"#python:\nimport os, sys\nprint('#title:', {told})\n"
    text = FLAT.replace('#title: B-scan from a "metal" cylinder\n', f"{code}#end_python:\n")
    assert convert(text, PATH, runner=blocks.runner(PATH, 1)).scene.title == "None True 0"
    os_write = "import os; os.write(1, b'{}')"
    found = convert(text.replace("import os, sys", os_write), PATH, runner=blocks.runner(PATH, 1))
    assert found.scene.title == "None True 0"


def test_a_problem_of_usage_is_one():
    assert issubclass(InputFileError, UsageError)
    assert [str(InputFileError(["one", *["more"] * count])) for count in range(3)] == [
        "one",
        "one (and 1 more problem)",
        "one (and 2 more problems)",
    ]
