"""Opens wide files and files with many row groups, and reads from them."""

import json
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import load_program
from pyarrow import ipc

from headrace import UsageError, _core
from headrace.fetch import Table, col, count

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

KINDS = [pa.int32(), pa.float64(), pa.string(), pa.timestamp("us"), pa.decimal128(9, 2), pa.bool_()]


def wide(columns: int, rows: int = 3) -> pa.Table:
    """Columns of several types; column i has the value i in its second row."""
    made = {}
    for number in range(columns):
        kind = KINDS[number % len(KINDS)]
        values = [None, number, number + 1][:rows]
        if pa.types.is_string(kind):
            array = pa.array([None if value is None else f"v{value}" for value in values])
        elif pa.types.is_boolean(kind):
            array = pa.array([None if value is None else value % 2 == 0 for value in values])
        else:
            array = pa.array(values, pa.int64()).cast(kind if not pa.types.is_decimal(kind) else pa.decimal128(21, 2))
            array = array.cast(kind)
        made[f"c{number}"] = array
    return pa.table(made)


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


def seconds_to_open(path: Path) -> float:
    """Processor time, the minimum of a few runs."""
    taken = []
    for _ in range(4):
        started = time.process_time()
        Table.open(path, device="cpu:0").close()
        taken.append(time.process_time() - started)
    return min(taken)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_every_column_of_a_wide_file_is_right(tmp_path, form):
    table = wide(600)
    with Table.open(write(table, tmp_path / f"wide.{form}"), device="cpu:0") as stored:
        assert stored.schema.equals(table.schema)
        assert stored.fetch().to_arrow().equals(table)
        names = ["c599", "c0", "c302"]
        assert stored.select(*names).to_arrow().equals(table.select(names))
        with pytest.raises(UsageError, match="did you mean c59"):
            stored.fetch(["c5990"])


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_opening_takes_time_by_the_column(tmp_path, form):
    few = seconds_to_open(write(wide(1000), tmp_path / f"few.{form}"))
    many = seconds_to_open(write(wide(8000), tmp_path / f"many.{form}"))
    assert many < 24 * few  # 8 times as many; quadratic time would be 64 times


def test_many_small_row_groups_are_one_table(tmp_path):
    values = np.arange(20_000)
    path = tmp_path / "groups.parquet"
    pq.write_table(pa.table({"x": values, "s": [f"{value % 7}" for value in values]}), path, row_group_size=20)
    with Table.open(path, device="cpu:0") as table:
        assert len(table.fragments) == 1000
        query = table.filter(col("x").between(510, 549)).agg(count(), col("x").sum())
        found, report = query.run()
        assert found.to_pylist() == [{"count": 40, "sum(x)": sum(range(510, 550))}]
        assert report.pruned == 997  # statistics are those of the row groups
        assert table.fetch(["s"]).to_arrow()["s"].to_pylist() == [f"{value % 7}" for value in values]


def test_a_column_in_another_place_of_each_file_is_found(tmp_path):
    """Each row group records where its columns are."""
    table = pa.table({"a": list(range(100)), "b": [value * 2 for value in range(100)]})
    path = tmp_path / "one.parquet"
    pq.write_table(table, path, row_group_size=10)
    with Table.open([path, path], device="cpu:0") as stored:
        assert stored.filter(col("b") == 38).select("a").to_arrow()["a"].to_pylist() == [19, 19]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/fetch_open.py")


def test_the_figures_are_measured_and_saved(bench, tmp_path, monkeypatch, capsys):
    name = bench.results.machine(bench.headrace.Device.parse("cpu"))["name"]
    saved = tmp_path / f"fetch-open.{name}.json"
    words = "--columns 30 --groups 20 --samples 2 --save"
    monkeypatch.setattr(sys, "argv", ["fetch_open.py", *words.split(), str(saved)])
    bench.main()
    capsys.readouterr()
    rows = json.loads(saved.read_text())["rows"]
    assert [row["id"] for row in rows] == ["fetch.open5000.vs_pyarrow", "fetch.open_groups.vs_pyarrow"]
    assert all(row["value"] > 0 and row["conditions"]["verified"] for row in rows)
