"""Tables in files, whose columns are fetched to a device."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from headrace import _core
from headrace.errors import DeviceError, Errc, UsageError
from headrace.fetch.arrow import unknown_column
from headrace.fetch.fetched import FetchedTable, Progress
from headrace.fetch.files import FileSource, open_files

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Fragment:
    """Rows that every column has in one piece: a row group of a Parquet file, a record batch of an IPC file."""

    file: str
    row_group: int
    rows: int


class StoredTable:
    """A table in Parquet or Arrow IPC files, which need not be of one kind but of one schema.

    Opening reads what the files say of themselves, and no column. Close it, or use it in a with statement, to give back
    what its columns take on all levels.
    """

    def __init__(self, source: FileSource, columns: Sequence[str] | None) -> None:
        """Use open()."""
        self._source = source
        self._levels: dict[tuple[str, str], _core.Levels] = {}
        self._used: list[_core.Levels] = []
        self._columns = source.schema.names if columns is None else self._checked(columns, source.schema.names)

    @classmethod
    def open(cls, paths: Paths, columns: Sequence[str] | None = None) -> Self:
        """Opens a file, a pattern such as "taxi-*.parquet", a folder, or several of them.

        `columns` are those that the table has then; by default all.

        Raises:
            UsageError: for what is not there (a column with the nearest names) or not supported.
            DataError: for a file that is damaged or has another schema than the first.
        """
        return cls(open_files(paths), columns)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as the files have them."""
        return pa.schema([self._source.schema.field(name) for name in self._columns])

    @property
    def num_rows(self) -> int:
        """Of all fragments."""
        return self._source.core.rows

    @property
    def files(self) -> list[str]:
        """The files, in order."""
        return list(self._source.files)

    @property
    def file_bytes(self) -> int:
        """What the files take on the disk."""
        return self._source.file_bytes

    @property
    def fragments(self) -> list[Fragment]:
        """The row groups, in order."""
        return [Fragment(*one) for one in self._source.fragments]

    def levels(self, device: "str | _core.Device" = "best", host: str = "pinned") -> "_core.Levels":
        """The caches that fetch() uses where it is given none: one for each device and kind of host memory."""
        name = device if isinstance(device, str) else device.name
        name = _core.Device.parse(name).name
        if (name, host) not in self._levels:
            self._levels[name, host] = _core.Levels(name, host=host)
        return self._levels[name, host]

    def start(
        self,
        columns: Sequence[str] | None = None,
        *,
        device: "str | _core.Device" = "best",
        levels: "_core.Levels | None" = None,
        fragments: Sequence[int] | None = None,
        to: str = "device",
        mode: str = "async",
        threads: int = 0,
        flush_bytes: int = 128 << 20,
        timeline_spans: int = 0,
    ) -> "FetchedTable":
        """Starts to fetch columns and returns at once; see fetch().

        Of what it does when, so many spans are kept for FetchedTable.timeline().
        """
        names = self._checked(columns, self._columns) if columns is not None else self._fetchable()
        chosen = range(len(self._source.fragments)) if fragments is None else fragments
        numbers = [self._number(name) for name in names]
        caches = levels if levels is not None else self.levels(device)
        if caches not in self._used:
            self._used.append(caches)
        # An empty list would be all fragments.
        core = (
            _core.Fetch(
                caches,
                self._source.core,
                numbers,
                list(chosen),
                to=to,
                mode=mode,
                threads=threads,
                flush_bytes=flush_bytes,
                timeline_spans=timeline_spans,
            )
            if chosen
            else None
        )
        return FetchedTable(core, self._source, names, list(chosen))

    def fetch(
        self,
        columns: Sequence[str] | None = None,
        *,
        device: "str | _core.Device" = "best",
        levels: "_core.Levels | None" = None,
        fragments: Sequence[int] | None = None,
        to: str = "device",
        mode: str = "async",
        threads: int = 0,
        flush_bytes: int = 128 << 20,
        progress: Progress | None = None,
    ) -> "FetchedTable":
        """Brings columns to a device and waits until they are there.

        Args:
            columns: by default all of a type that can be fetched.
            device: where to, through caches of the table's own.
            levels: caches to go through instead, which may be shared by tables; `device` is then theirs.
            fragments: by number; by default all.
            to: "device", or "cpu" to stop at the host's memory.
            mode: "async", or "sync" to wait for the copy of each chunk, for comparison.
            threads: that make chunks; 0: one a core, 16 at most.
            flush_bytes: copies are submitted once so much is gathered.
            progress: is called now and then with how far it is.

        Raises:
            UsageError: for a column or fragment that is not there, a type that is not supported, or a chunk that is
                larger than a budget.
            DataError: for a damaged chunk, with its file, row group and column.
            DeviceError: when the columns do not fit the device together (code out of memory); stream() them then.
        """
        fetched = self.start(
            columns,
            device=device,
            levels=levels,
            fragments=fragments,
            to=to,
            mode=mode,
            threads=threads,
            flush_bytes=flush_bytes,
        )
        return fetched.wait(progress)

    def stream(
        self,
        columns: Sequence[str] | None = None,
        *,
        window: int | None = None,
        device: "str | _core.Device" = "best",
        levels: "_core.Levels | None" = None,
        **options: Any,  # noqa: ANN401
    ) -> Iterator["FetchedTable"]:
        """Brings columns to a device window by window, for one pass over a table that is larger than the device.

        While the caller has one window, the next is on its way: two windows have to fit. What is taken from a window
        must not be used once the next is asked for.

        Args:
            columns: as for fetch(), as are the options.
            window: fragments in one; by default as many as fill two fifths of the device's budget.
            device: as for fetch().
            levels: as for fetch().
            options: those of start() that are left.
        """
        caches = levels if levels is not None else self.levels(device)
        names = self._checked(columns, self._columns) if columns is not None else self._fetchable()
        count = len(self._source.fragments)
        if window is not None and window < 1:
            raise UsageError(f"a window has 1 fragment or more, not {window}")
        size = window if window is not None else self._window(names, caches)
        windows = [range(first, min(first + size, count)) for first in range(0, count, size)]
        ahead: FetchedTable | None = None
        for position, fragments in enumerate(windows):
            here = ahead if ahead is not None else self.start(names, levels=caches, fragments=fragments, **options)
            here.wait()
            ahead = None
            if position + 1 < len(windows):
                ahead = self.start(names, levels=caches, fragments=windows[position + 1], **options)
            yield here
            here.release()

    def close(self) -> None:
        """Gives back what the table's chunks take, on every level. What was fetched and is still held stays."""
        for caches in self._used:
            caches.forget(self._source.core)
        self._used.clear()
        self._levels.clear()

    def __enter__(self) -> Self:
        """The table itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __repr__(self) -> str:
        """How large it is."""
        return f"StoredTable({len(self.files)} files, {len(self.fragments)} fragments, {self.num_rows} rows)"

    @staticmethod
    def _checked(names: Sequence[str], known: list[str]) -> list[str]:
        if isinstance(names, str):
            raise UsageError(f"columns are a list of names, such as ['{names}']")
        for name in names:
            if name not in known:
                raise unknown_column(name, known)
        if not names:
            raise UsageError("name at least one column")
        return list(dict.fromkeys(names))

    def _fetchable(self) -> list[str]:
        return [name for name in self._columns if name in self._source.stored.names]

    def _number(self, name: str) -> int:
        number = int(self._source.stored.get_field_index(name))
        if number < 0:
            raise UsageError(
                f"column '{name}' is of type {self._source.schema.field(name).type}, which is not supported"
            )
        return number

    def _window(self, names: list[str], caches: "_core.Levels") -> int:
        """Fragments that fill two fifths of the device's budget, by their rows."""
        row_bytes = sum(_row_bytes(self._source.stored.field(name).type) for name in names)
        rows = max((one[2] for one in self._source.fragments), default=1)
        share = caches.statistics("device").budget_bytes * 2 // 5
        return max(1, int(share / max(1.0, row_bytes * rows)))


def _row_bytes(kind: pa.DataType) -> float:
    width = 32 if pa.types.is_dictionary(kind) else kind.bit_width
    return (width + 1) / 8


def is_out_of_device_memory(error: BaseException) -> bool:
    """Whether columns did not fit the device, so that they can only be streamed."""
    return isinstance(error, DeviceError) and error.code == Errc.out_of_memory
