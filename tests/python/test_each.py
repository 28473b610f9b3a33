"""`headrace each`: real processes, and reports on how they ended."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import MissingFileError, UsageError
from headrace.cli import app
from headrace.cli.errors import guarded
from headrace.each import (
    Command,
    Outcome,
    Report,
    Rules,
    Runner,
    Slot,
    combine,
    cpu_slots,
    gather_inputs,
    gpu_slots,
    runner,
)
from headrace.each.child import living_members
from headrace.each.commands import printable
from headrace.each.guard import Guard
from headrace.each.logs import log_name
from headrace.each.runner import Ending

SHELL = ("sh", "-c")


def run_shell(script: str, inputs: list[str], logs: Path, slots: list[Slot] | None = None, **rules: object) -> Report:
    """Runs a shell script on inputs, each as its $1."""
    command = Command((*SHELL, script, "sh"))
    parts = [(text,) for text in inputs]
    return Runner(command, parts, slots or cpu_slots(2), logs, Rules(**rules)).run()  # type: ignore[arg-type]


def only(report: Report) -> Outcome:
    assert len(report.outcomes) == 1
    return report.outcomes[0]


# Commands.


def test_marks_are_filled_in():
    slot = Slot("cuda:1", "GPU-7")
    command, inputs = Command.split(["prog", "--out={index}-{device}", "{}", "{other}", ":::", "a b", "--c"])
    assert inputs == [["a b", "--c"]]
    assert command.for_input(("a b",), 3, slot) == ["prog", "--out=3-cuda:1", "a b", "{other}"]


def test_an_input_is_the_last_argument_where_there_is_no_mark():
    command, _ = Command.split(["prog", "{index}"])
    assert command.for_input(("x",), 0, Slot("cpu", "")) == ["prog", "0", "x"]


def test_marks_in_an_input_are_left_alone():
    assert Command(("prog", "{}")).for_input(("{index}",), 5, Slot("cpu", "")) == ["prog", "{index}"]


def test_parts_of_an_input_are_words_of_their_own():
    slot = Slot("cpu", "")
    command, sources = Command.split(["p", "{2}-{1}", "{}", "all={}", ":::", "a b", "c", ":::", "1", "2"])
    assert combine(sources) == [("a b", "1"), ("a b", "2"), ("c", "1"), ("c", "2")]
    assert command.for_input(("a b", "2"), 1, slot) == ["p", "2-a b", "a b", "2", "all=a b 2"]
    assert Command(("p", "-v")).for_input(("a", "1"), 0, slot) == ["p", "-v", "a", "1"]
    assert Command(("p", "{2}")).for_input(("a", "1"), 0, slot) == ["p", "1"]


def test_combinations_that_are_none():
    with pytest.raises(UsageError, match="no inputs after ':::' number 2"):
        combine([["a"], []])
    with pytest.raises(UsageError, match="1000002 combinations"):
        combine([["a"] * 2, ["b"] * 500_001])
    with pytest.raises(UsageError, match=r"names \{3\}, but an input has 2 part"):
        Command(("p", "{1}", "x{3}")).require_parts(2)


@pytest.mark.parametrize("words", [[], [":::", "a"]])
def test_a_command_that_is_none(words: list[str]):
    with pytest.raises(UsageError, match="no program"):
        Command.split(words)


def test_inputs_between_nul_bytes(tmp_path: Path):
    (tmp_path / "list").write_bytes(b"a\nb\0 \0\0c\0")
    assert gather_inputs([], [str(tmp_path / "list")], null=True) == ["a\nb", " ", "c"]
    with pytest.raises(UsageError, match="-0 splits files at NUL bytes"):
        gather_inputs([], [str(tmp_path / "list")])


def test_inputs_from_everywhere(tmp_path: Path):
    (tmp_path / "list").write_bytes(b"one\r\n\n  \ntwo words\nr\xe9sum\xe9")
    for name in ("b.dat", "a.dat", "c.txt"):
        (tmp_path / name).touch()
    found = gather_inputs(["given"], [str(tmp_path / "list")], [str(tmp_path / "*.dat")])
    assert found[:3] == ["given", "one", "two words"]
    assert os.fsencode(found[3]) == b"r\xe9sum\xe9"
    assert found[4:] == [str(tmp_path / "a.dat"), str(tmp_path / "b.dat")]


def test_inputs_that_are_none(tmp_path: Path):
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(UsageError, match="no inputs"):
        gather_inputs([], [str(tmp_path / "empty")])
    with pytest.raises(MissingFileError, match="absent"):
        gather_inputs([], [str(tmp_path / "absent")])
    with pytest.raises(UsageError, match="no file matches"):
        gather_inputs([], [], [str(tmp_path / "*.vtk")])
    with pytest.raises(UsageError, match="NUL"):
        gather_inputs(["a\0b"])


def test_what_cannot_be_shown_is_replaced():
    assert printable("a\x1b[2Jb\r\udcff") == "a\ufffd[2Jb\ufffd\ufffd"


# Slots.


@pytest.mark.parametrize(
    ("environment", "visible"),
    [
        ({}, ["0", "1"]),
        ({"CUDA_VISIBLE_DEVICES": "3,5"}, ["3", "5"]),
        ({"CUDA_VISIBLE_DEVICES": " GPU-aa , MIG-bb ,7"}, ["GPU-aa", "MIG-bb"]),
    ],
)
def test_gpus_are_named_through_what_is_visible(environment: dict[str, str], visible: list[str]):
    slots = gpu_slots(None, 2, 2, environment)
    assert [slot.device for slot in slots] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert [slot.visible for slot in slots] == visible * 2


def test_chosen_gpus():
    assert gpu_slots(["cuda:1"], 1, 2, {"CUDA_VISIBLE_DEVICES": "4,6"}) == [Slot("cuda:1", "6")]


@pytest.mark.parametrize(
    ("names", "environment", "says"),
    [
        (["cuda:2"], {}, "no device 'cuda:2'.*cuda:0, cuda:1"),
        (["0"], {}, "no device '0'"),
        (["cuda:0", "cuda:0"], {}, "twice"),
        (None, {"CUDA_VISIBLE_DEVICES": "1"}, "fewer"),
    ],
)
def test_gpus_that_are_none(names: list[str] | None, environment: dict[str, str], says: str):
    with pytest.raises(UsageError, match=says):
        gpu_slots(names, 1, 2, environment)


def test_each_process_sees_its_own_gpu(tmp_path: Path):
    slots = gpu_slots(None, 1, 3, {"CUDA_VISIBLE_DEVICES": "GPU-a,2,MIG-c"})
    report = run_shell('echo "$CUDA_VISIBLE_DEVICES"', [str(n) for n in range(9)], tmp_path, slots)
    seen = {outcome.device: set() for outcome in report.outcomes}
    for outcome in report.outcomes:
        seen[outcome.device].add(outcome.stdout.read_text().strip())
    names = {"cuda:0": {"GPU-a"}, "cuda:1": {"2"}, "cuda:2": {"MIG-c"}}
    assert seen
    assert all(visible == names[str(device)] for device, visible in seen.items())
    assert report.count(Ending.ok) == 9


def test_as_many_at_once_as_there_are_slots(tmp_path: Path):
    # Each of three waits for the other two: with fewer slots, or one after another, none would end.
    script = f"cd {tmp_path}; : > here-$1; until [ -e here-a ] && [ -e here-b ] && [ -e here-c ]; do :; done"
    assert run_shell(script, ["a", "b", "c"], tmp_path, cpu_slots(3), timeout=300).count(Ending.ok) == 3


def test_a_slot_has_one_process_at_a_time(tmp_path: Path):
    script = f"mkdir {tmp_path}/taken && rmdir {tmp_path}/taken"
    assert run_shell(script, [str(n) for n in range(20)], tmp_path, cpu_slots(1)).count(Ending.ok) == 20


# Outcomes.


def test_failures_are_reported(tmp_path: Path):
    script = "echo out; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i >&2; done; [ $1 = good ] || exit 7"
    good, bad = run_shell(script, ["good", "bad"], tmp_path).outcomes
    assert (good.ending, good.exit_code, good.last_lines) == (Ending.ok, 0, [])
    assert (bad.ending, bad.exit_code, bad.signal) == (Ending.failed, 7, None)
    assert bad.last_lines == [f"line {n}" for n in range(3, 13)]
    assert bad.describe() == "failed: exit code 7"
    assert bad.stdout.read_text() == "out\n"
    assert len(bad.stderr.read_text().splitlines()) == 12


def test_a_signal_is_named(tmp_path: Path):
    outcome = only(run_shell("kill -SEGV $$", ["x"], tmp_path))
    assert (outcome.ending, outcome.exit_code, outcome.signal) == (Ending.failed, None, "SIGSEGV")


def test_megabytes_that_are_not_utf8(tmp_path: Path):
    code = (
        "import sys\n"
        "for s in (sys.stdout, sys.stderr): s.buffer.write(b'\\xff\\xfe' * (4 << 20) + b'\\nend\\xff\\n')\n"
        "sys.exit(1)"
    )
    outcome = only(Runner(Command((sys.executable, "-c", code)), [("x",)], cpu_slots(1), tmp_path, Rules()).run())
    assert outcome.stdout.stat().st_size == outcome.stderr.stat().st_size == (8 << 20) + 6
    assert outcome.last_lines[-1] == "end\ufffd"
    assert sum(map(len, outcome.last_lines)) <= 64 * 1024


def test_retries(tmp_path: Path):
    script = f"echo try >> {tmp_path}/count-$1; [ $(wc -l < {tmp_path}/count-$1) -ge $1 ]"
    two, three, four = run_shell(script, ["2", "3", "4"], tmp_path / "logs", retries=2).outcomes
    assert [two.attempts, three.attempts, four.attempts] == [2, 3, 3]
    assert [two.ending, three.ending, four.ending] == [Ending.ok, Ending.ok, Ending.failed]
    assert four.stderr.read_text() == "headrace: attempt 2\nheadrace: attempt 3\n"


def test_timeout_ends_the_group_though_it_ignores_requests(tmp_path: Path):
    script = "trap '' INT TERM; (while :; do sleep 1000; done) & echo $$; wait; wait"
    outcome = only(run_shell(script, ["x"], tmp_path, timeout=2, grace=0.1))
    assert (outcome.ending, outcome.signal) == (Ending.timed_out, "SIGKILL")
    assert not living_members(int(outcome.stdout.read_text()))


def test_a_timeout_asks_first(tmp_path: Path):
    script = 'trap "echo asked; exit 3" TERM; while :; do sleep 0.01; done'
    outcome = only(run_shell(script, ["x"], tmp_path, timeout=2, grace=60))
    assert outcome.stdout.read_text() == "asked\n"
    assert (outcome.ending, outcome.exit_code) == (Ending.timed_out, 3)


def test_what_stays_in_the_background_is_ended(tmp_path: Path):
    outcome = only(run_shell("sleep 1000 & echo $$", ["x"], tmp_path))
    assert outcome.ending is Ending.ok
    assert not living_members(int(outcome.stdout.read_text()))


def test_stop_on_failure(tmp_path: Path):
    report = run_shell("[ $1 != b ]", ["a", "b", "c", "d"], tmp_path, cpu_slots(1), stop_on_failure=True)
    endings = [outcome.ending for outcome in report.outcomes]
    assert endings == [Ending.ok, Ending.failed, Ending.not_run, Ending.not_run]


def test_a_program_that_cannot_be_started_fails_its_input_alone(tmp_path: Path):
    program = tmp_path / "bad"
    program.write_bytes(b"\x7fELF but no program")
    program.chmod(0o755)
    good = tmp_path / "good"
    good.write_text("#!/bin/sh\n")
    good.chmod(0o755)
    report = Runner(Command(("{}",)), [(str(program),), (str(good),)], cpu_slots(1), tmp_path / "logs", Rules()).run()
    assert [outcome.ending for outcome in report.outcomes] == [Ending.not_started, Ending.ok]
    assert "Exec format error" in report.outcomes[0].describe()


def test_log_names_are_safe_and_unique():
    names = [
        log_name(n, 100, text)
        for n, text in enumerate(["../../etc/passwd", "a b/\n;c", "", "\udcff", ".." + "x" * 500])
    ]
    assert names == ["00-.._.._etc_passwd", "01-a_b_c", "02", "03", f"04-{'x' * 60}"]
    assert all("/" not in name and len(name) < 80 for name in names)


# The command line.


def each(*arguments: object) -> int:
    return guarded(app, ["each", *map(str, arguments)])


def test_succeeds(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert each("--slots", 2, "--logs", tmp_path / "logs", "--", "echo", "-n", "{}!", ":::", "a", "b") == 0
    assert "2 inputs: 2 succeeded, 0 failed" in capfd.readouterr().out
    assert {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()} == {
        "0-a.out": "a!",
        "0-a.err": "",
        "1-b.out": "b!",
        "1-b.err": "",
        "jobs.jsonl": (tmp_path / "logs" / "jobs.jsonl").read_text(),
    }


def test_failure_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    script = "echo reason >&2; exit $1"
    status = each("--slots", 1, "--logs", tmp_path, "--json", *SHELL, script, "sh", ":::", 0, 3)
    shown = capfd.readouterr()
    assert status == 1
    assert "3 on cpu: failed: exit code 3" in shown.err
    assert "  | reason" in shown.err
    summary = json.loads(shown.out)
    assert (summary["inputs"], summary["succeeded"], summary["failed"], summary["slots"]) == (2, 1, 1, 1)
    failed = summary["results"][1]
    assert (failed["input"], failed["status"], failed["exit_code"], failed["last_lines"]) == (
        "3",
        "failed",
        3,
        ["reason"],
    )
    assert Path(failed["stderr"]).read_text() == "reason\n"


def test_options_of_the_program_are_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert each("--slots", 1, "--logs", tmp_path, "echo", "--json", "--", ":::", "x") == 0
    assert (tmp_path / "0-x.out").read_text() == "--json -- x\n"
    assert "1 succeeded" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--", "no-such-program", ":::", "a"], "no executable program 'no-such-program'"),
        (["--", "echo"], "no inputs"),
        (["--", "echo", ":::"], "no inputs"),
        ([], "no program"),
        (["--logs", "/proc/logs", "--", "echo", ":::", "a"], "cannot write logs to /proc/logs"),
        (["--logs", "/dev/null", "--", "echo", ":::", "a"], "cannot write logs to /dev/null"),
        (["--devices", "cuda:99", "--", "echo", ":::", "a"], "no device 'cuda:99'"),
        (["--devices", "cuda:0", "--slots", "2", "--", "echo", ":::", "a"], "--slots is for"),
        (["--devices", "cpu", "--slots-per-device", "2", "--", "echo", ":::", "a"], "--slots-per-device is for"),
        (["--slots", "0", "--", "echo", ":::", "a"], "--slots"),
        (["--timeout", "5", "--", "echo", ":::", "a"], "not a time"),
        (["--sluts", "--", "echo", ":::", "a"], "--sluts"),
    ],
)
def test_bad_usage(arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]):
    assert each(*arguments) == 2
    shown = capfd.readouterr()
    assert says in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err


def start_each(
    tmp_path: Path, script: str, *options: str, start_new_session: bool = False
) -> "tuple[subprocess.Popen[str], list[int]]":
    """Starts the command line on two inputs; yields the process numbers once both are ready."""
    fifo = tmp_path / "ready"
    os.mkfifo(fifo)
    told = os.open(fifo, os.O_RDWR)  # kept open: a writer without a reader would die of SIGPIPE
    arguments = [
        "--slots",
        "2",
        "--logs",
        str(tmp_path / "logs"),
        *options,
        "--",
        *SHELL,
        script,
        "sh",
        "{}",
        str(fifo),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "each", *arguments, ":::", "a", "b", "c"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )
    groups = numbers(told, 2)
    os.close(told)
    return process, groups


def numbers(fifo: int, count: int) -> list[int]:
    """This many numbers, one per line, as they arrive."""
    text = b""
    while text.count(b"\n") < count:
        text += os.read(fifo, 4096)
    return [int(line) for line in text.split()]


def test_ctrl_c_ends_everything_though_it_ignores_requests(tmp_path: Path):
    script = "trap '' INT TERM; (while :; do sleep 1000; done) & echo $$ > $2; while :; do sleep 1000; done"
    process, groups = start_each(tmp_path, script, "--grace", "100ms", "--json")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not any(living_members(group) for group in groups)
    summary = json.loads(out)
    assert [result["status"] for result in summary["results"]] == ["interrupted", "interrupted", "not run"]
    assert {result["signal"] for result in summary["results"]} == {"SIGKILL", None}
    assert (summary["interrupted_by"], summary["not_finished"]) == ("SIGINT", 3)


def test_ctrl_c_asks_first(tmp_path: Path):
    script = 'trap "echo asked; exit 5" INT; echo $$ > $2; while :; do sleep 0.01; done'
    process, groups = start_each(tmp_path, script, "--grace", "60s")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert not any(living_members(group) for group in groups)
    assert "3 inputs: 0 succeeded, 0 failed, 3 not finished" in out
    assert [(tmp_path / "logs" / f"{name}.out").read_text() for name in ("0-a", "1-b")] == ["asked\n"] * 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_being_asked_to_end_leaves_nothing_behind(tmp_path: Path, number: signal.Signals):
    script = "trap '' INT; echo $$ > $2; while :; do sleep 0.01; done"
    process, groups = start_each(tmp_path, script, "--grace", "50ms")
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert not any(living_members(group) for group in groups)


def test_the_second_ctrl_c_does_not_ask(tmp_path: Path):
    script = "trap 'echo $$ > $2' INT; echo $$ > $2; while :; do sleep 0.01; done"
    process, groups = start_each(tmp_path, script, "--grace", "60s")
    told = os.open(tmp_path / "ready", os.O_RDWR)
    process.send_signal(signal.SIGINT)
    assert sorted(numbers(told, 2)) == sorted(groups)  # each was asked once, so the first signal has been handled
    os.close(told)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert not any(living_members(group) for group in groups)


def ended(groups: list[int]) -> bool:
    """Whether no process of the groups is running, after at most ten seconds."""
    until = time.monotonic() + 10
    while any(living_members(group) for group in groups):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


STUBBORN = "trap '' INT TERM HUP; (while :; do sleep 1000; done) & echo $$ > $2; while :; do sleep 1000; done"


@pytest.mark.parametrize("whole_group", [False, True])
def test_killed_itself_it_leaves_nothing_behind(tmp_path: Path, whole_group: bool):
    process, groups = start_each(tmp_path, STUBBORN, start_new_session=whole_group)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert ended(groups)


def test_a_guard_that_is_killed_is_replaced():
    sleeper = ["sleep", "1000"]
    first, second = (subprocess.Popen(sleeper, process_group=0) for _ in range(2))
    guard = Guard()
    guard.watch(first.pid)
    guard._process.kill()
    guard._process.wait()
    guard.watch(second.pid)
    guard.forget(second.pid)
    guard.close()
    assert first.wait(timeout=60) == -signal.SIGKILL
    assert second.poll() is None
    second.kill()
    second.wait()


# Resuming an earlier run.


def test_logs_are_not_replaced_unless_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    logs = tmp_path / "logs"
    assert each("--slots", 1, "--logs", logs, "--", "echo", "first", ":::", "a", "b") == 0
    assert each("--slots", 1, "--logs", logs, "--", "echo", "second", ":::", "a") == 2
    assert f"{logs} has the logs of an earlier run" in capfd.readouterr().err
    assert (logs / "0-a.out").read_text() == "first a\n"
    assert each("--slots", 1, "--logs", logs, "--overwrite", "--", "echo", "second", ":::", "a") == 0
    assert sorted(path.name for path in logs.iterdir()) == ["0-a.err", "0-a.out", "jobs.jsonl"]
    assert (logs / "0-a.out").read_text() == "second a\n"
    (logs / "jobs.jsonl").unlink()
    assert each("--slots", 1, "--logs", logs, "--", "echo", ":::", "a") == 2
    assert not (logs / "jobs.jsonl").exists()
    assert each("--resume", "--overwrite", "--logs", logs, "--", "echo", ":::", "a") == 2
    assert each("-0", "--logs", logs, "--", "echo", ":::", "a") == 2


def test_two_runs_do_not_share_a_folder(tmp_path: Path):
    process, groups = start_each(tmp_path, "echo $$ > $2; while :; do sleep 0.01; done")
    for option in ("--overwrite", "--resume"):
        with pytest.raises(UsageError, match="another run writes its logs"):
            app(["each", option, "--logs", str(tmp_path / "logs"), "--", "echo", ":::", "a"], standalone_mode=False)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert ended(groups)


COUNTED = """echo x >> "$1/$2-$3"; test -e "$1/fixed" || test "$2" != b"""


def runs_of(folder: Path) -> dict[str, int]:
    return {path.name: len(path.read_text().splitlines()) for path in folder.glob("?-?")}


def test_resume_runs_what_has_not_succeeded(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    logs = tmp_path / "logs"
    words = ["--slots", 2, "--logs", logs, "--", *SHELL, COUNTED, "sh", tmp_path, "{1}", "{2}"]
    inputs = [":::", "a", "b", ":::", "1", "2"]
    assert each(*words, *inputs) == 1
    with (logs / "jobs.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"index": 2, "status": "ok", "inp')  # killed during a write
    (tmp_path / "fixed").touch()
    capfd.readouterr()
    assert each("--json", "--resume", *words, *inputs) == 0
    assert runs_of(tmp_path) == {"a-1": 1, "a-2": 1, "b-1": 2, "b-2": 2}
    summary = json.loads(capfd.readouterr().out)
    assert (summary["succeeded"], summary["resumed"]) == (4, 2)
    assert [result["parts"] for result in summary["results"]] == [["a", "1"], ["a", "2"], ["b", "1"], ["b", "2"]]
    # Everything is done, so it runs nothing.
    assert each("--resume", *words, *inputs) == 0
    assert "4 succeeded (4 of them earlier)" in capfd.readouterr().out
    assert runs_of(tmp_path) == {"a-1": 1, "a-2": 1, "b-1": 2, "b-2": 2}
    lines = (logs / "jobs.jsonl").read_text().splitlines()
    assert [json.loads(line).get("status") for line in lines].count("ok") == 4


def test_resume_wants_the_same_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert each("--resume", "--logs", tmp_path, "--slots", 1, "--", "echo", ":::", "a", "b") == 0  # nothing to resume
    for words, says in (
        (["echo", "-n", ":::", "a", "b"], "belongs to another command"),
        (["echo", ":::", "a", "c"], "belongs to other inputs"),
        (["echo", ":::", "a", "b", "c"], "belongs to other inputs"),
    ):
        assert each("--resume", "--logs", tmp_path, "--slots", 1, "--", *words) == 2
        assert says in capfd.readouterr().err
    header = (tmp_path / "jobs.jsonl").read_text().splitlines()[0]
    for log in ("[]", "[" * 100_000, f'{header}\n{{"index": Infinity, "input": ["a"], "status": "ok"}}'):
        (tmp_path / "jobs.jsonl").write_text(f"{log}\n")
        assert each("--resume", "--logs", tmp_path, "--slots", 1, "--", "echo", ":::", "a", "b") == 1
        assert "is not a job log of headrace each" in capfd.readouterr().err
        (tmp_path / "jobs.jsonl").write_text(log + '\n{"stdout": "a\\u0000.out", "stderr": "b.err"}\n')
        assert each("--overwrite", "--logs", tmp_path, "--slots", 1, "--", "echo", ":::", "a", "b") == 0


FULL = """
mount -t tmpfs -o size=64k tmpfs "$1" || exit 77
shift
"$@"
"""


def test_a_full_disk_is_named(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    words = [sys.executable, "-m", "headrace", "each", "--slots", "1", "--logs", str(disk / "logs"), "--"]
    words += ["dd", "if=/dev/zero", "bs=4096", "count=64", ":::", "status=none"]
    done = subprocess.run(
        ["unshare", "-m", *SHELL, FULL, "sh", str(disk), *words], capture_output=True, text=True, check=False
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs the right to mount a file system")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr or f"the disk of {disk / 'logs'} is full" in done.stderr


def test_a_full_disk_fails_what_it_may_have_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "disk_is_full", lambda _path: True)
    outcome = only(run_shell("exit 0", ["a"], tmp_path))
    assert outcome.describe() == f"failed: the disk of {tmp_path} is full, so its logs may be truncated"
