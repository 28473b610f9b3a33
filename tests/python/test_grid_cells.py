"""Scenes whose cells have edges of different lengths: every object, source and output."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid_reference import NumpyFdtd
from grid_scenes import PATH

from headrace import UsageError
from headrace.grid import scenes
from headrace.grid.gprmax import convert, exports
from headrace.grid.solver import Layout, parse_scene
from headrace.grid.solver.model import build, paint
from headrace.grid.solver.pictures import Plane, draw
from headrace.grid.solver.session import Outputs, run_one
from headrace.grid.solver.views import draw_scene

LIGHT = 299_792_458.0
IMPEDANCE = 4e-7 * np.pi * LIGHT
CPU = ["cpu:0"]
WAYS = [
    *[(direction, "ez", (0.01, 0.006)) for direction in ("+x", "-x", "+y", "-y")],
    *[(direction, "ey", (0.01, 0.006)) for direction in ("+x", "-x")],
    *[(direction, "ex", (0.01, 0.006)) for direction in ("+y", "-y")],
    *[("+x", "ey", (0.01, 0.008, 0.012)), ("-y", "ez", (0.01, 0.008, 0.012)), ("+z", "ex", (0.01, 0.008, 0.012))],
]


def space(spacing: Any, **parts: Any) -> scenes.Scene:
    """A domain of 36 x 30 x 32 cm with walls that conduct."""
    domain = scenes.Domain(size=[0.36, 0.30, 0.32], spacing=spacing, cpml=0, precision="double")
    return scenes.Scene(domain, **{"time": scenes.Time(steps=60), **parts})


OBJECTS = [
    scenes.Box(low=[0.05, 0.05, 0.05], high=[0.13, 0.1, 0.12], material="clay"),
    scenes.Sphere(centre=[0.24, 0.2, 0.2], radius=0.05, material="clay", averaging=False),
    scenes.Cylinder(start=[0.05, 0.2, 0.1], end=[0.2, 0.22, 0.25], radius=0.03, material="iron"),
    scenes.Plate(low=[0.06, 0.24, 0.06], high=[0.2, 0.24, 0.2], material="pec"),
    scenes.Wire(start=[0.3, 0.1, 0.06], end=[0.3, 0.1, 0.2], material="pec"),
]
MATERIALS = [
    scenes.Material(id="clay", permittivity=6.0, conductivity=0.05),
    scenes.Material(id="iron", permittivity=2.0, permeability=4.0),
]


def test_a_scene_with_every_kind_of_source_is_that_of_plain_numpy():
    """The solver computes with other fields and coefficients than those that users see; NumPy with the same."""
    shared = {"waveform": "ricker", "frequency": 1e9}
    sources = [
        scenes.Source(position=[0.18, 0.15, 0.16], field="ey", **shared),
        scenes.Source(position=[0.12, 0.15, 0.16], field="ex", resistance=30.0, **shared),
        scenes.Source(position=[0.18, 0.1, 0.16], field="hz", amplitude=40.0, **shared),
        scenes.Source(position=[0.24, 0.12, 0.08], field="hx", amplitude=40.0, **shared),
    ]
    fields = ["ex", "ey", "ez", "hx", "hy", "hz"]
    receivers = [scenes.Receiver(id="all", position=[0.21, 0.18, 0.12], fields=fields)]
    scene = space(
        [0.02, 0.01, 0.016], materials=MATERIALS, objects=OBJECTS, sources=sources, receivers=receivers
    ).checked()
    assert scene.shape == (18, 30, 20)
    solver, plain = build(scene, Layout()), build(scene, Layout(), NumpyFdtd)
    solver.solver.step(scene.steps)
    plain.solver.step(scene.steps)
    for name in fields:
        right = plain.solver.field(name)
        assert np.abs(right).max() > 0
        np.testing.assert_allclose(solver.solver.field(name), right, atol=1e-9 * np.abs(right).max())
        trace = plain.solver.trace(plain.receivers["all", name])
        np.testing.assert_allclose(
            solver.solver.trace(solver.receivers["all", name]), trace, atol=1e-9 * np.abs(trace).max()
        )


def peaks(spacing: Any, size: list[float], source: scenes.Source, place: list[float], field: str) -> np.ndarray:
    """A trace at the times of 20 samples a period of 1 GHz."""
    scene = scenes.Scene(
        scenes.Domain(size=size, spacing=spacing, cpml=10, precision="double"),
        scenes.Time(window=3e-9),
        sources=[source],
        receivers=[scenes.Receiver(id="here", position=place, fields=[field])],
    )
    trace = scene.run(CPU)["here", field]
    return np.interp(np.arange(0, 2.9e-9, 5e-11), trace.times, trace.values)


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"field": "ez"}, "ez"),
        ({"field": "ex"}, "ex"),
        ({"field": "hy", "amplitude": 300.0}, "hy"),
        ({"field": "hz", "amplitude": 300.0}, "hz"),
    ],
)
def test_a_dipole_is_as_long_as_its_edge(keys: dict[str, Any], field: str):
    """A moment is amplitude times length: with the same moment, cubes of 10 mm give the same field."""
    size, centre, place = [0.48, 0.48, 0.48], [0.24, 0.24, 0.24], [0.32, 0.32, 0.32]
    traces = []
    for spacing in ([0.01, 0.005, 0.008], [0.01, 0.01, 0.01]):
        # Halfway along the edge or face that the component lies in the middle of.
        along = "xyz".index(field[1])
        shared = {"waveform": "gaussiandotnorm", "frequency": 0.7e9, **keys}
        shared["amplitude"] = shared.get("amplitude", 1.0) / spacing[along]
        offset = [(axis == along) == (field[0] == "e") for axis in range(3)]
        at = [
            [
                np.floor((one - half * cell / 2) / cell + 0.5 + 1e-6) * cell
                for one, half, cell in zip(where, offset, spacing, strict=True)
            ]
            for where in (centre, place)
        ]
        traces.append(peaks(spacing, size, scenes.Source(position=at[0], **shared), at[1], field))
    error = np.linalg.norm(traces[0] - traces[1]) / np.linalg.norm(traces[1])
    assert error < 0.06, error


def test_a_line_current_is_that_of_finer_squares():
    """Errors of the finer squares are a fourth; the difference falls with the square of the cells."""
    errors = []
    for refined in (1, 2):
        traces = [
            peaks(
                spacing,
                [0.4, 0.4],
                scenes.Source(position=[0.2, 0.2], waveform="gaussiandotnorm", frequency=0.7e9),
                [0.32, 0.28],
                "ez",
            )
            for spacing in ([0.01 / refined, 0.005 / refined], 0.005 / refined)
        ]
        errors.append(np.linalg.norm(traces[0] - traces[1]) / np.linalg.norm(traces[1]))
    assert errors[0] < 0.03, errors
    assert errors[0] / errors[1] > 3, errors


def test_a_voltage_behind_a_resistance_drives_the_same_current():
    """The current of a source, from Ampere's law around its edge, is (voltage - field x length) / resistance."""
    scene = space(
        [0.02, 0.01, 0.016],
        time=scenes.Time(steps=150),
        sources=[
            scenes.Source(position=[0.18, 0.15, 0.16], field="ez", waveform="ricker", frequency=0.4e9, resistance=50.0)
        ],
    ).checked()
    solver = build(scene, Layout()).solver
    (x, y, z), (dx, dy, dz) = scene.cell(scene.sources[0].position), scene.spacing
    begins = np.arange(scene.steps) * scene.dt
    voltage = scene.sources[0].wave.at(begins, begins + scene.dt / 2, scene.dt)
    before, off, largest = 0.0, 0.0, 0.0
    for step in range(scene.steps):
        solver.step(1)
        electric, hx, hy = (solver.field(name) for name in ("ez", "hx", "hy"))
        around = (hy[x, y, z] - hy[x - 1, y, z]) * dy - (hx[x, y, z] - hx[x, y - 1, z]) * dx
        now = electric[x, y, z]
        displaced = 8.8541878128e-12 * (now - before) / scene.dt * dx * dy
        current = (voltage[step] + (now + before) / 2 * dz) / 50.0
        off, largest = max(off, abs(around - displaced - current)), max(largest, abs(current))
        before = now
    assert largest > 1e-3
    assert off < 1e-6 * largest


