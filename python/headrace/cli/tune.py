"""`headrace tune`: finds the best plan under a latency bound."""

import json
import threading
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

import headrace
from headrace import Device, Operator, outputs, quiet, report, results, tuning
from headrace.cli import options, show
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_FAILURE, STATUS_INTERRUPTED, finish
from headrace.cli.grouped import grouped
from headrace.profiles import roofs_as_dict
from headrace.serve import TunedPlan, TunerProgress
from headrace.tables import latency, rate

_ROOF_SECONDS = 2.0
_SEARCH_SECONDS = 10.0  # the search for one plan's rate runs to its end, whatever the budget
_MEMORY_BYTES = 500e6


class Cache(StrEnum):
    """How to use plans found before."""

    use = "use"
    refresh = "refresh"
    ignore = "ignore"


def _doing(now: TunerProgress) -> str:
    plan = now.plan
    what = f"{now.phase} {now.done}{f' of {now.of}' if now.of else ''}: {plan.schedule}, {plan.threads} threads"
    best = f"; best {rate(now.best_per_second)}/s" if now.best_per_second else ""
    return f"{what} x {plan.streams_per_thread} streams{best}"


def _run(device: Device, operator: Operator, settings: dict[str, Any]) -> TunedPlan:
    console = show.stderr()
    if not console.is_terminal:
        return headrace.tune(device, operator, **settings)
    lock = threading.Lock()
    with Live(console=console, transient=True, refresh_per_second=8) as live:

        def progress(now: TunerProgress) -> None:
            with lock:
                live.update(Text(_doing(now)))

        return headrace.tune(device, operator, **settings, progress=progress)


def _describe(found: TunedPlan) -> list[str]:
    if not found.per_second:
        return [found.note]
    plan = found.plan
    source = "from the cache" if found.cached else f"{found.looked_at} of {found.space} plans examined"
    lines = [
        f"{rate(found.per_second)} queries/s at p99 {latency(found.p99)}, {source}, in {found.took:.1f} s",
        f"  {plan.schedule}, {plan.threads} threads x {plan.streams_per_thread} streams, {plan.host_memory} memory, "
        f"{plan.slots} slots, {found.generators} generators",
    ]
    given = {"batch_max": 1, "blocks": 0, "block_threads": 0, "workers": 0}
    written = json.loads(plan.to_json())
    others = [f"{name.replace('_', ' ')} {written[name]}" for name, usual in given.items() if written[name] != usual]
    return [*lines, *([f"  {', '.join(others)}"] if others else [])]


def _print(console: Console, found: TunedPlan, sweep: TunedPlan | None) -> None:
    lines = ["Tuned:", *_describe(found)]
    if sweep is not None:
        lines += ["", "Exhaustive sweep:", *_describe(sweep)]
        if sweep.per_second and found.per_second:
            compared = tuning.against(found, sweep)
            lines += [
                "",
                f"The tuned plan reaches {compared['share_of_exhaustive']:.1%} of the sweep's best rate, in "
                f"{compared['time_of_exhaustive']:.1%} of its time.",
            ]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


@grouped
def tune(
    operator: options.OperatorOption = options.OperatorName.light,
    index: options.IndexOption = None,
    device: options.DeviceOption = "best",
    bound: options.BoundOption = "0.5ms",  # type: ignore[assignment]
    budget: Annotated[
        float,
        typer.Option(
            "--budget",
            parser=options.duration,
            metavar="TIME",
            help="Try no new plan after this time; the search for the current plan's rate is finished.",
        ),
    ] = "60s",  # type: ignore[assignment]
    schedule: Annotated[
        list[str] | None, typer.Option("--schedule", help="Search only this schedule. May be repeated.")
    ] = None,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Also try every plan, and compare.")] = False,
    plans: Annotated[
        Cache, typer.Option("--plans", help="Use, refresh or ignore the cache of plans found before.")
    ] = Cache.use,
    arrivals: options.ArrivalsOption = options.Arrivals.poisson,
    seed: options.SeedOption = 1,
    generators: options.GeneratorsOption = 1,
    threads_max: options.ThreadsMaxOption = 0,
    window: options.WindowOption = "100ms",  # type: ignore[assignment]
    tolerance: options.ToleranceOption = 0.002,
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
    """Find the plan that sustains the highest rate with p99 within the bound, and verify the answers.

    Example: headrace tune --operator light --bound 0.5ms --budget 30s
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
    topic = results.topic_of(save, chosen) if save else "tuned"
    if report_to:
        report.check(report_to)  # fails before a minute of work
    settings: dict[str, Any] = {
        "bound": bound,
        "arrivals": str(arrivals),
        "seed": seed,
        "generators": generators,
        "threads_max": threads_max,
        "window": window,
        "rank_tolerance": tolerance,
        "budget": budget,
        "schedules": schedule or [],
    }
    # A sweep serves to judge a search, and a cached plan would appear to be found in no time.
    cache = Cache.refresh if exhaustive and plans is Cache.use else plans
    show.expect(budget + _SEARCH_SECONDS + _ROOF_SECONDS, _MEMORY_BYTES)
    watch = quiet.Watch()
    found = _run(chosen, op, {**settings, "cache": str(cache)})
    sweep = _run(chosen, op, {**settings, "exhaustive": True}) if exhaustive and not found.interrupted else None
    roofs = headrace.measure.roofs(chosen, op, found.generators)
    shared = {"bound_us": bound * 1e6, "arrivals": str(arrivals), "seed": seed}
    interrupted = found.interrupted or (sweep is not None and sweep.interrupted)
    content = results.document(
        topic,
        chosen,
        tuning.rows(op.name, found, sweep, roofs, shared),
        watch,
        roofs=roofs_as_dict(roofs),
        tuned=tuning.as_dict(found),
        exhaustive=tuning.as_dict(sweep) if sweep else None,
        interrupted=interrupted,
    )
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(show.stdout(), found, sweep)
        show.print_quiet(show.stdout(), watch.stop())
    attempts = outputs.Attempts()
    attempts.write(save, lambda path: results.save(path, content))
    attempts.write(report_to, lambda path: report.write([content], path))
    finish(attempts, STATUS_INTERRUPTED if interrupted else 0 if found.per_second else STATUS_FAILURE)
