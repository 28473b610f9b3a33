"""How figures are shown to people."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from headrace import LadderProgress, LadderResult, LoadResult, Roofs, RungResult, StageTimes

_WIDTH_OF_FILES = 100


def rate(per_second: float) -> str:
    """Such as "123,456": whole numbers, because more is noise."""
    return f"{per_second:,.0f}"


def latency(seconds: float) -> str:
    """Such as "85.2 us", "1.25 ms" or "2.1 s"."""
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:  # noqa: PLR2004 - the next unit
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def stdout() -> Console:
    """For results."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_OF_FILES
    return console


def stderr() -> Console:
    """For what goes on meanwhile."""
    return Console(stderr=True, highlight=False)


def ladder_table(rungs: list[RungResult], roofs: Roofs | None) -> Table:
    """The ladder, a row a rung; what has no figures says why below the table (see notes())."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("rung", no_wrap=True)
    for heading in (
        "average",
        "p50",
        "p99",
        "queries/s",
        "threads",
        "streams\n/thread",
        "paral-\nlelism",
        "share\nof roof",
    ):
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for result in rungs:
        name = f"{result.rung.number:>2} {result.rung.id}"
        load = result.load
        if load is None:
            table.add_row(name, *["-"] * 8, style="dim")
            continue
        share = f"{load.measured_per_second / roofs.lowest:.1%}" if roofs else ""
        table.add_row(
            name,
            latency(load.latency.mean),
            latency(load.latency.p50),
            latency(load.latency.p99),
            rate(load.measured_per_second),
            str(result.plan.threads),
            f"{result.plan.streams_per_thread:.3g}",
            str(result.plan.parallelism),
            share,
        )
    return table


def notes(rungs: list[RungResult]) -> list[str]:
    """Why rungs have no figures."""
    return [f"rung {result.rung.number}: {result.note}" for result in rungs if result.note]


def roof_lines(roofs: Roofs) -> list[str]:
    """The roofs, lowest first."""
    found = {
        "link to device": roofs.link_in,
        "link to host": roofs.link_out,
        "compute": roofs.compute,
        "generator": roofs.generator * roofs.generators,
    }
    width = max(len(rate(value)) for value in found.values())
    lines = ["Roofs, queries/s, each measured alone in this run:"]
    for name, value in sorted(found.items(), key=lambda item: item[1]):
        threads = f" ({roofs.generators} thread{'s' if roofs.generators > 1 else ''})" if name == "generator" else ""
        lines.append(f"  {rate(value):>{width}}  {name}{threads}")
    return lines


def print_ladder(console: Console, result: LadderResult) -> None:
    """The table, the notes and the roofs."""
    console.print(ladder_table(result.rungs, result.roofs))
    for line in [*notes(result.rungs), "", *roof_lines(result.roofs)]:
        console.print(line, markup=False, soft_wrap=False)


class LiveLadder:
    """A ladder while it is climbed: the rungs so far and what is being tried. Any thread may call."""

    def __init__(self, live: Live | None) -> None:
        self._live = live
        self._rungs: list[RungResult] = []
        self._lock = threading.Lock()

    def progress(self, now: LadderProgress) -> None:
        """For headrace.ladder(progress=)."""
        if self._live is None:
            return
        with self._lock:
            self._live.update(Group(ladder_table(self._rungs, None), Text(_doing(now))))

    def finished(self, result: RungResult) -> None:
        """For headrace.ladder(finished=)."""
        self._rungs.append(result)


def _doing(now: LadderProgress) -> str:
    if now.rung == 0:
        return "Measuring the roofs ..."
    what = f"Rung {now.rung}, {now.threads} thread{'s' if now.threads > 1 else ''}: "
    if now.rate_per_second == 0:
        return what + "measuring capacity ..."
    what += f"trying {rate(now.rate_per_second)}/s, measured {rate(now.measured_per_second)}/s, p99 {latency(now.p99)}"
    return what + (f"; best {rate(now.best_per_second)}/s" if now.best_per_second else "")


@contextmanager
def live_ladder() -> Iterator[LiveLadder]:
    """Shows a climb on the terminal and clears it; shows nothing where stderr is none."""
    console = stderr()
    if not console.is_terminal:
        yield LiveLadder(None)
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield LiveLadder(live)


@contextmanager
def progress_bar(what: str) -> Iterator["Bar"]:
    """A bar on the terminal, cleared at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr(), transient=True, disable=not stderr().is_terminal) as progress:
        yield Bar(progress, what)


class Bar:
    """How far something is; call it with a share of 1."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=1.0)

    def __call__(self, share: float) -> None:
        """Moves the bar."""
        self._progress.update(self._task, completed=share)


def load_table(load: LoadResult, stages: StageTimes, roofs: Roofs) -> Table:
    """One plan under one load, a line a figure."""
    table = Table(show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")
    late = load.latency
    rows = [
        ("incoming queries/s", rate(load.incoming_per_second)),
        ("measured queries/s", rate(load.measured_per_second)),
        (f"share of roof ({roofs.lowest_name})", f"{load.measured_per_second / roofs.lowest:.1%}"),
        ("latency, average", latency(late.mean)),
        ("latency, p50", latency(late.p50)),
        ("latency, p90", latency(late.p90)),
        ("latency, p99", latency(late.p99)),
        ("latency, p99.9", latency(late.p999)),
        ("latency, highest", latency(late.max)),
        ("latencies", f"{late.count:,}"),
        ("generator late, p99", latency(load.lateness_p99)),
        ("generator late, most", latency(load.lateness_max)),
        ("refused", f"{load.refused:,}"),
        ("failed", f"{load.failed:,}"),
        ("wrong answers", f"{load.wrong:,}"),
        ("windows", f"{load.windows}{'' if load.stable else ', not stable'}"),
    ]
    for name, figure in rows:
        table.add_row(name, figure)
    table.add_section()
    for name in ("queue", "copy_in", "kernel", "copy_out", "host", "notify"):
        table.add_row(f"stage {name.replace('_', ' ')}", latency(getattr(stages, name)))
    table.add_row("stages of queries", f"{stages.samples:,}")
    return table