@pytest.mark.parametrize(("direction", "field", "spacing"), WAYS)
def test_a_plane_wave_is_inside_its_box_and_nothing_outside(direction: str, field: str, spacing: tuple[float, ...]):
    size = [0.72, 0.6] if len(spacing) == 2 else [0.36, 0.32, 0.36]
    scene = scenes.Scene(
        scenes.Domain(
            size=size,
            spacing=list(spacing),
            cpml=8,
            precision="double",
            polarisation="te" if len(spacing) == 2 and field != "ez" else None,
        ),
        scenes.Time(window=1.35e-9),
        plane_waves=[scenes.PlaneWave(direction=direction, field=field, waveform="gaussian", frequency=1e9)],
    ).checked()
    solver = build(scene, Layout()).solver
    solver.step(scene.steps)
    wave = scene.plane_waves[0]
    inside = tuple(slice(low, high) for low, high in zip(wave.low, wave.high, strict=True))
    outside = np.ones(scene.shape, bool)
    outside[tuple(slice(low - 1, high + 1) for low, high in zip(wave.low, wave.high, strict=True))] = False
    entry = wave.low[wave.axis] - 1 if wave.forward else wave.high[wave.axis] + 1
    late = np.abs(np.arange(scene.shape[wave.axis]) - entry) * scene.spacing[wave.axis] / LIGHT
    time = scene.steps * scene.dt - late
    right = np.where(time > 0, np.exp(-2 * (np.pi * 1e9 * (time - 1e-9)) ** 2), 0)
    shape = [1] * scene.dimensions
    shape[wave.axis] = -1
    right = np.broadcast_to(right.reshape(shape), scene.shape)[inside]
    assert right.max() > 0.7
    assert np.linalg.norm(solver.field(field)[inside] - right) < 0.025 * np.linalg.norm(right)
    for name in scene.fields:
        unit = 1.0 if name[0] == "e" else IMPEDANCE
        assert np.abs(solver.field(name)[outside]).max() * unit < 1e-12, name


