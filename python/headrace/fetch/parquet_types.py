"""Finds the columns of a Parquet file whose statistics apply to the values that are read from it."""

import json
from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
# Physical and logical type in the file of each Arrow type.
_STORED = {
    pa.bool_(): ({"BOOLEAN"}, {"NONE"}),
    pa.float32(): ({"FLOAT"}, {"NONE"}),
    pa.float64(): ({"DOUBLE"}, {"NONE"}),
    pa.date32(): ({"INT32"}, {"DATE"}),
    pa.string(): ({"BYTE_ARRAY"}, {"STRING", "NONE"}),
    pa.large_string(): ({"BYTE_ARRAY"}, {"STRING", "NONE"}),
}
_INTEGERS = ({"INT32", "INT64"}, {"INT", "NONE"})


def comparable_columns(file: pq.ParquetSchema, schema: pa.Schema) -> set[str]:
    """Names of these columns: flat, of an ordered type, read in the unit and scale in which they are stored."""
    names, types = schema.names, schema.types
    if len(file) == len(names) and not any(kind.num_fields for kind in types):  # every leaf is a column
        found = set()
        for number, (name, kind) in enumerate(zip(names, types, strict=True)):
            column = file.column(number)
            check = _check_of(kind)
            logical = column.logical_type
            if check(column, logical, kind) if check else _is_stored_so(column.physical_type, logical.type, kind):
                found.add(name)
        return found
    by_name = dict(zip(names, types, strict=True))
    leaves = _columns(file)
    return {name for name, column in leaves if name in by_name and _is_comparable(column, by_name[name])}


def int96_columns(file: pq.ParquetSchema) -> frozenset[str]:
    """Names of the columns with 96-bit timestamps."""
    return frozenset(name for name, column in _columns(file) if column.physical_type == "INT96")


def _columns(file: pq.ParquetSchema) -> Iterator[tuple[str, pq.ColumnSchema]]:
    """The leaves that are columns of the table, not nested fields, whose path may look like a column's name."""
    for number in range(len(file)):
        column = file.column(number)
        if column.path == column.name:
            yield column.path, column


def _is_comparable(column: pq.ColumnSchema, arrow: pa.DataType) -> bool:
    if column.max_repetition_level > 0:
        return False
    logical = column.logical_type
    check = _check_of(arrow)
    if check is None:
        return _is_stored_so(column.physical_type, logical.type, arrow)
    return check(column, logical, arrow)


@cache
def _check_of(arrow: pa.DataType) -> Callable[[pq.ColumnSchema, pq.ParquetLogicalType, pa.DataType], bool] | None:
    """Further conditions that a type must meet besides its physical and logical type; None if there are none."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_decimal128(arrow):
        return lambda column, logical, kind: bool(logical.type == "DECIMAL" and column.scale == _plain(kind).scale)
    return _has_unit if pa.types.is_timestamp(arrow) else None


def _plain(arrow: pa.DataType) -> pa.DataType:
    return arrow.value_type if pa.types.is_dictionary(arrow) else arrow


def _has_unit(column: pq.ColumnSchema, logical: pq.ParquetLogicalType, arrow: pa.DataType) -> bool:
    if column.physical_type != "INT64" or logical.type != "TIMESTAMP":
        return False
    return bool(_UNITS.get(json.loads(logical.to_json())["timeUnit"]) == _plain(arrow).unit)


@cache
def _is_stored_so(physical: str, logical: str, arrow: pa.DataType) -> bool:
    kind = _plain(arrow)
    types, meanings = _INTEGERS if pa.types.is_integer(kind) else _STORED.get(kind, (set(), set()))
    return physical in types and logical in meanings
