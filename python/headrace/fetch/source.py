"""The content of a table: its columns as stored and as on a device, and the source of chunks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa

from headrace import _core
from headrace.errors import UsageError
from headrace.fetch import storage
from headrace.fetch.opened import arrow_errors

Place = tuple[list[tuple["_core.MappedFile", int, int]], int]

_VALUE_BYTES = 8  # assumed for a type of unknown width


def require_fetch() -> None:
    """Raises UsageError if this build has no fetches, and therefore no tables."""
    if not _core.built_with_fetch:
        raise UsageError("this build has no fetches: install oneTBB (Debian: libtbb-dev) and build Headrace again")


@cache
def value_bytes(kind: pa.DataType) -> int:
    """Bytes of a value of that type, at least 1."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _VALUE_BYTES


def core_schema(fields: Iterable[pa.Field]) -> pa.Schema:
    """The columns for the core: in the C data interface, a name ends at a zero byte."""
    schema = fields if isinstance(fields, pa.Schema) else pa.schema(list(fields))
    if not any("\0" in name for name in schema.names):
        return schema
    taken: set[str] = set()
    named = []
    for one in schema:
        name = one.name.replace("\0", "\\0")
        while name in taken:
            name += "'"
        taken.add(name)
        named.append(one if name == one.name else one.with_name(name))
    return pa.schema(named)


@dataclass(frozen=True)
class TableSource:
    """Files opened as one table, or a table in memory."""

    core: "_core.FetchSource"
    schema: pa.Schema  # as stored
    stored: pa.Schema  # types on the levels of columns that can be fetched, by their number in core
    fragments: list[tuple[str, int, int]]  # file, row group, rows
    files: list[str] = field(default_factory=list)
    file_bytes: int = 0
    differing: dict[str, str] = field(default_factory=dict)  # columns that differ between files, and the difference
    verifies: bool = False  # whether pages are verified against their checksums
    verifying: "Callable[[], TableSource] | None" = None  # makes a source of the same files that verifies

    def number(self, name: str) -> int:
        """Number of a column in core.

        Raises:
            UsageError: for a column of an unsupported type, or one that differs between the files.
        """
        if name in self.differing:
            raise UsageError(self.differing[name])
        number = int(self.stored.get_field_index(name))
        if number < 0:
            raise UsageError(f"column '{name}' is of type {self.schema.field(name).type}, which is not supported")
        return number


def memory_source(table: pa.Table) -> TableSource:
    """A pyarrow table as a source: columns are taken in place, except strings, which become indices.

    Raises:
        UsageError: for a table without a column that can be fetched.
    """
    require_fetch()
    batches = table.to_batches()  # cut at the same rows in all columns
    stored = storage.storage_schema(table.schema)
    if not stored.names:
        raise UsageError("the table has no column of a type that can be fetched")
    taken = {name: storage.is_view(table.schema.field(name).type) for name in stored.names}
    places: list[Place | _core.ParquetFooter] = [
        ([], 0 if taken[one.name] else batch.num_rows * (value_bytes(one.type) + 1))
        for batch in batches
        for one in stored
    ]

    def read(fragment: int, columns: list[int]) -> pa.RecordBatch:
        with arrow_errors(""):
            arrays = [storage.to_storage(batches[fragment].column(stored.names[column])) for column in columns]
        return pa.RecordBatch.from_arrays(arrays, [str(column) for column in columns])

    fragments = [("", number, batch.num_rows) for number, batch in enumerate(batches)]
    core = _core.FetchSource.of_reader(core_schema(stored), fragments, places, read)
    return TableSource(core, table.schema, stored, fragments)
