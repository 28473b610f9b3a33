"""Which columns of a Parquet file have statistics of the very values that are read from it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_WHOLE = {"INT32", "INT64"}


def comparable_columns(file: pq.ParquetSchema, schema: pa.Schema) -> set[str]:
    """Names of those columns: flat, of a type with an order, and read in the unit and scale in which they are stored."""
    columns = (file.column(number) for number in range(len(file)))
    return {
        column.path
        for column in columns
        if column.max_repetition_level == 0
        and column.path in schema.names
        and _is_comparable(column, schema.field(column.path).type)
    }


def _is_comparable(column: pq.ColumnSchema, arrow: pa.DataType) -> bool:
    physical, logical = column.physical_type, column.logical_type.type
    kinds = pa.types
    if kinds.is_dictionary(arrow):
        arrow = arrow.value_type
    if kinds.is_string(arrow) or kinds.is_large_string(arrow):
        return bool(physical == "BYTE_ARRAY" and logical in {"STRING", "NONE"})
    if kinds.is_integer(arrow):
        return bool(physical in _WHOLE and logical in {"INT", "NONE"})
    if kinds.is_decimal128(arrow):
        return bool(logical == "DECIMAL" and column.scale == arrow.scale)
    if kinds.is_timestamp(arrow):
        if physical != "INT64" or logical != "TIMESTAMP":
            return False
        return _UNITS.get(json.loads(column.logical_type.to_json())["timeUnit"]) == arrow.unit
    stored = {pa.bool_(): "BOOLEAN", pa.float32(): "FLOAT", pa.float64(): "DOUBLE"}
    if kinds.is_date32(arrow):
        return bool(physical == "INT32" and logical == "DATE")
    return bool(stored.get(arrow) == physical and logical == "NONE")
