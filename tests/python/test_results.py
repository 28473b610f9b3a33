"""The results form, and the page made from it."""

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import headrace
from headrace import DataError, Device, MissingFileError, UsageError, profiles, quiet, results, results_page
from headrace.quiet import Watch

CONTENT = {
    "topic": "ladder",
    "machine": {
        "name": "h100-16",
        "device": "NVIDIA H100",
        "driver": "580",
        "cuda": "13.0",
        "cpu": "Xeon",
        "cores": 16,
        "kernel": "6.18",
    },
    "commit": "abc1234",
    "date": "2026-11-22T10:00:00Z",
    "command": "headrace ladder",
    "rows": [
        {
            "id": "ladder.light.qps",
            "value": 25e6,
            "unit": "queries/s",
            "roof": 50e6,
            "roof_is": "compute",
            "spread": [24e6, 26e6],
            "samples": 3,
            "conditions": {"threads": 8, "p99_us": 82.0, "verified": True},
        },
        {
            "id": "not.verified",
            "value": 1.0,
            "unit": "queries/s",
            "spread": [1.0, 1.0],
            "samples": 1,
            "conditions": {"verified": False},
        },
    ],
}


def test_render(tmp_path: Path):
    (tmp_path / "ladder.h100-16.json").write_text(json.dumps(CONTENT))
    page = results_page.render(tmp_path)
    assert "## ladder on h100-16" in page
    assert "| `ladder.light.qps` | 25,000,000 queries/s | 50,000,000 (compute) | 50.0% |" in page
    assert "commit abc1234: `headrace ladder` ([ladder.h100-16.json](ladder.h100-16.json))" in page
    assert "not.verified" not in page


def test_conditions_that_rows_share_stand_above_them_with_what_the_topic_measures(tmp_path: Path):
    content = json.loads(json.dumps(CONTENT))
    content["rows"][1]["conditions"] = {"threads": 8, "seed": 1}
    (tmp_path / "ladder.h100-16.json").write_text(json.dumps(content))
    (tmp_path / "about.toml").write_text('ladder = "How high it is."')
    page = results_page.render(tmp_path)
    assert "\n\nHow high it is.\n\n" in page
    assert "Conditions of all rows to which they apply: threads 8\n" in page
    assert "| seed 1 |" in page


def test_every_topic_of_the_project_is_explained():
    folder = Path(__file__).parents[2] / "docs" / "results"
    about = tomllib.loads((folder / "about.toml").read_text(encoding="utf-8"))
    assert {json.loads(file.read_text(encoding="utf-8"))["topic"] for file in folder.glob("*.json")} == set(about)


def test_the_page_of_the_project_is_current():
    folder = Path(__file__).parents[2] / "docs" / "results"
    assert results_page.render(folder) == (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"rows": ' + "9" * 5000 + "}", "too many digits"),
        ("[]", "not a results file"),
        ('{"rows": []}', "lacks 'machine'"),
        (
            json.dumps(CONTENT).replace("25000000.0", "0").replace("queries/s", "ms", 1),
            "not a results file: .*division",
        ),
        (json.dumps(CONTENT).replace("25000000.0", "1" + "0" * 400), "not a results file: .*too large"),
    ],
)
def test_render_names_the_bad_file(tmp_path: Path, content: str, says: str):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(DataError, match=rf"bad\.json: .*{says}"):
        results_page.render(tmp_path)


def test_this_machine(tmp_path: Path):
    here = results.machine(Device.parse("cpu"))
    assert here["name"] == f"cpu-{here['cores']}"
    assert here["driver"] == ""
    assert results.topic_of(tmp_path / f"ladder.{here['name']}.json", Device.parse("cpu")) == "ladder"
    for name in ("ladder.json", "ladder.h100-16.json", f".{here['name']}.json"):
        with pytest.raises(UsageError, match=here["name"]):
            results.topic_of(Path(name), Device.parse("cpu"))


def test_a_row_is_the_median():
    row = results.row("a", [3.0, 1.0, 2.0], "queries/s", (10.0, "compute"), {})
    assert (row["value"], row["spread"], row["samples"], row["roof"]) == (2.0, [1.0, 3.0], 3, 10.0)


@pytest.mark.parametrize(
    ("value", "unit", "share"), [(5.0, "GB/s", 0.5), (20.0, "GB/s", 2.0), (20.0, "ms", 0.5), (10.0, "s", 1.0)]
)
def test_the_share_of_a_roof_is_one_at_the_roof_for_rates_and_for_times(value: float, unit: str, share: float):
    assert results.share_of_roof(results.row("a", [value], unit, (10.0, "memory"), {})) == share


