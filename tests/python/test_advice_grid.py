"""Tests the judge of the adviser on made-up cells with known answers."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from programs import ROOT, load_program

import headrace
from headrace import DataError, Device
from headrace.span import AdviceConstants

PROGRAM = ROOT / "bench" / "advice_grid.py"
BUDGET = 128 << 20  # a realistic budget that is quick to model
CPU = Device.parse("cpu")


@pytest.fixture(scope="module")
def grid() -> ModuleType:
    return load_program("bench/advice_grid.py")


def cell(strategy: str, rate: float, pattern: str = "grid-stride", factor: float = 2.0, **more: object) -> dict:
    return {
        "pattern": pattern,
        "operation": "read",
        "strategy": strategy,
        "factor": factor,
        "data_bytes": int(factor * BUDGET),
        "bytes_per_second": rate,
        "verified": True,
    } | more


def judged(grid: ModuleType, cells: list[dict]) -> list:
    found = grid.measured({"budget_bytes": BUDGET, "cells": cells})
    return grid.judge(found, headrace.span.find_memory_rates("H100"), AdviceConstants(), CPU)


def test_shares_and_losses(grid: ModuleType):
    found = judged(
        grid,
        [
            cell("interleaved", 100e9),
            cell("zero-copy", 50e9),
            cell("interleaved", 60e9, factor=4.0),
            cell("by-budget", 61e9, factor=4.0),
            cell("by-budget", 70e9, "zipf-rows", rows="scattered"),
            cell("interleaved", 100e9, "zipf-rows", rows="scattered"),
        ],
    )
    assert [one.chosen for one in found] == ["interleaved", "interleaved", "by-budget"]
    assert [one.loss for one in found] == pytest.approx([0, 1 / 61, 0.3])
    within, worst = grid.rows_of(found)
    assert (within["id"], worst["id"]) == ("span.advice.within5", "span.advice.worst")
    assert within["value"] == pytest.approx(2 / 3)
    assert worst["value"] == pytest.approx(0.3)
    assert "zipf-rows scattered" in worst["conditions"]["cell"]
    assert worst["conditions"]["cells"] == 3


def test_what_was_not_run_is_no_candidate(grid: ModuleType):
    found = judged(
        grid,
        [
            cell("interleaved", 0, note="no room"),
            cell("by-budget", 100e9, verified=False),
            cell("zero-copy", 50e9),
            cell("prefetched", 40e9),
            cell("on-demand", 1e9, factor=1.0),  # the only strategy, so there is no choice
        ],
    )
    assert len(found) == 1
    assert found[0].chosen == "prefetched"
    assert found[0].best == "zero-copy"
    assert found[0].loss == pytest.approx(0.2)


def test_forms_of_a_strategy_and_of_the_work(grid: ModuleType):
    cells = [
        cell("prefetched", 90e9, page_bytes=4096),
        cell("prefetched", 95e9, page_bytes=2 << 20),
        cell("interleaved", 100e9, page_bytes=2 << 20),
        cell("interleaved", 99e9, threads=128),
        cell("zero-copy", 20e9, "random-warp", page_bytes=4096),
        cell("interleaved", 40e9, "random-warp", page_bytes=4096),
        cell("zero-copy", 21e9, "random-warp", page_bytes=65536),
        cell("interleaved", 41e9, "random-warp", page_bytes=65536),
    ]
    found = grid.measured({"budget_bytes": BUDGET, "cells": cells})
    assert len(found) == 3
    assert found[next(key for key in found if key.pattern == "grid-stride")] == {
        "prefetched": 95e9,
        "interleaved": 100e9,
    }


def test_other_ways_of_writing_a_cell(grid: ModuleType):
    grid_stride = {"pattern": "grid_stride", "factor": 2, "data_bytes": 2 * BUDGET}
    nested = {"cell": grid_stride | {"strategy": "zero_copy"}, "bytes_per_second": 5e10}
    giga = grid_stride | {"strategy": "by-budget", "gb_per_s": 70}
    as_row = {
        "id": "span.cell",
        "value": 100.0,
        "unit": "GB/s",
        "conditions": {"pattern": "grid-stride", "strategy": "interleaved", "factor": 2, "verified": True},
    }
    (found,) = grid.measured({"budget_bytes": BUDGET, "results": [nested, as_row, giga]}).values()
    assert found == {"zero-copy": 5e10, "interleaved": 1e11, "by-budget": 7e10}


@pytest.mark.parametrize(
    "content",
    [{}, {"cells": []}, {"cells": [{"strategy": "zero-copy"}]}, {"cells": [cell("zero-copy", 1.0) | {"factor": "x"}]}],
)
def test_files_that_are_no_cells(grid: ModuleType, content: dict):
    with pytest.raises(DataError):
        grid.judge(grid.measured(content), headrace.span.find_memory_rates("H100"), AdviceConstants(), CPU)


def test_roofs_of_the_file_are_used(grid: ModuleType):
    roof = {"operation": "read", "on_device_gb_per_s": 3000, "over_link_gb_per_s": 40}
    content = {"roofs": [roof], "copy_to_device_gb_per_s": 50}
    start = headrace.span.find_memory_rates("H100")
    rates = grid.rates_in(content, start)
    assert (rates.device.read, rates.link.read, rates.prefetch) == (3e12, 4e10, 5e10)
    assert rates.link.write == start.link.write
    assert start.link.read != 4e10


def made_up(grid: ModuleType, change: dict[str, float]) -> dict:
    """Cells of a machine that follows the model exactly, with different constants."""
    constants = AdviceConstants()
    for name, value in change.items():
        setattr(constants, name, value)
    cells = []
    for pattern in headrace.span.access_patterns():
        for factor in (1.25, 2.0, 4.0):
            probe = cell("zero-copy", 1.0, pattern, factor)
            (key,) = grid.measured({"budget_bytes": BUDGET, "cells": [probe]})
            found = headrace.span.advise(grid.profile_of(key), headrace.span.find_memory_rates("H100"), CPU, constants)
            cells += [cell(one.strategy, one.bytes_per_second, pattern, factor) for one in found.forecasts]
    return {"budget_bytes": BUDGET, "cells": cells}


def test_the_fit_finds_what_the_machine_is_like(grid: ModuleType):
    content = made_up(grid, {"span_link": 0.8, "device_cache_hits": 0.4})
    cells = grid.measured(content)
    fit = grid.Fit(cells, headrace.span.find_memory_rates("H100"), AdviceConstants(), CPU)
    before = fit.error()
    after = fit.run()
    assert after < before / 4
    assert fit.constants.span_link == pytest.approx(0.8, rel=0.05)
    losses = [one.loss for one in grid.judge(cells, fit.rates, fit.constants, CPU)]
    assert max(losses) < 0.05


def test_the_program(grid: ModuleType, tmp_path: Path):
    path = tmp_path / "cells.json"
    path.write_text(json.dumps(made_up(grid, {})))
    saved = tmp_path / "advice.json"
    run = [sys.executable, str(PROGRAM)]
    done = subprocess.run([*run, path, "--save", saved], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("15 cells; within 5% of the best in 100.0%; worst loss")
    content = json.loads(saved.read_text())
    assert {row["id"]: row["value"] for row in content["rows"]}["span.advice.within5"] == 1
    path.write_text("{")
    failed = subprocess.run([*run, path], capture_output=True, text=True, check=False, timeout=300)
    assert failed.returncode == 1
    assert failed.stderr.startswith("advice_grid: error:")
    assert failed.stderr.count("\n") == 1
