"""What runs beside tests uses idle processor time, stands still for what runs alone, and ends when it is stopped."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "beside.sh"
GUARD_SECONDS = 60


def beside(*words: str | Path, of: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEADRACE_BESIDE": of}
    return subprocess.run(
        [SCRIPT, *words], capture_output=True, text=True, check=False, env=environment, timeout=GUARD_SECONDS
    )


def state(pid: str) -> str:
    """The letter of a process's state; Z if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A shell beside this test, and its child, which is in a process group of its own, as Ninja's are."""
    log = tmp_path / "log"
    one = beside("start", log, "bash", "-c", "set -m; sleep 600 & echo $!; wait").stdout.strip()
    until = time.monotonic() + GUARD_SECONDS
    while not (child := log.read_text().strip()):
        assert time.monotonic() < until
        time.sleep(0.01)
    yield one, child
    beside("stop", of=one)


def test_it_takes_only_time_that_is_idle(running: tuple[str, str]):
    assert [os.sched_getscheduler(int(pid)) for pid in running] == [os.SCHED_IDLE] * 2
    groups = [Path(f"/proc/{pid}/autogroup") for pid in running]
    assert all(group.read_text().endswith("nice 19\n") for group in groups if group.exists())


def test_it_stands_still_meanwhile_and_goes_on(running: tuple[str, str]):
    one, child = running
    # A process that gets no time is told to stop when it gets some.
    states = f"cut -d ' ' -f 3 /proc/{one}/stat /proc/{child}/stat | sort -u"
    assert (
        beside("alone", "sh", "-c", f'until [ "$({states})" = T ]; do sleep 0.05; done; exit 3', of=one).returncode == 3
    )
    assert "T" not in {state(one), state(child)}


def test_stopping_ends_all_of_it(running: tuple[str, str]):
    one, child = running
    assert beside("stop", of=one).returncode == 0
    assert {state(one), state(child)} == {"Z"}


def test_without_anything_beside_commands_just_run():
    done = beside("alone", "sh", "-c", "echo alone; exit 4")
    assert (done.stdout, done.returncode) == ("alone\n", 4)
    assert beside("stop").returncode == 0
