"""Solids from meshes: the cells they fill, against shapes whose inside is known; files that are no closed mesh."""

import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

from headrace import DataError, MissingFileError, UsageError
from headrace.grid import scenes
from headrace.grid.solver import meshes
from headrace.grid.solver.painting import paint

SPACING = 0.01


def centres(*shape: int) -> np.ndarray:
    """The centres of unit cells."""
    return np.stack(np.meshgrid(*(np.arange(count) + 0.5 for count in shape), indexing="ij"), axis=-1)


def moved(mesh: trimesh.Trimesh, *by: float) -> np.ndarray:
    return np.asarray(mesh.triangles) + np.array(by)


def test_a_ball_has_the_cells_within_its_radius():
    """But for those as near to its surface as the mesh is to the ball's."""
    found = meshes.filled(moved(trimesh.creation.icosphere(5, radius=11.3), 15, 14, 13.2), (30, 28, 27))
    distance = np.linalg.norm(centres(30, 28, 27) - [15, 14, 13.2], axis=-1)
    clear = np.abs(distance - 11.3) > 0.01
    assert np.array_equal(found[clear], (distance < 11.3)[clear])
    assert clear.mean() > 0.99


@pytest.mark.parametrize("turn", [0.0, 0.3, np.pi / 4])
def test_a_ring_is_open_in_the_middle_however_it_lies(turn: float):
    mesh = trimesh.creation.torus(9.0, 3.2, major_sections=256, minor_sections=128)
    turned = trimesh.transformations.rotation_matrix(turn, [1, 0.4, 0.2])
    mesh.apply_transform(turned)
    found = meshes.filled(moved(mesh, 14, 14, 13), (28, 28, 26))
    own = (centres(28, 28, 26) - [14, 14, 13]) @ turned[:3, :3]
    distance = np.hypot(np.hypot(own[..., 0], own[..., 1]) - 9.0, own[..., 2])
    clear = np.abs(distance - 3.2) > 0.02
    assert np.array_equal(found[clear], (distance < 3.2)[clear])
    assert 0 < found.mean() < 0.5


def test_faces_on_nodes_and_through_centres_take_what_is_above():
    """Where every ray meets edges and corners of the mesh, as models with round numbers have it."""
    for low, high in (((2, 3, 4), (7, 9, 11)), ((2.5, 3.5, 4.5), (7.5, 9.5, 11.5)), ((2.5, 3, 4.5), (7, 9.5, 11))):
        box = trimesh.creation.box(bounds=[low, high]).subdivide().subdivide()
        found = meshes.filled(np.asarray(box.triangles), (12, 13, 14))
        inside = np.all((centres(12, 13, 14) >= low) & (centres(12, 13, 14) < high), axis=-1)
        assert np.array_equal(found, inside)


def test_hollow_solids_and_inside_out_ones():
    """Two surfaces, one in the other; which way round triangles are does not matter."""
    outer, inner = trimesh.creation.box(bounds=[[1] * 3, [9] * 3]), trimesh.creation.box(bounds=[[4] * 3, [6] * 3])
    both = np.concatenate([np.asarray(outer.triangles), np.asarray(inner.triangles)[:, ::-1]])
    found = meshes.filled(both, (10, 10, 10))
    assert found.sum() == 8**3 - 2**3
    assert np.array_equal(meshes.filled(both[:, ::-1], (10, 10, 10)), found)


def test_a_random_closed_surface_leaves_nothing_half_open():
    """A ray that slipped through between two triangles would fill its column to the end."""
    generator = np.random.default_rng(5)
    mesh = trimesh.creation.icosphere(4, radius=8)
    mesh.vertices *= 1 + 0.3 * generator.random((len(mesh.vertices), 1))
    snapped = np.round(np.asarray(mesh.vertices) * 2) / 2  # many corners right on rays
    for vertices in (mesh.vertices, snapped):
        triangles = np.asarray(vertices)[mesh.faces] + 12.0
        found = meshes.filled(triangles, (24, 24, 24))
        assert not found[:, :, 23].any()
        assert found.sum() == pytest.approx(abs(trimesh.Trimesh(vertices, mesh.faces).volume), rel=0.03)


def scene_of(path: Path, folder: Path, **more: object) -> scenes.Scene:
    return scenes.Scene(
        scenes.Domain(size=[0.3, 0.2, 0.25], spacing=SPACING, cpml=0),
        scenes.Time(steps=10),
        materials=[scenes.Material(id="clay", permittivity=9.0)],
        objects=[scenes.Mesh(file=path.name, material="clay", **more)],
        path=folder / "scene.toml",
    )


