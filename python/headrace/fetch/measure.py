"""Figures of a fetch."""

import time
from dataclasses import dataclass
from typing import Any

from headrace import _core
from headrace.fetch.fetched import FetchedTable
from headrace.fetch.table import Table

Json = dict[str, Any]

LEVELS = ("disk", "cpu", "device")


def rate(count: int, seconds: float) -> float:
    """Rate in GB/s."""
    return count / seconds / 1e9 if seconds > 0 else 0.0


@dataclass(frozen=True)
class Run:
    """One fetch, or one streaming pass."""

    seconds: float
    levels: dict[str, Json]
    columns: list[str]
    threads: int


def _levels(parts: "list[_core.FetchProgress]", seconds: float) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name in LEVELS:
        of_level = [getattr(progress, name) for progress in parts]
        count = sum(level.bytes for level in of_level)
        made[name] = {
            "bytes": count,
            "gb_per_second": rate(count, seconds),
            "made": sum(level.chunks for level in of_level),
            "found": sum(level.hits for level in of_level),
            "busy_seconds": sum(level.busy for level in of_level),
        }
    return made


def of(fetched: FetchedTable) -> Run:
    """Figures of a completed fetch."""
    progress = fetched.progress
    parts = [] if progress is None else [progress]
    seconds = 0.0 if progress is None else progress.elapsed
    return Run(seconds, _levels(parts, seconds), fetched.column_names, fetched.threads)


def of_stream(table: Table, columns: list[str] | None) -> Run:
    """Figures of a pass over a table in windows."""
    parts = []
    names: list[str] = []
    threads = 0
    started = time.perf_counter()
    for window in table.stream(columns):
        names, threads = window.column_names, window.threads
        if window.progress is not None:
            parts.append(window.progress)
    seconds = time.perf_counter() - started
    return Run(seconds, _levels(parts, seconds), names, threads)


def memory_of(levels: "_core.Levels") -> dict[str, Json]:
    """Memory in use on each level, and its budget."""
    fields = ("budget_bytes", "used_bytes", "most_bytes", "chunks", "hits", "misses", "evictions")
    return {name: {field: getattr(levels.statistics(name), field) for field in fields} for name in LEVELS}
