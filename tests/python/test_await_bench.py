"""bench/await_asks.py: asks a query for each arrival once, at its time, and compares the answers."""

import argparse
import json
import sys
from types import ModuleType

import numpy as np
import pytest
from programs import load_program


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/await_asks.py")


def _given(**changed: object) -> argparse.Namespace:
    chosen = {"tasks": 8, "slots": 16, "seconds": 0.05, "samples": 1, "bound": 60.0, "at": 500.0, "lowest": 1e12}
    return argparse.Namespace(**{"plan": "caller", **chosen, **changed})


@pytest.mark.parametrize(("with_engine", "plan"), [(True, "caller"), (True, "page-locked"), (False, "caller")])
def test_every_arrival_is_answered_after_it_came(bench, with_engine, plan):
    run, right = bench.Bench(_given(plan=plan)).run(2000.0, with_engine=with_engine)
    assert right
    assert len(run.answers) == len(run.latencies) == 100
    assert (run.latencies > 0).all()
    assert all(answer is not None for answer in run.answers)
    assert run.p(0.5) <= run.p(0.99)


def test_a_wrong_answer_is_noticed(bench):
    some = bench.Bench(_given())
    some.expected = some.expected.copy()
    some.expected[3] += 1
    assert not some.run(float("inf"))[1]


def test_a_rate_is_kept_only_with_both(bench):
    fast = np.full(100, 1e-4)
    assert bench.Run(1000.0, 995.0, fast, []).keeps(1e-3)
    assert not bench.Run(1000.0, 900.0, fast, []).keeps(1e-3)
    assert not bench.Run(1000.0, 995.0, fast * 100, []).keeps(1e-3)


def test_rows_are_saved(bench, tmp_path, monkeypatch, capsys):
    name = bench.results.machine(bench.Device.parse("cpu"))["name"]
    saved = tmp_path / f"await.{name}.json"
    words = "--tasks 8 --seconds 0.02 --samples 1 --bound 60s --at 1K --lowest 1e12 --json --save"
    monkeypatch.setattr(sys, "argv", ["await_asks.py", *words.split(), str(saved)])
    assert bench.main() == 0
    content = json.loads(saved.read_text())
    assert content["topic"] == "await"
    rows = {row["id"]: row for row in content["rows"]}
    assert rows["operators.await.at1k.p99"]["conditions"]["verified"]
    assert json.loads(capsys.readouterr().out) == content
