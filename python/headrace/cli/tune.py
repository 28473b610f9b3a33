"""`headrace ladder --tune`: the plan that does best, instead of every rung."""

import json
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

import headrace
from headrace import Device, Operator, outputs, quiet, report, results, tuning
from headrace.cli import show
from headrace.cli.errors import STATUS_FAILURE, STATUS_INTERRUPTED, finish
from headrace.profiles import roofs_as_dict
from headrace.serve import TunedPlan, TunerProgress
from headrace.tables import latency, rate

_ROOF_SECONDS = 2.0
_MEMORY_BYTES = 500e6


class Cache(StrEnum):
    """What is done about plans that were found before."""

    use = "use"
    refresh = "refresh"
    ignore = "ignore"


@dataclass(frozen=True)
class Settings:
    """What the tuner is asked."""

    bound: float
    arrivals: str
    seed: int
    generators: int
    threads_max: int
    window: float
    tolerance: float
    budget: float
    schedules: list[str]
    cache: Cache
    exhaustive: bool

    def as_keywords(self) -> dict[str, Any]:
        """For headrace.tune()."""
        return {
            "bound": self.bound,
            "arrivals": self.arrivals,
            "seed": self.seed,
            "generators": self.generators,
            "threads_max": self.threads_max,
            "window": self.window,
            "rank_tolerance": self.tolerance,
            "budget": self.budget,
            "schedules": self.schedules,
        }


def _doing(now: TunerProgress) -> str:
    plan = now.plan
    what = f"{now.phase} {now.done}{f' of {now.of}' if now.of else ''}: {plan.schedule}, {plan.threads} threads"
    best = f"; best {rate(now.best_per_second)}/s" if now.best_per_second else ""
    return f"{what} x {plan.streams_per_thread} streams{best}"


def _run(device: Device, operator: Operator, settings: Settings, **more: Any) -> TunedPlan:  # noqa: ANN401
    console = show.stderr()
    if not console.is_terminal:
        return headrace.tune(device, operator, **settings.as_keywords(), **more)
    lock = threading.Lock()
    with Live(console=console, transient=True, refresh_per_second=8) as live:

        def progress(now: TunerProgress) -> None:
            with lock:
                live.update(Text(_doing(now)))

        return headrace.tune(device, operator, **settings.as_keywords(), **more, progress=progress)


def _describe(found: TunedPlan) -> list[str]:
    if not found.per_second:
        return [found.note]
    plan = found.plan
    source = "from the cache" if found.cached else f"of {found.space} plans, {found.looked_at} looked at"
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
                f"The tuned plan does {compared['share_of_exhaustive']:.1%} of the best of the sweep, found in "
                f"{compared['time_of_exhaustive']:.1%} of its time.",
            ]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Files:
    """Where the results go."""

    topic: str
    save: Path | None
    report: Path | None


def tune(device: Device, operator: Operator, settings: Settings, files: Files, as_json: bool) -> None:
    """Finds the plan, prints it, and leaves with the status of the command."""
    # A sweep is there to judge a search: a plan from the cache would have been found in no time.
    cache = Cache.refresh if settings.exhaustive and settings.cache is Cache.use else settings.cache
    show.expect(settings.budget + _ROOF_SECONDS, _MEMORY_BYTES)
    watch = quiet.Watch()
    found = _run(device, operator, settings, cache=str(cache))
    sweep = None
    if settings.exhaustive and not found.interrupted:
        sweep = _run(device, operator, settings, exhaustive=True)
    roofs = headrace.measure.roofs(device, operator, found.generators)
    shared = {"bound_us": settings.bound * 1e6, "arrivals": settings.arrivals, "seed": settings.seed}
    interrupted = found.interrupted or (sweep is not None and sweep.interrupted)
    content = results.document(
        files.topic,
        device,
        tuning.rows(operator.name, found, sweep, roofs, shared),
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
    attempts.write(files.save, lambda path: results.save(path, content))
    attempts.write(files.report, lambda path: report.write([content], path))
    finish(attempts, STATUS_INTERRUPTED if interrupted else 0 if found.per_second else STATUS_FAILURE)
