"""Parquet and Arrow IPC files as the source of a table: what is in them, and how a chunk is read."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from headrace import _core
from headrace.errors import DataError, UsageError
from headrace.fetch import storage
from headrace.fetch.parquet_types import comparable_columns
from headrace.fetch.paths import expand
from headrace.fetch.source import Place, TableSource, require_fetch, value_bytes

_PARQUET = b"PAR1"
_PARQUET_ENCRYPTED = b"PARE"
_IPC = b"ARROW1"
_IPC_STREAM = b"\xff\xff\xff\xff"
_MAGIC_BYTES = 8

_Kept = tuple[str, pa.DataType, int]  # a column: name, type, bytes of a decoded value with its validity, at most
Reader = Callable[[int, list[int]], pa.RecordBatch]


@dataclass
class _Opened:
    """One file: its mapping, its schema, and the rows of each of its row groups."""

    mapped: "_core.MappedFile"
    buffer: pa.Buffer
    schema: pa.Schema
    rows: list[int]
    metadata: Any = None  # of Parquet
    footer: "_core.ParquetFooter | None" = None  # of Parquet
    idle: list[Any] = field(default_factory=list)  # readers that no thread uses
    batches: list[pa.RecordBatch] | None = None  # of IPC that lies in the mapping as it is

    @property
    def path(self) -> str:
        return self.mapped.path

    @contextmanager
    def reader(self, make: Callable[[], Any]) -> Iterator[Any]:
        """A reader that no other thread uses."""
        try:
            one = self.idle.pop()
        except IndexError:
            one = make()
        yield one
        self.idle.append(one)


@contextmanager
def _arrow_errors(where: str) -> Iterator[None]:
    """What Arrow raises for a file that is not right, as a DataError that says where."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError, IndexError) as error:
        text = f"{where}: {error}" if where else str(error)  # the core says where a chunk is
        raise DataError(" ".join(text.split())) from error


def _open(path: str) -> _Opened:
    mapped = _core.MappedFile(path)
    if mapped.bytes < _MAGIC_BYTES:
        raise DataError(f"{path} is neither a Parquet nor an Arrow IPC file: it has {mapped.bytes} bytes")
    buffer = pa.foreign_buffer(mapped.address, mapped.bytes)
    magic = buffer.slice(0, _MAGIC_BYTES).to_pybytes()
    if magic.startswith(_PARQUET):
        return _open_parquet(mapped, buffer)
    if magic.startswith(_IPC):
        return _open_ipc(mapped, buffer)
    if magic.startswith(_PARQUET_ENCRYPTED):
        raise UsageError(f"{path} is an encrypted Parquet file, which is not supported")
    if magic.startswith(_IPC_STREAM):
        raise UsageError(f"{path} is an Arrow IPC stream; write it as an IPC file (pyarrow.ipc.new_file)")
    raise DataError(f"{path} is neither a Parquet nor an Arrow IPC file: it begins with {magic!r}")


def _check_names(schema: pa.Schema) -> None:
    """Raises UnicodeDecodeError, a ValueError, for a name that is no text."""
    len(schema.names)
    for kind in schema.types:
        if kind.num_fields > 0:
            str(kind)


def _open_parquet(mapped: "_core.MappedFile", buffer: pa.Buffer) -> _Opened:
    with _arrow_errors(mapped.path):
        file = pq.ParquetFile(pa.BufferReader(buffer))
        metadata = file.metadata
        schema = file.schema_arrow
        _check_names(schema)
        # pyarrow ends the process where it is asked about a row group whose metadata is damaged.
        footer = mapped.parquet_footer()
        rows = footer.rows
        if len(rows) != metadata.num_row_groups:
            raise DataError(f"{mapped.path}: {len(rows)} row groups, and {metadata.num_row_groups} by Arrow")
        return _Opened(mapped, buffer, schema, rows, metadata, footer)


