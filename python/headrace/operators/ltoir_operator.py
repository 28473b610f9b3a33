"""Operators given as LTO-IR, the code that NVIDIA's compilers hand to their linker."""

import ctypes
import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from numpy.typing import ArrayLike, DTypeLike

from headrace._core import function_kernels
from headrace.errors import MissingFileError, UsageError
from headrace.operators.compiled_operator import CompiledOperator
from headrace.operators.signature import Compiled, StateType
from headrace.operators.versions import version_of

FUNCTION = "headrace_answer"
_PACKAGES = ("nvidia-nvjitlink",)


class LtoirOperator(CompiledOperator):
    """A function that answers one query, compiled by another compiler; see from_ltoir().

    Calling it with its named arrays returns an Operator.

    Attributes:
        code: the LTO-IR.
        host: the shared object with the function for CPU devices, if there is one. The other attributes are those of
            CompiledOperator.
    """

    made_by = "from_ltoir()"

    def __init__(
        self,
        name: str,
        module: str,
        code: bytes,
        host: Path | None,
        query: DTypeLike,
        answer: DTypeLike,
        state: tuple[str, ...] = (),
        sample: Callable[[int], ArrayLike] | None = None,
        reference: Callable[..., ArrayLike] | None = None,
        threads: int = 32,
        blocks: int = 1,
    ) -> None:
        super().__init__(name, module, query, answer, state, sample, reference, threads, blocks)
        self.code = code
        self.host = host

    def _can_wait(self, types: tuple[StateType, ...]) -> bool:  # noqa: ARG002 - it compiles nothing
        return self.host is None

    def _for_host(self, types: tuple[StateType, ...]) -> Compiled:  # noqa: ARG002 - it compiles nothing
        if self.host is None:
            raise UsageError(
                f"operator {self.name} is given as LTO-IR, which only GPUs run: give from_ltoir() a shared object for "
                "CPU devices as well (host=)"
            )
        try:
            library = ctypes.CDLL(str(self.host.resolve()))
            function = getattr(library, FUNCTION)
        except OSError as error:
            if not self.host.exists():
                raise MissingFileError(f"there is no file {self.host}") from None
            raise UsageError(f"operator {self.name}: {self.host} cannot be loaded: {error}") from None
        except AttributeError:
            raise UsageError(f'operator {self.name}: {self.host} has no function {FUNCTION} (extern "C")') from None
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return Compiled(address, library)

    def _for_cuda(self, types: tuple[StateType, ...], compute_capability: int, kernels: tuple[str, ...]) -> bytes:  # noqa: ARG002
        from headrace.operators import compile_cuda  # noqa: PLC0415 - only engines on GPUs need it

        library = function_kernels(compute_capability)
        linker = [version_of(package) or "" for package in _PACKAGES]
        decides = (self.code, library, repr((compute_capability, kernels, linker)).encode())
        key = hashlib.sha256(b"\0".join(decides)).hexdigest()
        return compile_cuda.linked(library, None, lambda: self.code, key, compute_capability, kernels)


def from_ltoir(
    code: bytes | Path,
    name: str,
    *,
    query: DTypeLike,
    answer: DTypeLike,
    state: Sequence[str] = (),
    host: Path | None = None,
    sample: Callable[[int], ArrayLike] | None = None,
    reference: Callable[..., ArrayLike] | None = None,
    threads: int = 32,
    blocks: int = 1,
) -> LtoirOperator:
    """Makes an operator from LTO-IR of any compiler, such as `nvcc -dlto`, NVRTC, clang or Numba-CUDA.

    The code defines this function, which answers one query and is inlined into Headrace's kernels:

        extern "C" __device__ int headrace_answer(void** nothing, const uint64_t* words, const void* query,
                                                  void* answer, uint32_t block, uint32_t block_count);

    All threads of all blocks of a query call it. It returns 0, or another number if it cannot answer; that query and
    all later ones of the engine then fail (device fault). `query` and `answer` point to values of the types given here.
    `words` has, for each array named by `state` in that order, its address and its length along each dimension; a
    number is an array of no dimension. If these are more than 13 words, the first one is the address of all.
    `nothing` is for compilers that follow Numba's calling convention.

    Args:
        code: the LTO-IR, or the Path of a file with it. It must not be newer than the installed nvJitLink.
        name: name of the operator.
        query: type of a query.
        answer: type of an answer.
        state: names of arrays and numbers, which are given when the operator is made, `nearest(rows=table)`.
        host: Path of a shared object for CPU devices with `int headrace_answer(const uint64_t* words, const void*
            query, void* answer, uint32_t block, uint32_t block_count)`, whose words are never indirect. Without it the
            operator runs on GPUs only.
        sample: returns query number `index` of an endless sequence; load tests and `headrace check` need it.
        reference: returns the answer to a query, given the same arrays by name: `reference(query, rows=table)`.
        threads: threads per block on a GPU, 1 to 1,024. All of them run the function.
        blocks: blocks that answer a query together on a GPU.

    Raises:
        UsageError: for a type that cannot be passed, and code that is empty.
        MissingFileError: when the file does not exist.
    """
    code = _read(code) if isinstance(code, Path) else code
    if not code:
        raise UsageError(f"operator {name}: the LTO-IR is empty")
    module = sys._getframe(1).f_globals.get("__name__", "")  # found in the same way as by namedtuple()
    return LtoirOperator(name, module, code, host, query, answer, tuple(state), sample, reference, threads, blocks)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {file}") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read as LTO-IR: {error}") from None
