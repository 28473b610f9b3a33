"""Datasets in folders named name=value, compared with DuckDB, pyarrow and Polars."""

import datetime

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from headrace import UsageError, _core
from headrace.fetch import Table, col, count

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")


def rows_of(table: Table, *names: str) -> list[tuple]:
    return sorted(zip(*(table.fetch(list(names)).to_arrow()[name].to_pylist() for name in names), strict=True), key=str)


def by_duckdb(folder, *names: str) -> list[tuple]:
    query = f"select {', '.join(names)} from read_parquet('{folder}/**/*.parquet', hive_partitioning=1)"
    return sorted(duckdb.sql(query).fetchall(), key=str)


@pytest.fixture
def dataset(tmp_path):
    """Two levels, a missing value, and one that a file name cannot contain."""
    table = pa.table(
        {
            "region": ["north", "north", "a/b c=d%", None, "north", "ü"],
            "year": [2023, 2024, 2024, 2024, None, -5],
            "x": [1, 2, 3, 4, 5, 6],
        }
    )
    pq.write_to_dataset(table, tmp_path / "data", partition_cols=["region", "year"])
    return tmp_path / "data"


def test_partitions_are_columns(dataset):
    with Table.open(dataset, device="cpu:0") as table:
        assert table.schema.names == ["x", "region", "year"]
        assert table.schema.field("region").type == pa.string()
        assert table.schema.field("year").type == pa.int64()
        got = rows_of(table, "region", "year", "x")
        assert got == by_duckdb(dataset, "region", "year", "x")
        theirs = ds.dataset(dataset, partitioning=ds.partitioning(flavor="hive")).to_table()
        assert got == sorted(zip(*(theirs[name].to_pylist() for name in ("region", "year", "x")), strict=True), key=str)
        polars = pl.read_parquet(dataset, hive_partitioning=True).select("region", "year", "x")
        assert got == sorted(polars.rows(), key=str)
    for paths in (
        f"{dataset}/**/*.parquet",
        f"{dataset}/**",
        f"{dataset}/region=*",
        f"{dataset}/*",
        [str(one) for one in sorted(dataset.rglob("*.parquet"))],
    ):
        with Table.open(paths, device="cpu:0") as table:
            assert rows_of(table, "region", "year", "x") == got
    with Table.open(dataset, device="cpu:0", hive=False) as table:
        assert table.schema.names == ["x"]
        assert table.num_rows == 6


