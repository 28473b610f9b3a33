"""Conversion of gprMax's commands for objects, sources and layers, beyond boxes and spheres."""

import numpy as np
import pytest
from test_grid_convert import DEEP, FLAT, PATH, converted

from headrace.grid.gprmax import InputFileError, convert
from headrace.grid.solver.painting import lay
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.shapes import Box
from headrace.grid.solver.sheets import Sheet, Wire
from headrace.grid.solver.solids import Sector, Triangle

MEDIA = "#material: 4 0.01 1 0 sand\n#material: 9 0 1 0 wet\n#material: 5 0 3 0 iron\n"


def deep(*commands: str) -> Scene:
    return convert(DEEP.split("#sphere", maxsplit=1)[0] + MEDIA + "\n".join(commands) + "\n", PATH).scene


def edges_of(scene: Scene) -> dict[str, dict[tuple[int, ...], str]]:
    laid = lay(scene)
    return {
        name: {
            tuple(int(at) for at in np.unravel_index(cell, scene.shape, order="F")): laid.materials[number].name
            for cell, number in zip(own.cells, own.materials, strict=True)
        }
        for name, own in laid.edges.items()
    }


def test_plates_and_edges():
    scene = deep("#plate: 0.0209 0.02 0.04 0.03 0.026 0.04 pec", "#edge: 0.05 0.06 0.01 0.05 0.06 0.014 sand")
    assert [type(one.shape) for one in scene.objects] == [Sheet, Wire]
    assert not any(one.averaging for one in scene.objects)
    found = edges_of(scene)
    # 2 mm per cell; a corner between nodes takes the nearest one.
    assert found["ex"] == {(x, y, 20): "pec" for x in range(10, 15) for y in range(10, 14)}
    assert found["ey"] == {(x, y, 20): "pec" for x in range(10, 16) for y in range(10, 13)}
    assert found["ez"] == {(25, 30, z): "sand" for z in (5, 6)}


def test_a_plate_with_two_materials():
    found = edges_of(deep("#plate: 0.02 0.04 0.02 0.024 0.04 0.022 sand wet"))
    assert set(found["ex"].values()) == {"sand"}
    assert set(found["ez"].values()) == {"wet"}
    assert "ey" not in found


def test_patches_without_a_thickness():
    scene = deep(
        "#triangle: 0.02 0.02 0.04 0.08 0.02 0.04 0.08 0.08 0.04 0 pec",
        "#cylindrical_sector: y 0.05 0.05 0.02 0.02 0.02 0 90 wet",
    )
    first, second = (one.shape for one in scene.objects)
    assert isinstance(first, Sheet)
    assert isinstance(second, Sheet)
    assert (first.axis, first.at) == (2, pytest.approx(0.04))
    assert isinstance(first.outline, Triangle)
    assert (second.axis, second.at) == (1, pytest.approx(0.02))
    assert isinstance(second.outline, Sector)
    x, y = np.indices((50, 50)) + 0.5
    faces = {(int(i), int(j)) for i, j in np.argwhere((x < 40) & (y > 10) & (y < x - 1e-6))}
    along_x = {(i, j + step, 20) for i, j in faces for step in (0, 1)}
    assert set(edges_of(scene)["ex"]) >= along_x
    assert {node for node, name in edges_of(scene)["ex"].items() if name == "pec"} == along_x


def test_an_object_that_is_not_smoothed_keeps_its_edges():
    scene = deep("#box: 0.02 0.02 0.02 0.024 0.024 0.024 wet n", "#box: 0.04 0.04 0.04 0.044 0.044 0.044 wet y")
    assert [one.averaging for one in scene.objects] == [False, True]
    inside = range(10, 13)
    assert edges_of(scene)["ez"] == {(x, y, z): "wet" for x in inside for y in inside for z in (10, 11)}


def test_what_is_not_smoothed_and_magnetic_is_told():
    text = DEEP.split("#sphere", maxsplit=1)[0] + MEDIA + "#box: 0 0 0 0.01 0.01 0.01 iron n\n"
    assert any("gprMax gives components of H its permeability" in note for note in convert(text, PATH).notes)
    assert not any("of H" in note for note in convert(text.replace("iron n", "sand n"), PATH).notes)


def test_a_material_for_each_axis():
    scene = deep("#sphere: 0.05 0.05 0.05 0.004 sand wet pec")
    assert scene.objects[0].axes == ("sand", "wet", "pec")
    assert {name: set(edges.values()) for name, edges in edges_of(scene).items()} == {
        "ex": {"sand"},
        "ey": {"wet"},
        "ez": {"pec"},
    }
    flat = converted(FLAT, "0.010 pec n", "0.010 half_space half_space pec").scene
    assert (flat.objects[-1].material, flat.objects[-1].averaging) == ("pec", False)


def test_thin_objects_in_two_dimensions():
    text = FLAT + (
        "#plate: 0.1 0.05 0 0.1 0.09 0.002 pec\n#edge: 0.05 0.06 0 0.05 0.06 0.002 half_space\n"
        "#plate: 0.1 0.05 0 0.12 0.09 0 pec\n#edge: 0.05 0.06 0 0.07 0.06 0 pec\n"
    )
    found = convert(text, PATH)
    assert [one.shape for one in found.scene.objects[2:]] == [
        Sheet(0, 0.1, Box((0.05,), (0.09,))),
        Wire((0.05, 0.06), (0.05, 0.06)),
    ]
    for line, name in ((16, "plate"), (17, "edge")):
        assert any(
            f":{line}: #{name}: left out: in two dimensions with the electric field along z" in one
            for one in found.notes
        )


