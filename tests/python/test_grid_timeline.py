"""Timelines: recorded work, hidden exchange, and the picture."""

import json
from pathlib import Path

import pytest
from grid_scenes import changed, flat
from test_grid_cli import Call, call  # noqa: F401 - a fixture

from headrace import UsageError
from headrace.grid import Fdtd
from headrace.grid.records import WorkSpan
from headrace.grid.solver import Layout, timeline


def test_parts_and_cycles_are_there():
    spans = timeline.record(flat(), Layout(("cpu:0", "cpu:1"), redundant=2), 5)
    assert {(span.part, span.cycle) for span in spans} == {(part, cycle) for part in range(2) for cycle in range(5)}
    assert {span.work for span in spans} == {"body", "border", "push", "receive", "interior"}
    assert all(0 <= span.begin <= span.end for span in spans)


def test_what_is_hidden_lies_beside_computing_of_the_same_part():
    spans = [
        WorkSpan(0, 0, "body", 0.0, 2.0),
        WorkSpan(0, 0, "interior", 2.0, 5.0),
        WorkSpan(0, 0, "border", 0.0, 9.0),  # does not count as exchange
        WorkSpan(0, 0, "push", 1.0, 3.0),
        WorkSpan(0, 0, "receive", 2.5, 6.0),  # counted once where it overlaps the push; one second of it is in a gap
        WorkSpan(1, 0, "interior", 0.0, 9.0),
        WorkSpan(2, 0, "messages", 4.0, 5.0),  # overlaps with computing of another part, which does not hide it
    ]
    assert timeline.hidden(spans) == pytest.approx((6.0, 4.0))
    assert timeline.hidden(spans[:3]) == (0.0, 0.0)


def test_a_run_that_is_over_before_is_refused():
    with pytest.raises(UsageError, match="200 cycles after 20 of warm-up need 220 steps, but it has 150"):
        timeline.record(flat(), Layout(), 200)


def test_a_resident_kernel_has_no_timeline():
    run = Fdtd((20, 16), 1e-3, cpml=0, mode="resident")
    with pytest.raises(UsageError, match="mode 'resident' has no timeline"):
        run.record_timeline(2)
    with pytest.raises(UsageError, match="cycles must be 0 or more, not -1"):
        run.record_timeline(-1)


@pytest.mark.parametrize("name", ["a.svg", "a.png"])
def test_the_verb_draws_it(call: Call, name: str):  # noqa: F811
    pytest.importorskip("matplotlib")
    devices = ("--device", "cpu:0", "--device", "cpu:1")
    status, out, error = call("timeline", "small.toml", *devices, "-o", name, "--cycles", 3)
    assert (status, error) == (0, "")
    assert "3 cycles: " in out
    assert f"of it overlapped with computing\nWrote {name}\n" in out
    assert Path(name).stat().st_size > 5000
    status, out, _ = call("timeline", "small.toml", *devices, "-o", name, "--cycles", 3, "--json")
    found = json.loads(out)
    assert (status, found["file"]) == (0, name)
    assert 0 <= found["hidden_seconds"] <= found["exchange_seconds"]
    assert len(found["spans"]) == 2 * 3 * 5


def test_one_device_exchanges_nothing(call: Call):  # noqa: F811
    pytest.importorskip("matplotlib")
    status, out, _ = call("timeline", "small.toml", "--device", "cpu:0", "-o", "a.svg")
    assert (status, out) == (0, "6 cycles: no exchange\nWrote a.svg\n")


@pytest.mark.parametrize(
    ("words", "wanted", "says"),
    [(("-o", "a.jpg"), 2, "a timeline is drawn as .svg or .png"), (("-o", "no/a.svg"), 1, "there is no folder no")],
)
def test_what_cannot_be_drawn_is_refused(call: Call, words: tuple[str, ...], wanted: int, says: str):  # noqa: F811
    pytest.importorskip("matplotlib")
    Path("small.toml").write_text(changed(), encoding="utf-8")
    status, _, error = call("timeline", "small.toml", *words)
    assert status == wanted
    assert says in error
