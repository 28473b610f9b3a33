"""The city's own files as the table of the taxi benchmark."""

import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from headrace import DataError, MissingFileError, UsageError, _core
from headrace.cli import app
from headrace.fetch import taxi, taxi_files

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

NOON = datetime.datetime(2015, 3, 1, 12, 0, 0)  # noqa: DTZ001 - the city's times have no zone
LATER = NOON + datetime.timedelta(minutes=9)


def _yellow(path, **more):
    """As files of yellow cabs have been since 2011."""
    columns = {
        "VendorID": pa.array([1, 2, 2], pa.int64()),
        "tpep_pickup_datetime": pa.array([NOON, LATER, NOON], pa.timestamp("ns")),
        "tpep_dropoff_datetime": pa.array([LATER, LATER, None], pa.timestamp("us")),
        "passenger_count": pa.array([1.0, None, 3.0], pa.float64()),
        "trip_distance": pa.array([1.25, 0.0, 7.5], pa.float64()),
        "RatecodeID": pa.array([1.0, 99.0, None], pa.float64()),
        "store_and_fwd_flag": pa.array(["N", None, "Y"], pa.large_string()),
        "PULocationID": pa.array([17, 264, 1], pa.int32()),
        "DOLocationID": pa.array([18, 265, 2], pa.int64()),
        "payment_type": pa.array([1, 2, 4], pa.int64()),
        "fare_amount": [10.0, 2.5, 30.0],
        "extra": [0.5, 0.0, 1.0],
        "mta_tax": [0.5, 0.5, 0.5],
        "tip_amount": [2.0, 0.0, 5.55],
        "tolls_amount": [0.0, 0.0, 5.54],
        "improvement_surcharge": [0.3, 0.3, 0.3],
        "total_amount": [13.3, 3.3, 42.89],
        "congestion_surcharge": pa.array([2.5, None, 0.0], pa.float64()),
        **more,
    }
    pq.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)
    return path


def _green(path):
    columns = {
        "VendorID": pa.array([2], pa.int32()),
        "lpep_pickup_datetime": pa.array([LATER], pa.timestamp("us")),
        "lpep_dropoff_datetime": pa.array([LATER], pa.timestamp("us")),
        "store_and_fwd_flag": pa.array(["N"]).dictionary_encode(),
        "passenger_count": pa.array([5], pa.int64()),
        "trip_distance": [2.0],
        "total_amount": [9.8],
        "ehail_fee": pa.nulls(1, pa.float64()),
        "trip_type": [1.0],
    }
    pq.write_table(pa.table(columns), path)
    return path


def _of_2009(path):
    columns = {
        "vendor_name": ["VTS", "CMT"],
        "Trip_Pickup_DateTime": ["2009-01-04 02:52:00", "2009-12-31 23:59:59"],
        "Trip_Dropoff_DateTime": ["2009-01-04 03:02:00", "2010-01-01 00:09:59"],
        "Passenger_Count": pa.array([1, 2], pa.int64()),
        "Trip_Distance": [2.63, 4.55],
        "Start_Lon": [-73.99, -73.98],
        "store_and_forward": pa.array([None, 0.0], pa.float64()),
        "Payment_Type": ["CASH", "Credit"],
        "Fare_Amt": [8.9, 12.1],
        "surcharge": [0.5, 0.5],
        "Tip_Amt": [0.0, 2.0],
        "Tolls_Amt": [0.0, 4.15],
        "Total_Amt": [9.4, 18.75],
    }
    pq.write_table(pa.table(columns), path, row_group_size=1)
    return path


@pytest.fixture
def files(tmp_path):
    return [
        _yellow(tmp_path / "yellow_tripdata_2015-03.parquet"),
        _green(tmp_path / "green_tripdata_2015-03.parquet"),
        _of_2009(tmp_path / "yellow_tripdata_2009-01.parquet"),
    ]