def _open_ipc(mapped: "_core.MappedFile", buffer: pa.Buffer) -> _Opened:
    with _arrow_errors(mapped.path):
        file = ipc.open_file(pa.BufferReader(buffer))
        _check_names(file.schema)
        # Of compressed batches a column is read to know their rows; what lies in the mapping is only looked at.
        as_it_lies = file.num_record_batches == 0 or _lies_in(mapped, file.get_batch(0))
        one = ipc.IpcReadOptions(included_fields=[0] if file.schema.names else None, use_threads=False)
        reader = file if as_it_lies else ipc.open_file(pa.BufferReader(buffer), options=one)
    batches = []
    rows = []
    for number in range(file.num_record_batches):
        read = "" if as_it_lies or not file.schema.names else f", column '{file.schema.names[0]}'"
        with _arrow_errors(f"{mapped.path}, row group {number}{read}"):
            batch = reader.get_batch(number)
            batch.validate()
            rows.append(batch.num_rows)
            if as_it_lies:
                batches.append(batch)
                for column in batch.columns:
                    if pa.types.is_dictionary(column.type):
                        storage.check(column)
    kept = batches if as_it_lies and all(_lies_in(mapped, batch) for batch in batches) else None
    return _Opened(mapped, buffer, file.schema, rows, batches=kept)


def _lies_in(mapped: "_core.MappedFile", batch: pa.RecordBatch) -> bool:
    """Whether the batch's buffers are the file's own bytes: it is not compressed."""
    end = mapped.address + mapped.bytes
    buffers = (part for column in batch.columns for part in column.buffers() if part is not None and part.size > 0)
    return all(mapped.address <= part.address < end for part in buffers)


def _check_schemas(files: list[_Opened]) -> None:
    first = files[0]
    for other in files[1:]:
        if other.schema.equals(first.schema):
            continue
        for name in dict.fromkeys([*first.schema.names, *other.schema.names]):
            here, there = (file.schema.field(name) if name in file.schema.names else None for file in (first, other))
            if here is None or there is None or not here.equals(there):
                said = [
                    "no such column" if one is None else f"{one.type}{'' if one.nullable else ' not null'}"
                    for one in (here, there)
                ]
                raise DataError(f"{other.path} differs from {first.path} in column '{name}': {said[1]}, not {said[0]}")
        raise DataError(f"{other.path} has its columns in another order than {first.path}")


def _want(footer: "_core.ParquetFooter", file: _Opened, columns: list[_Kept]) -> None:
    """Says which of the file's columns a source reads."""
    known = comparable_columns(file.metadata.schema, file.schema)
    footer.want(
        [(name, row_bytes, storage.entry_type(kind) is not None, name in known) for name, kind, row_bytes in columns]
    )


def _ipc_places(file: _Opened, columns: list[_Kept]) -> Iterator[Place]:
    for row_group, rows in enumerate(file.rows):
        for name, _, row_bytes in columns:
            ranges = []
            if file.batches is not None:
                buffers = file.batches[row_group].column(name).buffers()
                ranges = [
                    (file.mapped, part.address - file.mapped.address, part.size)
                    for part in buffers
                    if part is not None and part.size > 0
                ]
            yield ranges, rows * row_bytes


def _read_parquet(file: _Opened, row_group: int, names: list[str], text: list[str]) -> pa.RecordBatch:
    def make() -> Any:  # noqa: ANN401
        return pq.ParquetFile(pa.BufferReader(file.buffer), metadata=file.metadata, read_dictionary=text)

    with file.reader(make) as reader:
        table = reader.read_row_group(row_group, columns=names, use_threads=False)
    batches = table.to_batches()  # one, where each column is one piece
    if len(batches) == 1 and table.column_names == names:
        return batches[0]
    return pa.RecordBatch.from_arrays([_in_one_piece(table.column(name)) for name in names], names)


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.unify_dictionaries().combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _read_ipc(file: _Opened, row_group: int, names: list[str]) -> pa.RecordBatch:
    if file.batches is not None:
        return file.batches[row_group].select(names)
    fields = [file.schema.get_field_index(name) for name in names]
    options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    reader = ipc.open_file(pa.BufferReader(file.buffer), options=options)
    return reader.get_batch(row_group).select(names)


