"""Scene files: their meaning, and errors that name what is wrong."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from grid_scenes import PATH, changed, flat

from headrace import DataError, Error, UsageError
from headrace.grid.layers import Cpml
from headrace.grid.solver import Scene, parse_scene, read_scene
from headrace.grid.solver.model import paint, samples
from headrace.grid.solver.scene import LIGHT
from headrace.grid.solver.waveforms import BANDS, PERIODS, WAVEFORMS

EXAMPLE = Path(__file__).parents[2] / "examples" / "radar.toml"

CUBE = """
[domain]
size = [0.2, 0.2, 0.2]
spacing = 0.01
cpml = 0
[time]
steps = 1
[[materials]]
id = "stone"
permittivity = 6
"""


def covered(shape: str) -> np.ndarray:
    """The cells of the cube that an object covers."""
    scene = parse_scene(CUBE + f'[[objects]]\nmaterial = "stone"\n{shape}', PATH)
    cells, materials = paint(scene)
    return cells == [material.name for material in materials].index("stone")


def test_units_and_defaults():
    scene = flat()
    assert scene.shape == (40, 30)
    assert scene.size == pytest.approx((0.4, 0.3))
    assert (scene.precision, scene.background, scene.cells) == ("single", "free_space", 1200)
    assert scene.dt == pytest.approx(0.99 * 0.01 / (LIGHT * 2**0.5))
    assert scene.sources[0].name == "source1"
    assert (scene.sources[0].field, scene.sources[0].wave.amplitude) == ("ez", 1.0)
    assert scene.snapshots.every == round(0.5e-9 / scene.dt)
    assert scene.warnings == ()


def test_time_is_a_window_or_steps():
    dt = flat().dt
    assert flat(("steps = 150", f"window = {100 * dt!r}")).steps == 100
    assert flat(("steps = 150", f"window = {100.5 * dt!r}")).steps == 101
    assert flat(("steps = 150", "steps = 150\nstep = 1e-11")).dt == 1e-11


def test_a_position_is_that_of_the_nearest_node():
    scene = flat()
    assert scene.cell((0.0, 0.0)) == (0, 0)
    # 0.07 / 0.01 is slightly above 7, and 0.29 / 0.01 slightly below 29.
    assert scene.cell((0.07, 0.29)) == (7, 29)
    assert scene.cell((0.0751, -0.001)) == (8, 0)
    # Half way between two nodes the lower one counts: 0.035 / 0.01 is slightly above 3.5, 0.295 / 0.01 slightly below.
    assert scene.cell((0.035, 0.295)) == (3, 29)
    assert scene.placed((0.0751, 0.2)) == pytest.approx((0.08, 0.2))
    assert scene.warnings == ()


def test_a_position_between_nodes_is_said():
    scene = flat(("position = [0.25, 0.2]", "position = [0.2551, 0.2]"))
    assert warning_of(scene) == (
        "scene.toml: [[receivers]] near position: [0.2551, 0.2] m lies between nodes; "
        "the nearest, [0.26, 0.2] m, is used"
    )
    assert "[[sources]] source1 position: " in warning_of(flat(("position = [0.2, 0.2]", "position = [0.205, 0.2]")))


def test_steps_of_a_scan_are_rounded_once():
    scene = flat(("step = [0.05, 0.0]", "step = [0.015, -0.006]"), ("count = 3", "count = 12"))
    assert scene.scan is not None
    assert scene.scan.cells == (1, -1)
    places = [scene.moved(number).sources[0].position for number in range(12)]
    assert [scene.cell(place) for place in places] == [(20 + number, 20 - number) for number in range(12)]
    assert (
        "[scan] step: [0.015, -0.006] m is not a whole number of cells of 0.01 m; [0.01, -0.01] m is used"
        in warning_of(scene)
    )
    assert scene.asked(3).receivers[0].position == pytest.approx((0.295, 0.182))


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9, 1e-10, 7.3e-13, 1e3])
def test_a_scene_has_the_same_cells_at_every_scale(scale: float):
    text = f"""
