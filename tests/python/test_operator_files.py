"""Operators that files and folders of the command line have."""

from pathlib import Path

import pytest
from operator_files import DOUBLE, operator_folder

import headrace
from headrace import UsageError
from headrace.operators.files import find_operators


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return operator_folder(tmp_path)


def test_a_folder_gives_the_operators_of_all_its_files(folder: Path):
    assert list(find_operators(str(folder))) == ["double", "by_three", "negate"]


def test_files_and_folders_without_operators_are_refused(folder: Path):
    for text, says in (
        ("import sys\nsys.exit(0)\n", "fails.py:2 ends the program"),
        (DOUBLE, "both have an operator double"),
        (DOUBLE.partition("by_three")[0].replace("double", "_double"), "takes arrays"),
        ("import headrace\nheadrace.light(steps=0)\n", "fails.py"),
    ):
        (folder / "fails.py").write_text(text)
        with pytest.raises(UsageError, match=says):
            find_operators(str(folder))
    for file in folder.glob("*.py"):
        if file.name != "nothing.py":
            file.unlink()
    with pytest.raises(UsageError, match="no operator in"):
        find_operators(str(folder))
    with pytest.raises(UsageError, match="no operator"):
        find_operators(str(folder / "nothing.py"))
    with pytest.raises(headrace.MissingFileError):
        find_operators(str(folder / "none.py"))


def test_a_file_gives_all_its_operators_or_the_one_that_is_named(folder: Path):
    assert list(find_operators(str(folder / "double.py"))) == ["double", "by_three"]
    assert list(find_operators(str(folder / "negate.py"))) == ["negate"]
    assert list(find_operators(f"{folder / 'negate.py'}:double")) == ["double"]
