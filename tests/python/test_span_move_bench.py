"""The benchmark of moves, small, on the CPU device."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "bench" / "span_move.py"


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), "--device", "cpu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_moves_are_verified_and_beside_the_link():
    done = bench("--bytes", "8MiB", "--runs", 3, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows.keys() == {"span.move", "span.move.to_device", "span.move.to_host"}
    for row in rows.values():
        assert row["conditions"] == {"bytes": 8 << 20, "pages": 4, "verified": True}
        assert row["samples"] == 3
        assert 0 < row["spread"][0] <= row["value"] <= row["spread"][1]
        assert row["roof"] > 0
    ways = [rows["span.move.to_device"]["value"], rows["span.move.to_host"]["value"]]
    assert min(ways) * 0.5 <= rows["span.move"]["value"] <= max(ways) * 2


def test_bytes_that_are_none_are_refused():
    assert bench("--bytes", "many").returncode == 2
