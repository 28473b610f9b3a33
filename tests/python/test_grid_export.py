"""Traces as gprMax's HDF5 files and as SEG-Y."""

from pathlib import Path

import numpy as np
import pytest
from grid_reference import NumpyFdtd
from grid_scenes import flat
from test_grid_cli import Call, call  # noqa: F401 - a fixture

from headrace import DataError, MissingFileError, UsageError
from headrace.grid.gprmax import exports
from headrace.grid.solver import Layout, Outputs, Scene, run_one, run_scan
from headrace.grid.solver.traces import Traces

h5py = pytest.importorskip("h5py")

BETWEEN = ("position = [0.25, 0.2]", "position = [0.2551, 0.2]")


def scanned(folder: Path, scene: Scene) -> tuple[Path, Traces]:
    path = folder / "scan.h5"
    done = run_scan(scene, Layout(), Outputs(traces=path), maker=NumpyFdtd)
    assert done.traces is not None
    return path, done.traces


def test_a_scan_as_one_merged_file(tmp_path: Path):
    scene = flat(BETWEEN)
    path, traces = scanned(tmp_path, scene)
    target = tmp_path / "merged.out"
    assert exports.write_gprmax(target, exports.read(path), separate=False) == [target]
    with h5py.File(target) as file:
        attributes = dict(file.attrs)
        assert attributes["Title"] == "Small"
        assert attributes["gprMax"].startswith("headrace ")
        assert (attributes["Iterations"], attributes["nsrc"], attributes["nrx"]) == (151, 1, 1)
        assert attributes["nx_ny_nz"].tolist() == [40, 30, 1]
        assert attributes["dx_dy_dz"].tolist() == [0.01] * 3
        assert attributes["dt"] == scene.dt
        assert attributes["srcsteps"].tolist() == attributes["rxsteps"].tolist() == [5, 0, 0]
        assert file["srcs/src1"].attrs["Type"] == "HertzianDipole"
        assert file["srcs/src1"].attrs["Position"] == pytest.approx([0.2, 0.2, 0])
        # the position used
        assert file["rxs/rx1"].attrs["Position"] == pytest.approx([0.26, 0.2, 0])
        assert file["rxs/rx1"].attrs["Name"] == "near"
        assert sorted(file["rxs/rx1"]) == ["Ez", "Hx"]
        values = file["rxs/rx1/Ez"][:]
    assert values.shape == (151, 3)
    assert (values[0] == 0).all()
    assert (traces.stacked(("near", "ez")) == values[1:].T).all()


def test_a_file_for_each_position(tmp_path: Path):
    path, traces = scanned(tmp_path, flat())
    made = exports.write_gprmax(tmp_path / "a.out", exports.read(path), separate=True)
    assert [one.name for one in made] == ["a1.out", "a2.out", "a3.out"]
    for number, one in enumerate(made):
        with h5py.File(one) as file:
            assert file["rxs/rx1/Hx"].shape == (151,)
            assert (file["rxs/rx1/Hx"][1:] == traces.values["near", "hx"][number]).all()
            assert file["rxs/rx1"].attrs["Position"] == pytest.approx([0.25 + 0.05 * number, 0.2, 0])


def test_receivers_keep_the_order_of_the_scene(tmp_path: Path):
    more = '[[receivers]]\nid = "a"\nposition = [0.22, 0.2]\n[snapshots]'
    path = tmp_path / "t.h5"
    run_one(flat(("[snapshots]", more)), Layout(), Outputs(traces=path), maker=NumpyFdtd)
    assert [one.name for one in exports.read(path).receivers] == ["near", "a"]


def test_files_that_are_none(tmp_path: Path):
    with pytest.raises(MissingFileError):
        exports.read(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("no", encoding="utf-8")
    with pytest.raises(DataError, match=r"text\.h5: not a complete HDF5 trace file"):
        exports.read(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["a"] = 1
    with pytest.raises(DataError, match="not a trace file of headrace grid"):
        exports.read(tmp_path / "other.h5")


def test_a_data_set_that_only_claims_its_size_takes_no_memory(tmp_path: Path):
    scene = flat(BETWEEN)
    path, _ = scanned(tmp_path, scene)
    good = path.read_bytes()
    claims = 1 << 50  # bytes that reading would allocate
    elsewhere = [("/etc/passwd", 0, 8)]
    for name, options in (
        ("positions", {"shape": (claims // 8,), "dtype": "i8"}),
        ("receivers/near/ez", {"shape": (1, claims // 8), "dtype": "f8"}),
        ("receivers/near/ez", {"shape": (1, claims // 8), "dtype": "f8", "chunks": (1, 1024), "compression": "gzip"}),
        ("receivers/near/position", {"shape": (1, 1), "dtype": "f8", "external": elsewhere}),
    ):
        path.write_bytes(good)
        with h5py.File(path, "a") as file:
            del file[name]
            file.create_dataset(name, **options)
        said = "is stored in another file" if "external" in options else f"{name} claims 1,125,899,906,842,624 bytes"
        with pytest.raises(DataError, match=said):
            exports.read(path)


def test_segy(tmp_path: Path):
    segyio = pytest.importorskip("segyio")
    scene = flat()
    path, traces = scanned(tmp_path, scene)
    target = exports.write_segy(tmp_path / "a.sgy", exports.read(path), None, "hx")
    with segyio.open(str(target), ignore_geometry=True) as file:
        assert file.tracecount == 3
        right = traces.stacked(("near", "hx"))
        assert np.array([file.trace[row] for row in range(3)]) == pytest.approx(right)
        assert file.bin[segyio.BinField.Interval] == round(scene.dt * 1e12)
        assert file.header[2][segyio.TraceField.GroupX] == 3500
        assert file.header[2][segyio.TraceField.SourceX] == 3000
        assert file.header[0][segyio.TraceField.SourceGroupScalar] == -10000
        assert b"near hx" in bytes(file.text[0])
    for receiver, field, says in (("far", "ez", "there is no receiver 'far'"), ("near", "hy", "has no field 'hy'")):
        with pytest.raises(UsageError, match=says):
            exports.write_segy(tmp_path / "b.sgy", exports.read(path), receiver, field)
    assert not (tmp_path / "b.sgy").exists()


def test_the_verb(call: Call, tmp_path: Path):  # noqa: F811
    path, _ = scanned(tmp_path, flat())
    status, out, _ = call("export", path)
    assert (status, out) == (0, f"Wrote {tmp_path / 'scan.out'}\n")
    status, out, _ = call("export", path, "-o", tmp_path / "b.out", "--separate")
    assert out.splitlines() == [f"Wrote {tmp_path / f'b{number}.out'}" for number in (1, 2, 3)]
    for words, says in (
        (("-o", path), "would overwrite its own input"),
        (("-o", tmp_path / "c.sgy", "--separate"), "a SEG-Y file holds all positions"),
        (("--receiver", "near"), "gprMax's files hold all receivers"),
    ):
        status, _, error = call("export", path, *words)
        assert status == 2
        assert says in error