def test_sources_of_voltage():
    scene = deep("#voltage_source: y 0.05 0.05 0.05 75 pulse 1e-10 2e-9")
    source = scene.sources[-1]
    assert (source.field, source.resistance, source.wave.delay, source.wave.stop) == ("ey", 75, 1e-10, 2e-9)
    # In version 4 a port follows.
    text = DEEP + "#voltage_source: y 0.05 0.05 0.05 75 pulse 1e-10 2e-9 feed 10\n"
    found = convert(text, PATH)
    assert found.scene.sources[-1] == source
    assert any("'feed 10' names a port" in note for note in found.notes)


def test_magnetic_dipoles():
    scene = deep("#magnetic_dipole: x 0.05 0.05 0.05 pulse")
    source = scene.sources[-1]
    # The amplitude is a moment there, and here a current over the length of a cell: 2 / 0.002.
    assert (source.field, source.wave.amplitude) == ("hx", 1000.0)
    assert converted(FLAT, "#hertzian_dipole: z", "#magnetic_dipole: y").scene.sources[0].field == "hy"
    with pytest.raises(InputFileError, match="only a magnetic dipole across z is supported, not one along z"):
        converted(FLAT, "#hertzian_dipole: z", "#magnetic_dipole: z")


def test_layers_that_differ_from_wall_to_wall():
    scene = converted(FLAT, "#rx:", "#pml_cells: 5 0 9 7 8 9\n#rx:").scene
    assert scene.layers.sides == ((5, 7), (0, 8))
    assert scene.cpml == 8
    deep_scene = deep("#pml_cells: 1 2 3 4 5 6")
    assert deep_scene.layers.sides == ((1, 4), (2, 5), (3, 6))


TURNED = """\
#domain: 0.002 0.240 0.210
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 3e-9
#material: 6 0.01 1 0 half_space
#waveform: ricker 1 1.5e9 my_ricker
#hertzian_dipole: x 0 0.100 0.170 my_ricker
#rx: 0 0.140 0.170 a Ex Hy Hz
#pml_cells: 3 4 5 3 6 7
#box: 0 0 0 0.002 0.240 0.170 half_space
#cylinder: 0 0.120 0.080 0.002 0.120 0.080 0.010 pec n
#cylindrical_sector: x 0.1 0.05 0 0.002 0.02 10 60 pec
"""


def test_two_dimensions_across_x():
    found = convert(TURNED, PATH)
    plain = FLAT.split("#cylinder", maxsplit=1)[0].replace("#rx: 0.140 0.170 0", "#rx: 0.140 0.170 0 a Ez Hx Hy")
    plain += "#pml_cells: 4 5 3 6 7 3\n#cylinder: 0.120 0.080 0 0.120 0.080 0.002 0.010 pec n\n"
    plain += "#cylindrical_sector: z 0.1 0.05 0 0.002 0.02 10 60 pec\n"
    wanted = convert(plain, PATH).scene
    scene = found.scene
    for name in ("shape", "layers", "dt", "steps", "materials", "sources", "receivers"):
        assert getattr(scene, name) == getattr(wanted, name), name
    assert [(one.shape, one.material, one.averaging) for one in scene.objects] == [
        (one.shape, one.material, one.averaging) for one in wanted.objects
    ]
    assert any("y is now x, z is now y, x is now z" in note for note in found.notes)


def test_two_dimensions_across_y():
    """x, y and z become y, z and x: the direction to the right becomes upwards."""
    text = """\
#domain: 0.240 0.002 0.210
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 3e-9
#waveform: ricker 1 1.5e9 my_ricker
#hertzian_dipole: y 0.100 0 0.170 my_ricker
#rx: 0.140 0 0.170
#cylindrical_sector: y 0.1 0.05 0 0.002 0.02 10 60 pec
#box: 0.02 0 0.04 0.06 0.002 0.2 pec pec free_space
"""
    scene = convert(text, PATH).scene
    assert (scene.shape, scene.sources[0].field, scene.sources[0].position) == ((105, 120), "ez", (0.17, 0.1))
    x, z = np.meshgrid(np.arange(120) + 0.5, np.arange(105) + 0.5, indexing="ij")
    angle = np.degrees(np.arctan2(z - 25, x - 50)) % 360
    sector = (np.hypot(x - 50, z - 25) <= 10) & (angle > 10) & (angle < 70)
    cells = lay(scene).cells
    box = (x > 10) & (x < 30) & (z > 20) & (z < 100)
    assert ((sector | box) == (cells == 1).T).all()


def test_slanted_ends_and_sides_are_those_of_gprmax():
    """gprMax's triangles exclude centres on their sides; its slanted cylinders include those in both ends."""
    scene = deep("#cylinder: 0.06 0.02 0.02 0.06 0.06 0.06 0.008 pec")
    y, z = np.indices((50, 50)) + 0.5
    middle = lay(scene).cells[30] == 1
    along = (y - 10) + (z - 10)  # from 0 at one end to 40 at the other
    across = np.abs(y - z) / np.sqrt(2)
    assert (middle == ((along >= 0) & (along <= 40) & (across**2 + 0.25 <= 16 + 1e-6))).all()
    assert middle[(along == 40) & (across < 2)].all()
