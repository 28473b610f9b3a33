"""Objects given cell by cell: arrays from files, fractal boxes and rough surfaces."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from test_grid_convert import DEEP, PATH

from headrace import DataError, UsageError
from headrace.grid.gprmax import InputFileError, convert
from headrace.grid.solver import Scene, parse_scene
from headrace.grid.solver.fractals import Noise
from headrace.grid.solver.painting import lay, paint

HEAD = """
[domain]
size = [0.32, 0.24, 0.2]
spacing = 0.01
cpml = 0

[time]
steps = 10

""" + "".join(f'[[materials]]\nid = "m{number}"\npermittivity = {2 + number}\n' for number in range(5))

BOX = """
[[objects]]
type = "fractal_box"
low = [0.02, 0.0, 0.0]
high = [0.3, 0.24, 0.1]
dimension = 1.5
seed = 7
material = ["m0", "m1", "m2", "m3"]
"""

ROUGH = """
[[objects.surfaces]]
side = "z+"
lowest = 0.06
highest = 0.15
dimension = 1.2
seed = 3
"""


def names_of(scene: Scene) -> np.ndarray:
    cells, materials = paint(scene)
    return np.array([one.name for one in materials])[cells]


def fractal(*more: str, box: str = BOX) -> np.ndarray:
    return names_of(parse_scene(HEAD + box + "".join(more), PATH))


def slope_of(values: np.ndarray) -> float:
    """The power of the wave number with which the spectrum of a cube, or a square, falls."""
    count = values.shape[0]
    spectrum = np.abs(np.fft.fftn(values - values.mean())) ** 2
    waves = np.fft.fftfreq(count) * count
    radius = np.sqrt(sum(one**2 for one in np.meshgrid(*[waves] * values.ndim)))
    rings = np.arange(2, count // 3)
    means = [spectrum[np.abs(radius - ring) < 0.5].mean() for ring in rings]
    return float(np.polyfit(np.log(rings), np.log(means), 1)[0])


@pytest.mark.parametrize("dimension", [0.5, 1.5, 2.5])
def test_spectra_fall_as_those_of_gprmax(dimension: float):
    """gprMax 4.0.1 in boxes of 64 cells along each side: -1.00, -2.97 and -4.88."""
    slopes = [slope_of(Noise(dimension, (1.0,) * 3, seed).values((48,) * 3, per_cell=True)) for seed in range(3)]
    assert np.mean(slopes) == pytest.approx(-2 * dimension, abs=0.25)
    surface = [slope_of(Noise(dimension, (1.0, 1.0), seed).values((96, 96), per_cell=False)) for seed in range(6)]
    assert np.mean(surface) == pytest.approx(-2 * dimension, abs=0.4)


def test_noise_reaches_from_0_to_1_and_is_repeatable():
    first, again, other = (Noise(1.5, (1.0,) * 3, seed).values((20, 24, 12), per_cell=True) for seed in (1, 1, 2))
    assert (first == again).all()
    assert np.abs(first - other).max() > 0.1
    assert (first.min(), first.max()) == (0.0, 1.0)


def test_cells_of_a_box_are_those_of_gprmax():
    """gprMax 4.0.1, 5 x 4 x 3 cells with an odd number along two axes, and weights: the material of each cell."""
    materials = [
        [[2, 3, 2], [2, 3, 2], [2, 4, 2], [2, 4, 2]],
        [[2, 1, 2], [2, 1, 1], [1, 1, 1], [1, 1, 2]],
        [[2, 2, 1], [1, 2, 2], [0, 2, 1], [1, 3, 1]],
        [[2, 4, 3], [2, 4, 3], [1, 4, 4], [1, 4, 3]],
        [[2, 5, 3], [2, 5, 3], [2, 5, 3], [3, 5, 3]],
    ]
    values = Noise(1.3, (1.0, 2.0, 0.7), 7).values((5, 4, 3), per_cell=True)
    assert np.ceil(values * 5 - 1e-6).tolist() == materials


def test_heights_of_a_surface_are_those_of_gprmax():
    """gprMax 4.0.1, 7 x 4 columns with weights and limits of 6 and 15 cells."""
    heights = [
        [10, 10, 10, 10],
        [7, 7, 7, 7],
        [7, 7, 7, 6],
        [10, 10, 10, 10],
        [14, 14, 14, 14],
        [15, 15, 15, 15],
        [14, 14, 14, 14],
    ]
    values = Noise(5.0, (1.0, 2.0), 3).values((7, 4), per_cell=False)
    assert np.ceil(6 + 9 * values - 1e-6).tolist() == heights


def test_a_larger_weight_makes_it_smoother_along_that_axis():
    plain, weighted = (Noise(1.5, (1.0, 1.0, weight), 4).values((40,) * 3, per_cell=True) for weight in (1.0, 4.0))
    steps = [[np.abs(np.diff(values, axis=axis)).mean() for axis in range(3)] for values in (plain, weighted)]
    assert steps[1][2] < 0.6 * steps[0][2]
    assert steps[1][0] == pytest.approx(steps[0][0], rel=0.3)


def test_a_box_has_all_of_its_materials():
    names = fractal()
    inside = np.zeros(names.shape, dtype=bool)
    inside[2:30, :, :10] = True
    assert set(names[inside]) == {"m0", "m1", "m2", "m3"}
    assert (names[~inside] == "free_space").all()
    assert (names == fractal()).all()
    assert (names != fractal(box=BOX.replace("seed = 7", "seed = 8"))).any()
    # Neighbours are equal more often than random pairs of cells.
    shuffled = np.random.default_rng(0).permutation(names[inside]).reshape(28, 24, 10)
    block = names[2:30, :, :10]
    assert (block[1:] == block[:-1]).mean() > (shuffled[1:] == shuffled[:-1]).mean() + 0.1


def test_equal_shares_of_the_range_or_those_of_gprmax():
    values = Noise(1.5, (1.0,) * 3, 7).values((28, 24, 10), per_cell=True)
    for spread, numbers in (("even", np.minimum(np.floor(values * 4), 3)), ("gprmax", np.ceil(values * 3 - 1e-6))):
        names = fractal(box=BOX + f'spread = "{spread}"\n')[2:30, :, :10]
        assert (names == np.array([f"m{int(number)}" for number in numbers.ravel()]).reshape(names.shape)).all()


def heights_of(names: np.ndarray) -> np.ndarray:
    """Cells of each column that belong to the box, which has no holes."""
    filled = names != "free_space"
    assert (np.diff(filled.astype(int), axis=2) <= 0).all()
    return filled.sum(axis=2)


def test_a_rough_surface_lies_between_its_limits():
    heights = heights_of(fractal(ROUGH))
    assert (heights[2:30].min(), heights[2:30].max()) == (6, 15)
    assert (heights[:2] == 0).all()
    assert (heights[30:] == 0).all()
    wanted = np.ceil(6 + 9 * Noise(1.2, (1.0, 1.0), 3).values((28, 24), per_cell=False) - 1e-6)
    assert (heights[2:30] == wanted).all()


def test_a_part_of_a_side_is_rough():
    heights = heights_of(fractal(ROUGH, "low = [0.1, 0.05]\nhigh = [0.2, 0.2]\n"))
    rough = np.zeros(heights.shape, dtype=bool)
    rough[10:20, 5:20] = True
    assert (heights[2:30][~rough[2:30]] == 10).all()
    assert heights[rough].std() > 0.5


def test_a_side_that_looks_down_the_axis():
    side = ROUGH.replace("z+", "x-").replace("0.06", "0.01").replace("0.15", "0.08")
    filled = fractal(side) != "free_space"
    firsts = filled[:, :, :10].argmax(axis=0)
    assert firsts.min() >= 1
    assert firsts.max() <= 8
    assert filled[8:30, :, :10].all()
    assert not filled[30:].any()


def test_water_fills_what_a_surface_leaves_open():
    names = fractal(ROUGH, 'water = 0.09\nwater_material = "m4"\n')
    dry = fractal(ROUGH)
    wet = names == "m4"
    assert wet.any()
    z = np.arange(20)[None, None, :] + 0.5
    column = (dry[2:30] == "free_space") & (z < 9)
    assert (wet[2:30] == column).all()
    assert (names[~wet] == dry[~wet]).all()


def test_an_array_of_a_file(tmp_path: Path):
    data = np.random.default_rng(2).integers(-1, 3, (5, 4, 6)).astype(np.int16)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"] = data
        file.attrs["dx_dy_dz"] = (0.01, 0.01, 0.01)
    np.save(tmp_path / "a.npy", data)
    for name in ("a.h5", "a.npy"):
        text = f'[[objects]]\ntype = "voxels"\nfile = "{name}"\nposition = [0.1, 0.05, 0.03]\n'
        text += 'material = ["m0", "m1", "pec"]\n'
        scene = parse_scene(HEAD + text, tmp_path / "scene.toml")
        wanted = np.full((32, 24, 20), "free_space")
        wanted[10:15, 5:9, 3:9] = np.array(["m0", "m1", "pec", "free_space"])[data]
        assert (names_of(scene) == wanted).all()
    assert scene.digest() == parse_scene(HEAD + text, tmp_path / "scene.toml").digest()
    np.save(tmp_path / "a.npy", 1 - data.clip(0, 1))
    assert scene.digest() != parse_scene(HEAD + text, tmp_path / "scene.toml").digest()


@pytest.mark.parametrize(
    ("data", "attribute", "material", "says"),
    [
        (np.zeros((2, 2, 2), np.int16), 0.02, ["m0"], "cells of 0.02 x 0.02 x 0.02 m, not of 0.01 m"),
        (
            np.full((2, 2, 2), 2, np.int16),
            0.01,
            ["m0", "m1"],
            "the array has number 2, but there are 2 materials, counted from 0",
        ),
        (np.zeros((2, 2), np.int16), 0.01, ["m0"], r"with shape \(2, 2\), not of whole numbers along 3 axes"),
        (np.zeros((2, 2, 2)), 0.01, ["m0"], "an array of float64"),
        (np.full((2, 2, 2), -5, np.int16), 0.01, ["m0"], "numbers from -5"),
    ],
)
def test_arrays_that_cannot_be(tmp_path: Path, data: np.ndarray, attribute: float, material: list[str], says: str):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"] = data
        file.attrs["dx_dy_dz"] = (attribute,) * 3
    text = f'[[objects]]\ntype = "voxels"\nfile = "a.h5"\nposition = [0, 0, 0]\nmaterial = {material}\n'
    with pytest.raises((UsageError, DataError), match=says):
        parse_scene(HEAD + text, tmp_path / "scene.toml")


def test_files_that_are_none(tmp_path: Path):
    text = '[[objects]]\ntype = "voxels"\nfile = "a.h5"\nposition = [0, 0, 0]\nmaterial = "m0"\n'
    with pytest.raises(UsageError, match=r"there is no file .*a\.h5"):
        parse_scene(HEAD + text, tmp_path / "scene.toml")
    (tmp_path / "a.h5").write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"a\.h5: not an array of cells"):
        parse_scene(HEAD + text, tmp_path / "scene.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("dimension = 1.5", "dimension = 10.5", "10.5 is above 10"),
        ("high = [0.3,", "high = [0.02,", "it is less than a cell thick along x"),
        ("seed = 7", "seed = 7\nweights = [1, 0, 1]", "weights: 0 is not above 0"),
        ('"m3"]', '"m9"]', "there is no material 'm9'"),
        ("highest = 0.15", "highest = 0.05", "0.05 is not above lowest, 0.06"),
        ('side = "z+"', 'side = "w+"', r"there is no 'w\+'"),
        ("seed = 3", "seed = 3\nwater = 0.1", "water_material: missing"),
        ("seed = 3", f"seed = 3\n{ROUGH}", "a side has two surfaces"),
    ],
)
def test_fractals_that_cannot_be(old: str, new: str, says: str):
    text = HEAD + BOX + ROUGH
    assert text.count(old) == 1
    with pytest.raises(UsageError, match=says):
        parse_scene(text.replace(old, new), PATH)


SOIL = (
    DEEP.split("#sphere", maxsplit=1)[0]
    + "".join(f"#material: {2 + number} 0 1 0 m{number}\n" for number in range(3))
    + """#material: 80 0 1 0 water
