"""Kills every command that writes files at any time, and runs them on disks of any size and under process limits.

Afterwards each file is complete according to its own reader, and there are no others; an error is one line, and nothing
hangs. HEADRACE_SWEEP is the number of kills per command, and of tried sizes and limits; default: 2.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from grid_scenes import changed

import headrace
from headrace.grid.solver import read_scene

COUNT = int(os.environ.get("HEADRACE_SWEEP", "2"))
GUARD_SECONDS = 240
BALLAST = "ballast"

INPUT = """\
#title: a cylinder
#domain: 0.240 0.210 0.002
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 3e-9
#waveform: ricker 1 1.5e9 my_ricker
#hertzian_dipole: z 0.100 0.170 0 my_ricker
#rx: 0.140 0.170 0
#cylinder: 0.120 0.080 0 0.120 0.080 0.002 0.010 pec n
"""


def check_index(path: Path) -> None:
    headrace.Index.load(path)  # its checksum covers all bytes


def check_arrays(path: Path) -> None:
    with np.load(path) as arrays:
        assert all(arrays[name].size > 0 for name in arrays)


def check_hdf5(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path) as file:
        assert file["receivers/near/ez"][:].shape[-1] > 0


def check_vtk(path: Path) -> None:
    assert path.read_bytes().endswith(b"</VTKFile>\n")


def check_picture(path: Path) -> None:
    assert path.read_bytes().endswith(b"IEND\xaeB`\x82")


def check_table(path: Path) -> None:
    pyarrow.parquet.read_table(path)


def check_scene(path: Path) -> None:
    read_scene(path)


CHECKS: dict[str, Callable[[Path], None]] = {
    ".hridx": check_index,
    ".npz": check_arrays,
    ".h5": check_hdf5,
    ".vti": check_vtk,
    ".pvd": check_vtk,
    ".png": check_picture,
    ".parquet": check_table,
    ".toml": check_scene,
}


@dataclass(frozen=True)
class Case:
    """A command that writes all its files to one folder."""

    name: str
    words: tuple[str, ...]
    """{in} and {out} are folders."""

    def command(self, inputs: Path, out: Path) -> list[str]:
        return [word.replace("{in}", str(inputs)).replace("{out}", str(out)) for word in self.words]


CASES = (
    Case("index", ("index", "synthetic", "{out}/a.hridx", "--documents", "60K", "--terms", "2K", "--length", "10")),
    Case(
        "grid",
        (
            *("grid", "fdtd", "{in}/scene.toml", "--device", "cpu:0", "--no-roof", "--redundant", "1"),
            *("--traces", "{out}/t.h5", "--checkpoint", "{out}/c.npz", "--checkpoint-every", "20"),
            *("--snapshots", "{out}/s", "--png", "{out}/p.png"),
        ),
    ),
    Case("convert", ("grid", "convert", "{in}/scene.in", "-o", "{out}/a.toml")),
    Case("taxi", ("taxi", "generate", "--rows", "200K", "--out", "{out}/a.parquet")),
)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    pytest.importorskip("h5py")
    pytest.importorskip("matplotlib")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "scene.toml").write_text(changed(), encoding="utf-8")
    (folder / "scene.in").write_text(INPUT, encoding="utf-8")
    return folder


def environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", "HEADRACE_DEVICES": "cpu"}


def run(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_SECONDS,
        env=environment(),
        **options,  # type: ignore[call-overload]
    )


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != BALLAST)


def check_whole(folder: Path, known: set[str]) -> None:
    """Checks that the command writes every file, and that its own reader finds each complete."""
    for path in files_of(folder):
        assert str(path.relative_to(folder)) in known, path
        CHECKS[path.suffix](path)


def check_error(done: subprocess.CompletedProcess[str]) -> None:
    """Checks that it succeeded, or failed with errors of one line each."""
    assert done.returncode in (0, 1, 2), (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode != 0:
        assert "headrace: error: " in done.stderr, done.stderr


@by_case
def test_killed_at_any_time_leaves_whole_files_and_nothing_else(case: Case, inputs: Path, tmp_path: Path):
    first = tmp_path / "first"
    first.mkdir()
    began = time.monotonic()
    done = run(case.command(inputs, first))
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    known = {str(path.relative_to(first)) for path in files_of(first)}
    choose = random.Random(case.name)
    out = tmp_path / "out"
    out.mkdir()
    for number in range(COUNT):
        # Most of a short command is Python's start; most kills should come after it.
        after = seconds * (0.3 + 0.8 * (number + choose.random()) / COUNT)
        with subprocess.Popen(
            [sys.executable, "-m", "headrace", *case.command(inputs, out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        ) as process:
            time.sleep(after)
            process.send_signal(signal.SIGKILL)
        check_whole(out, known)
    done = run(case.command(inputs, out))
    assert done.returncode == 0, done.stderr
    assert {str(path.relative_to(out)) for path in files_of(out)} == known
    check_whole(out, known)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder to mount small file systems on."""
    folder = tmp_path / "disk"
    folder.mkdir()
    yield folder
    subprocess.run(["umount", "--quiet", str(folder)], check=False)


