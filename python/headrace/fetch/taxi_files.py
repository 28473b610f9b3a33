"""Converts the city's own files of taxi rides to the table of the taxi benchmark.

New York's Taxi and Limousine Commission publishes one Parquet file per month for yellow and for green cabs. Their
columns have had several names and types since 2009 (TLC Trip Record Data, with its data dictionaries).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.errors import DataError, MissingFileError, UsageError
from headrace.fetch import taxi

# Names that the city has used for a column, in lower case.
_NAMES = {
    "vendor_id": ("vendorid", "vendor_name"),
    "pickup_datetime": ("tpep_pickup_datetime", "lpep_pickup_datetime", "trip_pickup_datetime"),
    "dropoff_datetime": ("tpep_dropoff_datetime", "lpep_dropoff_datetime", "trip_dropoff_datetime"),
    "rate_code_id": ("ratecodeid", "rate_code"),
    "store_and_fwd_flag": ("store_and_forward",),
    "pickup_location_id": ("pulocationid",),
    "dropoff_location_id": ("dolocationid",),
    "fare_amount": ("fare_amt",),
    "extra": ("surcharge",),
    "tip_amount": ("tip_amt",),
    "tolls_amount": ("tolls_amt",),
    "total_amount": ("total_amt",),
}
_CAB_OF = {"tpep_pickup_datetime": "yellow", "lpep_pickup_datetime": "green"}


@dataclass(frozen=True)
class CityFile:
    """One of the city's files: the mapping of its columns, and its kind of cabs."""

    path: Path
    rows: int
    row_groups: int
    columns: dict[str, str]  # from names in the table to names in the file
    cab: str | None  # None if each row has its own
    left_empty: set[str] = field(default_factory=set)  # columns of the table for which the file has no values


def look(path: Path) -> CityFile:
    """Inspects a file.

    Raises:
        UsageError: for a missing file, or an unknown kind of cab.
        DataError: for a file that is not Parquet, or that lacks a column of the queries.
    """
    if not path.exists():
        raise MissingFileError(f"there is no file {path}")
    with _named(path), pq.ParquetFile(path) as file:
        own = {name.lower(): name for name in file.schema_arrow.names}
        rows, row_groups = file.metadata.num_rows, file.num_row_groups
    columns = {}
    for name in taxi.schema().names:
        found = next((own[called] for called in (name, *_NAMES.get(name, ())) if called in own), None)
        if found is not None:
            columns[name] = found
    for name in taxi.QUERY_COLUMNS:
        if name not in columns and name != "cab_type":
            called = ", ".join((name, *_NAMES.get(name, ())))
            raise DataError(f"{path} has no column for {name} (looked for {called}); it has {', '.join(own.values())}")
    cab = None if "cab_type" in columns else _cab(path, columns)
    return CityFile(path, rows, row_groups, columns, cab, set(taxi.schema().names) - set(columns) - {"cab_type"})


def load(
    files: Sequence[CityFile],
    out: Path,
    *,
    money: str = "double",
    threads: int | None = None,
    fragments: int | None = None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> None:
    """Writes the rides of the city's files, in order, as one table; see taxi.generate() for the common arguments.

    Columns that a file lacks, or that have no usable values there (vendors were names in 2009), are left empty unless a
    query reads them; CityFile.left_empty then lists them.

    Raises:
        UsageError: as taxi.write() does, and if `out` is one of the files.
        DataError: naming file, row group and column, when a column cannot be read or has unusable values.
    """
    if out.resolve() in {file.path.resolve() for file in files}:
        raise UsageError(f"{out} is one of the files to load")
    wanted = taxi.schema(money)
    rows = sum(file.rows for file in files)
    work = [partial(_rides, file, number, wanted) for file in files for number in range(file.row_groups)]
    taxi.write(out, wanted, rows, work, threads=threads, fragments=fragments, on_rows=on_rows)


def _cab(path: Path, columns: dict[str, str]) -> str:
    cab = _CAB_OF.get(columns["pickup_datetime"].lower()) or next(
        (c for c in taxi.CABS if c in path.name.lower()), None
    )
    if cab is None:
        raise UsageError(
            f"{path} does not say which cabs it describes: its name contains neither {' nor '.join(taxi.CABS)}"
        )
    return cab


def _rides(file: CityFile, number: int, wanted: pa.Schema) -> pa.RecordBatch:
    """One row group."""
    with _named(file.path, number), pq.ParquetFile(file.path) as source:
        table = source.read_row_group(number, columns=list(file.columns.values())).combine_chunks()
    arrays = []
    for column in wanted:
        if column.name == "cab_type" and file.cab is not None:
            at = pa.repeat(pa.scalar(taxi.CABS.index(file.cab), pa.int32()), table.num_rows)
            arrays.append(pa.DictionaryArray.from_arrays(at, pa.array(taxi.CABS)))
        elif column.name not in file.columns:
            arrays.append(pa.nulls(table.num_rows, column.type))
        else:
            arrays.append(_values(file, number, table.column(file.columns[column.name]), column))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _values(file: CityFile, number: int, values: pa.ChunkedArray, column: pa.Field) -> pa.Array:
    """Values of a column in the wanted type; empty if there are no usable values and no query reads it."""
    try:
        made = _cast(values, column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if column.name in taxi.QUERY_COLUMNS:
            called = file.columns[column.name]
            raise DataError(f"{file.path}, row group {number}, column {called}: {error}") from None
        file.left_empty.add(column.name)
        return pa.nulls(len(values), column.type)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _cast(values: pa.ChunkedArray, column: pa.Field) -> Any:  # noqa: ANN401
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if column.name == "cab_type":
        at = pc.index_in(values.cast(pa.string()), pa.array(taxi.CABS))
        if at.null_count > values.null_count:
            raise pa.ArrowInvalid(f"it has a kind of cab other than {', '.join(taxi.CABS)}")
        return pa.DictionaryArray.from_arrays(at.combine_chunks(), pa.array(taxi.CABS))
    if column.name == "store_and_fwd_flag" and _is_text(values.type):
        return pc.if_else(pc.is_in(values, pa.array(["Y", "N"], values.type)), pc.equal(values, "Y"), None)
    return values.cast(column.type, safe=not pa.types.is_timestamp(values.type))  # some have nanoseconds


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@contextmanager
def _named(path: Path, row_group: int | None = None) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        where = "" if row_group is None else f", row group {row_group}"
        raise DataError(f"{path}{where}: {error}") from None
