"""Keeps the machine code of functions between runs, keyed by everything that determines it."""

import hashlib
import math
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np

from headrace import outputs
from headrace.errors import Error

_MAGIC = b"headrace code 1\n"
_DIGEST_BYTES = 32
#: Modules whose version determines their content; a user's modules may change from run to run.
_KNOWN_MODULES = ("numpy", "math", "cmath", "operator", "numba")


class _UnknownError(Exception):
    """The code depends on something whose content cannot be determined."""


def key(function: Callable[..., None], types: Iterable[object], more: Iterable[object]) -> str | None:
    """A key for the code compiled from a function; different code has a different key.

    The key covers its byte code, constants, closure, the global names that it uses, and likewise the functions that it
    calls. None if any of these could change unnoticed, such as a module of the user's: such code is not kept.
    """
    digest = hashlib.sha256()
    try:
        _add(digest, function, set())
        for one in (*types, *more, np.__version__, sys.version):
            _add(digest, one, set())
    except _UnknownError:
        return None
    return digest.hexdigest()


def _add(digest: "hashlib._Hash", value: object, seen: set[int]) -> None:  # noqa: PLR0912
    digest.update(type(value).__qualname__.encode() + b":")
    function = getattr(value, "py_func", value)  # for a function decorated with numba.njit or numba.cuda.jit
    if isinstance(function, FunctionType):
        if id(function) in seen:
            return
        seen.add(id(function))
        _add_code(digest, function.__code__, seen)
        for cell in function.__closure__ or ():
            _add(digest, cell.cell_contents, seen)
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                digest.update(name.encode() + b"=")
                _add(digest, function.__globals__[name], seen)
    elif isinstance(value, CodeType):
        _add_code(digest, value, seen)
    elif value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        digest.update(repr(value).encode() + b";")
    elif isinstance(value, (tuple, frozenset)):
        for one in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            _add(digest, one, seen)
        digest.update(b".")
    elif isinstance(value, np.dtype):
        digest.update(f"{value!r}{value.alignment};".encode())
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"{value.dtype!r}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] not in _KNOWN_MODULES:
            raise _UnknownError
        digest.update(f"{value.__name__} {getattr(value, '__version__', '')};".encode())
    elif isinstance(value, type) and value.__module__ in {"builtins", "numpy"}:
        digest.update(value.__qualname__.encode() + b";")
    elif (name := getattr(value, "__name__", "")) and getattr(math, name, None) is value:
        digest.update(str(name).encode() + b";")
    elif isinstance(value, np.ufunc):
        digest.update(value.__name__.encode() + b";")
    elif hasattr(value, "dimensions") and hasattr(value, "dtype"):  # a StateType
        _add(digest, (value.dtype, value.dimensions), seen)
    else:
        raise _UnknownError


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _add_code(digest: "hashlib._Hash", code: CodeType, seen: set[int]) -> None:
    digest.update(code.co_code)
    _add(digest, (code.co_names, code.co_varnames, code.co_freevars, code.co_argcount), seen)
    for constant in code.co_consts[1:] if code.co_consts and isinstance(code.co_consts[0], str) else code.co_consts:
        _add(digest, constant, seen)


def folder() -> Path:
    """Folder of kept code."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace" / "code"


def read(name: str, kind: str = "cubin") -> bytes | None:
    """The code kept under a key; None if there is none, or if the file is damaged."""
    try:
        content = (folder() / f"{name}.{kind}").read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    whole = content.startswith(_MAGIC) and hashlib.sha256(content[head:]).digest() == content[len(_MAGIC) : head]
    return content[head:] if whole else None


def write(name: str, code: bytes, kind: str = "cubin") -> None:
    """Keeps code under a key. If that fails, it will be compiled again."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        outputs.write(folder() / f"{name}.{kind}", _MAGIC + hashlib.sha256(code).digest() + code)
    except (Error, OSError):
        return
