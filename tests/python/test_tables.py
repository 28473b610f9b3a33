"""The two tables: their content, their width, and the marks of Headrace's own rungs."""

import io

import pytest
from ladder_content import ROOFS, content
from rich.console import Console

from headrace import tables
from headrace.cli import show

PROFILE = content()["profile"]


class Roofs:
    """Replaces headrace.measure.Roofs, which Python cannot construct."""

    link_in, link_out, compute, generator, generators = (
        ROOFS[name] for name in ("link_in", "link_out", "compute", "generator", "generators")
    )


def printed(width: int, entries: list[dict]) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show.print_ladder(console, "light on cuda:0, all threads", entries, Roofs())  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [100, 160, 200])
def test_a_table_fits_and_nothing_is_cut(width: int):
    text = printed(width, PROFILE)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    for word in ("average", "p99", "queries/s", "threads", "/thread", "batch", "rators", "lelism", "roof", "of roof"):
        assert word in text
    for word in ("queue", "host", "copy in", "kernel", "copy out", "notify"):
        assert word in text
    dispatched = next(line for line in lines if "14 dispatched" in line)
    for figure in ("30.3 us", "91 us", "43,868,000", "10", "53.7 M", "81.7%"):
        assert figure in dispatched
    assert "rung 12: a graph launch costs more" in text
    assert "53,700,000  link to device" in text


def test_stages_are_in_the_same_row_where_there_is_room_and_else_below():
    assert printed(200, PROFILE).count("14 dispatched") == 1
    assert printed(160, PROFILE).count("14 dispatched") == 2
    assert printed(100, PROFILE).count("14 dispatched") == 2


def test_rungs_past_the_document_are_set_apart():
    lines = printed(160, PROFILE).splitlines()
    mark = next(number for number, line in enumerate(lines) if "Headrace's own" in line)
    assert "11 persistent" in "".join(lines[:mark])
    assert "12 graph" in lines[mark + 1]
    assert "Headrace's own" not in printed(160, PROFILE[:3])


def test_parallelism_is_queries_on_the_device():
    by_id = {entry["id"]: tables.cells(entry) for entry in PROFILE}
    assert by_id["single"]["parallelism"] == "1"
    assert by_id["pipelined"]["parallelism"] == "16"
    assert by_id["batched"]["parallelism"] == "512"
    assert by_id["dispatched"]["parallelism"] == by_id["dispatched"]["threads"] == "-"


def test_columns_that_say_nothing_are_left_out():
    one = [entry for entry in PROFILE if entry["id"] == "single"]
    keys = {column.key for column in tables.columns(one, narrow=True)}
    assert not {"batch", "generators", "p50"} & keys
    assert {"mean", "p99", "throughput", "threads", "streams", "parallelism", "roof", "share"} <= keys


def test_a_rung_without_figures_has_dashes():
    without = PROFILE[0] | {"load": None, "note": "no rate keeps p99 within 0.5 ms"}
    assert set(tables.cells(without).values()) == {"-"}
    assert "rung 1: no rate keeps p99" in printed(100, [without])


def test_figures_are_short():
    assert [tables.short_rate(value) for value in (999.6, 12, 53.7e6, 1.69e6, 2.5e9)] == [
        "1 K",
        "12",
        "53.7 M",
        "1.69 M",
        "2.5 G",
    ]
    assert [tables.micro(value) for value in (85.24, 1250, 2.1e6)] == ["85.2 us", "1.25 ms", "2.1 s"]
    assert [show.minutes(seconds) for seconds in (42.4, 59.9, 185)] == ["42 s", "1 min 0 s", "3 min 5 s"]
