"""The taxi benchmark: a table of rides like New York's, and four queries on it."""

import collections
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headrace import outputs
from headrace.errors import DataError, MissingFileError, UsageError
from headrace.fetch.expressions import col, count
from headrace.fetch.query import Query
from headrace.fetch.table import Table

CHUNK_ROWS = 1 << 20
_FIRST_DAY = np.datetime64("2009-01-01", "us")
_DAYS = 2556  # until the end of 2015
_MICROSECONDS = 1_000_000
# Relative number of rides in each hour of a day, from midnight.
_HOURS = np.array([39, 29, 22, 16, 12, 10, 21, 36, 45, 46, 45, 47, 49, 49, 51, 49, 43, 51, 61, 64, 61, 60, 58, 49])
_PASSENGERS = (np.arange(10), [0.004, 0.693, 0.138, 0.041, 0.02, 0.06, 0.0435, 0.0002, 0.0002, 0.0001])
_PAYMENTS = (np.arange(1, 6), [0.53, 0.46, 0.005, 0.0045, 0.0005])
_RATES = (np.array([1, 2, 3, 4, 5, 6, 99]), [0.973, 0.02, 0.0015, 0.0005, 0.004, 0.0005, 0.0005])

# The columns that the queries read.
QUERY_COLUMNS = ("cab_type", "passenger_count", "pickup_datetime", "total_amount", "trip_distance")

# Kinds of cabs, in the order of the dictionary.
CABS = ("yellow", "green")

_MONEY = {"decimal": pa.decimal128(14, 2), "double": pa.float64()}


def schema(money: str = "decimal") -> pa.Schema:
    """Columns named as in the benchmark and the city's files; money is "decimal" or, as in those files, "double"."""
    if money not in _MONEY:
        raise UsageError(f"money must be decimal or double, not {money}")
    dollars = _MONEY[money]
    return pa.schema(
        [
            ("cab_type", pa.dictionary(pa.int32(), pa.string())),
            ("vendor_id", pa.int64()),
            ("pickup_datetime", pa.timestamp("us")),
            ("dropoff_datetime", pa.timestamp("us")),
            ("passenger_count", pa.int64()),
            ("trip_distance", pa.float64()),
            ("rate_code_id", pa.int64()),
            ("store_and_fwd_flag", pa.bool_()),
            ("pickup_location_id", pa.int32()),
            ("dropoff_location_id", pa.int32()),
            ("payment_type", pa.int64()),
            ("fare_amount", dollars),
            ("extra", dollars),
            ("mta_tax", dollars),
            ("tip_amount", dollars),
            ("tolls_amount", dollars),
            ("improvement_surcharge", dollars),
            ("total_amount", dollars),
        ]
    )


def chunk(number: int, rows: int, *, seed: int = 1, money: str = "decimal") -> pa.RecordBatch:
    """Rides of one chunk of the table, determined by number, seed and rows."""
    wanted = schema(money)
    random = np.random.default_rng([seed, number])
    pickup = _pickups(random, rows)
    miles = np.round(np.minimum(random.lognormal(0.55, 0.85, rows), 200), 2)
    minutes = np.clip(miles * random.lognormal(1.35, 0.35, rows), 1, 600)
    cents = _cents(random, miles, minutes)
    columns: dict[str, Any] = {
        "cab_type": pa.DictionaryArray.from_arrays(
            random.choice(2, rows, p=[0.94, 0.06]).astype(np.int32), pa.array(CABS)
        ),
        "vendor_id": random.integers(1, 3, rows),
        "pickup_datetime": pickup,
        "dropoff_datetime": pickup + (minutes * 60 * _MICROSECONDS).astype("timedelta64[us]"),
        "passenger_count": pa.array(
            random.choice(_PASSENGERS[0], rows, p=_PASSENGERS[1]), mask=random.random(rows) < 0.001
        ),
        "trip_distance": miles,
        "rate_code_id": random.choice(_RATES[0], rows, p=_RATES[1]),
        "store_and_fwd_flag": pa.array(random.random(rows) < 0.008, mask=random.random(rows) < 0.3),
        "pickup_location_id": _locations(random, rows),
        "dropoff_location_id": _locations(random, rows),
        "payment_type": random.choice(_PAYMENTS[0], rows, p=_PAYMENTS[1]),
    }
    columns |= {name: _dollars(value, money) for name, value in cents.items()}
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in wanted], schema=wanted)


