"""Timelines of fetches: recorded steps, overlaps, and the file."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_cli import assert_one_error_line, run

import headrace
from headrace import UsageError, _core
from headrace.fetch import FetchOptions, timeline
from headrace.fetch.fetched import StepSpan
from headrace.fetch.table import Table
from headrace.report.timeline import length, shared, union

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")


@pytest.fixture
def path(tmp_path) -> str:
    file = tmp_path / "table.parquet"
    rng = np.random.default_rng(2)
    content = pa.table({"a": rng.integers(0, 100, 80_000), "b": rng.random(80_000), "c": ["x", "y"] * 40_000})
    pq.write_table(content, file, row_group_size=5_000)
    return str(file)


def test_every_chunk_is_read_decoded_and_transferred(path):
    levels = headrace.fetch.Levels("cpu", cpu_bytes=64 << 20, device_bytes=64 << 20)
    with Table.open(path, levels=levels, options=FetchOptions(threads=2)) as table:
        one = timeline.record(table, ["b", "c"], 3)
        assert one.columns == ["b", "c"]
        assert [kernel.fragments for kernel in one.kernels] == [[*range(i, min(i + 3, 16))] for i in range(0, 16, 3)]
        for step in ("read", "decode", "transfer"):
            found = sorted((span.fragment, span.column) for span in one.spans if span.step == step)
            assert found == [(fragment, column) for fragment in range(16) for column in ("b", "c")]
        assert all(one.began <= span.begin <= span.end <= one.ended for span in one.spans if span.step != "transfer")
        assert {span.thread for span in one.spans} <= {0, 1}
        # A kernel reads data that was decoded before.
        for kernel in one.kernels:
            decoded = [span.end for span in one.spans if span.step == "decode" and span.fragment in kernel.fragments]
            assert max(decoded) <= kernel.end
        assert one.dropped == 0


def test_a_fetch_that_is_not_asked_keeps_nothing(path):
    with Table.open(path, device="cpu") as table:
        assert table.fetch(["a"]).timeline() == ([], 0)
        spans, dropped = table.start(["b"], options=FetchOptions(timeline_spans=5)).timeline()
        assert (len(spans), dropped) == (5, 3 * 16 - 5)


def test_what_overlaps_is_counted_once():
    assert union([(3, 4), (0, 2), (1, 2.5)]) == [(0, 2.5), (3, 4)]
    assert length([(3, 4), (0, 2), (1, 2.5)]) == 3.5
    assert shared([(0, 10)], [(1, 2), (1.5, 3), (9, 12)]) == 3
    assert shared([(0, 1)], []) == 0
    spans = [
        StepSpan(0, "a", 0, "read", 0.0, 1.0),
        StepSpan(0, "a", 0, "decode", 1.0, 3.0),
        StepSpan(1, "a", 1, "decode", 2.0, 5.0),
        StepSpan(0, "a", 0, "transfer", 4.0, 6.0),
        StepSpan(0, "b", 0, "transfer", 4.0, 6.0),  # transferred together with it
    ]
    kernels = [timeline.KernelSpan([0], 5.5, 8.0)]
    overlap = timeline.Pass(["a", "b"], "cpu:0", 2, 1, 0.0, 8.0, spans, kernels, 0).overlap()
    assert overlap == {
        "seconds": 8.0,
        "materialise_seconds": 5.0,
        "transfer_seconds": 2.0,
        "kernel_seconds": 2.5,
        "transfer_beside_materialise_seconds": 1.0,
        "kernel_beside_others_seconds": 0.5,
    }


@pytest.mark.parametrize("name", ["t.png", "t.svg", "t.json"])
def test_the_verb_writes_it(path, tmp_path, name):
    if not name.endswith(".json"):
        pytest.importorskip("matplotlib")
    file = tmp_path / name
    result = run("fetch", path, "--to", "cpu", "--threads", "2", "--window", "4", "--timeline", str(file), "--json")
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)["timeline"]
    assert (said["file"], said["windows"], said["dropped"]) == (str(file), 4, 0)
    assert said["transfer_beside_materialise_seconds"] + said["kernel_seconds"] > 0
    if name.endswith(".json"):
        content = json.loads(file.read_text())
        assert content["seconds"] == said["seconds"]
        assert {span["step"] for span in content["spans"]} == {"decode", "transfer"}  # already on the disk level
        assert all(-1 < span["begin"] <= span["end"] for span in content["spans"])
        assert [kernel["fragments"] for kernel in content["kernels"]] == [[*range(i, i + 4)] for i in (0, 4, 8, 12)]
    else:
        assert file.stat().st_size > 5000
    result = run("fetch", path, "--to", "cpu", "--timeline", str(file))
    assert "8 windows in " in result.stdout
    assert f"\nWrote {file}\n" in result.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--timeline", "t.jpg"), "written as .json, .svg or .png"),
        (("--timeline", "t.json", "--to", "host"), "on a device, not on the host"),
        (("--window", "3"), "--window needs --timeline"),
    ],
)
def test_what_cannot_be_drawn_is_refused(path, options, says):
    where = () if "--to" in options else ("--to", "cpu")
    result = run("fetch", path, *where, *options)
    assert result.returncode == 2
    assert_one_error_line(result, says)


def test_a_missing_folder_is_known_before_anything_is_fetched(path):
    result = run("fetch", path, "--to", "cpu", "--timeline", "no/such/t.json")
    assert result.returncode == 1
    assert_one_error_line(result, "there is no folder no/such")


def test_columns_on_the_host_are_looked_at_by_no_kernel(path):
    with (
        Table.open(path, device="cpu") as table,
        pytest.raises(UsageError, match="needs columns on a device, but these are in host memory"),
    ):
        table.fetch(["a"], to="cpu").look()
