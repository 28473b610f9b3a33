"""Valid files with unusual encodings, types and names, compared with DuckDB, pyarrow and Polars."""

import ctypes
import datetime
import decimal
import io
import json
import logging
import os
import uuid
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import headrace
from headrace import DataError, Errc, UsageError, _core
from headrace.fetch import FetchOptions, Table, col, count

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

ROWS = 3000


def naive(*parts: int) -> datetime.datetime:
    """A time without a zone."""
    return datetime.datetime(*parts)  # noqa: DTZ001 - that is what is stored


def sql(query: str) -> list[tuple]:
    return duckdb.sql(query).fetchall()


# Statistics of this very column.


@pytest.mark.parametrize("struct_first", [False, True])
def test_a_field_within_a_column_is_no_column_of_the_same_name(tmp_path, struct_first):
    path = tmp_path / "dots.parquet"
    flat = ["s.x", "s.y.z", "l.list.element"]
    nested = {
        "s": [{"x": 100 + i, "y": {"z": -i}} for i in range(40)],
        "l": [[1000 + i] for i in range(40)],
    }
    columns = {name: list(range(40)) for name in flat}
    columns = {**nested, **columns} if struct_first else {**columns, **nested}
    pq.write_table(pa.table(columns), path, row_group_size=4)
    with Table.open(path, device="cpu:0") as table:
        for name in flat:
            for edge in (-1, 3, 17, 39, 100, 1000):
                result, report = table.filter(col(name) < edge).select(name).run()
                expected = sql(f'select "{name}" from \'{path}\' where "{name}" < {edge} order by 1')
                assert [(x,) for x in result[name].to_pylist()] == expected
                assert report.pruned == sum(first >= edge for first in range(0, 40, 4))


# Timestamps in 96 bits.

NEAR = [
    naive(9999, 12, 31),
    None,
    naive(1, 1, 1),
    naive(2024, 2, 29, 1, 2, 3, 456789),
]


