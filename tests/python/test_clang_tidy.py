"""clang_tidy.py and compile_alone.py check a file again if anything that affects its findings has changed.

The first checks files that a build joins together, the second checks each alone.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
# A fake clang-tidy that reports the lines containing "wrong".
TIDY = """#!/bin/sh
[ "$1" != --version ] || { echo "version 1"; exit; }
for file; do :; done
echo "$file" >> checked
! grep -n wrong "$file" > found.$$ || { sed "s|^\\([0-9]*\\):.*|$file:\\1:1: error: wrong|" found.$$; exit 1; }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with two files, one of which includes a header that includes another."""
    root = tmp_path / "repository"
    for folder in ("src", "include/a", "build"):
        (root / folder).mkdir(parents=True)
    (root / "src/one.cpp").write_text('#include "a/first.hpp"\n')
    (root / "src/two.cpp").write_text("#include <vector>\n")
    (root / "include/a/first.hpp").write_text("#  include <a/second.hpp>\n")
    (root / "include/a/second.hpp").write_text("int second;\n")
    (root / ".clang-tidy").write_text("Checks: '*'\n")
    (root / "tidy").write_text(TIDY)
    (root / "tidy").chmod(0o755)
    commands(root, "-O1")
    return root


def commands(root: Path, flag: str) -> None:
    """Writes the build's compile commands."""
    entries = [
        {"directory": str(root), "file": str(root / "src" / name), "command": f"g++ -I{root}/include {flag} -c {name}"}
        for name in ("one.cpp", "two.cpp")
    ]
    (root / "build/compile_commands.json").write_text(json.dumps(entries))


def check(root: Path, environment: str = "libraries 1") -> tuple[int, list[str], str]:
    """The script's exit status, the files it checked, and its output."""
    (root / "checked").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, SCRIPTS / "clang_tidy.py", "./tidy", "build", environment, "src"],
        cwd=root,
        env={**os.environ, "XDG_CACHE_HOME": str(root / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    checked = (root / "checked").read_text().split() if (root / "checked").exists() else []
    return done.returncode, sorted(Path(name).name for name in checked), done.stdout


def test_what_passed_is_not_checked_again(tree: Path):
    assert check(tree) == (0, ["one.cpp", "two.cpp"], "2 of 2 files checked, 0 with findings\n")
    assert check(tree) == (0, [], "0 of 2 files checked, 0 with findings\n")


@pytest.mark.parametrize(
    ("changed", "checked"),
    [
        ("src/two.cpp", ["two.cpp"]),
        ("include/a/first.hpp", ["one.cpp"]),
        ("include/a/second.hpp", ["one.cpp"]),
        (".clang-tidy", ["one.cpp", "two.cpp"]),
    ],
)
def test_what_a_change_may_reach_is_checked_again(tree: Path, changed: str, checked: list[str]):
    check(tree)
    before = (tree / changed).read_text()
    (tree / changed).write_text(before + "// more\n")
    assert check(tree)[:2] == (0, checked)
    (tree / changed).write_text(before)
    assert check(tree)[:2] == (0, [])


def test_other_commands_libraries_and_versions_are_checked_again(tree: Path):
    check(tree)
    commands(tree, "-O2")
    assert check(tree)[1] == ["one.cpp", "two.cpp"]
    assert check(tree, "libraries 2")[1] == ["one.cpp", "two.cpp"]
    (tree / "tidy").write_text(TIDY.replace("version 1", "version 2"))
    assert check(tree, "libraries 2")[1] == ["one.cpp", "two.cpp"]


def test_a_tool_that_ends_without_a_word_has_not_passed_a_file(tree: Path):
    (tree / "tidy").write_text(TIDY.replace("for file; do :; done", "exit 139"))
    for _ in range(2):
        status, _, said = check(tree)
        assert status == 1
        assert f"{tree}/src/one.cpp: clang-tidy ended with status 139\n" in said


def test_findings_are_printed_each_time(tree: Path):
    (tree / "src/two.cpp").write_text("int wrong;\n")
    for checked in (["one.cpp", "two.cpp"], ["two.cpp"]):
        status, files, said = check(tree)
        assert (status, files) == (1, checked)
        assert f"{tree}/src/two.cpp:1:1: error: wrong\n" in said


def test_another_checkout_shares_what_passed(tree: Path, tmp_path: Path):
    check(tree)
    other = tmp_path / "other"
    tree.rename(other)
    commands(other, "-O1")
    assert check(other)[:2] == (0, [])


def test_no_file_is_a_failure(tree: Path):
    (tree / "build/compile_commands.json").write_text("[]")
    assert check(tree) == (1, [], "0 of 0 files checked, 0 with findings\n")


@pytest.fixture
def joined(tree: Path) -> Path:
    """The same repository with a build that compiles both files as one."""
    unit = tree / "build/Unity/unity_src_0_cxx.cxx"
    unit.parent.mkdir()
    unit.write_text(f'/* made */\n#include "{tree}/src/one.cpp"\n\n#include "{tree}/src/two.cpp"\n')
    command = f"/usr/bin/ccache g++ -I{tree}/include -o one.o -c {unit}"
    (tree / "build/compile_commands.json").write_text(
        json.dumps([{"directory": str(tree), "file": str(unit), "command": command}])
    )
    return tree


def test_files_that_are_compiled_as_one_are_checked_as_one(joined: Path):
    assert check(joined) == (0, ["src_0.cpp"], "2 of 2 files checked, 0 with findings\n")
    assert check(joined) == (0, [], "0 of 2 files checked, 0 with findings\n")
    (joined / "include/a/second.hpp").write_text("int other;\n")
    assert check(joined)[:2] == (0, ["src_0.cpp"])


def test_findings_in_joined_files_name_the_files_that_were_written(joined: Path):
    (joined / "src/one.cpp").write_text("int right;\nint wrong;\n")
    (joined / "src/two.cpp").write_text("\n\nint wrong;\n")
    status, files, said = check(joined)
    assert (status, files) == (1, ["src_0.cpp"])
    assert said.startswith(f"{joined}/src/one.cpp:2:1: error: wrong\n{joined}/src/two.cpp:3:1: error: wrong\n")


def alone(root: Path) -> tuple[int, str]:
    """The exit status of compile_alone.py, and its output."""
    done = subprocess.run(
        [sys.executable, SCRIPTS / "compile_alone.py", "build", "libraries 1", "src"],
        cwd=root,
        env={**os.environ, "XDG_CACHE_HOME": str(root / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_file_that_leans_on_what_its_neighbour_includes_is_found(joined: Path):
    assert alone(joined) == (0, "1 of 1 files checked, 0 with findings\n"), "the first has no neighbour before it"
    assert alone(joined) == (0, "0 of 1 files checked, 0 with findings\n")
    (joined / "src/one.cpp").write_text("#include <vector>\n")
    (joined / "src/two.cpp").write_text("std::vector<int> numbers;\n")
    for _ in range(2):
        status, said = alone(joined)
        assert status == 1
        assert f"{joined}/src/two.cpp:1" in said
        assert "one.cpp" not in said