[domain]
size = [{60 * scale!r}, {60 * scale!r}]
spacing = {scale!r}
cpml = 0
[time]
steps = 1
[[materials]]
id = "stone"
permittivity = 6
[[objects]]
type = "box"
low = [{20 * scale!r}, {20 * scale!r}]
high = [{40 * scale!r}, {40 * scale!r}]
material = "stone"
[[objects]]
type = "cylinder"
centre = [{10 * scale!r}, {50 * scale!r}]
radius = {5 * scale!r}
material = "pec"
[[objects]]
type = "half_space"
axis = "y"
below = {7 * scale!r}
material = "stone"
"""
    cells, _ = paint(parse_scene(text, PATH))
    i, j = np.indices((60, 60))
    right = np.zeros((60, 60), dtype=int)
    right[20:40, 20:40] = 2
    right[(i + 0.5 - 10) ** 2 + (j + 0.5 - 50) ** 2 <= 25] = 1
    right[:, :7] = 2
    assert (cells == right).all()


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_solids_have_the_same_cells_at_every_scale(scale: float):
    text = CUBE.replace("0.2", repr(0.2 * scale)).replace("spacing = 0.01", f"spacing = {0.01 * scale!r}")
    shapes = f"""
[[objects]]
material = "stone"
type = "sphere"
centre = [{0.1 * scale!r}, {0.1 * scale!r}, {0.1 * scale!r}]
radius = {0.05 * scale!r}
[[objects]]
material = "pec"
type = "cylinder"
start = [{0.02 * scale!r}, {0.1 * scale!r}, {0.1 * scale!r}]
end = [{0.18 * scale!r}, {0.1 * scale!r}, {0.1 * scale!r}]
radius = {0.02 * scale!r}
"""
    cells, _ = paint(parse_scene(text + shapes, PATH))
    x, y, z = np.indices((20, 20, 20)) + 0.5 - 10
    right = np.where(x**2 + y**2 + z**2 <= 25, 2, 0)
    right[(y**2 + z**2 <= 4) & (np.abs(x) < 8)] = 1
    assert (cells == right).all()


THIN = [
    (
        'type = "box"\nlow = [0.1, 0.102]\nhigh = [0.3, 0.103]',
        "is 0.001 m thick, but cells are 0.01 m: it contains no cell centre and is left out",
    ),
    (
        'type = "box"\nlow = [0.1, 0.104]\nhigh = [0.3, 0.108]',
        "is 0.004 m thick, but cells are 0.01 m: the 20 cells whose centres it contains represent it in full",
    ),
    ('type = "cylinder"\ncentre = [0.1, 0.1]\nradius = 0.002', "is 0.004 m thick, but cells are 0.01 m: it contains"),
    (
        'type = "cylinder"\ncentre = [0.1, 0.1]\nradius = 0.0065',
        "is 0.013 m thick, but cells are 0.01 m: it contains",
    ),
    (
        'type = "cylinder"\ncentre = [0.105, 0.1049]\nradius = 0.002',
        "is 0.004 m thick, but cells are 0.01 m: the cell whose",
    ),
]


@pytest.mark.parametrize(("shape", "says"), THIN)
def test_an_object_thinner_than_a_cell_is_named_with_its_line(shape: str, says: str):
    scene = flat(("[[sources]]", f'[[objects]]\nid = "sheet"\n{shape}\nmaterial = "pec"\n[[sources]]'))
    line = changed().splitlines().index("[[sources]]") + 1
    assert warning_of(scene).startswith(f"scene.toml:{line}: [[objects]] sheet: {says}")


def test_a_thin_wire_in_three_dimensions_is_named():
    wire = '[[objects]]\nmaterial = "pec"\ntype = "cylinder"\nstart = [0.02, 0.03, 0.04]\nend = [0.18, 0.1, 0.1]\n'
    scene = parse_scene(CUBE + wire + "radius = 0.001\n", PATH)
    cells, _ = paint(scene)
    assert f"the {np.count_nonzero(cells)} cells whose centres it contains represent" in warning_of(scene) or (
        np.count_nonzero(cells) == 0 and "left out" in warning_of(scene)
    )
    assert parse_scene(CUBE + wire + "radius = 0.01\n", PATH).warnings == ()


def test_objects_are_painted_in_order():
    scene = flat(
        ("[[sources]]", '[[objects]]\ntype = "box"\nlow = [0.1, 0.0]\nhigh = [0.2, 0.2]\nmaterial = "pec"\n[[sources]]')
    )
    cells, materials = paint(scene)
    names = np.array([material.name for material in materials])[cells]
    assert (names[10:20, :20] == "pec").all()
    assert (names[:10, :10] == "sand").all()
    assert (names[20:, :10] == "sand").all()
    assert (names[:10, 10:] == "free_space").all()
    assert (names == "pec").sum() == 200


def test_shapes_cover_the_cells_whose_centres_they_hold():
    box = covered('type = "box"\nlow = [0.02, 0.03, 0.04]\nhigh = [0.05, 0.07, 0.04999]')
    assert box.sum() == 3 * 4
    assert box[2:5, 3:7, 4].all()
    centres = (np.arange(20) + 0.5) * 0.01
    x, y, z = np.meshgrid(centres, centres, centres, indexing="ij")
    sphere = covered('type = "sphere"\ncentre = [0.1, 0.1, 0.1]\nradius = 0.05')
    assert (sphere == ((x - 0.1) ** 2 + (y - 0.1) ** 2 + (z - 0.1) ** 2 <= 0.05**2)).all()
    cylinder = covered('type = "cylinder"\nstart = [0.05, 0.1, 0.1]\nend = [0.15, 0.1, 0.1]\nradius = 0.03')
    assert (cylinder == ((x > 0.05) & (x < 0.15) & ((y - 0.1) ** 2 + (z - 0.1) ** 2 <= 0.03**2))).all()
    above = covered('type = "half_space"\naxis = "z"\nabove = 0.15')
    assert (above == (z > 0.15)).all()


def test_a_slanted_cylinder_has_its_volume():
    cells = covered('type = "cylinder"\nstart = [0.05, 0.05, 0.05]\nend = [0.15, 0.15, 0.1]\nradius = 0.03')
    assert cells.sum() * 0.01**3 == pytest.approx(np.pi * 0.03**2 * 0.15, rel=0.05)


def test_an_object_over_the_edge_is_cut():
    assert covered('type = "sphere"\ncentre = [0.0, 0.0, 0.0]\nradius = 0.05').sum() > 0


def test_in_two_dimensions_a_cylinder_is_a_disc():
    disc = 'type = "cylinder"\ncentre = [0.2, 0.1]\nradius = 0.05'
    cells, _ = paint(flat(('type = "half_space"\naxis = "y"\nbelow = 0.1', disc)))
    assert np.count_nonzero(cells) * 0.01**2 == pytest.approx(np.pi * 0.05**2, rel=0.05)


F = 1e9
ZETA = 2 * np.pi**2 * F**2
# Formulas of gprMax's user guide in its own terms; the second derivatives have half the zeta and a later peak.
FORMULAS = {
    "gaussian": lambda t: np.exp(-ZETA * (t - 1 / F) ** 2),
    "gaussiandot": lambda t: -2 * ZETA * (t - 1 / F) * np.exp(-ZETA * (t - 1 / F) ** 2),
    "gaussiandotnorm": lambda t: (
        -2 * np.sqrt(np.e / (2 * ZETA)) * ZETA * (t - 1 / F) * np.exp(-ZETA * (t - 1 / F) ** 2)
    ),
    "gaussiandotdot": lambda t: ZETA * (ZETA * (t - 2**0.5 / F) ** 2 - 1) * np.exp(-ZETA / 2 * (t - 2**0.5 / F) ** 2),
    "gaussiandotdotnorm": lambda t: (ZETA * (t - 2**0.5 / F) ** 2 - 1) * np.exp(-ZETA / 2 * (t - 2**0.5 / F) ** 2),
    "ricker": lambda t: -(ZETA * (t - 2**0.5 / F) ** 2 - 1) * np.exp(-ZETA / 2 * (t - 2**0.5 / F) ** 2),
    "gaussianprime": lambda t: -2 * ZETA * (t - 1 / F) * np.exp(-ZETA * (t - 1 / F) ** 2),
    "gaussiandoubleprime": lambda t: 2 * ZETA * (2 * ZETA * (t - 1 / F) ** 2 - 1) * np.exp(-ZETA * (t - 1 / F) ** 2),
    "sine": lambda t: np.where(F * t <= 1, np.sin(2 * np.pi * F * t), 0),
    "contsine": lambda t: np.where(0.25 * F * t <= 1, 0.25 * F * t, 1) * np.sin(2 * np.pi * F * t),
}


@pytest.mark.parametrize("name", list(WAVEFORMS))
def test_waveforms_are_those_of_gprmax(name: str):
    time = np.linspace(0, 6e-9, 3001)
    right = FORMULAS[name](time)
    assert WAVEFORMS[name](time, F) == pytest.approx(right, abs=1e-12 * np.abs(right).max())
    if name not in ("sine", "contsine"):
        assert WAVEFORMS[name](np.array([PERIODS / F]), F)[0] == 0


@pytest.mark.parametrize("name", [name for name in BANDS if "sine" not in name])
def test_a_pulse_has_next_to_nothing_above_its_band(name: str):
    step = 1e-11
    spectrum = np.abs(np.fft.rfft(WAVEFORMS[name](np.arange(100_000) * step, F)))
    frequencies = np.arange(spectrum.size) / (100_000 * step)
    assert spectrum[frequencies >= BANDS[name] * F].max() < 10 ** (-26.5 / 20) * spectrum.max()
    if name in ("ricker", "gaussiandot", "gaussiandotdot"):
        assert frequencies[np.argmax(spectrum)] == pytest.approx(F, rel=0.01)


def driven(*keys: str, waveform: str = "sine") -> np.ndarray:
    """What the source of the small scene adds in each step, without the factor of its current."""
    scene = flat(('waveform = "ricker"\nfrequency = 0.5e9', "\n".join([f'waveform = "{waveform}"', *keys])))
    material = scene.materials["free_space"]
    added = samples(scene, scene.sources[0], material)
    return added / (-scene.dt / 8.8541878128e-12 / 0.01**2)


def test_a_source_starts_and_stops():
    dt = flat().dt
    whole = driven("frequency = 1e8", waveform="contsine")
    assert whole.size == 150
    assert np.abs(whole).max() > 0.05
    part = driven("frequency = 1e8", f"delay = {20 * dt!r}", f"stop = {60 * dt!r}", waveform="contsine")
    assert (part[:20] == 0).all()
    assert (part[61:] == 0).all()
    assert part[20:61] == pytest.approx(whole[:41])
    with pytest.raises(UsageError, match="stop: 1e-12 s is not after its delay, 2e-12 s"):
        driven("frequency = 1e8", "delay = 2e-12", "stop = 1e-12")


def test_an_impulse_is_one_step():
    assert driven(waveform="impulse")[:3] == pytest.approx([1, 0, 0][: driven(waveform="impulse").size])


def test_a_waveform_from_a_file(tmp_path: Path):
    dt = flat().dt
    path = tmp_path / "pulse.txt"
    rows = "\n".join(f"{number * 2 * dt!r} {number} {-number}" for number in range(10))
    path.write_text(f"time up down\n{rows}\n", encoding="utf-8")
    file = f'file = "{path}"'
    right = np.where(np.arange(18) <= 17, (np.arange(18) + 0.5) / 2, 0)
    assert driven(file, waveform="file")[:18] == pytest.approx(right)
    assert driven(file, 'column = "down"', "amplitude = 2", waveform="file")[:18] == pytest.approx(-2 * right)
    path.write_text("pulse\n0\n4\n8\n", encoding="utf-8")
    # Values per step: in the middle of a step, interpolated ones.
    assert driven(file, waveform="file")[:3] == pytest.approx([2, 6, 0])
    assert flat((WAVE, f'waveform = "file"\n{file}')).digest() != flat().digest()


WAVE = 'waveform = "ricker"\nfrequency = 0.5e9'


@pytest.mark.parametrize(
    ("content", "column", "says"),
    [
        ("", "", "pulse.txt: the file is empty"),
        ("1 2\n3 4\n", "", "pulse.txt:1: the first row must have the names"),
        ("a b\n3 4\n1\n", "", "pulse.txt:3: the row has 1 columns, but the first row names 2"),
        ("a b\n3 4\n1 x\n", "", "pulse.txt:3: 'x' is not a number"),
        ("a\n", "", "pulse.txt: it has 0 rows of numbers"),
        ("time a\n0 1\n0 2\n", "", "pulse.txt: the column 'time' does not ascend"),
        ("time\n0\n1\n", "", "pulse.txt: it has no column besides 'time'"),
        ("up down\n0 1\n", "dwn", "pulse.txt: there is no column 'dwn'; did you mean 'down'?"),
    ],
)
def test_files_of_waveforms_that_are_none(tmp_path: Path, content: str, column: str, says: str):
    path = tmp_path / "pulse.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(Error, match=re.escape(says)):
        flat((WAVE, f'waveform = "file"\nfile = "{path}"' + (f'\ncolumn = "{column}"' if column else "")))
    with pytest.raises(Error, match="there is no file"):
        flat((WAVE, f'waveform = "file"\nfile = "{tmp_path}/none.txt"'))


def test_more_solids_cover_the_cells_whose_centres_they_hold():
    x, y, z = np.indices((20, 20, 20)) + 0.5
    ellipsoid = covered('type = "ellipsoid"\ncentre = [0.1, 0.1, 0.08]\nradii = [0.07, 0.05, 0.03]')
    assert (ellipsoid == (((x - 10) / 7) ** 2 + ((y - 10) / 5) ** 2 + ((z - 8) / 3) ** 2 <= 1)).all()
    cone = covered(
        'type = "cone"\nstart = [0.1, 0.1, 0.02]\nend = [0.1, 0.1, 0.18]\nstart_radius = 0.08\nend_radius = 0.0'
    )
    assert (cone == ((z > 2) & (z < 18) & (np.hypot(x - 10, y - 10) <= 8 * (18 - z) / 16))).all()
    for corners in (("[0.02, 0.02]", "[0.18, 0.04]", "[0.05, 0.17]"), ("[0.02, 0.02]", "[0.05, 0.17]", "[0.18, 0.04]")):
        a, b, c = corners
        prism = covered(
            f'type = "triangle"\nfirst = {a}\nsecond = {b}\nthird = {c}\naxis = "y"\nlow = 0.05\nhigh = 0.1'
        )
        inside = (16 * (z - 2) - 2 * (x - 2) >= 0) & (-13 * (z - 4) - 13 * (x - 18) >= 0)
        inside &= -3 * (z - 17) + 15 * (x - 5) >= 0
        assert (prism == (inside & (y > 5) & (y < 10))).all()
    sector = covered(
        'type = "sector"\ncentre = [0.1, 0.1]\nradius = 0.08\nstart_angle = 330\nsweep = 75\n'
        'axis = "x"\nlow = 0\nhigh = 0.02'
    )
    angle = np.degrees(np.arctan2(z - 10, y - 10))
    assert (sector == ((x < 2) & (np.hypot(y - 10, z - 10) <= 8) & (angle > -30) & (angle <= 45 + 1e-6))).all()


def test_solids_in_two_dimensions_are_their_cuts():
    i, j = np.indices((40, 30)) + 0.5

    def mask(shape: str) -> np.ndarray:
        return paint(flat(('type = "half_space"\naxis = "y"\nbelow = 0.1', shape)))[0] != 0

    right = mask('type = "ellipsoid"\ncentre = [0.2, 0.1]\nradii = [0.1, 0.05]')
    assert (right == (((i - 20) / 10) ** 2 + ((j - 10) / 5) ** 2 <= 1)).all()
    whole = mask('type = "sector"\ncentre = [0.2, 0.15]\nradius = 0.1\nstart_angle = 10\nsweep = 360')
    assert (whole == (np.hypot(i - 20, j - 15) <= 10)).all()
    third = mask('type = "triangle"\nfirst = [0.1, 0.05]\nsecond = [0.3, 0.05]\nthird = [0.3, 0.25]')
    assert (third == ((i <= 30) & (j >= 5) & (j - 5 <= i - 10))).all()


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        (
            'type = "cone"\nstart = [0.1, 0.1]\nend = [0.2, 0.2]\nstart_radius = 0.1\nend_radius = 0',
            "a cone needs three",
        ),
        ('type = "ellipsoid"\ncentre = [0.1, 0.1]\nradii = [0.1, 0.0]', "radii: 0 is not above 0"),
        ('type = "triangle"\nfirst = [0, 0]\nsecond = [0.1, 0.1]\nthird = [0.2, 0.2]', "third: it lies on one line"),
        ('type = "sector"\ncentre = [0, 0]\nradius = 1\nstart_angle = 0\nsweep = 400', "sweep: 400 degrees are more"),
    ],
)
def test_solids_that_are_none(shape: str, says: str):
    with pytest.raises(UsageError, match=says):
        flat(('type = "half_space"\naxis = "y"\nbelow = 0.1', shape))


def test_a_source_is_a_current():
    scene = flat()
    vacuum = samples(scene, scene.sources[0], scene.materials["free_space"])
    peak = scene.dt / 8.8541878128e-12 / 0.01**2
    assert vacuum.min() == pytest.approx(-peak, rel=0.01)
    late = flat(("frequency = 0.5e9", "frequency = 0.5e9\ndelay = 1e-10"))
    delayed = samples(late, late.sources[0], scene.materials["free_space"])
    assert (delayed[: int(1e-10 / scene.dt)] == 0).all()
    sand = samples(scene, scene.sources[0], scene.materials["sand"])
    assert np.abs(sand).max() < np.abs(vacuum).max() / 4


def test_a_scan_moves_sources_and_receivers():
    moved = flat().moved(2)
    assert moved.sources[0].position == pytest.approx((0.3, 0.2))
    assert moved.receivers[0].position == pytest.approx((0.35, 0.2))
    assert moved.digest() != flat().digest()


def test_the_hash_is_of_what_decides_the_fields():
    digest = flat().digest()
    for same in (('title = "Small"', 'title = "Other"'), ("steps = 150", "steps = 90"), ("0.5e-9", "0.7e-9")):
        assert flat(same).digest() == digest
    for other in (
        ("permittivity = 4.0", "permittivity = 5.0"),
        ("cpml = 0", "cpml = 2"),
        ("below = 0.1", "below = 0.2"),
    ):
        assert flat(other).digest() != digest


def graded(text: str) -> tuple[str, str]:
    """The change that makes a scene's layers a table."""
    return ("cpml = 0", f"cpml = {{ {text} }}")