def test_timestamps_in_96_bits_reach_as_far_as_microseconds_do(tmp_path):
    path = tmp_path / "int96.parquet"
    stamps = [
        *NEAR,
        naive(1600, 1, 1),
        naive(2262, 4, 12),
        naive(1969, 12, 31, 23, 59, 59, 999999),
    ]
    table = pa.table({"t": pa.array(stamps, pa.timestamp("us")), "x": range(len(stamps))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)
    with Table.open(path, device="cpu:0") as stored:
        assert stored.schema.field("t").type == pa.timestamp("us")
        assert stored.fetch().to_arrow().to_pydict() == table.to_pydict()
        for edge in stamps:
            if edge is None:
                continue
            got = stored.filter(col("t") >= edge).select("x").to_arrow()["x"].to_pylist()
            assert [(x,) for x in got] == sql(f"select x from '{path}' where t >= timestamp '{edge}' order by x")
        assert stored.agg(col("t").min()).to_arrow().to_pylist() == [{"min(t)": min(s for s in stamps if s)}]


def test_a_timestamp_in_96_bits_that_does_not_fit_is_an_error(tmp_path):
    """Written as nanoseconds; then the bytes of one value are changed to a day of the year 5 million."""
    path = tmp_path / "int96.parquet"
    day = naive(2024, 2, 29)
    pq.write_table(
        pa.table({"t": pa.array([day] * 6, pa.timestamp("us")), "x": range(6)}),
        path,
        row_group_size=3,
        use_deprecated_int96_timestamps=True,
        use_dictionary=False,
        compression="none",
    )
    content = bytearray(path.read_bytes())
    julian = (day - naive(1970, 1, 1)).days + 2_440_588
    value = (0).to_bytes(8, "little") + julian.to_bytes(4, "little")
    at = content.rfind(value)
    assert content.count(value) >= 6
    for far in (2_000_000_000, 2_440_588 + 106_751_992, 0xFFFF_FFFF):
        content[at : at + 12] = (0).to_bytes(8, "little") + far.to_bytes(4, "little")
        path.write_bytes(content)
        with Table.open(path, device="cpu:0") as table:
            with pytest.raises(UsageError, match=rf"{path}, row group 1, column 't': .*96 bits") as raised:
                table.fetch()
            assert raised.value.code == Errc.not_supported
            assert table.fetch(["x"]).num_rows == 6
            assert table.fetch(["t"], fragments=[0]).to_arrow()["t"].to_pylist() == [day] * 3
    content[at : at + 12] = (0).to_bytes(8, "little") + (2_440_588 + 106_751_991).to_bytes(4, "little")
    path.write_bytes(content)
    with Table.open(path, device="cpu:0") as table:  # the last day that fits
        assert table.fetch(["t"]).to_arrow()["t"].cast(pa.int64()).to_pylist()[-1] == 106_751_991 * 86_400_000_000


# Encodings of strings.


@pytest.mark.parametrize("host", ["pinned", "pageable"])
@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_strings_that_are_delta_encoded(tmp_path, encoding, host):
    path = tmp_path / "delta.parquet"
    names = [None if i % 7 == 0 else f"name {i // 3}" for i in range(ROWS)]
    table = pa.table(
        {
            "plain": names,
            "large": pa.array(names, pa.large_string()),
            "bytes": pa.array([None if name is None else name.encode() for name in names]),
            "kind": pa.array([f"kind {i % 5}" for i in range(ROWS)]),
            "x": range(ROWS),
        }
    )
    delta = dict.fromkeys(("plain", "large", "bytes"), encoding)
    pq.write_table(table, path, row_group_size=500, use_dictionary=["kind"], column_encoding=delta)
    caches = headrace.fetch.Levels("cpu", host=host)
    with Table.open(path, levels=caches) as stored:
        assert stored.fetch().to_arrow().cast(table.schema).to_pydict() == table.to_pydict()
        got = stored.filter(col("plain") == "name 77").select("x").to_arrow()["x"].to_pylist()
        assert [(x,) for x in got] == sql(f"select x from '{path}' where plain = 'name 77' order by x")


def test_files_of_duckdbs_second_version(tmp_path):
    path = tmp_path / "v2.parquet"
    duckdb.sql(
        f"copy (select i, 'name ' || i as s, 'k' || i % 3 as k, (i / 7)::double as f from range(5000) t(i)) "
        f"to '{path}' (format parquet, parquet_version v2, row_group_size 2048)"
    )
    with Table.open(path, device="cpu:0") as table:
        ours = table.fetch().to_arrow().to_pydict()
        assert list(zip(*(ours[name] for name in "iskf"), strict=True)) == sql(
            f"select i, s, k, f from '{path}' order by i"
        )


# Dictionaries with entries that are null.


def null_entries(rows: int, index: pa.DataType = pa.int8()) -> pa.RecordBatch:  # noqa: B008 - never changed
    entries = pa.array(["a", None, "b", None, "a"])
    indices = [None if i % 11 == 0 else i % 5 for i in range(rows)]
    numbers = pa.array([7, None, -7, 0, None], pa.int16())
    return pa.record_batch(
        {
            "d": pa.DictionaryArray.from_arrays(pa.array(indices, index), entries),
            "full": pa.DictionaryArray.from_arrays(pa.array([i % 5 for i in range(rows)], index), entries),
            "n": pa.DictionaryArray.from_arrays(pa.array(indices, index), numbers),
            "none": pa.DictionaryArray.from_arrays(pa.array([0] * rows, index), pa.array([None], pa.string())),
            "x": pa.array(range(rows)),
        }
    )


def plain(table) -> dict:
    return {name: table.column(name).to_pylist() for name in table.schema.names}


@pytest.mark.parametrize("host", ["pinned", "pageable"])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64()], ids=str)
@pytest.mark.parametrize("form", ["file", "stream", "memory", "lz4"])
def test_a_dictionary_entry_that_is_null_is_a_missing_value(tmp_path, form, index, host):
    path = tmp_path / "d.arrow"
    batch = null_entries(131, index)
    caches = headrace.fetch.Levels("cpu", host=host)
    if form == "memory":
        table = Table.from_arrow(pa.table(batch), levels=caches, fragment_rows=37)
    else:
        make = ipc.new_stream if form == "stream" else ipc.new_file
        options = ipc.IpcWriteOptions(compression="lz4" if form == "lz4" else None)
        with pa.OSFile(str(path), "wb") as sink, make(sink, batch.schema, options=options) as writer:
            for at in range(0, 131, 37):
                writer.write_batch(batch.slice(at, 37))
        table = Table.open(path, levels=caches)
    with table:
        expected = plain(batch)
        assert plain(table.fetch().to_arrow()) == expected
        missing = table.filter(col("d").is_null()).select("x").to_arrow()["x"].to_pylist()
        assert missing == [x for x, d in zip(expected["x"], expected["d"], strict=True) if d is None]
        groups = table.group_by("full").agg(count()).to_arrow().to_pylist()
        assert {row["full"]: row["count"] for row in groups} == {
            name: expected["full"].count(name) for name in ("a", "b", None)
        }
        assert table.agg(col("n").sum(), col("none").count()).to_arrow().to_pylist() == [
            {"sum(n)": sum(n for n in expected["n"] if n is not None), "count(none)": 0}
        ]


