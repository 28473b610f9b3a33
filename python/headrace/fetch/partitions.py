"""Columns that a dataset stores in its folder names: sales/year=2024/region=north/part-0.parquet.

Spark, Hive, DuckDB, pyarrow and Polars write such datasets. A partition's column is not in its files.
"""

import datetime
import re
import struct
import urllib.parse
from collections.abc import Sequence
from pathlib import PurePath

import pyarrow as pa

from headrace import _core

MISSING = "__HIVE_DEFAULT_PARTITION__"

_INTEGER = re.compile(r"-?(0|[1-9]\d*)")  # "02" would not be written that way
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# The format's numbers of physical types.
_INT32, _INT64, _BYTES = 1, 2, 6


def values_of(path: str) -> dict[str, str | None]:
    """Values from the folders named name=value that directly enclose a file, outermost first."""
    found: list[tuple[str, str | None]] = []
    for folder in reversed(PurePath(path).parts[:-1]):
        name, sign, value = folder.partition("=")
        if not sign or not name:
            break
        found.append((_unquoted(name), None if value == MISSING else _unquoted(value)))
    return dict(reversed(found))


def constants_of(paths: Sequence[str]) -> list[dict[str, pa.Scalar]]:
    """The partition columns of each file, with types derived from all files together.

    Types as in DuckDB: int64 or date32 if every value is one in canonical form, else strings.
    """
    of_files = [values_of(path) for path in paths]
    types: dict[str, pa.DataType] = {}
    for name in dict.fromkeys(name for values in of_files for name in values):
        types[name] = _type_of([values[name] for values in of_files if name in values])
    return [{name: _scalar(value, types[name]) for name, value in values.items()} for values in of_files]


def statistics_of(value: pa.Scalar, rows: int) -> "_core.ParquetStatistics":
    """Statistics of a column that has this value in every row."""
    if not value.is_valid:
        return _core.ParquetStatistics(_INT32, None, rows)
    if pa.types.is_string(value.type):
        return _core.ParquetStatistics(_BYTES, value.as_py().encode(), 0)
    if pa.types.is_date32(value.type):
        return _core.ParquetStatistics(_INT32, struct.pack("<i", value.value), 0)
    return _core.ParquetStatistics(_INT64, struct.pack("<q", value.as_py()), 0)


def _unquoted(text: str) -> str:
    """Decodes characters that writers escape in file names, as in URLs."""
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return urllib.parse.unquote(plain)


def _type_of(values: Sequence[str | None]) -> pa.DataType:
    there = [value for value in values if value is not None]
    for kind in (pa.int64(), pa.date32()):
        if there and all(_parsed(value, kind) is not None for value in there):
            return kind
    return pa.string()


def _scalar(value: str | None, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(None if value is None else _parsed(value, kind), kind)


def _parsed(value: str, kind: pa.DataType) -> int | datetime.date | str | None:
    """The value converted to that type, or None."""
    try:
        if pa.types.is_int64(kind):
            number = int(value) if _INTEGER.fullmatch(value) and value.isascii() else None
            return number if number is not None and -(1 << 63) <= number < 1 << 63 else None
        if pa.types.is_date32(kind):
            return datetime.date.fromisoformat(value) if _DATE.fullmatch(value) else None
    except ValueError:
        return None
    return value
