"""Compiles the C++ source of an operator: a host compiler for CPU devices, NVRTC and nvJitLink for CUDA devices."""

import hashlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace._core import function_kernels
from headrace.errors import Errc, UsageError
from headrace.operators import code_cache, compile_cuda, source_manifest
from headrace.operators.messages import explain_source
from headrace.operators.signature import Compiled
from headrace.operators.versions import version_of

_COMPILERS = ("c++", "g++", "clang++")
#: The flags of Headrace's own kernels: a product and a sum are two roundings, as on a GPU.
_FLAGS = ("-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno")
_SHARED = ("-shared", "-fPIC", "-fvisibility=hidden")
_PACKAGES = ("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-nvjitlink")
#: Headers that source_group.hpp replaces where there is no standard library.
_EMPTY_HEADERS = ("algorithm", "cmath", "cstddef", "cstdint", "cstring", "math.h", "stddef.h", "stdint.h", "string.h")
_loaded: dict[str, Compiled] = {}
_lock = threading.Lock()


def can_wait(text: str, folder: Path) -> bool:
    """Whether compile_for_host() could find no mistake now: it has the code, or no compiler, and GPUs need none."""
    try:
        manifest = _manifest(_compiler(), text, folder)
    except UsageError:
        return True
    key = None if manifest is None else source_manifest.find(manifest)
    return key is not None and code_cache.read(key, "so") is not None


def compile_for_host(name: str, text: str, folder: Path) -> Compiled:
    """Machine code of source_text.complete(). Quoted includes are searched in `folder`.

    Raises:
        UsageError: when there is no compiler, or it rejects the source; the message has the file and the line.
    """
    compiler = _compiler()
    manifest = _manifest(compiler, text, folder)
    key = None if manifest is None else source_manifest.find(manifest)
    if key is None:
        key = _asked(name, compiler, text, folder, manifest)
    with _lock:
        if key not in _loaded:
            code = code_cache.read(key, "so")
            if code is None:
                code = _shared_object(name, [*compiler, *_FLAGS, *_SHARED, *_include(folder)], text)
                code_cache.write(key, code, "so")
            _loaded[key] = _load(name, key, code)
        return _loaded[key]


def _include(folder: Path) -> tuple[str, ...]:
    return "-iquote", str(folder)


def _manifest(compiler: Sequence[str], text: str, folder: Path) -> str | None:
    return source_manifest.key_of(text, compiler, (*_FLAGS, *_SHARED, *_include(folder)))


def _asked(name: str, compiler: Sequence[str], text: str, folder: Path, manifest: str | None) -> str:
    """Asks the compiler for the key of the code, and keeps it in the manifest for the next time."""
    began = time.time_ns()
    # Everything that determines the code: the text with its includes, the compiler, and the target processor.
    whole = _run(name, [*compiler, *_FLAGS, *_include(folder), "-x", "c++", "-E", "-"], text)
    machine = _run(name, [*compiler, *_FLAGS, "-x", "c++", "-dM", "-E", "-"], "")
    key = hashlib.sha256(b"\0".join((whole, machine, repr((compiler, _FLAGS, _SHARED)).encode()))).hexdigest()
    if manifest is not None:
        source_manifest.keep(manifest, key, text, whole.decode(errors="replace"), began)
    return key


def _compiler() -> list[str]:
    """The host compiler: $CXX, or the first one installed."""
    import shlex  # noqa: PLC0415 # only those who use C++ source need them
    import shutil  # noqa: PLC0415

    given = shlex.split(os.environ.get("CXX", ""))
    if given:
        if shutil.which(given[0]) is None:
            raise UsageError(f"operators in C++ source need a compiler, but CXX names none: {given[0]}", Errc.not_found)
        return given
    found = next((one for one in _COMPILERS if shutil.which(one)), None)
    if found is None:
        raise UsageError(
            "operators in C++ source need a compiler, but none was found: install one (apt-get install g++), or name "
            "it with CXX",
            Errc.not_found,
        )
    return [found]


def _run(name: str, command: Sequence[str], text: str) -> bytes:
    import subprocess  # noqa: PLC0415 # takes milliseconds, and code that is kept does without

    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=False, env=os.environ | {"LC_ALL": "C"}
    )
    if done.returncode != 0:
        raise UsageError(explain_source(name, done.stderr.decode(errors="replace")))
    return done.stdout


