"""`headrace oversubscribe`: how fast kernels access data larger than the device, by placement."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import headrace
from headrace import DataError, Device, UsageError, outputs, quiet, results
from headrace import oversubscription as cells_of
from headrace import report as report_files
from headrace.cli import options, show
from headrace.cli.errors import STATUS_FAILURE, STATUS_INTERRUPTED, finish
from headrace.measure import OversubscriptionProgress
from headrace.profiles import Json
from headrace.units import GIGA, bytes_text

_PATTERNS = headrace.span.access_patterns()
_OPERATIONS = headrace.span.access_operations()
_STRATEGIES = headrace.span.access_strategies()
_ALL = "all"
_FEW_CELLS = 20
_CELL_SECONDS = 0.5
_BUDGET_SHARE = 8  # default budget: this fraction of free memory


class Synchronised(StrEnum):
    """Whether the threads of a block synchronise after every iteration of the loop."""

    no = "no"
    yes = "yes"
    both = "both"


def _words(text: str, known: Sequence[str] = ()) -> list[str]:
    if known and text == _ALL:
        return list(known)
    return [word.strip() for word in text.split(",")]


def _each(text: str, option: str, what: str, parse: Callable[[str], Any]) -> list[Any]:
    """Parses a list of values such as "1,2"."""
    try:
        return [parse(word) for word in _words(text)]
    except ValueError:
        raise UsageError(f"{option} takes {what}, not '{text}'") from None


def _table(cells: Sequence[Json], names: Sequence[str]) -> Table:
    """A table with a row per strategy and launch shape and a column per factor: GB/s and the share of the roof."""
    table = show.plain_table()
    table.add_column(f"{cells_of.pattern_name(cells[0])}, {cells[0]['operation']}, GB/s", no_wrap=True)
    factors = sorted({cell["factor"] for cell in cells})
    for factor in factors:
        table.add_column(f"{factor:g}", justify="right", no_wrap=True)
    rows: dict[str, dict[float, str]] = {}
    for cell in cells:
        rows.setdefault(_row_name(cell, names), {})[cell["factor"]] = _figure(cell)
    for name, figures in rows.items():
        table.add_row(name, *(figures.get(factor, "") for factor in factors))
    return table


def _row_name(cell: Json, names: Sequence[str]) -> str:
    words = [cell["strategy"]]
    if "page_bytes" in names and (cell["pattern"] == "random-warp" or cell["strategy"] == "prefetched"):
        words.append(f"{bytes_text(cell['page_bytes'])}")
    if "threads" in names:
        words.append(f"{cell['threads']} threads")
    if cell["synchronised"]:
        words.append("synchronised")
    return " ".join(words)


def _figure(cell: Json) -> str:
    if "gb_per_s" not in cell:
        return "-"
    if not cell["verified"]:
        return "WRONG"
    return f"{cell['gb_per_s']:.3g} {quiet.share_text(cell['gb_per_s'] / cell['roof_gb_per_s'], '', 0)}"


def _roof_lines(content: Json) -> list[str]:
    lines = ["Roofs in GB/s, a kernel going through memory in order, measured in this run:"]
    lines += [
        f"  {roofs['operation']}: {roofs['on_device_gb_per_s']:.4g} on the device, "
        f"{roofs['over_link_gb_per_s']:.4g} over the link"
        for roofs in content["roofs"]
    ]
    if "copy_to_device_gb_per_s" in content:
        lines.append(f"  copy engine, which migrates pages: {content['copy_to_device_gb_per_s']:.4g}")
    return lines


def _notes(cells: Sequence[Json]) -> list[str]:
    """Reasons why cells were not run, each once."""
    reasons: dict[str, set[str]] = {}
    for cell in cells:
        if cell.get("note"):
            reasons.setdefault(cell["note"], set()).add(f"{cell['strategy']} at {cell['factor']:g}")
    return [f"- {', '.join(sorted(who))}: {why}" for why, who in reasons.items()]


def _print(device: Device, content: Json, rows: Sequence[Json]) -> None:
    console: Console = show.stdout()
    cells = content["cells"]
    title = f"{device.name}, a budget of {content['budget_bytes'] / GIGA:.3g} GB: GB/s and share of the roof, by factor"
    console.print(title, markup=False, style="bold", soft_wrap=True)
    names = [key for key in ("page_bytes", "threads") if len({cell[key] for cell in cells}) > 1]
    groups: dict[tuple[str, str], list[Json]] = {}
    for cell in cells:
        groups.setdefault((cells_of.pattern_name(cell), cell["operation"]), []).append(cell)
    for group in groups.values():
        console.print(_table(group, names))
    lines = [*_notes(cells), *_roof_lines(content)]
    lines += [f"{row['id']}: {row['value']:.3g} ({row['unit']})" for row in rows]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _progress(bar: show.Bar) -> Callable[[OversubscriptionProgress], None]:
    return lambda now: bar(now.done / now.of if now.of else 0.0)


def oversubscribe(
    patterns: Annotated[
        str,
        typer.Option(
            "--patterns", metavar="LIST", help=f"Patterns to measure: {_ALL}, or some of {','.join(_PATTERNS)}."
        ),
    ] = _ALL,
    operations: Annotated[
        str,
        typer.Option(
            "--operations", metavar="LIST", help=f"Operations to measure: {_ALL}, or some of {','.join(_OPERATIONS)}."
        ),
    ] = "read",
    strategies: Annotated[
        str,
        typer.Option(
            "--strategies", metavar="LIST", help=f"Strategies to measure: {_ALL}, or some of {','.join(_STRATEGIES)}."
        ),
    ] = _ALL,
    factors: Annotated[
        str, typer.Option("--factors", metavar="LIST", help="Ratios of the data to the budget.")
    ] = "0.5,1,1.25,1.5,2,3,4",
    rows: Annotated[
        str,
        typer.Option(
            "--rows",
            metavar="LIST",
            help="zipf-rows: order of the rows: ordered (by popularity) or scattered over all pages.",
        ),
    ] = "ordered,scattered",
    page_sizes: Annotated[
        str,
        typer.Option(
            "--page-sizes",
            metavar="LIST",
            help="Page sizes, such as 4KiB,64KiB,2MiB: random-warp draws such pages; prefetched and by-budget "
            "place them.",
        ),
    ] = "2MiB",
    threads: Annotated[
        str, typer.Option("--threads", metavar="LIST", help="Threads per block; multiples of 32 up to 1024.")
    ] = "256",
    synchronised: Annotated[
        Synchronised,
        typer.Option("--synchronised", help="Synchronise the threads of a block after every iteration of the loop."),
    ] = Synchronised.no,
    blocks: Annotated[
        int, typer.Option("--blocks", min=0, max=64, help="Blocks per multiprocessor; 0 means as many as fit.")
    ] = 0,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="Device memory for the data, such as 2GiB. Default: an eighth of what is free.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="Timed runs per cell.")] = 5,
    device: options.DeviceOption = "best",
    save: options.ResultsOption = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", readable=False, help="Write an SVG; needs matplotlib."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Measure access patterns over data larger than device memory, under each placement strategy.

    Example: headrace oversubscribe --patterns grid-stride,zipf-rows --factors 1,1.5,2,4 --budget 2GiB --plot spans.svg
    """
    chosen = options.find_device(device)
    topic = results.topic_of(save, chosen) if save else "oversubscription"
    if plot:
        report_files.check(plot)
    budget_bytes = _budget(budget)
    wanted = _each(factors, "--factors", "numbers such as 0.5,1,2", float)
    ways = _words(strategies, _STRATEGIES)
    cells = len(_words(patterns, _PATTERNS)) * len(_words(operations, _OPERATIONS)) * len(ways) * len(wanted)
    if cells > _FEW_CELLS:
        memory = max(wanted) * (budget_bytes or chosen.memory().free_bytes / _BUDGET_SHARE)
        show.expect(cells * _CELL_SECONDS, memory)
    watch = quiet.Watch()
    with show.progress_bar("Oversubscription") as bar:
        found = headrace.measure.oversubscribe(
            chosen,
            patterns=_words(patterns, _PATTERNS),
            rows=_words(rows),
            operations=_words(operations, _OPERATIONS),
            strategies=ways,
            factors=wanted,
            page_bytes=[headrace.base.parse_bytes(word) for word in _words(page_sizes)],
            threads=_each(threads, "--threads", "whole numbers such as 128,256", options.count),
            synchronised=[value for value in (False, True) if synchronised in (["no", "both"], ["yes", "both"])[value]],
            budget_bytes=budget_bytes,
            blocks_per_multiprocessor=blocks,
            runs=runs,
            progress=_progress(bar),
        )
    shown = cells_of.as_dict(found)
    figures = cells_of.rows(shown)
    content = results.document(topic, chosen, figures, watch, **shown)
    if as_json:
        typer.echo(results.dumps(content), nl=False)
    else:
        _print(chosen, content, figures)
        show.print_quiet(show.stdout(), watch.stop())
    wrong = any(cell.get("verified") is False for cell in content["cells"])
    _write(content, save, plot, STATUS_INTERRUPTED if found.interrupted else STATUS_FAILURE if wrong else 0)


def _budget(text: str | None) -> int:
    if text is None:
        return 0
    found: int = headrace.base.parse_bytes(text)
    if found == 0:  # 0 would mean the default
        raise UsageError("a budget must be at least a page of 2 MiB, not 0")
    return found


def _write(content: Json, save: Path | None, plot: Path | None, status: int) -> None:
    def draw(path: Path) -> None:
        from headrace.report import span_plots  # noqa: PLC0415 - matplotlib is optional and slow to import

        span_plots.write(content["cells"], path)

    attempts = outputs.Attempts()
    if cells_of.measured(content["cells"]):
        attempts.write(save, lambda path: results.save(path, content))
        attempts.write(plot, draw)
    elif save or plot:
        attempts.failures.append(DataError("no cell has a figure: nothing to save or plot"))
    finish(attempts, status)