def test_what_leaves_a_box_is_what_a_dipole_radiates():
    """As test_grid_monitors.py has it, in cells that are longer along x."""
    frequencies, spacing = np.array([0.8e9, 1.2e9, 1.6e9]), [0.008, 0.005, 0.004]
    low, high = [0.064, 0.07, 0.064], [0.136, 0.14, 0.148]
    planes = []
    for axis in range(3):
        for at in (low, high):
            ends = {"low": list(low), "high": list(high)}
            ends["low"][axis] = ends["high"][axis] = at[axis]
            planes.append(scenes.Monitor(id=f"{axis}{at[axis]}", type="flux", frequencies=frequencies.tolist(), **ends))
    scene = scenes.Scene(
        scenes.Domain(size=[0.2] * 3, spacing=spacing, cpml=8),
        scenes.Time(window=5e-9),
        sources=[
            scenes.Source(position=[0.096, 0.1, 0.1], field="ex", waveform="gaussiandot", frequency=1e9, amplitude=1e-9)
        ],
        monitors=planes,
    )
    checked = scene.checked()
    begins = np.arange(checked.steps) * checked.dt
    current = checked.sources[0].wave.at(begins, begins + checked.dt / 2, checked.dt)
    amplitude = np.abs(np.exp(-2j * np.pi * np.outer(frequencies, begins)) @ current) * checked.dt
    expected = 4 * IMPEDANCE * (2 * np.pi * frequencies / LIGHT * spacing[0] * amplitude) ** 2 / (12 * np.pi)
    spectra = scene.record(CPU).spectra
    found = sum(
        (1 if one.low[axis] == high[axis] else -1) * spectra[one.id, "flux"].values
        for one in planes
        for axis in [int(str(one.id)[0])]
    )
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_smoothing_takes_the_exact_shapes():
    """The echo of a metal cylinder, against squares of a quarter of the size: off by less than without smoothing."""

    def echo(spacing: Any, *, smoothing: bool) -> np.ndarray:
        found = []
        for objects in ([scenes.Cylinder(centre=[0.203, 0.2013], radius=0.0475, material="pec")], []):
            scene = scenes.Scene(
                scenes.Domain(size=[0.4, 0.4], spacing=spacing, precision="double", smoothing=smoothing),
                scenes.Time(window=4e-9),
                objects=objects,
                sources=[scenes.Source(position=[0.2, 0.32], waveform="gaussiandotnorm", frequency=0.6e9)],
                receivers=[scenes.Receiver(id="here", position=[0.28, 0.32])],
            )
            trace = scene.run(CPU)["here", "ez"]
            found.append(np.interp(np.arange(0, 3.9e-9, 5e-11), trace.times, trace.values))
        return found[0] - found[1]

    right = echo(0.002, smoothing=True)
    off = {
        smoothing: np.linalg.norm(echo([0.01, 0.005], smoothing=smoothing) - right) / np.linalg.norm(right)
        for smoothing in (True, False)
    }
    assert off[True] < 0.025, off
    assert off[True] < off[False] / 2, off


