"""The command line as a process: where it prints what, and its exit status."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from headrace import Index, _core, results
from headrace.cli import app


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200", **environment},
    )


def assert_one_error_line(result: subprocess.CompletedProcess[str], says: str) -> None:
    assert result.stderr.startswith("headrace: error: ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    assert result.stdout == ""


def test_version():
    result = run("--version")
    assert result.returncode == 0
    first, *others = result.stdout.splitlines()
    assert first == f"headrace {version('headrace')}"
    assert [line.split()[0] for line in others] == ["commit", "CUDA", "CPU"]
    assert all(len(line.split()) > 1 for line in others)
    commit, cuda, processor = others
    assert re.fullmatch(r"commit ([0-9a-f]{7,}(-dirty)?|unknown: .*)", commit)
    assert cuda.startswith("CUDA none: ") or ", driver " in cuda
    assert re.search(r", \d+ cores; built for [\w-]+$", processor)  # the value of -march


def test_the_commit_is_that_of_headrace_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is not the commit of a repository that contains an environment with Headrace."""
    package = tmp_path / "environment" / "headrace"
    package.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (package / "results.py").write_text("", encoding="utf-8")
    (tmp_path / "thesis.tex").write_text("", encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "thesis.tex"], ["commit", "--quiet", "--message", "a thesis"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(results, "__file__", str(package / "results.py"))
    monkeypatch.setattr(_core, "__file__", str(package / "_core.so"))
    monkeypatch.delenv("HEADRACE_COMMIT", raising=False)
    assert results.commit() is None
    monkeypatch.setenv("HEADRACE_COMMIT", "abcdef1")
    assert results.commit() == "abcdef1"
    (package / "_build.json").write_text('{"commit": "1234567", "processor": "x86-64-v3"}', encoding="utf-8")
    assert results.commit() == "1234567"
    assert results.built()["processor"] == "x86-64-v3"
    subprocess.run([*git, "add", "environment/headrace/results.py"], check=True)
    assert (
        results.commit()
        == subprocess.run(
            [*git, "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    assert str(results.commit()).endswith("-dirty")


def test_verbs_start_without_what_is_slow_to_import():
    slow = ["duckdb", "h5py", "headrace.fetch", "matplotlib", "mpi4py", "pandas", "PIL", "pyarrow"]
    code = f"import sys; from headrace.cli import app; print([name for name in {slow} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize(("words", "modules"), [(["devices", "--json"], ["devices"]), (["--version"], ["version"])])
def test_a_verb_starts_without_the_others(words: list[str], modules: list[str]):
    code = f"import sys; from headrace import cli; sys.argv[1:] = {words}; cli.main(); print(list(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'headrace\.cli\.(\w+)'", result.stdout))
    verbs = {*(one.name for one in app.registered_commands), *(one.name for one in app.registered_groups), "version"}
    assert loaded & verbs == set(modules)


def test_devices_table():
    result = run("devices")
    assert result.returncode == 0, result.stderr
    assert "cpu:0" in result.stdout


def test_devices_json():
    result = run("devices", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    cpu = next(device for device in answer["devices"] if device["name"] == "cpu:0")
    assert cpu["kind"] == "cpu"
    assert cpu["multiprocessor_count"] >= 1
    assert isinstance(answer["cuda_absence"], str)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "nonsense"),
        (["--nonsense"], "--nonsense"),
        (["devices", "--nonsense"], "--nonsense"),
        (["devices", "extra"], "extra"),
    ],
)
def test_usage_errors(arguments: list[str], says: str):
    result = run(*arguments)
    assert result.returncode == 2
    assert_one_error_line(result, says)


def test_a_bad_environment_is_a_usage_error():
    result = run("devices", HEADRACE_DEVICES="toaster")
    assert result.returncode == 2
    assert_one_error_line(result, "toaster")


def test_a_traceback_can_be_asked_for():
    result = run("devices", HEADRACE_DEVICES="toaster", HEADRACE_TRACEBACK="1")
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_nothing_asked_is_a_usage_error():
    result = run()
    assert result.returncode == 2
    assert_one_error_line(result, "--help")


def test_a_closed_pipe_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "headrace", "devices", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert result.returncode == 1
    assert result.stderr == ""


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)], ids=str)
def test_a_closed_standard_output_is_an_error_and_gets_no_file(closed: tuple[int, ...], tmp_path: Path):
    """The next opened file gets the number of a closed standard stream."""
    corpus, index = tmp_path / "corpus.txt", tmp_path / "a.hridx"
    corpus.write_text("an apple\n")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "index", "build", str(corpus), str(index)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: [os.close(number) for number in closed],
    )
    assert done.returncode == 1
    assert done.stderr == ("" if 2 in closed else "headrace: error: writing standard output: Bad file descriptor\n")
    assert Index.load(index).query("apple", device="cpu").hits == 1


def test_a_full_standard_output_is_one_error():
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "headrace", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )
    said = "headrace: error: writing standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


INTERRUPTING = """
import atexit, os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["WHEN"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
if os.environ["WHEN"] == "exit":
    atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
"""


@pytest.mark.parametrize("when", ["headrace._core", "numpy", "typer", "headrace.cli.taxi", "exit"])
@pytest.mark.parametrize(
    "program", [["-m", "headrace"], [str(Path(sys.executable).with_name("headrace"))]], ids=["m", "script"]
)
def test_ctrl_c_while_it_is_loaded_or_ends_is_no_traceback(program: list[str], when: str, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING, encoding="utf-8")
    if program[0] != "-m" and not Path(program[0]).exists():
        pytest.skip("the package is not installed in this environment")
    result = subprocess.run(
        [sys.executable, *program, *(["taxi", "--help"] if "taxi" in when else ["--version"])],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "WHEN": when},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (result.returncode, result.stderr) == (-signal.SIGINT, "")
    assert (when == "exit") == result.stdout.startswith("headrace ")


def test_a_program_that_imports_the_package_keeps_its_signals():
    program = "import signal, headrace; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (result.stdout, result.stderr) == ("True\n", "")


def test_every_verb_has_an_example():
    verbs = [command.name for command in app.registered_commands]
    assert verbs
    for verb in verbs:
        assert verb is not None
        result = run(verb, "--help")
        assert result.returncode == 0
        assert f"Example: headrace {verb}" in result.stdout


def test_help_shows_the_names_of_options_whole_on_a_narrow_terminal():
    for verb in ("serve", "load", "roof"):
        shown = run(verb, "--help", COLUMNS="80").stdout
        assert "--" in shown
        assert not re.findall(r"--[\w-]*…", shown)
    assert not re.findall(r"--[\w-]*…", run("help", "serve", COLUMNS="80").stdout)


def test_help_lists_commands_that_do_work_apart_from_those_that_measure():
    shown = run("--help", COLUMNS="80").stdout
    work, measure = shown.split("─ Work ─")[1].split("─ Measure and report ─")
    for verb in ("run", "query", "fetch", "each", "serve", "advise", "devices", "doctor", "index", "ingest", "grid"):
        assert f"\n│ {verb} " in work
    for verb in ("ladder", "load", "soak", "roof", "link", "oversubscribe", "taxi", "results"):
        assert f"\n│ {verb} " in measure
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("words", "at", "completed"), [("headrace gr", 1, ["grid"]), ("headrace grid fd", 2, ["fdtd"])]
)
def test_bash_completes_verbs(words: str, at: int, completed: list[str]):
    result = run(_HEADRACE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(at))
    assert result.stdout.split() == completed
