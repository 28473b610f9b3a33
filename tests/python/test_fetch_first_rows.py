"""The first rows of an order, compared with a stable sort of all rows and with DuckDB."""

import decimal
import functools
import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from headrace import Device, _core
from headrace.fetch import Levels, Table, col

DEVICES = [device.name for device in Device.list()]
pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB"),
]
ROWS = 60_000


def make() -> pa.Table:
    """Columns with many equal values, missing values, NaN, and row numbers."""
    rng = np.random.default_rng(7)
    some = rng.random(ROWS)

    def holes(values, every):
        return pa.array(values, mask=np.arange(ROWS) % every == 3)

    return pa.table(
        {
            "row": np.arange(ROWS),
            "few": holes(rng.integers(0, 3, ROWS, np.int8), 97),
            "wide": holes(rng.integers(-(2**63), 2**63 - 1, ROWS), 211),
            "real": holes(np.where(some < 0.01, np.nan, np.round(some * 100 - 50, 1)), 53),
            "half": holes(rng.random(ROWS).astype(np.float32), 101),
            "flag": holes(rng.integers(0, 2, ROWS).astype(bool), 1009),
            "big": rng.integers(0, 2**64 - 1, ROWS, np.uint64),
            "text": pa.array([None if i % 301 == 5 else f"t{i * 31 % 977}" for i in range(ROWS)]),
            "rising": np.arange(ROWS) // 2,
        }
    )


def place(value, descending):
    """The sort position of a value: missing ones last, NaN before them, in either direction."""
    if value is None:
        return (2, 0)
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    if isinstance(value, decimal.Decimal):
        value = int(value.scaleb(2, decimal.Context(prec=60)))  # a sign operator would round it to 28 digits
    if isinstance(value, str):
        value = int.from_bytes(value.encode().ljust(8, b"\0"), "big")
    return (0, -value if descending else value)


def expected(table: pa.Table, order, limit, keep=None):
    columns = {name: table[name].to_pylist() for name in table.column_names}
    rows = [row for row in range(table.num_rows) if keep is None or keep(columns, row)]
    rows.sort(key=lambda row: tuple(place(columns[name][row], way == "descending") for name, way in order))
    return rows[:limit]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return make()


@pytest.fixture(scope="module")
def sorted_rows(table):
    """All rows in an order, sorted once for all limits."""
    return functools.cache(lambda order: expected(table, order, None))


ORDERS = [
    [("wide", "descending")],
    [("wide", "ascending")],
    [("real", "descending")],
    [("real", "ascending"), ("few", "descending")],
    [("few", "ascending"), ("flag", "descending"), ("half", "ascending")],
    [("flag", "ascending")],
    [("big", "descending")],
    [("text", "descending"), ("big", "ascending")],
    [("text", "ascending")],
    [("rising", "descending")],
    [("rising", "ascending")],
    [("few", "descending"), ("text", "ascending"), ("flag", "ascending"), ("row", "descending")],
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(f"{name}.{way[0]}" for name, way in order))
@pytest.mark.parametrize("limit", [1, 10, 7000])
def test_they_are_those_of_a_stable_sort(device, table, sorted_rows, order, limit):
    stored = Table.from_arrow(table, device, fragment_rows=7001)
    query = stored.select("row", *(name for name, _ in order if name != "row")).order_by(*order).limit(limit)
    found = query.to_arrow()
    rows = sorted_rows(tuple(order))[:limit]
    assert found["row"].to_pylist() == rows
    for name, _ in order:
        assert str(found[name].to_pylist()) == str(table[name].take(rows).to_pylist())


