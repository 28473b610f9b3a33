"""Commands whose outputs cannot be written, or would mix with JSON: one line that names path and cause."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run
from grid_scenes import changed

from headrace.cli import app
from headrace.cli.errors import guarded

SYNTHETIC = ("ingest", "synthetic", "1KiB", "--packets", "20", "--frame", "64KiB", "--to", "cpu")
FDTD = ("grid", "fdtd", "{in}/scene.toml", "--device", "cpu:0", "--no-roof")

WRITERS = {
    "index": ("index", "build", "{in}/corpus.txt", "{out}"),
    "index-synthetic": ("index", "synthetic", "{out}", "--documents", "1K", "--terms", "100", "--length", "5"),
    "fdtd-traces": (*FDTD, "--traces", "{out}"),
    "fdtd-checkpoint": (*FDTD, "--checkpoint", "{out}"),
    "fdtd-png": (*FDTD, "--png", "{out}"),
    "fdtd-gif": (*FDTD, "--gif", "{out}"),
    "timeline": ("grid", "timeline", "{in}/scene.toml", "--device", "cpu:0", "-o", "{out}.svg"),
    "taxi": ("taxi", "generate", "--rows", "1K", "--out", "{out}.parquet"),
    "ladder-report": ("ladder", "--device", "cpu:0", "--report", "{out}"),
    "tune-report": ("tune", "--device", "cpu:0", "--report", "{out}"),
    "oversubscribe-plot": ("oversubscribe", "--device", "cpu:0", "--budget", "4MiB", "--plot", "{out}"),
}
"""A command for each kind of file that is written."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    (folder / "corpus.txt").write_text("an apple\nan apple pie\n", encoding="utf-8")
    (folder / "scene.toml").write_text(changed(), encoding="utf-8")
    return folder


def words(writer: str, inputs: Path, out: Path) -> list[str]:
    return [word.replace("{in}", str(inputs)).replace("{out}", str(out)) for word in WRITERS[writer]]


def ends_of(writer: str, out: Path) -> Path:
    """The file for the command to write."""
    return Path(next(word for word in WRITERS[writer] if "{out}" in word).replace("{out}", str(out)))


def in_the_way_folder(path: Path) -> str:
    path.mkdir()
    return "is a folder"


def in_the_way_loop(path: Path) -> str:
    path.symlink_to(path)
    return os.strerror(errno.ELOOP)


def in_the_way_dangling(path: Path) -> str:
    path.symlink_to(path.parent / "nowhere" / "file")
    return "there is no folder"


PLACES: dict[str, tuple[str, Callable[[Path], str]]] = {
    "a missing folder": ("missing/file", lambda _: "there is no folder"),
    "a file as a folder": ("taken/file", lambda _: os.strerror(errno.ENOTDIR)),
    "a long name": ("n" * 260, lambda _: os.strerror(errno.ENAMETOOLONG)),
    "a folder": ("file", in_the_way_folder),
    "a loop of links": ("file", in_the_way_loop),
    "a link to nowhere": ("file", in_the_way_dangling),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_place_that_takes_no_file_is_known_before_the_work_and_named(
    writer: str,
    place: str,
    inputs: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("HEADRACE_DEVICES", "cpu")
    if "png" in writer or "gif" in writer or "plot" in writer or "report" in writer or writer == "timeline":
        pytest.importorskip("matplotlib")
    if writer == "fdtd-traces":
        pytest.importorskip("h5py")
    (tmp_path / "taken").write_text("", encoding="utf-8")
    name, prepare = PLACES[place]
    cause = prepare(ends_of(writer, tmp_path / name))
    before = sorted(tmp_path.rglob("*"))
    assert guarded(app, words(writer, inputs, tmp_path / name)) == (2 if place == "a folder" else 1)
    shown = capfd.readouterr()
    assert cause in shown.err
    assert str(tmp_path) in shown.err
    errors = [line for line in shown.err.splitlines() if line.startswith("headrace: error: ")]
    assert len(errors) == 1, shown.err
    assert "Errno" not in shown.err
    assert shown.out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("option", "place", "status", "says"),
    [
        ("--out", "missing/file", 1, "there is no folder"),
        ("--out", "", 2, "is a folder"),
        ("--prometheus", "missing/x.prom", 1, "there is no folder"),
    ],
)
def test_a_place_that_takes_nothing_of_a_receiver(
    run: Run, tmp_path: Path, option: str, place: str, status: int, says: str
):
    done = run(*SYNTHETIC, option, tmp_path / place)
    assert done.returncode == status
    assert says in done.stderr
    assert str(tmp_path) in done.stderr
    assert done.stderr.count("headrace: error: ") == 1
    assert not list(tmp_path.iterdir())


def redirected(command: list[str], stdout: Path) -> subprocess.CompletedProcess[str]:
    with stdout.open("wb") as file:
        return subprocess.run(
            [sys.executable, "-m", "headrace", *command],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "HEADRACE_DEVICES": "cpu"},
        )


def test_json_and_a_file_are_not_mixed(inputs: Path, tmp_path: Path):
    for out, stdout in (("/dev/stdout", tmp_path / "any"), (str(tmp_path / "same"), tmp_path / "same")):
        done = redirected([*words("index", inputs, Path(out)), "--json"], stdout)
        assert done.returncode == 2
        assert done.stderr == f"headrace: error: {out} is standard output, where --json prints: give another file\n"
        assert stdout.read_bytes() == b""


@pytest.mark.parametrize("more", [(), ("--json",)], ids=str)
def test_figures_and_received_data_are_not_mixed(more: tuple[str, ...], tmp_path: Path):
    """If both were one file, figures would overwrite data, because each writes from its start."""
    done = redirected([*SYNTHETIC, "--out", "/dev/stdout", *more], tmp_path / "out")
    assert done.returncode == 2
    assert "headrace: error: /dev/stdout is where the figures are printed: give a file or a FIFO" in done.stderr
    assert (tmp_path / "out").read_bytes() == b""


def test_the_null_device_takes_data_and_figures():
    done = redirected([*SYNTHETIC, "--out", os.devnull, "--json"], Path(os.devnull))
    assert done.returncode == 0, done.stderr


def test_json_is_over_when_the_next_command_has_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """A path reserved by one command is free for the next one in the same process."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("an apple\n", encoding="utf-8")
    assert guarded(app, ["index", "build", str(corpus), "/dev/stdout", "--json"]) == 2
    capfd.readouterr()
    assert guarded(app, ["index", "build", str(corpus), str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["documents"] == 1
