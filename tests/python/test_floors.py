"""The benchmark programs with small sizes on the CPU device."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace import results

pytestmark = pytest.mark.whole_machine

BENCH = Path(__file__).parents[2] / "bench"
# Bounds and windows are wide, and rates low, so that a busy machine keeps up.
TINY = (
    *("--device", "cpu", "--plan", "unified", "--generators", "1", "--samples", "2", "--window", "5ms"),
    *("--tolerance", "0.01", "--bound", "10s", "--tight-bound", "10s", "--idle-rate", "1K", "--high-rate", "2K"),
    *("--reference-steps", "1", "--resolution", "0.3"),
)


def bench(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCH / program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def rows_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    assert done.returncode == 0, done.stderr
    return {row["id"]: row for row in json.loads(done.stdout)["rows"]}


def test_a_rate_is_claimed_beside_its_roof_and_its_generator():
    rows = rows_of(bench("ladder_floor.py", *TINY, "--only", "ladder.light64", "--only", "ladder.generator", "--json"))
    assert list(rows) == ["ladder.light64.qps", "ladder.generator.qps"]
    claim, ceiling = rows.values()
    assert claim["unit"] == "queries/s"
    assert claim["samples"] == 2
    assert claim["spread"][0] <= claim["value"] <= claim["spread"][1]
    assert claim["roof"] > 0
    assert claim["roof_is"] in {"compute", "link to device", "link to host"}
    about = claim["conditions"]
    assert about["verified"] is True
    assert {"schedule", "threads", "generators", "slots", "p99_us", "arrivals"} <= about.keys()
    assert claim["value"] <= about["generator_ceiling"] / 1.2 * 1.001
    assert ceiling["conditions"]["highest_claim"] == claim["value"]
    assert ceiling["conditions"]["query_bytes"] == 64


def test_idle_latency_and_the_results_file(tmp_path: Path):
    machine = results.machine(headrace.Device.parse("cpu"))["name"]
    path = tmp_path / f"floors.{machine}.json"
    done = bench("ladder_floor.py", *TINY, "--only", "ladder.light.idle", "--save", path)
    assert done.returncode == 0, done.stderr
    assert "ladder.light.idle.p50" in done.stdout
    content = json.loads(path.read_text())
    assert content["topic"] == "floors"
    assert content["command"].startswith("ladder_floor.py --device cpu")
    p50, p99 = content["rows"]
    assert (p50["id"], p99["id"], p50["unit"]) == ("ladder.light.idle.p50", "ladder.light.idle.p99", "us")
    assert 0 < p50["value"] <= p99["value"]


def test_retrieval_needs_its_index(index_file: Path):
    rows = rows_of(bench("ladder_floor.py", *TINY, "--only", "ladder.retrieval", "--wordnet", index_file, "--json"))
    assert list(rows) == ["ladder.retrieval.wordnet.qps"]
    assert rows["ladder.retrieval.wordnet.qps"]["conditions"]["documents"] == 5


def test_what_cannot_be_measured_is_left_out_and_says_why():
    done = bench("ladder_floor.py", *TINY, "--only", "ladder.retrieval")
    assert done.returncode == 1
    assert "left out: no index was given" in done.stderr
    assert "no figure could be measured" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--device", "gpu:9"), "gpu:9"),
        (("--save", "wrong.json"), "results of this machine go to"),
        (("--plan", "sideways", "--only", "ladder.light.qps"), "no rung 'sideways'"),
    ],
)
def test_wrong_use_is_named(arguments: tuple[str, ...], says: str):
    done = bench("ladder_floor.py", "--device", "cpu", *arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_loop_says_so():
    done = bench("torch_loop.py")
    assert done.returncode == 3
    assert "torch is not installed" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_torch_loop_answers_as_the_host_does():
    done = bench("torch_loop.py", "--device", "cpu", "--seconds", "0.2", "--samples", "1", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["id"] == "ladder.torch.qps"
    assert row["conditions"]["verified"] is True
