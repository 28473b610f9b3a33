"""`headrace taxi`: the taxi benchmark, over a generated table or the city's own."""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as TextTable

from headrace import UsageError
from headrace.cli import options, show

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.fetch import Table
    from headrace.fetch.taxi import TaxiQuery

app = typer.Typer(help="The taxi benchmark: make its table, run its queries.", no_args_is_help=True)


@app.command("generate")
def generate(
    rows: Annotated[int, typer.Option("--rows", parser=options.count, metavar="COUNT", help="Such as 100M.")],
    out: Annotated[Path, typer.Option("--out", help="A .parquet or .arrow file.")],
    money: Annotated[
        str, typer.Option("--money", help="Type of amounts: decimal, or double as in the city's files.")
    ] = "decimal",
    seed: options.SeedOption = 1,
    threads: Annotated[int, typer.Option("--threads", min=0, help="0: one a core.")] = 0,
) -> None:
    """Write a table of taxi rides, the same for the same seed.

    Example: headrace taxi generate --rows 10M --out rides.parquet
    """
    from headrace.fetch import taxi  # noqa: PLC0415 - with pyarrow, which is slow to import

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=show.stderr(), transient=True) as progress:
        task = progress.add_task("rows", total=rows)
        taxi.generate(
            rows,
            out,
            seed=seed,
            money=money,
            threads=threads or None,
            on_rows=lambda done: progress.advance(task, done),
        )
    typer.echo(f"{out}: {rows:,} rows, {out.stat().st_size:,} bytes")


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="A .parquet or .arrow file: from taxi generate, or the city's own.")],
    device: options.DeviceOption = "best",
    fragments: Annotated[int, typer.Option("--fragments", min=1, help="Pieces that each column is cut into.")] = 4,
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="Times that each query runs, data on the device; the best counts.")
    ] = 5,
    threads: Annotated[int, typer.Option("--threads", min=0, help="Of DuckDB; 0: one a core.")] = 0,
    check: Annotated[bool, typer.Option(help="Compare every result with DuckDB's, and time it as well.")] = True,
    as_json: options.JsonOption = False,
) -> None:
    """Run the four queries, and check each result against DuckDB's.

    Example: headrace taxi run rides.parquet --device cuda:0
    """
    from headrace.fetch import Table, taxi  # noqa: PLC0415

    source = taxi.read(file, ["cab_type", "passenger_count", "pickup_datetime", "total_amount", "trip_distance"])
    table = Table.from_arrow(source, device, fragment_rows=max(1, -(-source.num_rows // fragments)))
    duck = _Duck(source, threads) if check else None
    results = [_measure(query, table, runs, duck) for query in taxi.QUERIES]
    content = {
        "file": str(file),
        "rows": source.num_rows,
        "device": options.find_device(device).name,
        "fragments": fragments,
    }
    if duck is not None:
        content["duckdb_threads"] = duck.threads
    if as_json:
        typer.echo(json.dumps(content | {"queries": results}, indent=2))
    else:
        _print(content, results)
    wrong = [one for one in results if one.get("difference")]
    if wrong:
        raise typer.Exit(1)


class _Duck:
    """DuckDB with the table in its memory."""

    def __init__(self, source: "pa.Table", threads: int) -> None:
        try:
            import duckdb  # noqa: PLC0415
        except ImportError:
            raise UsageError("results are checked against DuckDB: pip install duckdb, or give --no-check") from None
        self.threads = threads or os.cpu_count() or 1
        self._connection = duckdb.connect(config={"threads": self.threads})
        self._connection.register("given", source)
        self._connection.execute("CREATE TABLE taxi AS SELECT * FROM given")

    def run(self, sql: str) -> "pa.Table":
        return self._connection.sql(sql).to_arrow_table()


def _measure(query: "TaxiQuery", table: "Table", runs: int, duck: _Duck | None) -> dict[str, Any]:
    from headrace.fetch.compare import difference  # noqa: PLC0415

    ours = query.query(table)
    result, report = ours.run()  # brings the columns to the device
    seconds, kernels = [], []
    for _ in range(runs):
        start = time.perf_counter()
        result, report = ours.run()
        seconds.append(time.perf_counter() - start)
        kernels.append(report.seconds)
    measured: dict[str, Any] = {
        "query": query.name,
        "groups": result.num_rows,
        "grouping": report.groups,
        "read_bytes": report.read_bytes,
        "seconds": min(seconds),
        "kernel_seconds": min(kernels),
    }
    if duck is not None:
        theirs = duck.run(query.sql)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            theirs = duck.run(query.sql)
            times.append(time.perf_counter() - start)
        measured["duckdb_seconds"] = min(times)
        keys = [name for name in result.column_names if name not in {"count", "average"}]
        order = ["year", "count"] if ours.order else []
        measured["difference"] = difference(result, theirs, keys, order)
    return measured


def _print(content: dict[str, Any], results: list[dict[str, Any]]) -> None:
    console = show.stdout()
    console.print(
        f"{content['file']}: {content['rows']:,} rows in {content['fragments']} fragments on {content['device']}"
    )
    text = TextTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in ("query", "groups", "end to end", "kernel", "read", "DuckDB", "result"):
        text.add_column(heading, justify="left" if heading in {"query", "result"} else "right")
    for one in results:
        rate = one["read_bytes"] / one["kernel_seconds"] / 1e9 if one["kernel_seconds"] > 0 else 0.0
        duck = f"{one['duckdb_seconds'] * 1e3:.2f} ms" if "duckdb_seconds" in one else "-"
        verdict = "not checked" if "difference" not in one else one["difference"] or "equal to DuckDB's"
        text.add_row(
            one["query"],
            f"{one['groups']:,}",
            f"{one['seconds'] * 1e3:.2f} ms",
            f"{one['kernel_seconds'] * 1e3:.2f} ms",
            f"{rate:,.1f} GB/s",
            duck,
            verdict,
        )
    console.print(text)