def test_a_null_entry_in_a_required_column_is_an_error(tmp_path):
    batch = null_entries(20)
    schema = pa.schema([pa.field("full", batch.schema.field("full").type, nullable=False)])
    path = tmp_path / "d.arrow"
    with ipc.new_file(path, schema) as writer:
        writer.write_batch(pa.record_batch([batch["full"]], schema=schema))
    with (
        Table.open(path, device="cpu:0") as table,
        pytest.raises(DataError, match="row group 0, column 'full': a column that is declared not nullable has nulls"),
    ):
        table.fetch()


# Types that are flat.


def flat_types(rows: int) -> pa.Table:
    ids = [None if i % 6 == 5 else uuid.UUID(int=i % 9).bytes for i in range(rows)]
    halves = [None if i % 5 == 4 else np.float16(i / 8) for i in range(rows)]
    return pa.table(
        {
            "u": pa.array(ids, pa.uuid()),
            "n": pa.nulls(rows),
            "h": pa.array(halves, pa.float16()),
            "x": range(rows),
        }
    )


@pytest.mark.parametrize("form", ["parquet", "file", "stream", "memory"])
def test_uuids_halves_and_nulls_come_back_as_they_were(tmp_path, form):
    table = flat_types(100)
    path = tmp_path / "flat"
    if form == "parquet":
        pq.write_table(table, path, row_group_size=30)
    elif form != "memory":
        make = ipc.new_stream if form == "stream" else ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=30)
    with Table.from_arrow(table, "cpu:0") if form == "memory" else Table.open(path, device="cpu:0") as stored:
        got = stored.fetch().to_arrow()
        assert got.schema.types == table.schema.types
        assert plain(got) == plain(table)
        selected = stored.filter(col("x") >= 50).to_arrow()
        assert selected.schema.types == table.schema.types
        assert plain(selected) == plain(table.slice(50))
        assert stored.agg(col("n").count(), col("h").max(), col("u").count()).to_arrow().to_pylist() == [
            {"count(n)": 0, "max(h)": 12.25, "count(u)": 84}
        ]
        assert stored.filter(col("n").is_null() & (col("h") == 3.25)).to_arrow()["x"].to_pylist() == [26]
        groups = stored.group_by("u").agg(count()).order_by("u").to_arrow()
        assert sum(groups["count"].to_pylist()) == 100
        assert len(groups) == 10


def test_files_of_duckdb_and_polars_with_such_types(tmp_path):
    path = tmp_path / "uuid.parquet"
    duckdb.sql(f"copy (select uuid() as u, i as x, null as n from range(50) t(i)) to '{path}' (format parquet)")
    with Table.open(path, device="cpu:0") as table:
        got = table.fetch().to_arrow().to_pydict()
        expected = sql(f"select u, x, n from '{path}' order by x")
        assert [
            (uuid.UUID(bytes=u) if isinstance(u, bytes) else u, x, n) for u, x, n in zip(*got.values(), strict=True)
        ] == expected
    frame = pl.DataFrame({"x": [1, 2], "n": pl.Series([None, None], dtype=pl.Null)})
    frame.write_parquet(path)
    with Table.open(path, device="cpu:0") as table:
        assert table.fetch().to_arrow().to_pydict() == {"x": [1, 2], "n": [None, None]}
    with Table.from_arrow(frame, "cpu:0") as table:
        assert table.filter(col("x") > 1).to_arrow().to_pydict() == {"x": [2], "n": [None]}


# What is left out.


