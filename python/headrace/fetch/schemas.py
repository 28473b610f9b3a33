"""One schema for files whose own schemas differ: in the order or width of columns, or in columns that no query uses.

A difference that changes no value is resolved when a column is read. Any other is kept as a reason, which is raised
when the column is requested.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.errors import DataError
from headrace.fetch import storage

_UNITS = ("s", "ms", "us", "ns")
_DIGITS = 38
_INTEGERS = {
    (True, 8): pa.int8(),
    (True, 16): pa.int16(),
    (True, 32): pa.int32(),
    (True, 64): pa.int64(),
    (False, 8): pa.uint8(),
    (False, 16): pa.uint16(),
    (False, 32): pa.uint32(),
    (False, 64): pa.uint64(),
}
_FLOATS = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}


@dataclass(frozen=True)
class Unified:
    """The schema of a table, and the columns that differ between its files, with the difference."""

    schema: pa.Schema
    differing: dict[str, str]


def unify(files: Sequence[tuple[str, pa.Schema]]) -> Unified:
    """The columns of all files: those of the first file in its order, then further ones.

    Raises:
        DataError: for a file with two columns of one name.
    """
    kinds = _distinct(files)
    for path, schema in kinds:
        check_names(path, schema)
    if len(kinds) == 1:
        return Unified(kinds[0][1], {})
    fields: list[pa.Field] = []
    differing: dict[str, str] = {}
    for name in dict.fromkeys(name for _, schema in kinds for name in schema.names):
        field, difference = _one_column(name, kinds)
        fields.append(field)
        if difference:
            differing[name] = difference
    return Unified(pa.schema(fields), differing)


def check_names(path: str, schema: pa.Schema) -> None:
    """Raises DataError for a file with two columns of one name."""
    names = schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if len(schema.get_all_field_indices(name)) > 1)
        raise DataError(f"{path} has two columns called '{twice}'")


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:  # noqa: PLR0911 - a line a family of types
    """A type that holds every value of both; None if there is none, or if conversion would be a guess."""
    if one == other:
        return one
    kinds = pa.types
    if kinds.is_null(one) or kinds.is_null(other):
        return other if kinds.is_null(one) else one
    if storage.entry_type(one) is not None or storage.entry_type(other) is not None:
        return _common_text(one, other)
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    if _is_number(one) and _is_number(other):
        return _common_number(one, other)
    if kinds.is_decimal(one) and kinds.is_decimal(other):
        return _common_decimal(one, other)
    if kinds.is_date(one) and kinds.is_date(other):
        return pa.date32()
    if kinds.is_timestamp(one) and kinds.is_timestamp(other):
        if (one.tz is None) != (other.tz is None):
            return None
        return pa.timestamp(_finest(one, other), one.tz if one.tz == other.tz or one.tz is None else "UTC")
    if kinds.is_time(one) and kinds.is_time(other):
        unit = _finest(one, other)
        return pa.time32(unit) if unit in {"s", "ms"} else pa.time64(unit)
    if kinds.is_duration(one) and kinds.is_duration(other):
        return pa.duration(_finest(one, other))
    return None


def keeps_order(file: pa.DataType, table: pa.DataType) -> bool:
    """Whether the statistics of a file's column also apply to the converted values of the table."""
    if file == table:
        return True
    if storage.entry_type(file) is not None:
        return storage.entry_type(file) == storage.entry_type(table)
    signed = pa.types.is_signed_integer
    unsigned = pa.types.is_unsigned_integer
    return bool((signed(file) and signed(table)) or (unsigned(file) and unsigned(table)))


def as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Converts an array of a file to the table's type; strings and bytes stay unchanged, because they become indices.

    Raises:
        ArrowInvalid: for a value that does not fit the type, such as a date beyond the range of nanoseconds.
    """
    if array.type == kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if storage.entry_type(array.type) is not None and storage.entry_type(array.type) == storage.entry_type(kind):
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return as_type(array.storage, kind)
    if pa.types.is_dictionary(array.type):
        return as_type(array.dictionary_decode(), kind)
    if pa.types.is_float16(array.type) and pa.types.is_float64(kind):
        array = array.cast(pa.float32())
    return array.cast(kind)


def _distinct(files: Sequence[tuple[str, pa.Schema]]) -> list[tuple[str, pa.Schema]]:
    """The first file of each schema."""
    kinds: list[tuple[str, pa.Schema]] = []
    for path, schema in files:
        if not any(schema.equals(known) for _, known in kinds):
            kinds.append((path, schema))
    return kinds


def _one_column(name: str, kinds: Sequence[tuple[str, pa.Schema]]) -> tuple[pa.Field, str]:
    """The table's column, and the difference between its files, if there is one."""
    numbers = [schema.get_field_index(name) for _, schema in kinds]
    places = [(path, schema.field(at) if at >= 0 else None) for at, (path, schema) in zip(numbers, kinds, strict=True)]
    there = [(path, field) for path, field in places if field is not None]
    path, field = there[0]
    kind = field.type
    difference = ""
    for other_path, other in places:
        common = None if other is None else common_type(kind, other.type)
        if common is not None:
            kind = common
        elif not difference:
            first = (path, field) if other is not None else next(one for one in there if one[0] != other_path)
            second = "no such column" if other is None else str(other.type)
            difference = f"{other_path} differs from {first[0]} in column '{name}': {second}, not {first[1].type}"
    nullable = any(one.nullable or pa.types.is_null(one.type) for _, one in there)
    # A type that is unsupported in every file is reported as such, as in a table of one file.
    if difference and all(storage.storage_type(one.type) is None for _, one in there):
        return pa.field(name, field.type, nullable), ""
    return pa.field(name, field.type if difference else kind, nullable), difference


def _plain(kind: pa.DataType) -> pa.DataType:
    while isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind.value_type
    return kind


def _common_text(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    entries = storage.entry_type(one)
    if entries is None or entries != storage.entry_type(other):
        return None
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    text = pa.types.is_string(entries)
    large = any(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) for kind in (one, other))
    if large:
        return pa.large_string() if text else pa.large_binary()
    return pa.string() if text else pa.binary()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _common_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return _FLOATS[max(one.bit_width, other.bit_width)]
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        return pa.float64()  # reading an integer that a double cannot represent is an error
    signs = (bool(pa.types.is_signed_integer(one)), bool(pa.types.is_signed_integer(other)))
    if signs[0] == signs[1]:
        return _INTEGERS[signs[0], max(one.bit_width, other.bit_width)]
    unsigned, signed = (other, one) if signs[0] else (one, other)
    return _INTEGERS.get((True, max(2 * unsigned.bit_width, signed.bit_width)))


def _common_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    scale = max(one.scale, other.scale)
    digits = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(digits, scale) if digits <= _DIGITS else None


def _finest(one: pa.DataType, other: pa.DataType) -> str:
    return _UNITS[max(_UNITS.index(one.unit), _UNITS.index(other.unit))]
