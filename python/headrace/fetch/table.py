"""Tables, in files or in memory, that are fetched to a device and queried there."""

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
_NAMED_MAX = 5  # columns per message


@dataclass(frozen=True)
class Fragment:
    """Rows that every column stores in one piece: a row group of a Parquet file, or a record batch."""

    file: str
    row_group: int
    rows: int


class Table(Scannable):
    """A table whose columns are fetched to a device when a query uses them, and scanned there.

    Columns stay in the caches of the table's levels while there is room. Queries of several threads take turns. Close
    the table, or use it in a with statement, to release the memory of its columns.
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

        Only metadata is read, no column. The files may mix Parquet, Arrow IPC files and streams. Their schemas may
        differ in the order, width and nullability of columns: the table's types hold all values of all files. Any other
        difference is an error when the column is requested.

        Args:
            paths: files of the table.
            columns: columns of the table; default: all.
            hive: whether enclosing folders named name=value, as in partitioned datasets, are columns.
            device: destination of columns, through levels that belong to the table.
            levels: caches to use instead, which tables may share; `device` is then theirs.
            options: options of the fetch.

        Raises:
            UsageError: for files or columns that do not exist (with the nearest column names) or are not supported, and
                for columns that differ between the files.
            DataError: for a damaged file.
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
        """Makes a table from data of pyarrow, DuckDB, Polars or any other provider of the Arrow PyCapsule interface.

        The table keeps the data's fragments, or has fragments of `fragment_rows` rows; the other arguments are as for
        open(). Columns go to the device without another copy on the host; a stream, such as DuckDB's, is first read
        completely.

        Raises:
            UsageError: for an object without Arrow data, two columns of one name, and fragments of no rows.
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
        """Names and types of the columns as stored."""
        return pa.schema([self._source.schema.field(name) for name in self._columns])

    @property
    def left_out(self) -> dict[str, pa.DataType]:
        """Columns that cannot be fetched, and their types; they are left out when no columns are named."""
        known = {*self._source.stored.names, *self._source.differing}
        return {name: self._source.schema.field(name).type for name in self._columns if name not in known}

    @property
    def num_rows(self) -> int:
        """Number of rows of all fragments."""
        return self._source.core.rows

    @property
    def files(self) -> list[str]:
        """The files, in order; none for a table in memory."""
        return list(self._source.files)

    @property
    def file_bytes(self) -> int:
        """Size of the files on disk."""
        return self._source.file_bytes

    @property
    def fragments(self) -> list[Fragment]:
        """The row groups in order."""
        return [Fragment(*one) for one in self._source.fragments]

    @property
    def core(self) -> "_core.FetchTable":
        """The core's table, which runs queries.

        Raises:
            UsageError: for a closed table.
        """
        if self._closed:
            raise UsageError("the table has been closed", Errc.stopped)
        return self._core

    @property
    def levels(self) -> "_core.Levels":
        """The caches that columns pass through."""
        return self._core.levels

    @property
    def device(self) -> "_core.Device":
        """Destination of the columns."""
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
        core_options = self.core.options  # raises if the table is closed
        count = len(self._source.fragments)
        if fragments is not None and not isinstance(fragments, Iterable):
            raise UsageError(f"fragments must be a list of numbers, not {fragments!r}")
        chosen = list(range(count) if fragments is None else fragments)
        check_fragments(chosen, count)
        how = options if options is not None else core_options
        source = self._verifying() if how.verify_checksums else self._source
        # The core would take an empty list for all fragments.
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
        """Fetches columns to the device and waits for them, for custom kernels.

        Args:
            columns: default: all of a type that can be fetched; the log lists the others.
            fragments: numbers of fragments; default: all.
            to: "device", or "cpu" to stop in host memory.
            options: options of the fetch; default: the table's.
            progress: called from time to time with the progress.

        Raises:
            UsageError: for an unknown column or fragment, an unsupported type, or a chunk larger than a budget.
            DataError: for a damaged chunk, naming its file, row group and column.
            DeviceError: when the columns together do not fit on the device (code out of memory); use stream() then.
        """
        return self.start(columns, fragments=fragments, to=to, options=options).wait(progress)

    def stream(
        self,
        columns: Sequence[str] | None = None,
        *,
        window: int | None = None,
        options: "_core.FetchOptions | None" = None,
    ) -> Iterator[FetchedTable]:
        """Fetches columns to the device window by window, for one pass over a table larger than the device.

        While the caller has one window, the next is in flight, so two windows have to fit. Data of a window must not be
        used after the next one is requested. Queries stream automatically.

        Args:
            columns: as for fetch().
            window: fragments per window; default: as many as fill two fifths of the device's budget.
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
        """A column as a scan sees it.

        Raises:
            UsageError: for an unknown column, with the nearest names, or one of an unsupported type.
        """
        if name in self._found:
            return self._found[name]
        if name not in self._columns:
            raise unknown_column(name, self._columns)
        number = self._source.number(name)
        type_ = column_type(self._source.stored.field(number).type)
        assert type_ is not None  # any column that can be fetched can be scanned
        found = ScanColumn(number, name, type_, self._source.schema.field(name).type)
        self._found[name] = found
        return found

    def fetchable(self) -> list[str]:
        """All columns that can be fetched, for when none are named; the log lists once those that are left out.

        Raises:
            UsageError: for a column that differs between the files.
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
        """Releases the memory of the table's chunks and dictionaries on every level, and refuses further queries.

        Fetched columns that are still held stay valid.
        """
        self._closed = True
        self._core.close()
        if self._verified is not None:
            self._verified.core.close()
            self.levels.forget(self._verified.core)

    def __enter__(self) -> Self:
        """Returns the table."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the table."""
        self.close()

    def __repr__(self) -> str:
        """Number of files, fragments and rows."""
        return f"Table({len(self.files)} files, {len(self.fragments)} fragments, {self.num_rows} rows)"

    def _repr_html_(self) -> str:
        """Columns and their types."""
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
        """A source of the same files that verifies every page: chunks read without verification do not count."""
        if self._source.verifies or self._source.verifying is None:
            return self._source
        if self._verified is None:
            self._verified = self._source.verifying()
        return self._verified


def check_names(names: Iterable[object]) -> None:
    """Raises UsageError for a column name that is not a string."""
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"a column must be named by a string, not by {name!r}")


def check_fragments(chosen: Iterable[object], count: int) -> None:
    """Raises UsageError for a fragment that does not exist."""
    for one in chosen:
        if not isinstance(one, int) or not 0 <= one < count:
            raise UsageError(f"there is no fragment {one!r} of {count}")


def is_out_of_device_memory(error: BaseException) -> bool:
    """Whether the error says that columns do not fit on the device, so that they can only be streamed."""
    return isinstance(error, DeviceError) and error.code == Errc.out_of_memory
