"""Parquet and Arrow IPC files as the source of a table: their contents, and how chunks are read."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from headrace import _core
from headrace.errors import DataError, UsageError
from headrace.fetch import partitions, schemas, storage
from headrace.fetch.ipc_files import ipc_places, open_ipc, read_ipc
from headrace.fetch.opened import Opened, arrow_errors
from headrace.fetch.parquet_files import dictionaries, open_parquet, read_parquet, want
from headrace.fetch.paths import PathLike, expand, shown
from headrace.fetch.source import Place, TableSource, core_schema, require_fetch, value_bytes

_PARQUET = b"PAR1"
_PARQUET_ENCRYPTED = b"PARE"
_IPC = b"ARROW1"
_IPC_STREAM = b"\xff\xff\xff\xff"
_MAGIC_BYTES = 8

_Kept = tuple[str, pa.DataType, int]  # a column: name, type, maximum bytes of a decoded value with its validity
Reader = Callable[[int, list[int]], pa.RecordBatch]


def _open(path: str) -> Opened:
    mapped = _core.MappedFile(os.fsencode(path), shown(path))
    if mapped.bytes < _MAGIC_BYTES:
        raise DataError(f"{mapped.path} is neither a Parquet nor an Arrow IPC file: it has {mapped.bytes} bytes")
    buffer = pa.foreign_buffer(mapped.address, mapped.bytes)
    magic = buffer.slice(0, _MAGIC_BYTES).to_pybytes()
    if magic.startswith(_PARQUET):
        file = open_parquet(mapped, buffer)
    elif magic.startswith((_IPC, _IPC_STREAM)):
        file = open_ipc(mapped, buffer, stream=magic.startswith(_IPC_STREAM))
    elif magic.startswith(_PARQUET_ENCRYPTED):
        raise UsageError(f"{mapped.path} is an encrypted Parquet file, which is not supported")
    else:
        file = _open_old_stream(mapped, buffer, magic)
    mapped.require_unchanged()  # its metadata must be of one state of the file
    return file


def _open_old_stream(mapped: "_core.MappedFile", buffer: pa.Buffer, magic: bytes) -> Opened:
    """Opens a stream written before Arrow 0.15, which begins with the size of its schema without a marker."""
    size = int.from_bytes(magic[:4], "little")
    if 0 < size < mapped.bytes and (size + 4) % _MAGIC_BYTES == 0:
        with suppress(DataError):
            return open_ipc(mapped, buffer, stream=True)
    raise DataError(f"{mapped.path} is neither a Parquet nor an Arrow IPC file: it begins with {magic!r}")


@dataclass(frozen=True)
class _Plan:
    """Maps the columns of one file to those of the table, by number."""

    text: list[str]
    as_they_come: frozenset[int]
    constants: dict[int, pa.Scalar]


def _plan(file: Opened, columns: list[_Kept]) -> _Plan:
    own = file.types
    same = (
        number
        for number, (name, kind, _) in enumerate(columns)
        if (own.get(name) is kind or own.get(name) == kind) and storage.is_plain(kind)
    )
    constants: dict[int, pa.Scalar] = {}
    if file.constants:
        constants = {at: file.constants[name] for at, (name, _, _) in enumerate(columns) if name in file.constants}
    return _Plan(dictionaries(file) if file.footer is not None else [], frozenset(same), constants)


def _reader(files: list[Opened], columns: list[_Kept], verify: bool) -> Reader:
    """Returns the function that reads columns of a fragment; any thread may call it."""
    groups = [(file, row_group) for file in files for row_group in range(len(file.rows))]
    plans: dict[int, _Plan] = {}  # made when a file is first read, because a wide table takes a while

    def read(fragment: int, numbers: list[int]) -> pa.RecordBatch:
        file, row_group = groups[fragment]
        plan = plans.get(id(file))
        if plan is None:
            plan = plans[id(file)] = _plan(file, columns)
        names = [columns[number][0] for number in numbers]
        own = [name for name, number in zip(names, numbers, strict=True) if number not in plan.constants]
        with arrow_errors(""):
            found: dict[str, pa.Array] = {}
            if own and file.footer is not None:
                found = read_parquet(file, row_group, own, plan.text, verify)
            elif own:
                found = read_ipc(file, row_group, own)
            arrays = []
            for name, number in zip(names, numbers, strict=True):
                if number in plan.constants:
                    array = _repeated(plan.constants[number], file.rows[row_group])
                else:
                    array = found[name]
                arrays.append(_in_table(array, columns[number][1], number in plan.as_they_come))
            # Only positions matter: the C data interface cannot carry every name.
            return pa.RecordBatch.from_arrays(arrays, [str(number) for number in numbers])

    return read


def _repeated(value: pa.Scalar, rows: int) -> pa.Array:
    if not (value.is_valid and pa.types.is_string(value.type)):
        return pa.repeat(value, rows)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value.as_py()]))


def _in_table(array: pa.Array, kind: pa.DataType, as_it_comes: bool) -> pa.Array:
    if as_it_comes:
        array.validate()
        return array
    storage.check(array)
    return storage.to_storage(schemas.as_type(array, kind))


def open_files(
    paths: PathLike | Iterable[PathLike], *, hive: bool = True, verify_checksums: bool = False
) -> TableSource:
    """Opens files: reads their footers, but no column.

    Args:
        paths: files, as for paths.expand().
        hive: whether enclosing folders named name=value are columns.
        verify_checksums: whether pages with checksums are verified when read.

    Raises:
        UsageError: for a missing file, an unsupported kind of file, or one without a column that can be fetched.
        DataError: for a damaged file.
    """
    require_fetch()
    found = expand(paths)
    files = [_open(path) for path in found]
    if hive:
        for file, constants in zip(files, partitions.constants_of(found), strict=True):
            own = set(file.schema.names)
            file.constants = {name: value for name, value in constants.items() if name not in own}
    unified = schemas.unify([(file.path, file.whole_schema) for file in files])
    kept = unified.schema
    if unified.differing:
        kept = pa.schema([one for one in unified.schema if one.name not in unified.differing])
    stored = storage.storage_schema(kept)
    if not stored.names:
        raise UsageError(
            next(iter(unified.differing.values()), f"{files[0].path} has no column of a type that can be fetched")
        )

    def source(verify: bool) -> TableSource:
        fragments = [(file.path, number, rows) for file in files for number, rows in enumerate(file.rows)]
        try:
            lying = _lie_alike(files, unified.schema, stored)
            core = _of_batches(files, stored) if lying else _of_reader(files, unified.schema, stored, fragments, verify)
        except UsageError as error:  # the core does not support this Arrow type
            raise UsageError(f"{files[0].path}: {error}", error.code) from None
        return TableSource(
            core,
            unified.schema,
            stored,
            fragments,
            [file.path for file in files],
            sum(file.mapped.bytes for file in files),
            differing=unified.differing,
            verifies=verify,
            verifying=lambda: source(True),
        )

    return source(verify_checksums)


def _lie_alike(files: list[Opened], schema: pa.Schema, stored: pa.Schema) -> bool:
    """Whether every column is already in the mappings in its form for the device, with the same type in all files."""
    if not all(file.batches is not None and not file.constants for file in files):
        return False
    kinds = [schema.field(name).type for name in stored.names]
    if not all(map(storage.is_view, kinds)):
        return False
    alike = all(file.schema.equals(files[0].schema) for file in files[1:])
    return alike or all(
        file.schema.field(name).type == kind for file in files for name, kind in zip(stored.names, kinds, strict=True)
    )


def _of_batches(files: list[Opened], stored: pa.Schema) -> "_core.FetchSource":
    batches = []
    fields = [files[0].schema.field(name) for name in stored.names]
    # Dictionary indices are taken in place; the core replaces them with those of the table's dictionary.
    types = [
        kept.type if pa.types.is_dictionary(kept.type) else to.type for kept, to in zip(fields, stored, strict=True)
    ]
    schema = core_schema([to.with_type(kind) for to, kind in zip(stored, types, strict=True)])
    for file in files:
        for number, batch in enumerate(file.batches or []):
            columns = [batch.column(kept.name) for kept in fields]
            views = [one if one.type == kind else one.view(kind) for one, kind in zip(columns, types, strict=True)]
            batches.append((pa.RecordBatch.from_arrays(views, schema=schema), file.path, number, file.mapped))
    return _core.FetchSource.of_batches(schema, batches)


def _of_reader(
    files: list[Opened], schema: pa.Schema, stored: pa.Schema, fragments: list[tuple[str, int, int]], verify: bool
) -> "_core.FetchSource":
    places: list[Place | _core.ParquetFooter] = []
    mapped: list[_core.MappedFile] = []
    constants: list[tuple[int, int, _core.ParquetStatistics]] = []
    alone = schema is files[0].schema  # with one file, or with equal files, types are the same objects
    types = files[0].types if alone else dict(zip(schema.names, schema.types, strict=True))
    columns = [
        (name, types[name], value_bytes(kind) + 1) for name, kind in zip(stored.names, stored.types, strict=True)
    ]
    for file in files:
        numbers = ((stored.get_field_index(name), value) for name, value in file.constants.items())
        said = [(number, value) for number, value in numbers if number >= 0]
        for row_group, rows in enumerate(file.rows):
            at = len(mapped) + row_group
            constants += [(at, number, partitions.statistics_of(value, rows)) for number, value in said]
        mapped += [file.mapped] * len(file.rows)
        with arrow_errors(file.path):
            if file.footer is None:
                places += ipc_places(file, columns)
            else:
                places.append(want(file, columns))
    reader = _reader(files, columns, verify)
    return _core.FetchSource.of_reader(core_schema(stored), fragments, places, reader, mapped, constants)