def test_queries_over_partitions_leave_files_out(dataset):
    with Table.open(dataset, device="cpu:0") as table:
        files = len(table.files)
        for condition, sql in (
            (col("region") == "north", "region = 'north'"),
            (col("region") == "a/b c=d%", "region = 'a/b c=d%'"),
            (col("region").is_null(), "region is null"),
            (col("year").is_in([2024, -5]), "year in (2024, -5)"),
            ((col("year") > 2023) & (col("region") < "o"), "year > 2023 and region < 'o'"),
        ):
            result, report = table.filter(condition).select("x").run()
            theirs = by_duckdb(dataset, "x", "region", "year")
            query = f"select x from read_parquet('{dataset}/**/*.parquet', hive_partitioning=1) where {sql}"
            assert sorted(result["x"].to_pylist()) == sorted(x for (x,) in duckdb.sql(query).fetchall()), sql
            assert 0 < report.pruned < files, sql
            assert report.pruned == files - result.num_rows, sql
            assert len(theirs) == 6
        grouped = table.group_by("year").agg(count(), col("x").sum()).order_by("year").to_arrow()
        assert grouped["year"].to_pylist() == [-5, 2023, 2024, None]
        assert grouped["sum(x)"].cast(pa.int64()).to_pylist() == [6, 1, 9, 5]
        only = table.select("region").to_arrow()["region"].to_pylist()  # no column of a file is read for this
        assert sorted(map(str, only)) == sorted(["north"] * 3 + ["a/b c=d%", "None", "ü"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "0", "-3"], pa.int64()),
        (["1", "02"], pa.string()),
        (["+1"], pa.string()),
        (["1", "x"], pa.string()),
        (["1", str(2**63)], pa.string()),
        (["1.5", "2"], pa.string()),
        (["2024-02-29", "1969-01-01"], pa.date32()),
        (["2024-02-30", "1969-01-01"], pa.string()),
        (["2024-02-29 01:02:03", "2024-02-29 01:02:03.5"], pa.string()),
        (["", "a"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__", "7"], pa.int64()),
        (["true", "false"], pa.string()),
    ],
)
def test_types_are_those_that_duckdb_gives(tmp_path, values, kind):
    for number, value in enumerate(values):
        folder = tmp_path / f"p={value.replace(':', '%3A')}"
        folder.mkdir()
        pq.write_table(pa.table({"x": [number]}), folder / "part.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        assert table.schema.field("p").type == kind
        assert rows_of(table, "p", "x") == by_duckdb(tmp_path, "p", "x")
        for value, x in rows_of(table, "p", "x"):
            literal = col("p").is_null() if value is None else col("p") == value
            assert table.filter(literal).to_arrow()["x"].to_pylist() == [x]


def test_a_column_of_the_file_is_what_counts(tmp_path):
    """Polars also writes the partition column into the files, with its type."""
    pl.DataFrame({"p": [1.5, 2.5], "x": [1, 2]}).write_parquet(tmp_path / "one.parquet")
    for value in ("1.5", "2.5"):
        folder = tmp_path / "data" / f"p={value}"
        folder.mkdir(parents=True)
        pl.DataFrame({"p": [float(value)], "x": [1]}).write_parquet(folder / "0.parquet")
    with Table.open(tmp_path / "data", device="cpu:0") as table:
        assert table.schema.names == ["p", "x"]
        assert table.fetch(["p"]).to_arrow()["p"].to_pylist() == [1.5, 2.5]


def test_partitions_of_ipc_files_and_streams(tmp_path):
    batch = pa.table({"x": [1, 2]})
    for value, make in (("a", ipc.new_file), ("b", ipc.new_stream)):
        folder = tmp_path / f"p={value}"
        folder.mkdir()
        with pa.OSFile(str(folder / "part.arrow"), "wb") as sink, make(sink, batch.schema) as writer:
            writer.write_table(batch)
    with Table.open(tmp_path, device="cpu:0") as table:
        assert rows_of(table, "p", "x") == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        result, report = table.filter(col("p") == "b").select("x").run()
        assert (result["x"].to_pylist(), report.pruned) == ([1, 2], 1)


def test_files_without_the_folder_are_an_error_of_whoever_asks(tmp_path):
    (tmp_path / "p=1").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "p=1" / "0.parquet")
    pq.write_table(pa.table({"x": [2]}), tmp_path / "0.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        assert table.agg(col("x").sum()).to_arrow().to_pylist() == [{"sum(x)": 3}]
        with pytest.raises(UsageError, match="in column 'p': no such column"):
            table.fetch(["p"])


def test_only_folders_of_partitions_are_gone_through(tmp_path):
    for name in ("p=1", "old", "_temporary", ".hidden", "p=1/_delta_log", "p=1/q=2"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / name / "0.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        assert [str(file) for file in table.files] == [f"{tmp_path}/p=1/0.parquet", f"{tmp_path}/p=1/q=2/0.parquet"]


def test_a_large_partition_streams(tmp_path):
    rows = 50_000
    start = datetime.date(2024, 1, 1)
    for day in range(6):
        folder = tmp_path / f"day={start + datetime.timedelta(days=day)}"
        folder.mkdir()
        pq.write_table(pa.table({"x": range(rows)}), folder / "0.parquet", row_group_size=5000)
    with Table.open(tmp_path, device="cpu:0") as table:
        got = table.group_by("day").agg(count(), col("x").max()).order_by("day").to_arrow()
        assert got["day"].to_pylist() == [start + datetime.timedelta(days=day) for day in range(6)]
        assert got["count"].to_pylist() == [rows] * 6
        got, report = table.filter(col("day") >= datetime.date(2024, 1, 5)).agg(count()).run()
        assert (got["count"].to_pylist(), report.pruned) == ([2 * rows], 40)
