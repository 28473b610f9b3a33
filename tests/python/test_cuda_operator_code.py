"""GPU code of operators in Python, on machines without a GPU: what is linked, cached and refused."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cubin import read

from headrace import DeviceError, UsageError
from headrace._core import function_kernels
from headrace.operators import code_cache, compile_cuda
from headrace.operators.signature import StateType

ROOT = Path(__file__).parents[2]
KERNELS = {
    f"headrace_{name}" for name in ("kernel", "scattered", "pool", "inline_pool", "persistent", "barrier_persistent")
}
FLOATS = StateType(np.dtype("f4"), 2)
CAPABILITY = 90


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory: pytest.TempPathFactory):
    """The LTO-IR of the kernels: from the library, or else compiled by nvcc."""
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cuda.bindings.nvjitlink")
    try:
        return function_kernels(CAPABILITY)
    except DeviceError:
        nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        if nvcc is None:
            pytest.skip("neither this build of the library nor this machine has CUDA")
    code = tmp_path_factory.mktemp("kernels") / "kernels.ltoir"
    options = ["-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-dc", "-ltoir"]
    options += ["-gencode", f"arch=compute_{CAPABILITY},code=lto_{CAPABILITY}", f"-I{ROOT}", f"-I{ROOT}/include"]
    source = ROOT / "operators" / "function" / "linked_kernels.cu"
    subprocess.run([nvcc, *options, "-o", code, source], check=True, capture_output=True)
    return code.read_bytes()


@pytest.fixture
def from_library(kernels, monkeypatch, tmp_path):
    """Behaves like a build with CUDA, with its own cache."""
    monkeypatch.setattr(compile_cuda, "function_kernels", lambda _capability: kernels)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "headrace" / "code"


def linked(kernels, function, query, answer, state=()):
    code = compile_cuda.to_ltoir(function, np.dtype(query), np.dtype(answer), state, CAPABILITY)
    return read(compile_cuda.link([kernels, code], CAPABILITY))


def product(group, query, answer, rows):
    found = np.float32(0)
    for k in range(group.rank, len(query), group.size):
        found += rows[0, k] * query[k]
    found = group.sum(found)
    if group.rank == 0:
        answer[0] = found


def test_the_function_is_inlined_into_every_kernel_and_uses_no_stack(kernels):
    found = linked(kernels, product, ("f4", 128), "f4", [FLOATS])
    assert found.functions == KERNELS
    assert set(found.stack_bytes) >= KERNELS
    assert set(found.stack_bytes.values()) == {0}
    assert all(0 < found.registers[kernel] <= 64 for kernel in KERNELS)


@pytest.mark.parametrize("wanted", [["headrace_pool"], ["headrace_kernel", "headrace_scattered"]])
def test_kernels_that_are_asked_for_are_linked_alone_and_the_same(kernels, wanted):
    code = compile_cuda.to_ltoir(product, np.dtype(("f4", 128)), np.dtype("f4"), [FLOATS], CAPABILITY)
    found = read(compile_cuda.link([kernels, code], CAPABILITY, wanted))
    assert found.functions == set(wanted)
    everything = read(compile_cuda.link([kernels, code], CAPABILITY))
    for name in wanted:
        assert found.registers[name] == everything.registers[name]
        assert found.stack_bytes[name] == 0


def test_a_function_is_compiled_once_for_kernels_of_all_schedules(from_library, monkeypatch):
    made = []
    original = compile_cuda.to_ltoir
    monkeypatch.setattr(compile_cuda, "to_ltoir", lambda *given: made.append(1) or original(*given))
    for wanted in [["headrace_pool"], ["headrace_persistent"], ["headrace_pool"]]:
        cubin = compile_cuda.compile_answer(
            product, np.dtype(("f4", 128)), np.dtype("f4"), [FLOATS], CAPABILITY, wanted
        )
        assert read(cubin).functions == set(wanted)
    assert made == [1]
    assert len(list(from_library.iterdir())) == 3


def test_what_uses_the_stack_is_seen(kernels):
    """Shows that the previous test can fail."""

    cuda = pytest.importorskip("numba.cuda")

    def shuffled(_group, query, answer):
        kept = cuda.local.array(64, np.int64)
        for i in range(64):
            kept[(i * query[0]) % 64] = i
        answer[0] = kept[query[0] % 64]

    found = linked(kernels, shuffled, "i8", "i8")
    assert found.stack_bytes["headrace_kernel"] >= 512


@pytest.mark.parametrize("count", [0, 1, 20])
def test_records_and_many_arrays_of_each_shape_can_be_passed(kernels, count):
    names = [f"a{index}" for index in range(count)]
    used = "".join(f"+ {name}[0]" for name in names)
    source = f"def many(group, query, answer{''.join(f', {name}' for name in names)}):\n    answer.y = query.x {used}\n"
    scope: dict = {}
    exec(source, scope)
    types = [StateType(np.dtype("f8"), 1)] * count
    found = linked(kernels, scope["many"], [("x", "f8"), ("n", "i4", (2,))], [("y", "f8")], types)
    assert found.functions == KERNELS


def test_bounds_are_checked_where_numba_is_told_to(kernels, monkeypatch):
    def pick(_group, query, answer, rows):
        answer[0] = rows[query[0]]

    def code():
        state = [StateType(np.dtype("i8"), 1)]
        return compile_cuda.to_ltoir(pick, np.dtype("i8"), np.dtype("i8"), state, CAPABILITY)

    def linked_bytes(made):
        return len(compile_cuda.link([kernels, made], CAPABILITY))

    unchecked = linked_bytes(code())
    monkeypatch.setattr(pytest.importorskip("numba").config, "BOUNDSCHECK", 1)
    checked = linked_bytes(code())
    monkeypatch.undo()
    assert checked > unchecked
    assert linked_bytes(code()) == unchecked


def test_all_that_a_group_has_can_be_compiled(kernels):
    def everything(group, query, answer):
        kept = group.shared((4, 32), np.float32)
        other = group.shared(128, np.int64)
        kept[group.rank // 32, group.rank % 32] = query[0]
        other[group.rank] = group.thread + group.thread_count + group.block + group.block_count
        group.sync()
        total = group.sum(kept[0, group.rank % 32]) + group.sum(other[group.rank]) + group.sum(True)
        if group.any(total > 3):
            total = group.broadcast(total)
        answer[0] = total

    assert linked(kernels, everything, "f4", "f8").functions == KERNELS


@pytest.mark.parametrize("kind", ["?", "i1", "u2", "i4", "u4", "u8", "f2", "f8"])
def test_numbers_of_every_type_are_exchanged(kind):
    def exchange(group, query, answer):
        found = group.sum(query[0]) + group.broadcast(query[0])
        if group.any(query[0] > 3):
            found += 1
        answer[0] = found

    assert compile_cuda.to_ltoir(exchange, np.dtype(kind), np.dtype("f8"), (), CAPABILITY)


def wrong(function, query="i8", answer="i8", state=()):
    with pytest.raises(UsageError) as caught:
        compile_cuda.to_ltoir(function, np.dtype(query), np.dtype(answer), state, CAPABILITY)
    return str(caught.value)


def test_errors_name_the_file_and_the_line():
    def unknown(_group, query, answer):
        answer[0] = query[0]
        answer[0] = nowhere + query[0]  # noqa: F821

    said = wrong(unknown)
    assert said.startswith(
        f"{__file__}:{unknown.__code__.co_firstlineno + 2}: operator unknown cannot be compiled for a"
    )
    assert "nowhere" in said
    assert "\n" not in said

    def sized(group, query, answer):
        answer[0] = group.shared(query[0], np.int64)[0]

    said = wrong(sized)
    assert said == (
        f"{__file__}:{sized.__code__.co_firstlineno}: operator sized cannot be compiled for a GPU: group.shared() "
        "takes a shape that is a constant"
    )


def test_what_numba_knows_on_the_host_alone_is_named():
    def root(_group, query, answer):
        answer[0] = np.sqrt(query[0])

    assert wrong(root, "f4", "f4").endswith(
        "for a GPU: numpy.sqrt of a number is not supported there: try the one in math"
    )


def test_code_is_kept_and_made_anew_where_it_is_damaged_or_another(from_library, monkeypatch):
    made = []
    original = compile_cuda.link
    monkeypatch.setattr(compile_cuda, "link", lambda *given: made.append(1) or original(*given))

    def compiled(factor, **more):
        def times(_group, query, answer):
            answer[0] = query[0] * factor

        options = {"query": np.dtype("i8"), "answer": np.dtype("i8"), "state": (), "compute_capability": CAPABILITY}
        return compile_cuda.compile_answer(times, **(options | more))

    first = compiled(3)
    assert compiled(3) == first
    assert len(made) == 1
    (file,) = [file for file in from_library.iterdir() if file.read_bytes().endswith(first)]
    assert len(list(from_library.iterdir())) == 2, "the cubin, and the function that other kernels are linked with"
    content = file.read_bytes()
    for damaged in (b"", content[:100], content[:-1] + bytes([content[-1] ^ 1]), b"x" + content[1:]):
        file.write_bytes(damaged)
        assert read(compiled(3)).functions == KERNELS
        assert file.read_bytes() != damaged
    assert len(made) == 5
    compiled(4)
    compiled(3, query=np.dtype("i4"))
    assert len(made) == 7


HELPER_FACTOR = 2


def test_a_key_holds_all_that_decides_the_code():
    def key(function):
        return code_cache.key(function, (np.dtype("i8"),), (90,))

    def make(constant, helper, table):
        def used(_group, query, answer):
            answer[0] = helper(query[0]) * constant + table[0] * HELPER_FACTOR

        return used

    def double(x):
        return 2 * x

    def triple(x):
        return 3 * x

    keys = [
        key(make(1, double, (1, 2))),
        key(make(2, double, (1, 2))),
        key(make(1.0, double, (1, 2))),
        key(make(1, triple, (1, 2))),
        key(make(1, double, (1, 3))),
        key(make(1, double, np.arange(3))),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key(make(1, double, (1, 2))) == keys[0]
    assert key(make(1, object(), ())) is None, "what an object is cannot be told"
    assert key(make(1, shutil, ())) is None, "another version of a module may do something else"


def test_a_missing_package_is_named_with_how_to_install_it(from_library, monkeypatch):
    monkeypatch.setattr(compile_cuda, "version_of", lambda package: None if package == "numba-cuda" else "1")
    with pytest.raises(UsageError, match=r"needs numba-cuda .* not installed: .* pip install numba-cuda nvidia-nvvm"):
        compile_cuda.compile_answer(product, np.dtype(("f4", 128)), np.dtype("f4"), [FLOATS], CAPABILITY)
    assert not from_library.exists()