def test_objects_cover_the_cells_whose_centres_they_contain(tmp_path: Path):
    np.save(tmp_path / "cells.npy", np.zeros((3, 4, 5), dtype=np.int32))
    spacing = (0.02, 0.01, 0.016)
    scene = space(
        list(spacing),
        objects=[
            scenes.Ellipsoid(centre=[0.1, 0.1, 0.1], radii=[0.05, 0.03, 0.04], material="pec"),
            scenes.Voxels(position=[0.2, 0.2, 0.16], file="cells.npy", material="pec"),
        ],
        path=tmp_path / "scene.toml",
    ).checked()
    cells, materials = paint(scene)
    centres = np.meshgrid(*((np.arange(n) + 0.5) * d for n, d in zip(scene.shape, spacing, strict=True)), indexing="ij")
    inside = sum(((at - 0.1) / radius) ** 2 for at, radius in zip(centres, (0.05, 0.03, 0.04), strict=True)) <= 1
    inside[10:13, 20:24, 10:15] = True
    assert ((cells == [one.name for one in materials].index("pec")) == inside).all()


def test_a_mesh_fills_the_same_cells_as_its_shape(tmp_path: Path):
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.icosphere(5, radius=0.08)
    mesh.apply_translation([0.18, 0.15, 0.16])
    mesh.export(tmp_path / "ball.stl")
    counts = []
    for one in (
        scenes.Mesh(file="ball.stl", material="pec"),
        scenes.Sphere(centre=[0.18, 0.15, 0.16], radius=0.08, material="pec"),
    ):
        scene = space([0.02, 0.01, 0.016], objects=[one], path=tmp_path / "scene.toml").checked()
        counts.append(paint(scene)[0] > 0)
    assert counts[1].sum() > 600
    assert (counts[0] != counts[1]).sum() <= 0.015 * counts[1].sum()


