"""bench/fetch.py: its results on the ways of host memory, on the CPU device."""

import json
import sys
from types import ModuleType

import pyarrow as pa
import pytest
from programs import load_program

from headrace import _core
from headrace.fetch.table import Table

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/fetch.py")


def test_each_way_is_measured_and_verified(bench, capsys):
    found = bench.ways("cpu:0", 1 << 22, 3)
    assert [one["way"] for one in found] == ["pageable", "staged", "pool", "registered", "read"]
    assert all(one["verified"] and one["transfer_gb_per_second"] > 0 for one in found)
    assert [one["way"] for one in found if one["fill_gb_per_second"] is not None] == ["pool"]
    assert found[0]["once_ms_per_gib"] == 0
    bench.print_ways(found)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 5
    assert all(line.count("|") == 8 for line in lines)


def test_the_levels_of_a_table_are_measured(bench, tmp_path):
    table = bench.make_table(5000)
    arrow = bench.write_arrow(table, tmp_path)
    found = bench.levels_of(bench.Bench(table, "cpu:0", 1), arrow, "cpu:0", 2)
    assert [one["cpu_level"] for one in found] == ["pinned", "pageable"]
    assert all(one["first_seconds"] > 0 and one["again_seconds"] > 0 for one in found)
    with Table.open(arrow, device="cpu") as stored:
        assert isinstance(stored.schema, pa.Schema)
        assert len(stored.fragments) <= bench.FRAGMENTS


def test_one_figure_alone_is_measured_and_saved(bench, tmp_path, monkeypatch, capsys):
    name = bench.results.machine(bench.headrace.Device.parse("cpu"))["name"]
    saved = tmp_path / f"some.{name}.json"
    words = "--device cpu --rows 20000 --threads 2 --samples 1 --only fetch.ipc --save"
    monkeypatch.setattr(sys, "argv", ["fetch.py", *words.split(), str(saved)])
    bench.main()
    capsys.readouterr()
    content = json.loads(saved.read_text())
    assert content["topic"] == "some"
    (row,) = content["rows"]
    assert row["id"] == "fetch.ipc"
    assert row["value"] > 0
    assert row["conditions"]["rows"] == 20_000
    assert row["conditions"]["verified"]
