"""The part of `headrace run` that searches by meaning: glosses as vectors of a small model, and `topk` over them."""

import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

import headrace
from headrace import DataError, Device, Error, outputs, tables
from headrace.cli import show

MODEL = "wordllama"
HINT = "For a search by meaning beside it: pip install 'headrace[semantic]'"
_QUESTIONS = (
    "a musical instrument with strings played with a bow",
    "someone whose job is to repair shoes",
    "stars that can be seen in the sky at night",
    "the fruit of a wild cherry",
)
_BEST = 2  # glosses shown per question
_REPEATS = 20  # repetitions of a question whose time is shown
_BATCH = 4096  # glosses that are embedded between two moves of the progress bar
_ROUNDING = 2e-3  # of scores: rows are kept in half precision

Vectors = NDArray[np.float16]


def is_installed() -> bool:
    """Whether the model's package is there."""
    return find_spec(MODEL) is not None


def _model() -> Any:  # noqa: ANN401 - has no types
    import wordllama  # noqa: PLC0415 - optional, and takes long to load

    # Its files lie in the package. As the folder of downloads, all of them are found there, and none is downloaded.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors of length 1; one of zeros, for a text without known words, stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _kept(path: Path, count: int) -> Vectors | None:
    try:
        found: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    whole = found.ndim == 2 and len(found) == count and found.dtype == np.float16  # noqa: PLR2004 - rows and columns
    return found if whole else None


def embedded(texts: list[str], folder: Path, digest: str, console: Console) -> tuple[Vectors, Any]:
    """A vector for each text, from the cache folder if intact, else computed and kept; and the model."""
    path = folder / f"wordnet-{digest}-{MODEL}-{version(MODEL)}.npy"
    model = _model()
    vectors = _kept(path, len(texts))
    if vectors is not None:
        console.print(Text(f"Vectors of the glosses: from {path}"))
        return vectors, model
    began = time.monotonic()
    parts = []
    with show.progress_bar("Embedding glosses") as bar:
        for first in range(0, len(texts), _BATCH):
            parts.append(_unit(model.embed(texts[first : first + _BATCH])).astype(np.float16))
            bar(first / len(texts))
    vectors = np.concatenate(parts)
    said = f"{len(vectors):,} vectors of {vectors.shape[1]} numbers, computed in {time.monotonic() - began:.0f} s"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with outputs.writing(path, vectors.nbytes) as file:
            np.save(file, vectors)
    except (Error, OSError) as error:
        said += f". They cannot be kept for the next run: {error}"
    else:
        said += f"; kept in {path}"
    console.print(Text(said))
    return vectors, model


def search(device: Device, texts: list[str], folder: Path, digest: str, console: Console) -> None:
    """Asks for the glosses nearest to some sentences, compares them with NumPy's, and shows them with their times.

    Raises:
        DataError: naming the first question whose answer is not the nearest.
    """
    console.print(Text("\nThe same glosses by meaning, each as a vector (topk):", "bold"))
    vectors, model = embedded(texts, folder, digest, console)
    asked = _unit(model.embed(list(_QUESTIONS)))
    operator = headrace.operators.topk(vectors, k=_BEST)
    with headrace.Engine(device, operator) as engine, engine.connect() as client:
        for question, vector in zip(_QUESTIONS, asked, strict=True):
            took = []
            for _ in range(_REPEATS):
                began = time.perf_counter()
                answer = client.ask(vector)
                took.append(time.perf_counter() - began)
            rows = [int(row) for row in np.ravel(answer["rows"])]
            _require_nearest(question, vectors, vector, rows)
            spent = tables.latency(sorted(took)[_REPEATS // 2])
            console.print(Text("\n  ").append(question, "bold").append(f"   {spent}"))
            for row in rows:
                shown = Text(f"    {texts[row]}")
                shown.truncate(console.width, overflow="ellipsis")
                console.print(shown)


def _require_nearest(question: str, vectors: Vectors, vector: NDArray[np.float32], rows: list[int]) -> None:
    scores = vectors.astype(np.float32) @ vector
    best = np.sort(scores)[::-1][: len(rows)]
    if np.any(np.abs(scores[rows] - best) > _ROUNDING):
        raise DataError(f"wrong answer to '{question}': glosses {rows} are not the nearest")
