"""Parquet files as parts of a table."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace import _core
from headrace.errors import DataError, Errc, UsageError
from headrace.fetch import schemas, storage
from headrace.fetch.opened import Opened, arrow_errors
from headrace.fetch.parquet_types import comparable_columns, int96_columns
from headrace.fetch.source import value_bytes

_MICROSECONDS = 1_000_000  # per second


def open_parquet(mapped: "_core.MappedFile", buffer: pa.Buffer) -> Opened:
    """Opens a file by its footer; 96-bit timestamps, in nanoseconds, become microseconds."""
    file = Opened(mapped, buffer, pa.schema([]), [])
    with arrow_errors(mapped.path):
        parquet = pq.ParquetFile(file.by_position(), coerce_int96_timestamp_unit="us")
        file.metadata = parquet.metadata
        file.schema = parquet.schema_arrow
        _check_names(file)
        if any(map(pa.types.is_timestamp, file.types.values())):
            file.int96 = int96_columns(file.metadata.schema)
        # pyarrow aborts the process when it is asked about a row group whose metadata is damaged.
        file.footer = mapped.parquet_footer()
        file.rows = file.footer.rows
        if len(file.rows) != file.metadata.num_row_groups:
            raise DataError(
                f"{mapped.path}: {len(file.rows)} row groups, but {file.metadata.num_row_groups} according to Arrow"
            )
    return file


def want(file: Opened, columns: Sequence[tuple[str, pa.DataType, int]]) -> "_core.ParquetFooter":
    """Tells which of the file's columns a source reads, each with its type and bytes in the table."""
    assert file.footer is not None
    known = comparable_columns(file.metadata.schema, file.schema)
    wanted = []
    for name, kind, row_bytes in columns:
        own = file.types.get(name, kind)
        same = own is kind or own == kind
        converted = 0 if same else value_bytes(own) + 1
        comparable = name in known and (same or schemas.keeps_order(own, kind))
        wanted.append((name, row_bytes + converted, storage.entry_type(own) is not None, comparable))
    file.footer.want(wanted)
    return file.footer


def dictionaries(file: Opened) -> list[str]:
    """Columns for pyarrow to read as dictionaries; it cannot do so if strings are delta-encoded."""
    assert file.footer is not None
    delta = set(file.footer.delta_strings)
    return [name for name, kind in file.types.items() if storage.entry_type(kind) is not None and name not in delta]


def read_parquet(file: Opened, row_group: int, names: list[str], text: list[str], verify: bool) -> dict[str, pa.Array]:
    """Columns of a row group. `text` are the columns read as dictionaries, the same in every call.

    Raises:
        UsageError: for a timestamp that does not fit microseconds in 64 bits.
    """

    def make(unit: str) -> Callable[[Any], Any]:
        return lambda positional: pq.ParquetFile(
            positional,
            metadata=file.metadata,
            read_dictionary=text,
            coerce_int96_timestamp_unit=unit,
            page_checksum_verification=verify,
        )

    with file.reader(("us", verify), make("us")) as reader:
        table = reader.read_row_group(row_group, columns=names, use_threads=False)
    arrays = {name: _in_one_piece(table.column(name)) for name in names}
    wide = [name for name in names if name in file.int96]
    if wide:
        # Overflow wraps around silently; in seconds, every value fits.
        with file.reader(("s", verify), make("s")) as reader:
            seconds = reader.read_row_group(row_group, columns=wide, use_threads=False)
        for name in wide:
            _check_stamps(arrays[name], _in_one_piece(seconds.column(name)), name)
    return arrays


def _check_names(file: Opened) -> None:
    """Raises UnicodeDecodeError, a ValueError, for a name that is not text."""
    for kind in file.types.values():
        if kind.num_fields > 0:
            str(kind)


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.unify_dictionaries().combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _check_stamps(stamps: pa.Array, seconds: pa.Array, name: str) -> None:
    there = stamps.view(pa.int64()).fill_null(0).to_numpy()
    if np.any(np.floor_divide(there, _MICROSECONDS) != seconds.view(pa.int64()).fill_null(0).to_numpy()):
        raise UsageError(
            f"a timestamp in 96 bits of column '{name}' is further from 1970 than microseconds in 64 bits reach",
            Errc.not_supported,
        )
