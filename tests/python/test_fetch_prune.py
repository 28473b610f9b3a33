"""Row groups that statistics exclude: never one with a row of the result, which always equals DuckDB's."""

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import UsageError, _core
from headrace.fetch import Table, col, count

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

ROWS = 1000
GROUP_ROWS = 100
NOON = datetime.datetime(2024, 1, 1, 12)  # noqa: DTZ001
NAN = float("nan")


def some_none(values, every=7):
    return [None if number % every == 3 else value for number, value in enumerate(values)]


def ascending() -> pa.Table:
    """Ascending columns, so that each row group has its own range; row group 4 has no value, or no number."""
    numbers = range(ROWS)
    none_in_4 = [None if 400 <= number < 500 else number for number in numbers]
    reals = [number / 4 for number in numbers]
    reals[410:420] = [NAN] * 10  # beside numbers
    reals[500:600] = [NAN] * 100
    reals[0], reals[1] = -0.0, 0.0
    days = [NOON + datetime.timedelta(hours=number) for number in numbers]
    return pa.table(
        {
            "row": pa.array(numbers, pa.int64()),
            "small": pa.array([number // 10 - 50 for number in numbers], pa.int8()),
            "unsigned": pa.array([number * 4_290_000 for number in numbers], pa.uint32()),
            "huge": pa.array([number + (2**63 if number >= 700 else 0) for number in numbers], pa.uint64()),
            "gaps": pa.array(none_in_4, pa.int32()),
            "holes": pa.array(some_none(numbers), pa.int32()),
            "real": pa.array(reals, pa.float64()),
            "single": pa.array(np.array(reals, np.float32)),
            "price": pa.array([Decimal(number - 500) / 100 for number in numbers], pa.decimal128(12, 2)),
            "wide": pa.array([Decimal(number - 500) for number in numbers], pa.decimal128(30, 3)),
            "flag": pa.array([number >= 500 for number in numbers]),
            "day": pa.array([one.date() for one in days], pa.date32()),
            "second": pa.array(days, pa.timestamp("s")),
            "milli": pa.array(days, pa.timestamp("ms")),
            "nano": pa.array(days, pa.timestamp("ns", "UTC")),
            "time": pa.array([datetime.time(number % 24) for number in numbers], pa.time64("us")),
            "text": pa.array([f"{number:04}" + "é" * (number % 3) for number in numbers]),
            "long": pa.array([f"{number:04}" + "x" * 300 for number in numbers]),
            "kind": pa.array([f"k{number // 100}" for number in numbers]).dictionary_encode(),
        }
    )


# As SQL, as an expression, and the number of row groups left of ten with statistics (None: unspecified).
FILTERS = [
    ("row < 250", col("row") < 250, 3),
    ("row <= 300", col("row") <= 300, 4),
    ("row > 899", col("row") > 899, 1),
    ("row >= 899", col("row") >= 899, 2),
    ("row = 500", col("row") == 500, 1),
    ("row <> 500", col("row") != 500, 10),
    ("row BETWEEN 150 AND 350", col("row").between(150, 350), 3),
    ("row IN (5, 905, NULL)", col("row").is_in([5, 905, None]), 2),
    ("row > 99999", col("row") > 99999, 0),
    ("NOT (row < 900)", ~(col("row") < 900), 1),
    ("row < 100 OR row >= 900", (col("row") < 100) | (col("row") >= 900), 2),
    ("row >= 100 AND small < -30", (col("row") >= 100) & (col("small") < -30), 1),
    ("row < 120.5", col("row") < 120.5, None),
    ("row < 120.50", col("row") < Decimal("120.50"), 2),
    ("row + 1 < 100", col("row") + 1 < 100, 10),
    ("unsigned > 3000000000", col("unsigned") > 3_000_000_000, 3),
    ("huge >= 9223372036854775808", col("huge") >= 2**63, None),
    ("huge < 100", (col("row") < 700) & (col("huge") < 100), None),
    ("gaps IS NULL", col("gaps").is_null(), 1),
    ("gaps IS NOT NULL", col("gaps").is_not_null(), 9),
    ("gaps > 350", col("gaps") > 350, 6),
    ("NOT (gaps > 350)", ~(col("gaps") > 350), 4),
    ("holes IS NULL AND row < 50", col("holes").is_null() & (col("row") < 50), 1),
    ("holes IS NOT NULL AND row < 50", col("holes").is_not_null() & (col("row") < 50), 1),
    ("holes = NULL", col("holes") == None, 0),  # noqa: E711
    ("real < 30", col("real") < 30, None),
    ("real > 200", col("real") > 200.0, 10),  # any row group may contain NaN, which is above all values
    ("real = 'nan'::DOUBLE", col("real") == NAN, 10),
    ("real <= 0", col("real") <= 0.0, None),
    ("real = -0.0", col("real") == -0.0, None),
    ("single < 20.25", col("single") < 20.25, None),
    ("price < -4.5", col("price") < Decimal("-4.5"), 1),
    ("price >= 4", col("price") >= 4, 1),
    ("price = 0.005", col("price") == Decimal("0.005"), None),
    ("wide > 449.5", col("wide") > Decimal("449.5"), 1),
    ("flag", col("flag"), 5),
    ("NOT flag", ~col("flag"), 5),
    ("flag = true AND row < 500", (col("flag") == True) & (col("row") < 500), 0),  # noqa: E712
    ("day < DATE '2024-01-05'", col("day") < datetime.date(2024, 1, 5), 1),
    ("day >= TIMESTAMP '2024-02-10 00:00:00'", col("day") >= datetime.datetime(2024, 2, 10), None),  # noqa: DTZ001
    ("second < DATE '2024-01-05'", col("second") < datetime.date(2024, 1, 5), None),
    ("milli < DATE '2024-01-05'", col("milli") < datetime.date(2024, 1, 5), 1),
    ("milli = TIMESTAMP '2024-01-05 13:00:00'", col("milli") == datetime.datetime(2024, 1, 5, 13), 1),  # noqa: DTZ001
    ("nano > TIMESTAMP '2024-02-10 00:00:00'", col("nano") > datetime.datetime(2024, 2, 10), None),  # noqa: DTZ001
    ("text < '0150'", col("text") < "0150", 2),
    ("text = '0301é'", col("text") == "0301é", 1),
    ("text > 'é'", col("text") > "é", 0),
    ("long >= '0950'", col("long") >= "0950", None),
    ("kind = 'k7'", col("kind") == "k7", 1),
    ("kind IN ('k1', 'k3', 'none')", col("kind").is_in(["k1", "k3", "none"]), 2),
]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return ascending()


@pytest.fixture(scope="module")
def duck(table: pa.Table):
    """DuckDB on a table in memory: on a file, it skips row groups with NaN."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given", table)
    connection.execute("CREATE TABLE stored AS SELECT * FROM given")
    return connection


def stored(table: pa.Table, how: str, folder) -> str:
    path = str(folder / f"{how}.parquet")
    match how:
        case "none":
            pq.write_table(table, path, row_group_size=GROUP_ROWS, write_statistics=False)
        case "old":
            pq.write_table(table, path, row_group_size=GROUP_ROWS, version="1.0", use_deprecated_int96_timestamps=True)
        case _:
            pq.write_table(table, path, row_group_size=GROUP_ROWS, store_decimal_as_integer=how == "integers")
    return path


@pytest.mark.parametrize("how", ["arrow", "integers", "none", "old"])
def test_results_are_duckdbs(table: pa.Table, duck, how: str, tmp_path):
    path = stored(table, how, tmp_path)
    with Table.open(path, device="cpu") as rides:
        assert len(rides.fragments) == ROWS // GROUP_ROWS
        for sql, condition, left in FILTERS:
            ours, report = rides.filter(condition).agg(count(), sum=col("row").sum()).run()
            theirs = duck.sql(f"SELECT count(*), sum(row) FROM stored WHERE {sql}").fetchall()[0]
            assert (ours["count"][0].as_py(), ours["sum"][0].as_py()) == theirs, sql
            rows = rides.filter(condition).select("row", "text").order_by("row").to_arrow()
            expected = duck.sql(f"SELECT row, text FROM stored WHERE {sql} ORDER BY row").to_arrow_table()
            assert rows["row"].to_pylist() == expected["row"].to_pylist(), sql
            assert rows["text"].cast(pa.string()).to_pylist() == expected["text"].to_pylist(), sql
            if how == "none":
                assert report.pruned == 0 or sql == "holes = NULL", sql
            elif how == "arrow" and left is not None:
                assert 10 - report.pruned == left, sql


def test_explain_says_how_many(table: pa.Table, tmp_path):
    path = stored(table, "arrow", tmp_path)
    with Table.open(path, device="cpu") as rides:
        query = rides.filter(col("row") < 250).select("row")
        text = query.explain()
        assert "1 of 19 columns, 3 of 10 fragments" in text
        assert "skips 7 fragments" in text
        none = rides.filter(col("row") < 0).group_by("kind").agg(count())
        assert "0 of 10 fragments" in none.explain()
        assert none.to_arrow().num_rows == 0
        assert "skips" not in rides.select("row").explain()
        _, report = query.run()
        assert (report.pruned, report.disk.chunks + report.disk.hits + report.device.hits) == (7, 3)


def test_what_is_pruned_is_still_checked(table: pa.Table, tmp_path):
    with Table.open(stored(table, "arrow", tmp_path), device="cpu") as rides:
        for wrong in (col("row") == "x", (col("row") < 0) & (col("text") == 5), (col("row") < 0) & (col("flag") > 3)):
            with pytest.raises(UsageError):
                rides.filter(wrong).agg(count()).run()


def test_files_of_duckdb(tmp_path):
    path = tmp_path / "duckdb.parquet"
    duckdb.sql(
        "COPY (SELECT i AS row, CASE WHEN i % 5 = 0 THEN NULL ELSE 'k' || i // 2048 END AS kind, "
        "(i / 8)::DECIMAL(9, 3) AS price, i::DOUBLE AS real FROM range(20480) t(i)) "
        f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
    )
    with Table.open(path, device="cpu") as rides:
        assert len(rides.fragments) == 10
        for sql, condition in [
            ("row < 3000", col("row") < 3000),
            ("price > 2500.125", col("price") > Decimal("2500.125")),
            ("kind = 'k3'", col("kind") == "k3"),
            ("real < 100 AND kind IS NULL", (col("real") < 100) & col("kind").is_null()),
        ]:
            ours = rides.filter(condition).agg(count(), sum=col("price").sum()).to_arrow()
            theirs = duckdb.sql(f"SELECT count(*), sum(price) FROM read_parquet('{path}') WHERE {sql}").fetchall()[0]
            assert (ours["count"][0].as_py(), ours["sum"][0].as_py()) == theirs, sql


def test_ipc_has_no_statistics(table: pa.Table, tmp_path):
    path = tmp_path / "table.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=GROUP_ROWS)
    with Table.open(path, device="cpu") as rides:
        assert rides.filter(col("row") < 250).agg(count()).run()[1].pruned == 0


def test_pruned_windows(table: pa.Table, tmp_path):
    path = stored(table, "arrow", tmp_path)
    levels = _core.Levels("cpu", device_bytes=16 << 10, cpu_bytes=64 << 20, slab_bytes=1 << 10)
    with Table.open(path, levels=levels) as rides:
        result, report = rides.filter(col("row") >= 150).group_by("kind").agg(sum=col("wide").sum()).run()
        assert report.streamed
        assert report.pruned == 1
        expected = duckdb.sql(
            f"SELECT kind, sum(wide) FROM read_parquet('{path}') WHERE row >= 150 GROUP BY kind ORDER BY kind"
        ).fetchall()
        assert sorted(zip(result["kind"].to_pylist(), result["sum"].to_pylist(), strict=True)) == expected
