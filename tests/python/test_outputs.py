"""Files that commands write: what is replaced, what is written through, and what remains after a failure."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headrace
from headrace import outputs, results
from headrace.errors import MissingFileError, SystemError, UsageError, reading  # noqa: A004

Run = Callable[..., subprocess.CompletedProcess[str]]
RESULTS = {
    "topic": "made",
    "machine": {
        "name": "cpu-2",
        "device": "CPU",
        "driver": None,
        "cuda": None,
        "cpu": "a CPU",
        "cores": 2,
        "kernel": "6.1",
    },
    "commit": None,
    "date": "2026-01-01T00:00:00Z",
    "command": "headrace made",
    "rows": [],
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("red fox\nblue fox\n", encoding="utf-8")
    return path


def node(path: Path, minor: int) -> Path:
    """A private device node that can be written to, 3 for null and 7 for full."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        path.open("wb").close()
    except PermissionError:
        pytest.skip("this process may not make device nodes")
    return path


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this process may not mount file systems")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def write_half(path: Path) -> None:
    with outputs.writing(path) as file:
        file.write(b"half of")
        raise RuntimeError


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "a.txt"
    outputs.write(path, "first")
    with pytest.raises(RuntimeError):
        write_half(path)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_library_may_write_by_name(tmp_path: Path):
    path = tmp_path / "a.txt"
    with outputs.replacing(path) as staged:
        subprocess.run(["sh", "-c", f"printf child > {staged}"], check=True)
    assert path.read_text() == "child"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o007])