@pytest.mark.parametrize("suffix", [".stl", ".ply", ".obj", ".STL"])
def test_files_are_scaled_and_placed(tmp_path: Path, suffix: str):
    """A ball of 60 mm around (10, 0, 5) mm, in millimetres, is the scene's own sphere but for the mesh's corners."""
    mesh = trimesh.creation.icosphere(5, radius=60.0)
    mesh.apply_translation([10, 0, 5])
    path = tmp_path / f"ball{suffix}"
    mesh.export(path, file_type=suffix[1:].lower())
    scene = scene_of(path, tmp_path, scale=0.001, position=[0.14, 0.1, 0.12])
    cells, materials = paint(scene.checked())
    own = scenes.Scene.parse(scene.text(), scene.path)
    own.objects = [scenes.Sphere(centre=[0.15, 0.1, 0.125], radius=0.06, material="clay")]
    expected, _ = paint(own.checked())
    assert (cells != expected).sum() <= 0.01 * (expected > 0).sum()
    assert (expected > 0).sum() > 800
    assert scenes.Scene.parse(scene.text(), scene.path).content() == scene.content()
    assert "clay" in [one.name for one in materials]


def test_a_mesh_that_leaves_the_domain_is_cut(tmp_path: Path):
    path = tmp_path / "box.stl"
    trimesh.creation.box(bounds=[[-1, 0.05, 0.05], [0.1, 0.1, 0.1]]).export(path)
    cells, _ = paint(scene_of(path, tmp_path).checked())
    assert (cells > 0).sum() == 10 * 5 * 5
    assert (cells[:10, 5:10, 5:10] > 0).all()


def test_what_is_no_closed_mesh_is_one_line(tmp_path: Path):
    box = trimesh.creation.box(bounds=[[0.05] * 3, [0.1] * 3])
    lid = trimesh.Trimesh(box.vertices, box.faces[2:])
    lid.export(tmp_path / "open.stl")
    (tmp_path / "garbage.stl").write_bytes(bytes(range(256)) * 7)
    (tmp_path / "empty.ply").write_bytes(b"")
    (tmp_path / "box.step").write_bytes(b"ISO-10303-21;")
    trimesh.creation.box(bounds=[[0.101] * 3, [0.104] * 3]).export(tmp_path / "tiny.stl")
    trimesh.creation.box(extents=[300.0] * 3).export(tmp_path / "huge.stl")
    for name, kind, why in (
        ("open.stl", DataError, "its surface is not closed: 4 of 17 edges"),
        ("garbage.stl", DataError, "not a mesh"),
        ("empty.ply", DataError, "not a mesh"),
        ("box.step", UsageError, "a mesh is a file of .stl, .ply, .obj"),
        ("none.stl", MissingFileError, "there is no file"),
        ("tiny.stl", UsageError, "encloses no cell centre"),
        ("huge.stl", UsageError, "scale = 0.001 is for one in millimetres"),
    ):
        with pytest.raises(kind) as caught:
            scene_of(tmp_path / name, tmp_path).checked()
        assert why in str(caught.value)
        assert name in str(caught.value)
    plane = scenes.Scene(
        scenes.Domain(size=[0.1, 0.1], spacing=SPACING, cpml=0),
        scenes.Time(steps=1),
        objects=[scenes.Mesh(file="open.stl", material="pec")],
        path=tmp_path / "scene.toml",
    )
    with pytest.raises(UsageError, match="needs three dimensions"):
        plane.checked()


def test_without_trimesh_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(UsageError, match=r"needs trimesh: .* -m pip install trimesh"):
        meshes.load(tmp_path / "a.stl")


def test_rays_right_through_edges_and_corners_meet_one_triangle_of_those_that_share_them():
    """Corners lie exactly on rays, so each ray through one passes along the edges of up to eight triangles."""
    mesh = trimesh.creation.box(bounds=[[2] * 3, [8] * 3]).subdivide().subdivide()
    vertices = np.asarray(mesh.vertices)
    vertices[:, :2] = np.round(vertices[:, :2]) + 0.5 + meshes.SLACK
    found = meshes.filled(vertices[mesh.faces], (12, 12, 12))
    counts = found.sum(axis=2)
    assert set(np.unique(counts)) == {0, 6}
    assert not found[:, :, 8:].any()
    assert (counts > 0).sum() == 6 * 6
