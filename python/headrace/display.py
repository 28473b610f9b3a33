"""Features that every public class has: a text form, a table in notebooks, and `numpy.asarray`.

complete() adds them to the classes of a module that lack them, so new bindings get them too.
"""

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.errors import UsageError

_TEXT_MAX = 60
_ITEMS_MAX = 4
_ON_HOST = (1, 3, 11)  # kDLCPU, kDLCUDAHost and kDLROCMHost: memory that the host can read


def fields(thing: object) -> list[tuple[str, Any]]:
    """Names and values of an object's public properties, except those that cannot be read now."""
    found: list[tuple[str, Any]] = []
    for kind in reversed(type(thing).__mro__):
        for name, member in vars(kind).items():
            if name.startswith("_") or not isinstance(member, property):
                continue
            try:
                found.append((name, getattr(thing, name)))
            except Exception:
                continue
    return found


def short(value: object, depth: int = 0) -> str:
    """A short form of a value: large arrays and long lists appear as a summary."""
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} array of {value.shape}>"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and len(value) > 0:
        plain = all(isinstance(one, bool | int | float | str) for one in value)
        if len(value) > _ITEMS_MAX or (depth > 0 and not plain):
            return f"<{len(value)} item{'s' if len(value) > 1 else ''}>"
    text = f"<{type(value).__name__}>" if depth > 0 and type(value).__repr__ is describe else repr(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


def describe(self: object) -> str:
    """The class name and its properties, in the form of a constructor call."""
    return f"{type(self).__name__}({', '.join(f'{name}={short(value, 1)}' for name, value in fields(self))})"


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Two columns of plain text as HTML."""
    import html  # noqa: PLC0415 # takes milliseconds, and only notebooks show tables

    body = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table><caption>{html.escape(title)}</caption>{body}</table>"


def describe_as_html(self: object) -> str:
    """The properties as an HTML table, one per row."""
    return table(type(self).__name__, ((name, short(value)) for name, value in fields(self)))


def as_array(self: Any, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:  # noqa: ANN401
    """Implements numpy.asarray(): the values in place, not copied unless `dtype` or `copy` requires it.

    Raises:
        UsageError: for values that lie on a device.
        ValueError: when `copy` is False but a copy is necessary.
    """
    where, number = self.__dlpack_device__()
    if where not in _ON_HOST:
        raise UsageError(f"a {type(self).__name__} on cuda:{number} is not a NumPy array: copy it to the host first")
    values = self.numpy() if hasattr(self, "numpy") else np.from_dlpack(self)
    if dtype is not None and values.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"values of {values.dtype} cannot become {np.dtype(dtype)} without a copy")
        return np.asarray(values.astype(dtype))
    return np.array(values) if copy else np.asarray(values)


def complete(members: Iterable[object]) -> None:
    """Adds the missing features to the classes among `members`."""
    for kind in members:
        if not inspect.isclass(kind) or not kind.__module__.startswith("headrace"):
            continue
        if kind.__repr__ is object.__repr__:
            kind.__repr__ = describe  # type: ignore[method-assign]
        if kind.__repr__ is describe and not hasattr(kind, "_repr_html_"):
            kind._repr_html_ = describe_as_html  # type: ignore[attr-defined]
        if hasattr(kind, "__dlpack__") and not hasattr(kind, "__array__"):
            kind.__array__ = as_array  # type: ignore[attr-defined]
