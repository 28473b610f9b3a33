"""Oversubscription: every cell verified, its figures, its plot, and refused arguments."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import Run

import headrace
from headrace import UsageError, oversubscription, results

SMALL = ("oversubscribe", "--device", "cpu", "--budget", "8MiB", "--runs", "2")


def test_every_pattern_operation_and_strategy_is_verified():
    seen = []
    report = headrace.measure.oversubscribe(
        "cpu",
        operations=headrace.span.access_operations(),
        factors=[0.5, 2.0],
        budget_bytes=2 << 20,
        runs=1,
        progress=seen.append,
    )
    assert not report.interrupted
    assert len(report.cells) == 6 * 3 * 5 * 2
    assert [now.done for now in seen] == [0, *range(len(report.cells))]
    for result in report.cells:
        if result.cell.strategy == "on-demand" and result.cell.factor > 1:
            assert "nothing is evicted" in result.note
            assert result.times == []
        else:
            assert result.verified, (result.cell, result.note)
            assert result.roof > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"patterns": ["zigzag"]}, "'zigzag' is not an access pattern: grid-stride"),
        ({"operations": ["erase"]}, "'erase' is not an operation: read"),
        ({"strategies": ["hope"]}, "'hope' is not a strategy: on-demand"),
        ({"rows": ["sorted"]}, "'sorted' is not a row order"),
        ({"factors": [0.0]}, "a factor must be above 0"),
        ({"factors": [float("nan")]}, "a factor must be above 0"),
        ({"factors": []}, "at least one of: factors"),
        ({"page_bytes": [8192]}, "not 8 KiB"),
        ({"threads": [33]}, "not 33"),
        ({"budget_bytes": 4096}, "at least a page of 2 MiB"),
        ({"runs": 0}, "runs must be"),
    ],
)
def test_bad_options(options: dict, says: str):
    with pytest.raises(UsageError, match=re.escape(says)):
        headrace.measure.oversubscribe("cpu", **options)


def test_an_exception_in_progress_ends_it():
    def fail(_now: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        headrace.measure.oversubscribe("cpu", budget_bytes=2 << 20, progress=fail)


def test_sizes_and_the_default_budget():
    assert headrace.base.parse_bytes("64KiB") == 65536
    with pytest.raises(UsageError, match="not a size"):
        headrace.base.parse_bytes("a lot")
    assert headrace.measure.oversubscription_budget("cpu") % (2 << 20) == 0


def _cell(strategy: str, gb_per_s: float, **more: object) -> dict:
    return {
        "pattern": "grid-stride",
        "operation": "read",
        "strategy": strategy,
        "factor": 2.0,
        "page_bytes": 2 << 20,
        "threads": 256,
        "synchronised": False,
        "blocks": 1,
        "gb_per_s": gb_per_s,
        "roof_gb_per_s": 100.0,
        "runs_gb_per_s": [gb_per_s - 1, gb_per_s, gb_per_s + 1],
        "verified": True,
        **more,
    }


def _rows(*cells: dict) -> dict[str, dict]:
    found = oversubscription.rows({"cells": cells, "budget_bytes": 1 << 30})
    return {row["id"]: row for row in found}


def test_the_worst_sequential_cell_counts_by_its_best_shape():
    rows = _rows(
        _cell("interleaved", 97.0),
        _cell("interleaved", 90.0, threads=128),  # another shape is better
        _cell("interleaved", 96.0, pattern="block-stride"),
        _cell("interleaved", 10.0, factor=1.0),  # fits
        _cell("interleaved", 20.0, pattern="random-warp"),
        _cell("interleaved", 30.0, pattern="block-stride", verified=False, operation="write"),
    )
    share = rows["span.interleaved.share"]
    assert share["value"] == pytest.approx(0.96)
    assert share["spread"] == pytest.approx([0.95, 0.97])
    assert share["conditions"]["pattern"] == "block-stride"
    assert share["conditions"]["cells"] == 2


def test_gains_are_over_what_they_are_compared_with():
    zipf = {"pattern": "zipf-rows", "rows": "ordered"}
    rows = _rows(
        _cell("interleaved", 50.0, **zipf),
        _cell("by-budget", 400.0, **zipf, page_bytes=65536),
        _cell("by-budget", 350.0, **zipf),
        _cell("by-budget", 999.0, **zipf, factor=3.0),
        _cell("by-budget", 998.0, pattern="zipf-rows", rows="scattered"),  # without a cell to compare with
        _cell("interleaved", 30.0, **zipf, operation="write"),
        _cell("by-budget", 300.0, **zipf, operation="write"),
        _cell("zero-copy", 10.0, pattern="random-warp"),
        _cell("prefetched", 25.0, pattern="random-warp"),
        _cell("interleaved", 20.0, pattern="random-warp"),
        _cell("interleaved", 99.0, pattern="random-warp", page_bytes=4096),  # another pattern than the zero-copy
    )
    assert set(rows) == {
        "span.budget.zipf_ordered.gain",
        "span.budget.zipf_ordered.write.gain",
        "span.random_warp.gain",
    }
    assert rows["span.budget.zipf_ordered.gain"]["value"] == pytest.approx(8.0)
    assert rows["span.budget.zipf_ordered.write.gain"]["value"] == pytest.approx(10.0)
    assert rows["span.random_warp.gain"]["value"] == pytest.approx(2.5)
    assert rows["span.random_warp.gain"]["conditions"]["strategy"] == "prefetched"


def test_results_file_and_plot(run: Run, tmp_path: Path):
    machine = results.machine(headrace.Device.parse("cpu"))["name"]
    saved, plot = tmp_path / f"oversubscription.{machine}.json", tmp_path / "spans.svg"
    done = run(*SMALL, "--factors", "1,2", "--save", saved, "--plot", plot, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content == json.loads(saved.read_text())
    assert content["budget_bytes"] == 8 << 20
    assert {row["id"] for row in content["rows"]} == {
        "span.interleaved.share",
        "span.budget.zipf_ordered.gain",
        "span.budget.zipf_scattered.gain",
        "span.random_warp.gain",
    }
    run_cells = [cell for cell in content["cells"] if "gb_per_s" in cell]
    assert len(run_cells) == 6 * 5 * 2 - 6
    # Two runs; cells that could reach their roof but did not are run twice more.
    sequential = {"grid-stride", "block-stride"}
    for cell in run_cells:
        again = cell["pattern"] in sequential and cell["strategy"] in {"interleaved", "by-budget"}
        assert cell["verified"]
        assert len(cell["runs_gb_per_s"]) in ({2, 6} if again else {2})
    root = ElementTree.parse(plot).getroot()
    words = "".join(root.itertext())
    for word in ("zipf-rows, scattered", "hot-tenth", "by-budget", "on-demand", "its roof"):
        assert word in words


def test_table(run: Run):
    what = ("--patterns", "random-warp", "--strategies", "on-demand,zero-copy,interleaved", "--operations", "all")
    how = ("--factors", "2", "--page-sizes", "4KiB,2MiB", "--threads", "64,128", "--synchronised", "both")
    done = run("oversubscribe", "--device", "cpu", "--budget", "2MiB", "--runs", "1", *what, *how)
    assert done.returncode == 0, done.stderr
    assert "random-warp, read-modify-write, GB/s" in done.stdout
    assert "zero-copy 4 KiB 64 threads synchronised" in done.stdout
    assert "- on-demand at 2: with a budget below the GPU's memory" in done.stdout
    assert "Roofs in GB/s" in done.stdout
    assert "span.random_warp.gain:" in done.stdout
    assert "WRONG" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--patterns", "zigzag"), "'zigzag' is not an access pattern"),
        (("--factors", "0"), "a factor must be above 0"),
        (("--factors", "two"), "--factors takes numbers"),
        (("--budget", "0"), "at least a page of 2 MiB"),
        (("--budget", "1MiB"), "at least a page of 2 MiB"),
        (("--budget", "much"), "'much' is not a size"),
        (("--threads", "100"), "not 100"),
        (("--threads", "few"), "'few'"),
        (("--page-sizes", "1GiB"), "not 1 GiB"),
        (("--save", "spans.json"), "results of this machine go to"),
    ],
)
def test_errors(run: Run, arguments: tuple[str, ...], says: str):
    failed = run(*SMALL, *arguments)
    assert failed.returncode == 2, failed.stderr
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_missing_folder_is_known_before_anything_is_measured(run: Run):
    failed = run(*SMALL, "--plot", "/nowhere/spans.svg")
    assert failed.returncode == 1
    assert "no folder /nowhere" in failed.stderr
    assert failed.stdout == ""


def test_nothing_to_plot_is_a_failure_that_shows_why(run: Run, tmp_path: Path):
    failed = run(*SMALL, "--strategies", "on-demand", "--factors", "2", "--plot", tmp_path / "spans.svg")
    assert failed.returncode == 1
    assert "nothing to save or plot" in failed.stderr
    assert "on-demand at 2" in failed.stdout
    assert list(tmp_path.iterdir()) == []
