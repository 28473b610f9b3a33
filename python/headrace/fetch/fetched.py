"""Fetched columns: access on the device, and export to the host."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy.typing as npt
import pyarrow as pa

from headrace import _core, display
from headrace.errors import UsageError
from headrace.fetch import storage
from headrace.fetch.arrow import unknown_column
from headrace.fetch.exports import ArrowExports
from headrace.fetch.source import TableSource
from headrace.fetch.strings import entries_of, strings_of

Progress = Callable[["_core.FetchProgress"], None]

_POLL_SECONDS = 0.1


class StepSpan(NamedTuple):
    """Time span of a step that a thread of a fetch did for a chunk, by time.monotonic()."""

    fragment: int
    column: str
    thread: int
    step: str  # read (into the page cache), decode (to host memory), transfer (to the device)
    begin: float
    end: float


class FetchedTable(ArrowExports):
    """Columns that have been fetched or are in flight. Keeps them in place while it lives."""

    def __init__(self, core: "_core.Fetch | None", source: TableSource, names: list[str], fragments: list[int]) -> None:
        """Created by Table.fetch() and start()."""
        self._core = core
        self._source = source
        self._names = names
        self._positions = {name: position for position, name in enumerate(names)}
        self._fragments = fragments

    @property
    def column_names(self) -> list[str]:
        """Column names in the requested order."""
        return list(self._names)

    @property
    def fragments(self) -> list[int]:
        """Numbers of its fragments in the table."""
        return list(self._fragments)

    @property
    def num_rows(self) -> int:
        """Number of rows of its fragments."""
        return sum(self._source.fragments[number][2] for number in self._fragments)

    @property
    def progress(self) -> "_core.FetchProgress | None":
        """Progress of the fetch, and bytes through each level; None for a fetch without fragments."""
        return None if self._core is None else self._core.progress

    @property
    def threads(self) -> int:
        """Number of threads that make chunks."""
        return 0 if self._core is None else self._core.threads

    def wait(self, progress: Progress | None = None) -> Self:
        """Waits until every chunk has arrived. Raises as Table.fetch() does. Ctrl-C ends the fetch."""
        if self._core is None:
            return self
        try:
            while progress is not None and not self._core.wait_for(_POLL_SECONDS):
                progress(self._core.progress)
        except BaseException:
            self._core.cancel()
            while not self._core.wait_for(_POLL_SECONDS):
                pass  # the pins are dropped before anybody clears the levels again
            raise
        self._core.wait()
        return self

    def timeline(self) -> tuple[list[StepSpan], int]:
        """Waits for the end; returns the time spans of steps, and how many exceeded the number to keep (see start()).

        A transfer span covers all chunks that were sent together.
        """
        if self._core is None:
            return [], 0
        while not self._core.wait_for(_POLL_SECONDS):
            pass  # Ctrl-C is noticed here
        spans, dropped = self._core.timeline()
        names = self._source.stored.names
        return [StepSpan(span[0], names[span[1]], *span[2:]) for span in spans], dropped

    def look(self) -> "_core.ScanReport":
        """Runs a kernel over all fetched columns, like a one-pass query: it finds the least and greatest value of each.

        Raises:
            UsageError: for columns that are not on a device.
        """
        if self._core is None:
            raise UsageError("there are no columns on a device to look at")
        return self._core.look()

    def cancel(self) -> None:
        """Asks the fetch to end early; wait() then raises Error with code cancelled."""
        if self._core is not None:
            self._core.cancel()

    def column(self, name: str) -> "DeviceColumn":
        """A column, by chunks. Waits for the fetch."""
        if name not in self._positions:
            raise unknown_column(name, self._names)
        self._held()
        position = self._positions[name]
        chunks = (
            []
            if self._core is None
            else [self._core.chunk(position, fragment) for fragment in range(len(self._fragments))]
        )
        dictionary = None if self._core is None else self._core.dictionary(position)
        return DeviceColumn(name, self._source, chunks, dictionary)

    def __getitem__(self, name: str) -> "DeviceColumn":
        """The same as column()."""
        return self.column(name)

    def to_arrow(self) -> pa.Table:
        """Copies everything back to the host, in the types of the files."""
        return pa.table({name: self.column(name).to_arrow() for name in self._names})

    def release(self) -> None:
        """Releases the columns now: the caches may reuse their room once no array refers to them."""
        self._core = None
        self._names = []

    def __repr__(self) -> str:
        """Names, rows and fragments."""
        return f"FetchedTable({', '.join(self._names)}; {self.num_rows} rows of {len(self._fragments)} fragments)"

    def _repr_html_(self) -> str:
        """Columns and their types."""
        types = [(name, str(self._source.schema.field(name).type)) for name in self._names]
        return display.table(repr(self), types)

    def _held(self) -> None:
        if self._core is None and self._fragments and not self._names:
            raise UsageError("the columns have been released")


class DeviceColumn:
    """A column of a fetched table: one chunk per fragment, in Arrow's layout."""

    def __init__(
        self,
        name: str,
        source: TableSource,
        chunks: "list[_core.FetchedChunk]",
        dictionary: "_core.StringDictionary | None",
    ) -> None:
        """Created by FetchedTable.column()."""
        self.name = name
        self.chunks = chunks
        self._source = source
        self._dictionary = dictionary

    @property
    def type(self) -> pa.DataType:
        """Type in the files."""
        return self._source.schema.field(self.name).type

    @property
    def storage_type(self) -> pa.DataType:
        """Type on the device."""
        return self._source.stored.field(self.name).type

    def __len__(self) -> int:
        """Number of values, including missing ones."""
        return sum(chunk.length for chunk in self.chunks)

    @property
    def dictionary(self) -> pa.Array | None:
        """The entries that the indices of a column of strings or bytes refer to, so far; None for other columns.

        A new copy each time; with 64-bit offsets if the entries exceed 2 GiB.
        """
        if self._dictionary is None:
            return pa.array([], self.storage_type.value_type) if pa.types.is_dictionary(self.storage_type) else None
        return entries_of(self._dictionary, self.type, self.name)

    def to_arrow(self) -> pa.ChunkedArray:
        """Copies the column back to the host."""
        arrays: list[pa.Array] = []
        for chunk in self.chunks:
            kind = pa.int32() if self._dictionary is not None else self.storage_type
            array = storage.array_of(kind, chunk.length, chunk.offset, chunk.to_host())
            if self._dictionary is not None:
                arrays += strings_of(self._dictionary, array, self.type, self.name).chunks
            else:
                arrays.append(storage.from_storage(array, self.type))
        return pa.chunked_array(arrays, arrays[0].type if arrays else self.type)

    def __repr__(self) -> str:
        """Name, type, and number of values."""
        return f"DeviceColumn({self.name}: {self.type}, {len(self)} values in {len(self.chunks)} chunks)"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Copies the column back to the host, for pyarrow.chunked_array() and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> "npt.NDArray[Any]":
        """The values of a column with one chunk and no missing values, if the host can read them."""
        return display.as_array(self._values(), dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:  # noqa: ANN401
        """The values of a column with one chunk and no missing values."""
        return self._values().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Device of the values."""
        return self._values().__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The values of a column with one chunk, on CUDA devices."""
        return self._values().__cuda_array_interface__

    def _values(self) -> "_core.ChunkArray":
        """The column as one array: it has one chunk, which starts at the array's first value, and no missing values."""
        if len(self.chunks) != 1:
            raise UsageError(f"column '{self.name}' has {len(self.chunks)} chunks: use column.chunks[i].values")
        chunk = self.chunks[0]
        if chunk.offset != 0 or chunk.validity is not None:
            raise UsageError(f"column '{self.name}' may have missing values: use chunks[0].values and .validity")
        return chunk.values
