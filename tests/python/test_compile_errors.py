"""Code that must not compile against the headers, and the compiler's first message, which must say why."""

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


def errors(tmp_path: Path, source: str, *options: str) -> list[str]:
    """The compiler's messages; empty if it accepts the source."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    config = next((ROOT / "build").glob("*/include/headrace/config.hpp"), None)
    folders = [ROOT / "include", *([config.parents[1]] if config else [])]
    file = tmp_path / "source.cpp"
    file.write_text(source, encoding="utf-8")
    command = [compiler, "-std=c++20", "-fsyntax-only", *options, *(f"-I{folder}" for folder in folders), str(file)]
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
        ("launch(stream, typed, {}, floats)", "as many arguments as the kernel was made with"),
        ("launch(stream, typed, {}, floats, 3, 4)", "as many arguments as the kernel was made with"),
        ("launch(stream, typed, {}, doubles, 3)", "does not convert to the type"),
        ("launch(stream, typed, {}, floats, 3.5)", "does not convert to the type"),
        ("launch_resident(stream, typed, {}, 3, floats)", "does not convert to the type"),
        ("launch(stream, erased, {}, floats, 3)", "use of deleted function"),
    ],
)
def test_a_launch_that_is_wrong_says_why(tmp_path: Path, call: str, says: str):
    expect_first(tmp_path, KERNEL % call, says)


BODY = """
#include "headrace/device/kernel.hpp"
struct Body {
  static constexpr const char* kName = "body";
  template <class Group>
  HEADRACE_HD static void run(Group, float* out, std::uint64_t count) { out[0] = count; }
};
const auto kernel = headrace::make_kernel<Body, %s>();
"""


def test_a_body_that_does_not_take_its_arguments_says_so(tmp_path: Path):
    expect_first(tmp_path, BODY % "double*, int", "a kernel's body needs template <class Group>")
    expect_first(tmp_path, BODY % "float*", "a kernel's body needs template <class Group>")
    assert errors(tmp_path, BODY % "float*, std::uint32_t") == []


OPERATOR = """
#include "headrace/serve/operator.hpp"
struct Sum {
  static constexpr const char* kName = "sum";
  struct Query { float values[4]; };
  struct Answer { float sum; };
  struct State { const float* weights; };
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (group.rank() == 0) answer->sum = query->values[0] * state.weights[0];
  }
};
const auto made = headrace::serve::make_operator<Sum>({}, {});
"""


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("", "", ""),
        ("const Query* query, Answer*", "Query* query, Answer*", "an operator needs template <class Group>"),
        (
            "Group group, const State&",
            "Group group, int, const State&",
            "an operator needs template <class Group>",
        ),
        ("void answer(", "void respond(", "an operator needs template <class Group>"),
        ("const char* kName", "const char* kTitle", "an operator needs kName, Query, Answer and State"),
        ("{ const float* weights; }", "{ const float* weights; char more[256]; }", "State may have at most 256 bytes"),
        ("{ float sum; }", "{ float sum; ~Answer(); }", "are copied bytewise"),
    ],
)
def test_an_operator_that_is_none_says_why(tmp_path: Path, right: str, wrong: str, says: str):
    source = OPERATOR.replace(right, wrong) if right else OPERATOR
    if says:
        expect_first(tmp_path, source, says)
    else:
        assert errors(tmp_path, source) == []


STENCIL = """
#include "headrace/grid/stencil.hpp"
namespace grid = headrace::grid;
struct Blur {
  static constexpr const char* kName = "blur";
  using Value = float;
  enum Fields : int { now, next };
  static constexpr int kFields = 2;
  static constexpr std::array kPhases{grid::Phase{.writes = grid::fields(next), .reads = grid::fields(now),
                                                  .neighbours = grid::fields(now), .reach = grid::layers(1, 1)}};
  static constexpr std::array kSwaps{grid::Swap{now, next}};
  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const { cell.set(next, cell.get(now) + cell.get(now, -1, 0, 0)); }
};
const auto made = grid::make_stencil(Blur{});
"""


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("", "", ""),
        ("update(Cell cell) const", "update(Cell cell)", "a stencil updates a cell by"),
        ("template <int PhaseNumber, class Cell>", "template <class Cell>", "a stencil updates a cell by"),
        ("update(Cell", "apply(Cell", "a stencil updates a cell by"),
        ("kFields = 2", "kFields = 1", "a phase names a field that kFields does not count"),
        ("kFields = 2", "kFields = 65", "a stencil has 1 to 64 fields"),
        ("using Value = float", "using Value = char", "values have 4 or 8 bytes"),
        ("using Value", "using Number", "a stencil has kName, Value, kFields and kPhases"),
        (".neighbours = grid::fields(now)", ".neighbours = grid::fields(next)", "reads at neighbours what it writes"),
    ],
)
def test_a_stencil_that_is_none_says_why(tmp_path: Path, right: str, wrong: str, says: str):
    source = STENCIL.replace(right, wrong) if right else STENCIL
    if says:
        expect_first(tmp_path, source, says)
    else:
        assert errors(tmp_path, source) == []


@pytest.mark.parametrize("source", [OPERATOR, STENCIL, '#include "headrace/grid/simulation.hpp"\n'])
def test_nothing_needs_rtti(tmp_path: Path, source: str):
    assert errors(tmp_path, source, "-fno-rtti") == []