def generate(
    rows: int,
    out: Path,
    *,
    seed: int = 1,
    money: str = "decimal",
    threads: int | None = None,
    fragments: int | None = None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> None:
    """Writes a table of `rows` rides to a .parquet or .arrow file; the number of threads does not affect it.

    Row groups or record batches have CHUNK_ROWS rows, or are such that there are `fragments` of them. `on_rows` gets
    the number of rows written since its last call. An unfinished file is never visible.

    Raises:
        UsageError: for an invalid number of rows or fragments, kind of money or kind of file.
    """
    if rows < 0:
        raise UsageError(f"a table must have 0 rows or more, not {rows}")
    sizes = [min(CHUNK_ROWS, rows - first) for first in range(0, rows, CHUNK_ROWS)]
    work = [partial(chunk, number, size, seed=seed, money=money) for number, size in enumerate(sizes)]
    write(out, schema(money), rows, work, threads=threads, fragments=fragments, on_rows=on_rows)


def write(
    out: Path,
    wanted: pa.Schema,
    rows: int,
    work: Sequence[Callable[[], pa.RecordBatch]],
    *,
    threads: int | None = None,
    fragments: int | None = None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> None:
    """Writes `rows` rows that the work yields, in order, with several threads; otherwise as generate().

    Raises:
        UsageError: for an invalid number of fragments or kind of file. Exceptions of the work are passed on.
    """
    if fragments is not None and fragments < 1:
        raise UsageError(f"a table must have 1 fragment or more, not {fragments}")
    kind = _kind(out)
    count_ = threads or os.cpu_count() or 1
    each = CHUNK_ROWS if fragments is None else max(1, -(-rows // fragments))
    with (
        outputs.replacing(out) as staged,
        _writer(staged, kind, wanted) as writer,
        ThreadPoolExecutor(count_) as pool,
    ):
        for table in _cut(_in_order(pool, work, count_), wanted, each):
            writer.write_table(table, each)
            on_rows(table.num_rows)


def refragment(file: Path, fragments: int, out: Path) -> None:
    """Rewrites the columns of a file that the queries read, in this number of fragments.

    Raises:
        UsageError: for an invalid number of fragments; and as read() does.
    """
    if fragments < 1:
        raise UsageError(f"a table must have 1 fragment or more, not {fragments}")
    table = read(file, list(QUERY_COLUMNS))
    with outputs.replacing(out) as staged, _writer(staged, _kind(out), table.schema) as writer:
        writer.write_table(table.combine_chunks(), max(1, -(-table.num_rows // fragments)))


def read(file: Path, columns: list[str] | None = None) -> pa.Table:
    """Reads a .parquet or .arrow file as a table.

    Raises:
        DataError: naming the file, when its content does not match its name.
        UsageError: for a missing file, or another file extension.
    """
    kind = _kind(file)
    if not file.exists():
        raise MissingFileError(f"there is no file {file}")
    try:
        if kind == ".parquet":
            return pq.read_table(file, columns=columns, read_dictionary=["cab_type"])
        with pa.memory_map(str(file)) as memory:
            table = pa.ipc.open_file(memory).read_all()
            return table if columns is None else table.select(columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{file}: {error}") from None


@dataclass(frozen=True)
class TaxiQuery:
    """One of the four queries: in SQL on a table `taxi`, and as a Headrace query."""

    name: str
    sql: str
    query: Callable[[Table], Query]


def _by_passengers_and_year(table: Table) -> Query:
    return table.group_by("passenger_count", year=col("pickup_datetime").year()).agg(count())


def _by_distance(table: Table) -> Query:
    keys = {"year": col("pickup_datetime").year(), "distance": col("trip_distance").cast("int32")}
    grouped = table.group_by("passenger_count", **keys).agg(count())
    return grouped.order_by(("year", "ascending"), ("count", "descending"))


QUERIES = (
    TaxiQuery(
        "1",
        "SELECT cab_type, count(*) AS count FROM taxi GROUP BY cab_type",
        lambda table: table.group_by("cab_type").agg(count()),
    ),
    TaxiQuery(
        "2",
        "SELECT passenger_count, avg(total_amount) AS average FROM taxi GROUP BY passenger_count",
        lambda table: table.group_by("passenger_count").agg(average=col("total_amount").avg()),
    ),
    TaxiQuery(
        "3",
        "SELECT passenger_count, year(pickup_datetime) AS year, count(*) AS count FROM taxi GROUP BY ALL",
        _by_passengers_and_year,
    ),
    TaxiQuery(
        "4",
        "SELECT passenger_count, year(pickup_datetime) AS year, CAST(trip_distance AS INTEGER) AS distance, "
        "count(*) AS count FROM taxi GROUP BY ALL ORDER BY year, count DESC",
        _by_distance,
    ),
)


def _pickups(random: np.random.Generator, rows: int) -> NDArray[Any]:
    """Pickup times: rides become fewer over the years, and hours differ in how busy they are."""
    days = np.minimum(random.triangular(-_DAYS * 0.2, _DAYS * 0.3, _DAYS * 1.25, rows) % _DAYS, _DAYS - 1).astype(
        np.int64
    )
    hours = random.choice(24, rows, p=_HOURS / _HOURS.sum())
    seconds = days * 86_400 + hours * 3600 + random.integers(0, 3600, rows)
    return np.asarray(_FIRST_DAY + (seconds * _MICROSECONDS).astype("timedelta64[us]"))


def _locations(random: np.random.Generator, rows: int) -> NDArray[Any]:
    """265 zones, some of them far busier than others."""
    return np.asarray(1 + (random.beta(1.2, 3.0, rows) * 265).astype(np.int32) * 97 % 265, np.int32)


def _cents(random: np.random.Generator, miles: NDArray[Any], minutes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Amounts of money in cents; the total is the sum of the others. A few rides are refunded."""
    rows = len(miles)
    fare = (250 + 50 * np.round(miles * 5 * 0.8 + minutes * 0.3)).astype(np.int64)
    sign = np.where(random.random(rows) < 0.0005, -1, 1)
    tip = np.where(random.random(rows) < 0.5, np.round(fare * random.uniform(0.1, 0.3, rows)), 0).astype(np.int64)
    parts = {
        "fare_amount": fare * sign,
        "extra": random.choice(np.array([0, 50, 100]), rows, p=[0.55, 0.3, 0.15]) * sign,
        "mta_tax": np.full(rows, 50) * sign,
        "tip_amount": tip * sign,
        "tolls_amount": np.where(random.random(rows) < 0.05, 554, 0) * sign,
        "improvement_surcharge": np.full(rows, 30) * sign,
    }
    return parts | {"total_amount": np.sum(list(parts.values()), axis=0)}


def _dollars(cents: NDArray[Any], money: str) -> pa.Array:
    if money == "double":
        return pa.array(cents / 100)
    # 128 bits of cents: the low word, then the sign.
    words = np.stack([cents.astype(np.int64), cents.astype(np.int64) >> 63], axis=1)
    return pa.Array.from_buffers(_MONEY["decimal"], len(cents), [None, pa.py_buffer(np.ascontiguousarray(words))])


def _kind(file: Path) -> str:
    if file.suffix not in {".parquet", ".arrow"}:
        raise UsageError(f"{file} must be a .parquet or an .arrow file")
    return file.suffix


def check(out: Path) -> None:
    """Checks that a table can be written to this path.

    Raises:
        UsageError: for a name that does not end in .parquet or .arrow.
        SystemError: when the file cannot be written.
    """
    _kind(out)
    outputs.check(out)


def _writer(out: Path, kind: str, wanted: pa.Schema) -> Any:  # noqa: ANN401
    if kind == ".parquet":
        return pq.ParquetWriter(out, wanted, compression="snappy")
    return pa.ipc.new_file(str(out), wanted)


def _cut(batches: Iterator[pa.RecordBatch], wanted: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Tables of this number of rows; the last may have fewer."""
    held: list[pa.RecordBatch] = []
    count_ = 0
    for batch in batches:
        held.append(batch)
        count_ += batch.num_rows
        while count_ >= rows:
            table = pa.Table.from_batches(held, wanted).combine_chunks()
            yield table.slice(0, rows)
            held = table.slice(rows).to_batches()
            count_ -= rows
    if count_ > 0:
        yield pa.Table.from_batches(held, wanted).combine_chunks()


def _in_order(
    pool: ThreadPoolExecutor, work: Sequence[Callable[[], pa.RecordBatch]], ahead: int
) -> Iterator[pa.RecordBatch]:
    """Results of the work in order, with some of it in flight."""
    waiting: collections.deque[Future[pa.RecordBatch]] = collections.deque()
    for one in work:
        waiting.append(pool.submit(one))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
