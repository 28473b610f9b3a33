"""Reads waveforms from text files: named columns of numbers, and optionally a column of times."""

import itertools
import math
import re
from pathlib import Path

from headrace.errors import DataError, UsageError
from headrace.grid.solver.keys import nearest
from headrace.grid.solver.waveforms import Table
from headrace.text import read_utf8

_TIME = "time"
_ROWS_MOST = 10_000_000


def read_tables(path: Path) -> dict[str, Table]:
    """The waveforms of a file, by name.

    Its first row has the names of columns, separated by blanks or commas; a column `time` (seconds) applies to all.

    Raises:
        DataError: naming file and line, when the content is invalid.
        SystemError: when it cannot be read.
    """
    rows = [(number, _words(line)) for number, line in enumerate(read_utf8(path).splitlines(), 1)]
    rows = [(number, words) for number, words in rows if words]
    if not rows:
        raise DataError(f"{path}: the file is empty; its first row must name the waveforms")
    names = rows[0][1]
    if len(set(names)) != len(names) or all(_number(name) is not None for name in names):
        raise DataError(
            f"{path}:{rows[0][0]}: the first row must have the names of the waveforms, each once, not numbers"
        )
    if not 1 < len(rows) <= _ROWS_MOST:
        raise DataError(f"{path}: it has {len(rows) - 1:,} rows of numbers; 1 to {_ROWS_MOST:,} can be read")
    columns: list[list[float]] = [[] for _ in names]
    for line, words in rows[1:]:
        if len(words) != len(names):
            raise DataError(f"{path}:{line}: the row has {len(words)} columns, but the first row names {len(names)}")
        for column, word in zip(columns, words, strict=True):
            value = _number(word)
            if value is None:
                raise DataError(f"{path}:{line}: '{word}' is not a number")
            column.append(value)
    found = dict(zip(names, (tuple(column) for column in columns), strict=True))
    times = found.pop(_TIME, ())
    if any(later <= earlier for earlier, later in itertools.pairwise(times)):
        raise DataError(f"{path}: the column '{_TIME}' does not ascend from row to row")
    if not found:
        raise DataError(f"{path}: it has no column besides '{_TIME}'")
    return {name: Table(times, values) for name, values in found.items()}


def read_table(path: Path, column: str) -> Table:
    """One waveform of a file; the first one if `column` is empty.

    Raises:
        UsageError: when there is no column with that name.
        DataError, SystemError: as read_tables().
    """
    found = read_tables(path)
    if not column:
        return next(iter(found.values()))
    if column not in found:
        raise UsageError(f"{path}: there is no column '{column}'{nearest(column, found)}")
    return found[column]


def _words(line: str) -> list[str]:
    return [word for word in re.split(r"[\s,;]+", line.strip().lstrip("#")) if word]


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
