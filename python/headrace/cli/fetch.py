"""`headrace fetch`: columns of files to a device, and how fast they came through each level."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console

import headrace
from headrace import Error, UsageError
from headrace.cli import options, show
from headrace.fetch import measure
from headrace.fetch.measure import LEVELS, Run
from headrace.fetch.table import Table, is_out_of_device_memory

Json = dict[str, Any]


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _levels(text: str) -> list[str]:
    chosen = _names(text) or []
    wrong = [name for name in chosen if name not in LEVELS]
    if wrong:
        raise UsageError(f"'{wrong[0]}' is not a level: {', '.join(LEVELS)}")
    return chosen


def _bytes(text: str | None) -> int:
    return 0 if text is None else headrace.parse_bytes(text)


@contextmanager
def _bar(what: str) -> Iterator[Any]:
    """A bar that says beside itself how fast columns come through each level."""
    with show.progress_bar(what) as bar:

        def move(progress: Any) -> None:  # noqa: ANN401
            bar(progress.chunks_done / max(1, progress.chunks))
            rates = (f"{name} {measure.rate(getattr(progress, name).bytes, progress.elapsed):.2f}" for name in LEVELS)
            bar.describe(f"{what}: GB/s {', '.join(rates)}")

        yield move


def _print(console: Console, content: Json, run: Run) -> None:
    console.print(
        f"{content['rows']:,} rows, {len(content['columns'])} columns, {content['fragments']} fragments, "
        f"{content['threads']} threads, {content['mode']}: {run.seconds:.3f} s",
        markup=False,
        soft_wrap=True,
    )
    table = show.plain_table()
    for heading in ("level", "bytes", "GB/s", "made", "found", "in use, of its budget"):
        table.add_column(heading, justify="left" if heading == "level" else "right", no_wrap=True)
    for name in LEVELS:
        level = run.levels[name]
        memory = content["memory"][name]
        table.add_row(
            name,
            f"{level['bytes']:,}",
            f"{level['gb_per_second']:.2f}",
            str(level["made"]),
            str(level["found"]),
            f"{memory['used_bytes'] / (1 << 20):,.0f} of {memory['budget_bytes'] / (1 << 20):,.0f} MiB",
        )
    console.print(table)


def fetch(
    table: Annotated[list[str], typer.Argument(help="Parquet or Arrow IPC: files, folders, patterns.")],
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="NAMES", help="Such as a,b; default: all that can be fetched.")
    ] = None,
    to: Annotated[str, typer.Option("--to", help="cpu, cuda:0, best, or host: no further than host memory.")] = "best",
    threads: Annotated[int, typer.Option("--threads", min=0, max=256, help="0: one a core, 16 at most.")] = 0,
    mode: Annotated[str, typer.Option("--mode", help="async, or sync: wait for the copy of each chunk.")] = "async",
    host: Annotated[str, typer.Option("--host-memory", help="The CPU level is pinned or pageable memory.")] = "pinned",
    flush: Annotated[str, typer.Option("--flush", metavar="BYTES", help="Copies go once so much is there.")] = "128MiB",
    disk_budget: Annotated[str | None, typer.Option("--disk-budget", metavar="BYTES", help="Page cache.")] = None,
    cpu_budget: Annotated[str | None, typer.Option("--cpu-budget", metavar="BYTES", help="Host memory.")] = None,
    device_budget: Annotated[str | None, typer.Option("--device-budget", metavar="BYTES")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="The median is shown.")] = 1,
    clear: Annotated[
        str, typer.Option("--clear", metavar="LEVELS", help="Emptied before each run: of disk, cpu, device.")
    ] = "cpu,device",
    as_json: options.JsonOption = False,
) -> None:
    """Fetch columns of Parquet or Arrow IPC files to a device, and show the rate at each level.

    Columns that do not fit the device together are streamed through it.

    Example: headrace fetch 'taxi-*.parquet' --columns cab_type,total_amount --to cuda:0
    """
    cleared = _levels(clear)
    device = "best" if to == "host" else options.find_device(to).name
    levels = headrace.Levels(
        device,
        disk_bytes=_bytes(disk_budget),
        cpu_bytes=_bytes(cpu_budget),
        device_bytes=_bytes(device_budget),
        host=host,
    )
    how = headrace.FetchOptions(mode=mode, threads=threads, flush_bytes=headrace.parse_bytes(flush))
    level = "cpu" if to == "host" else "device"
    with Table.open(table, levels=levels, options=how) as stored:
        names = _names(columns)
        measured: list[Run] = []
        streamed = False
        for number in range(runs):
            for name in cleared:
                levels.clear(name)
            with _bar(f"Run {number + 1} of {runs}" if runs > 1 else "Fetching") as bar:
                try:
                    if not streamed:
                        # Not kept: what it holds could not be cleared.
                        measured.append(measure.of(stored.fetch(names, to=level, progress=bar)))
                        continue
                except Error as error:
                    if not is_out_of_device_memory(error):
                        raise
                    show.stderr().print(f"{error}: streaming through it instead", markup=False, soft_wrap=True)
                    streamed = True
                measured.append(measure.of_stream(stored, names))
        middle = median(run.seconds for run in measured)
        shown = min(measured, key=lambda run: abs(run.seconds - middle))
        content: Json = {
            "files": [Path(name).name for name in stored.files],
            "file_bytes": stored.file_bytes,
            "rows": stored.num_rows,
            "fragments": len(stored.fragments),
            "columns": shown.columns,
            "device": levels.device.name,
            "to": level,
            "host_memory": host,
            "mode": mode,
            "threads": shown.threads,
            "streamed": streamed,
            "cleared": cleared,
            "seconds": shown.seconds,
            "levels": shown.levels,
            "memory": measure.memory_of(levels),
            "runs": [run.seconds for run in measured],
        }
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(show.stdout(), content, shown)