def _load(files, out, **more):
    city = [taxi_files.look(file) for file in files]
    taxi_files.load(city, out, **more)
    return city


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_of_every_year_become_those_of_the_benchmark(files, tmp_path, suffix):
    out = tmp_path / f"rides{suffix}"
    city = _load(files, out, threads=2, fragments=1)
    rides = taxi.read(out)
    assert rides.schema.remove_metadata().types == taxi.schema("double").types
    rows = rides.to_pydict()
    assert rows["cab_type"] == ["yellow"] * 3 + ["green"] + ["yellow"] * 2
    assert rows["pickup_datetime"] == [
        *(NOON, LATER, NOON, LATER),
        datetime.datetime(2009, 1, 4, 2, 52),  # noqa: DTZ001
        datetime.datetime(2009, 12, 31, 23, 59, 59),  # noqa: DTZ001
    ]
    assert rows["dropoff_datetime"][:3] == [LATER, LATER, None]
    assert rows["passenger_count"] == [1, None, 3, 5, 1, 2]
    assert rows["trip_distance"] == [1.25, 0.0, 7.5, 2.0, 2.63, 4.55]
    assert rows["rate_code_id"] == [1, 99, None, None, None, None]
    assert rows["store_and_fwd_flag"] == [False, None, True, False, None, False]
    assert rows["pickup_location_id"] == [17, 264, 1, None, None, None]
    assert rows["dropoff_location_id"] == [18, 265, 2, None, None, None]
    assert rows["vendor_id"] == [1, 2, 2, 2, None, None]
    assert rows["payment_type"] == [1, 2, 4, None, None, None]
    assert rows["fare_amount"] == [10.0, 2.5, 30.0, None, 8.9, 12.1]
    assert rows["extra"] == [0.5, 0.0, 1.0, None, 0.5, 0.5]
    assert rows["tip_amount"][4:] == [0.0, 2.0]
    assert rows["tolls_amount"][4:] == [0.0, 4.15]
    assert rows["total_amount"] == [13.3, 3.3, 42.89, 9.8, 9.4, 18.75]
    assert city[0].left_empty == set()
    assert {"vendor_id", "payment_type", "pickup_location_id", "mta_tax"} <= city[2].left_empty
    assert "tip_amount" not in city[2].left_empty


def test_money_may_be_decimal(files, tmp_path):
    out = tmp_path / "rides.parquet"
    _load(files, out, money="decimal")
    cents = [int(amount * 100) for amount in taxi.read(out)["total_amount"].to_pylist()]
    assert cents == [1330, 330, 4289, 980, 940, 1875]


def test_the_command_loads_files_and_runs_the_queries(files, tmp_path):
    out = tmp_path / "rides.parquet"
    done = CliRunner().invoke(app, ["taxi", "load", *map(str, files), "--out", str(out), "--threads", "2"])
    assert done.exit_code == 0, done.output
    assert "6 rows" in done.stdout
    assert "yellow_tripdata_2009-01.parquet: left empty: dropoff_location_id, " in done.stderr
    assert "2015-03.parquet: left empty: dropoff_location_id" in done.stderr, "of the green cabs"
    arguments = ["--device", "cpu", "--threads", "1", "--modes", "sync", "--levels", "warm", "--runs", "1"]
    ran = CliRunner().invoke(app, ["taxi", "run", str(out), *arguments])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.count("equal") == 4, "to DuckDB's"


def test_a_table_of_the_benchmark_can_be_loaded_too(tmp_path):
    own, out = tmp_path / "made.parquet", tmp_path / "rides.parquet"
    taxi.generate(1000, own, money="double")
    _load([own], out)
    assert taxi.read(out).equals(taxi.read(own))
    assert duckdb.sql(f"SELECT count(*) FROM '{out}'").fetchall() == [(1000,)]


def test_what_cannot_be_loaded_is_refused_by_name(files, tmp_path):
    out = tmp_path / "rides.parquet"
    with pytest.raises(MissingFileError, match=r"there is no file .*none\.parquet"):
        taxi_files.look(tmp_path / "none.parquet")
    broken = tmp_path / "yellow.parquet"
    broken.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"yellow\.parquet"):
        taxi_files.look(broken)
    lacking = _yellow(tmp_path / "yellow_lacking.parquet", trip_distance=None)
    with pytest.raises(DataError, match=r"no column for trip_distance .*it has VendorID, tpep_pickup_datetime"):
        taxi_files.look(lacking)
    other = _yellow(tmp_path / "rides_2015.parquet", tpep_pickup_datetime=None, pickup_datetime=[NOON] * 3)
    with pytest.raises(UsageError, match="neither yellow nor green"):
        taxi_files.look(other)
    black = _yellow(tmp_path / "cabs.parquet", cab_type=["yellow", "green", "black"])
    with pytest.raises(DataError, match="row group 0, column cab_type: it has a kind of cab other than yellow, green"):
        _load([files[0], black], out)
    assert not out.exists(), "an unfinished table is removed"
    wrong = _yellow(tmp_path / "yellow_wrong.parquet", passenger_count=["one", "2", "3"])
    with pytest.raises(DataError, match=r"yellow_wrong\.parquet, row group 0, column passenger_count: .*one"):
        _load([wrong], out)
    with pytest.raises(UsageError, match="is one of the files to load"):
        _load(files, files[0])
    assert pq.read_table(files[0]).num_rows == 3


def test_a_file_of_another_kind_is_not_removed(files, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    with pytest.raises(UsageError, match=r"\.parquet or an \.arrow file"):
        _load(files, notes)
    with pytest.raises(UsageError, match=r"\.parquet or an \.arrow file"):
        taxi.generate(1, notes)
    assert notes.read_text() == "mine"


def test_row_groups_that_go_away_meanwhile_are_named(files, tmp_path):
    city = [taxi_files.look(file) for file in files]
    files[2].write_bytes(files[2].read_bytes()[:100])
    with pytest.raises(DataError, match=r"yellow_tripdata_2009-01\.parquet, row group 0"):
        taxi_files.load(city, tmp_path / "rides.parquet")
