"""Arrow's types and arrays as those of a scan, and back."""

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace._core import ColumnType, ResultColumn, TimeUnit, TypeId
from headrace.errors import UsageError

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
_INDEX_LIMITS = ((1 << 7, pa.int8()), (1 << 15, pa.int16()), (1 << 31, pa.int32()))

Piece = tuple[Any, Any, int, int, int]


@dataclass(frozen=True)
class HostColumn:
    """A column as it goes to a device: its type there, its pieces, and what it takes to give its values back."""

    type: ColumnType
    arrow: pa.DataType
    pieces: list[Piece]
    dictionary: pa.Array | None = None


def is_text(arrow: pa.DataType) -> bool:
    """Whether a column of that type goes to a device as indices into a dictionary."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def column_type(arrow: pa.DataType) -> ColumnType | None:
    """The type in which a scan takes values, or None for one that it does not take."""
    if arrow in _PLAIN:
        return ColumnType(_PLAIN[arrow])
    if pa.types.is_timestamp(arrow):
        return ColumnType(TypeId.timestamp, unit=_UNITS[arrow.unit])
    if pa.types.is_decimal128(arrow):
        return ColumnType(TypeId.decimal128, precision=arrow.precision, scale=arrow.scale)
    return None


def arrow_type(type_: ColumnType) -> pa.DataType:
    """The Arrow type of a result, where it does not say which string or zone."""
    if type_.id == TypeId.timestamp:
        return pa.timestamp(_UNIT_NAMES[type_.unit])
    if type_.id == TypeId.decimal128:
        return pa.decimal128(type_.precision, type_.scale)
    if type_.id == TypeId.dictionary:
        return pa.dictionary(_PLAIN_ARROW[type_.index], pa.string())
    return _PLAIN_ARROW[type_.id]


def host_column(name: str, column: pa.ChunkedArray) -> HostColumn:
    """A column made ready for a device.

    Strings become indices into their dictionary, which is sorted: indices order as the strings do.

    Raises:
        UsageError: naming the column, for a type that scans do not take.
    """
    arrow = column.type
    if is_text(arrow):
        return _text_column(column)
    if pa.types.is_date64(arrow):
        column = column.cast(pa.date32())
    elif pa.types.is_decimal(arrow) and not pa.types.is_decimal128(arrow) and arrow.precision <= 38:  # noqa: PLR2004
        column = column.cast(pa.decimal128(arrow.precision, arrow.scale))
    type_ = column_type(column.type)
    if type_ is None:
        raise UsageError(f"column '{name}' is of type {arrow}, which scans do not take")
    return HostColumn(type_, column.type, [_piece(chunk) for chunk in column.chunks])


def result_array(column: ResultColumn, source: HostColumn | None) -> pa.Array:
    """A column of a result. `source` is the column that it has its strings or its zone from, if it does."""
    validity = column.validity
    target = arrow_type(column.type)
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(column.values)]
    if column.type.id == TypeId.dictionary and source is not None and source.dictionary is not None:
        indices = pa.Array.from_buffers(target.index_type, column.length, buffers, column.null_count)
        array = pa.DictionaryArray.from_arrays(indices, source.dictionary)
        return array if pa.types.is_dictionary(source.arrow) else array.dictionary_decode().cast(source.arrow)
    array = pa.Array.from_buffers(target, column.length, buffers, column.null_count)
    zoned = source is not None and pa.types.is_timestamp(target) and source.arrow.tz is not None
    return array.cast(source.arrow) if zoned and source is not None else array


def unknown_column(name: str, names: list[str]) -> UsageError:
    """What to raise for a column that is not there."""
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(names)}"
    return UsageError(f"there is no column '{name}'{hint}")


def _text_column(column: pa.ChunkedArray) -> HostColumn:
    arrow = column.type
    encoded = column if pa.types.is_dictionary(arrow) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries()
    dictionary = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], pa.string())
    dictionary = dictionary.cast(pa.string())
    strings = pc.unique(dictionary.drop_null())
    strings = strings.take(pc.sort_indices(strings))
    ranks = pc.index_in(dictionary, strings)
    index = next(type_ for limit, type_ in _INDEX_LIMITS if len(strings) < limit)
    pieces = [_piece(ranks.take(chunk.indices).cast(index)) for chunk in encoded.chunks]
    return HostColumn(ColumnType(TypeId.dictionary, index=_PLAIN[index]), arrow, pieces, strings)


def _piece(array: pa.Array) -> Piece:
    validity, values = array.buffers()[:2]
    empty = np.empty(0, np.uint8)
    return (empty if values is None else values, validity, len(array), array.offset, array.null_count)