def test_how_layers_are_graded():
    assert flat(("cpml = 0", "cpml = 3")).layers == flat(graded("cells = 3")).layers == Cpml(cells=3)
    assert flat(graded("")).layers == Cpml()
    text = "cells = 3, order = 3, sigma = 0.7, kappa = 2, kappa_order = 4, alpha = 0, alpha_order = 1"
    given = flat(graded(text))
    assert given.layers == Cpml(3, 3.0, 0.7, 2.0, 4.0, 0.0, 1.0)
    assert given.cpml == 3
    assert flat(("cpml = 0", ""), ("[time]", "[domain.cpml]\ncells = 3\n[time]")).cpml == 3
    assert given.digest() != flat(graded("cells = 3")).digest() == flat(("cpml = 0", "cpml = 3")).digest()
    assert flat(graded("cells = 0, order = 2")).digest() == flat().digest()  # this does not affect the digest


def test_the_example_is_a_scene_without_warnings():
    scene = read_scene(EXAMPLE)
    assert scene.shape == (800, 400)
    assert scene.warnings == ()
    cells, materials = paint(scene)
    used = {materials[index].name for index in np.unique(cells)}
    assert used == {"free_space", "dry_sand", "plastic", "pec"}


WRONG = [
    (
        ("permittivity = 4.0", "permitivity = 4.0"),
        "[[materials]] 1 'sand': there is no key 'permitivity'; did you mean 'p",
    ),
    (("size = [0.4, 0.3]", "sise = [0.4, 0.3]"), "[domain] size: missing; is 'sise' a misspelling?"),
    (("permittivity = 4.0", 'permittivity = "4"'), "[[materials]] 1 'sand' permittivity: '4' is not a number"),
    (("permittivity = 4.0", "permittivity = nan"), "permittivity: nan is not a finite number"),
    (("permittivity = 4.0", "permittivity = 0"), "permittivity: 0 is not above 0"),
    (("conductivity = 0.01", "conductivity = -1"), "conductivity: -1 is below 0"),
    (("size = [0.4, 0.3]", "size = [0.4]"), "[domain] size: [0.4] is not a list of 2 or 3 numbers"),
    (("size = [0.4, 0.3]", "size = [0.405, 0.3]"), "0.405 m along x is 40.5 cells of 0.01 m"),
    (("cpml = 0", "cpml = 15"), "[domain] cpml: 15 cells at both ends leave nothing of the 30 cells along y"),
    (("cpml = 0", "cpml = 2.5"), "[domain] cpml: 2.5 is not a whole number"),
    (graded("cells = 15"), "[domain] cpml: 15 cells at both ends leave nothing of the 30 cells along y"),
    (graded("cells = -1"), "[domain.cpml] cells: -1 is below 0"),
    (graded("sigmas = 1"), "[domain.cpml]: there is no key 'sigmas'; did you mean 'sigma'?"),
    (graded("order = 0.5"), "[domain.cpml] order: 0.5 is below 1"),
    (graded("sigma = -1"), "[domain.cpml] sigma: -1 is below 0"),
    (graded("sigma = 1e300"), "[domain.cpml] sigma: 1e+300 is above 1e+06"),
    (graded("kappa = 0.9"), "[domain.cpml] kappa: 0.9 is below 1"),
    (graded("kappa_order = 0"), "[domain.cpml] kappa_order: 0 is not above 0"),
    (graded("alpha = nan"), "[domain.cpml] alpha: nan is not a finite number"),
    (graded("alpha_order = -2"), "[domain.cpml] alpha_order: -2 is not above 0"),
    (("cpml = 0", 'precision = "duble"'), "[domain] precision: there is no 'duble'; did you mean 'double'?"),
    (("cpml = 0", 'background = "send"'), "[domain] background: there is no material 'send'; did you mean 'sand'?"),
    (
        ('material = "sand"', 'material = "sandy"'),
        "'ground' material: there is no material 'sandy'; did you mean 'sand'?",
    ),
    (('id = "sand"', 'id = "pec"'), "[[materials]] 1 'pec' id: there is already a 'pec'"),
    (('id = "near"', 'id = "a/b"'), "[[receivers]] 1 'a/b' id: 'a/b' must consist of"),
    (("steps = 150", ""), "[time]: needs either window or steps, but has neither"),
    (("steps = 150", "steps = 150\nwindow = 1e-9"), "[time]: needs either window or steps, not both"),
    (("steps = 150", "steps = 150\nstep = 3e-11"), "[time] step: 3e-11 s is unstable"),
    (("steps = 150", "steps = 150\ncourant = 1.1"), "[time] courant: 1.1 is unstable"),
    (("steps = 150", "steps = 0"), "[time] steps: 0 is below 1"),
    (('type = "half_space"', 'type = "halfspace"'), "type: there is no 'halfspace'; did you mean 'half_space'?"),
    (('type = "half_space"', 'type = "sphere"'), "type: a sphere needs three dimensions"),
    (("below = 0.1", "below = 0.1\nabove = 0.2"), "'ground': needs either below or above, not both"),
    (("below = 0.1", "bellow = 0.1"), "above, but has neither; is 'bellow' a misspelling?"),
    (('axis = "y"', 'axis = "z"'), "'ground' axis: there is no 'z'; there are x, y"),
    (
        ('waveform = "ricker"', 'waveform = "riker"'),
        "[[sources]] 1 waveform: there is no 'riker'; did you mean 'ricker'?",
    ),
    (
        ('waveform = "ricker"', 'type = "plane_wave"'),
        "[[sources]] 1 type: a source is a current in one cell; plane waves are [[plane_waves]]",
    ),
    (("frequency = 0.5e9", 'frequency = 1e9\nfield = "ex"'), "[[sources]] 1 field: there is no 'ex'"),
    (('fields = ["ez", "hx"]', 'fields = ["ez", "hz"]'), "'near' fields: there is no 'hz'"),
    (('fields = ["ez", "hx"]', 'fields = ["ez", "ez"]'), "contains a word twice"),
    (("position = [0.25, 0.2]", "position = [0.25, 0.5]"), "[[receivers]] near position: [0.25, 0.5] m is not in the"),
    (("count = 3", "count = 9"), "m at position 3 of the scan is on the far wall of the domain"),
    (("step = [0.05, 0.0]", "step = [0.13, 0.0]"), "m at position 2 of the scan is not in the domain"),
    (("step = [0.05, 0.0]", "step = [0.0, 0.0]"), "[scan] step: moves nothing"),
    (("step = [0.05, 0.0]", "step = [0.005, -0.001]"), "[scan] step: [0.005, -0.001] m moves nothing: it is rounded"),
    (("position = [0.25, 0.2]", "position = [0.396, 0.2]"), "[0.396, 0.2] m is on the far wall of the domain"),
    (("position = [0.25, 0.2]", "position = [-0.004, 0.2]"), "[-0.004, 0.2] m is not in the domain"),
    (("[scan]", "[scann]"), "there is no key 'scann'; did you mean 'scan'?"),
    (("[snapshots]", "[[snapshots]]"), "snapshots: [{'interval': 5e-10}] is not a table"),
    (("permittivity = 4.0", f"permittivity = {'7' * 400}"), "permittivity: a number of more than 20 digits is not a"),
    (("steps = 150", f"steps = {'3' * 30}"), "[time] steps: a number of more than 20 digits is above"),
    (("steps = 150", "window = 1e250"), "[time] window: "),
    (("spacing = 0.01", "spacing = 1e-200"), "[domain] spacing: 0.4 m along x is 4e+199 cells, more than"),
    (("count = 3", "count = 200_000_000"), "[scan] count: 200000000 is above 1,000,000"),
]


