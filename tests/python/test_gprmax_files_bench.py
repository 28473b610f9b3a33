"""bench/gprmax_files.py, with small input files and a program in place of gprMax."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "bench" / "gprmax_files.py"
FILE = """\
#title: {title}
#domain: 0.030 0.026 0.001
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 90
#pml_cells: 5 5 0 5 5 0
#waveform: gaussiandotnorm 1 9e9 pulse
#hertzian_dipole: z 0.014 0.013 0 pulse
#box: 0 0 0 0.030 0.009 0.001 pec
#geometry_view: 0 0 0 0.030 0.026 0.001 0.001 0.001 0.001 view n
"""
RECEIVER = "#rx: 0.019 0.016 0\n"
TURNED = """\
#title: turned
#domain: 0.001 0.030 0.026
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 90
#pml_cells: 0 5 5 0 5 5
#waveform: gaussiandotnorm 1 9e9 pulse
#hertzian_dipole: x 0 0.014 0.013 pulse
#box: 0 0 0 0.001 0.030 0.009 pec
#rx: 0 0.019 0.016
"""
# Writes what gprMax writes, from this solver: exactly, louder, without a field or not at all, by the file's title.
STAND_IN = """\
#!{python}
import sys
from dataclasses import replace
import h5py, numpy as np
from pathlib import Path
from headrace.grid.gprmax import convert
from headrace.grid.solver.model import Layout, build
assert sys.argv[1:4] == ["-m", "gprMax", "case.in"], sys.argv
text = Path("case.in").read_text()
assert "geometry_view" not in text
Path("ran").write_text(str(int(Path("ran").read_text()) + 1 if Path("ran").exists() else 1))
if "broken" in text:
    sys.exit("ValueError: it cannot")
title = text.splitlines()[0]
scene = replace(convert(text, Path("case.in")).scene, precision="double")
model = build(scene, Layout())
model.solver.step(scene.steps)
factor = 1.002 if "louder" in title else 0.0 if "silent" in title else 1.0
names = dict(ez="Ex", hx="Hy", hy="Hz") if "turned" in title else dict(ez="Ez", hx="Hx", hy="Hy")
with h5py.File("case.h5", "w") as output:
    output.attrs["nrx"] = len(scene.receivers)
    for number, receiver in enumerate(scene.receivers, 1):
        for name in ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz"):
            output[f"rxs/rx{{number}}/{{name}}"] = np.zeros(scene.steps + 1)
        for field, name in names.items():
            trace = model.solver.trace(model.receivers[receiver.name, field])
            output[f"rxs/rx{{number}}/{{name}}"][1:] = factor * trace
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    path = tmp_path / "gprmax"
    path.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    return path


def files(folder: Path) -> Path:
    found = folder / "files"
    (found / "more").mkdir(parents=True)
    for name, text in (
        ("exact", FILE.format(title="exact") + RECEIVER),
        ("more/exact_again", FILE.format(title="exact") + RECEIVER),
        ("more/without", FILE.format(title="without a receiver")),
        ("louder", FILE.format(title="louder") + RECEIVER),
        ("silent", FILE.format(title="silent") + RECEIVER),
        ("broken", FILE.format(title="broken") + RECEIVER),
        ("turned", TURNED),
        ("slanted", FILE.format(title="slanted") + "\n#discrete_plane_wave: 0 0 0 0.01 0.01 0.01 0.1 10 20 my\n"),
        ("large", FILE.format(title="large").replace("0.030 0.026 0.001\n#dx", "0.300 0.260 0.001\n#dx")),
    ):
        (found / name).with_suffix(".in").write_text(text, encoding="utf-8")
    return found


def run(*arguments: object) -> dict:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_are_converted_run_and_compared(tmp_path: Path, stand_in: Path):
    folder = files(tmp_path)
    found = run(folder, "--gprmax", stand_in, "--cells", 1000, "--work", 60 * 780, "--keep", tmp_path / "kept")
    rows = {row["id"]: row for row in found["rows"]}
    assert rows["grid.gprmax.converted"]["value"] == 8
    within = rows["grid.gprmax.within"]
    assert within["value"] == 4
    about = within["conditions"]
    assert (about["files"], about["distinct"], about["compared"], about["receiver_added"]) == (9, 8, 5, 1)
    by_name = {one["file"]: one for one in found["files"]}
    assert by_name["exact"] | {"apart": 0.0} == {
        "file": "exact", "cells": 780, "steps": 63, "of_steps": 89, "apart": 0.0, "times": 2
    }  # fmt: skip
    assert max(by_name[name]["apart"] for name in ("exact", "turned", "more/without")) < 1e-12
    assert by_name["louder"]["apart"] == pytest.approx(2e-3, rel=0.05)
    assert by_name["more/without"]["receiver"] == "added"
    for name, reason in (
        ("silent", "no field reaches a receiver within 63 steps"),
        ("broken", "gprMax fails: ValueError: it cannot"),
        ("large", "more than 1,000 cells"),
    ):
        assert by_name[name]["reason"] == reason
    assert "#discrete_plane_wave" in by_name["slanted"]["reason"]
    # Kept output is used again.
    again = run(folder, "--gprmax", stand_in, "--cells", 1000, "--work", 60 * 780, "--keep", tmp_path / "kept")
    assert again["files"] == found["files"]
    assert {path.read_text(encoding="utf-8") for path in (tmp_path / "kept").rglob("ran")} == {"1"}


def test_an_empty_folder_is_an_error(tmp_path: Path, stand_in: Path):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), "--gprmax", str(stand_in)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no input files (*.in)" in done.stderr
