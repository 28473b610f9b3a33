"""Operators that another compiler made: LTO-IR for GPUs, a shared object for CPU devices."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from cubin import read

import headrace
from headrace import DeviceError, MissingFileError, UsageError
from headrace._core import function_kernels
from headrace.operators import compile_source, from_ltoir
from headrace.operators.signature import StateType

KERNELS = {
    f"headrace_{name}" for name in ("kernel", "scattered", "pool", "inline_pool", "persistent", "barrier_persistent")
}
CAPABILITY = 90
ON_GPU = """
extern "C" __device__ int headrace_answer(void**, const unsigned long long* words, const void* query, void* answer,
                                          unsigned, unsigned) {
  const float* rows = reinterpret_cast<const float*>(words[0]);
  const unsigned row = *static_cast<const unsigned*>(query);
  if (row >= words[1]) return 1;
  if (threadIdx.x == 0) *static_cast<float*>(answer) = rows[row * words[2]] + rows[row * words[2] + 1];
  return 0;
}
"""
ON_HOST = """
#include <stdint.h>
int headrace_answer(const uint64_t* words, const void* query, void* answer, uint32_t block, uint32_t block_count) {
  const float* rows = (const float*)words[0];
  const uint32_t row = *(const uint32_t*)query;
  (void)block, (void)block_count;
  if (row >= words[1]) return 1;
  *(float*)answer = rows[row * words[2]] + rows[row * words[2] + 1];
  return 0;
}
"""
TYPES = {"query": "u4", "answer": "f4", "state": ["rows"]}
ROWS = np.arange(20, dtype="f4").reshape(10, 2)


def shared_object(folder: Path, text: str = ON_HOST) -> Path:
    source, made = folder / "host.c", folder / "host.so"
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", made, source], check=True)
    return made


@pytest.fixture
def linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    pytest.importorskip("cuda.bindings.nvjitlink")
    try:
        function_kernels(CAPABILITY)
    except DeviceError:
        pytest.skip("this build of the library has no CUDA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def code_of(text: str, folder: Path) -> bytes:
    return compile_source.to_ltoir("sums", text, folder, CAPABILITY)


@pytest.mark.usefixtures("linker")
def test_code_of_another_compiler_is_inlined_into_every_kernel(tmp_path: Path):
    file = tmp_path / "sums.ltoir"
    file.write_bytes(code_of(ON_GPU, tmp_path))
    made = from_ltoir(file, "sums", **TYPES)
    found = read(made._for_cuda((StateType(np.dtype("f4"), 2),), CAPABILITY, ()))
    assert found.functions == KERNELS, "no function is left to call"
    assert len(list((tmp_path / "cache").rglob("*"))) > 0, "the linked code is kept"
    assert made._for_cuda((StateType(np.dtype("f4"), 2),), CAPABILITY, ()) == made._for_cuda((), CAPABILITY, ())


@pytest.mark.usefixtures("linker")
def test_the_code_answers_on_a_gpu_under_every_schedule(tmp_path: Path):
    if not any(device.name == "cuda:0" for device in headrace.Device.list()):
        pytest.skip("no GPU")
    operator = from_ltoir(code_of(ON_GPU, tmp_path), "sums", **TYPES)(rows=ROWS)
    for rung in headrace.serve.rungs():
        if rung.plan.schedule == "none":
            continue
        with headrace.Engine("cuda:0", operator, rung.plan) as engine, engine.connect() as client:
            answers, status = client.ask_many(np.arange(10, dtype="u4"))
            assert not status.any(), rung.id
            np.testing.assert_array_equal(answers, ROWS.sum(axis=1), rung.id)


@pytest.mark.usefixtures("linker")
@pytest.mark.parametrize(
    "code", [b"no code", b"\x7fELF\x02 no code either", ON_GPU.replace("headrace_answer", "other").encode()]
)
def test_what_cannot_be_linked_is_an_error_of_one_line(code: bytes, tmp_path: Path):
    if b"__device__" in code:
        code = code_of(code.decode(), tmp_path)
    with pytest.raises(UsageError, match="nvJitLink cannot link an operator's function") as caught:
        from_ltoir(code, "sums", **TYPES)._for_cuda((StateType(np.dtype("f4"), 2),), CAPABILITY, ())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rung", ["page-locked", "batched", "persistent", "dispatched", "caller"])
def test_the_shared_object_answers_on_cpu_devices(rung: str, tmp_path: Path):
    operator = from_ltoir(b"unused there", "sums", host=shared_object(tmp_path), **TYPES)(rows=ROWS)
    with (
        headrace.Engine("cpu", operator, headrace.serve.find_rung(rung).plan) as engine,
        engine.connect() as client,
    ):
        answers, status = client.ask_many(np.arange(10, dtype="u4"))
        assert not status.any()
        np.testing.assert_array_equal(answers, ROWS.sum(axis=1))


def test_a_query_that_it_cannot_answer_fails_the_engine(tmp_path: Path):
    operator = from_ltoir(b"unused there", "sums", host=shared_object(tmp_path), **TYPES)(rows=ROWS)
    with headrace.Engine("cpu", operator) as engine, engine.connect() as client:
        _, status = client.ask_many(np.array([10], "u4"))
        assert headrace.Errc.of_status(status[0]) == headrace.Errc.device_fault


def test_check_compares_it_with_its_reference(tmp_path: Path):
    def reference(query: np.uint32, rows: np.ndarray) -> np.float32:
        return rows[query].sum()

    made = from_ltoir(b"unused there", "sums", host=shared_object(tmp_path), reference=reference, **TYPES)
    np.testing.assert_array_equal(made.expected(np.array([3, 4], "u4"), rows=ROWS), ROWS[3:5].sum(axis=1))


def test_what_is_missing_is_said(tmp_path: Path):
    only_gpus = from_ltoir(b"code", "one", **TYPES)(rows=ROWS)
    with pytest.raises(UsageError, match="only GPUs run"):
        headrace.Engine("cpu", only_gpus)
    with pytest.raises(MissingFileError, match="no file"):
        from_ltoir(tmp_path / "none", "one", **TYPES)
    with pytest.raises(UsageError, match="is empty"):
        from_ltoir(b"", "one", **TYPES)
    with pytest.raises(UsageError, match="cannot be read"):
        from_ltoir(tmp_path, "one", **TYPES)
    for host, what in (
        (tmp_path / "none.so", "no file"),
        (shared_object(tmp_path, "int other(void) { return 0; }"), "has no function headrace_answer"),
        (Path(__file__), "cannot be loaded"),
    ):
        with pytest.raises((UsageError, MissingFileError), match=what) as caught:
            headrace.Engine("cpu", from_ltoir(b"code", "one", host=host, **TYPES)(rows=ROWS))
        assert "\n" not in str(caught.value)
