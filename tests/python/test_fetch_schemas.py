"""Files of one table with different schemas, compared with DuckDB and pyarrow."""

import datetime
import decimal
import itertools

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from headrace import DataError, UsageError, _core
from headrace.fetch import Table, col, count

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

DAY = datetime.date(2024, 2, 29)
STAMP = datetime.datetime(2024, 2, 29, 12, 30, 15)  # noqa: DTZ001
PRICE = decimal.Decimal("12.34")
ZONED = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)

# Types whose values all fit into the last one.
FAMILIES = {
    "signed integers": ([-7, 100], [pa.int8(), pa.int16(), pa.int32()], pa.int64()),
    "unsigned integers": ([7, 200], [pa.uint8(), pa.uint16(), pa.uint32()], pa.uint64()),
    "integers": ([7, 100], [pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()], pa.int64()),
    "floats": ([0.5, -3.25], [pa.float16(), pa.float32()], pa.float64()),
    "numbers": ([7, 100], [pa.int32(), pa.uint8(), pa.float32()], pa.float64()),
    "decimals": ([PRICE, -PRICE], [pa.decimal128(5, 2), pa.decimal128(12, 4)], pa.decimal128(30, 6)),
    "stamps": ([STAMP], [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")], pa.timestamp("ns")),
    "zoned stamps": ([ZONED], [pa.timestamp("ms", "UTC")], pa.timestamp("us", "UTC")),
    "times": ([datetime.time(1, 2, 3)], [pa.time32("s"), pa.time32("ms"), pa.time64("us")], pa.time64("ns")),
    "durations": ([datetime.timedelta(seconds=90)], [pa.duration("s"), pa.duration("ms")], pa.duration("us")),
    "dates": ([DAY], [pa.date64()], pa.date32()),
    "strings": (
        ["a", "", "ä"],
        [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
        pa.string(),
    ),
    "bytes": ([b"ab", b"\xff\0"], [pa.large_binary(), pa.binary(2), pa.binary_view()], pa.binary()),
}


def write(path, table: pa.Table, form: str) -> None:
    if form == "parquet":
        pq.write_table(table, path, row_group_size=2)
        return
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def typed(values, kind):
    if pa.types.is_float16(kind):
        return pa.array([None if value is None else np.float16(value) for value in values], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


@pytest.mark.parametrize("form", ["parquet", "ipc"])
@pytest.mark.parametrize("family", FAMILIES)
def test_types_of_a_family_are_read_as_one_that_holds_them(tmp_path, family, form):
    values, kinds, widest = FAMILIES[family]
    kinds = [*kinds, widest, pa.null()]
    for number, pair in enumerate(itertools.permutations(kinds, 2)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        expected = []
        for place, kind in enumerate(pair):
            column = [None] * 3 if pa.types.is_null(kind) else [*values, None]
            expected += column
            write(folder / f"{place}.{form}", pa.table({"k": [place] * len(column), "x": typed(column, kind)}), form)
        with Table.open(folder, device="cpu:0") as table:
            assert table.fetch().to_arrow()["x"].to_pylist() == expected, pair
            assert table.select("x").to_arrow()["x"].to_pylist() == expected, pair
            missing = table.filter(col("x").is_null()).agg(count()).to_arrow().to_pylist()
            assert missing == [{"count": expected.count(None)}], pair


def test_statistics_of_files_are_in_the_type_of_each(tmp_path):
    """Row groups are excluded by statistics of the file's type and a literal of the table's type."""
    rng = np.random.default_rng(3)
    pairs = [
        ("uint32", "int64", 2**32 - 1),
        ("int8", "int64", 127),
        ("uint8", "int16", 255),
        ("uint16", "uint64", 2**16 - 1),
        ("int32", "double", 2**31 - 1),
        ("float", "double", 3.0e38),
    ]
    for number, (narrow, wide, most) in enumerate(pairs):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        low = 0 if narrow.startswith("u") else -most
        for place, kind in enumerate((narrow, wide)):
            values = np.sort(rng.uniform(low, most, 200))
            values = values if kind in {"float", "double"} else values.astype(np.int64)
            table = pa.table({"x": pa.array(values).cast(kind, safe=False)})
            pq.write_table(table, folder / f"{place}.parquet", row_group_size=10)
        with Table.open(folder, device="cpu:0") as table:
            x = table.fetch(["x"]).to_arrow()["x"].to_pylist()
            for edge in [*rng.choice(x, 10).tolist(), low, most]:
                got = table.filter(col("x") > edge).agg(count()).to_arrow().to_pylist()
                assert got == [{"count": sum(value > edge for value in x)}], (narrow, wide, edge)


def test_columns_in_another_order_and_required_ones_change_nothing(tmp_path):
    first = pa.table(
        [pa.array([1, 2]), pa.array(["a", None])],
        schema=pa.schema([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string())]),
    )
    write(tmp_path / "0.parquet", first, "parquet")
    write(tmp_path / "1.arrow", pa.table({"y": ["b", "c"], "x": pa.array([3, None])}), "ipc")
    write(tmp_path / "2.parquet", pa.table({"y": ["d"], "x": [5]}), "parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        assert table.schema.names == ["x", "y"]
        assert table.schema.field("x").nullable
        assert table.fetch().to_arrow().to_pydict() == {
            "x": [1, 2, 3, None, 5],
            "y": ["a", None, "b", "c", "d"],
        }


HARMFUL = {
    "text and number": (["a"], [1], "int64, not string"),
    "text and bytes": (["a"], [b"a"], "binary, not string"),
    "truth and number": ([True], [1], "int64, not bool"),
    "zoned and not": ([ZONED], [STAMP], r"timestamp\[us\], not timestamp\[us, tz=UTC\]"),
    "date and stamp": ([DAY], [STAMP], r"timestamp\[us\], not date32"),
    "decimals too wide": (
        pa.array([decimal.Decimal(1)], pa.decimal128(38, 0)),
        pa.array([decimal.Decimal(1)], pa.decimal128(38, 10)),
        r"decimal128\(38, 10\), not decimal128\(38, 0\)",
    ),
    "a column that is not there": ([1], None, "no such column, not int64"),
}


@pytest.mark.parametrize("case", HARMFUL)
def test_other_differences_are_an_error_of_whoever_asks(tmp_path, case):
    first, second, why = HARMFUL[case]
    pq.write_table(pa.table({"x": [1], "y": first}), tmp_path / "0.parquet")
    other = pa.table({"x": [2]} if second is None else {"x": [2], "y": second})
    pq.write_table(other, tmp_path / "1.parquet")
    reason = rf"{tmp_path}/1.parquet differs from {tmp_path}/0.parquet in column 'y': {why}"
    for ask in (
        lambda table: table.fetch(["y"]),
        lambda table: table.fetch(),
        lambda table: table.filter(col("x") > 0).to_arrow(),
        lambda table: table.agg(col("y").count()).to_arrow(),
    ):
        with Table.open(tmp_path, device="cpu:0") as table, pytest.raises(UsageError, match=reason):
            ask(table)
    with pytest.raises(UsageError, match=reason):
        Table.open(tmp_path, ["y"], device="cpu:0")
    with Table.open(tmp_path, ["x"], device="cpu:0") as table:
        assert table.fetch().to_arrow()["x"].to_pylist() == [1, 2]
    with Table.open(tmp_path, device="cpu:0") as table:
        assert table.select("x").to_arrow()["x"].to_pylist() == [1, 2]
        assert duckdb.sql(f"select x from read_parquet('{tmp_path}/*.parquet') order by x").fetchall() == [(1,), (2,)]


def test_a_column_that_only_a_later_file_has_is_an_error_of_whoever_asks(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": [2], "late": [3]}), tmp_path / "1.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        assert table.schema.names == ["x", "late"]
        assert table.agg(col("x").sum()).to_arrow().to_pylist() == [{"sum(x)": 3}]
        with pytest.raises(UsageError, match=r"0.parquet differs from .*1.parquet in column 'late': no such column"):
            table.fetch(["late"])


def test_lists_that_differ_are_left_out_as_lists_are(tmp_path, caplog):
    pq.write_table(pa.table({"x": [1], "l": [[1]]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": [2], "l": [["a"]]}), tmp_path / "1.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        assert table.fetch().column_names == ["x"]
        assert "left out what cannot be fetched: 'l' (list<" in caplog.text
        with pytest.raises(UsageError, match="column 'l' is of type list"):
            table.fetch(["l"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([datetime.datetime(9999, 12, 31)], pa.timestamp("us")), pa.array([1], pa.timestamp("ns"))),  # noqa: DTZ001
        (pa.array([2**53 + 1]), pa.array([0.5])),
    ],
)
def test_a_value_that_the_common_type_does_not_hold_is_an_error(tmp_path, first, second):
    pq.write_table(pa.table({"x": first}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": second}), tmp_path / "1.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        with pytest.raises(DataError, match=rf"{tmp_path}/0.parquet, row group 0, column 'x': "):
            table.fetch()
        assert table.fetch(fragments=[1]).num_rows == 1


def test_random_files_are_what_pyarrow_makes_of_them(tmp_path):
    """Folders with a few files whose columns are shuffled, widened, all null or missing."""
    rng = np.random.default_rng(11)
    choices = {
        "i": [pa.int16(), pa.int32(), pa.int64(), pa.null()],
        "f": [pa.float32(), pa.float64()],
        "s": [pa.string(), pa.large_string(), pa.null()],
        "t": [pa.timestamp("ms"), pa.timestamp("us")],
        "b": [pa.bool_(), pa.null()],
    }
    for number in range(12):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        whole = []
        for place in range(4):
            rows = int(rng.integers(0, 30))
            columns = {}
            for name in rng.permutation(list(choices)).tolist():
                kind = choices[name][rng.integers(len(choices[name]))]
                values = rng.integers(-50, 50, rows).tolist()
                made = {
                    "i": values,
                    "f": [value / 4 for value in values],
                    "s": [f"s{value}" for value in values],
                    "t": values,
                    "b": [value > 0 for value in values],
                }[name]
                made = [None if pa.types.is_null(kind) or rng.random() < 0.2 else value for value in made]
                columns[name] = pa.array(made, kind)
            pq.write_table(pa.table(columns), folder / f"{place}.parquet", row_group_size=7)
            whole.append(pa.table(columns))
        widest = pa.schema(
            [("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("t", pa.timestamp("us")), ("b", pa.bool_())]
        )
        theirs = ds.dataset(folder, schema=widest).to_table()
        with Table.open(folder, device="cpu:0") as table:
            ours = table.fetch(list(choices)).to_arrow()
            for name in choices:
                assert ours[name].to_pylist() == theirs[name].to_pylist(), name
            edge = int(rng.integers(-50, 50))
            if not pa.types.is_null(table.schema.field("i").type):
                got = table.filter(col("i") < edge).agg(count(), col("f").sum()).to_arrow().to_pylist()
                kept = [row for row in theirs.to_pylist() if row["i"] is not None and row["i"] < edge]
                sums = [row["f"] for row in kept if row["f"] is not None]
                assert got == [{"count": len(kept), "sum(f)": sum(sums) if sums else None}]
