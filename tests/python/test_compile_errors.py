"""What does not compile against the headers, and that the compiler's first words say why."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES_MAX = 25

KERNEL = """
#include "headrace/device/kernel.hpp"
using namespace headrace;
struct Body {
  static constexpr const char* kName = "body";
  template <class Group>
  HEADRACE_HD static void run(Group, float* out, std::uint64_t count) { out[0] = count; }
};
const auto typed = make_kernel<Body, float*, std::uint64_t>();
const Kernel erased = typed;
Status go(StreamRef stream, float* floats, double* doubles) { return %s; }
"""


def errors(tmp_path: Path, source: str) -> list[str]:
    """The compiler's messages; empty when it takes the source."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    config = next((ROOT / "build").glob("*/include/headrace/config.hpp"), None)
    folders = [ROOT / "include", *([config.parents[1]] if config else [])]
    file = tmp_path / "source.cpp"
    file.write_text(source, encoding="utf-8")
    command = [compiler, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in folders), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()


def expect_first(tmp_path: Path, source: str, says: str) -> None:
    found = errors(tmp_path, source)
    first = next((line for line in found if "error:" in line), "")
    assert says in first, "\n".join(found)
    assert len(found) <= LINES_MAX, "\n".join(found)


def test_a_launch_that_is_right_compiles(tmp_path: Path):
    assert errors(tmp_path, KERNEL % "launch(stream, typed, {}, floats, 3)") == []


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("launch(stream, typed, {}, floats)", "another number of arguments"),
        ("launch(stream, typed, {}, floats, 3, 4)", "another number of arguments"),
        ("launch(stream, typed, {}, doubles, 3)", "does not convert to the type"),
        ("launch(stream, typed, {}, floats, 3.5)", "does not convert to the type"),
        ("launch_resident(stream, typed, {}, 3, floats)", "does not convert to the type"),
        ("launch(stream, erased, {}, floats, 3)", "use of deleted function"),
    ],
)
def test_a_launch_that_is_wrong_says_why(tmp_path: Path, call: str, says: str):
    expect_first(tmp_path, KERNEL % call, says)
