"""A file of a table while the table is open: where its bytes are, and the readers of them."""

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

# The limit of all tables together: each takes a descriptor beside that of its mapping.
_OPEN_MAX = 64


@dataclass(frozen=True)
class StreamPart:
    """Where an IPC stream has a batch, and what is read before it: ranges of (offset, bytes), the batch's last."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Opened:
    """One file: its mapping, its schema, and the rows of each of its row groups.

    Bytes that are decoded are read by position, not through the mapping: a decoder does not expect them to change under
    it. Only columns of IPC files that lie in the mapping as they go to the device are taken from there.
    """

    mapped: "_core.MappedFile"
    buffer: pa.Buffer
    schema: pa.Schema
    rows: list[int]
    metadata: Any = None  # of Parquet
    footer: "_core.ParquetFooter | None" = None  # of Parquet
    int96: frozenset[str] = frozenset()  # of Parquet: columns of timestamps that are stored so
    batches: list[pa.RecordBatch] | None = None  # of IPC that lies in the mapping as it is
    parts: list[StreamPart] | None = None  # of an IPC stream
    constants: dict[str, pa.Scalar] = field(default_factory=dict)  # of partitions: columns that are not in the file
    _file: Any = None
    _idle: dict[Hashable, list[Any]] = field(default_factory=dict)  # readers that no thread uses

    @property
    def path(self) -> str:
        """As errors name it."""
        return self.mapped.path

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The types of its own columns, by name."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    @property
    def whole_schema(self) -> pa.Schema:
        """With the columns of its partition."""
        beside = [pa.field(name, value.type) for name, value in self.constants.items()]
        return pa.schema([*self.schema, *beside]) if beside else self.schema

    def by_position(self) -> Any:  # noqa: ANN401
        """The open file, whatever its name stands for by now, as Arrow reads it from any thread."""
        file = self._file
        if file is None:
            file = self._file = _open_again(self.mapped)
        _recently_used(self)
        return file

    @contextmanager
    def reader(self, key: Hashable, make: Callable[[Any], Any]) -> Iterator[Any]:
        """A reader that no other thread uses, of those that make(file) gives for that key."""
        file = self.by_position()
        try:
            one = self._idle[key].pop()
        except LookupError:
            one = make(file)
        yield one
        if self._file is file:
            self._idle.setdefault(key, []).append(one)

    def let_go(self) -> None:
        """Closes the file, but for its mapping, once no reader is in use: it is opened again when it is needed."""
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
    except FileNotFoundError:  # there is no /proc: then by its name, if that is still the same file
        file = pa.OSFile(mapped.path)
    named, ours = os.stat(mapped.path), os.fstat(mapped.descriptor)  # noqa: PTH116 - as for the descriptor
    if (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino):
        raise DataError(f"{mapped.path} has been replaced since it was opened: open it again")
    return file


@contextmanager
def arrow_errors(where: str) -> Iterator[None]:
    """Makes one of Headrace's errors, which says where, of whatever Arrow raises."""
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
    return f"{where}: {said}" if where else said  # the core says where a chunk is