def test_a_query_and_a_fetch_leave_out_the_same_and_say_so(tmp_path, caplog):
    path = tmp_path / "mixed.parquet"
    pq.write_table(pa.table({"x": [1, 2], "l": [[1], [2]], "s": [{"a": 1}] * 2, "y": ["a", "b"]}), path)
    for ask in (
        lambda table: table.fetch().column_names,
        lambda table: table.filter(col("x") > 1).to_arrow().column_names,
    ):
        caplog.clear()
        with caplog.at_level(logging.WARNING), Table.open(path, device="cpu:0") as table:
            assert ask(table) == ask(table) == ["x", "y"]
            assert caplog.messages == [
                f"{path}: left out what cannot be fetched: 'l' (list<element: int64>), 's' (struct<a: int64>)"
            ]
            assert list(table.left_out) == ["l", "s"]
            assert "leaves out l, s, which cannot be fetched" in table.filter(col("x") > 1).explain()
            with pytest.raises(UsageError, match="column 'l' is of type list"):
                table.filter(col("x") > 1).select("x", "l").to_arrow()


def test_more_columns_than_one_program_has_room_for(tmp_path):
    rng = np.random.default_rng(5)
    names = [f"c{number}" for number in range(150)]
    rows = 500
    columns: dict[str, object] = {
        name: pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.1) for name in names
    }
    wide = [decimal.Decimal(int(value)) * 10**25 for value in rng.integers(-9, 9, rows)]
    columns |= {f"w{number}": pa.array(wide, pa.decimal128(38, 0)) for number in range(70)}
    whole = pa.table(columns)
    path = tmp_path / "wide.parquet"
    pq.write_table(whole, path, row_group_size=100)
    small = headrace.fetch.Levels("cpu", device_bytes=2 << 20, slab_bytes=1 << 18)
    for caches in (headrace.fetch.Levels("cpu"), small):
        with Table.open(path, levels=caches) as table:
            mask = [value is not None and value > 5 for value in whole["c149"].to_pylist()]
            expected = whole.filter(pa.array(mask))
            got = table.filter(col("c149") > 5).to_arrow()
            assert got.column_names == expected.column_names
            assert plain(got) == plain(expected)
            first = table.filter(col("c149") > 5).order_by("c3", ("c100", "descending")).limit(17).to_arrow()
            keys = [("c3", "ascending"), ("c100", "descending")]
            theirs = duckdb.sql(
                "select * from expected order by c3 nulls last, c100 desc nulls last limit 17"
            ).to_arrow_table()
            assert [(a, b) for a, b in zip(*(first[name].to_pylist() for name, _ in keys), strict=True)] == [
                (a, b) for a, b in zip(*(theirs[name].to_pylist() for name, _ in keys), strict=True)
            ]
            rows_by_all = {tuple(row.values()) for row in expected.to_pylist()}
            assert all(tuple(row.values()) in rows_by_all for row in first.to_pylist())
            computed = table.select(**{f"e{number}": col(f"c{number}") * 2 + 1 for number in range(60)}).to_arrow()
            assert computed["e59"].to_pylist() == [None if v is None else 2 * v + 1 for v in whole["c59"].to_pylist()]
    with Table.open(path, device="cpu:0") as table:
        assert " passes" in table.filter(col("c149") > 5).explain()


# Checksums of pages.


def damaged(path, column: str, compression: str) -> pa.Table:
    """A file with checksums, with one byte of a page changed in a way that decoders do not notice."""
    table = pa.table({"a": np.arange(4000), "b": np.arange(4000) * 7})
    pq.write_table(
        table, path, row_group_size=1000, use_dictionary=False, compression=compression, write_page_checksum=True
    )
    metadata = pq.ParquetFile(path).metadata.row_group(2).column(table.schema.get_field_index(column))
    content = bytearray(path.read_bytes())
    content[metadata.data_page_offset + metadata.total_compressed_size - 9] ^= 0x10
    path.write_bytes(content)
    return table


