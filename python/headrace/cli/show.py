"""Formats figures for people."""

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from headrace import quiet, tables
from headrace.measure import Roofs
from headrace.profiles import STAGES, Json, rung_as_dict
from headrace.serve import LadderProgress, PlanLoad, RungResult
from headrace.tables import latency, rate
from headrace.units import bytes_text

_WIDTH_OF_FILES = 100
_ANY_WIDTH = 10_000


def minutes(seconds: float) -> str:
    """Text such as "42 s" or "3 min 5 s"."""
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest} s" if whole else f"{rest} s"


def expect(seconds: float | None = None, memory_bytes: float | None = None, where: str = "memory") -> None:
    """Announces on stderr the approximate time and memory of an expensive command, before it begins."""
    parts = []
    if seconds is not None:
        parts.append(minutes(max(1.0, seconds)))
    if memory_bytes is not None:
        parts.append(f"{bytes_text(memory_bytes)} of {where}")
    stderr().print(f"This will take about {' and '.join(parts)}.", markup=False, soft_wrap=True)


def stdout() -> Console:
    """Console for results."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH_OF_FILES
    return console


def stderr() -> Console:
    """Console for progress."""
    return Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class _Form:
    """How much a ladder's table shows, and how close its columns are."""

    all_columns: bool
    stages: bool
    gap: int


_FORMS = (_Form(True, True, 1), _Form(True, False, 1), _Form(False, False, 1), _Form(False, False, 0))


def _ladder_table(entries: list[Json], form: _Form) -> Table:
    shown = tables.columns(entries, narrow=not form.all_columns)
    table = plain_table(padding=(0, form.gap))
    table.add_column("rung", no_wrap=True, vertical="bottom")
    for column in shown:
        table.add_column(column.heading, justify="right", no_wrap=True, vertical="bottom")
    for stage in STAGES if form.stages else ():
        table.add_column(f"{stage.replace('_', ' ')}\nus", justify="right", no_wrap=True, vertical="bottom")
    _add_rungs(
        table,
        entries,
        lambda entry: [
            *(tables.cells(entry)[column.key] for column in shown),
            *(tables.stage_cells(entry) if form.stages else ()),
        ],
    )
    return table


def ladder_table(entries: list[Json], console: Console) -> tuple[Table, bool]:
    """A ladder with a row per rung, Headrace's own set apart, in the fullest form that fits the width.

    Also returns whether it includes the stages. tables.notes() gives the reasons for missing figures.
    """
    anywhere = console.options.update_width(_ANY_WIDTH)
    for form in _FORMS:
        table = _ladder_table(entries, form)
        if console.measure(table, options=anywhere).maximum <= console.width:
            break
    return table, form.stages


def plain_table(padding: tuple[int, int] = (0, 1)) -> Table:
    """An empty table with a line under its headings."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold", padding=padding)


def _add_rungs(table: Table, entries: list[Json], cells: Callable[[Json], list[str]]) -> None:
    """Adds a row per rung, with Headrace's own rungs set apart."""
    own = False
    for entry in entries:
        if not own and tables.is_own(entry):
            own = True
            table.add_section()
            table.add_row(f"{tables.OWN_TITLE}:", style="italic dim")
        number, identity = entry["rung"].split(maxsplit=1)
        table.add_row(f"{number:>2} {identity}", *cells(entry), style="" if entry.get("load") else "dim")


def stage_table(entries: list[Json]) -> Table:
    """Table of each rung's time by stage."""
    table = plain_table()
    table.add_column("mean time in a stage, us", no_wrap=True)
    for stage in STAGES:
        table.add_column(stage.replace("_", " "), justify="right", no_wrap=True)
    _add_rungs(table, [entry for entry in entries if tables.has_stages(entry)], tables.stage_cells)
    return table


