"""Scans compared with a simple reference, and refused scans."""

import collections
import datetime
import decimal
import math
from decimal import Decimal

import duckdb
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import Device, UsageError, _core
from headrace.fetch import Levels, Table, col, count, lit

DEVICES = [device.name for device in Device.list()]
pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB"),
]
SETTINGS = hypothesis.settings(max_examples=60, deadline=None)

INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1)
SMALL = st.none() | st.integers(-3, 3)
FLOATS = st.none() | st.floats()
DECIMALS = st.none() | st.decimals(-(10**15), 10**15, places=2)
ROWS = st.lists(
    st.tuples(SMALL, INTEGERS, FLOATS, DECIMALS, st.none() | st.booleans(), st.none() | st.text(max_size=2))
)
NEW_YEARS_EVE = datetime.datetime(1969, 12, 31, 1)  # noqa: DTZ001
SECOND = datetime.datetime(1970, 1, 2)  # noqa: DTZ001
SCHEMA = pa.schema(
    [
        ("k", pa.int8()),
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("d", pa.decimal128(18, 2)),
        ("b", pa.bool_()),
        ("s", pa.string()),
    ]
)


def table_of(rows, device, fragment_rows=7):
    columns = list(zip(*rows, strict=True)) or [[]] * 6
    source = pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)
    return Table.from_arrow(source, device, fragment_rows=fragment_rows)


