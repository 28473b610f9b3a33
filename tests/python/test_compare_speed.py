"""The report of speed runs both copies of the package in turn, and names the copy that failed."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/compare_speed.py"
# Records which copy was called with what; `broken` fails at everything except preparation.
FAKE = """
import os, sys
with open(os.environ["LOG"], "a") as log:
    print(os.environ["PYTHONPATH"].split(":")[0].split("/")[-1], sys.argv[1], file=log)
if "broken" in os.environ["PYTHONPATH"] and sys.argv[1] == "devices":
    sys.exit("headrace: error: no device")
"""


def compare(
    tmp_path: Path, base: str, change: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    for name in (base, change):
        (tmp_path / name / "headrace").mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "headrace/__init__.py").write_text("", encoding="utf-8")
        (tmp_path / name / "headrace/__main__.py").write_text(FAKE, encoding="utf-8")
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / base, tmp_path / change, *options],
        env={**os.environ, "LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, log.read_text(encoding="utf-8").splitlines()


def test_both_copies_are_run_in_turn(tmp_path: Path):
    done, log = compare(tmp_path, "old", "new", "--rounds", "3", "--only", "start")
    assert done.returncode == 0, done.stderr
    assert [line for line in log if "devices" in line] == [
        *("old devices", "new devices"),
        *("new devices", "old devices"),
        *("old devices", "new devices"),
    ]
    row = next(line for line in done.stdout.splitlines() if line.startswith("start"))
    base, change, ratio, least, most = map(float, row.split()[1:])
    assert base > 0
    assert change > 0
    assert least <= ratio <= most


def test_the_copy_that_fails_is_named(tmp_path: Path):
    done, _ = compare(tmp_path, "old", "broken", "--rounds", "2", "--only", "start")
    assert done.returncode == 1
    assert "change: headrace: error: no device" in done.stdout


def test_a_folder_without_the_package_is_an_error(tmp_path: Path):
    command = [sys.executable, SCRIPT, tmp_path, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no package headrace" in done.stderr
