"""Runs of scenes with a plain solver: outputs, restarts, and interruptions."""

import re
import signal
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from grid_reference import NumpyFdtd
from grid_scenes import flat

from headrace import DataError, DeviceError, MissingFileError, UsageError
from headrace.grid import Cpml
from headrace.grid.solver import Done, Layout, Outputs, Scene, memory, model, run_one, run_scan, traces
from headrace.grid.solver.running import Speed, Stop, Watcher, run
from headrace.grid.solver.waveforms import ricker


def ran(scene: Scene, outputs: Outputs = Outputs(), position: int = 0) -> Done:  # noqa: B008 - it is frozen
    return run_one(scene, Layout(), outputs, position=position, maker=NumpyFdtd)


def trace_of(done: Done, field: str = "ez") -> np.ndarray:
    assert done.traces is not None
    return done.traces.values["near", field][0]


def line_current(distance: float, times: np.ndarray, frequency: float) -> np.ndarray:
    """The field of a line current of 1 A with a Ricker pulse, in vacuum.

    E(t) = -mu0 / (2 pi) * integral over u from 0 of I'(t - distance / c cosh u): the two-dimensional Green's function.
    """
    light, field = 299_792_458.0, []
    for time in times:
        end = np.arccosh(max(1.0, light * time / distance))
        u = (np.arange(4000) + 0.5) / 4000 * end
        moments = time - distance / light * np.cosh(u)
        step = 1e-13
        slope = (ricker(moments + step, frequency) - ricker(moments - step, frequency)) / (2 * step)
        field.append(-2e-7 * slope.mean() * end)
    return np.array(field)


def test_amperes_become_the_right_volts_per_metre():
    scene = flat(
        ("size = [0.4, 0.3]", "size = [1.5, 1.5]"),
        ("position = [0.2, 0.2]", "position = [0.75, 0.75]"),
        ("position = [0.25, 0.2]", "position = [0.9, 0.75]"),
        ("below = 0.1", "below = 0.0"),
        ("steps = 150", "window = 5.0e-9"),  # ends before reflections arrive
    )
    done = ran(scene)
    assert (done.steps, done.interrupted, done.first_step) == (scene.steps, False, 0)
    assert done.speed.cells == scene.steps * scene.cells
    right = line_current(0.15, model.times(scene, "ez", scene.steps), 0.5e9)
    error = np.linalg.norm(trace_of(done) - right) / np.linalg.norm(right)
    assert error < 0.02, error


def test_what_receivers_recorded_comes_back(tmp_path: Path):
    pytest.importorskip("h5py")
    scene, path = flat(), tmp_path / "traces.h5"
    done = ran(scene, Outputs(traces=path), position=1)
    assert done.files.written == [path]
    found = traces.read(path, scene)
    assert found.positions == [1]
    assert (found.values["near", "hx"][0] == trace_of(done, "hx")).all()
    import h5py  # noqa: PLC0415

    with h5py.File(path) as file:
        near = file["receivers/near"]
        assert near["ez"].shape == (1, 150)
        assert near["ez"].attrs["unit"] == "V/m"
        assert near["position"][0] == pytest.approx([0.3, 0.2])
        assert (near["ez"].attrs["offset"] == [0, 0]).all()
        assert (near["hx"].attrs["offset"] == [0, scene.spacing[0] / 2]).all()
        assert near["time_ez"][:2] == pytest.approx([scene.dt, 2 * scene.dt])
        assert near["time_hx"][0] == pytest.approx(scene.dt / 2)
        assert (file.attrs["cpml"], file.attrs["cpml_sigma"]) == (0, scene.layers.sigma)