def test_checksums_of_pages_are_verified_when_asked_for(tmp_path):
    path = tmp_path / "damaged.parquet"
    whole = damaged(path, "b", "none")
    checked = FetchOptions(verify_checksums=True)
    with Table.open(path, device="cpu:0") as table:
        assert table.fetch().to_arrow() != whole  # verification is off
        with pytest.raises(DataError, match=rf"{path}, row group 2, column 'b': .*CRC"):
            table.fetch(options=checked)  # regardless of the caches' content
        assert table.fetch(["a"], options=checked).to_arrow().equals(whole.select(["a"]))
    with Table.open(path, device="cpu:0", options=checked) as table:
        for ask in (table.fetch, lambda: table.agg(col("b").sum()).to_arrow(), lambda: list(table.stream())):
            with pytest.raises(DataError, match=rf"{path}, row group 2, column 'b': .*CRC"):
                ask()
        assert table.agg(col("a").sum()).to_arrow().to_pylist() == [{"sum(a)": 4000 * 3999 // 2}]


def test_the_command_line_verifies_checksums(tmp_path, run):
    path = tmp_path / "damaged.parquet"
    damaged(path, "b", "none")
    assert run("fetch", path, "--to", "cpu").returncode == 0
    done = run("fetch", path, "--to", "cpu", "--verify-checksums")
    assert done.returncode == 1
    assert f"{path}, row group 2, column 'b'" in done.stderr
    done = run("fetch", path, "--to", "cpu", "--columns", "a", "--verify-checksums", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"] == 4000


# Streams.


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("end", [True, False])
def test_streams_of_arrow_are_files_as_well(tmp_path, compression, end):
    path = tmp_path / "table.arrows"
    table = pa.table(
        {
            "x": range(ROWS),
            "s": [None if i % 3 == 0 else f"s{i % 40}" for i in range(ROWS)],
            "d": pa.array([f"d{i // 700}" for i in range(ROWS)]).dictionary_encode(),
            "l": [[i] for i in range(ROWS)],
            "f": pa.array([None if i % 5 == 0 else i / 3 for i in range(ROWS)]),
        }
    )
    options = ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, table.schema, options=options) as writer:
        for at in range(0, ROWS, 700):  # each with its own dictionary, which replaces the previous one
            part = table.slice(at, 700)
            kinds = pa.array(part["d"].to_pylist()).dictionary_encode()
            writer.write_table(part.set_column(2, "d", kinds))
    if not end:
        path.write_bytes(path.read_bytes()[:-8])  # without its end, which a producer may not have written
    for host in ("pinned", "pageable"):
        with Table.open(path, levels=headrace.fetch.Levels("cpu", host=host)) as stored:
            assert len(stored.fragments) == 5
            expected = plain(table.drop_columns(["l"]))
            assert plain(stored.fetch().to_arrow()) == expected
            assert plain(stored.fetch(["f", "x"]).to_arrow()) == {name: expected[name] for name in ("f", "x")}
            assert stored.agg(col("x").sum()).to_arrow().to_pylist() == [{"sum(x)": ROWS * (ROWS - 1) // 2}]


def test_streams_of_before_arrow_0_15(tmp_path):
    path = tmp_path / "old.arrows"
    table = pa.table({"x": range(100), "s": ["a", "b"] * 50})
    options = ipc.IpcWriteOptions(use_legacy_format=True, metadata_version=ipc.MetadataVersion.V4)
    with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=30)
    assert not path.read_bytes().startswith(b"\xff")
    with Table.open(path, device="cpu:0") as stored:
        assert plain(stored.fetch().to_arrow()) == plain(table)


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
def test_two_columns_of_one_name_are_refused(tmp_path, make):
    path = tmp_path / "twice"
    table = pa.table([[1], [2]], names=["x", "x"])
    with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match=f"{path} has two columns called 'x'"):
        Table.open(path, device="cpu:0")


def test_streams_that_are_empty_or_cut(tmp_path):
    path = tmp_path / "table.arrows"
    table = pa.table({"x": range(1000), "s": ["a"] * 1000})
    with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, table.schema):
        pass
    with Table.open(path, device="cpu:0") as stored:
        assert stored.num_rows == 0
        assert stored.fetch().to_arrow().num_rows == 0
    with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    whole = path.read_bytes()
    for size in (9, 20, 100, len(whole) // 2 + 4, len(whole) - 200):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=str(path)):
            Table.open(path, device="cpu:0").fetch()
    frame = pl.DataFrame({"x": [1, 2], "s": ["a", None]})
    frame.write_ipc_stream(path)
    with Table.open(path, device="cpu:0") as stored:
        assert stored.fetch().to_arrow().to_pydict() == frame.to_dict(as_series=False)


# Invalid files, names and types.


class _Schema(ctypes.Structure):
    """The first members of an ArrowSchema."""


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


def with_intervals(rows: int) -> pa.RecordBatch:
    """A batch whose second column has months, which pyarrow reads and writes but does not know."""
    batch = pa.record_batch({"x": range(rows), "months": pa.array(range(rows), pa.int32()), "s": ["a"] * rows})
    array = ctypes.create_string_buffer(256)
    schema = _Schema()
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    schema.children[1].contents.format = b"tiM"
    return pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_a_type_that_pyarrow_does_not_know_costs_only_its_column(tmp_path, make, compression):
    path = tmp_path / "intervals"
    batch = with_intervals(10)
    options = ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, make(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    with Table.open(path, device="cpu:0") as table:
        assert table.fetch().to_arrow().to_pydict() == {"x": [*range(10)] * 2, "s": ["a"] * 20}
        with pytest.raises(UsageError, match="column 'months' is of type month_interval, which is not supported"):
            table.fetch(["months"])
        assert table.filter(col("x") > 8).to_arrow()["x"].to_pylist() == [9, 9]


def test_a_type_that_pyarrow_does_not_take_names_its_column():
    frame = pl.DataFrame({"x": [1], "big": pl.Series([1], dtype=pl.Int128), "s": ["a"]})
    with pytest.raises(UsageError, match="column 'big' of DataFrame has a type that is not supported") as raised:
        Table.from_arrow(frame, "cpu:0")
    assert raised.value.code == Errc.not_supported


def test_a_producer_that_fails_is_an_error_of_headraces_own():
    def batches():
        yield pa.record_batch({"x": [1]})
        raise ValueError("the producer has had enough")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), batches())
    with pytest.raises(DataError, match="enough"):
        Table.from_arrow(reader, "cpu:0")


def test_what_is_no_path_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    with Table.open(os.fsencode(path), device="cpu:0") as table:
        assert table.files == [str(path)]
    with Table.open([path, os.fsencode(path), str(path)], device="cpu:0") as table:
        assert table.num_rows == 3
    with path.open("rb") as file:
        for wrong in (file, io.BytesIO(path.read_bytes()), 7, None, [7], [None, path], b"a\0b", "a\0b", 1.5):
            with pytest.raises(UsageError):
                Table.open(wrong, device="cpu:0")
    with Table.open(path, device="cpu:0") as table:
        for wrong in (5, [5], [b"x"], b"x", "x", [None]):
            with pytest.raises(UsageError):
                table.fetch(wrong)


def test_arguments_of_another_type_are_refused():
    table = Table.from_arrow(pa.table({"x": [1]}), "cpu:0")
    for wrong in (
        lambda: table.fetch(fragments=5),
        lambda: table.fetch(fragments=["a"]),
        lambda: table.fetch(fragments=[-1]),
        lambda: table.select(col("x").cast(5)),
        lambda: table.limit("3"),
        lambda: table.select("x").order_by(5),
        lambda: Table.from_arrow(pa.table({"x": [1]}), "cpu:0", fragment_rows="a"),
        lambda: Table.from_arrow({"x": [1]}, "cpu:0"),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_a_dictionary_of_nothing_comes_back_as_it_was():
    kind = pa.dictionary(pa.int8(), pa.null())
    column = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.nulls(0))
    got = Table.from_arrow(pa.table({"n": column}), "cpu:0").fetch().to_arrow()["n"]
    assert (got.type, got.to_pylist()) == (kind, [None, None])


def test_a_file_whose_name_is_no_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "plain.parquet")
    Path(os.fsdecode(name)).write_bytes((tmp_path / "plain.parquet").read_bytes())
    (tmp_path / "plain.parquet").unlink()
    for path in (name, tmp_path, os.fsdecode(name)):
        with Table.open(path, device="cpu:0") as table:
            assert table.fetch().to_arrow()["x"].to_pylist() == [1, 2]
            assert table.files == [f"{tmp_path}/\\xff\\xfe.parquet"]
    Path(os.fsdecode(name)).write_bytes(b"no table at all")
    with pytest.raises(DataError, match=r"\\xff\\xfe.parquet is neither"):
        Table.open(name)


@pytest.mark.parametrize("form", ["parquet", "file", "lz4", "memory"])
def test_names_with_a_zero_byte_are_names(tmp_path, form):
    path = tmp_path / "zero"
    table = pa.table({"n\0": [1], "n": [2], "n\0b": ["x"], "\0": [4.5], "n\\0": [True]})
    if form == "parquet":
        pq.write_table(table, path)
    elif form != "memory":
        options = ipc.IpcWriteOptions(compression="lz4" if form == "lz4" else None)
        with ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table)
    with Table.from_arrow(table, "cpu:0") if form == "memory" else Table.open(path, device="cpu:0") as stored:
        assert stored.fetch().to_arrow().to_pydict() == table.to_pydict()
        assert stored.filter(col("n\0") == 1).select("n\0b", "n").to_arrow().to_pydict() == {"n\0b": ["x"], "n": [2]}