@by_case
def test_a_disk_of_any_size_holds_whole_files_or_none(case: Case, inputs: Path, tmp_path: Path, disk: Path):
    first = tmp_path / "first"
    first.mkdir()
    assert run(case.command(inputs, first)).returncode == 0
    known = {str(path.relative_to(first)) for path in files_of(first)}
    total = sum(path.stat().st_size for path in files_of(first))
    refused = 0
    for number in range(COUNT):
        pages = total * (number + 1) // (COUNT + 1) // resource.getpagesize()
        size = (1 + pages) * resource.getpagesize()
        mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)]
        if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
            pytest.skip("this process may not mount file systems")
        (disk / BALLAST).write_bytes(b"x")  # takes a page, so that none may be left for others
        done = run(case.command(inputs, disk))
        check_error(done)
        check_whole(disk, known)
        refused += done.returncode
        if done.returncode != 0:
            assert "No space left on device" in done.stderr
            assert str(disk) in done.stderr
        subprocess.run(["umount", str(disk)], check=True)
    assert refused > 0


@by_case
def test_a_limit_of_file_sizes_is_an_error_and_keeps_what_was_there(case: Case, inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    assert run(case.command(inputs, out)).returncode == 0
    before = {path: path.read_bytes() for path in files_of(out)}
    largest = max(len(content) for content in before.values())
    for number in range(COUNT):
        limit = largest * number // COUNT
        limits = (resource.RLIMIT_FSIZE, (limit, limit))
        done = run(case.command(inputs, out), preexec_fn=lambda limits=limits: resource.setrlimit(*limits))
        check_error(done)
        assert done.returncode == 1
        assert "File too large" in done.stderr
        known = {str(path.relative_to(out)) for path in before}
        check_whole(out, known)
        assert set(files_of(out)) == set(before)


LIMITED = """
    import importlib, pkgutil, resource, sys
    import h5py, headrace, matplotlib.backends.backend_agg, matplotlib.pyplot, pyarrow.parquet, pydantic.main, zoneinfo
    from headrace import cli
    # Imports everything first, because the limits are not for lazy imports. cuda_group needs Numba-CUDA.
    for found in pkgutil.walk_packages(headrace.__path__, "headrace."):
        if not found.name.endswith(("__main__", "_mpi", "child", "cuda_group")):
            importlib.import_module(found.name)
    kind, limit = sys.argv[1], int(sys.argv[2])
    sys.argv = ["headrace", *sys.argv[3:]]
    if kind == "files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    else:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
    sys.exit(cli.main())
"""
LIMITS = {
    "processes": (1, 2, 3, 5, 8, 13),
    "files": (5, 8, 12, 16, 24, 40),
    "memory": (32 << 20, 64 << 20, 128 << 20, 250 << 20, 500 << 20, 900 << 20),
}
COMMANDS = (
    *(case for case in CASES if case.name != "convert"),
    Case("load", ("load", "--rate", "500", "--duration", "0.2s", "--threads", "4", "--device", "cpu:0")),
    Case("each", ("each", "--logs", "{out}/logs", "--slots", "4", "--", "true", ":::", "1", "2", "3", "4", "5")),
    Case("query", ("query", "--corpus", "{in}/scene.toml", "size OR steps", "--device", "cpu:0")),
    Case("synthetic", ("ingest", "synthetic", "1KiB", "--packets", "2000", "--frame", "64KiB", "--to", "cpu")),
    Case("taxi-run", ("taxi", "run", "{in}/rides.parquet", "--device", "cpu:0", "--runs", "1")),
)


def limited(kind: str, limit: int) -> list[str]:
    """A command prefix that sets a limit. Process limits are per user, so another user, who may read all, runs it."""
    if kind != "processes":
        return [sys.executable, "-c", textwrap.dedent(LIMITED), kind, str(limit)]
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("prlimit") is None:
        pytest.skip("needs root, setpriv and prlimit to run as another user")
    rights = "--inh-caps=-all,+dac_read_search,+dac_override"
    ambient = "--ambient-caps=-all,+dac_read_search,+dac_override"
    other = ["setpriv", "--reuid=54322", "--regid=54322", "--clear-groups", rights, ambient]
    return [*other, "prlimit", f"--nproc={limit}", sys.executable, "-m", "headrace"]


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case.name)
def test_limits_of_a_process_are_errors(case: Case, kind: str, inputs: Path, tmp_path: Path):
    if case.name == "taxi-run":
        assert run(["taxi", "generate", "--rows", "20K", "--out", str(inputs / "rides.parquet")]).returncode == 0
    # DuckDB 2.0 dies of a signal if connecting finds no memory.
    without_duckdb = ["--no-check"] if (case.name, kind) == ("taxi-run", "memory") else []
    limits = LIMITS[kind]
    for number in range(min(COUNT, len(limits))):
        limit = limits[number * len(limits) // min(COUNT, len(limits))]
        out = tmp_path / f"out-{limit}"
        out.mkdir()
        out.chmod(0o777)
        done = subprocess.run(
            [*limited(kind, limit), *case.command(inputs, out), *without_duckdb],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=GUARD_SECONDS,
            env=environment() | {"OPENBLAS_NUM_THREADS": "1"},
        )
        if kind == "memory" and "thread-local data: ABORT" in done.stderr:
            continue  # the C library aborts when a thread first uses a late-loaded library
        assert done.returncode in (0, 1, 2), (limit, done.returncode, done.stderr)
        assert "Traceback" not in done.stderr, (limit, done.stderr)
        assert done.returncode == 0 or done.stderr, limit
        for path in files_of(out):
            if path.suffix in CHECKS:
                CHECKS[path.suffix](path)