@pytest.mark.parametrize(("change", "says"), WRONG, ids=[says for _, says in WRONG])
def test_what_is_wrong_is_named(change: tuple[str, str], says: str):
    with pytest.raises(UsageError, match=re.escape(says)) as caught:
        flat(change)
    assert str(caught.value).startswith("scene.toml: ")


def test_two_of_one_name():
    twice = '[[receivers]]\nid = "near"\nposition = [0.3, 0.2]\n[snapshots]'
    with pytest.raises(UsageError, match=r"\[\[receivers\]\] 2 'near' id: there is already a 'near'"):
        flat(("[snapshots]", twice))


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'[' * 3000}{']' * 3000}",
        f"a = {'{b = ' * 3000}1{'}' * 3000}",
        f"a = {'8' * 5000}",
    ],
    ids=["lists", "tables", "digits"],
)
def test_files_that_go_beyond_the_reader_are_an_error_of_one_line(tmp_path: Path, text: str):
    path = tmp_path / "deep.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"deep\.toml: ") as caught:
        read_scene(path)
    assert len(str(caught.value)) < 300


def test_a_long_scan_is_checked_at_its_ends():
    began = time.monotonic()
    with pytest.raises(UsageError, match="at position 999999 of the scan is not in the domain"):
        flat(("count = 3", "count = 1_000_000"), ("step = [0.05, 0.0]", "step = [0.01, 0.0]"))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("content", "says"), [(b"a = [", "bad.toml: not TOML"), (b"\xff", "bad.toml: not text"), (None, "there is no file")]
)
def test_files_that_are_none(tmp_path: Path, content: bytes | None, says: str):
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Error, match=says) as caught:
        read_scene(path)
    assert isinstance(caught.value, DataError) == (content is not None)


