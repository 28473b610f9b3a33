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
    done = bench("--bytes", "8MiB", "--page-bytes", "4MiB", "--runs", 3, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    of = {
        "span.move": 4 << 20,
        "span.move.host_rights": 4 << 20,
        "span.move.small": 2 << 20,
        "span.move.small.host_rights": 2 << 20,
    }
    assert rows.keys() == {name + way for name in of for way in ["", ".to_device", ".to_host"]}
    for name, row in rows.items():
        page = of[name.removesuffix(".to_device").removesuffix(".to_host")]
        row["conditions"].pop("disturbed", None)  # a busy machine, where a move beats the one large copy beside it
        assert row["conditions"] == {
            "bytes": 8 << 20,
            "pages": (8 << 20) // page,
            "page_bytes": page,
            "verified": True,
        }
        assert row["samples"] == 3
        assert 0 < row["spread"][0] <= row["value"] <= row["spread"][1]
        assert row["roof"] > 0
    ways = [rows["span.move.to_device"]["value"], rows["span.move.to_host"]["value"]]
    assert min(ways) * 0.5 <= rows["span.move"]["value"] <= max(ways) * 2


def test_bytes_that_are_none_are_refused():
    assert bench("--bytes", "many").returncode == 2
    refused = bench("--bytes", "8MiB", "--page-bytes", "3MiB")
    assert refused.returncode == 1
    assert "a power of two of at least" in refused.stderr
