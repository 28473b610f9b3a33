"""GPU code of operators in C++ source, without a GPU: what is linked, cached and refused."""

from pathlib import Path

import numpy as np
import pytest
from cubin import read

from headrace import DeviceError, UsageError
from headrace._core import function_kernels
from headrace.operators import compile_cuda, compile_source, from_source
from headrace.operators.signature import StateType

KERNELS = {
    f"headrace_{name}" for name in ("kernel", "scattered", "pool", "inline_pool", "persistent", "barrier_persistent")
}
FLOATS = StateType(np.dtype("f4"), 2)
CAPABILITY = 90
ALL = """
#include <cmath>
struct Scratch { float of[64]; };
bool all(Group group, const Query& query, Answer& answer, Array<float, 2> rows) {
  auto& kept = group.shared<Scratch>();
  kept.of[group.rank() % 64] = -INFINITY;
  group.sync();
  float total = 0;
  for (uint64_t i = group.thread(); i < rows.shape(0); i += group.thread_count()) {
    for (int k = 0; k < 16; ++k) total = std::fma(rows(i, k), query[k], total);
  }
  if (group.any(std::isnan(total))) return false;
  answer = {group.sum(total) + kept.of[3], group.broadcast(std::sqrt(total)), group.sum(uint8_t{3}), group.sum(2.5)};
  return true;
}
"""
TWICE = "void twice(Group, const Query& query, Answer& answer) { answer = 2 * query; }"


@pytest.fixture(autouse=True)
def _kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("cuda.bindings.nvrtc")
    pytest.importorskip("cuda.bindings.nvjitlink")
    try:
        function_kernels(CAPABILITY)
    except DeviceError:
        pytest.skip("this build of the library has no CUDA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def everything():
    answer = np.dtype([("sum", "f4"), ("root", "f4"), ("small", "u1"), ("wide", "f8")], align=True)
    return from_source(ALL, "all", query=("f4", 16), answer=answer, state=["rows"], threads=64)


def test_the_function_is_inlined_into_every_kernel_and_uses_no_stack():
    found = read(everything()._for_cuda((FLOATS,), CAPABILITY, ()))
    assert found.functions == KERNELS
    assert {found.stack_bytes[name] for name in KERNELS} == {0}


@pytest.mark.parametrize("count", [1, 7])
def test_more_arrays_than_kernels_hold_lie_in_memory(count):
    names = [f"rows{index}" for index in range(count)]
    declared = "".join(f", Array<float, 2> {name}" for name in names)
    total = " + ".join(f"{name}(0, 1)" for name in names)
    text = f"void many(Group, const Query& query, Answer& answer{declared}) {{ answer = query + {total}; }}"
    made = from_source(text, "many", query="f4", answer="f4", state=names)
    assert read(made._for_cuda((FLOATS,) * count, CAPABILITY, ())).functions == KERNELS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\n" + TWICE.replace("2 *", "thrice *"), r':3: .* for a GPU: identifier "thrice" is undefined'),
        ("#include <vector>\n" + TWICE, r":1: .* for a GPU: cannot open source file"),
        ("int x;", r"for a GPU: it has no function twice\(Group, const Query&, Answer&\)$"),
    ],
)
def test_errors_are_one_line_with_the_file_and_the_line(text, said, tmp_path: Path):
    file = tmp_path / "twice.cu"
    file.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        from_source(file, "twice", query="i8", answer="i8")._for_cuda((), CAPABILITY, ())
    assert "\n" not in str(caught.value)


def test_code_is_kept_unless_it_includes_a_file_of_the_users(tmp_path: Path, monkeypatch):
    compiled = []
    original = compile_source.to_ltoir
    monkeypatch.setattr(compile_source, "to_ltoir", lambda *given: compiled.append(1) or original(*given))
    made = (from_source(TWICE, "twice", query="i8", answer="i8") for _ in range(2))
    first, second = (one._for_cuda((), CAPABILITY, ()) for one in made)
    assert first == second
    assert len(compiled) == 1
    file = tmp_path / "twice.cu"
    (tmp_path / "factor.hpp").write_text("constexpr int kFactor = 2;\n")
    file.write_text('#include "factor.hpp"\n' + TWICE.replace("2 *", "kFactor *"))
    made = from_source(file, "twice", query="i8", answer="i8")
    assert made._for_cuda((), CAPABILITY, ()) == made._for_cuda((), CAPABILITY, ())
    assert len(compiled) == 3


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings.nvrtc", None)
    monkeypatch.delattr("cuda.bindings.nvrtc", raising=False)
    with pytest.raises(UsageError, match=r"needs cuda-bindings to run on a GPU.*pip install cuda-bindings nvidia-cuda"):
        everything()._for_cuda((FLOATS,), CAPABILITY, ())


def test_a_gpu_that_nvrtc_does_not_know_is_one_line():
    with pytest.raises(UsageError, match=r"operator twice cannot be compiled for a GPU|NVRTC"):
        compile_source.to_ltoir("twice", "", Path.cwd(), 12345)
    assert compile_cuda.WORDS_MOST == 13
