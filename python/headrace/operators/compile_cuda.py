"""Compiles an operator's function for CUDA devices: Numba-CUDA makes LTO-IR, nvJitLink a cubin with the kernels."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from headrace._core import function_kernels
from headrace.errors import Errc, UsageError, how_to_install
from headrace.operators import code_cache
from headrace.operators.messages import explain
from headrace.operators.signature import WORDS_MOST, StateType, arrays, view, words_count
from headrace.operators.versions import version_of

_PACKAGES = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink")
_TEMPLATE = """
def headrace_answer(state, query, answer, block, block_count):
    words = carray({state_words}, {words}, intp)
    body(make_group(block, block_count), {query}, {answer}{state})
"""
_lock = threading.Lock()


def compile_answer(
    function: Callable[..., None],
    query: np.dtype[Any],
    answer: np.dtype[Any],
    state: Sequence[StateType],
    compute_capability: int,
    kernels: Sequence[str] = (),
    *,
    contract: bool = False,
) -> bytes:
    """A cubin whose kernels answer with `function(group, query, answer, *state)`, from the cache if present.

    It contains the kernels with these names, or all. Linking many kernels takes longer than everything else, and an
    engine needs only those of its schedule. See operator() for `contract`.

    Raises:
        UsageError: when a package is missing or the function cannot be compiled; the message has its file and line.
        DeviceError: in a build without CUDA.
    """
    library = function_kernels(compute_capability)
    decides = (compute_capability, _checks_bounds(), *_versions())

    def key(*more: object) -> str | None:
        return code_cache.key(function, (query, answer, *state), (*decides, *more))

    def compiled() -> bytes:
        with _lock:
            return to_ltoir(function, query, answer, state, compute_capability)

    cubin_key = key("cubin", library, contract, *kernels)
    return linked(library, key("ltoir"), compiled, cubin_key, compute_capability, kernels, contract=contract)


def linked(
    library: bytes,
    code_key: str | None,
    compiled: Callable[[], bytes],
    cubin_key: str | None,
    compute_capability: int,
    kernels: Sequence[str],
    *,
    contract: bool = False,
) -> bytes:
    """A cubin of the library's kernels and a function in LTO-IR; either may come from the cache if it has a key."""

    def kept(key: str | None, make: Callable[[], bytes]) -> bytes:
        found = None if key is None else code_cache.read(key)
        if found is None:
            found = make()
            if key is not None:
                code_cache.write(key, found)
        return found

    def link_all() -> bytes:
        return link([library, kept(code_key, compiled)], compute_capability, kernels, contract=contract)

    return kept(cubin_key, link_all)


def missing(package: str, why: object = "", packages: Sequence[str] = _PACKAGES) -> UsageError:
    """The error for a missing package, naming the packages to install."""
    reason = f" ({str(why).splitlines()[0]})" if str(why) else ""
    return UsageError(
        f"this operator needs {package} to run on a GPU, which is not installed{reason}: {how_to_install(*packages)}",
        Errc.not_found,
    )


def _versions() -> list[str]:
    """Versions of the packages that determine the code; empty for one that a CUDA toolkit replaces."""
    found = [version_of(package) or "" for package in _PACKAGES]
    if not found[0]:
        raise missing(_PACKAGES[0])
    return found


def _numba_cuda() -> ModuleType:
    try:
        return import_module("numba.cuda")
    except ImportError as error:
        raise missing("numba-cuda", error) from None


@contextmanager
def _with_row_stack() -> Iterator[None]:
    """Numba-CUDA 0.30 uses a name of a function that NumPy 2.5 has removed, in modules that it imports late."""
    if "row_stack" in vars(np):
        yield
        return
    setattr(np, "row_stack", np.vstack)  # noqa: B010
    try:
        yield
    finally:
        delattr(np, "row_stack")


def _checks_bounds() -> bool:
    """Whether NUMBA_BOUNDSCHECK asks for checks, as on the host. Imports Numba only if one of its files may do so."""
    if "numba" in sys.modules or Path(".numba_config.yaml").exists():
        numba: Any = import_module("numba")
        return bool(numba.config.BOUNDSCHECK)
    try:
        return bool(int(os.environ.get("NUMBA_BOUNDSCHECK", "0")))
    except ValueError:  # Numba warns of it
        return False


