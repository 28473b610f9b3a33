"""A file of an open table: where its bytes are, and its readers."""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from headrace import _core
from headrace.errors import DataError, Errc, Error, UsageError
from headrace.errors import SystemError as HeadraceSystemError

# Limit for all tables together: each open file takes a descriptor besides that of its mapping.
_OPEN_MAX = 64


@dataclass(frozen=True)
class StreamPart:
    """Place of a batch in an IPC stream, and what to read before it: ranges of (offset, bytes), the batch's last."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Opened:
    """A file: its mapping, its schema, and the rows of each row group.

    Bytes to be decoded are read by position, not through the mapping, because a decoder does not expect them to change.
    Only columns of IPC files that go to the device in place are taken from the mapping.
    """

    mapped: "_core.MappedFile"
    buffer: pa.Buffer
    schema: pa.Schema
    rows: list[int]
    metadata: Any = None  # for Parquet
    footer: "_core.ParquetFooter | None" = None  # for Parquet
    int96: frozenset[str] = frozenset()  # for Parquet: timestamp columns stored in 96 bits
    batches: list[pa.RecordBatch] | None = None  # for IPC whose batches are in the mapping in place
    parts: list[StreamPart] | None = None  # for an IPC stream
    constants: dict[str, pa.Scalar] = field(default_factory=dict)  # for partitions: columns that are not in the file
    _file: Any = None
    _idle: dict[Hashable, list[Any]] = field(default_factory=dict)  # readers that no thread is using

    @property
    def path(self) -> str:
        """The path as shown in errors."""
        return self.mapped.path

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """Types of the file's own columns, by name."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    @property
    def whole_schema(self) -> pa.Schema:
        """The schema including partition columns."""
        beside = [pa.field(name, value.type) for name, value in self.constants.items()]
        return pa.schema([*self.schema, *beside]) if beside else self.schema

    def by_position(self) -> Any:  # noqa: ANN401
        """The open file for Arrow to read from any thread, even if its name now refers to another file."""
        file = self._file
        if file is None:
            file = self._file = _open_again(self.mapped)
        _recently_used(self)
        return file

    @contextmanager
    def reader(self, key: Hashable, make: Callable[[Any], Any]) -> Iterator[Any]:
        """A reader for exclusive use by the caller; idle ones are reused, else make(file) creates one for that key."""
        file = self.by_position()
        try:
            one = self._idle[key].pop()
        except LookupError:
            one = make(file)
        yield one
        if self._file is file:
            self._idle.setdefault(key, []).append(one)

    def let_go(self) -> None:
        """Closes the file, except for its mapping, once no reader is in use; it is reopened on demand."""
        self._file = None
        self._idle.clear()


_recent: OrderedDict[int, "weakref.ref[Opened]"] = OrderedDict()
_recent_lock = threading.Lock()


def _recently_used(file: Opened) -> None:
    with _recent_lock:
        _recent[id(file)] = weakref.ref(file)
        _recent.move_to_end(id(file))
        oldest = _recent.popitem(last=False)[1]() if len(_recent) > _OPEN_MAX else None
    if oldest is not None:
        oldest.let_go()


def _open_again(mapped: "_core.MappedFile") -> Any:  # noqa: ANN401
    try:
        return pa.OSFile(f"/proc/self/fd/{mapped.descriptor}")
    except FileNotFoundError:  # there is no /proc: open it by name, if that is still the same file
        file = pa.OSFile(mapped.path)
    named, ours = os.stat(mapped.path), os.fstat(mapped.descriptor)  # noqa: PTH116 - as for the descriptor
    if (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino):
        raise DataError(f"{mapped.path} has been replaced since it was opened: open it again")
    return file


@contextmanager
def arrow_errors(where: str) -> Iterator[None]:
    """Converts any exception of Arrow to one of Headrace's errors that says where it happened."""
    try:
        yield
    except Error:
        raise
    except MemoryError as error:
        raise Error(_text(where, error), Errc.out_of_memory) from error
    except NotImplementedError as error:
        raise UsageError(_text(where, error), Errc.not_supported) from error
    except (pa.ArrowException, OSError, ValueError, EOFError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno:
            raise HeadraceSystemError(_text(where, error), Errc.system, error.errno) from error
        raise DataError(_text(where, error)) from error


def _text(where: str, error: BaseException) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, LookupError | TypeError | AttributeError) and not isinstance(error, pa.ArrowException):
        said = f"pyarrow does not understand it: {type(error).__name__} {said}"
    return f"{where}: {said}" if where else said  # the core adds the place of a chunk
