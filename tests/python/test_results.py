"""The results form, and the page made from it."""

import json
from pathlib import Path

import pytest

from headrace import DataError, Device, UsageError, results

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
    page = results.render(tmp_path)
    assert "## ladder on h100-16" in page
    assert "| `ladder.light.qps` | 25,000,000 queries/s | 50,000,000 (compute) | 50.0% |" in page
    assert "commit abc1234: `headrace ladder` ([ladder.h100-16.json](ladder.h100-16.json))" in page
    assert "not.verified" not in page


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "not JSON"), ("[]", "not a results file"), ('{"rows": []}', "lacks 'machine'")],
)
def test_render_names_the_bad_file(tmp_path: Path, content: str, says: str):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(DataError, match=rf"bad\.json: .*{says}"):
        results.render(tmp_path)


def test_this_machine():
    here = results.machine(Device.parse("cpu"))
    assert here["name"] == f"cpu-{here['cores']}"
    assert here["driver"] == ""
    assert results.topic_of(Path(f"x/ladder.{here['name']}.json"), Device.parse("cpu")) == "ladder"
    for name in ("ladder.json", "ladder.h100-16.json", f".{here['name']}.json"):
        with pytest.raises(UsageError, match=here["name"]):
            results.topic_of(Path(name), Device.parse("cpu"))


def test_a_row_is_the_median():
    row = results.row("a", [3.0, 1.0, 2.0], "queries/s", (10.0, "compute"), {})
    assert (row["value"], row["spread"], row["samples"], row["roof"]) == (2.0, [1.0, 3.0], 3, 10.0)


def test_save_is_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "a.json"
    with pytest.raises(TypeError):
        results.save(path, {"bad": object()})
    with pytest.raises(UsageError, match="no folder"):
        results.save(tmp_path / "none" / "a.json", {})
    assert list(tmp_path.iterdir()) == []
    results.save(path, CONTENT)
    assert json.loads(path.read_text()) == CONTENT
    assert list(tmp_path.iterdir()) == [path]
