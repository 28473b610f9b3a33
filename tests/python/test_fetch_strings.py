"""Columns with many different strings: within the budgets, or an error that names the insufficient one."""

import collections
import resource
import threading
import uuid
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from headrace import Device, Errc, Error, UsageError, _core
from headrace.fetch import Levels, Table, col, count, strings

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
        assert report.disk.chunks == 1  # from the row group with missing values


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
        # Other columns remain usable.
        assert table.agg(col("id").sum()).to_arrow().to_pylist() == [{"sum(id)": sum(range(60_000))}]


def test_a_dictionary_that_fits_beside_few_chunks_is_made(device, tmp_path):
    """Threads that hold room for chunks give it up for the dictionary."""
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
    # Held columns stay valid, with the entries of their indices.
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


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("most", [1, 700, 10_000])
def test_results_beyond_what_an_array_holds_come_in_several(device, tmp_path, monkeypatch, kind, most):
    """The limit of 32-bit offsets, lowered: a single string may exceed it."""
    monkeypatch.setattr(strings, "_PIECE_BYTES", most)
    values = [None if value is None else value[: 20 + row % 40] for row, value in enumerate(addresses(3000, 500))]
    if kind == pa.binary():
        values = [None if value is None else value.encode() for value in values]
    array = pa.array(values).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)
    path = write_array(tmp_path / "pieces.parquet", array, rows=800)
    with Table.open(path, levels=small(device)) as table:
        selected = table.select("s").to_arrow()["s"]
        assert selected.to_pylist() == values
        if not pa.types.is_dictionary(kind):
            longest = max(len(value) for value in values if value is not None)
            assert selected.num_chunks > 1
            assert all(sum(map(len, filter(None, one.to_pylist()))) <= max(most, longest) for one in selected.chunks)
        fetched = table.fetch(["s"])
        assert fetched.to_arrow()["s"].to_pylist() == values
        assert set(fetched["s"].dictionary.to_pylist()) == {value for value in values if value is not None}
        first = table.filter(col("s").is_not_null()).select("s").order_by("s").limit(40).to_arrow()["s"].to_pylist()
        assert first == sorted(value for value in values if value is not None)[:40]
        grouped = table.group_by("s").agg(count()).to_arrow()
        counts = dict(zip(grouped["s"].to_pylist(), grouped["count"].to_pylist(), strict=True))
        assert counts == collections.Counter(values)


def write_array(path, array, *, rows) -> str:
    pq.write_table(pa.table({"s": array}), path, row_group_size=rows)
    return str(path)


@pytest.mark.parametrize("encoded", [False, True])
def test_extension_types_over_strings_come_back_as_they_were(device, encoded):
    identifiers = [None if row % 7 == 2 else uuid.UUID(int=row * 31 % 50 << 70) for row in range(400)]
    stored = pa.array([None if one is None else one.bytes for one in identifiers], pa.binary(16))
    array = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    if encoded:
        entries = pa.ExtensionArray.from_storage(pa.uuid(), stored.dictionary_encode().dictionary)
        array = pa.DictionaryArray.from_arrays(stored.dictionary_encode().indices, entries)
    table = Table.from_arrow(pa.table({"s": array}), device, fragment_rows=90)
    assert table.agg(col("s").count()).to_arrow().to_pylist() == [{"count(s)": 400 - identifiers.count(None)}]
    for found in (table.select("s").to_arrow()["s"], table.fetch(["s"]).to_arrow()["s"]):
        assert found.type.equals(array.type) or encoded
        assert found.to_pylist() == identifiers


def test_the_memory_of_a_dictionary_goes_back_to_the_system(device, tmp_path):
    """Closing a table reduces the memory of the process, not only the count of the levels."""
    values = [f"{row:08d}" * 12 for row in range(300_000)]  # 29 MB, and as much as 12 MB for finding them
    path = write(tmp_path / "large.parquet", values, rows=30_000)
    del values
    levels = small(device, 256 * MIB)
    table = Table.open(path, levels=levels)
    assert table.agg(col("s").max()).to_arrow().to_pylist() == [{"max(s)": "00299999" * 12}]
    used = levels.statistics("cpu").used_bytes
    held = resident()
    assert used > 36 * MIB
    table.close()
    assert held - resident() > 30 * MIB
    assert levels.statistics("cpu").used_bytes == 0


def resident() -> int:
    """Resident memory of the process."""
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("seed", range(4))
def test_random_strings_are_those_of_duckdb(device, tmp_path, seed):
    """Counted, grouped, compared and ordered, with empty and missing strings, in tight budgets."""
    rng = np.random.default_rng(seed)
    alphabet = ["", "a", "ab", "é", "z" * 40, "naïve", "\U0001f600", *(f"w{number}" for number in range(300))]
    rows = 20_000
    text = [None if rng.random() < 0.1 else alphabet[int(rng.integers(len(alphabet)))] for _ in range(rows)]
    data = pa.table({"id": np.arange(rows), "s": pa.array(text), "x": rng.integers(-50, 50, rows)})
    path = tmp_path / "random.parquet"
    pq.write_table(data, path, row_group_size=int(rng.integers(500, 7000)))
    connection = duckdb.connect()
    connection.register("data", data)

    def theirs(sql):
        return connection.sql(sql).to_arrow_table().to_pylist()

    with Table.open(path, levels=small(device, 4 * MIB)) as table:
        assert table.agg(
            n=col("s").count(), least=col("s").min(), most=col("s").max()
        ).to_arrow().to_pylist() == theirs("select count(s) n, min(s) least, max(s) most from data")
        found = table.filter(col("s") >= "w1").group_by("s").agg(n=count(), x=col("x").sum()).order_by("s").to_arrow()
        assert found.to_pylist() == theirs(
            "select s, count(*) n, sum(x)::bigint x from data where s >= 'w1' group by s order by s"
        )
        found = table.filter(col("s").is_null() | (col("x") > 40)).agg(n=count(), s=col("s").count()).to_arrow()
        assert found.to_pylist() == theirs("select count(*) n, count(s) s from data where s is null or x > 40")
        found = table.select("s", "id").order_by(("s", "descending"), "id").limit(777).to_arrow()
        assert found.to_pylist() == theirs("select s, id from data order by s desc nulls last, id limit 777")
        assert table.levels.statistics("cpu").most_bytes <= 4 * MIB
