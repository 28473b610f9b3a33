"""MP4 of a run, and B-scans whose positions are distributed over devices."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from grid_reference import NumpyFdtd
from grid_scenes import changed, flat

from headrace import UsageError
from headrace.grid.solver import Done, Layout, Outputs, film, run_one


def ran(outputs: Outputs) -> Done:
    return run_one(flat(), Layout(), outputs, maker=NumpyFdtd)


def test_an_mp4_has_every_snapshot_as_a_frame(tmp_path: Path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "a.mp4"
    assert ran(Outputs(mp4=path)).files.written == [path]
    decode = [film.encoder(), "-i", str(path), "-vf", "scale=64:48", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(decode, capture_output=True, check=True)
    assert b"Video: h264" in decoded.stderr
    images = np.frombuffer(decoded.stdout, np.uint8).reshape(-1, 48, 64, 3)
    assert len(images) == 150 // flat().snapshots.every
    assert (np.abs(images[-1].astype(int) - images[0]) > 40).any()  # something moved


def test_without_ffmpeg_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(film.importlib.util, "find_spec", lambda name: name != "imageio_ffmpeg" or None)
    with pytest.raises(UsageError, match=r"MP4 needs ffmpeg: .*-m pip install imageio-ffmpeg"):
        ran(Outputs(mp4=tmp_path / "a.mp4"))


def test_what_ffmpeg_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("matplotlib")
    broken = tmp_path / "ffmpeg"
    broken.write_text("#!/bin/sh\nread -r line\necho no such codec >&2\nexit 7\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setattr(film, "encoder", lambda: str(broken))
    done = ran(Outputs(mp4=tmp_path / "a.mp4"))
    assert done.speed.cells > 0
    assert [str(failure) for failure in done.files.failures] == [
        f"{tmp_path / 'a.mp4'}: ffmpeg could not encode it: no such codec"
    ]
    assert not (tmp_path / "a.mp4").exists()


def test_each_shares_the_positions_of_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    Path("scene.toml").write_text(changed(), encoding="utf-8")
    one = [sys.executable, "-m", "headrace", "grid", "fdtd", "scene.toml", "--position", "{}", "-o", "part-{}.h5"]
    each = run("each", "--slots", "2", "--", *one, ":::", "0", "1", "2")
    assert each.returncode == 0, each.stderr
    parts = [f"part-{number}.h5" for number in range(3)]
    merged = run("grid", "merge", "scene.toml", *parts, "-o", "merged.h5")
    assert merged.returncode == 0, merged.stderr
    whole = run("grid", "fdtd", "scene.toml", "--scan", "-o", "whole.h5")
    assert whole.returncode == 0, whole.stderr
    with h5py.File("merged.h5") as found, h5py.File("whole.h5") as right:
        assert found["receivers/near/ez"].shape == (3, 150)
        assert (found["receivers/near/ez"][:] == right["receivers/near/ez"][:]).all()


def test_the_encoder_is_there():
    pytest.importorskip("imageio_ffmpeg")
    assert b"ffmpeg version" in subprocess.run([film.encoder(), "-version"], capture_output=True, check=True).stdout
