"""Materials of a plane per component: cylinders against their series, cavities, shares of areas, and contours."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from grid_scenes import flat
from programs import load_program
from scipy.special import jn_zeros

from headrace import UsageError
from headrace.grid import Fdtd
from headrace.grid.solver import Layout, Outputs, Scene, memory, parse_scene, run_one
from headrace.grid.solver.model import build
from headrace.grid.solver.smoothing import smooth
from headrace.grid.solver.traces import write

LIGHT = 299792458.0
PEC = 1e10  # S/m


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/grid_interfaces.py")


def scene_of(domain: str, objects: str = "", **keys: Any) -> Scene:
    """A small scene with sand of permittivity 4 and a ferrite of permeability 5."""
    text = f"""
    domain = {{ spacing = 0.01, precision = "double", cpml = 0, smoothing = true, {domain} }}
    time = {{ steps = {keys.get("steps", 10)}, courant = {keys.get("courant", 1.0)} }}
    materials = [{{ id = "sand", permittivity = 4.0, conductivity = 0.01 }}, {{ id = "ferrite", permeability = 5.0 }}]
    objects = [{objects}]
    sources = [{{ position = {keys.get("source", [0.05, 0.05])}, waveform = "ricker", frequency = 1e9 }}]
    """
    return parse_scene(text, Path("scene.toml"))


@pytest.mark.parametrize(("number", "largest"), [(0, 0.007), (1, 0.002)])
def test_a_cylinder_is_of_second_order(bench: ModuleType, number: int, largest: float):
    cylinder = bench.CYLINDERS[number]
    coarse, fine = (bench.error_of(cylinder, spacing, smoothing=True) for spacing in (0.01, 0.005))
    assert fine < largest
    assert np.log2(coarse / fine) > 1.85
    assert bench.error_of(cylinder, 0.005, smoothing=False) > 1.9 * fine


def resonance(spacing: float, radius: float, *, smoothing: bool) -> float:
    """The lowest resonance of a round metal cavity in Hz, from the phase of its field over time."""
    count = round(0.3 / spacing)
    scene = parse_scene(
        f"""
        [domain]
        size = [0.3, 0.3]
        spacing = {spacing}
        precision = "double"
        cpml = 0
        background = "pec"
        smoothing = {str(smoothing).lower()}
        [time]
        steps = 4
        courant = 1.0
        [[objects]]
        type = "cylinder"
        centre = [0.1513, 0.1487]
        radius = {radius}
        material = "free_space"
        """,
        Path("cavity.toml"),
    )
    solver = build(scene, Layout()).solver
    x, y = (np.arange(count) * spacing - at for at in (0.1513, 0.1487))
    shape = np.maximum(1 - (x[:, None] ** 2 + y[None, :] ** 2) / radius**2, 0)
    assert isinstance(solver, Fdtd)
    solver.set_field("ez", shape)
    middle = solver.add_receiver("ez", scene.cell((0.15, 0.15)))
    solver.step(int(40e-9 / scene.dt))
    trace = solver.trace(middle)
    wanted = jn_zeros(0, 1)[0] * LIGHT / (2 * np.pi * radius)
    trials = wanted * np.linspace(0.9, 1.1, 20_001)
    window = trace * np.hanning(len(trace))
    coarse = np.abs([np.exp(-2j * np.pi * f * scene.dt * np.arange(len(trace))) @ window for f in trials[::100]])
    near = trials[max(coarse.argmax() * 100 - 100, 0) : coarse.argmax() * 100 + 101]
    fine = np.abs([np.exp(-2j * np.pi * f * scene.dt * np.arange(len(trace))) @ window for f in near])
    return float(near[fine.argmax()] / wanted - 1)


def test_a_round_cavity_resonates_where_it_must():
    off = {spacing: resonance(spacing, 0.1234, smoothing=True) for spacing in (0.02, 0.01, 0.005)}
    assert abs(off[0.01]) < 2e-3
    assert abs(off[0.005]) < 5e-4
    assert np.log2(abs(off[0.02] / off[0.005])) / 2 > 1.8
    assert abs(resonance(0.01, 0.1234, smoothing=False)) > 5 * abs(off[0.01])


def test_ez_takes_the_mean_by_area():
    below = '{ type = "half_space", axis = "y", below = 0.1025, material = "sand" }'
    found = smooth(scene_of("size = [0.2, 0.2]", below))
    np.testing.assert_allclose(found.permittivity[5, 8:13], [4, 4, 1 + 3 * 0.75, 1, 1], atol=1e-12)
    np.testing.assert_allclose(found.conductivity[5, 8:13], [0.01, 0.01, 0.0075, 0, 0], atol=1e-14)
    assert np.all(found.permittivity == found.permittivity[:1])
    disc = '{ type = "cylinder", centre = [0.1013, 0.0987], radius = 0.0531, material = "sand" }'
    area = (smooth(scene_of("size = [0.2, 0.2]", disc)).permittivity - 1).sum() / 3 * 0.01**2
    assert area == pytest.approx(np.pi * 0.0531**2, rel=1e-3)


def test_h_takes_the_harmonic_mean_along_it_and_the_arithmetic_across():
    below = '{ type = "half_space", axis = "y", below = 0.105, material = "ferrite" }'
    found = smooth(scene_of("size = [0.2, 0.2]", below))
    # hx lies half a cell above its node, hy at its height.
    np.testing.assert_allclose(found.permeability_hx[5, 9:12], [5, 3, 1])
    np.testing.assert_allclose(found.permeability_hy[5, 9:12], [5, 5, 1])
    left = '{ type = "half_space", axis = "x", below = 0.1, material = "ferrite" }'
    found = smooth(scene_of("size = [0.2, 0.2]", left))
    np.testing.assert_allclose(found.permeability_hx[9:12, 5], [5, 2 / (1 / 5 + 1), 1])
    np.testing.assert_allclose(found.permeability_hy[8:11, 5], [5, 5, 1])


def test_contours_end_at_a_conductor():
    plate = '{ type = "half_space", axis = "y", below = 0.1025, material = "pec" }'
    found = smooth(scene_of("size = [0.2, 0.2]", plate))
    np.testing.assert_allclose(found.permeability_hx[5, 9:12], [1, 0.75, 1], atol=2e-6)
    assert np.all(found.permeability_hy == 1)
    assert np.all(found.conductivity[:, :11] == PEC)
    assert np.all(found.conductivity[:, 11:] == 0)
    # At the limit of the time step, a node beside it needs (3 + 1 / 0.75) / 4.
    assert found.permittivity[5, 11] == pytest.approx((3 + 1 / 0.75) / 4, rel=1e-5)
    assert found.permittivity[5, 12] == 1


def test_a_conductor_on_nodes_is_the_one_that_averaging_has():
    box = '{ type = "box", low = [0.06, 0.05], high = [0.12, 0.09], material = "pec" }'
    earth = '{ type = "half_space", axis = "x", below = 0.14, material = "sand" }'
    scene = scene_of("size = [0.2, 0.2]", f"{earth}, {box}", source=[0.04, 0.1])
    fields = []
    for one in (scene, replace(scene, smoothing=False)):
        solver = build(one, Layout()).solver
        solver.step(300)
        fields.append(solver.field("ez"))
    # Surfaces are a millionth of a cell off, so that points on them do not depend on the last bits.
    np.testing.assert_allclose(fields[0], fields[1], atol=1e-5 * np.abs(fields[1]).max())


@pytest.mark.parametrize("precision", ["single", "double"])
def test_energy_does_not_grow_however_a_conductor_lies(precision: str):
    """At the limit of the time step, with surfaces at all distances from nodes and a wire between them."""
    objects = (
        '{ type = "cylinder", centre = [0.1713, 0.1487], radius = 0.1234, material = "free_space" },'
        '{ type = "triangle", first = [0.1, 0.1], second = [0.19, 0.113], third = [0.13, 0.1711], material = "pec" },'
        '{ type = "cylinder", centre = [0.2249, 0.1651], radius = 0.001, material = "pec" },'
        '{ type = "cylinder", centre = [0.2, 0.1], radius = 0.0301, material = "sand" }'
    )
    scene = replace(scene_of('size = [0.3, 0.3], background = "pec"', objects), precision=precision)
    random = np.random.default_rng(3)
    solver = build(scene, Layout()).solver
    assert isinstance(solver, Fdtd)
    free = smooth(scene).conductivity < PEC
    free[0], free[:, 0] = False, False
    solver.set_field("ez", np.where(free, random.standard_normal(free.shape), 0))
    first = 0.0
    for _ in range(20):
        solver.step(1000)
        largest = float(np.abs(solver.field("ez")).max())
        first = max(first, largest) if solver.steps_done <= 2000 else first
        assert largest < 1.1 * first
    assert 0.0 < first < 10


def test_a_mirrored_scene_gives_mirrored_fields():
    def fields(sign: int) -> Any:
        def at(x: float) -> float:
            return 0.11 + sign * x

        objects = (
            f'{{ type = "cylinder", centre = [{at(0.0413)}, 0.06], radius = 0.0231, material = "pec" }},'
            f'{{ type = "cylinder", centre = [{at(-0.0377)}, 0.07], radius = 0.0219, material = "sand" }}'
        )
        scene = scene_of("size = [0.22, 0.2]", objects, source=[0.11, 0.13])
        solver = build(scene, Layout()).solver
        solver.step(150)
        return solver.field("ez")

    one, other = fields(1), fields(-1)
    np.testing.assert_allclose(one[1:], other[:0:-1], atol=1e-6 * np.abs(one).max())


def test_a_wire_between_nodes_is_the_nearest_of_them():
    wire = '{ type = "cylinder", centre = [0.1042, 0.1], radius = 0.001, material = "pec" }'
    scene = scene_of("size = [0.2, 0.2]", wire)
    assert np.argwhere(smooth(scene).conductivity == PEC).tolist() == [[10, 10]]
    assert any("the nearest nodes represent it" in warning for warning in scene.warnings)


def test_a_thin_layer_counts_with_its_share():
    layer = '{ type = "box", low = [0.0, 0.1], high = [0.2, 0.1025], material = "sand" }'
    scene = scene_of("size = [0.2, 0.2]", layer)
    np.testing.assert_allclose(smooth(scene).permittivity[7, 9:12], [1, 1 + 3 * 0.25, 1])
    assert not scene.warnings[:1] or "across" not in scene.warnings[0]


def test_a_source_moves_what_its_node_lies_in():
    plate = '{ type = "half_space", axis = "y", below = 0.1025, material = "sand" }'
    scenes = [scene_of("size = [0.2, 0.2]", plate, source=[0.1, y]) for y in (0.1, 0.15)]
    largest = []
    for scene in scenes:
        solver = build(scene, Layout()).solver
        solver.step(1)
        largest.append(np.abs(solver.field("ez")).max())
    loss = 0.0075 * scenes[0].dt / (2 * 3.25 * 8.8541878128e-12)
    assert largest[1] / largest[0] == pytest.approx(3.25 * (1 + loss), rel=1e-6)


def test_what_there_is_no_smoothing_for():
    with pytest.raises(UsageError, match=r"smoothing.*two dimensions only"):
        scene_of("size = [0.2, 0.2, 0.2]")
    with pytest.raises(UsageError, match=r"smoothing.*while averaging is off"):
        scene_of("size = [0.2, 0.2], averaging = false")
    with pytest.raises(UsageError, match="per_component"):
        Fdtd((20, 20), 1e-3, cpml=0).set_component_materials()
    with pytest.raises(UsageError, match="two dimensions with polarisation tm only"):
        Fdtd((20, 20, 20), 1e-3, cpml=0, per_component=True)


def test_it_takes_one_array_more():
    smoothed = flat(("[domain]", "[domain]\nsmoothing = true"))
    assert memory.arrays_of(smoothed) == memory.arrays_of(flat()) + 1


def test_a_scene_without_it_has_the_hash_that_it_had():
    assert flat().digest() == flat(("[domain]", "[domain]\nsmoothing = false")).digest()
    assert flat().digest() != flat(("[domain]", "[domain]\nsmoothing = true")).digest()


def test_files_record_it(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    path, traces = tmp_path / "a.npz", tmp_path / "a.h5"
    smoothed = flat(("[domain]", "[domain]\nsmoothing = true"))
    done = run_one(smoothed, Layout(), Outputs(checkpoint=path))
    assert done.traces is not None
    write(traces, done.traces)
    with h5py.File(traces) as file:
        assert bool(file.attrs["smoothing"]) is True
    with np.load(path, allow_pickle=False) as file:
        assert bool(file["smoothing"]) is True
    with pytest.raises(UsageError, match=r"its run had smoothing = true, but scene\.toml has false"):
        run_one(flat(), Layout(), Outputs(restart=path))
    assert run_one(smoothed, Layout(), Outputs(restart=path)).first_step == 150


def test_cuts_and_passes_give_the_same_bits():
    disc = '{ type = "cylinder", centre = [0.1013, 0.0987], radius = 0.0531, material = "pec" }'
    scene = scene_of("size = [0.2, 0.2]", disc)
    fields = []
    for layout in (Layout(), Layout(("cpu:0", "cpu:0"), (1, 2)), Layout(redundant=4)):
        solver = build(scene, layout).solver
        solver.step(60)
        fields.append([solver.field(name) for name in scene.fields])
    np.testing.assert_array_equal(fields[0], fields[1])
    np.testing.assert_array_equal(fields[0], fields[2])
    assert np.abs(fields[0][0]).max() > 0