@contextmanager
def _compiling_for(compute_capability: tuple[int, int]) -> Iterator[None]:
    """Numba-CUDA compiles called functions for the current device, and would start CUDA on device 0 to find it.

    It could check bounds too, but its own option for that is switched off.
    """
    dispatcher: Any = import_module("numba.cuda.dispatcher")
    target: Any = import_module("numba.cuda.target").CUDATargetContext
    off = target.__dict__["enable_boundscheck"]
    original, me = dispatcher.get_current_device, threading.get_ident()
    dispatcher.get_current_device = lambda: (
        SimpleNamespace(compute_capability=compute_capability) if threading.get_ident() == me else original()
    )
    if _checks_bounds():
        target.enable_boundscheck = property(lambda _self: True)
    try:
        yield
    finally:
        target.enable_boundscheck = off
        dispatcher.get_current_device = original


@_with_row_stack()
def to_ltoir(
    function: Callable[..., None],
    query: np.dtype[Any],
    answer: np.dtype[Any],
    state: Sequence[StateType],
    compute_capability: int,
) -> bytes:
    """The function as headrace_answer() of operators/function.hpp, in LTO-IR. Needs neither a GPU nor a driver."""
    cuda: Any = _numba_cuda()
    from headrace.operators.cuda_group import carray, make_group, pointer  # noqa: PLC0415 # they need Numba-CUDA

    names: dict[str, object] = {
        "carray": carray,
        "intp": np.intp,
        "make_group": make_group,
        "pointer": pointer,
        "body": cuda.jit(device=True)(function),
        "query_type": query.base,
        "answer_type": answer.base,
    }
    names |= {f"state_type_{index}": one.dtype for index, one in enumerate(state)}
    count = words_count(state)
    source = _TEMPLATE.format(
        state_words="state" if count <= WORDS_MOST else "pointer(carray(state, 1, intp)[0])",
        words=count,
        query=view("query", query),
        answer=view("answer", answer),
        state=arrays(state),
    )
    exec(source, names)
    types = cuda.types
    signature = types.void(types.voidptr, types.voidptr, types.voidptr, types.uint32, types.uint32)
    capability = divmod(compute_capability, 10)
    try:
        with _compiling_for(capability):
            code, _ = cuda.compile(
                names["headrace_answer"],
                signature,
                device=True,
                # Numba's calling convention reports whether an exception ended the function, C's does not.
                abi="numba",
                abi_info={"abi_name": "headrace_answer"},
                output="ltoir",
                cc=capability,
            )
    except Exception as error:
        if type(error).__name__ in {"NvvmSupportError", "DynamicLibNotFoundError"}:
            raise missing("nvidia-nvvm", error) from None
        if isinstance(error, KeyError) and isinstance(error.args[0], np.ufunc):  # how Numba-CUDA reports an exception
            error = TypeError(f"numpy.{error.args[0].__name__} of a number is not supported there: try the one in math")
        raise UsageError(explain(function, error, "for a GPU ")) from error
    return bytes(code)


def link(
    codes: Sequence[bytes], compute_capability: int, kernels: Sequence[str] = (), *, contract: bool = False
) -> bytes:
    """Links LTO-IR to a cubin with the kernels of these names, or all. Needs neither a GPU nor a driver."""
    try:
        from cuda.bindings import nvjitlink  # noqa: PLC0415 # only those who use a GPU have it
    except ImportError as error:
        raise missing("cuda-bindings", error) from None
    # By default a product and a sum stay two roundings, as in all kernels of Headrace and on the host.
    options = [f"-arch=sm_{compute_capability}", "-lto", f"-fma={int(contract)}"]
    if kernels:
        options.append(f"-kernels-used={','.join(kernels)}")
    try:
        handle = nvjitlink.create(len(options), options)
    except Exception as error:
        if type(error).__name__ == "nvJitLinkError":
            raise UsageError(f"nvJitLink cannot generate code for sm_{compute_capability}: {error}") from None
        raise missing("nvidia-nvjitlink", error) from None
    try:
        for index, code in enumerate(codes):
            nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, code, len(code), f"part {index}")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, log)
        said = " ".join(log.decode(errors="replace").strip("\0 \n").split())
        raise UsageError(f"nvJitLink cannot link an operator's function: {said or error}") from None
    finally:
        nvjitlink.destroy(handle)
    return bytes(cubin)
