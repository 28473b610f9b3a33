"""bench/tenants.py: two operators that share the CPU device."""

import argparse
from types import ModuleType

import pytest
from programs import load_program

from headrace import Device, Error


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load_program("bench/tenants.py")


@pytest.fixture
def given() -> argparse.Namespace:
    return argparse.Namespace(generators=1, slots=64, bound=10.0, seconds=0.1, samples=2)


def test_neighbours_are_compared_with_themselves_alone(bench, given, monkeypatch):
    monkeypatch.setattr(bench.Tenant, "_find_capacity", lambda _self: 2_000.0)
    rows = {row["id"]: row for row in bench._rows(Device.parse("cpu"), given)}
    assert list(rows) == ["operators.tenants.p99_ratio", "operators.tenants.p99_ratio.noisy"]
    for row in rows.values():
        assert row["unit"] == "ratio"
        assert row["samples"] == 2
        assert 0 < row["spread"][0] <= row["value"] <= row["spread"][1]
        assert row["conditions"]["share"] == 0.5
        assert row["conditions"]["reference_capacity"] == row["conditions"]["light_capacity"] == 2_000
    assert rows["operators.tenants.p99_ratio.noisy"]["conditions"]["times"] == 10


def test_the_capacity_is_a_rate_that_was_kept(bench, given, monkeypatch):
    given.bound = 1.0
    asked = []

    class Session:
        def __init__(self, *_given, **_more):
            pass

        def run(self, *, rate, **_more):
            asked.append(rate)
            late = rate > 230_000
            latency = argparse.Namespace(p99=2.0 if late else 0.1)
            return argparse.Namespace(latency=latency, refused=0, gave_up=False)

    monkeypatch.setattr(bench.serve, "LoadSession", Session)
    operator = argparse.Namespace(name="light")
    found = bench.Tenant(Device.parse("cpu"), operator, given).capacity
    assert found in asked
    assert 230_000 / 1.1 <= found <= 230_000
    given.bound = 0.05
    with pytest.raises(Error, match="no rate of light keeps p99 within 50 ms"):
        bench.Tenant(Device.parse("cpu"), operator, given)


def test_what_nobody_scans_is_left_out(bench, capsys):
    assert bench._scan_of(Device.parse("cpu")) is None
    assert "no scan" in capsys.readouterr().err
