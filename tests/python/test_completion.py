"""Shells complete commands and options, and the manual page matches the command line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(sys.executable).parent  # folder of the command `headrace`


def bash(home: Path, script: str, *options: str, **environment: str) -> str:
    return in_shell("bash", home, "--norc", *options, "-c", script, **environment)


def in_shell(shell: str, home: Path, *arguments: str, **environment: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    assert (FOLDER / "headrace").exists()
    path = f"{FOLDER}:{os.environ['PATH']}"
    done = subprocess.run(
        [program, *arguments],
        env={**os.environ, "HOME": str(home), "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("headrace lad", {"ladder"}),
        ("headrace ingest t", {"tcp"}),
        ("headrace ladder --oper", {"--operator"}),
        ("headrace in", {"index", "ingest"}),
        ("headrace nonsen", set()),
    ],
)
def test_bash_completes(tmp_path: Path, words: str, offered: set[str]):
    (tmp_path / "headrace.sh").write_text(
        bash(tmp_path, "headrace", _HEADRACE_COMPLETE="source_bash"), encoding="utf-8"
    )
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; _headrace_completion headrace"
    script = f'source ~/headrace.sh; complete -p headrace; {ask}; echo "${{COMPREPLY[*]}}"'
    registered, *answer = bash(tmp_path, script).split("\n")
    assert registered == "complete -o default -F _headrace_completion headrace"
    assert set(" ".join(answer).split()) == offered


def test_bash_has_completion_once_it_is_installed(tmp_path: Path):
    assert bash(tmp_path, "headrace --install-completion; true").startswith("bash completion installed in")
    assert "headrace" in bash(tmp_path, "source ~/.bashrc; complete -p headrace")


def test_the_script_for_the_current_shell_is_shown(tmp_path: Path):
    shown = bash(tmp_path, "headrace --show-completion; true")
    assert shown.strip() == bash(tmp_path, "headrace", _HEADRACE_COMPLETE="source_bash").strip()


def test_zsh_completes(tmp_path: Path):
    """Replaces the zsh function that displays completions by one that prints them."""
    (tmp_path / "headrace.zsh").write_text(
        in_shell("zsh", tmp_path, "-f", "-c", "headrace", _HEADRACE_COMPLETE="source_zsh"), encoding="utf-8"
    )
    script = (
        'compdef() { print -r -- "$@" }; _arguments() { print -r -- "$@" }; source ~/headrace.zsh; '
        "words=(headrace ladder --oper); CURRENT=3; _headrace_completion"
    )
    registered, offers = in_shell("zsh", tmp_path, "-f", "-c", script).strip().split("\n")
    assert registered == "_headrace_completion headrace"
    assert "--operator" in offers


def test_fish_completes(tmp_path: Path):
    (tmp_path / "headrace.fish").write_text(
        in_shell("fish", tmp_path, "-c", "headrace", _HEADRACE_COMPLETE="source_fish"), encoding="utf-8"
    )
    answer = in_shell("fish", tmp_path, "-c", 'source ~/headrace.fish; complete -C "headrace ladder --oper"')
    assert answer.startswith("--operator")


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"_HEADRACE_COMPLETE": "complete_zsh"}, '"--operator"'),
        ({"_HEADRACE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "--operator"),
    ],
)
def test_what_zsh_and_fish_are_told(tmp_path: Path, environment: dict[str, str], says: str):
    """Works also where these shells are not installed."""
    told = bash(tmp_path, "headrace", _TYPER_COMPLETE_ARGS="headrace ladder --oper", **environment)
    assert says in told
    assert "--json" not in told


def test_the_manual_page_is_current(tmp_path: Path):
    subprocess.run([sys.executable, ROOT / "scripts/man_page.py", tmp_path / "headrace.1"], check=True)
    fresh = (tmp_path / "headrace.1").read_text(encoding="utf-8")
    there = (ROOT / "man/headrace.1").read_text(encoding="utf-8")
    assert fresh == there, "a command has changed: run scripts/man_page.py and commit"


def test_the_manual_page_is_read_without_a_warning():
    if shutil.which("man") is None:
        pytest.skip("there is no man here")
    done = subprocess.run(
        ["man", "--warnings", "--local-file", "-Tutf8", ROOT / "man/headrace.1"],
        env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": "1", "GROFF_NO_SGR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    text = " ".join(re.sub(r".\x08", "", done.stdout).split())  # bold is a letter printed over itself
    assert "headrace index build [OPTIONS]" in text
    assert "--operator" in text
    assert "grid fdtd examples/radar.toml" in text
