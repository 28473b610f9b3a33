"""A scene on several processes started by mpirun: the same bits as on one, and an end for all when one dies."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from grid_scenes import changed

from headrace import UsageError
from headrace.grid import ranks as grid_ranks

OUTPUTS = [
    "--traces",
    "t.h5",
    "--snapshots",
    "s",
    "--png",
    "p.png",
    "--checkpoint",
    "c.npz",
    "--checkpoint-every",
    "40",
]
SPACE = (
    ("size = [0.4, 0.3]", "size = [0.16, 0.14, 0.12]"),
    ("cpml = 0", "cpml = 3"),
    ("steps = 150", "steps = 40"),
    ("below = 0.1", "below = 0.05"),
    ("position = [0.2, 0.2]", "position = [0.08, 0.07, 0.06]"),
    ("position = [0.25, 0.2]", "position = [0.04, 0.04, 0.04]"),
    ("step = [0.05, 0.0]", "step = [0.01, 0.0, 0.0]"),
)
LONG = (("size = [0.4, 0.3]", "size = [4.0, 3.0]"), ("steps = 150", "steps = 2000000"))
SILENT = "rank 1 of 3 has not been heard from for 5 s"
END_SECONDS = 30  # they end within 10, and would never end if nothing told them


def launcher() -> list[str]:
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun: apt-get install openmpi-bin libopenmpi-dev")
    pytest.importorskip("headrace._mpi", reason="built without MPI")
    return ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe"]


def environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200"}


def over(count: int, *words: object) -> subprocess.CompletedProcess[str]:
    command = [*launcher(), "-n", str(count), sys.executable, "-m", "headrace", "grid", "fdtd", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file except HDF5, which stores the time of writing."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".h5"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("count", "changes", "words"),
    [
        (2, (), ()),
        (4, (), ("--cut", "2x2", "--redundant", "3")),
        (3, SPACE, ("--cut", "1x3x1", "--redundant", "2")),
    ],
)
def test_files_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, changes: tuple[tuple[str, str], ...], words: tuple[str]
):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("matplotlib")
    launcher()
    folders = {name: tmp_path / name for name in ("one", "several")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "scene.toml").write_text(changed(*changes), encoding="utf-8")
    alone = [sys.executable, "-m", "headrace", "grid", "fdtd", "scene.toml", "--device", "cpu:0", *OUTPUTS]
    subprocess.run(alone, check=True, capture_output=True, cwd=folders["one"], timeout=300)
    monkeypatch.chdir(folders["several"])
    done = over(count, "scene.toml", "--device", "cpu:0", "--device", "cpu:1", "--json", *words, *OUTPUTS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["ranks"], found["devices"]) == (count, [f"cpu:{rank % 2}" for rank in range(count)])
    assert contents(folders["several"]) == contents(folders["one"])
    with h5py.File(folders["one"] / "t.h5") as one, h5py.File("t.h5") as several:
        for field in ("ez", "hx"):
            right = one["receivers/near"][field][:]
            assert np.abs(right).max() > 0
            assert (several["receivers/near"][field][:] == right).all()


FIELD = """
import sys
import numpy as np
from headrace.grid import Fdtd
from headrace.grid.ranks import joined
ranks = joined()
passes, redundant, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
fdtd = Fdtd((48, 60), 0.01, devices=["cpu:0"], redundant=redundant, passes=passes, cpml=0, ranks=ranks)
fdtd.set_field("hx", np.random.default_rng(5).normal(size=(48, 60)).astype(np.float32))
fdtd.step(5)
fdtd.step(18)
field = fdtd.field("ez")
if ranks is None or ranks.rank == 0:
    np.save(path, field)
