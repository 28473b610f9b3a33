"""Converts Arrow's types and arrays to those of a scan, and back."""

import difflib
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from headrace._core import ColumnType, ResultColumn, TimeUnit, TypeId, stream_formats
from headrace.errors import Errc, UsageError
from headrace.fetch import storage
from headrace.fetch.opened import arrow_errors
from headrace.fetch.strings import strings_of

_PLAIN = {
    pa.bool_(): TypeId.boolean,
    pa.int8(): TypeId.int8,
    pa.int16(): TypeId.int16,
    pa.int32(): TypeId.int32,
    pa.int64(): TypeId.int64,
    pa.uint8(): TypeId.uint8,
    pa.uint16(): TypeId.uint16,
    pa.uint32(): TypeId.uint32,
    pa.uint64(): TypeId.uint64,
    pa.float32(): TypeId.float32,
    pa.float64(): TypeId.float64,
    pa.date32(): TypeId.date32,
}
_PLAIN_ARROW = {id_: arrow for arrow, id_ in _PLAIN.items()}
_UNITS = {"s": TimeUnit.second, "ms": TimeUnit.millisecond, "us": TimeUnit.microsecond, "ns": TimeUnit.nanosecond}
_UNIT_NAMES = {unit: name for name, unit in _UNITS.items()}


class ArrowStream(Protocol):
    """Any provider of data by the Arrow PyCapsule interface: tables of pyarrow, Polars, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:  # noqa: ANN401
        """Returns a capsule with an ArrowArrayStream."""


def as_table(source: ArrowStream) -> pa.Table:
    """Converts Arrow data of any producer to a pyarrow table without a copy.

    Raises:
        UsageError: for an object without such data, and for a type that pyarrow does not support, naming its column.
        DataError: when the producer fails while providing the data.
    """
    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        raise UsageError(f"{type(source).__name__} provides no Arrow data: it has no __arrow_c_stream__()")
    try:
        stream = pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(_unknown_type(source, error), Errc.not_supported) from error
    with arrow_errors(f"the data that {type(source).__name__} provides"):
        return stream.read_all()


def _unknown_type(source: ArrowStream, error: Exception) -> str:
    """The message for a schema that pyarrow rejects, naming the columns whose formats its error mentions."""
    said = " ".join(str(error).split())
    try:
        formats = stream_formats(source.__arrow_c_stream__())
    except Exception:
        formats = []
    names = [f"'{name}'" for name, format_ in formats if f"'{format_}'" in said]
    where = f"column {', '.join(names)} of {type(source).__name__}" if names else type(source).__name__
    return f"{where} has a type that is not supported ({said}): cast it or leave it out"


@dataclass(frozen=True)
class ScanColumn:
    """A column of a table as a scan sees it: its number and type there, and what restores its values' original type."""

    number: int
    name: str
    type: ColumnType
    arrow: pa.DataType

    @property
    def is_text(self) -> bool:
        """Whether its values are strings."""
        return bool(storage.entry_type(self.arrow) == pa.string())


def column_type(arrow: pa.DataType) -> ColumnType | None:
    """The type that a scan casts to or stores values in; None for one that scans do not have."""
    if arrow in _PLAIN:
        return ColumnType(_PLAIN[arrow])
    if pa.types.is_timestamp(arrow):
        return ColumnType(TypeId.timestamp, unit=_UNITS[arrow.unit])
    if pa.types.is_decimal128(arrow):
        return ColumnType(TypeId.decimal128, precision=arrow.precision, scale=arrow.scale)
    if pa.types.is_dictionary(arrow):
        return ColumnType(TypeId.dictionary)
    return None


def arrow_type(type_: ColumnType) -> pa.DataType:
    """The Arrow type of a result when no column determines the kind of string or the time zone."""
    if type_.id == TypeId.timestamp:
        return pa.timestamp(_UNIT_NAMES[type_.unit])
    if type_.id == TypeId.decimal128:
        return pa.decimal128(type_.precision, type_.scale)
    return _PLAIN_ARROW[type_.id]


def result_array(column: ResultColumn, source: ScanColumn | None) -> pa.Array | pa.ChunkedArray:
    """A column of a result. `source` is the column that its values come from, if there is one."""
    validity = column.validity
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(column.values)]
    kind = None if source is None else storage.storage_type(source.arrow)
    if source is None or kind is None:
        return pa.Array.from_buffers(arrow_type(column.type), column.length, buffers, column.null_count)
    if pa.types.is_dictionary(kind):
        indices = pa.Array.from_buffers(kind.index_type, column.length, buffers, column.null_count)
        assert column.dictionary is not None  # strings come from a column
        return strings_of(column.dictionary, indices, source.arrow, source.name)
    array = pa.Array.from_buffers(kind, column.length, buffers, column.null_count)
    return storage.from_storage(array, source.arrow)


def whole(sums: pa.Array) -> pa.Array:
    """Sums of integers, computed in 128 bits: as int64 if all of them fit, else unchanged."""
    if not pa.types.is_decimal128(sums.type) or sums.type.scale != 0:
        return sums
    try:
        return sums.cast(pa.int64())
    except pa.ArrowInvalid:
        return sums


def unknown_column(name: str, names: list[str]) -> UsageError:
    """The error for an unknown column."""
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(names)}"
    return UsageError(f"there is no column '{name}'{hint}")