def warning_of(scene: Scene) -> str:
    assert len(scene.warnings) == 1, scene.warnings
    return scene.warnings[0]


def test_what_is_strange_is_a_warning():
    outside = flat(("below = 0.1", "below = -0.1"))
    assert "[[objects]] ground: lies entirely outside the domain" in warning_of(outside)
    layers = flat(("cpml = 0", "cpml = 10"))
    assert [("absorbing layers" in warning, "scan" in warning) for warning in layers.warnings] == [(True, False)] * 2
    last = flat(("cpml = 0", "cpml = 7"))
    assert "[[receivers]] near position: [0.35, 0.2] m at position 2 of the scan lies in" in warning_of(last)
    coarse = flat(("permittivity = 4.0", "permittivity = 80.0"))
    assert "the shortest wave, at 1.25e+09 Hz in sand, has 2.68 cells of 0.01 m; 10 cells need" in warning_of(coarse)
    # The figures of a scene that is just too coarse say so: rounded, there would be ten cells of ten needed.
    barely = flat(("permittivity = 4.0", "permittivity = 1.0"), ("frequency = 0.5e9", f"frequency = {0.5e9 * 2.4:.8g}"))
    assert "has 9.99 cells of 0.01 m; 10 cells need a spacing of 0.00999 m" in warning_of(barely)
    assert "has 0 cells" in warning_of(flat(("frequency = 0.5e9", "frequency = 1e308")))


def test_a_light_material_needs_a_shorter_step():
    light = flat(("permittivity = 4.0", "permittivity = 0.25"))
    assert light.dt == pytest.approx(flat().dt / 2)


def test_changes_are_there():
    assert changed() == changed(("Small", "Small"))