"""


@pytest.mark.parametrize("redundant", [2, 4])
def test_passes_between_messages_leave_the_same_bits(tmp_path: Path, redundant: int):
    script, one, several = tmp_path / "field.py", tmp_path / "one.npy", tmp_path / "several.npy"
    script.write_text(FIELD, encoding="utf-8")
    for start, words in (
        ([], ("never", 1, one)),
        ([*launcher(), "-n", "3"], ("always", redundant, several)),
    ):
        command = [*start, sys.executable, script, *words]
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False, timeout=300, env=environment()
        )
        assert done.returncode == 0, done.stderr
    right = np.load(one)
    assert np.abs(right).max() > 0
    assert (np.load(several) == right).all()


def test_restart_and_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(changed(("steps = 150", "steps = 70")), encoding="utf-8")
    Path("scene.toml").write_text(changed(), encoding="utf-8")
    assert over(2, "short.toml", "--device", "cpu:0", "--checkpoint", "a.npz").returncode == 0
    whole = json.loads(over(1, "scene.toml", "--device", "cpu:0", "--json").stdout)
    rest = json.loads(over(3, "scene.toml", "--device", "cpu:0", "--restart", "a.npz", "--json").stdout)
    assert (rest["first_step"], rest["ranks"], whole["ranks"]) == (70, 3, 1)
    assert rest["traces"] == whole["traces"]
    assert over(2, "scene.toml", "--device", "cpu:0", "--scan", "--traces", "scan.h5").returncode == 0
    with h5py.File("scan.h5") as file:
        assert file["receivers/near/ez"].shape == (3, 150)


def test_what_cannot_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("scene.toml").write_text(changed(), encoding="utf-8")
    for words, says in (
        (("--cut", "3x1"), "--cut 3x1 makes 3 parts, but there are 2 ranks with one device each"),
        (("--mode", "resident"), "mode 'resident' works in one process only"),
        (("--traces", "nowhere/t.h5"), "nowhere"),
    ):
        done = over(2, "scene.toml", "--device", "cpu:0", *words)
        assert done.returncode != 0
        assert says in done.stderr


def test_a_field_that_is_not_finite_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    text = changed(("frequency = 0.5e9", "frequency = 0.5e9\namplitude = 1e38"))
    Path("scene.toml").write_text(text, encoding="utf-8")
    done = over(3, "scene.toml", "--device", "cpu:0", "--png", "p.png")
    assert done.returncode != 0
    assert "the field is not finite at step" in done.stderr
    assert not Path("p.png").exists()


@contextmanager
def running(count: int) -> Iterator[tuple[subprocess.Popen[str], dict[int, int]]]:
    """A long run, and the process of each rank once all have begun to step."""
    command = [*launcher(), "-n", str(count), sys.executable, "-m", "headrace", "grid", "fdtd", "scene.toml"]
    command += ["--device", "cpu:0", "--snapshots", "s"]
    Path("scene.toml").write_text(changed(*LONG, ("interval = 0.5e-9", "interval = 1.0e-9")), encoding="utf-8")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as run:
        try:
            until = time.monotonic() + 200
            while not list(Path("s").glob("ez-step-*.vti")):
                assert run.poll() is None, run.communicate()
                assert time.monotonic() < until
                time.sleep(0.05)
            found = dict(ranks_below(run.pid))
            assert sorted(found) == list(range(count))
            yield run, found
        finally:
            run.kill()


def ranks_below(parent: int) -> Iterator[tuple[int, int]]:
    """The rank and process of each child of the launcher."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "stat").read_text(encoding="utf-8")
            variables = (entry / "environ").read_text(encoding="utf-8").split("\0")
        except OSError:
            continue
        if int(status.rpartition(")")[2].split()[1]) != parent:
            continue
        for variable in variables:
            name, _, value = variable.partition("=")
            if name == "OMPI_COMM_WORLD_RANK":
                yield int(value), int(entry.name)


def runs(process: int) -> bool:
    """Whether a process is running: an ended one may still be listed as a zombie."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("number", "says"),
    [(signal.SIGKILL, "rank 1"), (signal.SIGSTOP, SILENT)],
)
def test_a_rank_that_dies_or_hangs_ends_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, says: str
):
    monkeypatch.chdir(tmp_path)
    with running(3) as (run, ranks):
        began = time.monotonic()
        os.kill(ranks[1], number)
        _, error = run.communicate(timeout=60)
        took = time.monotonic() - began
        assert run.returncode != 0
        assert says in error, error
        assert took < END_SECONDS
        # mpirun has ended; the processes it killed may take a moment longer.
        while [process for process in ranks.values() if runs(process)] and time.monotonic() - began < END_SECONDS:
            time.sleep(0.01)
        assert not [process for process in ranks.values() if runs(process)]


# Mistakes of one rank, either at the start or after all have stepped once; all ranks must end and say why.
WRONG = """
import ctypes, os, signal, sys, time
from headrace.errors import Error
from headrace.grid import Fdtd
if sys.argv[2] == "mpi4py":
    from mpi4py import MPI
from headrace.grid.ranks import joined
ranks = joined()
what, mine = sys.argv[1], joined().rank == 1
def fail(how):
    with open(sys.argv[3], "w") as file:
        file.write(str(time.time()))
    match how:
        case "exception": raise OSError("a file is missing")
        case "fewer": sys.exit(0)
        case "_Exit": ctypes.CDLL(None)._Exit(3)
        case "_Exit 0": ctypes.CDLL(None)._Exit(0)
        case "abort": os.abort()
        case "SIGKILL": os.kill(os.getpid(), signal.SIGKILL)
        case "SIGSTOP": os.kill(os.getpid(), signal.SIGSTOP)
try:
    if mine:
        fail(what.removeprefix("early ") if what.startswith("early ") else "")
    shape = (48, 60) if what == "domains" and mine else (40, 60)
    cut = (1, ranks.count) if what == "cuts" and mine else (ranks.count, 1)
    fdtd = Fdtd(shape, 0.01, devices=["cpu:0"], cut=cut, cpml=0, ranks=ranks)
    fdtd.step(90 if what == "counts" and mine else 100)
    if mine:
        if what == "field":
            fdtd.field("hx")
        fail(what)
    fdtd.step(201)
    fdtd.field("ez")
