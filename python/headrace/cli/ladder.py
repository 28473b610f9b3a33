"""`headrace ladder`: the highest rate of each technique under a latency bound."""

from enum import StrEnum
from typing import Annotated

import typer

import headrace
from headrace import Device, Error, Operator, UsageError, climbing, outputs, report, results
from headrace.cli import options, show
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_INTERRUPTED, finish
from headrace.cli.grouped import grouped
from headrace.climbing import Climbs, Settings
from headrace.profiles import Json, profile
from headrace.tables import latency

_BATCH_MOST = 4096
_RUNG_SECONDS = 8.0  # on a quiet machine; a busy one needs more tries
_ROOF_SECONDS = 2.0
_MEMORY_BYTES = 500e6


class Tables(StrEnum):
    """The tables to make."""

    all = "all"
    single = "single"
    both = "both"


def _batch_sizes(text: str) -> list[int]:
    """Parses batch sizes such as "1,2,4"."""
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or not all(1 <= size <= _BATCH_MOST for size in sizes):
        raise UsageError(f"--batches takes sizes from 1 to {_BATCH_MOST}, such as 1,2,4,8, not '{text}'")
    return sorted(set(sizes))


def _climb(device: Device, operator: Operator, settings: Settings, samples: int, *, single: bool) -> Climbs:
    with show.live_ladder() as live:
        return climbing.climb(
            device, operator, settings, samples, single=single, progress=live.progress, finished=live.finished
        )


def _sweep(
    device: Device, operator: Operator, settings: Settings, sizes: list[int], climbs: list[Climbs]
) -> list[Json]:
    plan, generators = climbing.batched_plan(climbs)
    with show.progress_bar("Batch sizes") as bar:
        return climbing.sweep_batches(device, operator, settings, sizes, plan, generators, progress=bar)


def _title(device: Device, operator: Operator, settings: Settings, climbs: Climbs) -> str:
    threads = "one engine thread, one generator" if climbs.single else "all threads"
    often = f"; median of {len(climbs.done)}" if len(climbs.done) > 1 else ""
    return (
        f"{operator.name} on {device.name}, {threads}: p99 within {latency(settings.bound)}, "
        f"{settings.arrivals} arrivals{often}; climbed in {show.minutes(climbs.seconds)}"
    )


def _print(device: Device, operator: Operator, settings: Settings, climbs: list[Climbs], batches: list[Json]) -> None:
    console = show.stdout()
    for number, one in enumerate(climbs):
        if number > 0:
            console.print()
        title = _title(device, operator, settings, one)
        show.print_ladder(console, title, profile(one.done), one.done[-1].roofs)
        show.print_quiet(console, one.watch.stop())
    if batches:
        console.print()
        console.print(f"Batch sizes of rung {climbing.BATCHED}:", style="bold")
        console.print(show.batch_table(batches))
        for batch in batches:
            if batch["note"]:
                console.print(f"batch {batch['batch_max']}: {batch['note']}", markup=False)


@grouped
def ladder(
    operator: options.OperatorOption = options.OperatorName.light,
    index: options.IndexOption = None,
    device: options.DeviceOption = "best",
    bound: options.BoundOption = "0.5ms",  # type: ignore[assignment]
    rung: Annotated[
        list[str] | None, typer.Option("--rung", help="Climb only this rung, by number or id. May be repeated.")
    ] = None,
    tables: Annotated[
        Tables,
        typer.Option(
            "--tables",
            help="Threads per rung: all, single (fewer plans, so a shorter climb), or both in turn; each reports "
            "its time.",
        ),
    ] = Tables.all,
    batches: Annotated[
        str | None,
        typer.Option(
            "--batches",
            metavar="SIZES",
            help="Also search rung batched with each of these batch sizes, such as 1,2,4,8.",
        ),
    ] = None,
    arrivals: options.ArrivalsOption = options.Arrivals.poisson,
    seed: options.SeedOption = 1,
    generators: options.GeneratorsOption = 1,
    threads_max: options.ThreadsMaxOption = 0,
    window: options.WindowOption = "100ms",  # type: ignore[assignment]
    tolerance: options.ToleranceOption = 0.002,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="Number of climbs; figures are medians with their spread.")
    ] = 1,
    save: options.ResultsOption = None,
    report_to: options.ReportOption = None,
    steps: options.StepsOption = None,
    query_bytes: options.QueryBytesOption = None,
    answer_bytes: options.AnswerBytesOption = None,
    blocks: options.BlocksOption = None,
    block_threads: options.BlockThreadsOption = None,
    *,
    dense: Dense,
    as_json: options.JsonOption = False,
) -> None:
    """Find the highest rate that each rung sustains with p99 within the bound, and verify the answers.

    Example: headrace ladder --operator light --bound 0.5ms --report ladder.html
    """
    chosen = options.find_device(device)
    op = options.make_operator(
        operator,
        index,
        steps=steps,
        query_bytes=query_bytes,
        answer_bytes=answer_bytes,
        blocks=blocks,
        block_threads=block_threads,
        dense=dense,
    )
    topic = results.topic_of(save, chosen) if save else "ladder"
    if report_to:
        report.check(report_to)  # fails before minutes of work
    settings = Settings(
        bound=bound,
        arrivals=str(arrivals),
        seed=seed,
        generators=generators,
        threads_max=threads_max,
        window=window,
        rank_tolerance=tolerance,
        rungs=[headrace.serve.find_rung(text).number for text in rung or []],
    )
    sizes = _batch_sizes(batches) if batches else []
    ladders = (2 if tables is Tables.both else 1) * samples
    count = len(set(settings.rungs)) or len(headrace.serve.rungs())
    show.expect(ladders * (count * _RUNG_SECONDS + _ROOF_SECONDS) + len(sizes) * _RUNG_SECONDS, _MEMORY_BYTES)
    climbs: list[Climbs] = []
    for wanted in ([False], [True], [False, True])[list(Tables).index(tables)]:
        if not any(one.interrupted for one in climbs):
            climbs.append(_climb(chosen, op, settings, samples, single=wanted))
    interrupted = any(one.interrupted for one in climbs)
    swept = _sweep(chosen, op, settings, sizes, climbs) if sizes and not interrupted else []
    all_threads, single = (next((one for one in climbs if one.single is kind), None) for kind in (False, True))
    content = climbing.document(topic, chosen, op, settings, all_threads, single, swept)
    if as_json:
        typer.echo(results.dumps(content), nl=False)
    else:
        _print(chosen, op, settings, climbs, swept)
    attempts = outputs.Attempts()
    has_figures = any(one.has_figures for one in climbs)
    # Rungs of an interrupted climb are complete. A climb that ended without a figure still has the loads it tried.
    if has_figures or not interrupted:
        attempts.write(save, lambda path: results.save(path, content))
        attempts.write(report_to, lambda path: report.write([content], path))
    if not has_figures and not interrupted:
        attempts.failures.append(Error("no rung has a figure; the notes say why"))
    finish(attempts, STATUS_INTERRUPTED if interrupted else 0)
