"""Tables from producers of Arrow data other than pyarrow."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from headrace import UsageError, _core
from headrace.fetch import Table, col, count
from headrace.fetch.arrow import as_table

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

ROWS = 10_000


@pytest.fixture(scope="module")
def rides() -> pl.DataFrame:
    random = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "cab": random.choice(["yellow", "green", "a name of more than twelve bytes"], ROWS),
            "passengers": random.integers(0, 5, ROWS),
            "fare": random.random(ROWS),
            "pickup": np.datetime64("2015-03-01", "us") + random.integers(0, 10**13, ROWS).astype("timedelta64[us]"),
        }
    )
    return frame.with_columns(pl.when(pl.col("passengers") > 3).then(None).otherwise(pl.col("fare")).alias("fare"))


class OnlyAStream:
    """An unknown producer that offers only a stream."""

    def __init__(self, source):
        self._source = source

    def __arrow_c_stream__(self, requested_schema=None):
        return self._source.__arrow_c_stream__(requested_schema)


def producers(rides):
    """The same rides from each producer."""
    connection = duckdb.connect()
    connection.register("rides", rides.to_arrow())
    table = rides.to_arrow()
    yield "Polars", rides
    yield "Polars, two chunks", pl.concat([rides[:4000], rides[4000:]], rechunk=False)
    yield "DuckDB", connection.sql("SELECT * FROM rides")
    yield "pyarrow's table", table
    yield "pyarrow's batch", table.combine_chunks().to_batches()[0]
    yield "pyarrow's stream", table.to_reader(max_chunksize=999)
    yield "anybody", OnlyAStream(table)


@pytest.mark.parametrize("fragment_rows", [None, 3333])
def test_queries_give_the_same_whoever_made_the_table(rides, fragment_rows):
    expected = duckdb.sql(
        "SELECT passengers, cab, count(*), sum(fare), max(year(pickup)) FROM rides GROUP BY ALL ORDER BY ALL"
    )
    expected = expected.fetchall()
    for name, source in producers(rides):
        with Table.from_arrow(source, "cpu", fragment_rows=fragment_rows) as table:
            grouped = table.group_by("passengers", "cab")
            found = (
                grouped.agg(count(), fares=col("fare").sum(), year=col("pickup").year().max()).to_arrow().to_pylist()
            )
        rows = sorted(tuple(row.values()) for row in found)
        assert [row[:3] + row[4:] for row in rows] == [row[:3] + row[4:] for row in expected], name
        for row, theirs in zip(rows, expected, strict=True):
            assert row[3] == pytest.approx(theirs[3]), name


def test_values_are_not_copied(rides):
    for column in ("passengers", "pickup"):
        theirs = rides[column].to_physical().to_numpy(allow_copy=False).ctypes.data
        assert as_table(rides)[column].chunk(0).buffers()[1].address == theirs


def test_what_is_no_arrow_data_is_refused():
    for source in ({"x": [1]}, [1, 2], None):
        with pytest.raises(UsageError, match=f"{type(source).__name__} provides no Arrow data"):
            Table.from_arrow(source, "cpu")
    with pytest.raises(UsageError, match="distinct names"):
        Table.from_arrow(pa.table([[1], [2]], ["x", "x"]), "cpu")
