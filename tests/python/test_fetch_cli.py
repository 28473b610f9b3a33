"""`headrace fetch`: its output, and its failures."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_cli import assert_one_error_line, run

from headrace import _core

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")


@pytest.fixture
def table(tmp_path) -> str:
    path = tmp_path / "table.parquet"
    content = pa.table({"number": pa.array(range(100_000)), "name": [f"n{i % 10}" for i in range(100_000)]})
    pq.write_table(content, path, row_group_size=10_000)
    return str(path)


def test_json_says_what_came_through_each_level(table):
    result = run("fetch", table, "--columns", "number,name", "--to", "cpu", "--threads", "2", "--runs", "3", "--json")
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content["rows"] == 100_000
    assert content["fragments"] == 10
    assert content["columns"] == ["number", "name"]
    assert content["threads"] == 2
    assert len(content["runs"]) == 3
    assert content["levels"]["device"]["made"] == content["levels"]["cpu"]["made"] == 20
    assert content["levels"]["device"]["gb_per_second"] > 0
    assert content["memory"]["device"]["most_bytes"] <= content["memory"]["device"]["budget_bytes"]
    assert not content["streamed"]


def test_a_hot_run_finds_everything_on_the_device(table):
    result = run("fetch", table, "--to", "cpu", "--runs", "3", "--clear", "", "--json")
    assert json.loads(result.stdout)["levels"]["device"]["found"] == 20


def test_to_host_stops_there(table):
    result = run("fetch", table, "--to", "host", "--json")
    content = json.loads(result.stdout)
    assert content["levels"]["device"]["made"] == 0
    assert content["levels"]["cpu"]["made"] == 20


def test_the_table_has_a_line_a_level(table):
    result = run("fetch", table, "--to", "cpu", "--mode", "sync", "--host-memory", "pageable")
    assert result.returncode == 0, result.stderr
    assert all(level in result.stdout for level in ("disk", "cpu", "device"))
    assert "100,000 rows, 2 columns, 10 fragments" in result.stdout


def test_what_does_not_fit_is_streamed_and_said_to_be(table):
    result = run("fetch", table, "--columns", "number", "--to", "cpu", "--device-budget", "400KiB", "--json")
    assert result.returncode == 0, result.stderr
    assert "streaming the columns through the device instead" in result.stderr
    content = json.loads(result.stdout)
    assert content["streamed"]
    device = content["levels"]["device"]
    assert device["made"] + device["found"] == 10
    assert device["made"] >= 5
    assert content["memory"]["device"]["most_bytes"] <= 400 * 1024


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--columns", "numbr"], "did you mean number"),
        (["--to", "cuda:99"], "cuda:99"),
        (["--mode", "later"], "async, sync"),
        (["--host-memory", "slow"], "pinned, pageable"),
        (["--clear", "gpu"], "'gpu' is not a level"),
        (["--cpu-budget", "100"], "whole budget of 100 B"),
        (["--flush", "0"], "flush_bytes must be above 0"),
    ],
)
def test_wrong_use_is_one_line(table, arguments, says):
    result = run("fetch", table, *(["--to", "cpu"] if "--to" not in arguments else []), *arguments)
    assert result.returncode == 2
    assert_one_error_line(result, says)


def test_a_damaged_file_is_a_failure(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1" + b"x" * 100)
    result = run("fetch", str(path), "--to", "cpu")
    assert result.returncode == 1
    assert_one_error_line(result, str(path))
