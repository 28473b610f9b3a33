"""`headrace fetch`: fetches columns of files to a device, and shows the rate at each level."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import headrace
from headrace import Error, UsageError, quiet
from headrace.cli import options, show
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.units import bytes_text

# importing pyarrow takes as long as importing all of Headrace, so other verbs do not do it
if TYPE_CHECKING:
    from headrace.fetch.measure import Run
    from headrace.fetch.table import Table

Json = dict[str, Any]


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _levels(text: str) -> list[str]:
    from headrace.fetch.measure import LEVELS  # noqa: PLC0415

    chosen = _names(text) or []
    wrong = [name for name in chosen if name not in LEVELS]
    if wrong:
        raise UsageError(f"'{wrong[0]}' is not a level: {', '.join(LEVELS)}")
    return chosen


def _bytes(text: str | None) -> int:
    return 0 if text is None else headrace.base.parse_bytes(text)


@contextmanager
def _bar(what: str) -> Iterator[Any]:
    """A progress bar that also shows the rate at each level."""
    from headrace.fetch import measure  # noqa: PLC0415

    with show.progress_bar(what) as bar:

        def move(progress: Any) -> None:  # noqa: ANN401
            bar(progress.chunks_done / max(1, progress.chunks))
            rates = (
                f"{name} {measure.rate(getattr(progress, name).bytes, progress.elapsed):.2f}" for name in measure.LEVELS
            )
            bar.describe(f"{what}: GB/s {', '.join(rates)}")

        yield move


def _print(console: Console, content: Json, run: "Run") -> None:
    console.print(
        f"{content['rows']:,} rows, {len(content['columns'])} columns, {content['fragments']} fragments, "
        f"{content['threads']} threads, {content['mode']}: {run.seconds:.3f} s",
        markup=False,
        soft_wrap=True,
    )
    table = show.plain_table()
    for heading in ("level", "bytes", "GB/s", "made", "found", "in use, of its budget"):
        table.add_column(heading, justify="left" if heading == "level" else "right", no_wrap=True)
    for name, level in run.levels.items():
        memory = content["memory"][name]
        table.add_row(
            name,
            f"{level['bytes']:,}",
            f"{level['gb_per_second']:.2f}",
            str(level["made"]),
            str(level["found"]),
            f"{bytes_text(memory['used_bytes'])} of {bytes_text(memory['budget_bytes'])}",
        )
    console.print(table)
    if "timeline" in content:
        drawn = content["timeline"]
        share = drawn["transfer_beside_materialise_seconds"] / max(drawn["transfer_seconds"], 1e-9)
        console.print(
            f"{drawn['windows']} windows in {drawn['seconds']:.3f} s, {share:.0%} of transfer time "
            f"overlapped with decoding\n"
            f"Wrote {drawn['file']}",
            markup=False,
            soft_wrap=True,
        )


def _measured(
    stored: "Table", names: list[str] | None, to: str, runs: int, cleared: list[str]
) -> "tuple[list[Run], bool, bool]":
    """Returns the runs, whether they streamed because the columns do not fit on the device, and whether Ctrl-C came.

    Raises a Ctrl-C before the end of the first run, because there is nothing to show.
    """
    from headrace.fetch import measure  # noqa: PLC0415
    from headrace.fetch.table import is_out_of_device_memory  # noqa: PLC0415

    measured: list[Run] = []
    streamed = False
    try:
        for number in range(runs):
            for level in cleared:
                stored.levels.clear(level)
            with _bar(f"Run {number + 1} of {runs}" if runs > 1 else "Fetching") as bar:
                try:
                    if not streamed:
                        # The fetch is not kept: otherwise its levels could not be emptied.
                        measured.append(measure.of(stored.fetch(names, to=to, progress=bar)))
                        continue
                except Error as error:
                    if not is_out_of_device_memory(error):
                        raise
                    show.stderr().print(
                        f"{error}: streaming the columns through the device instead", markup=False, soft_wrap=True
                    )
                    streamed = True
                measured.append(measure.of_stream(stored, names))
    except KeyboardInterrupt:
        if not measured:
            raise
        return measured, streamed, True
    return measured, streamed, False


def _draw(path: Path, stored: "Table", names: list[str] | None, window: int | None, cleared: list[str]) -> Json:
    """Runs once more with a kernel, and draws the timeline."""
    from headrace.fetch import timeline  # noqa: PLC0415

    for level in dict.fromkeys([*cleared, "cpu", "device"]):
        stored.levels.clear(level)
    one = timeline.record(stored, names, window)
    timeline.write(path, one)
    return {"file": str(path), "windows": one.windows, "dropped": one.dropped, **one.overlap()}


def fetch(
    table: Annotated[list[str], typer.Argument(help="Parquet or Arrow IPC: files, folders or patterns.")],
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", metavar="NAMES", help="Columns to fetch, such as a,b. Default: all that can be fetched."
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", help="Destination of the columns: cpu, cuda:0, best, or host (host memory only).")
    ] = "best",
    threads: Annotated[
        int, typer.Option("--threads", min=0, max=256, help="Number of threads; 0 means one per core, at most 16.")
    ] = 0,
    mode: Annotated[
        str, typer.Option("--mode", help="async overlaps reading and copying; sync waits for the copy of each chunk.")
    ] = "async",
    host: Annotated[
        str, typer.Option("--host-memory", help="Kind of host memory for the cpu level: pinned or pageable.")
    ] = "pinned",
    flush: Annotated[
        str,
        typer.Option(
            "--flush", metavar="BYTES", help="Flush threshold: copies start once this many bytes are collected."
        ),
    ] = "128MiB",
    disk_budget: Annotated[
        str | None, typer.Option("--disk-budget", metavar="BYTES", help="Limit for the page cache in bytes.")
    ] = None,
    cpu_budget: Annotated[
        str | None, typer.Option("--cpu-budget", metavar="BYTES", help="Limit for host memory.")
    ] = None,
    device_budget: Annotated[
        str | None, typer.Option("--device-budget", metavar="BYTES", help="Limit for device memory.")
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=1000, help="Number of runs; the table shows the median.")
    ] = 1,
    clear: Annotated[
        str,
        typer.Option("--clear", metavar="LEVELS", help="Levels to empty before each run: any of disk, cpu and device."),
    ] = "cpu,device",
    timeline: Annotated[
        Path | None,
        typer.Option(
            "--timeline",
            metavar="FILE",
            readable=False,
            help="Run once more with a kernel and write the timeline as .png, .svg or .json.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", min=1, help="With --timeline: number of row groups in flight. Default: an eighth of all."
        ),
    ] = None,
    verify_checksums: Annotated[
        bool, typer.Option("--verify-checksums", help="Verify the checksums of Parquet pages that have them.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Fetch columns of Parquet or Arrow IPC files to a device, and show the rate at each level.

    Columns that do not fit on the device together are streamed through it.

    Example: headrace fetch 'taxi-*.parquet' --columns cab_type,total_amount --to cuda:0
    """
    from headrace.fetch import measure  # noqa: PLC0415
    from headrace.fetch import timeline as lines  # noqa: PLC0415
    from headrace.fetch.table import Table  # noqa: PLC0415

    cleared = _levels(clear)
    device = "best" if to == "host" else options.find_device(to).name
    if timeline is None and window is not None:
        raise UsageError("--window needs --timeline")
    if timeline is not None:
        if to == "host":
            raise UsageError("--timeline needs columns on a device, not on the host")
        lines.check(timeline)
    levels = headrace.fetch.Levels(
        device,
        disk_bytes=_bytes(disk_budget),
        cpu_bytes=_bytes(cpu_budget),
        device_bytes=_bytes(device_budget),
        host=host,
    )
    how = headrace.fetch.FetchOptions(
        mode=mode, threads=threads, flush_bytes=headrace.base.parse_bytes(flush), verify_checksums=verify_checksums
    )
    level = "cpu" if to == "host" else "device"
    with Table.open(table, levels=levels, options=how) as stored:
        names = _names(columns)
        watch = quiet.Watch()
        measured, streamed, interrupted = _measured(stored, names, level, runs, cleared)
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
            "interrupted": interrupted,
            "quiet": watch.as_dict(),
        }
        if timeline is not None and not interrupted:
            content["timeline"] = _draw(timeline, stored, names, window, cleared)
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(show.stdout(), content, shown)
        show.print_quiet(show.stdout(), watch.stop())
    if interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