def _shared_object(name: str, command: Sequence[str], text: str) -> bytes:
    import tempfile  # noqa: PLC0415 # likewise

    with tempfile.TemporaryDirectory(prefix="headrace-") as made:
        out = Path(made) / "operator.so"
        _run(name, [*command, "-x", "c++", "-", "-o", str(out)], text)
        return out.read_bytes()


def _load(name: str, key: str, code: bytes) -> Compiled:
    """Loads a shared object from memory: a cache folder may be mounted noexec, and the file may change later.

    The path contains the key, because dlopen() takes a path that it has already loaded for the same object.
    """
    import ctypes  # noqa: PLC0415 # only CPU devices need them
    import tempfile  # noqa: PLC0415

    descriptor = os.memfd_create(f"headrace-{name}")
    with os.fdopen(descriptor, "wb") as file, tempfile.TemporaryDirectory(prefix="headrace-") as made:
        file.write(code)
        file.flush()
        path = Path(made) / f"{key}.so"
        path.symlink_to(f"/proc/self/fd/{descriptor}")
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise UsageError(f"operator {name} cannot be loaded: {str(error).removeprefix(f'{path}: ')}") from None
    address = ctypes.cast(library.headrace_answer, ctypes.c_void_p).value
    assert address is not None
    return Compiled(address, library)


def compile_for_cuda(name: str, text: str, folder: Path, compute_capability: int, kernels: Sequence[str] = ()) -> bytes:
    """A cubin whose kernels answer with source_text.complete(), from the cache if present. Needs no GPU.

    It contains the kernels with these names, or all.

    Raises:
        UsageError: when a package is missing, or NVRTC rejects the source; the message has the file and the line.
        DeviceError: in a build without CUDA.
    """
    library = function_kernels(compute_capability)
    versions = [version_of(package) or "" for package in _PACKAGES]
    if not versions[1]:  # it belongs to a CUDA toolkit
        versions[1] = repr(_nvrtc().nvrtcVersion())
    decides = (text.encode(), repr((compute_capability, _PACKAGES, versions)).encode())
    keeps = source_manifest.QUOTED_INCLUDE.search(text) is None  # a file of the user's may change unnoticed

    def key(*more: bytes) -> str | None:
        return hashlib.sha256(b"\0".join((*decides, *more))).hexdigest() if keeps else None

    return compile_cuda.linked(
        library,
        key(b"ltoir"),
        lambda: to_ltoir(name, text, folder, compute_capability),
        key(b"cubin", library, ",".join(kernels).encode()),
        compute_capability,
        kernels,
    )


def _nvrtc() -> Any:  # noqa: ANN401 # has no types
    try:
        from cuda.bindings import nvrtc  # noqa: PLC0415 # only those who use a GPU have it
    except ImportError as error:
        raise compile_cuda.missing("cuda-bindings", error, _PACKAGES) from None
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise compile_cuda.missing("nvidia-cuda-nvrtc", error, _PACKAGES) from None
    return nvrtc


def to_ltoir(name: str, text: str, folder: Path, compute_capability: int) -> bytes:
    """headrace_answer() of operators/function.hpp in LTO-IR. Needs neither a GPU nor a driver."""
    nvrtc = _nvrtc()
    empty, names = [b""] * len(_EMPTY_HEADERS), [one.encode() for one in _EMPTY_HEADERS]
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), f"{name}.cu".encode(), len(names), empty, names)
    _require(nvrtc, status)
    options = [
        f"--gpu-architecture=compute_{compute_capability}",
        "--dlink-time-opt",
        "--std=c++20",
        "--fmad=false",
        "--device-as-default-execution-space",
        f"--include-path={folder}",
    ]
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [one.encode() for one in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _read(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise UsageError(explain_source(name, log.decode(errors="replace"), "for a GPU "))
        return _read(nvrtc, program, nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(nvrtc: Any, program: object, size_of: Any, get: Any) -> bytes:  # noqa: ANN401
    status, size = size_of(program)
    _require(nvrtc, status)
    content = bytes(size)
    (status,) = get(program, content)
    _require(nvrtc, status)
    return content


def _require(nvrtc: Any, status: Any) -> None:  # noqa: ANN401
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise UsageError(f"NVRTC: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")