def batch_table(batches: list[Json]) -> Table:
    """Table of throughput and latency by batch size."""
    table = plain_table()
    for heading in ("batch", "average", "p99", "queries/s", "capacity/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for batch in batches:
        load = batch["load"]
        figures = ["-", "-", "-"]
        if load:
            late = load["latency_us"]
            figures = [tables.micro(late["mean"]), tables.micro(late["p99"]), rate(load["measured_per_second"])]
        table.add_row(str(batch["batch_max"]), *figures, rate(batch["capacity"]))
    return table


def roof_lines(roofs: Roofs) -> list[str]:
    """Lines of the roofs, lowest first."""
    found = {
        "link to device": roofs.link_in,
        "link to host": roofs.link_out,
        "compute": roofs.compute,
        "generator": roofs.generator * roofs.generators,
    }
    width = max(len(rate(value)) for value in found.values())
    lines = ["Roofs, queries/s, each measured alone, before and after in this run:"]
    for name, value in sorted(found.items(), key=lambda item: item[1]):
        threads = f" ({roofs.generators} thread{'s' if roofs.generators > 1 else ''})" if name == "generator" else ""
        lines.append(f"  {rate(value):>{width}}  {name}{threads}")
    return lines


def print_ladder(console: Console, title: str, entries: list[Json], roofs: Roofs) -> None:
    """Prints the title, the table, the stages, the notes and the roofs."""
    console.print(title, markup=False, style="bold", soft_wrap=True)
    table, has_stages = ladder_table(entries, console)
    console.print(table)
    if not has_stages and any(tables.has_stages(entry) for entry in entries):
        console.print(stage_table(entries))
    for line in [*tables.notes(entries), *([""] if tables.notes(entries) else []), *roof_lines(roofs)]:
        console.print(line, markup=False, soft_wrap=False)


class LiveLadder:
    """Shows a ladder during the climb: the rungs so far and the current trial. Thread-safe."""

    def __init__(self, live: Live | None) -> None:
        self._live = live
        self._rungs: list[Json] = []
        self._lock = threading.Lock()

    def progress(self, now: LadderProgress) -> None:
        """Callback for headrace.serve.ladder(progress=)."""
        if self._live is None:
            return
        with self._lock:
            self._live.update(Group(ladder_table(self._rungs, self._live.console)[0], Text(_doing(now))))

    def finished(self, result: RungResult) -> None:
        """Callback for headrace.serve.ladder(finished=)."""
        with self._lock:
            self._rungs.append(rung_as_dict(result, None))


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
    """Shows a climb on the terminal and clears it at the end; does nothing if stderr is not a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield LiveLadder(None)
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield LiveLadder(live)


@contextmanager
def live_line() -> Iterator[Callable[[str], None]]:
    """Shows one changing line on the terminal, and clears it at the end; any thread may call it."""
    console = stderr()
    if not console.is_terminal:
        yield lambda _text: None
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield lambda text: live.update(Text(text, style="dim", no_wrap=True, overflow="ellipsis"))


@contextmanager
def progress_bar(what: str, *, shown: bool = True) -> Iterator["Bar"]:
    """A progress bar on the terminal, cleared at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr(), transient=True, disable=not (shown and stderr().is_terminal)) as progress:
        yield Bar(progress, what)


class Bar:
    """A progress bar; call it with a share from 0 to 1."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=1.0)

    def __call__(self, share: float) -> None:
        """Moves the bar."""
        self._progress.update(self._task, completed=share)

    def describe(self, what: str) -> None:
        """Changes the text beside the bar."""
        self._progress.update(self._task, description=what)

    def say(self, line: str) -> None:
        """Prints a line above the bar, or on stderr if there is no terminal."""
        self._progress.console.print(line, markup=False, soft_wrap=True)


def print_quiet(console: Console, disturbed: str) -> None:
    """Prints, next to the figures of a command, whether the machine was quiet."""
    console.print(quiet.line(disturbed), markup=False, style="bold red" if disturbed else "dim")


def load_table(done: PlanLoad, disturbed: str) -> Table:
    """Table of one plan under one load, a line per figure."""
    load, stages, roofs = done.load, done.stages, done.roofs
    table = Table(show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")
    late, share = load.latency, load.measured_per_second / roofs.lowest
    admitted = " of those admitted" if load.refused_counted else ""
    offered = latency(load.p99_offered) if math.isfinite(load.p99_offered) else "more than any answer's"
    rows = [
        ("incoming queries/s", rate(load.incoming_per_second)),
        ("measured queries/s", rate(load.measured_per_second)),
        (f"share of roof ({roofs.lowest_name})", quiet.share_text(share, disturbed)),
        (f"latency, average{admitted}", latency(late.mean)),
        (f"latency, p50{admitted}", latency(late.p50)),
        (f"latency, p90{admitted}", latency(late.p90)),
        (f"latency, p99{admitted}", latency(late.p99)),
        *([("latency, p99, refused as slowest", offered)] if load.refused_counted else []),
        (f"latency, p99.9{admitted}", latency(late.p999)),
        (f"latency, highest{admitted}", latency(late.max)),
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
    for name in STAGES:
        table.add_row(f"stage {name.replace('_', ' ')}", latency(getattr(stages, name)))
    table.add_row("stages of queries", f"{stages.samples:,}")
    return table
