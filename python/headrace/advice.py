"""Rates, access counts and advice on data placement as plain values, for files and the command line."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core import AccessProfile, Advice, FaultRates, MemoryRates, OperationRates, StrategyForecast
from headrace.errors import DataError, reading
from headrace.npy import BROKEN
from headrace.profiles import Json
from headrace.text import read_json

_PLAIN = (
    "name",
    "link_reach_bytes",
    "link_beyond_reach",
    "prefetch",
    "host_copy",
    "device_page",
    "host_page",
    "page_move",
    "device_latency",
    "link_latency",
    "in_flight_bytes",
    "cache_bytes",
    "cache",
    "one_memory",
    "memory_bytes",
    "managed",
    "managed_bytes",
)
_OPERATIONS = ("read", "write", "read_modify_write")
_BY_OPERATION = ("device", "device_random", "link", "link_random")
_FAULTS = ("grid_stride", "block_stride", "random")
_PAGE_COUNTS_MAX = 1 << 23  # pages of 16 TiB of data
_COUNT_END = 1 << 63


def _finite(value: object) -> object:
    """Replaces infinity, which JSON does not have."""
    return None if value == float("inf") else value


def rates_as_dict(rates: MemoryRates) -> Json:
    """Rates for a file; rates_from_dict() takes them back."""
    content: Json = {name: _finite(getattr(rates, name)) for name in _PLAIN}
    for kind in _BY_OPERATION:
        content[kind] = {name: getattr(getattr(rates, kind), name) for name in _OPERATIONS}
    content["faults"] = {name: getattr(rates.faults, name) for name in _FAULTS}
    return content


def _numbers(content: Json, kind: str, names: tuple[str, ...]) -> list[float]:
    found = content.get(kind)
    if not isinstance(found, dict) or set(found) != set(names):
        raise DataError(f"memory rates: {kind} must have {', '.join(names)}")
    values = [found[name] for name in names]
    if not all(isinstance(value, int | float) and 0 < value <= sys.float_info.max for value in values):
        raise DataError(f"memory rates: {kind} must be numbers above 0")
    return [float(value) for value in values]


def rates_from_dict(content: object) -> MemoryRates:
    """The rates in a dictionary of rates_as_dict(); missing ones are those of an H100.

    Raises:
        DataError: for anything else.
    """
    if not isinstance(content, dict):
        raise DataError("memory rates must be a JSON object")
    unknown = content.keys() - {*_PLAIN, *_BY_OPERATION, "faults"}
    if unknown:
        raise DataError(f"memory rates have no {', '.join(sorted(unknown))}")
    from headrace._core import find_memory_rates  # noqa: PLC0415 - only here

    rates = MemoryRates(find_memory_rates("H100"))
    try:
        for name in content.keys() & set(_PLAIN):
            value = content[name]
            setattr(rates, name, float("inf") if name == "link_reach_bytes" and value is None else value)
    except (TypeError, OverflowError) as error:
        raise DataError(f"memory rates: {name} has the wrong type") from error
    for kind in content.keys() & set(_BY_OPERATION):
        setattr(rates, kind, OperationRates(*_numbers(content, kind, _OPERATIONS)))
    if "faults" in content:
        rates.faults = FaultRates(*_numbers(content, "faults", _FAULTS))
    return rates


def read_counts(path: Path) -> list[int]:
    """Accesses to each page of 2 MiB, from a .npy file of whole numbers or a JSON list.

    Raises:
        SystemError: when the file cannot be read.
        DataError: when it is not a single list of whole numbers of 0 or more, for at least one page.
    """
    if path.suffix == ".npy":
        try:
            with path.open("rb") as file:  # opened here, because np.load() leaves a damaged archive open
                counts = _array(path, np.load(file, allow_pickle=False))
        except OSError as error:
            raise reading(path, error) from error
        except BROKEN as error:
            raise DataError(f"{path} is not an .npy file: {error}") from error
    else:
        content = read_json(path)
        counts = np.asarray(content if isinstance(content, list) else None, dtype=object)
        if counts.ndim == 1 and all(type(value) is int and value < _COUNT_END for value in counts):
            counts = np.asarray(content, dtype=np.float64)
    return _checked(path, counts)


def _array(path: Path, loaded: object) -> np.ndarray[Any, Any]:
    if not isinstance(loaded, np.ndarray):  # an archive of several arrays
        raise DataError(f"{path} is not an .npy file of one array")
    return loaded


def _checked(path: Path, counts: np.ndarray[Any, Any]) -> list[int]:
    if counts.ndim != 1 or counts.dtype.kind not in "iuf":
        raise DataError(f"{path} must hold one list of whole numbers, an access count for each page")
    if not 1 <= counts.size <= _PAGE_COUNTS_MAX:
        raise DataError(f"{path} has counts of {counts.size:,} pages; there must be 1 to {_PAGE_COUNTS_MAX:,}")
    whole = np.isfinite(counts) & (counts >= 0) & (counts < _COUNT_END) & (counts == np.floor(counts))
    if not whole.all():
        page = int(np.argmin(whole))
        raise DataError(f"{path}: the count of page {page} is {counts[page]}, not a whole number of 0 or more")
    return [int(count) for count in counts]


def forecast_as_dict(one: StrategyForecast) -> Json:
    """One row of the prediction."""
    return {
        "strategy": one.strategy,
        "bytes_per_second": one.bytes_per_second,
        "roof_per_second": one.roof_per_second,
        "host_share": one.host_share,
        "pass_seconds": one.pass_seconds,
        "prepare_seconds": one.prepare_seconds,
        "refused": one.refused or None,
    }


def profile_as_dict(profile: AccessProfile) -> Json:
    """The access profile that the advice is for."""
    return {
        "pattern": profile.pattern,
        "operation": profile.operation,
        "bytes": profile.bytes,
        "budget_bytes": profile.budget_bytes,
        "factor": profile.factor,
        "reuse": _finite(profile.reuse),
        "exponent": profile.exponent,
        "row_bytes": profile.row_bytes,
        "order": profile.order,
        "counted_pages": len(profile.heat),
    }


def advice_as_dict(advice: Advice) -> Json:
    """A complete advice."""
    return {
        "strategy": advice.strategy,
        "because": advice.because,
        "forecasts": [forecast_as_dict(one) for one in advice.forecasts],
        "cpp": advice.cpp,
        "python": advice.python,
    }
