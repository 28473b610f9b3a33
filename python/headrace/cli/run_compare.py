"""The comparison of `headrace run`: alternatives to Headrace, and Headrace's techniques."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

import headrace
from headrace import Device, Error, Operator, quiet, tables
from headrace.baselines import Fts5, PythonLoop, timed
from headrace.cli import show
from headrace.serve import LadderProgress, RungResult

_WINDOW = 0.05
_TOLERANCE = 0.005  # p99 known to within ranks 98.5% and 99.5%: a third of the ladder's time
_BASELINE_SECONDS = 3.0
_NAME = 46  # width in columns
_OURS = "Headrace"
_LEAST_SECONDS = 3.0  # minimum time per technique, even when late
# The techniques that gain most; "headrace ladder" climbs all rungs.
_RUNGS = {
    1: "Headrace: everything set up for each query",
    6: "Headrace: threads that keep their memory",
    11: "Headrace: workers fed through shared memory",
    14: "Headrace: clients feed the workers directly",
}


@dataclass(frozen=True)
class Line:
    """One way to answer queries, and its rate."""

    name: str
    per_second: float
    p99: float | None = None  # seconds, if within the bound
    called: str = ""  # name within a sentence


def compare(
    device: Device,
    operator: Operator,
    documents: Sequence[str],
    texts: Sequence[str],
    bound: float,
    ends: float,
    console: Console,
) -> bool:
    """Measures each way and prints it at once; stops at `ends` (time.monotonic()). Returns whether Ctrl-C came.

    The figure is the rate sustained with p99 within the bound. If a busy machine sustains none, the line shows the rate
    without a latency bound instead, and says so.
    """
    console.print(Text("\nSuch queries per second on this machine:\n", "bold"))
    console.print(Text(f"  {'':<{_NAME}}{'a second':>10}{'times':>10}{'p99':>10}", "dim"))
    watch = quiet.Watch()
    lines = _baselines(documents, texts, console)
    interrupted = False
    numbers = list(_RUNGS)
    for at, number in enumerate(numbers):
        budget = max(_LEAST_SECONDS, (ends - time.monotonic()) / (len(numbers) - at))
        result, interrupted = _climb(device, operator, number, bound, budget)
        if interrupted:
            break
        line = _line(_RUNGS[number], result)
        if line is not None:
            lines.append(line)
            _print(console, lines)
    disturbed = watch.stop()
    _sum_up(console, lines, bound, disturbed)
    return interrupted


def _baselines(documents: Sequence[str], texts: Sequence[str], console: Console) -> list[Line]:
    lines: list[Line] = []
    made: dict[str, Callable[[Sequence[str]], PythonLoop | Fts5]] = {
        "a Python loop over all glosses": PythonLoop,
        "SQLite's FTS5 full-text index": Fts5,
    }
    for name, make in made.items():
        try:
            with show.progress_bar(f"Preparing {name}"):
                found = timed(make(documents).answer, texts, _BASELINE_SECONDS)
        except Error as error:
            console.print(Text(f"  {name}: {error}"))
            continue
        lines.append(Line(name[0].upper() + name[1:], found.per_second, called=name))
        _print(console, lines)
    return lines


def _climb(
    device: Device, operator: Operator, number: int, bound: float, budget: float
) -> tuple[RungResult | None, bool]:
    with show.live_line() as say:
        climbed = headrace.serve.ladder(
            device,
            operator,
            bound=bound,
            rungs=[number],
            window=_WINDOW,
            rank_tolerance=_TOLERANCE,
            budget=budget,
            progress=lambda now: say(f"  {_RUNGS[number]}: {_doing(now)}"),
        )
    return (climbed.rungs[0] if climbed.rungs else None), climbed.interrupted


def _doing(now: LadderProgress) -> str:
    if now.rung == 0:
        return "measuring what the hardware allows ..."
    if now.rate_per_second == 0:
        return f"measuring the rate without a latency bound, {now.threads} thread{'s' if now.threads > 1 else ''} ..."
    return f"trying {tables.rate(now.rate_per_second)} per second, p99 {tables.latency(now.p99)} ..."


def _line(name: str, result: RungResult | None) -> Line | None:
    if result is None:
        return None
    load = result.load
    if load is not None:
        return Line(name, load.measured_per_second, load.latency.p99)
    most = max((capacity.per_second for capacity in result.capacities), default=0.0)
    if most <= 0:
        return None
    return Line(name, most)


def _print(console: Console, lines: list[Line]) -> None:
    """Prints the last line, relative to the first."""
    line, first = lines[-1], lines[0]
    times = f"{line.per_second / first.per_second:,.0f}" if len(lines) > 1 else ""
    p99 = tables.latency(line.p99) if line.p99 is not None else ""
    console.print(Text(f"  {line.name:<{_NAME}}{tables.short_rate(line.per_second):>10}{times:>10}{p99:>10}"))


def _sum_up(console: Console, lines: list[Line], bound: float, disturbed: str) -> None:
    ours = [line for line in lines if line.name.startswith(_OURS)]
    others = [line for line in lines if not line.name.startswith(_OURS)]
    if ours and others:
        best = max(ours, key=lambda line: line.per_second)
        beside = " and ".join(
            f"{best.per_second / line.per_second:,.0f} times that of {line.called}" for line in others
        )
        rate = tables.short_rate(best.per_second)
        console.print(Text(f"\nThe best rate, {rate} queries per second, is {beside}."))
        if any(line.p99 is None for line in ours):
            kept = f"kept p99 within {tables.latency(bound)}"
            reason = f"the machine was too busy: no rate {kept}" if disturbed else f"no rate that was tried {kept}"
            why = f"Lines without p99: {reason}; they show the rate with unbounded latency."
            console.print(Text(why, "dim"))
    show.print_quiet(console, disturbed)
