"""The job log of headrace each on a full disk, and in a folder where its name is taken."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import SystemError  # noqa: A004
from headrace.each import Command, Rules, Runner, cpu_slots
from headrace.each.interrupts import Interrupts
from headrace.each.runner import Outcome

LIMIT = 1500  # bytes per file: some lines, and a part of the next


def each(logs: Path, *words: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace", "each", "--slots", "1", "--logs", str(logs), *words]
    command += ["--", "true", ":::", *map(str, range(30))]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))),
    )


def test_a_job_log_that_cannot_grow_has_whole_lines_and_a_later_run_goes_on(tmp_path: Path):
    logs = tmp_path / "logs"
    done = each(logs, limit=LIMIT)
    assert done.returncode == 1
    assert f"headrace: error: writing {logs / 'jobs.jsonl'}: File too large" in done.stderr
    content = (logs / "jobs.jsonl").read_bytes()
    assert content.endswith(b"}\n")
    header, *records = (json.loads(line) for line in content.splitlines())
    assert header["inputs"] == 30
    assert 0 < len(records) < 30
    done = each(logs, "--resume")
    assert done.returncode == 0, done.stderr
    lines = (logs / "jobs.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["index"] for line in lines[1:]) == list(range(30))


@pytest.mark.parametrize("kind", ["fifo", "/dev/full", "/dev/zero"])
@pytest.mark.parametrize("again", [(), ("--resume",), ("--overwrite",)])
def test_what_is_no_file_is_no_job_log(tmp_path: Path, kind: str, again: tuple[str, ...]):
    name = tmp_path / "jobs.jsonl"
    if kind == "fifo":
        os.mkfifo(name)
    else:
        name.symlink_to(kind)
    done = each(tmp_path, *again)
    assert done.returncode == 2
    assert f"cannot write logs to {tmp_path}: jobs.jsonl in it is not a regular file" in done.stderr


def test_a_fifo_with_the_name_of_an_output_fails_its_input_alone(tmp_path: Path):
    os.mkfifo(tmp_path / "00-0.out")
    done = each(tmp_path, "--overwrite")
    assert done.returncode == 1
    assert "No such device or address" in done.stderr
    records = [json.loads(line) for line in (tmp_path / "jobs.jsonl").read_text(encoding="utf-8").splitlines()[1:]]
    assert {record["index"]: record["status"] == "ok" for record in records} == {n: n > 0 for n in range(30)}


def test_an_error_while_two_have_ended_does_not_wait_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Their signals have already been noticed, so nothing would end a wait for them."""

    def refuse(_outcome: Outcome) -> None:
        raise SystemError("the disk is full")

    runner = Runner(Command(("true",)), [("1",), ("2",)], cpu_slots(2), tmp_path, Rules(), finished=refuse)
    waits: list[float] = []

    def wait_for_all(interrupts: Interrupts, seconds: float) -> None:
        assert len(waits) < 100, "it waits for what has ended"
        waits.append(seconds)
        for pid in list(runner._running):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        wait(interrupts, 0)

    wait = Interrupts.wait
    monkeypatch.setattr(Interrupts, "wait", wait_for_all)
    with pytest.raises(SystemError, match="the disk is full"):
        runner.run()
    assert max(waits[1:], default=0) < 1, waits  # ended processes are at most polled
    assert not runner._running
