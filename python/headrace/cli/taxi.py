"""`headrace taxi`: the taxi benchmark, on a generated table or on the city's own files."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headrace import UsageError, outputs, quiet, results
from headrace.cli import options, show
from headrace.cli.errors import STATUS_FAILURE, STATUS_INTERRUPTED, finish

# importing pyarrow takes as long as importing all of Headrace, so other verbs do not do it
if TYPE_CHECKING:
    from headrace.fetch.taxi_bench import Duck, Measured

app = typer.Typer(
    help="Generate or convert the table of the taxi benchmark, and run its queries.", no_args_is_help=True
)

_FEW_ROWS = 2_000_000
_ROWS_PER_SECOND = 500_000.0
_ROW_BYTES = 80.0

MoneyOption = Annotated[
    str, typer.Option("--money", help="Type of amounts: decimal, or double as in the city's files.")
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="Number of threads; 0 means one per core.")]
FragmentsOption = Annotated[
    int,
    typer.Option("--fragments", min=0, help="Number of row groups or record batches; 0 means 1,048,576 rows in each."),
]


@app.command("generate")
def generate(
    rows: Annotated[
        int, typer.Option("--rows", parser=options.count, metavar="COUNT", help="Number of rows, such as 100M.")
    ],
    out: Annotated[Path, typer.Option("--out", readable=False, help="Output file, .parquet or .arrow.")],
    money: MoneyOption = "decimal",
    seed: options.SeedOption = 1,
    threads: ThreadsOption = 0,
    fragments: FragmentsOption = 0,
) -> None:
    """Generate a table of taxi rides; the same seed gives the same table.

    Example: headrace taxi generate --rows 10M --out rides.parquet
    """
    from headrace.fetch import taxi  # noqa: PLC0415 - with pyarrow, which is slow to import

    if rows > _FEW_ROWS:
        taxi.check(out)
        show.expect(rows / _ROWS_PER_SECOND, rows * _ROW_BYTES, "disk")
    with _rows_written(rows) as on_rows:
        taxi.generate(
            rows,
            out,
            seed=seed,
            money=money,
            threads=threads or None,
            fragments=fragments or None,
            on_rows=on_rows,
        )
    typer.echo(f"{out}: {rows:,} rows, {out.stat().st_size:,} bytes")


@app.command("load")
def load(
    files: Annotated[
        list[Path], typer.Argument(readable=False, help="The city's own Parquet files of yellow and green cabs.")
    ],
    out: Annotated[Path, typer.Option("--out", readable=False, help="Output file, .parquet or .arrow.")],
    money: MoneyOption = "double",
    threads: ThreadsOption = 0,
    fragments: FragmentsOption = 0,
) -> None:
    """Convert the city's files, with any of their column names, to one table for the benchmark.

    Example: headrace taxi load yellow_tripdata_2015-*.parquet green_tripdata_2015-*.parquet --out rides.parquet
    """
    from headrace.fetch import taxi_files  # noqa: PLC0415

    city = [taxi_files.look(file) for file in files]
    rows = sum(file.rows for file in city)
    with _rows_written(rows) as on_rows:
        taxi_files.load(city, out, money=money, threads=threads or None, fragments=fragments or None, on_rows=on_rows)
    for file in city:
        if file.left_empty:
            empty = ", ".join(sorted(file.left_empty))
            show.stderr().print(f"{file.path}: left empty: {empty}", markup=False, soft_wrap=True)
    typer.echo(f"{out}: {rows:,} rows, {out.stat().st_size:,} bytes")


@app.command("run")
def run(
    file: Annotated[
        Path, typer.Argument(readable=False, help="A .parquet or .arrow file that taxi generate or taxi load wrote.")
    ],
    device: options.DeviceOption = "best",
    fragments: Annotated[
        str,
        typer.Option(
            "--fragments",
            metavar="COUNTS",
            help="Rewrite the table with each of these numbers of fragments, such as 4,256, and read those.",
        ),
    ] = "",
    threads: Annotated[
        str, typer.Option("--threads", metavar="COUNTS", help="Numbers of fetch threads to try.")
    ] = "1,8,16,24",
    modes: Annotated[str, typer.Option("--modes", metavar="NAMES", help="Fetch modes to try.")] = "sync,async",
    levels: Annotated[
        str,
        typer.Option(
            "--levels",
            metavar="NAMES",
            help="Where the columns are before a run: cold (files), warm (host memory), hot (device).",
        ),
    ] = "cold,warm,hot",
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=1000, help="Number of runs per cell; the median counts.")
    ] = 5,
    host: Annotated[
        str, typer.Option("--host-memory", help="Kind of host memory for the cpu level: pinned or pageable.")
    ] = "pinned",
    page_cache: Annotated[bool, typer.Option(help="Leave the files in the page cache for cold runs.")] = True,
    duckdb_threads: Annotated[
        int, typer.Option("--duckdb-threads", min=0, help="Number of DuckDB threads; 0 means one per core.")
    ] = 0,
    check: Annotated[bool, typer.Option(help="Compare every result with DuckDB's, and time DuckDB as well.")] = True,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", readable=False, help="Folder for the tables of --fragments. Default: a temporary one."
        ),
    ] = None,
    save: options.ResultsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Time the four queries over a stored table from each level, fetch and end to end, beside DuckDB.

    Without DuckDB, its figures are missing and the results are not checked.

    Example: headrace taxi run rides.parquet --device cuda:0 --fragments 4,256
    """
    from headrace.fetch import taxi_bench  # noqa: PLC0415

    chosen = options.find_device(device)
    settings = taxi_bench.Settings(
        chosen.name,
        threads=_numbers(threads, "--threads"),
        modes=_words(modes),
        levels=_words(levels),
        runs=runs,
        host=host,
        empty_page_cache=not page_cache,
    )
    topic = results.topic_of(save, chosen) if save else "taxi"
    with _tables(file, _numbers(fragments, "--fragments"), folder) as files:
        duck = _duck(file, duckdb_threads) if check else None
        watch = quiet.Watch()
        with show.progress_bar("Taxi") as bar:

            def move(share: float, what: str) -> None:
                bar(share)
                bar.describe(what)

            found = taxi_bench.measure(files, settings, duck, move)
    content = results.document(
        topic,
        chosen,
        taxi_bench.rows_of(found, chosen),
        watch,
        cells=found.as_json(),
        duckdb={name: {"file": times.file, "table": times.table} for name, times in found.duckdb.items()},
        memory_bytes_per_second=found.roof,
        interrupted=found.interrupted,
    )
    if as_json:
        typer.echo(results.dumps(content), nl=False)
    else:
        _print(file, found)
        show.print_quiet(show.stdout(), watch.stop())
    attempts = outputs.Attempts()
    attempts.write(save, lambda path: results.save(path, content))
    finish(attempts, STATUS_INTERRUPTED if found.interrupted else STATUS_FAILURE if found.wrong else 0)


