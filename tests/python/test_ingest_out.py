"""The file of headrace ingest --out when it is not a regular file, or cannot be written further."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

from conftest import Run

SYNTHETIC = ("ingest", "synthetic", "1KiB", "--packets", "200", "--frame", "64KiB", "--to", "cpu:0")


def test_the_reader_of_a_fifo_gets_every_byte(run: Run, tmp_path: Path):
    whole, fifo = tmp_path / "whole", tmp_path / "fifo"
    assert run(*SYNTHETIC, "--out", whole).returncode == 0
    os.mkfifo(fifo)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    done = run(*SYNTHETIC, "--out", fifo)
    assert done.returncode == 0, done.stderr
    reader.join()
    assert len(got[0]) == 200 * 1024
    assert got[0] == whole.read_bytes()


def test_a_file_that_takes_no_more_is_named(run: Run, tmp_path: Path):
    done = run(*SYNTHETIC, "--out", "/dev/full")
    assert done.returncode == 1
    assert "/dev/full: No space left on device" in done.stderr
    out = tmp_path / "out"
    limited = subprocess.run(
        [sys.executable, "-m", "headrace", *SYNTHETIC, "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert limited.returncode == 1
    assert f"{out}: File too large" in limited.stderr