def _reader(files: list[_Opened], columns: list[_Kept]) -> Reader:
    """What reads columns of a fragment: called by any thread."""
    names = [name for name, _, _ in columns]
    groups = [(file, row_group) for file in files for row_group in range(len(file.rows))]
    text = [name for name, kind, _ in columns if storage.entry_type(kind) is not None]
    as_they_come = {number for number, (_, kind, _) in enumerate(columns) if storage.is_plain(kind)}

    def read(fragment: int, columns: list[int]) -> pa.RecordBatch:
        file, row_group = groups[fragment]
        wanted = [names[column] for column in columns]
        with _arrow_errors(""):
            if file.metadata is not None:
                batch = _read_parquet(file, row_group, wanted, text)
            else:
                batch = _read_ipc(file, row_group, wanted)
            batch.validate()
            if as_they_come.issuperset(columns):
                return batch
            arrays = list(batch.columns)
            for position, column in enumerate(columns):
                if column not in as_they_come:
                    storage.check(arrays[position])
                    arrays[position] = storage.to_storage(arrays[position])
            return pa.RecordBatch.from_arrays(arrays, wanted)

    return read


def open_files(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> TableSource:
    """Opens files: their footers are read, no column is.

    Raises:
        UsageError: for a file that is not there or of a kind that is not read, or none of whose columns can be fetched.
        DataError: for a file that is damaged, or has another schema than the first.
    """
    require_fetch()
    files = [_open(path) for path in expand(paths)]
    _check_schemas(files)
    schema = files[0].schema
    twice = sorted(name for name, count in Counter(schema.names).items() if count > 1)
    if twice:
        raise DataError(f"{files[0].path} has two columns called '{twice[0]}'")
    stored = storage.storage_schema(schema)
    if not stored.names:
        raise UsageError(f"{files[0].path} has no column of a type that can be fetched")
    fragments = [(file.path, number, rows) for file in files for number, rows in enumerate(file.rows)]
    in_place = all(file.batches is not None for file in files)
    as_they_lie = in_place and all(storage.is_view(schema.field(name).type) for name in stored.names)
    try:
        core = _of_batches(files, stored) if as_they_lie else _of_reader(files, stored, fragments)
    except UsageError as error:  # of a type that Arrow knows, and the core does not
        raise UsageError(f"{files[0].path}: {error}", error.code) from None
    file_bytes = sum(file.mapped.bytes for file in files)
    return TableSource(core, schema, stored, fragments, [file.path for file in files], file_bytes)


def _of_batches(files: list[_Opened], stored: pa.Schema) -> "_core.FetchSource":
    batches = []
    fields = [files[0].schema.field(name) for name in stored.names]
    # A dictionary's indices are taken as they lie: the core gives them those of the table's dictionary.
    types = [kept.type if pa.types.is_dictionary(kept.type) else stored.field(kept.name).type for kept in fields]
    schema = pa.schema([pa.field(kept.name, kind, kept.nullable) for kept, kind in zip(fields, types, strict=True)])
    for file in files:
        for number, batch in enumerate(file.batches or []):
            columns = [batch.column(kept.name) for kept in fields]
            views = [one if one.type == kind else one.view(kind) for one, kind in zip(columns, types, strict=True)]
            batches.append((pa.RecordBatch.from_arrays(views, schema=schema), file.path, number, file.mapped))
    return _core.FetchSource.of_batches(schema, batches)


def _of_reader(files: list[_Opened], stored: pa.Schema, fragments: list[tuple[str, int, int]]) -> "_core.FetchSource":
    places: list[Place | _core.ParquetFooter] = []
    schema = files[0].schema
    columns = [
        (name, arrow, value_bytes(kind) + 1)
        for name, arrow in zip(schema.names, schema.types, strict=True)
        if (kind := storage.storage_type(arrow)) is not None
    ]
    for file in files:
        with _arrow_errors(file.path):
            if file.footer is None:
                places += _ipc_places(file, columns)
            else:
                _want(file.footer, file, columns)
                places.append(file.footer)
    return _core.FetchSource.of_reader(stored, fragments, places, _reader(files, columns))
