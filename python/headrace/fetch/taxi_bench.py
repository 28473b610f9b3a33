"""The taxi benchmark on stored tables: fetching and end to end, from each level, compared with DuckDB."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import headrace
from headrace import _core, results
from headrace.errors import Error, UsageError
from headrace.fetch import taxi
from headrace.fetch.compare import difference
from headrace.fetch.table import Table

Json = dict[str, Any]

LEVELS = ("cold", "warm", "hot")
_EMPTIED = {"cold": ("device", "cpu"), "warm": ("device",), "hot": ()}
_SHARES = ("2", "3")  # queries whose share of the memory bandwidth is reported


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    device: str
    threads: Sequence[int] = (1, 8, 16, 24)
    modes: Sequence[str] = ("sync", "async")
    levels: Sequence[str] = LEVELS
    runs: int = 5
    host: str = "pinned"
    empty_page_cache: bool = False  # before cold runs

    def __post_init__(self) -> None:
        """Raises UsageError for an unknown level or an invalid number of threads."""
        wrong = next((name for name in self.levels if name not in LEVELS), None)
        if wrong is not None:
            raise UsageError(f"'{wrong}' is not a level to start from: {', '.join(LEVELS)}")
        for number in self.threads:
            if number < 1:
                raise UsageError(f"a fetch needs 1 thread or more, not {number}")


@dataclass
class Cell:
    """One query from one level with one way of fetching; seconds of each run."""

    query: str
    level: str
    fragments: int
    mode: str
    threads: int
    end_to_end: list[float] = field(default_factory=list)
    fetching: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)
    groups: int = 0
    grouping: str = ""
    read_bytes: int = 0
    windows: int = 1
    streamed: str = ""
    difference: str | None = None

    @property
    def seconds(self) -> float:
        """Median time, end to end."""
        return median(self.end_to_end)


@dataclass(frozen=True)
class DuckTimes:
    """DuckDB's seconds for a query: on the file, and on a table in its memory."""

    file: list[float]
    table: list[float]


class Duck:
    """DuckDB on the same file, and on its own table."""

    def __init__(self, file: Path, threads: int) -> None:
        """Raises UsageError if DuckDB is not installed."""
        try:
            import duckdb  # noqa: PLC0415
        except ImportError:
            raise UsageError("DuckDB is not installed: pip install duckdb, or give --no-check") from None
        self.threads = threads or os.cpu_count() or 1
        self._failure = duckdb.Error
        with self._failing():
            self._connection = duckdb.connect(config={"threads": self.threads})
            if file.suffix == ".parquet":
                quoted = str(file).replace("'", "''")
                self._connection.execute(f"CREATE VIEW stored AS SELECT * FROM read_parquet('{quoted}')")
            else:
                self._connection.register("stored", taxi.read(file))
            self._connection.execute(f"CREATE TABLE held AS SELECT {', '.join(taxi.QUERY_COLUMNS)} FROM stored")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Converts DuckDB's failures, such as a lack of memory, files or threads, to Error."""
        try:
            yield
        except self._failure as error:
            raise Error(f"DuckDB: {error}; --no-check runs without it") from None

    def result(self, query: taxi.TaxiQuery) -> pa.Table:
        """The result of one query."""
        with self._failing():
            return self._connection.sql(query.sql.replace("taxi", "held")).to_arrow_table()

    def times(self, query: taxi.TaxiQuery, runs: int) -> DuckTimes:
        """The times of `runs` runs, after one warm-up run."""

        def of(name: str) -> list[float]:
            sql = query.sql.replace("taxi", name)
            return [_timed(lambda: self._connection.sql(sql).to_arrow_table()) for _ in range(runs + 1)][1:]

        with self._failing():
            return DuckTimes(of("stored"), of("held"))


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@dataclass
class Measured:
    """All results of the benchmark."""

    rows: int
    cells: list[Cell]
    duckdb: dict[str, DuckTimes]
    duckdb_threads: int
    roof: float  # bytes per second at which a kernel reads device memory
    interrupted: bool = False

    def of(self, query: str, level: str) -> list[Cell]:
        """The cells of a query from a level."""
        return [cell for cell in self.cells if cell.query == query and cell.level == level]

    @property
    def wrong(self) -> list[Cell]:
        """Cells whose result differs from DuckDB's."""
        return [cell for cell in self.cells if cell.difference is not None]

    def as_json(self) -> list[Json]:
        """The cells as JSON."""
        return [asdict(cell) for cell in self.cells]