def test_the_mode_is_what_the_umask_leaves(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        outputs.write(tmp_path / "a.txt", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask


def test_killed_writers_leave_nothing_that_blocks_or_stays(tmp_path: Path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom headrace import outputs\n"
        "with outputs.writing(Path(sys.argv[1])) as file:\n"
        "    file.write(b'x' * 100_000)\n    file.flush()\n    print('written', flush=True)\n    time.sleep(60)\n"
    )
    path = tmp_path / "a.bin"
    outputs.write(path, "old")
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    outputs.write(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("name", ["no/such/folder/a.txt", "/proc/a.txt", "lines.txt/below"])
def test_what_cannot_be_written_is_known_before(tmp_path: Path, corpus: Path, name: str):
    assert corpus.exists()
    with pytest.raises(SystemError, match=r"a\.txt|below"):
        outputs.check(tmp_path / name)


def test_a_missing_folder_is_a_missing_file_and_a_folder_is_no_file(tmp_path: Path):
    with pytest.raises(MissingFileError) as caught:
        outputs.check(tmp_path / "none" / "a.txt")
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, headrace.Error)
    with pytest.raises(UsageError, match="is a folder"):
        outputs.check(tmp_path)


def test_one_failed_output_does_not_stop_the_others(tmp_path: Path):
    attempts = outputs.Attempts()
    attempts.write(tmp_path / "none" / "a", lambda path: outputs.write(path, "a"))
    attempts.write(tmp_path / "b", lambda path: outputs.write(path, "b"))
    assert attempts.written == [tmp_path / "b"]
    assert len(attempts.failures) == 1


def test_commands_write_into_devices_links_and_fifos(run: Run, tmp_path: Path, corpus: Path):
    link, target = tmp_path / "link", tmp_path / "target.hridx"
    link.symlink_to(target.name)
    assert run("index", "build", corpus, link).returncode == 0
    assert link.is_symlink()
    assert headrace.Index.load(target).document_count == 2

    fifo, got = tmp_path / "fifo", bytearray()
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.extend(fifo.read_bytes()))
    reader.start()
    assert run("index", "build", corpus, fifo).returncode == 0
    reader.join()
    assert bytes(got) == target.read_bytes()
    assert fifo.is_fifo()

    null = node(tmp_path / "null", 3)
    assert run("index", "build", corpus, null).returncode == 0
    assert null.is_char_device()


def test_standard_output_is_written_into(corpus: Path, tmp_path: Path):
    assert headrace.Index.build(["red fox", "blue fox"]).save(tmp_path / "same.hridx") is None
    with (tmp_path / "stdout").open("wb") as file:
        command = [sys.executable, "-m", "headrace", "index", "build", str(corpus), "/dev/stdout"]
        subprocess.run(command, stdout=file, check=True)
    whole = (tmp_path / "same.hridx").read_bytes()
    assert (tmp_path / "stdout").read_bytes().startswith(whole)  # followed by the figures


def test_the_cause_is_the_system_s_whatever_a_library_adds(tmp_path: Path):
    path = tmp_path / "a.arrow"
    said = "Error writing bytes to file. Detail: [errno 28] No space left on device"
    with pytest.raises(SystemError) as caught, outputs.replacing(path):
        raise OSError(28, said)
    assert str(caught.value) == f"writing {path}: No space left on device"
    assert caught.value.native == 28


def test_a_full_device_is_an_error_that_names_it(run: Run, tmp_path: Path, corpus: Path):
    full = node(tmp_path / "full", 7)
    done = run("index", "build", corpus, full)
    assert done.returncode == 1
    assert done.stderr == f"headrace: error: writing {full}: No space left on device\n"
    assert full.is_char_device()


SCENE = """
[domain]
size = [0.5, 0.5]
spacing = 0.01
[time]
steps = 60
[[sources]]
id = "a"
position = [0.2, 0.2]
waveform = "ricker"
frequency = 9e8
[[receivers]]
id = "r"
position = [0.3, 0.3]
[snapshots]
interval = 1e-10
"""


def test_a_full_disk_suppresses_neither_figures_nor_other_outputs(run: Run, tmp_path: Path, full_disk: Path):
    pytest.importorskip("h5py")
    pytest.importorskip("matplotlib")
    (tmp_path / "scene.toml").write_text(SCENE, encoding="utf-8")
    (full_disk / "ballast").write_bytes(bytes(250 << 10))
    done = run(
        *("grid", "fdtd", tmp_path / "scene.toml", "--device", "cpu:0", "--no-roof", "--redundant", "1"),
        *("--traces", full_disk / "r.h5", "--gif", full_disk / "a.gif", "--checkpoint", full_disk / "c.npz"),
        *("--snapshots", full_disk / "vti", "--png", tmp_path / "fine.png"),
    )
    assert done.returncode == 1, done.stderr
    assert "cells/s" in done.stdout
    assert "fine.png" in done.stdout
    assert (tmp_path / "fine.png").read_bytes().startswith(b"\x89PNG")
    for name in ("a.gif", "c.npz", "vti"):
        assert f"{full_disk / name}" in done.stderr
    assert "No space left on device" in done.stderr
    assert "/proc/" not in done.stderr
    assert sorted(path.name for path in full_disk.iterdir() if path.is_file())[0] == "ballast"


def test_ladder_checks_its_outputs_before_it_climbs(run: Run, tmp_path: Path):
    name = results.machine(headrace.Device.parse("cpu"))["name"]
    for command in (
        ["ladder", "--rung", "1", "--save", tmp_path / "none" / f"x.{name}.json"],
        ["ladder", "--rung", "1", "--save", f"/proc/x.{name}.json"],
        ["ladder", "--rung", "1", "--report", "/proc/x.html"],
        ["tune", "--report", "/proc/x.html"],
    ):
        began = time.monotonic()
        done = run(*command, "--device", "cpu")
        assert done.returncode == 1, command
        assert done.stdout == ""
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "none", "fox"),
        ("index", "build", "none", "out.hridx"),
        ("grid", "fdtd", "none.toml"),
        ("grid", "convert", "none.in"),
        ("grid", "timeline", "none.toml"),
        ("results", "report", "none.json"),
        ("results", "render", "none"),
        ("fetch", "none.parquet"),
        ("fetch", "none-*.parquet"),
        ("taxi", "run", "none.parquet"),
        ("ingest", "pcap", "none.pcap"),
        ("load", "--arrivals", "trace", "--trace", "none"),
        ("load", "--rate", "1K", "--operator", "retrieval", "--index", "none"),
        ("ladder", "--operator", "retrieval", "--index", "none"),
        ("advise", "--rates", "none.json", "zipf-rows", "--factor", "2"),
        ("advise", "--heat", "none.npy"),
        ("each", "--inputs-from", "none", "echo"),
    ],
)
def test_a_missing_file_has_one_status(run: Run, arguments: tuple[str, ...], tmp_path: Path):
    done = run(*arguments, PWD=str(tmp_path))
    if "not installed" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1, done.stderr
    assert "none" in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_an_unreadable_file_is_a_failure_that_names_it():
    error = reading("a.toml", PermissionError(13, "Permission denied"))
    assert isinstance(error, SystemError)
    assert not isinstance(error, MissingFileError)
    assert str(error) == "reading a.toml: Permission denied"
    assert error.code == "no permission"


def test_results_pages_replace_no_link(run: Run, tmp_path: Path):
    pytest.importorskip("matplotlib")
    (tmp_path / "r.json").write_text(json.dumps(RESULTS), encoding="utf-8")
    page = tmp_path / "page.html"
    page.symlink_to("real.html")
    assert run("results", "report", tmp_path / "r.json", "-o", page).returncode == 0
    assert page.is_symlink()
    assert (tmp_path / "real.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")
