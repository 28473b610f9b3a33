"""The check of public headers compiles the example of each, and fails if one does not compile."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "header_examples.py"
GOOD = """#pragma once

// Triples are made here.
//
//     struct Mine {
//       int value = triple(2);
//     };
//     Mine mine;
//     std::printf("%d\\n", mine.value);

[[nodiscard]] inline int triple(int value) { return 3 * value; }
"""


def run(tmp_path: Path, headers: dict[str, str], *only: str) -> subprocess.CompletedProcess[str]:
    for name, text in headers.items():
        path = tmp_path / "headrace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return subprocess.run([sys.executable, SCRIPT, tmp_path, *only], capture_output=True, text=True, check=False)


def test_an_example_that_compiles_passes(tmp_path: Path):
    result = run(tmp_path, {"a/a.hpp": GOOD})
    assert (result.returncode, result.stdout, result.stderr) == (0, "1 passed, 0 failed\n", "")


def test_the_first_error_is_that_of_a_line_of_the_header(tmp_path: Path):
    result = run(tmp_path, {"a/a.hpp": GOOD.replace("mine.value", "mine.price"), "a/b.hpp": GOOD})
    assert result.returncode == 1
    assert result.stderr.startswith("headrace/a/a.hpp:9:")
    assert "has no member named" in result.stderr
    assert result.stdout == "1 passed, 1 failed\n"


def test_warnings_are_errors(tmp_path: Path):
    result = run(tmp_path, {"a/a.hpp": GOOD.replace("//     Mine mine;", "//     Mine mine;\n//     triple(1);")})
    assert "nodiscard" in result.stderr
    assert result.stdout == "0 passed, 1 failed\n"


def test_a_header_opens_with_its_purpose_and_an_example(tmp_path: Path):
    code = "inline int triple(int value) { return 3 * value; }\n"
    openings = {"a/a.hpp": "", "a/b.hpp": "// Triples are made here.\n\n", "a/c.hpp": "// Made here.\n"}
    result = run(tmp_path, {name: f"#pragma once\n\n{opening}{code}" for name, opening in openings.items()})
    assert result.stderr.splitlines() == [
        "headrace/a/a.hpp: it does not open with its purpose: put a comment after #pragma once",
        "headrace/a/b.hpp: its opening comment has no example: indent one by four spaces",
        "headrace/a/c.hpp: it does not open with its purpose: put a comment after #pragma once",
    ]


def test_umbrellas_need_no_example_and_details_no_opening(tmp_path: Path):
    umbrella = '#pragma once\n\n// All of a.\n\n#include "headrace/a/a.hpp"\n'
    headers = {"a/a.hpp": GOOD, "a.hpp": umbrella, "a/detail/b.hpp": "#pragma once\n", "config.hpp": "#pragma once\n"}
    assert run(tmp_path, headers).stdout == "2 passed, 0 failed\n"
    assert run(tmp_path, headers, "headrace/a/a.hpp").stdout == "1 passed, 0 failed\n"


def test_a_folder_without_headers_fails(tmp_path: Path):
    result = run(tmp_path, {})
    assert (result.returncode, result.stdout) == (1, "0 passed, 0 failed\n")