def measure(
    files: Sequence[Path], settings: Settings, duck: Duck | None, on_cell: Callable[[float, str], None]
) -> Measured:
    """Runs the queries on each file; the files hold the same table in different fragments.

    `on_cell` gets the share of the work done, and the next step. Ctrl-C ends the benchmark and keeps the cells so far,
    if there are any.
    """
    cells: list[Cell] = []
    levels = headrace.fetch.Levels(settings.device, host=settings.host)
    with Table.open(files[0], levels=levels) as table:
        rows = table.num_rows
    expected = {} if duck is None else {query.name: duck.result(query) for query in taxi.QUERIES}
    ways = [(mode, threads) for mode in settings.modes for threads in settings.threads]
    roof = headrace.measure.memory_rates(settings.device).device.read
    times: dict[str, DuckTimes] = {}
    threads_of_duck = 0 if duck is None else duck.threads
    try:
        _cells(files, settings, ways, levels, expected, cells, on_cell)
        times = {} if duck is None else {query.name: duck.times(query, settings.runs) for query in taxi.QUERIES}
    except KeyboardInterrupt:
        if not cells:
            raise
        return Measured(rows, cells, times, threads_of_duck, roof, interrupted=True)
    return Measured(rows, cells, times, threads_of_duck, roof)


def _cells(
    files: Sequence[Path],
    settings: Settings,
    ways: list[tuple[str, int]],
    levels: "_core.Levels",
    expected: dict[str, pa.Table],
    cells: list[Cell],
    on_cell: Callable[[float, str], None],
) -> None:
    """Adds cells."""
    for at, file in enumerate(files):
        for number, (mode, threads) in enumerate(ways):
            on_cell((at + number / len(ways)) / len(files), f"{file.name}, {mode}, {threads} threads")
            how = _core.FetchOptions(mode=mode, threads=threads)
            with Table.open(file, levels=levels, options=how) as table:
                for query in taxi.QUERIES:
                    for level in settings.levels:
                        # Data already on the device is not fetched, so the way of fetching does not matter.
                        if level == "hot" and number != len(ways) - 1:
                            continue
                        cells.append(_cell(query, table, level, settings, expected.get(query.name)))


def _cell(query: taxi.TaxiQuery, table: Table, level: str, settings: Settings, expected: pa.Table | None) -> Cell:
    ours = query.query(table)
    options = table.core.options
    cell = Cell(query.name, level, len(table.fragments), options.mode, options.threads)
    result, _ = ours.run()  # statistics of the columns remain known afterwards, and slabs stay allocated
    for _ in range(settings.runs):
        for emptied in _EMPTIED[level]:
            table.levels.clear(emptied)
        if level == "cold" and settings.empty_page_cache:
            table.levels.clear("disk")
        started = time.perf_counter()
        result, report = ours.run()
        cell.end_to_end.append(time.perf_counter() - started)
        cell.fetching.append(report.fetch_seconds)
        cell.kernel.append(report.seconds)
        cell.grouping, cell.read_bytes = report.groups, report.read_bytes
        cell.windows, cell.streamed = report.windows, report.streamed
    cell.groups = result.num_rows
    if expected is not None:
        keys = [name for name in result.column_names if name not in {"count", "average"}]
        cell.difference = difference(result, expected, keys, ["year", "count"] if ours.order else [])
    return cell


def _about(cell: Cell, found: Measured) -> Json:
    return {
        "rows": found.rows,
        "fragments": cell.fragments,
        "groups": cell.groups,
        "grouping": cell.grouping,
        "windows": cell.windows,
        "verified": bool(found.duckdb) and cell.difference is None,
    }