except (Error, OSError) as error:
    print(f"rank {ranks.rank} says: {error}", file=sys.stderr, flush=True)
    sys.exit(1)
"""
LEFT = "rank 1 of {count} has left while rank"
OTHER_CALLS = "rank 0 calls {}, but rank 1 calls {}; all ranks must make the same calls in the same order"
ANOTHER = "has a different domain, cut or number of redundant steps"


@pytest.mark.parametrize("mpi4py", [False, True])
@pytest.mark.parametrize(
    ("count", "what", "says", "ranks"),
    [
        (2, "exception", LEFT, (0,)),
        (3, "exception", LEFT, (0, 2)),
        (3, "fewer", LEFT, (0, 2)),
        (2, "counts", OTHER_CALLS.format("step(100) after 0 steps", "step(90) after 0 steps"), (0, 1)),
        (3, "field", OTHER_CALLS.format("step(201) after 100 steps", "get(field 0) after 100 steps"), (0, 1, 2)),
        (3, "domains", ANOTHER, (0, 1, 2)),
        (3, "cuts", ANOTHER, (0, 1, 2)),
        (3, "_Exit", "", ()),
        (3, "SIGKILL", "", ()),
        (3, "SIGSTOP", SILENT, (0, 2)),
        (3, "_Exit 0", "", ()),
        (3, "abort", "", ()),
        (3, "early exception", LEFT, (0, 2)),
        (3, "early fewer", LEFT, (0, 2)),
        (3, "early _Exit 0", "", ()),
        (2, "early SIGKILL", "", ()),
        (3, "early SIGSTOP", SILENT, (0, 2)),
    ],
)
def test_what_one_rank_does_wrong_ends_all_and_is_named(
    tmp_path: Path, count: int, what: str, says: str, ranks: tuple[int, ...], mpi4py: bool
):
    if mpi4py:
        pytest.importorskip("mpi4py")
    script = tmp_path / "wrong.py"
    script.write_text(WRONG, encoding="utf-8")
    failed = tmp_path / "failed"
    words = [what, "mpi4py" if mpi4py else "", failed]
    command = list(map(str, [*launcher(), "-n", count, sys.executable, script, *words]))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as run:
        _, error = run.communicate(timeout=90)
    assert time.time() - float(failed.read_text(encoding="utf-8")) < END_SECONDS
    assert run.returncode != 0
    for rank in ranks:
        said = next((line for line in error.splitlines() if f"rank {rank} says: " in line), "")
        assert says.format(count=count).removesuffix("...").split(": all")[0] in said, error
    if "exception" in what:
        assert "rank 1 says: a file is missing" in error
    if not says:  # mpirun notices it first, and names the rank
        assert "rank 1" in error or "process rank: 1" in error.lower() or "[[" in error, error


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (("scene.toml",), ("other.toml",), "rank 1 has another scene than rank 0"),
        (("scene.toml",), ("longer.toml",), "rank 1 has another scene than rank 0"),
        (
            ("scene.toml", "--restart", "c.npz"),
            ("scene.toml", "--restart", "changed.npz"),
            "rank 1 has another checkpoint",
        ),
    ],
)
def test_ranks_that_are_given_other_files_all_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: tuple[str, ...], second: tuple[str, ...], says: str
):
    monkeypatch.chdir(tmp_path)
    Path("scene.toml").write_text(changed(), encoding="utf-8")
    Path("other.toml").write_text(changed(("frequency = 0.5e9", "frequency = 0.6e9")), encoding="utf-8")
    Path("longer.toml").write_text(changed(("steps = 150", "steps = 160")), encoding="utf-8")
    Path("short.toml").write_text(changed(("steps = 150", "steps = 20")), encoding="utf-8")
    start = launcher()
    command = [sys.executable, "-m", "headrace", "grid", "fdtd", "--device", "cpu:0"]
    if "--restart" in first:
        made = subprocess.run([*command, "short.toml", "--no-roof", "--checkpoint", "c.npz"], check=False, timeout=300)
        assert made.returncode == 0
        with np.load("c.npz") as arrays:
            content = dict(arrays)
        content["state.ez"] = content["state.ez"] + 1
        np.savez("changed.npz", **content)
    ranks = ["-n", "1", *command, *first, ":", "-n", "1", *command, *second]
    done = subprocess.run([*start, *ranks], capture_output=True, text=True, check=False, timeout=300, env=environment())
    assert done.returncode == 1, done.stderr
    assert says in done.stderr


def test_without_mpi_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert grid_ranks.joined() is None
    monkeypatch.setenv("PMI_SIZE", "1")
    assert grid_ranks.joined() is None
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "headrace._mpi", None)
    with pytest.raises(UsageError, match=r"one of several started together .* but this build of Headrace has no MPI"):
        grid_ranks.joined()
