"""`headrace run`: the main job, on real input."""

import hashlib
import os
import time
from pathlib import Path

import typer
from rich.console import Console

import headrace
from headrace import DataError, Device, Index, LadderResult, RetrievalSampler, tables
from headrace.cli import options, show
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.corpus import WORDNET, build_index, locate, read_text
from headrace.profiles import profile

_CHECKED = 300
_NO_DOCUMENT = 0xFFFFFFFF
_WINDOW = 0.05
_TOLERANCE = 0.005  # p99 known to within ranks 98.5% and 99.5%: a third of a minute for the ladder, not two
_RUNGS = [1, 6, 8, 11, 14]  # where the most changes; "headrace ladder" climbs all


def cache_folder() -> Path:
    """Where built indexes are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace"


def _digest(folder: Path) -> str:
    digest = hashlib.sha256(headrace.__version__.encode())
    for path in sorted(folder.glob("data.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def wordnet_index(folder: Path, console: Console) -> Index:
    """The index of a WordNet folder: from the cache where it is whole, else built and kept there."""
    kept = cache_folder() / f"wordnet-{_digest(folder)}.hridx"
    if kept.exists():
        try:
            index = Index.load(kept)
        except DataError as error:
            console.print(f"{error}: building it anew", markup=False, soft_wrap=True)
        else:
            console.print(
                f"Index of {index.document_count:,} WordNet glosses, from {kept}", markup=False, soft_wrap=True
            )
            return index
    began = time.monotonic()
    with show.progress_bar("Indexing WordNet") as bar:
        index = build_index(folder, progress=bar)
    kept.parent.mkdir(parents=True, exist_ok=True)
    index.save(kept)
    console.print(
        f"Index of {index.document_count:,} WordNet glosses, {index.term_count:,} terms, built in "
        f"{time.monotonic() - began:.1f} s: {kept}",
        markup=False,
        soft_wrap=True,
    )
    return index


def check_answers(device: Device, index: Index, folder: Path, console: Console) -> None:
    """Asks an engine, and compares with what looking at every document gives.

    Raises:
        DataError: naming the first query whose answer differs.
    """
    sampler = RetrievalSampler(index)
    texts = [sampler.text(number) for number in range(_CHECKED)]
    reference = headrace.BruteForce(read_text(folder))
    operator = headrace.retrieval(index, sample=False)
    with headrace.Engine(device, operator) as engine, engine.connect() as client:
        answers, status = client.ask_many(index.compile_many(texts))
    with show.progress_bar("Checking answers") as bar:
        for number, (text, answer) in enumerate(zip(texts, headrace.typed_answers(operator, answers), strict=True)):
            right = reference.answer(text)
            ids = [int(identity) for identity in answer["ids"] if identity != _NO_DOCUMENT]
            if status[number] != 0 or (int(answer["hits"]), ids) != (right.hits, right.ids):
                raise DataError(f"wrong answer to '{text}': {answer['hits']} hits {ids}, not {right}")
            bar(number / _CHECKED)
    console.print(f"{_CHECKED} random queries: every answer is that of the brute-force reference")


def _summary(result: LadderResult, bound: float) -> str:
    loads = [(rung, rung.load) for rung in result.rungs if rung.load is not None]
    if not loads:
        return f"No rung kept p99 within {tables.latency(bound)}: is something else using this machine? Try --bound 5ms"
    best, load = max(loads, key=lambda pair: pair[1].measured_per_second)
    return (
        f"Best: rung {best.rung.number} ({best.rung.id}), {tables.rate(load.measured_per_second)} queries/s at p99 "
        f"{tables.latency(load.latency.p99)}, {load.measured_per_second / result.roofs.lowest:.0%} of the "
        f"{result.roofs.lowest_name} roof"
    )


def run(device: options.DeviceOption = "best", bound: options.BoundOption = "0.5ms") -> None:  # type: ignore[assignment]
    """Do the main job: index WordNet, serve queries drawn from it, check answers, climb five rungs of the ladder.

    Example: headrace run
    """
    console = show.stdout()
    chosen = options.find_device(device)
    folder = locate(str(WORDNET))
    console.print(f"Device {chosen.name}: {chosen.properties.name}", markup=False)
    index = wordnet_index(folder, console)
    check_answers(chosen, index, folder, console)
    with show.live_ladder() as live:
        result = headrace.ladder(
            chosen,
            headrace.retrieval(index),
            bound=bound,
            rungs=_RUNGS,
            window=_WINDOW,
            rank_tolerance=_TOLERANCE,
            progress=live.progress,
            finished=live.finished,
        )
    title = f"retrieval on {chosen.name}: p99 within {tables.latency(bound)}, Poisson arrivals"
    show.print_ladder(console, title, profile([result]), result.roofs)
    console.print(f"\n{_summary(result, bound)}", markup=False)
    if result.interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