def test_few_rows_are_found_in_one_pass(device, table):
    stored = Table.from_arrow(table, device)
    query = stored.select("row").order_by(("row", "descending")).limit(5)
    assert "bound" in query.explain()
    assert "bound" not in stored.select("row").order_by("row").explain()
    assert "bound" not in stored.select("row").order_by("row").limit(ROWS // 2).explain()


@pytest.mark.parametrize("bound", [-1, 0, 2, 3])
def test_rows_that_a_filter_drops_are_not_among_them(device, table, bound):
    stored = Table.from_arrow(table, device, fragment_rows=9000)
    order = [("real", "descending"), ("row", "ascending")]
    found = stored.filter(col("few") >= bound).select("row", "real").order_by(*order).limit(100).to_arrow()

    def keep(columns, row):
        return columns["few"][row] is not None and columns["few"][row] >= bound

    assert found["row"].to_pylist() == expected(table, order, 100, keep)


def test_fewer_rows_than_asked_for_are_all_there(device, table):
    stored = Table.from_arrow(table, device)
    found = stored.filter(col("row") >= ROWS - 7).select("row").order_by(("row", "descending")).limit(1000).to_arrow()
    assert found["row"].to_pylist() == list(range(ROWS - 1, ROWS - 8, -1))
    none = stored.filter(col("row") < 0).select("row").order_by("row").limit(3).to_arrow()
    assert none.num_rows == 0


def test_rows_are_ordered_by_what_is_computed(device, table):
    stored = Table.from_arrow(table, device, fragment_rows=11_000)
    query = stored.select("row", z=(col("rising") % 1000) * -1).order_by("z", ("row", "descending")).limit(50)
    rows = sorted(range(ROWS), key=lambda row: (-(row // 2 % 1000), -row))[:50]
    assert query.to_arrow()["row"].to_pylist() == rows


def test_more_rows_than_there_is_room_for_are_run_again(device):
    """Each row precedes all those of the tiles before it: the worst possible order."""
    rows = 3_000_000
    rising = np.arange(rows) // 3
    stored = Table.from_arrow(pa.table({"x": rising, "row": np.arange(rows)}), device, fragment_rows=700_001)
    found = stored.select("x", "row").order_by(("x", "descending")).limit(10).to_arrow()
    last = rows // 3 - 1
    assert found["x"].to_pylist() == [last - i // 3 for i in range(10)]
    assert found["row"].to_pylist() == [3 * (last - i // 3) + i % 3 for i in range(10)]


@pytest.mark.parametrize("limit", [1, 50, 5000])
def test_they_are_duckdbs(device, table, limit):
    numbers = table.select(["row", "few", "wide", "half"])
    stored = Table.from_arrow(numbers, device, fragment_rows=5000)
    found = stored.select("row", "few", "wide").order_by("few", ("wide", "descending"), "row").limit(limit).to_arrow()
    connection = duckdb.connect()
    connection.register("numbers", numbers)
    sql = f"select row from numbers order by few nulls last, wide desc nulls last, row limit {limit}"
    assert found["row"].to_pylist() == [row[0] for row in connection.execute(sql).fetchall()]


@pytest.mark.parametrize("groups", ["many keys", "a key of its own for each row"])
def test_very_many_groups_are_right(device, groups):
    rng = np.random.default_rng(3)
    rows = 200_000
    keys = rng.integers(0, 1 << 62, rows) if groups == "many keys" else np.arange(rows) * 7919
    table = pa.table({"k": keys, "j": keys % 5, "x": rng.integers(0, 100, rows)})
    stored = Table.from_arrow(table, device, fragment_rows=30_000)
    found = stored.group_by("k", "j").agg(n=col("x").count(), total=col("x").sum()).to_arrow()
    connection = duckdb.connect()
    connection.register("numbers", table)
    sql = "select k, j, count(x) n, sum(x) total from numbers group by k, j order by k"
    theirs = connection.sql(sql).to_arrow_table()
    order = np.argsort(found["k"].to_numpy())
    assert found["k"].take(order).to_pylist() == theirs["k"].to_pylist()
    assert found["n"].take(order).to_pylist() == theirs["n"].to_pylist()
    assert [int(total) for total in found["total"].take(order).to_pylist()] == [
        int(total) for total in theirs["total"].to_pylist()
    ]


def decimals(rows: int) -> pa.Table:
    """Decimals of 64 and 128 bits, with equal values, equal high halves, both signs and missing values."""
    rng = np.random.default_rng(11)
    high = rng.integers(-3, 4, rows)
    low = rng.integers(0, 2**63, rows)
    wide = [
        None if row % 89 == 7 else decimal.Decimal(int(high[row]) * 2**64 + int(low[row]) % (9 if row % 2 else 2**62))
        for row in range(rows)
    ]
    narrow = [None if row % 61 == 2 else decimal.Decimal(int(low[row]) % 1000 - 500).scaleb(-2) for row in range(rows)]
    return pa.table(
        {
            "row": np.arange(rows),
            "wide": pa.array(wide, pa.decimal128(38, 0)),
            "narrow": pa.array(narrow, pa.decimal128(12, 2)),
        }
    )


@pytest.mark.parametrize("limit", [1, 40, 2500])
@pytest.mark.parametrize(
    ("order", "bounded"),
    [
        ([("wide", "descending")], True),
        ([("wide", "ascending")], True),
        ([("narrow", "descending"), ("wide", "ascending")], True),
        ([("wide", "descending"), ("narrow", "ascending"), ("row", "descending")], True),
        # A wide decimal takes two of the four keys of a bound.
        ([("narrow", "ascending"), ("wide", "descending"), ("row", "ascending"), ("few", "ascending")], False),
    ],
)
def test_decimals_of_both_widths_are_ordered(device, order, bounded, limit):
    rows = 30_000
    table = decimals(rows).append_column("few", pa.array(np.arange(rows) % 3))
    stored = Table.from_arrow(table, device, fragment_rows=4321)
    query = stored.select("row", "wide", "narrow", "few").order_by(*order).limit(limit)
    assert ("bound" in query.explain()) == bounded
    found = query.to_arrow()
    first = expected(table, order, limit)
    assert found["row"].to_pylist() == first
    for name in ("wide", "narrow"):
        assert found[name].to_pylist() == table[name].take(first).to_pylist()


def test_more_values_than_a_program_has_room_for_are_of_the_same_rows(device):
    """Several passes over the same rows, some without room for the numbers of a bound."""
    rows = 20_000
    rng = np.random.default_rng(5)
    columns = {f"c{number}": rng.integers(0, 1000, rows) for number in range(130)}
    table = pa.table({"key": rng.integers(0, 50, rows), **columns})
    stored = Table.from_arrow(table, device, fragment_rows=3000)
    found = stored.select("key", *columns).order_by(("key", "descending")).limit(20).to_arrow()
    first = expected(table, [("key", "descending")], 20)
    assert found.equals(table.take(first))


@pytest.mark.parametrize("seed", range(6))
def test_random_orders_and_limits_are_those_of_a_stable_sort(device, table, seed):
    """Random orders, in windows when the levels cannot hold the columns."""
    rng = np.random.default_rng(100 + seed)
    names = ["few", "wide", "real", "half", "flag", "big", "text", "rising"]
    levels = Levels(device, device_bytes=4 << 20, slab_bytes=256 << 10) if seed % 2 else Levels(device)
    stored = Table.from_arrow(table, fragment_rows=int(rng.integers(1000, 20_000)), levels=levels)
    for _ in range(4):
        chosen = rng.choice(names, int(rng.integers(1, 4)), replace=False)
        order = [(str(name), str(rng.choice(["ascending", "descending"]))) for name in chosen]
        limit = int(rng.integers(1, ROWS // 6))
        least = int(rng.integers(0, ROWS))
        query = stored.filter(col("row") >= least).select("row", *(name for name, _ in order))
        found = query.order_by(*order).limit(limit).to_arrow()
        rows = expected(table, order, limit, lambda _, row, least=least: row >= least)
        assert found["row"].to_pylist() == rows, (order, limit, least)