#material_list: m0 m1 m2 soil
#fractal_box: 0 0 0 0.1 0.1 0.05 1.5 1 1 2 3 soil box 7
#add_surface_roughness: 0 0 0.05 0.1 0.1 0.05 1.5 1 1 0.04 0.06 box 3
#add_surface_water: 0 0 0.05 0.1 0.1 0.05 0.052 box
"""
)


def test_fractal_boxes_of_gprmax():
    found = convert(SOIL, PATH)
    cells, materials = paint(found.scene)
    names = np.array([one.name for one in materials])[cells]
    z = np.arange(50) + 0.5
    water = (names == "water").sum()
    assert water > 100
    assert not (names[:, :, z > 26] == "water").any()
    heights = np.isin(names, ["m0", "m1", "m2"]).sum(axis=2)
    assert (heights.min(), heights.max()) == (20, 30)
    rigid = convert(SOIL.replace("soil box 7", "soil box 7 n"), PATH).scene
    assert set(lay(rigid).edges) == {"ex", "ey", "ez"}
    assert any("it has no seed" in note for note in convert(SOIL.replace("box 7", "box"), PATH).notes)


def test_fractal_boxes_of_one_name():
    head, box = SOIL.split("#add_surface_roughness")[0], "#fractal_box: 0 0 0.06 0.1 0.1 0.08 1.5 1 1 2 3 soil box 8\n"
    names = {one.name for one in convert(head + box, PATH).scene.objects}
    assert names == {"fractal_box-line12", "fractal_box-line13"}
    with pytest.raises(InputFileError, match="there are several fractal boxes 'box' above"):
        convert(SOIL.replace("#add_surface_roughness", box + "#add_surface_roughness"), PATH)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (" 3 soil box", " 4 soil box", "it asks for 4 materials, but 'soil' has 3"),
        (" 3 soil box", " 3 m0 box", "it asks for 3 materials, but 'm0' is not a list of materials"),
        ("0.04 0.06 box", "0.04 0.06 bax", "there is no fractal box 'bax'"),
        ("roughness: 0 0 0.05 0.1 0.1 0.05", "roughness: 0 0 0.04 0.1 0.1 0.04", "it does not lie on a side of 'box'"),
        ("0.04 0.06 box", "0.06 0.04 box", "its limits 0.06 and 0.04 must ascend"),
        (
            "#add_surface_water",
            "#add_grass: 1\n#add_surface_water",
            "#add_grass: the solver does not support grass",
        ),
        ("soil box 7", "soil box 7 x", "'x' is neither y nor n"),
        ("soil box 7", "soil box seven", "'seven' is not a seed"),
    ],
)
def test_fractals_of_gprmax_that_cannot_be(old: str, new: str, says: str):
    assert SOIL.count(old) == 1
    with pytest.raises(InputFileError) as caught:
        convert(SOIL.replace(old, new), PATH)
    assert any(says in line for line in caught.value.lines), caught.value.lines
    assert len(caught.value.lines) <= 2


def test_a_mixture_that_is_not_used_is_no_problem():
    convert(DEEP + "#soil_peplinski: 0.5 0.5 2 2.66 0.001 0.25 soil\n", PATH)


def test_geometry_that_gprmax_reads(tmp_path: Path):
    data = np.random.default_rng(2).integers(-1, 2, (5, 4, 6)).astype(np.int16)
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["data"] = data
        file.attrs["dx_dy_dz"] = (0.002,) * 3
    (tmp_path / "mine.txt").write_text("#material: 3 0 1 0 case\nmore\n#material: 5 0.1 1 0 core\n", encoding="utf-8")
    text = DEEP.split("#sphere", maxsplit=1)[0] + "#geometry_objects_read: 0.02 0.03 0.04 mine.h5 mine.txt\n"
    scene = convert(text, tmp_path / "a.in").scene
    cells, materials = paint(scene)
    names = np.array([one.name for one in materials])[cells]
    assert (names[10:15, 15:19, 20:26] == np.array(["mine.case", "mine.core", "free_space"])[data]).all()
    assert scene.materials["mine.core"].conductivity == 0.1
    assert not any(one.averaging for one in scene.objects)
    assert all(
        one.averaging for one in convert(text.replace("mine.txt", "mine.txt y"), tmp_path / "a.in").scene.objects
    )
    for new, says in (("none.txt", "there is no file"), ("mine.json", "materials in JSON")):
        with pytest.raises(InputFileError, match=f"#geometry_objects_read: .*{says}"):
            convert(text.replace("mine.txt", new), tmp_path / "a.in")
