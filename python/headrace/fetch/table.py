"""Tables, in files or in memory, that are fetched to a device and scanned there."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from headrace import _core, display
from headrace.errors import DeviceError, Errc, UsageError
from headrace.fetch.arrow import ArrowStream, ScanColumn, as_table, column_type, unknown_column
from headrace.fetch.fetched import FetchedTable, Progress
from headrace.fetch.files import open_files
from headrace.fetch.paths import PathLike
from headrace.fetch.query import Scannable, check_count
from headrace.fetch.source import TableSource, memory_source, require_fetch

Paths = PathLike | Iterable[PathLike]

_log = logging.getLogger("headrace.fetch")
_NAMED_MAX = 5  # columns in one message


@dataclass(frozen=True)
class Fragment:
    """Rows that every column has in one piece: a row group of a Parquet file, a record batch."""

    file: str
    row_group: int
    rows: int


class Table(Scannable):
    """A table whose columns are fetched to a device when a query names them, and scanned there.

    They stay in the caches of its levels, on each level while there is room. Queries of several threads take turns.
    Close it, or use it in a with statement, to give back what its columns take.
    """

    def __init__(
        self,
        source: TableSource,
        columns: Sequence[str] | None,
        levels: "_core.Levels",
        options: "_core.FetchOptions | None",
    ) -> None:
        """Use open() or from_arrow()."""
        self._source = source
        self._columns = source.schema.names if columns is None else self._checked(columns, source.schema.names)
        for name in () if columns is None else self._columns:
            if name in source.differing:
                raise UsageError(source.differing[name])
        self._said = False
        self._verified: TableSource | None = None
        self._found: dict[str, ScanColumn] = {}
        self._core = _core.FetchTable(levels, source.core, options or _core.FetchOptions())
        self._closed = False

    @classmethod
    def open(
        cls,
        paths: Paths,
        columns: Sequence[str] | None = None,
        *,
        device: "str | _core.Device" = "best",
        levels: "_core.Levels | None" = None,
        options: "_core.FetchOptions | None" = None,
        hive: bool = True,
    ) -> Self:
        """Opens a file, a pattern such as "taxi-*.parquet", a folder, or several of them.

        What the files say of themselves is read, and no column. They may be Parquet, Arrow IPC files and streams mixed.
        Their schemas may differ in the order, the width and the nullability of columns: the table's types hold what all
        files have. A column that differs in any other way is an error when it is asked for.

        Args:
            paths: the files.
            columns: those that the table has then; by default all.
            hive: whether folders called name=value that enclose the files are columns, as of partitions.
            device: where columns go, through levels of the table's own.
            levels: caches to go through instead, which tables may share; `device` is then theirs.
            options: how columns are fetched.

        Raises:
            UsageError: for what is not there (a column with the nearest names) or not supported, and for columns that
                the files do not have alike.
            DataError: for a file that is damaged.
        """
        verify = options is not None and options.verify_checksums
        source = open_files(paths, hive=hive, verify_checksums=verify)
        return cls(source, columns, levels if levels is not None else _core.Levels(device), options)

    @classmethod
    def from_arrow(
        cls,
        source: ArrowStream,
        device: "str | _core.Device" = "best",
        *,
        fragment_rows: int | None = None,
        levels: "_core.Levels | None" = None,
        options: "_core.FetchOptions | None" = None,
    ) -> Self:
        """A table of pyarrow's, DuckDB's, Polars' or any other that the Arrow PyCapsule interface hands over.

        In its own fragments or in some of `fragment_rows` rows; the rest as for open(). Its columns are taken to the
        device from where they lie, without another copy on the host; of a stream, such as DuckDB's, once all has come.

        Raises:
            UsageError: for what is no Arrow data, two columns of one name, and fragments of no rows.
        """
        require_fetch()
        table = as_table(source)
        if len(set(table.column_names)) < table.num_columns:
            raise UsageError(f"columns need distinct names, not {', '.join(table.column_names)}")
        if fragment_rows is not None:
            check_count("a fragment needs 1 row or more", fragment_rows, 1)
            batches = table.combine_chunks().to_batches(max_chunksize=fragment_rows)
            table = pa.Table.from_batches(batches, table.schema)
        caches = levels if levels is not None else _core.Levels(device, host="pageable")
        return cls(memory_source(table), None, caches, options)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as they are stored."""
        return pa.schema([self._source.schema.field(name) for name in self._columns])

    @property
    def left_out(self) -> dict[str, pa.DataType]:
        """The columns that are left out where none are named, and their types, which cannot be fetched."""
        known = {*self._source.stored.names, *self._source.differing}
        return {name: self._source.schema.field(name).type for name in self._columns if name not in known}

    @property
    def num_rows(self) -> int:
        """The rows of all fragments."""
        return self._source.core.rows

    @property
    def files(self) -> list[str]:
        """The files, in order; none for a table in memory."""
        return list(self._source.files)

    @property
    def file_bytes(self) -> int:
        """What the files take on the disk."""
        return self._source.file_bytes

    @property
    def fragments(self) -> list[Fragment]:
        """The row groups, in order."""
        return [Fragment(*one) for one in self._source.fragments]

    @property
    def core(self) -> "_core.FetchTable":
        """What runs queries.

        Raises:
            UsageError: for a table that has been closed.
        """
        if self._closed:
            raise UsageError("the table has been closed", Errc.stopped)
        return self._core

    @property
    def levels(self) -> "_core.Levels":
        """The caches that columns come through."""
        return self._core.levels

    @property
    def device(self) -> "_core.Device":
        """Where columns go."""
        return self.levels.device

    def start(
        self,
        columns: Sequence[str] | None = None,
        *,
        fragments: Sequence[int] | None = None,
        to: str = "device",
        options: "_core.FetchOptions | None" = None,
    ) -> FetchedTable:
        """Starts to fetch columns and returns at once; see fetch()."""
        names = self._checked(columns, self._columns) if columns is not None else self.fetchable()
        numbers = [self._source.number(name) for name in names]
        core_options = self.core.options  # raises where the table is closed
        count = len(self._source.fragments)
        if fragments is not None and not isinstance(fragments, Iterable):
            raise UsageError(f"fragments must be a list of numbers, not {fragments!r}")
        chosen = list(range(count) if fragments is None else fragments)
        check_fragments(chosen, count)
        how = options if options is not None else core_options
        source = self._verifying() if how.verify_checksums else self._source
        # An empty list would be all fragments.
        core = _core.Fetch(self.levels, source.core, numbers, chosen, to=to, options=how) if chosen else None
        return FetchedTable(core, source, names, chosen)

    def fetch(
        self,
        columns: Sequence[str] | None = None,
        *,
        fragments: Sequence[int] | None = None,
        to: str = "device",
        options: "_core.FetchOptions | None" = None,
        progress: Progress | None = None,
    ) -> FetchedTable:
        """Brings columns to the device and waits until they are there: for kernels of one's own.

        Args:
            columns: by default all of a type that can be fetched; a message in the log tells of others.
            fragments: by number; by default all.
            to: "device", or "cpu" to stop at the host's memory.
            options: how; by default the table's.
            progress: is called now and then with how far it is.

        Raises:
            UsageError: for a column or fragment that is not there, a type that is not supported, or a chunk that is
                larger than a budget.
            DataError: for a damaged chunk, with its file, row group and column.
            DeviceError: when the columns do not fit the device together (code out of memory); stream() them then.
        """
        return self.start(columns, fragments=fragments, to=to, options=options).wait(progress)

    def stream(
        self,
        columns: Sequence[str] | None = None,
        *,
        window: int | None = None,
        options: "_core.FetchOptions | None" = None,
    ) -> Iterator[FetchedTable]:
        """Brings columns to the device window by window: for one pass over a table that is larger than the device.

        While the caller has one window, the next is on its way: two windows have to fit. What is taken from a window
        must not be used once the next is asked for. Queries do so by themselves.

        Args:
            columns: as for fetch().
            window: fragments in one; by default as many as fill two fifths of the device's budget.
            options: as for fetch().
        """
        names = self._checked(columns, self._columns) if columns is not None else self.fetchable()
        if window is not None and window < 1:
            raise UsageError(f"a window needs 1 fragment or more, not {window}")
        count = len(self._source.fragments)
        windows: Sequence[Sequence[int]]
        if window is None:
            windows = self.core.windows([self._source.number(name) for name in names])
        else:
            windows = [range(first, min(first + window, count)) for first in range(0, count, window)]
        ahead: FetchedTable | None = None
        for position, fragments in enumerate(windows):
            here = ahead if ahead is not None else self.start(names, fragments=fragments, options=options)
            here.wait()
            ahead = None
            if position + 1 < len(windows):
                ahead = self.start(names, fragments=windows[position + 1], options=options)
            yield here
            here.release()

    def find(self, name: str) -> ScanColumn:
        """A column as a scan has it.

        Raises:
            UsageError: for a column that is not there, with the nearest names, or of a type that is not supported.
        """
        if name in self._found:
            return self._found[name]
        if name not in self._columns:
            raise unknown_column(name, self._columns)
        number = self._source.number(name)
        type_ = column_type(self._source.stored.field(number).type)
        assert type_ is not None  # whatever can be fetched can be scanned
        found = ScanColumn(number, name, type_, self._source.schema.field(name).type)
        self._found[name] = found
        return found

    def fetchable(self) -> list[str]:
        """The columns that stand for all where none are named; the log tells once of those that are left out.

        Raises:
            UsageError: for a column that the files do not have alike.
        """
        for name in self._columns:
            if name in self._source.differing:
                raise UsageError(f"{self._source.differing[name]}; name the columns that you want")
        stored = set(self._source.stored.names)
        left = self.left_out
        if left and not self._said:
            self._said = True
            named = [f"'{name}' ({kind})" for name, kind in left.items()]
            more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
            where = f"{self.files[0]}: " if self.files else ""
            _log.warning("%sleft out what cannot be fetched: %s%s", where, ", ".join(named[:_NAMED_MAX]), more)
        return [name for name in self._columns if name in stored]

    def close(self) -> None:
        """Gives back what the table's chunks and dictionaries take, on every level, and answers no more queries.

        What was fetched and is still held stays.
        """
        self._closed = True
        self._core.close()
        if self._verified is not None:
            self._verified.core.close()
            self.levels.forget(self._verified.core)

    def __enter__(self) -> Self:
        """The table itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __repr__(self) -> str:
        """How large it is."""
        return f"Table({len(self.files)} files, {len(self.fragments)} fragments, {self.num_rows} rows)"

    def _repr_html_(self) -> str:
        """Its columns and their types."""
        return display.table(repr(self), ((field.name, str(field.type)) for field in self.schema))

    def _table(self) -> "Table":
        return self

    @staticmethod
    def _checked(names: Sequence[str], known: list[str]) -> list[str]:
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise UsageError(f"columns must be a list of names, such as ['{names}']")
        names = list(names)
        check_names(names)
        if not names:
            raise UsageError("name at least one column")
        there = set(known)
        unknown = next((name for name in names if name not in there), None)
        if unknown is not None:
            raise unknown_column(unknown, known)
        return list(dict.fromkeys(names))

    def _verifying(self) -> TableSource:
        """The same files, of which every page is verified: chunks that came without are not taken for it."""
        if self._source.verifies or self._source.verifying is None:
            return self._source
        if self._verified is None:
            self._verified = self._source.verifying()
        return self._verified


def check_names(names: Iterable[object]) -> None:
    """Raises UsageError for a column that is not named by a string."""
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"a column must be named by a string, not by {name!r}")


def check_fragments(chosen: Iterable[object], count: int) -> None:
    """Raises UsageError for a fragment that is none of so many."""
    for one in chosen:
        if not isinstance(one, int) or not 0 <= one < count:
            raise UsageError(f"there is no fragment {one!r} of {count}")


def is_out_of_device_memory(error: BaseException) -> bool:
    """Whether columns did not fit the device, so that they can only be streamed."""
    return isinstance(error, DeviceError) and error.code == Errc.out_of_memory
