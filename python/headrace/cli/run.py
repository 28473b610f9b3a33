"""`headrace run`: a demonstration on real input for a user who has just built Headrace."""

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

import headrace
from headrace import DataError, Device, Error, Index, Operator, _core, tables
from headrace.cli import options, run_compare, run_semantic, show
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.cli.run_next import next_steps
from headrace.corpus import WORDNET, build_index, locate, read_text
from headrace.operators import RetrievalSampler

_CHECKED = 300
_NO_DOCUMENT = 0xFFFFFFFF
_SHOWN = 2  # documents shown per query
_REPEATS = 50  # repetitions of a query whose time is shown
_QUESTIONS = (
    "apple AND NOT pie",
    "(river OR stream) AND mill AND water",
    "violin AND bow",
    "whale AND (baleen OR blubber)",
    "moon AND NOT (earth OR month)",
)


@dataclass(frozen=True)
class Corpus:
    """The corpus that is queried, and the place of its index."""

    texts: list[str]
    index: Index
    file: Path | None


def cache_folder() -> Path:
    """Folder of built indexes."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace"


def _digest(folder: Path, *others: Path) -> str:
    """Digest of what determines an index: the corpus, and the library that splits it into words."""
    digest = hashlib.sha256()
    for path in [*others, *sorted(folder.glob("data.*"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _say(console: Console, text: str = "", style: str = "") -> None:
    """Prints a paragraph, wrapped at the width of the terminal."""
    console.print(Text(text, style=style))


def _kept(path: Path, console: Console) -> Index | None:
    if not path.exists():
        return None
    try:
        return Index.load(path)
    except Error as error:
        _say(console, f"{error}: rebuilding it")
        return None


def wordnet_index(folder: Path, console: Console) -> tuple[Index, Path | None]:
    """The index of a WordNet folder, and its path: from the cache if intact, else newly built."""
    path = cache_folder() / f"wordnet-{_digest(folder, Path(_core.__file__))}.hridx"
    index = _kept(path, console)
    if index is not None:
        _say(console, f"Index of WordNet's {index.document_count:,} glosses: from {path}")
        return index, path
    began = time.monotonic()
    _say(console, f"Building an index of WordNet's glosses ({folder}), which takes a few seconds ...")
    with show.progress_bar("Indexing WordNet") as bar:
        index = build_index(folder, progress=bar)
    took = (
        f"{index.document_count:,} glosses with {index.term_count:,} words, built in {time.monotonic() - began:.1f} s"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for older in path.parent.glob("wordnet-*.hridx"):  # indexes of another library or of another WordNet
            older.unlink(missing_ok=True)
        index.save(path)
    except (Error, OSError) as error:
        _say(console, f"{took}. It cannot be kept for the next run: {error}")
        return index, None
    _say(console, f"{took}; kept in {path}")
    return index, path


def _ids(answer: Any) -> list[int]:  # noqa: ANN401 - a record of NumPy
    return [int(identity) for identity in answer["ids"] if identity != _NO_DOCUMENT]


def ask(device: Device, operator: Operator, corpus: Corpus, console: Console) -> None:
    """Runs some queries one by one, and shows each with its answers and its time."""
    _say(console, f"\nSome queries on {corpus.index.document_count:,} glosses, one at a time:", "bold")
    with headrace.Engine(device, operator) as engine, engine.connect() as client:
        for question in _QUESTIONS:
            query = corpus.index.compile(question)
            took = []
            for _ in range(_REPEATS):
                began = time.perf_counter()
                answer = client.ask(query)
                took.append(time.perf_counter() - began)
            hits, spent = int(answer["hits"]), tables.latency(sorted(took)[len(took) // 2])
            line = Text("\n  ").append(question, "bold").append(f"   {hits:,} gloss{'es' * (hits != 1)} in {spent}")
            console.print(line)
            for identity in _ids(answer)[:_SHOWN]:
                shown = Text(f"    {corpus.texts[identity]}")
                shown.truncate(console.width, overflow="ellipsis")
                console.print(shown)
            if hits > _SHOWN:
                console.print(Text(f"    ... and {hits - _SHOWN:,} more", "dim"))


def check_answers(device: Device, operator: Operator, corpus: Corpus, console: Console) -> list[str]:
    """Runs random queries, compares the answers with a scan of every document, and returns the queries.

    Raises:
        DataError: naming the first query whose answer differs.
    """
    sampler = RetrievalSampler(corpus.index)
    texts = [sampler.text(number) for number in range(_CHECKED)]
    reference = headrace.operators.BruteForce(corpus.texts)
    with headrace.Engine(device, operator) as engine, engine.connect() as client:
        answers, status = client.ask_many(corpus.index.compile_many(texts))
    with show.progress_bar("Verifying answers") as bar:
        for number, (text, answer) in enumerate(zip(texts, answers, strict=True)):
            right, ids = reference.answer(text), _ids(answer)
            if status[number] != 0 or (int(answer["hits"]), ids) != (right.hits, right.ids):
                raise DataError(f"wrong answer to '{text}': {answer['hits']} hits {ids}, not {right}")
            bar(number / _CHECKED)
    _say(
        console,
        f'\nVerified: the answers to {_CHECKED} random queries such as "{texts[0]}" equal those of a plain search '
        "through every gloss, hit for hit.",
    )
    return texts


def run(
    device: options.DeviceOption = "best",
    bound: options.BoundOption = "0.5ms",  # type: ignore[assignment]
    seconds: Annotated[
        float,
        typer.Option("--time", parser=options.duration, metavar="TIME", help="Target for the total time."),
    ] = "65s",  # type: ignore[assignment]
) -> None:
    """Demonstrate Headrace: index WordNet, answer queries, verify the answers, compare the techniques.

    Example: headrace run
    """
    ends = time.monotonic() + seconds
    console = show.stdout()
    chosen = options.find_device(device)
    folder = locate(str(WORDNET))
    about = f"this takes about {show.minutes(seconds)} and 300 MB of memory"
    _say(console, f"Headrace {headrace.__version__} on {chosen.name} ({chosen.properties.name}); {about}.")
    index, file = wordnet_index(folder, console)
    corpus = Corpus(read_text(folder), index, file)
    operator = headrace.retrieval(index)
    ask(chosen, operator, corpus, console)
    if run_semantic.is_installed():
        began = time.monotonic()
        run_semantic.search(chosen, corpus.texts, cache_folder(), _digest(folder), console)
        ends += time.monotonic() - began
    else:
        _say(console, f"\n{run_semantic.HINT}", "dim")
    texts = check_answers(chosen, operator, corpus, console)
    interrupted = run_compare.compare(chosen, operator, corpus.texts, texts, bound, ends, console)
    _say(console, "\nNext, to paste into this terminal:", "bold")
    for command, why in next_steps(file):
        console.print(Text(f"  {command}", "cyan"), soft_wrap=True)
        console.print(Text(f"      {why}", "dim"))
    if interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
