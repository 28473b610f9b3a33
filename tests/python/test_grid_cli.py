"""`headrace grid`: its verbs as a user calls them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from grid_scenes import changed
from test_interrupt import interrupted

from headrace.cli import app
from headrace.cli.errors import guarded
from headrace.cli.grid_fdtd import cut_of
from headrace.grid.solver import checkpoint, choosing, read_scene, traces

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls a verb in a folder with small.toml; gives its status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("small.toml").write_text(changed(), encoding="utf-8")

    def verb(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = guarded(app, ["grid", *map(str, words)])
        return status, *capsys.readouterr()

    return verb


def test_fdtd_prints_what_it_did(call: Call):
    status, out, error = call("fdtd", "small.toml", "--device", "cpu:0")
    assert (status, error) == (0, "")
    assert "Small: 40 x 30 cells of 0.01 m, 150 steps of 23.35 ps, single precision, on cpu:0" in out
    assert "cells/s" in out
    assert "near: ez reaches" in out
    assert "near: hx reaches" in out


def test_fdtd_json(call: Call):
    status, out, _ = call("fdtd", "small.toml", "--device", "cpu:0", "--json", "--checkpoint", "a.npz")
    assert status == 0
    found = json.loads(out)
    assert (found["shape"], found["steps_done"], found["cells"], found["interrupted"]) == ([40, 30], 150, 1200, False)
    assert (found["devices"], found["positions"], found["files"]) == (["cpu:0"], [0], ["a.npz"])
    assert [(one["receiver"], one["field"]) for one in found["traces"]] == [("near", "ez"), ("near", "hx")]
    assert found["traces"][0]["peak"] != 0


def two_devices(call: Call, *more: object) -> dict[str, Any]:
    status, out, error = call("fdtd", "small.toml", "--device", "cpu:0", "--device", "cpu:1", "--json", *more)
    assert status == 0, error
    return json.loads(out)


def test_fdtd_measures_what_is_not_forced_where_a_run_is_long(call: Call, monkeypatch: pytest.MonkeyPatch):
    plain = two_devices(call)
    assert (plain["redundant"], plain["push"], plain["trials"], plain["weights"]) == (1, "automatic", [], None)
    monkeypatch.setattr(choosing, "LEAST_STEPS", 150)
    found = two_devices(call, "--cut", "measured")
    assert len(found["trials"]) == 12
    best = min((one for one in found["trials"] if not one["why_not"]), key=lambda one: one["seconds_per_step"])
    assert (found["redundant"], found["push"]) == (best["redundant"], best["push"])
    assert len(found["weights"]) == 2
    assert found["traces"] == plain["traces"], "to the last bit"
    forced = two_devices(call, "--redundant", 2, "--push", "host")
    assert (forced["redundant"], forced["push"], forced["trials"]) == (2, "host", [])
    assert {one["redundant"] for one in two_devices(call, "--redundant", 2)["trials"]} == {2}
    status, out, _ = call("fdtd", "small.toml", "--device", "cpu:0", "--device", "cpu:1", "--cut", "measured")
    assert status == 0
    assert "Cut by measured speed: " in out
    assert re.search(r"Exchanges every \d steps, push (store|copy|host): the fastest of 12 tried", out)


def test_fdtd_hands_on_the_limit_of_waits(call: Call):
    resident = ("fdtd", "small.toml", "--device", "cpu:0", "--device", "cpu:1", "--mode", "resident", "--wait-limit")
    assert call(*resident, "20s")[0] == 0
    status, _, error = call(*resident, "1500min")
    assert status == 2
    assert "the wait limit is 90000 s: it must be above 0 and at most a day" in error


def test_a_scan_in_parts_is_the_scan(call: Call):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("matplotlib")
    status, out, _ = call("fdtd", "small.toml", "--scan", "--traces", "scan.h5", "--png", "scan.png")
    assert status == 0
    assert "3 positions in" in out
    for number in range(3):
        assert call("fdtd", "small.toml", "--position", number, "-o", f"part-{number}.h5")[0] == 0
    status, out, _ = call("merge", "small.toml", *(f"part-{number}.h5" for number in (1, 2, 0)), "-o", "merged.h5")
    assert (status, out) == (0, "3 positions of 150 steps: merged.h5\n")
    with h5py.File("scan.h5") as whole, h5py.File("merged.h5") as merged:
        assert whole["receivers/near/ez"].shape == (3, 150)
        assert (whole["receivers/near/ez"][:] == merged["receivers/near/ez"][:]).all()
        assert (whole["receivers/near/position"][:] == merged["receivers/near/position"][:]).all()
    assert Path("scan.png").read_bytes().startswith(b"\x89PNG")


def test_restart(call: Call):
    Path("short.toml").write_text(changed(("steps = 150", "steps = 70")), encoding="utf-8")
    assert call("fdtd", "short.toml", "--checkpoint", "a.npz")[0] == 0
    whole = json.loads(call("fdtd", "small.toml", "--json")[1])
    rest = json.loads(call("fdtd", "small.toml", "--restart", "a.npz", "--json")[1])
    assert (rest["first_step"], rest["steps_done"]) == (70, 150)
    assert rest["traces"] == whole["traces"]


def test_warnings_go_to_stderr(call: Call):
    Path("strange.toml").write_text(changed(("below = 0.1", "below = -1.0")), encoding="utf-8")
    status, out, error = call("fdtd", "strange.toml", "--json")
    assert status == 0
    assert error == "headrace: warning: strange.toml:17: [[objects]] ground: lies entirely outside the domain\n"
    assert json.loads(out)["warnings"] == ["strange.toml:17: [[objects]] ground: lies entirely outside the domain"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scan", "--position", "1"], "--scan runs all positions, --position only one"),
        (["--scan", "--gif", "a.gif"], "--gif is for a single run, not for a scan"),
        (["--scan", "--checkpoint", "a.npz"], "--checkpoint is for a single run, not for a scan"),
        (["--position", "3"], "--position 3: small.toml has 3 positions, from 0"),
        (["--checkpoint-every", "10"], "--checkpoint-every needs --checkpoint FILE"),
        (["--cut", "2"], "--cut 2: give best, or the parts along each axis, such as 4x1"),
        (["--cut", "2x1"], "--cut 2x1 makes 2 parts, but there are 1 devices"),
        (["--device", "gpu"], "gpu"),
        (["--field", "ey"], "there is no field 'ey'"),
        (["--at", "8"], "not a time above 0 with a unit"),
        (["--at", "8us"], "is after the end of the run"),
        (["--push", "pull"], "pull"),
        (["--mode", "eternal"], "eternal"),
        (["--plane", "zz"], "zz"),
        (["--redundant", "0"], "--redundant 0: give automatic, or a number of steps of 1 or more"),
        (["--redundant", "often"], "--redundant often: give automatic"),
        (["--wait-limit", "0s"], "a time above 0"),
    ],
)
def test_options_that_make_no_sense(call: Call, words: list[str], says: str):
    status, out, error = call("fdtd", "small.toml", *words)
    assert (status, out) == (2, "")
    assert error.startswith("headrace: error: ")
    assert says in error


def test_a_scan_needs_one(call: Call):
    Path("still.toml").write_text(changed(("[scan]\nstep = [0.05, 0.0]\ncount = 3\n", "")), encoding="utf-8")
    assert call("fdtd", "still.toml")[0] == 0
    for words in (["--scan"], ["--position", "0"]):
        status, _, error = call("fdtd", "still.toml", *words)
        assert status == 2
        assert "no [scan]" in error


def test_the_cut():
    assert cut_of("best", 2) == "best"
    assert cut_of("4x1", 2) == (4, 1)
    assert cut_of("1x2x3", 3) == (1, 2, 3)


def test_convert(call: Call):
    Path("a.in").write_text(
        "#domain: 0.1 0.1 0.002\n#dx_dy_dz: 0.002 0.002 0.002\n#time_window: 1e-9\n"
        "#waveform: ricker 1 1e9 w\n#hertzian_dipole: z 0.05 0.05 0 w\n#rx: 0.06 0.05 0\n",
        encoding="utf-8",
    )
    status, out, error = call("convert", "a.in")
    assert status == 0
    assert all(line.startswith("headrace: note: a.in: ") for line in error.splitlines())
    assert out.startswith("a.toml: 50 x 50 cells, ")
    assert call("fdtd", "a.toml")[0] == 0
    assert call("convert", "a.in", "-o", "a.in")[0] == 2
    Path("a.in").write_text("#python:\nprint('#title: a')\n#end_python:\n#bowtie: 0 0 0 1 1 0 pec\n", encoding="utf-8")
    status, _, error = call("convert", "a.in")
    assert status == 2
    assert [line.partition(": #")[0] for line in error.splitlines()] == [
        f"headrace: error: a.in:{line}" for line in (1, 4)
    ]
    status, _, error = call("convert", "a.in", "--trust")
    assert status == 2
    assert error.splitlines()[0].startswith("headrace: error: a.in:4: #bowtie: ")
    assert "--trust" not in error


def test_ctrl_c_keeps_what_there_is(tmp_path: Path):
    pytest.importorskip("h5py")
    scene, state, recorded = tmp_path / "long.toml", tmp_path / "a.npz", tmp_path / "a.h5"
    longer = ("[0.4, 0.3]", "[4.0, 3.0]"), ("steps = 150", "steps = 1_000_000")
    scene.write_text(changed(*longer), encoding="utf-8")
    words = ("grid", "fdtd", str(scene), "--device", "cpu:0", "--checkpoint", str(state), "--traces", str(recorded))
    result = interrupted(*words, "--json", when="cells/s")
    assert result.returncode == 130, result.stderr
    found = json.loads(result.stdout)
    assert found["interrupted"] is True
    assert 0 < found["steps_done"] < 1_000_000
    assert sorted(found["files"]) == [str(recorded), str(state)]
    assert checkpoint.load(state, read_scene(scene)).steps == found["steps_done"]
    assert traces.read(recorded, read_scene(scene)).steps == found["steps_done"]


def test_memory_that_does_not_fit(run: Run, tmp_path: Path):
    scene = tmp_path / "large.toml"
    scene.write_text(changed(("[0.4, 0.3]", "[40.0, 30.0]")), encoding="utf-8")
    two = ("--device", "cpu:0", "--device", "cpu:1")
    failed = run("grid", "fdtd", scene, *two, HEADRACE_CPU_MEMORY="64MiB")
    assert failed.returncode == 1
    assert "12,000,000 cells in single precision need 0.268 GiB, and cpu:0, cpu:1 have 0.0625 GiB free" in failed.stderr


def test_a_domain_larger_than_the_memory_of_its_device(run: Run, tmp_path: Path):
    scene = tmp_path / "tall.toml"
    scene.write_text(changed(("[0.4, 0.3]", "[0.4, 3.0]")), encoding="utf-8")
    words = ("grid", "fdtd", scene, "--device", "cpu:0", "--json")
    whole = json.loads(run(*words).stdout)
    assert whole["slabs"] is None
    given = json.loads(run(*words, "--device-memory", "200KiB", "--visit-steps", 7).stdout)
    itself = json.loads(run(*words, HEADRACE_CPU_MEMORY="300KiB").stdout)
    for cut in (given, itself):
        assert cut["slabs"]["count"] > 1
        assert cut["slabs"]["device_bytes"] <= 300 << 10
        assert cut["traces"] == whole["traces"]
    assert given["slabs"]["steps"] == 7
    told = run("grid", "fdtd", scene, "--device", "cpu:0", "--device-memory", "200KiB")
    assert "In host memory, visited in " in told.stdout
    refused = run("grid", "fdtd", scene, "--device", "cpu:0", "--device", "cpu:1", "--device-memory", "50KiB")
    assert refused.returncode == 2
    assert "cannot run in several parts" in refused.stderr
    assert run("grid", "fdtd", scene, "--device-memory", "lots").returncode == 2