def test_a_rough_surface_rises_in_cells_of_its_own_axis():
    surface = scenes.Surface(side="z+", lowest=0.18, highest=0.26, dimension=1.5, water=0.23, water_material="clay")
    box = scenes.FractalBox(
        low=[0.04, 0.04, 0.04], high=[0.32, 0.26, 0.22], dimension=1.5, material="iron", surfaces=[surface]
    )
    scene = space([0.02, 0.01, 0.016], materials=MATERIALS, objects=[box]).checked()
    cells, materials = paint(scene)
    names = np.array([one.name for one in materials])[cells]
    heights = ((np.arange(20) + 0.5) * 0.016)[np.newaxis, np.newaxis, :]
    iron, water = names == "iron", names == "clay"
    assert iron[:, :, :2].sum() == 0
    assert (heights * iron).max() == pytest.approx(0.26, abs=0.016)
    assert (heights * water).max() == pytest.approx(0.23, abs=0.016)
    top = (heights * iron).max(axis=2)[2:16, 4:26]
    assert top.min() == pytest.approx(0.18, abs=0.016)


TEXT = """
[domain]
size = [0.4, 0.3]
spacing = [0.02, 0.01]
cpml = 0
[time]
steps = 40
[[sources]]
position = [0.2, 0.2]
waveform = "ricker"
frequency = 0.5e9
[[receivers]]
id = "near"
position = [0.26, 0.2]
fields = ["ez", "hx", "hy"]
[snapshots]
fields = ["hy"]
interval = 0.5e-9
[scan]
step = [0.04, 0.01]
count = 2
"""


