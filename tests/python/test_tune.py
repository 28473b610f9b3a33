"""The tuner, its cache, and plans as JSON."""

import importlib.util
import json
from pathlib import Path

import pytest
from conftest import Run

import headrace
from headrace import DataError, Plan, UsageError

pytestmark = pytest.mark.whole_machine

# One engine thread and short measurements: the result does not matter here.
QUICK = {
    "bound": 10.0,
    "budget": 0.2,
    "schedules": ["blocking"],
    "threads_max": 1,
    "window": 0.03,
    "rank_tolerance": 0.01,
}
QUICK_WORDS = ("--bound", "10s", "--budget", "2s", "--schedule", "blocking", "--threads-max", "1")
QUICK_WORDS += ("--window", "20ms", "--tolerance", "0.01", "--steps", "8", "--device", "cpu")


def test_a_plan_comes_back_from_json():
    plan = Plan(name="mine", schedule="pipelined", threads=3, host_memory="mapped", slots=64)
    plan.streams_per_thread = 5
    back = Plan.from_json(plan.to_json())
    assert back.to_json() == plan.to_json()
    assert (back.schedule, back.threads, back.streams_per_thread, back.slots) == ("pipelined", 3, 5, 64)
    with pytest.raises(UsageError, match="there is no member 'thread'"):
        Plan.from_json('{"thread": 1}')
    with pytest.raises(DataError, match="JSON"):
        Plan.from_json("{")


def test_tune_keeps_what_it_finds(tmp_path: Path):
    file = tmp_path / "plans.json"
    operator = headrace.light(steps=8)
    phases: set[str] = set()
    found = headrace.tune("cpu", operator, **QUICK, cache_file=str(file), progress=lambda now: phases.add(now.phase))
    assert found.per_second > 0, found.note
    assert found.load is not None
    assert not found.cached
    assert {"coarse", "rates"} <= phases
    assert json.loads(file.read_text())["format"] == "headrace plans 1"
    again = headrace.tune("cpu", operator, **QUICK, cache_file=str(file), measure_cached=False)
    assert again.cached
    assert again.load is None
    assert again.plan.to_json() == found.plan.to_json()
    file.write_text("damaged")
    assert not headrace.tune("cpu", operator, **QUICK, cache_file=str(file), cache="ignore").cached
    assert file.read_text() == "damaged"


def test_plan_tuned_reads_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert headrace.serve.plan_cache_file() == str(tmp_path / "headrace" / "plans.json")
    with pytest.raises(headrace.Error, match="no plan keeps p99"):
        Plan.tuned("cpu", headrace.light(steps=1), bound=1e-9)
    assert not (tmp_path / "headrace").exists()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bound": 0}, "bound"),
        ({"budget": 0}, "budget"),
        ({"schedules": ["fast"]}, "'fast' is not a schedule"),
        ({"schedules": ["none"]}, "schedule 'none'"),
        ({"cache": "maybe"}, "use, refresh, ignore"),
        ({"arrivals": "trace"}, "poisson or constant"),
        ({"generators": 65}, "generators"),
    ],
)
def test_bad_options(settings: dict[str, object], says: str):
    with pytest.raises(UsageError, match=says):
        headrace.tune("cpu", headrace.light(steps=1), **{**QUICK, **settings})


def test_tune_exhaustive_and_save(run: Run, tmp_path: Path):
    machine = json.loads(run("ladder", "--rung", "2", "--device", "cpu", "--json", "--steps", "1").stdout)["machine"]
    path = tmp_path / f"tuned.{machine['name']}.json"
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    done = run("tune", "--exhaustive", "--json", "--save", path, *QUICK_WORDS, **cache)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content == json.loads(path.read_text())
    row = next(row for row in content["rows"] if row["id"] == "ladder.light.tuned.qps")
    assert row["conditions"]["verified"] is True
    assert row["conditions"]["schedule"] == "blocking"
    assert row["conditions"]["share_of_exhaustive"] > 0
    assert row["conditions"]["time_of_exhaustive"] > 0
    assert content["exhaustive"]["space"] == content["exhaustive"]["searched"]


def test_tune_measures_the_cached_plan_again(run: Run, tmp_path: Path):
    cache, page = {"XDG_CACHE_HOME": str(tmp_path)}, tmp_path / "tuned.html"
    report = ("--report", page) if importlib.util.find_spec("matplotlib") else ()
    done = run("tune", *QUICK_WORDS, *report, **cache)
    assert done.returncode == 0, done.stderr
    assert not report or page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    # A plan that no longer reaches half its rate is searched anew. A low rate is sustainable on a busy machine.
    file = tmp_path / "headrace" / "plans.json"
    kept = json.loads(file.read_text())
    for entry in kept["plans"].values():
        entry["per_second"] = 1000.0
    file.write_text(json.dumps(kept))
    text = run("tune", *QUICK_WORDS, **cache)
    assert text.returncode == 0, text.stderr
    assert "from the cache" in text.stdout
    assert "schedule" not in text.stderr


def test_tune_without_a_plan(run: Run, tmp_path: Path):
    words = [word if word != "10s" else "1ns" for word in QUICK_WORDS]
    none = run("tune", *words, XDG_CACHE_HOME=str(tmp_path))
    assert none.returncode == 1
    assert "no plan keeps p99" in none.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rung", "1"), "No such option: --rung"),
        (("--schedule", "fast"), "'fast' is not a schedule"),
        (("--plans", "maybe"), "maybe"),
        (("--budget", "0s"), "0s"),
    ],
)
def test_tune_errors(run: Run, arguments: tuple[str, ...], says: str):
    failed = run("tune", *arguments)
    assert failed.returncode == 2
    assert says in failed.stderr
    assert failed.stdout == ""