def _hot_rows(found: Measured) -> list[Json]:
    rows = []
    for query in taxi.QUERIES:
        cells = found.of(query.name, "hot")
        if not cells:
            continue
        best = min(cells, key=lambda cell: cell.seconds)
        least = best.read_bytes / found.roof
        about = {**_about(best, found), "kernel_ms": median(best.kernel) * 1e3, "read_bytes": best.read_bytes}
        milliseconds = [seconds * 1e3 for seconds in best.end_to_end]
        rows.append(
            results.row(f"taxi.hot.q{query.name}", milliseconds, "ms", (least * 1e3, "memory bandwidth"), about)
        )
        if query.name in _SHARES:
            about["end_to_end_share"] = least / best.seconds
            shares = [least / seconds for seconds in best.kernel if seconds > 0]
            rows.append(
                results.row(f"taxi.hot.q{query.name}.share", shares, "fraction", (1.0, "memory bandwidth"), about)
            )
    return rows


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def _duckdb_rows(found: Measured, device: "_core.Device") -> list[Json]:
    """DuckDB's time divided by ours, warm, end to end: the mean over the queries, with the overall fastest way."""
    warm = [cell for cell in found.cells if cell.level == "warm"]
    if not found.duckdb or not warm:
        return []
    ways = sorted({(cell.fragments, cell.mode, cell.threads) for cell in warm})
    by_way = {way: [cell for cell in warm if (cell.fragments, cell.mode, cell.threads) == way] for way in ways}
    best = min(ways, key=lambda way: _mean([cell.seconds for cell in by_way[way]]))
    cells = by_way[best]

    def ratios(of: Callable[[DuckTimes], list[float]]) -> list[float]:
        runs = range(len(cells[0].end_to_end))
        return [_mean([median(of(found.duckdb[cell.query])) / cell.end_to_end[run] for cell in cells]) for run in runs]

    about = {
        "rows": found.rows,
        "fragments": best[0],
        "mode": best[1],
        "threads": best[2],
        "duckdb_threads": found.duckdb_threads,
        "over_duckdb_table": median(ratios(lambda times: times.table)),
        "ours_ms": [cell.seconds * 1e3 for cell in cells],
        "duckdb_ms": [median(found.duckdb[cell.query].file) * 1e3 for cell in cells],
        "verified": not found.wrong,
    }
    identity = "taxi.cpu.vs_duckdb" if device.kind.name == "cpu" else "taxi.warm.vs_duckdb"
    return [results.row(identity, ratios(lambda times: times.file), "ratio", None, about)]


def _gain_rows(found: Measured) -> list[Json]:
    """Fetching, cold: time of the slowest way, one thread that waits for each copy, divided by those of the others."""
    rows = []
    by_threads: dict[int, list[list[float]]] = {}
    fragments = max((cell.fragments for cell in found.cells), default=0)
    for query in taxi.QUERIES:
        cells = [cell for cell in found.of(query.name, "cold") if cell.fragments == fragments]
        base = next((cell for cell in cells if (cell.mode, cell.threads) == ("sync", 1)), None)
        for cell in cells:
            if base is None or cell.mode != "async":
                continue
            gains = [median(base.fetching) / seconds for seconds in cell.fetching if seconds > 0]
            by_threads.setdefault(cell.threads, []).append(gains)
            about = {**_about(cell, found), "fetching_ms": median(cell.fetching) * 1e3}
            rows.append(
                results.row(f"taxi.fetch.q{query.name}.threads{cell.threads:02d}.gain", gains, "ratio", None, about)
            )
    threads = max(by_threads, default=0)
    of_queries = by_threads.get(threads, [])
    if len(of_queries) < len(taxi.QUERIES):
        return rows
    about = {"rows": found.rows, "fragments": fragments, "threads": threads, "verified": not found.wrong}
    best = max(of_queries, key=median)
    middle = [median(run) for run in zip(*of_queries, strict=False)]
    rows.append(results.row("fetch.async.best", best, "ratio", None, about))
    rows.append(results.row("fetch.async.median", middle, "ratio", None, about))
    return rows


def rows_of(found: Measured, device: "_core.Device") -> list[Json]:
    """The figures under the ids of the results files, without those that were not measured."""
    return [*_hot_rows(found), *_duckdb_rows(found, device), *_gain_rows(found)]