@contextmanager
def _rows_written(rows: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, and the function that moves it."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=show.stderr(), transient=True) as progress:
        task = progress.add_task("rows", total=rows)
        yield lambda done: progress.advance(task, done)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str, name: str) -> list[int]:
    try:
        return [int(word) for word in _words(text)]
    except ValueError:
        raise UsageError(f"{name} takes whole numbers, such as 4,256, not {text}") from None


def _duck(file: Path, threads: int) -> "Duck | None":
    from headrace.fetch.taxi_bench import Duck  # noqa: PLC0415

    try:
        return Duck(file, threads)
    except UsageError as error:
        show.stderr().print(f"{error}. Its figures are missing, and nothing is checked", markup=False, soft_wrap=True)
        return None


@contextmanager
def _tables(file: Path, fragments: Sequence[int], folder: Path | None) -> Iterator[list[Path]]:
    """The file itself, or its table with each number of fragments."""
    from headrace.fetch import Table, taxi  # noqa: PLC0415

    with Table.open(file, taxi.QUERY_COLUMNS) as table:  # reports errors of the file before anything is written
        own = len(table.fragments)
    if not fragments:
        yield [file]
        return
    with tempfile.TemporaryDirectory(dir=folder) as made:
        files = []
        for count in fragments:
            files.append(file if count == own else Path(made) / f"{file.stem}-{count}{file.suffix}")
            if count != own:
                taxi.refragment(file, count, files[-1])
        yield files


def _print(file: Path, found: "Measured") -> None:
    console = show.stdout()
    console.print(f"{file}: {found.rows:,} rows", markup=False, soft_wrap=True)
    table = show.plain_table()
    left = {"query", "level", "mode", "DuckDB's"}
    for heading in ("query", "level", "parts", "mode", "threads", "fetching", "end to end", "kernel", "DuckDB's"):
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=heading != "DuckDB's")
    for cell in found.cells:
        verdict = "not checked" if not found.duckdb else cell.difference or "equal"
        table.add_row(
            cell.query,
            cell.level,
            str(cell.fragments),
            cell.mode,
            str(cell.threads),
            *(f"{median(seconds) * 1e3:.2f} ms" for seconds in (cell.fetching, cell.end_to_end, cell.kernel)),
            verdict + (f", in {cell.windows} windows" if cell.streamed else ""),
        )
    console.print(table)
    for name, times in found.duckdb.items():
        console.print(
            f"query {name}, DuckDB, {found.duckdb_threads} threads: {median(times.file) * 1e3:.2f} ms over the file, "
            f"{median(times.table) * 1e3:.2f} ms over a table of its own",
            markup=False,
            soft_wrap=True,
        )
