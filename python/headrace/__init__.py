"""Headrace keeps GPUs fed. It also runs fully on a CPU device.

Durations are seconds, rates are per second, sizes are bytes. A device may be given as its name.

A first program needs the names in this module. Everything else is in a module for its subject: `headrace.serve`,
`operators`, `fetch`, `ingest`, `grid`, `span`, `wire`, `measure`, `device`, `each`, `base` and `errors`. `import
headrace` is enough to use them: `fetch`, `ingest`, `grid`, `wire` and `each` are imported on first use.

>>> import headrace
>>> index = headrace.Index.build(["an apple", "an apple pie"])
>>> index.query("apple AND NOT pie")
Hits(hits=1, ids=[0])
"""

from headrace import starting as starting  # comes first, because the imports below take time

# isort: split
import logging
from importlib import import_module
from typing import TYPE_CHECKING

from headrace import _core, display, pickling
from headrace import base as base
from headrace import device as device
from headrace import errors as errors
from headrace import measure as measure
from headrace import operators as operators
from headrace import serve as serve
from headrace import span as span
from headrace._core import version as __version__
from headrace.device import Device
from headrace.errors import DataError, DeviceError, Errc, Error, MissingFileError, SystemError, UsageError  # noqa: A004
from headrace.operators import Index, light, operator, retrieval, typed_answers
from headrace.serve import Client, Engine, Operator, Plan, load, tune
from headrace.span import Placement, Span

if TYPE_CHECKING:
    from headrace import each as each
    from headrace import fetch as fetch
    from headrace import grid as grid
    from headrace import ingest as ingest
    from headrace import wire as wire
    from headrace.fetch import Table, col, lit

__all__ = [
    "Client",
    "DataError",
    "Device",
    "DeviceError",
    "Engine",
    "Errc",
    "Error",
    "Index",
    "MissingFileError",
    "Operator",
    "Placement",
    "Plan",
    "Span",
    "SystemError",
    "Table",
    "UsageError",
    "__version__",
    "col",
    "light",
    "lit",
    "load",
    "operator",
    "retrieval",
    "tune",
    "typed_answers",
]

_MODULES = (
    *("base", "device", "each", "errors", "fetch", "grid", "ingest", "measure", "operators", "serve", "span"),
    "wire",
)

logging.getLogger(__name__).addHandler(logging.NullHandler())  # programs that want the log configure logging
display.complete(vars(_core).values())
pickling.register()


def __getattr__(name: str) -> object:
    """Imports on first use the modules that load slowly, such as pyarrow for tables."""
    if name in _MODULES:
        return import_module(f"headrace.{name}")
    if name in {"Table", "col", "lit"}:
        return getattr(import_module("headrace.fetch"), name)
    raise AttributeError(f"module 'headrace' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Lists the names above and the modules, without what the package imports for its own use."""
    return sorted([*__all__, *_MODULES])