def test_save_is_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "a.json"
    with pytest.raises(TypeError):
        results.save(path, {"bad": object()})
    with pytest.raises(MissingFileError, match="no folder"):
        results.save(tmp_path / "none" / "a.json", {})
    assert list(tmp_path.iterdir()) == []
    results.save(path, CONTENT)
    assert json.loads(path.read_text()) == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_short_and_says_the_same():
    content = {"a": [[1, 2, 3], [4, 5, 6]], "b": {"c": 1, "d": "x"}, "e": [], "f": {"g": {"h": [1.5]}}, "i": None}
    text = results.dumps(content)
    assert json.loads(text) == content
    assert "\n    [1, 2, 3],\n" in text
    assert '\n  "b": {"c": 1, "d": "x"},\n' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("number", "name"),
    [(1, "rung01"), (9, "rung09"), (11, "rung11"), (12, "graph"), (13, "batched"), (14, "dispatched")],
)
def test_rungs_of_the_document_are_numbered_and_others_named(number: int, name: str):
    class Result:
        rung = headrace.serve.find_rung(str(number))

    assert results.rung_name(Result()) == name  # type: ignore[arg-type]


def test_rows_of_a_climb_and_of_a_single_thread():
    climbs = [
        headrace.serve.ladder("cpu", headrace.light(steps=1), rungs=[6], bound=10, window=0.02, rank_tolerance=0.01)
        for _ in range(2)
    ]
    device = Device.parse("cpu")
    shared = {"bound_us": 1e7, "arrivals": "poisson", "seed": 1}
    rows = {row["id"]: row for row in results.ladder_rows(climbs, "light", device, 10.0, shared)}
    assert list(rows) == ["ladder.light.rung06.qps", "first.generator.per_thread"]
    row = rows["ladder.light.rung06.qps"]
    # A climb on a busy machine may find no sustainable rate.
    assert row["samples"] == sum(climb.rungs[0].load is not None for climb in climbs)
    assert row["conditions"]["generators"] == 1
    assert row["conditions"]["verified"] is True
    assert "note" not in row["conditions"]
    single = results.ladder_rows(climbs, "light", device, 10.0, shared, single=True)
    assert [row["id"] for row in single] == ["ladder.light.single.rung06.qps"]

    (entry,) = profiles.profile(climbs)
    values = sorted(climb.rungs[0].load.measured_per_second for climb in climbs if climb.rungs[0].load)
    assert entry["load"]["measured_per_second"] == values[0]
    assert entry["roof"] > 0
    assert entry["plan"]["schedule"] == "blocking"
    assert set(entry["stages_us"]) == set(profiles.STAGES)


class _Noted:
    """A rung with a note."""

    def __init__(self, result: headrace.serve.RungResult, note: str) -> None:
        self._result = result
        self.note = note

    def __getattr__(self, name: str) -> object:
        return getattr(self._result, name)


def test_a_row_says_why_its_rung_is_lower():
    climb = headrace.serve.ladder("cpu", headrace.light(steps=1), rungs=[6], bound=10, window=0.02, rank_tolerance=0.01)
    lower = SimpleNamespace(
        rungs=[_Noted(climb.rungs[0], "9.0% below rung 5: more threads")], roofs=climb.roofs, roofs_disturbed=""
    )
    row, _ = results.ladder_rows([lower], "light", Device.parse("cpu"), 10.0, {})  # type: ignore[list-item]
    assert row["conditions"]["note"] == "9.0% below rung 5: more threads"
    assert "note 9.0% below rung 5" in results.describe(row["conditions"])


def test_thinning_keeps_both_ends():
    assert profiles.thin(list(range(100)), 4) == [0, 33, 66, 99]
    assert profiles.thin([1, 2], 4) == [1, 2]


def test_a_figure_from_a_disturbed_machine_is_no_result(tmp_path: Path):
    watch = Watch()
    rows = [
        results.row("a", [50.0], "GB/s", (100.0, "memory"), {}),
        results.row("b", [147.0], "GB/s", (100.0, "memory"), {}),
        results.row("c", [90.0], "s", (100.0, "memory"), {}),  # a time below its lower bound
    ]
    watch.stop()
    watch.reasons.clear()
    content = results.document("made", Device.parse("cpu"), rows, watch)
    assert [results.accepted(row) for row in content["rows"]] == [True, False, False]
    assert "147% of what the memory allows" in content["rows"][1]["conditions"]["disturbed"]
    assert content["quiet"]["disturbed"] == ""
    (tmp_path / "made.cpu-2.json").write_text(json.dumps(content))
    page = results_page.render(tmp_path)
    assert "| `a` |" in page
    assert "| `b` |" not in page
    assert "- `b` is no result: 147%" in page

    watch.add("other programs took 40% of the processors' time")
    content = results.document("made", Device.parse("cpu"), [results.row("a", [5.0], "GB/s", None, {})], watch)
    assert not results.accepted(content["rows"][0])


def test_two_roofs_that_differ_are_not_to_be_trusted():
    watch = Watch()
    watch.stop()
    watch.reasons.clear()
    watch.roofs("memory", [10.0, 9.0])
    assert watch.stop() == ""
    watch.roofs("memory", [10.0, 5.0])
    assert watch.stop() == "the memory roof read 10, then 5"
    assert quiet.share_text(1.91, "") == "disturbed"
    assert quiet.share_text(0.5, "") == "50.0%"
    assert quiet.share_text(0.5, "it was busy") == "disturbed"
