"""The part of `headrace run` that searches by meaning, with a model of this file's in place of the package."""

import io
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from rich.console import Console

from headrace import DataError, Device
from headrace.cli import run_semantic

TEXTS = [
    "stringed instruments that are played with a bow",
    "a person who repairs shoes",
    "lighted only by stars at night in the sky",
    "the fruit of the wild cherry tree",
    "a vehicle on rails",
    "",
]
COLUMNS = 64


class Model:
    """Counts words: texts with words in common are near to each other."""

    made = 0

    def embed(self, texts: list[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), COLUMNS), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, zlib.crc32(word.encode()) % COLUMNS] += 1
        Model.made += len(texts)
        return vectors


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> type[Model]:
    package = ModuleType(run_semantic.MODEL)
    package.__file__ = str(Path(__file__))
    package.WordLlama = type("WordLlama", (), {"load": staticmethod(lambda **_: Model())})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, run_semantic.MODEL, package)
    monkeypatch.setattr(run_semantic, "version", lambda _: "0")
    Model.made = 0
    return Model


def searched(folder: Path) -> str:
    console = Console(file=io.StringIO(), width=80)
    run_semantic.search(Device.parse("cpu"), TEXTS, folder, "digest", console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_it_shows_the_nearest_text_first_and_keeps_the_vectors(model: type[Model], tmp_path: Path):
    shown = searched(tmp_path / "new")
    lines = [line.strip() for line in shown.splitlines()]
    for question, text in zip(run_semantic._QUESTIONS, TEXTS, strict=False):
        (at,) = (number for number, line in enumerate(lines) if line.startswith(question))
        assert lines[at + 1] == text
    (kept,) = (tmp_path / "new").iterdir()
    assert f"6 vectors of {COLUMNS} numbers" in shown
    assert model.made == len(TEXTS) + len(run_semantic._QUESTIONS)
    assert f"from {kept}" in searched(tmp_path / "new").replace("\n", "")
    assert model.made == len(TEXTS) + 2 * len(run_semantic._QUESTIONS)


@pytest.mark.parametrize("damage", ["shorter", "no array", "other rows"])
def test_damaged_vectors_are_computed_again(model: type[Model], tmp_path: Path, damage: str):
    searched(tmp_path)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    if damage == "other rows":
        np.save(kept, np.zeros((2, COLUMNS), np.float16))
    else:
        kept.write_bytes(whole[:-8] if damage == "shorter" else b"nothing")
    assert "computed in" in searched(tmp_path)
    assert kept.read_bytes() == whole
    assert model.made > 2 * len(TEXTS)


def test_a_folder_that_cannot_be_written_is_said(model: type[Model]):
    assert "cannot be kept" in searched(Path("/proc/no-cache"))
    assert model.made > 0


def test_an_answer_that_is_not_the_nearest_is_an_error():
    vectors = np.eye(4, dtype=np.float16)
    run_semantic._require_nearest("one", vectors, np.float32([0, 1, 0.5, 0]), [1, 2])
    with pytest.raises(DataError, match="wrong answer to 'one'"):
        run_semantic._require_nearest("one", vectors, np.float32([0, 1, 0.5, 0]), [1, 3])
