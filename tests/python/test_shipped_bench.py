"""bench/shipped.py: asks the libraries the same queries, and notices wrong answers."""

import argparse
from types import ModuleType

import numpy as np
import pytest
from programs import load_program

from headrace import Device, operators


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/shipped.py")


def test_numpy_stands_beside_both_operators(bench, monkeypatch):
    monkeypatch.setattr(bench.operator_rows, "rate", lambda *_: iter(()))  # the search for a rate, which takes a minute
    given = argparse.Namespace(dtype="float32", rung="dispatched", rows=500, bound=1.0, scan_bound=1.0, samples=1)
    device = Device.parse("cpu")
    rows = [*bench._network_rows(device, given), *bench._search_rows(device, given)]
    found = {row["id"]: row for row in rows}
    assert {"operators.mlp.numpy.qps", "operators.topk.numpy.qps"} <= found.keys()
    for row in rows:
        assert row["conditions"]["verified"]
        assert row["value"] > 0


def test_the_share_is_of_batches(bench, monkeypatch):
    values = {"operators.topk.qps": 30.0, "operators.topk.batch64.qps": 40.0}
    batches = []

    def rate(identity, _, plan, *_others):
        batches.append(plan.batch_max)
        yield bench.results.row(identity, [values[identity]], "queries/s", None, {"verified": True})

    monkeypatch.setattr(bench.operator_rows, "rate", rate)
    given = argparse.Namespace(dtype="float16", rung="dispatched", rows=500, scan_bound=1.0, samples=1)
    rows = {row["id"]: row for row in bench._search_rows(Device.parse("cpu"), given)}
    assert rows["operators.topk.share"]["value"] == pytest.approx(0.75)
    assert batches == [1, 64]


def test_an_operator_that_differs_from_numpy_is_not_verified(bench, monkeypatch):
    network = operators.mlp(sizes=[20, 5])
    assert bench.operator_rows.agrees(network)
    reference = bench.operator_rows.reference_of(network)
    monkeypatch.setattr(reference, "_layers", [(matrix + np.float64(1e-3), bias) for matrix, bias in reference._layers])
    assert not bench.operator_rows.agrees(network)