def test_files_have_the_spacing_of_each_axis(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    scene = parse_scene(TEXT, PATH)
    assert (scene.shape, scene.spacing, scene.size) == ((20, 30), (0.02, 0.01), (0.4, 0.3))
    assert scene.scan is not None
    assert scene.scan.cells == (2, 1)
    run_one(scene, Layout(), Outputs(traces=tmp_path / "t.h5", snapshots=tmp_path / "s"), position=1)
    with h5py.File(tmp_path / "t.h5") as file:
        assert file.attrs["spacing"].tolist() == [0.02, 0.01]
        assert file["receivers/near/position"][0] == pytest.approx([0.3, 0.21])
        assert file["receivers/near/hy"].attrs["offset"].tolist() == [0.01, 0]
        assert file["receivers/near/hx"].attrs["offset"].tolist() == [0, 0.005]
    found = exports.read(tmp_path / "t.h5")
    assert found.spacing == (0.02, 0.01)
    exports.write_gprmax(tmp_path / "t.out", found, separate=False)
    with h5py.File(tmp_path / "t.out") as file:
        assert file.attrs["dx_dy_dz"].tolist() == [0.02, 0.01, 0.01]
    for name, origin in (("materials", "0.0 0.0 0.0"), ("hy-step-00000040", "0.01 0.0 0.0")):
        path = next(one for one in (tmp_path / "s").iterdir() if one.name.startswith(name[:9]))
        head = path.read_bytes().partition(b'<AppendedData encoding="raw">')[0]
        image = ET.fromstring(head + b"</VTKFile>").find("ImageData")
        assert image is not None
        assert image.get("Spacing") == "0.02 0.01 0.01"
        assert image.get("Origin") == origin


def test_pictures_are_as_wide_and_high_as_the_domain(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from PIL import Image  # noqa: PLC0415

    sizes = []
    for spacing in ("spacing = [0.02, 0.01]", "spacing = 0.01"):
        scene = parse_scene(TEXT.replace("spacing = [0.02, 0.01]", spacing), PATH)
        plane = Plane.of(scene, "xy")
        draw(tmp_path / "one.png", plane, "ez", plane.frame(np.ones(scene.shape), 0.0))
        draw_scene(tmp_path / "two.png", scene)
        for name in ("one.png", "two.png"):
            with Image.open(tmp_path / name) as picture:
                sizes.append(picture.size)
    assert sizes[:2] == sizes[2:]


def test_a_checkpoint_belongs_to_its_spacing():
    even = parse_scene(TEXT.replace("spacing = [0.02, 0.01]", "spacing = 0.01"), PATH)
    listed = parse_scene(TEXT.replace("spacing = [0.02, 0.01]", "spacing = [0.01, 0.01]"), PATH)
    assert even.digest() == listed.digest()
    assert even.digest() != parse_scene(TEXT, PATH).digest()


def test_python_scenes_have_a_number_or_a_list():
    scene = scenes.Scene.parse(TEXT)
    assert scene.domain.spacing == [0.02, 0.01]
    assert "spacing = [0.02, 0.01]" in scene.text()
    assert scenes.Scene.parse(scene.text()).content() == scene.content()


@pytest.mark.parametrize(
    ("spacing", "text"),
    [
        ("[0.02]", r"spacing: \[0.02\] is not a list of 2 numbers"),
        ("[0.02, 0.0]", "spacing: 0 is not above 0"),
        ("[0.02, -0.01]", "spacing: -0.01 is not above 0"),
        ('[0.02, "x"]', "spacing: 'x' is not a number"),
        ("[0.02, 0.011]", "0.3 m along y is 27.2727 cells of 0.011 m, not a whole number; use 0.297 or 0.308 m"),
    ],
)
def test_wrong_spacings_are_refused(spacing: str, text: str):
    with pytest.raises(UsageError, match=text):
        parse_scene(TEXT.replace("[0.02, 0.01]", spacing), PATH)


def test_warnings_are_about_the_longer_edges():
    thin = '[[objects]]\ntype = "box"\nlow = [{}]\nhigh = [{}]\nmaterial = "pec"\n'
    # A box of one cell along y is not thin, half a cell along x is.
    fine = parse_scene(TEXT + thin.format("0.1, 0.1", "0.2, 0.11"), PATH)
    assert not [one for one in fine.warnings if "thick" in one]
    half = parse_scene(TEXT + thin.format("0.106, 0.1", "0.116, 0.2"), PATH)
    assert any("0.01 m thick, but cells are 0.02 x 0.01 m" in one for one in half.warnings), half.warnings
    coarse = parse_scene(TEXT.replace("0.5e9", "1.2e9"), PATH)
    assert any("cells of 0.02 m along x" in one for one in coarse.warnings), coarse.warnings


GPRMAX = """
#title: Boxes
#domain: 0.1 0.08 {depth}
#dx_dy_dz: 0.002 0.001 {z}
#time_window: 1e-9
#pml_cells: 5
#waveform: ricker 2 1.5e9 w
#{source}
#rx: 0.06 0.05 0
"""


def test_gprmax_files_with_such_cells_are_converted():
    source = "hertzian_dipole: z 0.05 0.04 0 w"
    flat = convert(GPRMAX.format(depth="0.004", z="0.004", source=source), Path("flat.in")).scene
    assert (flat.shape, flat.spacing) == ((50, 80), (0.002, 0.001))
    assert flat.dt == pytest.approx(1 / (LIGHT * np.hypot(1 / 0.002, 1 / 0.001)), rel=1e-12)
    deep = convert(GPRMAX.format(depth="0.08", z="0.004", source=source), Path("deep.in")).scene
    assert (deep.shape, deep.spacing) == ((50, 80, 20), (0.002, 0.001, 0.004))
    # A scene in two dimensions is as thick as its shortest edge, 1 mm; the file's cells are 4 mm.
    voltage = convert(
        GPRMAX.format(depth="0.004", z="0.004", source="voltage_source: z 0.05 0.04 0 50 w"), Path("v.in")
    )
    (one,) = voltage.scene.sources
    assert (one.resistance, one.wave.amplitude) == (12.5, 0.5)
    magnetic = convert(GPRMAX.format(depth="0.004", z="0.004", source="magnetic_dipole: x 0.05 0.04 0 w"), Path("m.in"))
    assert magnetic.scene.sources[0].wave.amplitude == pytest.approx(2 / (0.002 * 4))