def test_files_have_the_positions_used_and_those_asked_for(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    scene = flat(
        ("position = [0.2, 0.2]", "position = [0.1974, 0.2]"),
        ("position = [0.25, 0.2]", "position = [0.2551, 0.2049]"),
        ("step = [0.05, 0.0]", "step = [0.015, -0.006]"),
    )
    path = tmp_path / "scan.h5"
    run_scan(scene, Layout(), Outputs(traces=path), maker=NumpyFdtd)
    with h5py.File(path) as file:
        near, source = file["receivers/near"], file["sources/source1"]
        assert file.attrs["scan_cells"].tolist() == [1, -1]
        assert near["position"][:] == pytest.approx(np.array([[0.26, 0.2], [0.27, 0.19], [0.28, 0.18]]))
        assert near["position_requested"][:] == pytest.approx(
            np.array([[0.2551, 0.2049], [0.2701, 0.1989], [0.2851, 0.1929]])
        )
        assert source["position"][:] == pytest.approx(np.array([[0.2, 0.2], [0.21, 0.19], [0.22, 0.18]]))
        assert source["position_requested"][0] == pytest.approx([0.1974, 0.2])


def test_the_node_used_is_where_the_solver_puts_it():
    scene = flat(("position = [0.2, 0.2]", "position = [0.1974, 0.2049]"))
    solver = model.build(scene, Layout(), NumpyFdtd).solver
    assert [cell for _, cell, _ in solver.sources] == [(20, 20)]


def test_traces_of_other_scenes_and_files_that_are_none(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "traces.h5"
    ran(flat(), Outputs(traces=path))
    with pytest.raises(UsageError, match="another scene"):
        traces.read(path, flat(("below = 0.1", "below = 0.2")))
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(DataError, match=r"traces\.h5: not a complete HDF5 trace file"):
        traces.read(path, flat())
    with h5py.File(path, "w") as file:
        file["other"] = 1
    with pytest.raises(DataError, match="not a trace file of headrace grid"):
        traces.read(path, flat())


def test_a_scan_is_its_positions(tmp_path: Path):
    pytest.importorskip("h5py")
    scene = flat()
    whole = run_scan(scene, Layout(), Outputs(traces=tmp_path / "whole.h5"), maker=NumpyFdtd)
    assert whole.positions == [0, 1, 2]
    parts = []
    for number in (2, 0, 1):
        path = tmp_path / f"{number}.h5"
        ran(scene, Outputs(traces=path), number)
        parts.append((path, traces.read(path, scene)))
    merged = traces.merge(parts)
    assert merged.positions == [0, 1, 2]
    assert whole.traces is not None
    for key in whole.traces.values:
        assert (merged.stacked(key) == whole.traces.stacked(key)).all()
    with pytest.raises(UsageError, match="position 2 is already in another file"):
        traces.merge([*parts, parts[0]])


@pytest.mark.parametrize("at", [1, 75, 149, 150])
def test_a_restart_goes_on_as_if_nothing_had_been(tmp_path: Path, at: int):
    path = tmp_path / "a.npz"
    first = ran(flat(("steps = 150", f"steps = {at}")), Outputs(checkpoint=path))
    assert first.steps == at
    second = ran(flat(), Outputs(restart=path))
    assert second.first_step == at
    assert (trace_of(second) == trace_of(ran(flat()))).all()


def test_checkpoints_that_do_not_fit(tmp_path: Path):
    path = tmp_path / "a.npz"
    ran(flat(), Outputs(checkpoint=path))
    with pytest.raises(UsageError, match=r"the checkpoint is of another scene than scene\.toml"):
        ran(flat(("permittivity = 4.0", "permittivity = 5.0")), Outputs(restart=path))
    with pytest.raises(UsageError, match="another scene"):
        ran(flat(), Outputs(restart=path), position=1)
    layers = ("cpml = 0", "cpml = 4")
    ran(flat(layers), Outputs(checkpoint=path))
    with pytest.raises(UsageError, match="another scene"):
        ran(flat(("cpml = 0", "cpml = { cells = 4, order = 2 }")), Outputs(restart=path))
    ran(flat(), Outputs(checkpoint=path))
    with pytest.raises(UsageError, match="it is at step 150"):
        ran(flat(("steps = 150", "steps = 100")), Outputs(restart=path))


@pytest.mark.parametrize("averaging", [True, False])
def test_a_checkpoint_records_whether_materials_were_averaged(tmp_path: Path, averaging: bool):
    path = tmp_path / "a.npz"
    says, other = str(averaging).lower(), str(not averaging).lower()
    scene = flat(("[domain]", f"[domain]\naveraging = {says}"))
    ran(scene, Outputs(checkpoint=path))
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    assert arrays["averaging"].dtype == np.bool_
    assert arrays["averaging"].shape == ()
    assert bool(arrays["averaging"]) is averaging
    assert ran(scene, Outputs(restart=path)).first_step == 150
    switched = ("[domain]", f"[domain]\naveraging = {other}")
    refused = rf"its run had averaging = {says}, but scene\.toml has {other}"
    with pytest.raises(UsageError, match=refused):
        ran(flat(switched), Outputs(restart=path))
    with pytest.raises(UsageError, match=r"the checkpoint is of another scene than scene\.toml"):
        ran(flat(switched, ("permittivity = 4.0", "permittivity = 5.0")), Outputs(restart=path))
    # Files of earlier versions lack it, and are identified by the hash of their scene.
    del arrays["averaging"]
    np.savez(path, **arrays)
    assert ran(scene, Outputs(restart=path)).first_step == 150
    with pytest.raises(UsageError, match=refused):
        ran(flat(switched), Outputs(restart=path))


@pytest.mark.parametrize("left", [0, 1, 100, 2000, -1])
def test_checkpoints_that_are_cut_short(tmp_path: Path, left: int):
    path = tmp_path / "a.npz"
    ran(flat(), Outputs(checkpoint=path))
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DataError, match=r"a\.npz: not a"):
        ran(flat(), Outputs(restart=path))


def test_a_checkpoint_with_a_changed_byte(tmp_path: Path):
    path = tmp_path / "a.npz"
    ran(flat(), Outputs(checkpoint=path))
    content = bytearray(path.read_bytes())
    content[content.index(b"state.ez.npy") + 1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete checkpoint"):
        ran(flat(), Outputs(restart=path))


def _with_method(content: bytes, place: int, value: int) -> bytes:
    """An archive whose first file has another byte in both headers: 6 are flags, 8 is the compression method."""
    changed = bytearray(content)
    changed[place] = changed[content.index(b"PK\x01\x02") + 2 + place] = value
    return bytes(changed)


@pytest.mark.parametrize(("place", "value"), [(6, 1), (6, 32), (8, 99), (8, 14)])
def test_a_checkpoint_that_is_packed_or_encrypted_in_another_way(tmp_path: Path, place: int, value: int):
    path = tmp_path / "a.npz"
    ran(flat(), Outputs(checkpoint=path))
    path.write_bytes(_with_method(path.read_bytes(), place, value))
    with pytest.raises(DataError, match=r"a\.npz: not a complete checkpoint"):
        ran(flat(), Outputs(restart=path))


@pytest.mark.parametrize("header", [b"(" * 3000, b"-" * 5000 + b"1", b'{"descr": """', b"(" + b"9" * 5000 + b",)"])
def test_a_checkpoint_with_headers_of_arrays_that_are_none(tmp_path: Path, header: bytes):
    path = tmp_path / "a.npz"
    ran(flat(), Outputs(checkpoint=path))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("state.other.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n")
    with pytest.raises(DataError, match=r"a\.npz: not a complete checkpoint") as raised:
        ran(flat(), Outputs(restart=path))
    assert "\n" not in str(raised.value)


def test_arrays_that_are_no_checkpoint(tmp_path: Path):
    np.savez(tmp_path / "other.npz", a=1)
    np.save(tmp_path / "one.npy", np.zeros(3))
    for name in ("other.npz", "one.npy"):
        with pytest.raises(DataError, match=f"{name}: not a checkpoint"):
            ran(flat(), Outputs(restart=tmp_path / name))


def test_checkpoints_on_the_way(tmp_path: Path):
    seen = []

    class Watched(NumpyFdtd):
        def state(self):
            seen.append(self.steps_done)
            return super().state()

    run_one(flat(), Layout(), Outputs(checkpoint=tmp_path / "a.npz", checkpoint_every=60), maker=Watched)
    assert seen == [60, 120, 150]


def vti_content(path: Path) -> tuple[ET.Element, dict[str, np.ndarray]]:
    """Its XML and its arrays, z first, read according to the format."""
    head, _, rest = path.read_bytes().partition(b'<AppendedData encoding="raw">\n_')
    tree = ET.fromstring(head + b"</VTKFile>")
    types = {"Float32": np.float32, "Float64": np.float64, "UInt16": np.uint16}
    # Points have one more along each axis than the cells between them.
    more = len(tree.findall(".//PointData"))
    extent = [int(word) + more for word in tree.find("ImageData").get("WholeExtent").split()]
    arrays = {}
    for array in tree.iter("DataArray"):
        if array.get("format") == "appended":
            offset = int(array.get("offset"))
            (length,) = struct.unpack_from("=Q", rest, offset)
            data = np.frombuffer(
                rest, types[array.get("type")], length // np.dtype(types[array.get("type")]).itemsize, offset + 8
            )
            arrays[array.get("Name")] = data.reshape(extent[5], extent[3], extent[1])
    return tree, arrays


@pytest.mark.parametrize("dimensions", [2, 3])
def test_snapshots(tmp_path: Path, dimensions: int):
    scene = flat(("[snapshots]\n", '[snapshots]\nfields = ["ez", "hx"]\n'), ("steps = 150", "steps = 50"))
    if dimensions == 3:
        scene = deep()
    every = scene.snapshots.every
    seen = {}

    class Watched(NumpyFdtd):
        def step(self, count):
            super().step(count)
            seen[self.steps_done] = (self.field("ez"), self.field("hx"))

    folder = tmp_path / "snaps"
    run_one(scene, Layout(), Outputs(snapshots=folder), maker=Watched)
    steps = list(range(every, scene.steps + 1, every))
    names = [f"{field}-step-{step:08d}.vti" for step in steps for field in ("ez", "hx")]
    assert sorted(path.name for path in folder.iterdir()) == sorted(["materials.vti", "snapshots.pvd", *names])
    series = ET.parse(folder / "snapshots.pvd").getroot()
    assert [entry.get("file") for entry in series.iter("DataSet")] == names
    entries = [(float(entry.get("timestep")), entry.get("part")) for entry in series.iter("DataSet")]
    assert entries == [(step * scene.dt, part) for step in steps for part in "01"]
    half = scene.spacing[0] / 2
    # The electric field along z lies half way up its edge, the magnetic one along x in the centre of a face across x.
    places = {"ez": (0, 0, 0), "hx": (0, half, 0)} if dimensions == 2 else {"ez": (0, 0, half), "hx": (0, half, half)}
    for values, name, early in zip(seen[steps[-1]], ("ez", "hx"), (0, 0.5), strict=True):
        tree, arrays = vti_content(folder / f"{name}-step-{steps[-1]:08d}.vti")
        assert float(tree.find("ImageData/FieldData/DataArray").text) == (steps[-1] - early) * scene.dt
        assert tuple(float(word) for word in tree.find("ImageData").get("Origin").split()) == places[name]
        assert list(arrays) == [name]
        assert (arrays[name] == np.atleast_3d(values).transpose(2, 1, 0)).all()
        assert np.abs(arrays[name]).max() > 0
    tree, materials = vti_content(folder / "materials.vti")
    assert (materials["material"] == np.atleast_3d(model.paint(scene)[0]).transpose(2, 1, 0)).all()


def deep() -> Scene:
    """The same in three dimensions."""
    return flat(
        ("size = [0.4, 0.3]", "size = [0.4, 0.3, 0.2]"),
        ("position = [0.2, 0.2]", "position = [0.2, 0.2, 0.1]"),
        ("position = [0.25, 0.2]", "position = [0.25, 0.2, 0.1]"),
        ("step = [0.05, 0.0]", "step = [0.05, 0.0, 0.0]"),
        ("[snapshots]\n", '[snapshots]\nfields = ["ez", "hx"]\n'),
        ("steps = 150", "steps = 30"),
    )


@pytest.mark.parametrize("scene", [flat(), deep()], ids=["flat", "deep"])
def test_pictures(tmp_path: Path, scene: Scene):
    pytest.importorskip("matplotlib")
    from PIL import Image  # noqa: PLC0415

    png, gif = tmp_path / "a.png", tmp_path / "a.gif"
    outputs = Outputs(png=png, gif=gif, at=20 * scene.dt, plane="xz")
    assert ran(scene, outputs).files.written == [png, gif]
    with Image.open(png) as picture:
        assert picture.format == "PNG"
        colours = np.asarray(picture.convert("RGB")).astype(int)
    assert (np.abs(colours[..., 0] - colours[..., 2]) > 60).any(), "there is a field in it"
    with Image.open(gif) as picture:
        assert (picture.format, picture.n_frames) == ("GIF", scene.steps // scene.snapshots.every)


def test_markers_keep_their_colours_in_a_moving_picture(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from PIL import Image  # noqa: PLC0415

    gif = tmp_path / "a.gif"
    ran(flat(), Outputs(gif=gif))
    with Image.open(gif) as picture:
        frames = []
        for number in range(picture.n_frames):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("RGB")).astype(int))
    assert len(frames) > 3
    for wanted in ((0xB3, 0x54, 0x1E), (0x1D, 0x7A, 0x4C)):  # source and receiver
        marked = [np.abs(frame - wanted).max(axis=-1) <= 4 for frame in frames]
        assert marked[0].sum() > 10
        inside = np.logical_and.reduce(marked)
        assert inside.sum() > 0.9 * marked[0].sum()


def test_a_radargram_has_metres_and_a_colour_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    matplotlib = pytest.importorskip("matplotlib.figure")
    drawn = []
    save = matplotlib.Figure.savefig
    monkeypatch.setattr(
        matplotlib.Figure, "savefig", lambda figure, *a, **more: (drawn.append(figure), save(figure, *a, **more))[1]
    )
    png = tmp_path / "scan.png"
    scene = flat()
    assert run_scan(scene, Layout(), Outputs(png=png), maker=NumpyFdtd).files.written == [png]
    assert png.read_bytes().startswith(b"\x89PNG")
    axes, bar = drawn[0].axes
    receiver = scene.receivers[0]
    start = receiver.position[0]
    assert axes.get_xlabel() == f"x of {receiver.name}, m"
    step = scene.scan.step[0]
    assert axes.get_xlim() == pytest.approx((start - step / 2, start + (scene.scan.count - 0.5) * step))
    assert axes.get_ylabel() == "time, ns"
    assert bar.get_ylabel() == "ez, V/m"
    assert axes.get_title()


def test_a_field_that_is_not_finite_stops_the_run(tmp_path: Path):
    scene = flat(("frequency = 0.5e9", "frequency = 0.5e9\namplitude = 1e36"))
    path = tmp_path / "a.npz"
    with np.errstate(all="ignore"), pytest.raises(DataError) as caught:
        ran(scene, Outputs(checkpoint=path))
    found = re.search(
        r"not finite at step (\d+) \(it was at step (\d+)\).* around cell \[(\d+), (\d+)\]", str(caught.value)
    )
    assert found is not None, caught.value
    bad, good, x, y = map(int, found.groups())
    assert 0 <= good < bad <= 150
    assert abs(x - 20) < 8
    assert abs(y - 20) < 12
    assert not path.exists(), "what is broken is not kept"


class Interrupting(NumpyFdtd):
    """Sends Ctrl-C at step 40 or later."""

    def step(self, count):
        super().step(count)
        if self.steps_done >= 40 and not hasattr(self, "sent"):
            self.sent = True
            signal.raise_signal(signal.SIGINT)


def test_an_interrupted_run_keeps_what_there_is(tmp_path: Path):
    path = tmp_path / "a.npz"
    before = signal.getsignal(signal.SIGINT)
    done = run_one(flat(), Layout(), Outputs(checkpoint=path), maker=Interrupting)
    assert signal.getsignal(signal.SIGINT) is before
    assert done.interrupted
    assert 40 <= done.steps < 150
    assert (trace_of(done) == trace_of(ran(flat()))[: done.steps]).all()
    assert (trace_of(ran(flat(), Outputs(restart=path))) == trace_of(ran(flat()))).all()


def test_an_interrupted_scan_keeps_whole_positions(tmp_path: Path):
    pytest.importorskip("h5py")
    made = []

    def maker(**arguments):
        made.append(arguments)
        return (NumpyFdtd if len(made) < 2 else Interrupting)(**arguments)

    path = tmp_path / "scan.h5"
    done = run_scan(flat(), Layout(), Outputs(traces=path), maker=maker)
    assert (done.interrupted, done.positions) == (True, [0])
    assert traces.read(path, flat()).positions == [0]


def test_the_second_ctrl_c_is_obeyed_at_once():
    with Stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_watchers_are_called_at_their_steps():
    scene, seen = flat(), []
    solver = model.build(scene, Layout(), NumpyFdtd).solver
    watchers = [
        Watcher(lambda solver: seen.append(("seven", solver.steps_done)), every=49),
        Watcher(lambda solver: seen.append(("once", solver.steps_done)), at=60),
    ]
    steps = []
    run(scene, solver, watchers, progress=lambda step, _: steps.append(step))
    assert seen == [("seven", 49), ("once", 60), ("seven", 98), ("seven", 147)]
    assert steps == sorted(set(steps))
    assert steps[-1] == 150
    assert Speed().cells_per_second == 0


def test_the_solver_is_asked_for_what_the_scene_says():
    made = {}

    class Recording(NumpyFdtd):
        def __init__(self, **arguments):
            made.update(arguments)
            super().__init__(**arguments)

        def set_materials(self, permittivity=1, conductivity=0, permeability=1, edges=None):
            assert not edges
            made.update(permittivity=permittivity, permeability=permeability)
            super().set_materials(permittivity, conductivity, permeability)

    scene = flat(("cpml = 0", "cpml = 3"))
    layout = Layout(("cpu:0", "cpu:1"), (2, 1), 4, "store", "resident")
    model.build(scene, layout, Recording)
    assert made["devices"] == ["cpu:0", "cpu:1"]
    assert (made["cut"], made["redundant"], made["push"], made["mode"], made["cpml"]) == (
        (2, 1),
        4,
        "store",
        "resident",
        Cpml(cells=3),
    )
    assert (made["dt"], made["spacing"], made["shape"]) == (scene.dt, (0.01, 0.01), (40, 30))
    assert made["permittivity"].mean() == pytest.approx(2.0)
    assert made["permeability"] == 1.0, "where all cells are alike, no array is made"


@pytest.mark.parametrize("averaging", [True, False])
def test_a_current_moves_what_its_edge_lies_in(averaging: bool):
    """Half sand and half vacuum around Ex at the boundary, and vacuum around Ez, which begins there."""
    largest = {}
    for field in ("ex", "ez"):
        scene = flat(
            ("[0.4, 0.3]", "[0.4, 0.3, 0.1]"),
            ("[domain]", f"[domain]\naveraging = {str(averaging).lower()}"),
            ('axis = "y"\nbelow = 0.1', 'axis = "z"\nbelow = 0.05'),
            ("position = [0.2, 0.2]\n", f'position = [0.2, 0.2, 0.05]\nfield = "{field}"\n'),
            ("position = [0.25, 0.2]", "position = [0.25, 0.2, 0.05]"),
            ("step = [0.05, 0.0]", "step = [0.05, 0.0, 0.0]"),
        )
        solver = model.build(scene, Layout(), NumpyFdtd).solver
        largest[field] = np.max(np.abs(solver.sources[0][2]))
    loss = 0.005 * scene.dt / (2 * 2.5 * 8.8541878128e-12)
    assert largest["ez"] / largest["ex"] == pytest.approx(2.5 * (1 + loss) if averaging else 1, rel=1e-6)


def test_sources_in_one_cell_add_up():
    twice = (
        '[[sources]]\nposition = [0.2, 0.2]\nwaveform = "ricker"\nfrequency = 0.5e9\namplitude = -1\n\n[[receivers]]'
    )
    solver = model.build(flat(("[[receivers]]", twice)), Layout(), NumpyFdtd).solver
    assert len(solver.sources) == 1
    assert (solver.sources[0][2] == 0).all()


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (Outputs(field="hz"), "there is no field 'hz' in this scene; there are ez, hx, hy"),
        (Outputs(at=1.0), "1 s is after the end of the run"),
        (Outputs(checkpoint=Path("/nowhere/a.npz")), "there is no folder /nowhere"),
        (Outputs(snapshots=Path("/nowhere/a")), "there is no folder /nowhere"),
        (Outputs(png=Path("/nowhere/a.png")), "there is no folder /nowhere"),
        (Outputs(traces=Path("/nowhere/a.h5")), "there is no folder /nowhere"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_run(outputs: Outputs, says: str):
    def never(**_):
        raise AssertionError

    with pytest.raises((UsageError, MissingFileError), match=says):
        run_one(flat(), Layout(), outputs, maker=never)


@pytest.mark.parametrize("kind", ["traces", "checkpoint", "snapshots", "png"])
def test_a_full_disk_is_named_with_what_it_takes(tmp_path: Path, kind: str):
    """In a separate process with a limit on file size: Linux reports it by an errno, like a full disk."""
    pytest.importorskip("h5py")
    script = f"""
import errno, os, resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from grid_reference import NumpyFdtd
from grid_scenes import flat
from headrace import outputs
from headrace.grid.solver import Layout, Outputs, run_one
full = Path("/dev/full")
class File(outputs.OutputFile):
    staging = property(lambda self: "/dev/full")
outputs.OutputFile = File
done = run_one(flat(), Layout(), Outputs({kind}=Path({str(tmp_path / "out")!r})), maker=NumpyFdtd)
assert not done.files.written, done.files.written
print(*done.files.failures, sep="\\n")
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    name = "out/materials.vti" if kind == "snapshots" else "out"
    said = rf"writing {re.escape(str(tmp_path / name))}: No space left on device"
    assert re.search(said + (r": it takes [\d,]+ bytes" if kind != "png" else ""), found.stdout), found.stdout


class Gpu:
    """A GPU with 80 GiB."""

    kind = SimpleNamespace(name="cuda")

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def parse(cls, name: str) -> "Gpu":
        return cls(name)

    def memory(self) -> SimpleNamespace:
        return SimpleNamespace(free_bytes=80 << 30)


def test_memory_that_does_not_fit_says_how_many_gpus_would_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "Device", Gpu)
    scene = flat(("[0.4, 0.3]", "[1000.0, 1200.0]"))  # 12e9 cells of 24 bytes: 268 GiB; with passes of 36
    memory.check(scene, Layout(("cuda:0", "cuda:1", "cuda:2", "cuda:3"), mode="resident"))
    with pytest.raises(
        DeviceError, match=r"need 268 GiB, and cuda:0, cuda:1 have 160 GiB free; 4 such devices would suffice"
    ):
        memory.check(scene, Layout(("cuda:0", "cuda:1"), mode="resident"))
    memory.check(scene, Layout(tuple(f"cuda:{number}" for number in range(6))))
    with pytest.raises(DeviceError, match=r"need 402 GiB, and .* have 320 GiB free; 6 such devices would suffice"):
        memory.check(scene, Layout(tuple(f"cuda:{number}" for number in range(4))))


def blocks_of(count: int) -> Scene:
    """40 x 30 x 10 cells with blocks of `count` materials, each 4 cells long, side by side."""
    blocks = "".join(
        f"""[[materials]]
id = "m{number}"
permittivity = {2 + number}.0

[[objects]]
type = "box"
low = [{0.04 * number}, 0.1, 0.0]
high = [{0.04 * (number + 1)}, 0.2, 0.1]
material = "m{number}"

"""
        for number in range(count)
    )
    return flat(
        ("[0.4, 0.3]", "[0.4, 0.3, 0.1]"),
        ("position = [0.2, 0.2]", "position = [0.2, 0.2, 0.05]"),
        ("position = [0.25, 0.2]", "position = [0.25, 0.2, 0.05]"),
        ("step = [0.05, 0.0]", "step = [0.05, 0.0, 0.0]"),
        ("[[sources]]", f"{blocks}[[sources]]"),
    )


def test_tables_of_materials_are_counted():
    fields, runs = 12_000 * (6 + 2) * 4, 12_000
    two = 2**7 * (32 + 16)  # vacuum and sand
    assert memory.device_bytes(blocks_of(0), Layout()) == fields + two + runs
    assert memory.device_bytes(blocks_of(0), Layout(("cpu:0",) * 2)) == fields + 2 * two + runs
    # Many materials have at most as many combinations as there are cells at boundaries, which are counted.
    scene = blocks_of(8)
    assert memory.combinations_most(scene) == scene.cells
    table = memory.device_bytes(scene, Layout()) - fields - runs
    cells, materials = model.paint(scene)
    around = {
        tuple(int(cells[max(x - i, 0), max(y - j, 0), max(z - k, 0)]) for i in (0, 1) for j in (0, 1) for k in (0, 1))
        for x, y, z in np.ndindex(*scene.shape)
    }
    assert len(around) * 48 <= table <= 2500 * 48
    assert len(materials) == 11


def test_passes_on_gpus_take_the_components_once_more(monkeypatch: pytest.MonkeyPatch):
    scene = flat(("[0.4, 0.3]", "[4.0, 3.0]"))
    assert [memory.spare_of(scene, Layout(redundant=count)) for count in (1, 4)] == [0, 0]
    monkeypatch.setattr(memory, "Device", Gpu)
    gpu = ("cuda:0",)
    assert [memory.spare_of(scene, Layout(gpu, redundant=count)) for count in (1, 4)] == [3, 3]
    assert memory.spare_of(scene, Layout(gpu, redundant=4, mode="resident")) == 0


def test_memory_that_does_not_fit_says_how_much():
    scene = flat(("[0.4, 0.3]", "[40000.0, 30000.0]"))
    assert memory.device_bytes(scene, Layout()) == 4_000_000 * 3_000_000 * 6 * 4
    with pytest.raises(DeviceError, match=r"12,000,000,000,000 cells in single precision need .* GiB, and cpu:0 has"):
        run_one(scene, Layout(), Outputs(), maker=NumpyFdtd)
