"""The taxi benchmark: its table and its command."""

import json
import re
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from headrace import DataError, Device, MissingFileError, UsageError, _core, results
from headrace.cli import app
from headrace.fetch import Table, taxi, taxi_bench
from headrace.fetch.compare import difference

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

ROWS = 30_000


@pytest.fixture(scope="module", params=["decimal", "double"])
def rides(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("taxi") / "rides.parquet"
    taxi.generate(ROWS, file, money=request.param, threads=2, fragments=8)
    return file


def test_the_table_is_the_same_for_the_same_seed_whatever_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(taxi, "CHUNK_ROWS", 700)
    files = [tmp_path / f"{name}.arrow" for name in "abc"]
    taxi.generate(5000, files[0], threads=1)
    taxi.generate(5000, files[1], threads=4)
    taxi.generate(5000, files[2], threads=4, seed=2)
    tables = [taxi.read(file) for file in files]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    assert tables[0].num_rows == 5000


def test_rides_are_as_the_city_has_them(rides):
    table = taxi.read(rides)
    assert table.schema.names == taxi.schema().names
    money = [name for name in table.schema.names if name.endswith(("amount", "extra", "tax", "surcharge"))]
    connection = duckdb.connect()
    connection.register("taxi", table)
    facts = connection.sql(
        "SELECT min(year(pickup_datetime)), max(year(pickup_datetime)), avg((passenger_count = 1)::INT), "
        "count(*) - count(passenger_count), min(dropoff_datetime - pickup_datetime) > INTERVAL 0 SECOND, "
        f"max(abs(total_amount * 2 - ({' + '.join(money)}))) FROM taxi"
    ).fetchall()[0]
    assert facts[:2] == (2009, 2015)
    assert 0.65 < facts[2] < 0.75
    assert 0 < facts[3] < ROWS * 0.01
    assert facts[4]
    assert facts[5] < 0.005


@pytest.mark.parametrize("device", [device.name for device in Device.list()])
@pytest.mark.parametrize("query", taxi.QUERIES, ids=lambda query: query.name)
@pytest.mark.parametrize("made", ["in memory", "stored", "streamed"])
def test_the_four_queries_give_what_duckdb_gives(rides, device, query, made):
    source = taxi.read(rides)
    connection = duckdb.connect()
    connection.register("taxi", source)
    if made == "in memory":
        table = Table.from_arrow(source, device, fragment_rows=7001)
    else:
        # The column of the first query fits; those of the others fit only for a fragment or two.
        budget = 64 << 20 if made == "stored" else 1 << 18
        table = Table.open(rides, levels=_core.Levels(device, device_bytes=budget, slab_bytes=1 << 14))
    with table:
        ours, report = query.query(table).run()
    theirs = connection.sql(query.sql).to_arrow_table()
    keys = [name for name in ours.column_names if name not in {"count", "average"}]
    assert difference(ours, theirs, keys, ["year", "count"] if query.name == "4" else []) is None
    assert (report.windows > 1) == (made == "streamed" and query.name != "1")


def test_the_command_makes_a_table_and_runs_it(tmp_path):
    file = tmp_path / "rides.arrow"
    made = CliRunner().invoke(app, ["taxi", "generate", "--rows", "5K", "--out", str(file), "--money", "double"])
    assert made.exit_code == 0
    assert "5,000 rows" in made.output
    few = ["--device", "cpu", "--runs", "2", "--threads", "1,2", "--fragments", "1,3"]
    saved = tmp_path / f"taxi.{results.machine(Device.parse('cpu'))['name']}.json"
    ran = CliRunner().invoke(app, ["taxi", "run", str(file), *few, "--json", "--save", str(saved)])
    assert ran.exit_code == 0
    content = json.loads(ran.output)
    assert json.loads(saved.read_text()) == content
    # Each query, in each number of fragments: cold and warm in four ways, hot in one.
    assert len(content["cells"]) == 4 * 2 * (2 * 4 + 1)
    assert {cell["fragments"] for cell in content["cells"]} == {1, 3}
    assert all(cell["difference"] is None and len(cell["end_to_end"]) == 2 for cell in content["cells"])
    assert all(cell["fetching"][0] <= cell["end_to_end"][0] for cell in content["cells"])
    found = {row["id"]: row for row in content["rows"]}
    expected = {f"taxi.hot.q{number}" for number in "1234"} | {"taxi.hot.q2.share", "taxi.hot.q3.share"}
    expected |= {"taxi.cpu.vs_duckdb"} | {f"taxi.fetch.q{number}.threads02.gain" for number in "1234"}
    expected |= {"fetch.async.best", "fetch.async.median"}
    assert expected <= set(found)
    gains = [found[f"taxi.fetch.q{number}.threads02.gain"]["value"] for number in "1234"]
    assert found["fetch.async.best"]["value"] == pytest.approx(max(gains))
    assert all(row["conditions"]["verified"] and row["value"] > 0 for row in found.values())
    shown = CliRunner().invoke(app, ["taxi", "run", str(file), "--device", "cpu", "--runs", "1", "--threads", "2"])
    assert len(re.findall(r" equal\s", shown.output)) == 4 * 5
    assert "DuckDB, " in shown.output


def test_without_duckdb_its_figures_are_absent_and_that_is_said(tmp_path, monkeypatch):
    file = tmp_path / "rides.parquet"
    taxi.generate(2000, file)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    few = ["--device", "cpu", "--runs", "1", "--threads", "1", "--modes", "async", "--json"]
    ran = CliRunner().invoke(app, ["taxi", "run", str(file), *few])
    assert ran.exit_code == 0
    assert "DuckDB is not installed" in ran.stderr
    content = json.loads(ran.stdout)
    assert content["duckdb"] == {}
    assert {row["id"] for row in content["rows"]} == {f"taxi.hot.q{n}{s}" for n in "23" for s in ("", ".share")} | {
        "taxi.hot.q1",
        "taxi.hot.q4",
    }
    assert not any(row["conditions"]["verified"] for row in content["rows"])


@pytest.mark.parametrize("fragments", [1, 7, 256])
def test_a_table_is_made_in_so_many_fragments(tmp_path, monkeypatch, fragments):
    monkeypatch.setattr(taxi, "CHUNK_ROWS", 700)
    whole, again = tmp_path / "rides.parquet", tmp_path / "again.parquet"
    taxi.generate(5120, whole, fragments=fragments, threads=2)
    assert pq.ParquetFile(whole).num_row_groups == fragments
    taxi.refragment(whole, 5, again)
    assert pq.ParquetFile(again).num_row_groups == 5
    columns = list(taxi.QUERY_COLUMNS)
    plain = tmp_path / "plain.parquet"
    taxi.generate(5120, plain)
    rows = [pq.read_table(file, columns=columns).to_pylist() for file in (whole, again, plain)]
    assert rows[0] == rows[1] == rows[2]


def test_a_difference_is_found_and_said():
    ours = pa.table({"k": [1, None], "a": [1.0, 2.0]})
    assert difference(ours, ours, ["k"]) is None
    assert difference(ours, pa.table({"k": [None, 1], "a": [2.0, 1.0 + 1e-12]}), ["k"]) is None
    assert (
        difference(ours, pa.table({"k": [None, 1], "a": [2.0, 1.0]}), ["k"], order=["a"])
        == "rows are ordered differently by a"
    )
    assert "a row is (1, 1.0), not (1, 1.001)" in difference(ours, pa.table({"k": [1, None], "a": [1.001, 2.0]}), ["k"])
    assert "2 rows, not 1" in difference(ours, ours.slice(1))
    assert "columns are" in difference(ours, ours.select(["k"]))


def test_bad_files_and_numbers_are_refused(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"broken\.parquet"):
        taxi.read(broken)
    with pytest.raises(MissingFileError, match="there is no file"):
        taxi.read(tmp_path / "none.parquet")
    with pytest.raises(UsageError, match=r"\.parquet or an \.arrow file"):
        taxi.generate(1, tmp_path / "rides.csv")
    with pytest.raises(UsageError, match="0 rows or more"):
        taxi.generate(-1, tmp_path / "rides.arrow")
    with pytest.raises(UsageError, match="1 fragment or more"):
        taxi.generate(1, tmp_path / "rides.arrow", fragments=0)
    with pytest.raises(UsageError, match="is not a level to start from: cold, warm, hot"):
        taxi_bench.Settings("cpu", levels=["tepid"])
    with pytest.raises(UsageError, match="1 thread or more"):
        taxi_bench.Settings("cpu", threads=[0])
    with pytest.raises(UsageError, match="decimal or double"):
        taxi.generate(1, tmp_path / "rides.arrow", money="euro")


def test_a_table_that_is_not_finished_is_removed(tmp_path):
    def stop(_rows):
        raise KeyboardInterrupt

    file = tmp_path / "rides.parquet"
    with pytest.raises(KeyboardInterrupt):
        taxi.generate(10, file, on_rows=stop)
    assert not file.exists()


def test_an_empty_table_can_be_made(tmp_path):
    file = tmp_path / "none.parquet"
    taxi.generate(0, file)
    assert pq.read_table(file).num_rows == 0
