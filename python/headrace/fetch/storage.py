"""Maps Arrow's types to those of columns on the levels, and back."""

from functools import cache
from typing import Any

import pyarrow as pa

from headrace.errors import UsageError

_PLAIN = {
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.date32()),
}
_DECIMAL_DIGITS = 38


def _is_text(arrow: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_string(arrow)
        or kinds.is_large_string(arrow)
        or kinds.is_string_view(arrow)
        or kinds.is_binary(arrow)
        or kinds.is_large_binary(arrow)
        or kinds.is_binary_view(arrow)
        or kinds.is_fixed_size_binary(arrow)
    )


@cache  # a table has far fewer types than columns
def entry_type(arrow: pa.DataType) -> pa.DataType | None:
    """The type of dictionary entries for a column that becomes indices; None for other columns."""
    if isinstance(arrow, pa.BaseExtensionType):
        return entry_type(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return entry_type(arrow.value_type)
    if not _is_text(arrow):
        return None
    text = pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    return pa.string() if text else pa.binary()


@cache
def storage_type(arrow: pa.DataType) -> pa.DataType | None:  # noqa: PLR0911 - a line a kind of type
    """The type of a column on the levels; None if it is not supported.

    Times and durations become their integers, date64 timestamps, decimals of other widths decimal128, strings and bytes
    indices into a dictionary, and float16 float32. A column of type null becomes int8 with every value missing. An
    extension type, such as a UUID, becomes its storage type.
    """
    if isinstance(arrow, pa.BaseExtensionType):
        return storage_type(arrow.storage_type)
    if arrow in _PLAIN or pa.types.is_timestamp(arrow) or pa.types.is_decimal128(arrow):
        return arrow
    entries = entry_type(arrow)
    if entries is not None:
        return pa.dictionary(pa.int32(), entries)
    if pa.types.is_dictionary(arrow):
        return storage_type(arrow.value_type)
    if pa.types.is_null(arrow):
        return pa.int8()
    if pa.types.is_float16(arrow):
        return pa.float32()
    if pa.types.is_time32(arrow):
        return pa.int32()
    if pa.types.is_date64(arrow):
        return pa.timestamp("ms")
    if pa.types.is_time64(arrow) or pa.types.is_duration(arrow):
        return pa.int64()
    if pa.types.is_decimal(arrow) and arrow.precision <= _DECIMAL_DIGITS:
        return pa.decimal128(arrow.precision, arrow.scale)
    return None


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """The columns that can be fetched, in their storage types."""
    types = schema.types
    kinds = [storage_type(arrow) for arrow in types]
    if kinds == types:
        return schema
    fields = []
    for field, arrow, kind in zip(schema, types, kinds, strict=True):
        if kind is not None:
            fields.append(field if kind == arrow else pa.field(field.name, kind, _is_nullable(field)))
    return pa.schema(fields)


def _is_nullable(field: pa.Field) -> bool:
    return bool(field.nullable or pa.types.is_null(field.type))


@cache
def is_plain(arrow: pa.DataType) -> bool:
    """Whether arrays of the type equal those of its storage type, and need no check except of their buffers' sizes."""
    return storage_type(arrow) == arrow and not pa.types.is_dictionary(arrow)


def is_view(arrow: pa.DataType) -> bool:
    """Whether a column's buffers can be used unchanged as its storage type, except for a dictionary's indices."""
    storage = storage_type(arrow)
    if storage is None:
        return False
    if pa.types.is_dictionary(arrow):
        return arrow.value_type in {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}
    made = isinstance(arrow, pa.BaseExtensionType) or pa.types.is_null(arrow)
    return not (made or pa.types.is_dictionary(storage) or _is_cast(arrow))


def _is_cast(arrow: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_dictionary(arrow)
        or kinds.is_float16(arrow)
        or (kinds.is_decimal(arrow) and not kinds.is_decimal128(arrow))
    )


def check(array: pa.Array) -> None:
    """Raises ArrowInvalid for an array whose buffers are too short, or whose strings lie outside of them.

    Checks values that Arrow would trust: offsets of strings, entries of a dictionary. Indices of strings are checked
    when they are replaced with those of the table.
    """
    array.validate()
    if pa.types.is_dictionary(array.type):
        array.dictionary.validate(full=True)
        if entry_type(array.type) is None:
            array.validate(full=True)
    elif entry_type(array.type) is not None:
        array.validate(full=True)


def to_storage(array: pa.Array) -> pa.Array:
    """Converts an array to its storage type, without a copy if possible."""
    storage = storage_type(array.type)
    if storage is None:
        raise UsageError(f"type {array.type} is not supported")
    if storage == array.type:
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return to_storage(array.storage)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), storage)
    if entry_type(array.type) is not None:
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            encoded.indices.cast(pa.int32()), encoded.dictionary.cast(storage.value_type)
        )
    if pa.types.is_dictionary(array.type):
        return to_storage(array.dictionary_decode())
    return array.cast(storage) if _is_cast(array.type) else array.view(storage)


def from_storage(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Converts an array to its column's type in the files, which is not a string type."""
    if array.type == arrow:
        return array
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, from_storage(array, arrow.storage_type))
    if pa.types.is_null(arrow):
        return pa.nulls(len(array))
    if pa.types.is_dictionary(arrow):
        return _as_dictionary(array, arrow)
    return array.cast(arrow) if _is_cast(arrow) else array.view(arrow)


def _as_dictionary(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    if pa.types.is_null(arrow.value_type):
        return pa.DictionaryArray.from_arrays(pa.nulls(len(array), arrow.index_type), pa.nulls(0))
    encoded = array.dictionary_encode()
    try:
        indices = encoded.indices.cast(arrow.index_type)
    except pa.ArrowInvalid:  # the table's dictionary has more entries than that of one file
        indices = encoded.indices
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary.cast(arrow.value_type))


def array_of(storage: pa.DataType, length: int, offset: int, buffers: tuple[bytes, bytes | None]) -> pa.Array:
    """An array of a chunk that was copied back from a device: (values, validity)."""
    values, validity = buffers
    parts: list[Any] = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(values)]
    return pa.Array.from_buffers(storage, length, parts, offset=offset)
