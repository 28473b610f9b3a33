"""`headrace ladder`: how far each technique carries, under a latency bound."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import headrace
from headrace import LadderResult, UsageError, results
from headrace.cli import options, show
from headrace.cli.errors import STATUS_INTERRUPTED


def _conditions(bound: float, arrivals: options.Arrivals, seed: int, generators: int) -> results.Json:
    return {"bound_us": bound * 1e6, "arrivals": str(arrivals), "seed": seed, "generators": generators}


def _print(climbs: list[LadderResult]) -> None:
    console = show.stdout()
    for number, climb in enumerate(climbs, start=1):
        if len(climbs) > 1:
            console.print(f"Sample {number} of {len(climbs)}")
        show.print_ladder(console, climb)


def ladder(
    operator: options.OperatorOption = options.OperatorName.light,
    index: options.IndexOption = None,
    device: options.DeviceOption = "best",
    bound: options.BoundOption = "0.5ms",  # type: ignore[assignment]
    rung: Annotated[
        list[str] | None, typer.Option("--rung", help="Climb this rung only, by number or id; may be repeated.")
    ] = None,
    arrivals: Annotated[options.Arrivals, typer.Option("--arrivals")] = options.Arrivals.poisson,
    seed: options.SeedOption = 1,
    generators: options.GeneratorsOption = 1,
    threads_max: Annotated[
        int, typer.Option("--threads-max", min=0, max=1024, help="Most engine threads tried; 0: the cores left.")
    ] = 0,
    window: Annotated[
        float, typer.Option("--window", parser=options.duration, metavar="TIME", help="Shortest window.")
    ] = "100ms",  # type: ignore[assignment]
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0.0005, max=0.01, help="How exactly p99 must be known, as a rank.")
    ] = 0.002,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="Climb so often; figures are the median and its spread.")
    ] = 1,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write the results file docs/results/<topic>.<machine>.json.")
    ] = None,
    steps: options.StepsOption = None,
    query_bytes: options.QueryBytesOption = None,
    answer_bytes: options.AnswerBytesOption = None,
    blocks: options.BlocksOption = None,
    block_threads: options.BlockThreadsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Climb the ladder: the highest rate that each rung sustains with p99 within the bound, answers verified.

    Example: headrace ladder --operator light --bound 0.5ms
    """
    chosen = options.find_device(device)
    numbers = [headrace.find_rung(text).number for text in rung or []]
    op = options.make_operator(
        operator,
        index,
        steps=steps,
        query_bytes=query_bytes,
        answer_bytes=answer_bytes,
        blocks=blocks,
        block_threads=block_threads,
    )
    topic = results.topic_of(save, chosen) if save else "ladder"
    climbs: list[LadderResult] = []
    with show.live_ladder() as live:
        while len(climbs) < samples and not any(climb.interrupted for climb in climbs):
            settings: dict[str, Any] = {"rungs": numbers, "arrivals": str(arrivals), "window": window}
            climbs.append(
                headrace.ladder(
                    chosen,
                    op,
                    bound=bound,
                    seed=seed,
                    generators=generators,
                    threads_max=threads_max,
                    rank_tolerance=tolerance,
                    progress=live.progress,
                    finished=live.finished,
                    **settings,
                )
            )
    interrupted = climbs[-1].interrupted
    shared = _conditions(bound, arrivals, seed, generators)
    rows = results.ladder_rows(climbs, op.name, chosen, bound, shared)
    content = results.document(
        topic,
        chosen,
        rows,
        roofs=results.roofs_as_dict(climbs[-1].roofs),
        profile=results.profile(climbs[-1]),
        interrupted=interrupted,
    )
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(climbs)
    if interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
    if save:
        if all(climb_load is None for climb_load in (entry.load for entry in climbs[-1].rungs)):
            raise UsageError("no rung has figures: nothing to save")
        results.save(save, content)
