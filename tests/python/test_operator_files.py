"""Operators in files and folders given on the command line."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from operator_files import DOUBLE, operator_folder

import headrace
from headrace import UsageError
from headrace.operators import files
from headrace.operators.files import find_operators, load_operator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return operator_folder(tmp_path)


def test_a_folder_gives_the_operators_of_all_its_files(folder: Path):
    assert list(find_operators(str(folder))) == ["double", "by_three", "negate"]


def test_private_operators_need_no_name_to_be_told_from(tmp_path: Path):
    file = tmp_path / "one.py"
    file.write_text(
        "import headrace\n_small = headrace.light(query_bytes=64)\nlarge = headrace.light(query_bytes=128)\n"
    )
    assert load_operator(str(file)).query_bytes == 128
    assert load_operator(f"{file}:_small").query_bytes == 64


def test_files_and_folders_without_operators_are_refused(folder: Path):
    for text, says in (
        ("import sys\nsys.exit(0)\n", "fails.py:2 ended the program"),
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


def test_a_file_is_loaded_again_as_it_is_even_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Python identifies cached byte code by second and size, which two versions may share."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "twice.py"
    text = (
        "import headrace\n@headrace.operator(query='i8', answer='i8')\ndef twice(_g, query, answer):\n"
        "    answer[0] = 2 * query[0]\n"
    )
    for version in ("2", "3"):
        path.write_text(text.replace("2", version))
        os.utime(path, (1_000_000_000, 1_000_000_000))
        if version == "2":
            found = files.locate_operators(str(path))["twice"]
            assert found.at == str(path)
            operator = found.operator
        else:
            operator = files.load_again(found.at, "twice")
        with headrace.Engine("cpu", operator) as engine:
            answer = engine.connect().ask(np.array([5], np.int64))
        assert answer == 5 * int(version)
    path.write_text(text.replace("twice", "thrice"))
    with pytest.raises(UsageError, match="no operator twice any more: it has thrice"):
        files.load_again(str(path), "twice")
