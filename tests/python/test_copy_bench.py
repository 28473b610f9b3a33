"""The benchmark of CopyBatch and its helpers, with small sizes on the CPU device."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace import results

PROGRAM = Path(__file__).parents[2] / "bench" / "copy_batch.py"
TINY = ("--device", "cpu", "--total", "1", "--runs", "2", "--latency-runs", "20", "--sizes", "1024,4096")


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_every_figure_is_verified_and_beside_its_roof():
    done = bench(*TINY, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    asked = {"link.batch1k", "link.batch4k", "link.batch.contiguous", "link.pageable", "link.pinned"}
    assert asked | {"link.batch64.us", "link.roof.engine", "link.roof.kernel"} <= rows.keys()
    for identity, row in rows.items():
        assert row["conditions"]["verified"] is True, identity
        low, high = row["spread"]
        assert 0 < low <= row["value"] <= high
        assert row["unit"] == ("us" if identity.endswith(".us") else "GB/s")
        assert ("roof" in row) == (row["unit"] == "GB/s" and ".roof." not in identity)
    assert rows["link.batch64.us"]["samples"] == 20
    assert rows["link.batch1k"]["samples"] == 2
    routes = {row["conditions"].get("route") for row in rows.values()}
    assert routes >= {"automatic", "engine", "merged", "gather"}
    assert "batch_call" not in routes
    assert "left out" in done.stderr


def test_the_results_file_is_written_and_rows_can_be_chosen(tmp_path: Path):
    machine = results.machine(headrace.Device.parse("cpu"))["name"]
    path = tmp_path / f"link.{machine}.json"
    done = bench(*TINY, "--only", "link.batch1k", "--save", path)
    assert done.returncode == 0, done.stderr
    assert "link.batch1k" in done.stdout
    content = json.loads(path.read_text())
    assert [row["id"] for row in content["rows"]] == ["link.batch1k"]
    assert content["command"].startswith("copy_batch.py --device cpu")


def test_ctrl_c_ends_it_and_keeps_what_was_measured(tmp_path: Path):
    machine = results.machine(headrace.Device.parse("cpu"))["name"]
    path = tmp_path / f"link.{machine}.json"
    wanted = ("--only", "link.batch64.us", "--only", "link.batch1k", "--save", str(path))
    many = ("--device", "cpu", "--total", "16", "--runs", "200", "--latency-runs", "20")
    command = [sys.executable, str(PROGRAM), *many, *wanted]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("link.batch64.us: ")
        process.send_signal(signal.SIGINT)
        assert "interrupted" in process.stderr.read()
    assert process.returncode == 130
    assert [row["id"] for row in json.loads(path.read_text())["rows"]] == ["link.batch64.us"]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--device", "gpu:9"), 1, "gpu:9"),
        (("--routes", "sideways"), 2, "'sideways' is not a route"),
        (("--sizes", "0"), 2, "sizes are bytes above 0"),
        (("--runs", "0"), 2, "--runs must be 1 or more"),
        (("--save", "wrong.json"), 1, "results of this machine go to"),
        (("--only", "nothing"), 1, "no figure could be measured"),
        (("--slot-bytes", "5", "--only", "link.pageable"), 1, "slot_bytes"),
    ],
)
def test_wrong_use_is_named(arguments: tuple[str, ...], status: int, says: str):
    done = bench(*TINY, *arguments)
    assert done.returncode == status
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_case_is_measured_run_by_run():
    runs = headrace.measure.copy_batch("cpu", copy_bytes=100, count=50, odd=True, layout="scattered", runs=3)
    assert len(runs.seconds) == 3
    assert min(runs.seconds) > 0
    assert runs.bytes == 5000
    assert runs.supported
    assert runs.verified


def test_a_pageable_source_is_staged_by_threads():
    runs = headrace.measure.copy_batch(
        "cpu", copy_bytes=3 << 20, count=1, layout="contiguous", source="pageable", threads=3, slot_bytes=65536, runs=2
    )
    assert runs.verified


def test_a_route_that_the_device_lacks_is_said_to_be_missing():
    runs = headrace.measure.copy_batch("cpu", route="batch_call", count=10, runs=1)
    assert not runs.supported
    assert not runs.verified
    assert runs.seconds == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"route": "auto"}, "'auto' is not a copy route: automatic, engine"),
        ({"layout": "sorted"}, "'sorted' is not a copy layout: contiguous"),
        ({"stores": "fast"}, "'fast' is not a kind of store:"),
        ({"source": "device"}, "cannot write sources in device memory"),
        ({"count": 0}, "above 0"),
        ({"copy_bytes": 1 << 50}, "at most 1 TiB"),
        ({"threads": 1000}, "1000 staging threads"),
    ],
)
def test_impossible_cases_are_refused(options: dict, says: str):
    with pytest.raises(headrace.UsageError, match=says):
        headrace.measure.copy_batch("cpu", **options)


def test_roofs_are_rates_of_each_run():
    roofs = headrace.measure.copy_roofs("cpu", bytes=1 << 20, runs=3)
    assert len(roofs.engine) == len(roofs.kernel) == 3
    assert min(roofs.engine + roofs.kernel) > 0
    with pytest.raises(headrace.UsageError):
        headrace.measure.copy_roofs("cpu", bytes=15)