def order(value):
    """Floats in a scan's order: both zeros equal, NaN last."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def key(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def of_group(rows, place):
    return [row[place] for row in rows if row[place] is not None]


@SETTINGS
@hypothesis.given(rows=ROWS)
def test_groups_are_those_of_a_plain_reference(device, rows):
    query = (
        table_of(rows, device)
        .group_by("k", "b")
        .agg(
            count(),
            n=col("i").count(),
            total=col("i").sum(),
            exact=col("d").sum(),
            least=col("f").min(),
            most=col("f").max(),
            first=col("s").min(),
        )
    )
    expected = collections.defaultdict(list)
    for row in rows:
        expected[row[0], row[4]].append(row)
    found = query.to_arrow().to_pylist()
    assert len(found) == len(expected)
    for group in found:
        mine = expected[group["k"], group["b"]]
        integers, decimals, floats, texts = (of_group(mine, place) for place in (1, 3, 2, 5))
        assert group["count"] == len(mine)
        assert group["n"] == len(integers)
        assert group["total"] == (sum(integers) if integers else None)
        assert group["exact"] == (sum(decimals) if decimals else None)
        assert (group["least"] is None) == (not floats)
        if floats:
            assert order(group["least"]) == order(min(floats, key=order))
            assert order(group["most"]) == order(max(floats, key=order))
        assert group["first"] == (min(texts, key=str.encode) if texts else None)


@SETTINGS
@hypothesis.given(rows=ROWS)
def test_keys_of_any_values_make_their_groups(device, rows):
    found = table_of(rows, device).group_by("i", "f", "s", "d").agg(count()).to_arrow()
    expected = collections.Counter((row[1], key(row[2]), row[5], row[3]) for row in rows)
    columns = [found.column(name).to_pylist() for name in ("i", "f", "s", "d", "count")]
    assert {(i, key(f), s, d): n for i, f, s, d, n in zip(*columns, strict=True)} == dict(expected)
    assert found.num_rows == len(expected)


@SETTINGS
@hypothesis.given(rows=ROWS, bound=st.integers(-3, 3), limit=st.integers(0, 20))
def test_filters_keep_rows_in_order(device, rows, bound, limit):
    table = table_of(rows, device)
    condition = (col("k") > bound) | col("b")
    found = table.filter(condition).select("k", "s", "b").limit(limit).to_arrow().to_pylist()
    kept = [row for row in rows if (row[0] is not None and row[0] > bound) or row[4] is True]
    assert found == [{"k": row[0], "s": row[5], "b": row[4]} for row in kept[:limit]]


@SETTINGS
@hypothesis.given(rows=ROWS, limit=st.integers(0, 40), down=st.tuples(*[st.booleans()] * 3))
def test_rows_are_ordered_missing_ones_last_equal_ones_as_they_were(device, rows, limit, down):
    for names in (("k", "f", "s"), ("b", "i", "d")):
        by = [(name, "descending" if descending else "ascending") for name, descending in zip(names, down, strict=True)]
        found = table_of(rows, device).order_by(*by).limit(limit).to_arrow().to_pylist()
        expected = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        for name, way in reversed(by):  # Python's sort is stable, reversed or not
            there = [row for row in expected if row[name] is not None and order(row[name]) != (1, 0.0)]
            nan = [row for row in expected if row[name] is not None and order(row[name]) == (1, 0.0)]
            missing = [row for row in expected if row[name] is None]
            there.sort(key=lambda row: row[name].encode() if name == "s" else row[name], reverse=way == "descending")
            expected = there + nan + missing
        assert [str(row) for row in found] == [str(row) for row in expected[:limit]]


def test_rows_are_ordered_by_what_is_computed_of_them(device):
    table = Table.from_arrow(
        pa.table({"x": pa.array(range(10_000)), "y": [i * 7919 % 10_007 for i in range(10_000)]}), device
    )
    query = table.filter(col("x") % 2 == 0).select("x", z=col("y") * -1).order_by("z")
    assert "then, on the device\n  order by z ascending" in query.explain()
    found, report = query.run()
    assert found.column("z").to_pylist() == sorted(-(i * 7919 % 10_007) for i in range(0, 10_000, 2))
    assert report.order_seconds > 0


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, None, None, None),
    ],
)
def test_logic_is_three_valued(device, left, right, both, either):
    source = pa.table({"l": pa.array([left, right], pa.bool_()), "r": pa.array([right, left], pa.bool_())})
    found = Table.from_arrow(source, device).select(
        both=col("l") & col("r"), either=col("l") | col("r"), neither=~(col("l") | col("r"))
    )
    result = found.to_arrow()
    assert result.column("both").to_pylist() == [both] * 2
    assert result.column("either").to_pylist() == [either] * 2
    assert result.column("neither").to_pylist() == [None if either is None else not either] * 2


NARROW = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32())
ARRAYS = [
    pa.array([True, None, False, True]),
    *(pa.array([0, None, 1, 7], type_) for type_ in NARROW),
    pa.array([-(2**63), None, 2**63 - 1, 0], pa.int64()),
    pa.array([0, None, 2**64 - 1, 2**63], pa.uint64()),
    pa.array([1.5, None, -0.1, math.inf], pa.float32()),
    pa.array([1.5, None, -0.1, math.inf], pa.float64()),
    pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31), datetime.date(2000, 2, 29)]),
    *(pa.array([-60, None, 4_102_444_800], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
    pa.array([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), None], pa.timestamp("us", "UTC")),
    pa.array([Decimal("-1.23"), None, Decimal("99999999.99")], pa.decimal128(10, 2)),
    pa.array([Decimal("-1.23"), None, Decimal("99999999.99")], pa.decimal128(38, 2)),
    pa.array(["b", None, "", "é", "b"]),
    pa.array(["b", None, "a", "b"], pa.large_string()),
    pa.array(["b", None, "a", "b"]).dictionary_encode(),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_every_type_goes_there_and_back(device, array):
    table = Table.from_arrow(pa.table({"x": array}), device, fragment_rows=3)
    result = table.select("x").to_arrow().column("x")
    assert result.to_pylist() == array.to_pylist()
    assert result.type == array.type or pa.types.is_dictionary(array.type)
    groups = table.group_by("x").agg(count()).to_arrow().to_pylist()
    assert {group["x"]: group["count"] for group in groups} == collections.Counter(array.to_pylist())
    extremes = table.agg(least=col("x").min(), most=col("x").max()).to_arrow().to_pylist()[0]
    values = [value for value in array.to_pylist() if value is not None]
    assert (extremes["least"], extremes["most"]) == (min(values), max(values))


@pytest.mark.parametrize("rows", [0, 1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("offset", [0, 1, 13])
def test_slices_and_sizes_around_a_tile(device, rows, offset):
    values = np.arange(rows + offset) % 11
    source = pa.table({"x": pa.array(values, mask=values == 4), "b": pa.array(values % 2 == 0)}).slice(offset)
    found = Table.from_arrow(source, device).filter(col("b")).group_by("x").agg(count()).to_arrow().to_pylist()
    expected = collections.Counter(None if x == 4 else int(x) for x in values[offset:] if x % 2 == 0)
    assert {group["x"]: group["count"] for group in found} == expected


def test_an_empty_table_has_no_groups_but_one_row_of_aggregates(device):
    table = Table.from_arrow(pa.table({"x": pa.array([], pa.int64())}), device)
    assert table.group_by("x").agg(count()).to_arrow().num_rows == 0
    assert table.agg(count(), sum=col("x").sum()).to_arrow().to_pylist() == [{"count": 0, "sum": None}]
    assert table.filter(col("x") > 0).select("x").to_arrow().num_rows == 0


def test_many_groups_outgrow_their_tables(device):
    rows = 300_000
    values = (np.arange(rows) * 2_654_435_761) % (1 << 40)
    found = Table.from_arrow(pa.table({"x": values.astype(float)}), device).group_by("x").agg(count()).to_arrow()
    assert found.num_rows == rows
    assert set(found.column("count").to_pylist()) == {1}


def test_years_are_those_of_the_calendar(device):
    days = np.arange(-800_000, 800_000, 97, dtype=np.int32)
    dates = pa.array(days).cast(pa.date32())
    stamps = dates.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    table = Table.from_arrow(pa.table({"d": dates, "t": stamps}), device)
    result = table.select(
        d=col("d").year(), t=col("t").year(), before=(col("t").cast("timestamp[us]")).year()
    ).to_arrow()
    expected = days.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
    assert result.column("d").to_pylist() == expected.tolist()
    assert result.column("t").to_pylist() == expected.tolist()


@pytest.mark.parametrize(
    ("value", "to", "expected"),
    [
        (2.5, "int32", 2),
        (-3.5, "int64", -4),
        (Decimal("2.5"), "int32", 3),
        (Decimal("-2.45"), pa.decimal128(5, 1), Decimal("-2.5")),
        (7, pa.decimal128(9, 3), Decimal("7.000")),
        (3, "bool", True),
        (True, "double", 1.0),
        (1.0 / 3, "float", float(np.float32(1.0 / 3))),
        (NEW_YEARS_EVE, "date32", datetime.date(1969, 12, 31)),
        (datetime.date(1970, 1, 2), pa.timestamp("ms"), SECOND),
    ],
)
def test_casts_round_as_they_should(device, value, to, expected):
    result = Table.from_arrow(pa.table({"x": pa.array([value, None])}), device).select(x=col("x").cast(to)).to_arrow()
    assert result.column("x").to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda t: t.select(x=col("i") * col("i")), "more than 64 bits"),
        (lambda t: t.select(x=col("i") + 2**62), "more than 64 bits"),
        (lambda t: t.select(x=col("i").cast("int32")), "a value that its type cannot hold"),
        (lambda t: t.select(x=(col("f") * 1e300).cast("int64")), "a value that its type cannot hold"),
        (lambda t: t.select(x=col("wide") + 1), "more than 64 bits"),
        (lambda t: t.filter(col("wide") > 5).select("i"), "more than 64 bits"),
        (lambda t: t.agg(col("wide").max()), "more than 64 bits"),
        (lambda t: t.group_by("wide").agg(count()), "more than 64 bits"),
        (lambda t: t.agg(col("wide").sum(), (col("wide") + 1).sum()), "more than 64 bits"),
        (lambda t: t.select("fare_ammount"), "did you mean fare_amount"),
        (lambda t: t.select("list"), "column 'list' is of type list"),
        (lambda t: t.filter(col("i")).select("i"), "a filter must be a boolean, not int64"),
        (lambda t: t.filter(col("i") == col("d")).select("i"), "equal does not take int64 and date32"),
        (lambda t: t.filter(col("s") == 1).select("i"), "equal does not take string and int64"),
        (lambda t: t.filter(col("i") == "1").select("i"), "with a column of strings, but i is not one"),
        (lambda t: t.select(x=col("d") + 1), "add does not take date32 and int64"),
        (lambda t: t.select(x=col("i").year()), "year takes a date or a timestamp, not int64"),
        (lambda t: t.agg(col("d").sum()), "a sum takes numbers, not date32"),
        (lambda t: t.agg(col("s").avg()), "an average takes numbers"),
        (lambda t: t.group_by("i", "f", "d", "s", "s2").agg(count()), "a group-by takes at most 4 keys, not 5"),
        (lambda t: t.select("i", i=col("f")), "two columns of the result are called 'i'"),
        (lambda t: t.select("i").order_by("f"), "ordered by 'f', but has i"),
        (lambda t: t.select(x=col("s").cast("int64")), "string cannot be cast to int64"),
        (lambda t: t.select(x=col("i").cast(pa.list_(pa.int8()))), "cannot cast to list"),
        (lambda t: t.filter(col("i") > 2**64).select("i"), "does not fit in 64 bits"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(device, query, words):
    source = pa.table(
        {
            "i": [2**40, 2**62],
            "f": [1.5, 1e20],
            "d": [datetime.date(2000, 1, 1)] * 2,
            "s": ["a", "b"],
            "s2": ["a", "c"],
            "fare_amount": [1.0, 2.0],
            "list": [[1], [2]],
            "wide": pa.array([Decimal(10) ** 30, Decimal(1)], pa.decimal128(38, 0)),
        }
    )
    table = Table.from_arrow(source, device)
    with pytest.raises(UsageError, match=words):
        query(table).to_arrow()
    # The failure leaves the table unchanged.
    assert table.filter(col("i") > 0).agg(count()).to_arrow().to_pylist() == [{"count": 2}]


def test_steps_that_make_no_query_are_refused(device):
    table = Table.from_arrow(pa.table({"x": [1]}), device)
    for step, words in (
        (table.group_by, "1 to 4 keys"),
        (lambda: table.group_by("x").group_by("x"), "groups only once"),
        (lambda: table.agg(count()).filter(col("x") > 1), "before group_by"),
        (lambda: table.select("x").agg(count()), "not together with select"),
        (lambda: table.limit(-1), "0 or more"),
        (lambda: table.order_by(("x", "upwards")), "ascending or descending"),
        (lambda: bool(col("x") == 1), "neither true nor false"),
        (lambda: lit([1]), "no literal of type list"),
        (lambda: col("x").cast("int65"), "no type 'int65'"),
        (lambda: Table.from_arrow(pa.table({"x": [1]}), device, fragment_rows=0), "1 row or more"),
    ):
        with pytest.raises(UsageError, match=words):
            step()


def test_only_the_columns_that_a_query_names_go_to_the_device(device):
    table = Table.from_arrow(pa.table({"x": np.zeros(1024), "y": np.zeros(1024)}), device)
    assert table.levels.statistics("device").chunks == 0
    _, report = table.agg(col("x").sum()).run()
    assert report.device.bytes == report.read_bytes == 8192
    assert table.levels.statistics("device").chunks == 1
    _, report = table.agg(col("x").max()).run()
    assert (report.device.bytes, report.device.hits) == (0, 1)


def test_columns_of_strings_compare_whatever_their_dictionaries(device):
    """Dictionaries are in order of appearance, so those of two columns or fragments differ."""
    left = ["b", "a", None, "c", "é", "z", "a", "b"]
    right = ["a", "b", "a", "c", "e", None, "aa", ""]
    source = pa.table({"l": left, "r": right, "n": range(8)})
    table = Table.from_arrow(source, device, fragment_rows=3)
    for compare in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        condition = getattr(col("l"), compare)(col("r"))
        expected = [
            number
            for number, (one, other) in enumerate(zip(left, right, strict=True))
            if one is not None and other is not None and getattr(one.encode(), compare)(other.encode())
        ]
        assert table.filter(condition).select("n").to_arrow()["n"].to_pylist() == expected, compare
    assert table.filter(col("l") < col("l")).select("n").to_arrow().num_rows == 0
    assert table.filter(col("l") >= col("l")).select("n").to_arrow().num_rows == 7


def test_explain_says_what_is_read_and_how_groups_are_found(device):
    table = Table.from_arrow(pa.table({"x": [1, 5], "y": [0.5, None], "z": [1, 2]}), device)
    text = table.filter(col("y") > 0).group_by("x").agg(count()).order_by("x").limit(3).explain()
    for words in (
        "reads y, x",
        "gives int64, int64",
        "5 addressed directly",
        "greater 0",
        "order by x ascending",
        "at most 3 rows",
    ):
        assert words in text
    assert "hashed" in table.group_by("y").agg(count()).explain()


WIDE = st.none() | st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(2**66), 2**66)
WIDE_ROWS = st.lists(st.tuples(SMALL, WIDE, st.none() | st.integers(-99, 99)), max_size=40)


@SETTINGS
@hypothesis.given(rows=WIDE_ROWS, windows=st.booleans())
def test_wide_decimals_are_selected_counted_summed_and_ordered(device, rows, windows):
    unit = Decimal("0.01")
    with decimal.localcontext(prec=60):
        values = [None if wide is None else Decimal(wide) * unit for _, wide, _ in rows]
        source = pa.table(
            {
                "k": pa.array([k for k, _, _ in rows], pa.int64()),
                "w": pa.array(values, pa.decimal128(38, 2)),
                "x": pa.array([x for _, _, x in rows], pa.int64()),
                "row": pa.array(range(len(rows)), pa.int64()),
            }
        )
        levels = Levels(device, device_bytes=8192, slab_bytes=1024, host="pageable") if windows else Levels(device)
        table = Table.from_arrow(source, levels=levels, fragment_rows=7)
        assert table.select("w", "row").to_arrow().to_pydict() == {"w": values, "row": list(range(len(rows)))}
        some = [row for row, value in enumerate(values) if value is not None]
        assert table.filter(col("w").is_not_null()).select("row").to_arrow()["row"].to_pylist() == some
        assert table.agg(col("w").count()).to_arrow().to_pylist() == [{"count(w)": len(some)}]
        for way in ("ascending", "descending"):
            ordered = table.select("row", "w").order_by(("w", way), "row").to_arrow()["row"].to_pylist()
            sign = 1 if way == "ascending" else -1
            expected = sorted(range(len(rows)), key=lambda r: (values[r] is None, sign * (values[r] or 0), r))
            assert ordered == expected
        groups = collections.defaultdict(list)
        for (k, _, _), value in zip(rows, values, strict=True):
            groups[k].append(value)
        there = {k: [value for value in group if value is not None] for k, group in groups.items()}
        query = table.group_by("k").agg(total=col("w").sum(), n=col("w").count(), mean=col("w").avg())
        if any(abs(sum(group)) >= 10**36 for group in there.values()):
            # With several windows, a partial sum may overflow too, or none.
            with pytest.raises(UsageError, match="more than 38 digits"):
                query.to_arrow()
            return
        try:
            got = {row["k"]: row for row in query.to_arrow().to_pylist()}
        except UsageError:
            assert windows  # a partial sum overflowed
            return
        assert set(got) == set(there)
        for k, group in there.items():
            assert got[k]["n"] == len(group)
            assert got[k]["total"] == (sum(group) if group else None)
            if group:
                mean = float(sum(group) / len(group))
                assert got[k]["mean"] == pytest.approx(mean, rel=1e-12, abs=1e-12 * float(max(map(abs, group))))


def test_narrow_values_of_a_wide_type_are_still_computed_with(device):
    values = [Decimal(i) for i in range(-50, 50)]
    table = Table.from_arrow(pa.table({"w": pa.array(values, pa.decimal128(38, 0)), "x": range(100)}), device)
    got = table.filter(col("w") > 10).agg(col("w").sum(), col("w").max(), (col("w") * 2).sum()).to_arrow().to_pylist()
    above = [value for value in values if value > 10]
    assert list(got[0].values()) == [sum(above), 49, 2 * sum(above)]


LITERALS = [0.1, -0.1, 0.3, 1.5, 16777217, 16777216, 2**31 - 1, Decimal("0.1"), 1e300, -1e300, 0, float("inf"), 1e-50]


@pytest.mark.parametrize("kind", ["float", "halffloat", "double"])
def test_literals_are_compared_in_the_type_of_the_float_beside_them(device, kind):
    """As in NumPy, where plain numbers take the type of the array."""
    made = [0.1, -0.1, 0.3, 1.5, 0.0, -0.0, 16777216.0, 2.0**31, 0.099975586, float("inf"), float("-inf"), 1e-45]
    dtype = {"float": np.float32, "halffloat": np.float16, "double": np.float64}[kind]
    with np.errstate(over="ignore"):
        values = np.array(made, dtype)
    table = Table.from_arrow(pa.table({"f": pa.array(values), "row": range(len(values))}), device)

    def rows(condition):
        return table.filter(condition).select("row").to_arrow()["row"].to_pylist()

    for literal in LITERALS:
        with np.errstate(over="ignore"):
            there = dtype(float(literal))
        if math.isfinite(float(literal)) and not math.isfinite(float(there)):
            there = np.float64(float(literal))  # beyond the type's range: no value equals it
        wanted = values.astype(np.float64), np.float64(there)
        for ours, theirs in (
            (col("f") == literal, np.equal),
            (col("f") != literal, np.not_equal),
            (col("f") < literal, np.less),
            (col("f") <= literal, np.less_equal),
            (col("f") > literal, np.greater),
            (lit(literal) <= col("f").alias("g"), np.greater_equal),
        ):
            assert rows(ours) == np.flatnonzero(theirs(*wanted)).tolist(), (kind, literal, str(ours))
        assert rows(col("f").is_in([literal, 77])) == np.flatnonzero(np.equal(*wanted)).tolist()
        assert rows(col("f").between(literal, literal)) == np.flatnonzero(np.equal(*wanted)).tolist()
    if kind == "float":
        floats = pa.table({"f": pa.array(values)})
        for literal in ("0.1", "16777217", "0.3"):
            theirs = duckdb.sql(f"select count(*) from floats where f = {literal}").fetchall()[0][0]
            assert len(rows(col("f") == float(literal))) == theirs, literal
        assert floats.num_rows == len(values)
        # A computed value is a double, and is compared as one.
        assert rows(col("f") * 1 == 0.1) == []
        assert rows(col("f").cast("double") == 0.1) == []
        assert rows(col("f").cast("double").cast("float") == 0.1) == [0]


def test_statistics_of_floats_are_beside_literals_of_their_type(device, tmp_path):
    path = tmp_path / "floats.parquet"
    values = np.sort(np.random.default_rng(2).random(1000).astype(np.float32))
    values[500:510] = np.float32(0.1)
    pq.write_table(pa.table({"f": values}), path, row_group_size=10)
    with Table.open(path, device=device) as table:
        result, report = table.filter(col("f") == 0.1).agg(count()).run()
        assert result.to_pylist() == [{"count": int((values == np.float32(0.1)).sum())}]
        assert report.pruned > 20
