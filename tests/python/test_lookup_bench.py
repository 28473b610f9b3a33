"""bench/lookup.py: rows by place, the gain over zero-copy, and libraries with the same answers."""

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from programs import load_program

from headrace import Device, Operator, Plan, results, serve
from headrace.span import PAGE_BYTES


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/lookup.py")


def given(**more: Any) -> argparse.Namespace:
    # 64 columns of float16 are 128 bytes: four pages.
    whole = {"rows": 4 * PAGE_BYTES // 128, "columns": 64, "most": 16, "history": 20_000, "dtype": "float16"}
    return argparse.Namespace(**{**whole, "rung": "single", "bound": 1.0, "samples": 1, **more})


def test_rows_that_counts_place_are_read_on_the_device_more_often(bench: ModuleType) -> None:
    cases = bench._Cases(Device.parse("cpu"), given())
    shares = {}
    for name in ("counted", "unordered", "zero_copy", "device"):
        operator, about = cases.make(name)
        near, far = about["device_bytes_a_query"], about["host_bytes_a_query"]
        shares[name] = near / (near + far)
        assert operator.sample(50).tobytes() == cases.whole.sample(50).tobytes()
        assert near + far == pytest.approx(16 * 128 * 15 / 16, rel=0.02)  # every eighth query asks for half, on average
        assert about["device_bytes"] == 2 * PAGE_BYTES
        assert about["memory_qps"] > 0
    assert shares["zero_copy"] == 0
    assert shares["device"] == 1
    assert shares["unordered"] == pytest.approx(0.5, abs=0.15)
    assert shares["counted"] > 0.9


def test_rows_of_the_table_differ(bench: ModuleType) -> None:
    table = bench.make_table(200_000, 3, "float16")
    assert len(np.unique(table, axis=0)) > 199_000


def test_the_gain_is_over_zero_copy(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"operators.lookup.qps": 60.0, "operators.lookup.zero_copy.qps": 10.0}

    def rate(identity: str, *_others: Any) -> Any:
        yield bench.results.row(identity, [values.get(identity, 1.0)], "queries/s", None, {"verified": True})

    monkeypatch.setattr(bench.operator_rows, "rate", rate)
    cases = SimpleNamespace(make=lambda _: (None, {}))
    rows = {row["id"]: row for row in bench._own_rows(cases, Device.parse("cpu"), given())}
    assert rows["operators.lookup.gain"]["value"] == pytest.approx(6)
    assert {"operators.lookup.unordered.qps", "operators.lookup.device.qps"} <= rows.keys()


def test_it_runs_to_its_end_on_a_cpu_device(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def search(device: Device, operator: Operator, plan: Plan, **_others: Any) -> Any:
        """One load instead of a search for the highest rate, which takes a minute."""
        done = serve.load(device, operator, plan, rate=500, warm_up=0.01, window=0.02, windows_max=3, samples=10)
        return SimpleNamespace(plan=plan, confirmed=[done.load], generators=1)

    monkeypatch.setattr(bench.operator_rows, "search_plan", search)
    machine = results.machine(Device.parse("cpu"))["name"]
    saved = tmp_path / f"lookup.{machine}.json"
    words = "--device cpu --rung pipelined --rows 5000 --columns 16 --most 8 --samples 1 --json"
    monkeypatch.setattr(sys, "argv", ["lookup.py", *words.split(), "--save", str(saved)])
    assert bench.main() == 0
    rows = {row["id"]: row for row in json.loads(saved.read_text())["rows"]}
    assert json.loads(capsys.readouterr().out)["rows"] == list(rows.values())
    assert {"operators.lookup.qps", "operators.lookup.gain", "operators.lookup.numpy.qps"} <= rows.keys()
    for row in rows.values():
        assert row["value"] > 0
        assert row["conditions"]["verified"]
