"""Which columns of a Parquet file have statistics of the very values that are read from it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
# Of a type in Arrow: what it is in the file, physical and logical.
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
    """Names of those columns: flat, of a type with an order, read in the unit and scale in which they are stored."""
    columns = (file.column(number) for number in range(len(file)))
    return {
        column.path
        for column in columns
        if column.max_repetition_level == 0
        and column.path in schema.names
        and _is_comparable(column, schema.field(column.path).type)
    }


def _is_comparable(column: pq.ColumnSchema, arrow: pa.DataType) -> bool:
    logical = column.logical_type
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_decimal128(arrow):
        return bool(logical.type == "DECIMAL" and column.scale == arrow.scale)
    if pa.types.is_timestamp(arrow):
        if column.physical_type != "INT64" or logical.type != "TIMESTAMP":
            return False
        return bool(_UNITS.get(json.loads(logical.to_json())["timeUnit"]) == arrow.unit)
    physical, meant = _INTEGERS if pa.types.is_integer(arrow) else _STORED.get(arrow, (set(), set()))
    return column.physical_type in physical and logical.type in meant
