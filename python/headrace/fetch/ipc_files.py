"""Arrow IPC files and streams as parts of a table."""

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import ipc

from headrace import _core
from headrace.errors import DataError
from headrace.fetch import storage
from headrace.fetch.opened import Opened, StreamPart, arrow_errors
from headrace.fetch.schemas import check_names
from headrace.fetch.source import Place

_READ_MAX = 1 << 30  # bytes per call: the system reads less than 2 GiB at once


def open_ipc(mapped: "_core.MappedFile", buffer: pa.Buffer, stream: bool) -> Opened:
    """Opens a file or a stream; its batches are used in place in the mapping.

    The number of rows of a compressed batch is found by reading its first column.
    """
    with arrow_errors(mapped.path):
        file = ipc.open_stream(buffer) if stream else ipc.open_file(buffer)
        schema = file.schema
        for one in schema:
            str(one)  # raises UnicodeDecodeError, a ValueError, for a name that is not text
        check_names(mapped.path, schema)
        parts = _parts_of(mapped, buffer) if stream else None
        names = [one.name for one in schema if storage.storage_type(one.type) is not None]
        as_it_lies = (
            _begins_in(mapped, file, names) if not stream else _begins_in(mapped, ipc.open_stream(buffer), names)
        )
    options = None if as_it_lies or not schema.names else ipc.IpcReadOptions(included_fields=[0], use_threads=False)
    first = "" if options is None else f", column '{schema.names[0]}'"
    batches = []
    rows: list[int] = []
    numbers = iter(_batches(buffer, stream, options))
    while True:
        with arrow_errors(f"{mapped.path}, row group {len(rows)}{first}"):
            batch = next(numbers, None)
            if batch is None:
                break
            batch.validate()
            rows.append(batch.num_rows)
            if as_it_lies:
                batches.append(batch)
                _check_dictionaries(batch, names)
    kept = batches if as_it_lies and all(_lies_in(mapped, batch, names) for batch in batches) else None
    return Opened(mapped, buffer, schema, rows, batches=kept, parts=parts)


def ipc_places(file: Opened, columns: Sequence[tuple[str, pa.DataType, int]]) -> Iterator[Place]:
    """Places of the chunks, by row group. Columns are (name, type, bytes of a value) of the table."""
    own = set(file.schema.names)
    for row_group, rows in enumerate(file.rows):
        for name, _, row_bytes in columns:
            ranges = []
            if file.batches is not None and name in own:
                buffers = file.batches[row_group].column(name).buffers()
                ranges = [
                    (file.mapped, part.address - file.mapped.address, part.size)
                    for part in buffers
                    if part is not None and part.size > 0
                ]
            yield ranges, rows * row_bytes


def read_ipc(file: Opened, row_group: int, names: Sequence[str]) -> dict[str, pa.Array]:
    """Columns of a batch: from the mapping if they go to the device in place, else read by position."""
    arrays: dict[str, pa.Array] = {}
    if file.batches is not None:
        batch = file.batches[row_group]
        lying = [name for name in names if storage.is_view(file.schema.field(name).type)]
        arrays = {name: batch.column(name) for name in lying}
    others = [name for name in names if name not in arrays]
    if others:
        fields = [file.schema.get_field_index(name) for name in others]
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        batch = _read_batch(file, row_group, options)
        arrays.update({name: batch.column(name) for name in others})
    return arrays


def _batches(buffer: pa.Buffer, stream: bool, options: ipc.IpcReadOptions | None) -> Iterator[pa.RecordBatch]:
    options = options if options is not None else ipc.IpcReadOptions()
    if stream:
        yield from ipc.open_stream(buffer, options=options)
        return
    file = ipc.open_file(buffer, options=options)
    for number in range(file.num_record_batches):
        yield file.get_batch(number)


def _begins_in(mapped: "_core.MappedFile", file: ipc.RecordBatchStreamReader, names: list[str]) -> bool:
    """Whether the first batch is in the mapping uncompressed."""
    if isinstance(file, ipc.RecordBatchFileReader):
        return file.num_record_batches == 0 or _lies_in(mapped, file.get_batch(0), names)
    try:
        return _lies_in(mapped, file.read_next_batch(), names)
    except StopIteration:
        return True


def _lies_in(mapped: "_core.MappedFile", batch: pa.RecordBatch, names: list[str]) -> bool:
    """Whether the batch's buffers are the file's own bytes, which means that it is not compressed."""
    end = mapped.address + mapped.bytes
    columns = (batch.column(name) for name in names)
    buffers = (part for column in columns for part in column.buffers() if part is not None and part.size > 0)
    return all(mapped.address <= part.address < end for part in buffers)


def _check_dictionaries(batch: pa.RecordBatch, names: list[str]) -> None:
    for name in names:
        column = batch.column(name)
        if pa.types.is_dictionary(column.type):
            storage.check(column)


def _parts_of(mapped: "_core.MappedFile", buffer: pa.Buffer) -> list[StreamPart]:
    """The batches of a stream, each with the schema and all dictionaries that precede it."""
    source = pa.BufferReader(buffer)
    before: list[tuple[int, int]] = []
    parts: list[StreamPart] = []
    while True:
        begin = source.tell()
        try:
            message = ipc.read_message(source)
        except EOFError:
            break
        here = (begin, source.tell() - begin)
        if message.type == "record batch":
            parts.append(StreamPart((*before, here)))
        else:
            before.append(here)
    if not before:
        raise DataError(f"{mapped.path} is an Arrow IPC stream without a schema")
    return parts


def _read_batch(file: Opened, row_group: int, options: ipc.IpcReadOptions) -> pa.RecordBatch:
    if file.parts is None:
        return ipc.open_file(file.by_position(), options=options).get_batch(row_group)
    ranges = file.parts[row_group].ranges
    data = bytearray(sum(size for _, size in ranges))
    at = 0
    for offset, size in ranges:
        _read_exactly(file, offset, memoryview(data)[at : at + size])
        at += size
    return ipc.open_stream(pa.py_buffer(data), options=options).read_next_batch()


def _read_exactly(file: Opened, offset: int, into: memoryview) -> None:
    while into:
        got = os.preadv(file.mapped.descriptor, [into[:_READ_MAX]], offset)
        if got == 0:
            raise DataError(f"{file.path} has been cut short since it was opened: open it again")
        into, offset = into[got:], offset + got
