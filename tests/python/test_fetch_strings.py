"""Columns of many different strings: within the budgets, or an error that says which is too small."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from headrace import Device, Errc, Error, Levels, UsageError, _core
from headrace.fetch import Table, col, count

MIB = 1 << 20
DEVICES = [device.name for device in Device.list()]
pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB"),
]


def addresses(rows: int, distinct: int) -> list[str | None]:
    """Strings of some 60 bytes, every ninth missing."""
    return [
        None if row % 9 == 4 else f"https://example.org/a/long/path/of/pages/{row * 7919 % distinct:012d}.html"
        for row in range(rows)
    ]


def write(path, values, *, rows, form="parquet", kind=None) -> str:
    table = pa.table({"id": np.arange(len(values)), "s": pa.array(values, kind or pa.string())})
    if form == "parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    return str(path)


def small(device: str, cpu_bytes: int = 2 * MIB) -> Levels:
    return Levels(device, disk_bytes=64 * MIB, cpu_bytes=cpu_bytes, device_bytes=64 * MIB, slab_bytes=64 << 10)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_strings_are_counted_without_a_dictionary(device, tmp_path, form):
    values = addresses(40_000, 40_000)
    path = write(tmp_path / f"many.{form}", values, rows=2000, form=form)
    with Table.open(path, levels=small(device)) as table:
        there = sum(value is not None for value in values)
        assert table.agg(col("s").count()).to_arrow().to_pylist() == [{"count(s)": there}]
        missing = table.filter(col("s").is_null()).agg(count(), col("id").sum()).to_arrow().to_pylist()
        rows = [row for row, value in enumerate(values) if value is None]
        assert missing == [{"count": len(rows), "sum(id)": sum(rows)}]
        grouped = table.group_by(m=col("id") % 3).agg(col("s").count()).order_by("m").to_arrow().to_pylist()
        assert [one["count(s)"] for one in grouped] == [
            sum(value is not None for value in values[first::3]) for first in range(3)
        ]
        assert "s (validity)" in table.agg(col("s").count()).explain()
        assert table.levels.statistics("cpu").most_bytes <= 2 * MIB


def test_statistics_tell_how_many_strings_there_are(device, tmp_path):
    values = [*(["x"] * 1000), *([None] * 1000), *addresses(1000, 1000)]
    path = write(tmp_path / "known.parquet", values, rows=1000)
    with Table.open(path, levels=small(device)) as table:
        found, report = table.agg(col("s").count(), count()).run()
        assert found.to_pylist() == [{"count(s)": sum(value is not None for value in values), "count": 3000}]
        assert report.disk.chunks == 1  # of the row group in which some are missing


def test_an_entry_that_is_missing_is_not_counted(device, tmp_path):
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0], pa.int8()), pa.array(["a", None, "b"]))
    table = pa.table({"s": dictionary})
    path = tmp_path / "entries.arrow"
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    with Table.open(path, levels=small(device)) as stored:
        assert stored.agg(col("s").count()).to_arrow().to_pylist() == [{"count(s)": 3}]


@pytest.mark.parametrize("ask", ["max", "select", "group", "fetch"])
def test_a_dictionary_beyond_the_budget_is_refused_by_name(device, tmp_path, ask):
    path = write(tmp_path / "distinct.parquet", addresses(60_000, 60_000), rows=2000)
    with Table.open(path, levels=small(device)) as table:
        run = {
            "max": lambda: table.agg(col("s").max()).to_arrow(),
            "select": lambda: table.select("s").to_arrow(),
            "group": lambda: table.group_by("s").agg(count()).to_arrow(),
            "fetch": lambda: table.fetch(["s"]),
        }[ask]
        with pytest.raises(Error, match=r"the dictionary of column 's'.*the cpu level's budget of 2 MiB") as caught:
            run()
        assert caught.value.code == Errc.out_of_memory
        assert table.levels.statistics("cpu").most_bytes <= 2 * MIB
        # Other columns are as usable as before.
        assert table.agg(col("id").sum()).to_arrow().to_pylist() == [{"sum(id)": sum(range(60_000))}]


def test_a_dictionary_that_fits_beside_few_chunks_is_made(device, tmp_path):
    """Threads that hold room for chunks make way for it."""
    values = addresses(30_000, 6000)  # 0.5 MB of strings, and 0.2 MB beside
    path = write(tmp_path / "some.parquet", values, rows=3000)
    options = _core.FetchOptions(threads=8)
    with Table.open(path, levels=small(device), options=options) as table:
        for _ in range(3):
            table.levels.clear("device")
            assert table.agg(col("s").max(), col("s").min()).to_arrow().to_pylist() == [
                {"max(s)": max(filter(None, values)), "min(s)": min(filter(None, values))}
            ]
        assert table.levels.statistics("cpu").most_bytes <= 2 * MIB


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int16(), pa.string())])
def test_strings_come_back_in_their_type(device, tmp_path, kind):
    values = [None if value is None else value[40:53] for value in addresses(5000, 300)]
    if kind == pa.binary():
        values = [None if value is None else value.encode() for value in values]
    array = pa.array(values).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    path = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"s": array}), path, row_group_size=700)
    with Table.open(path, levels=small(device)) as table:
        selected = table.select("s").to_arrow()["s"]
        assert selected.type == table.schema.field("s").type
        assert selected.to_pylist() == values
        fetched = table.fetch(["s"])
        assert fetched.to_arrow()["s"].to_pylist() == values
        assert set(fetched["s"].dictionary.to_pylist()) == {value for value in values if value is not None}


def test_memory_goes_back_when_the_table_is_closed(device, tmp_path):
    values = addresses(20_000, 20_000)
    levels = small(device, 16 * MIB)
    path = write(tmp_path / "closed.parquet", values, rows=2000)
    table = Table.open(path, levels=levels)
    held = table.fetch(["s"], fragments=[0])
    assert table.agg(col("s").max()).to_arrow().to_pylist() == [{"max(s)": max(filter(None, values))}]
    assert levels.statistics("cpu").used_bytes > MIB
    table.close()
    # What is held stays, with what its indices stand for.
    assert held.to_arrow()["s"].to_pylist() == values[:2000]
    with pytest.raises(UsageError, match="the table has been closed"):
        table.agg(count()).to_arrow()
    with pytest.raises(UsageError, match="the table has been closed"):
        table.fetch(["id"])
    del held
    assert [levels.statistics(level).used_bytes for level in ("disk", "cpu", "device")] == [0, 0, 0]


def test_a_table_closed_while_it_is_asked_answers_or_says_so(device, tmp_path):
    values = addresses(20_000, 5000)
    path = write(tmp_path / "race.parquet", values, rows=500)
    expected = max(filter(None, values))
    for _ in range(5):
        levels = small(device, 16 * MIB)
        table = Table.open(path, levels=levels)
        outcomes = []

        def ask(table=table, outcomes=outcomes):
            try:
                outcomes.append(table.agg(col("s").max()).to_arrow()["max(s)"][0].as_py())
            except UsageError as error:
                outcomes.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        table.close()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 3
        assert all(one == expected or "the table has been closed" in one for one in outcomes), outcomes
        table.close()
        assert [levels.statistics(level).used_bytes for level in ("disk", "cpu", "device")] == [0, 0, 0]
