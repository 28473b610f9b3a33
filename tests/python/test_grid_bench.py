"""The benchmark of grids and its helpers, with small sizes on CPU devices."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import UsageError, results
from headrace.grid import Fdtd, Jacobi

PROGRAM = Path(__file__).parents[2] / "bench" / "grid.py"
TINY = (
    *("--plane", "60x50", "--split", "50x60", "--split", "64x32", "--small", "40x30", "--space", "26x24x22"),
    *("--jacobi", "40x30", "--steps", "3", "--small-steps", "5", "--samples", "2"),
)
ONE = ("--device", "cpu:0")
TWO = ("--device", "cpu:0", "--device", "cpu:1")
SCALED = tuple(f"grid.{kind}.{how}.2" for kind in ("fdtd2d", "jacobi", "fdtd3d") for how in ("strong", "weak"))
OF_TWO = (
    "grid.fdtd2d.efficiency.50x60",
    "grid.fdtd2d.efficiency.64x32",
    "grid.fdtd2d.blocked.efficiency.50x60",
    "grid.fdtd2d.blocked.efficiency.64x32",
    "grid.small.seconds2",
    "grid.fdtd3d.efficiency.26x24x22",
    "grid.jacobi.efficiency",
    *SCALED,
)


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), *TINY, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_every_figure_of_two_devices_is_verified_and_beside_its_roof():
    done = bench(*TWO, "--redundant", 1, "--redundant", 2, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    cells = {
        "grid.fdtd2d.cells",
        "grid.fdtd2d.blocked.cells",
        "grid.fdtd3d.cells",
        "grid.jacobi.cells",
        "grid.cpu.cells",
    }
    assert rows.keys() == cells | {"grid.small.seconds1", *OF_TWO}
    for identity, row in rows.items():
        about = row["conditions"]
        assert about["verified"] is True, identity
        assert {"shape", "cut", "redundant", "push", "precision", "steps", "bytes_per_cell"} <= about.keys()
        assert about["devices"] == (2 if identity in OF_TWO or identity == "grid.cpu.cells" else 1)
        low, high = row["spread"]
        assert 0 < low <= row["value"] <= high
        assert row["samples"] == 2
        assert row.get("roof", about.get("roof_cells_per_second")) > 0
    assert rows["grid.fdtd2d.cells"]["conditions"]["bytes_per_cell"] == 36
    assert rows["grid.fdtd2d.blocked.cells"]["conditions"]["bytes_per_cell"] in {36, 18}
    assert rows["grid.jacobi.cells"]["conditions"]["bytes_per_cell"] == 28
    efficiency = {
        rows[name]["conditions"]["pass_steps"] for name in OF_TWO if name.startswith("grid.fdtd2d.efficiency.")
    }
    assert efficiency == {1}, "as many as those of the one device that two are held against"
    assert rows["grid.fdtd3d.cells"]["conditions"]["cpml"] == 10
    shapes = {identity: rows[identity]["conditions"]["shape"] for identity in SCALED}
    assert shapes["grid.fdtd2d.strong.2"] == "60x50"
    assert shapes["grid.fdtd2d.weak.2"] == "60x100", "as much for each device as one has alone"
    assert shapes["grid.fdtd3d.weak.2"] == "26x24x44"
    assert {rows[identity]["unit"] for identity in cells} == {"cells/s"}


def test_what_takes_two_devices_is_left_out_and_the_results_file_is_written(tmp_path: Path):
    machine = results.machine(headrace.Device.parse("cpu"))["name"]
    path = tmp_path / f"grid.{machine}.json"
    only = ("--only", "grid.small", "--only", "grid.cpu", "--redundant", 1)
    done = bench(*ONE, *only, "--precision", "double", "--save", path)
    assert done.returncode == 0, done.stderr
    assert "left out: it takes 2 devices" in done.stderr
    content = json.loads(path.read_text())
    assert [row["id"] for row in content["rows"]] == ["grid.small.seconds1", "grid.cpu.cells"]
    assert content["topic"] == "grid"
    assert content["command"].startswith("grid.py --plane 60x50")
    assert content["rows"][1]["conditions"]["bytes_per_cell"] == 72
    assert "grid.cpu.cells" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--device", "gpu:9"), 2, "gpu:9"),
        ((*ONE, "--plane", "60"), 2, "'60' is not a shape like 512x512"),
        ((*ONE, "--steps", "0"), 2, "'0' is not a whole number above 0"),
        ((*ONE, "--push", "sideways"), 2, "sideways"),
        ((*ONE, "--save", "wrong.json"), 2, "results of this machine go to"),
        ((*ONE, "--only", "grid.jacobi.efficiency"), 1, "no figure could be measured"),
        ((*TWO, "--cut", "3x1", "--only", "grid.cpu"), 1, "no figure could be measured"),
    ],
)
def test_wrong_use_is_named(arguments: tuple[str, ...], status: int, says: str):
    done = bench(*arguments)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_jacobi_solves_poissons_equation():
    """Sines along both axes are eigenfunctions of the five-point stencil."""
    shape = (15, 11)
    sines = [np.sin(np.pi * np.arange(1, count + 1) / (count + 1)) for count in shape]
    wanted = np.outer(*sines)
    factor = sum(2 - 2 * np.cos(np.pi / (count + 1)) for count in shape)
    run = Jacobi(shape, devices=["cpu:0", "cpu:1"], redundant=2, precision="double")
    run.set_source(factor * wanted)
    run.step(1500)
    np.testing.assert_allclose(run.solution(), wanted, atol=1e-12)
    largest, two = run.residual()
    assert largest < 1e-12
    assert largest <= two
    assert (run.steps_done, run.cells, run.shape) == (1500, 165, shape)
    # Two steps go through memory together: they read the solution and the source, and write both solutions.
    assert run.moved_bytes == 4 * 8 * run.cells // 2
    assert run.residual_bytes == 4 * 8 * run.cells


def test_jacobi_refuses_what_cannot_be():
    with pytest.raises(UsageError, match="1 or 2 or 3 numbers, not 4"):
        Jacobi((4, 4, 4, 4))
    with pytest.raises(UsageError, match="a pass over memory must do 1 to 4 steps, not 5"):
        Jacobi((16,), pass_steps=5)
    run = Jacobi((16,))
    with pytest.raises(UsageError, match=r"the source has shape \(3,\)"):
        run.set_source(np.zeros(3))
    with pytest.raises(UsageError, match="count must be 0 or more"):
        run.step(-1)


@pytest.mark.parametrize(("layers", "values"), [(0, 9 * 40 * 30), (3, 9 * 40 * 30 + 2 * 2 * (2 * 3 * 30 + 2 * 3 * 40))])
def test_moved_bytes_are_those_of_the_fields(layers: int, values: int):
    """The phases of a step go through memory together on a CPU device."""
    run = Fdtd((40, 30), 1e-3, cpml=layers)
    assert run.moved_bytes == 4 * values
    run.add_receiver("ez", (20, 15))
    run.step(2)
    assert run.moved_bytes == 4 * values


def test_copies_within_memory_are_rates_of_each_run():
    rates = headrace.measure.memory_copies(["cpu:0", "cpu:1"], bytes=1 << 20, runs=3)
    assert len(rates) == 3
    assert min(rates) > 0
    with pytest.raises(UsageError, match="copies of 0 bytes"):
        headrace.measure.memory_copies(["cpu:0"], bytes=0)
