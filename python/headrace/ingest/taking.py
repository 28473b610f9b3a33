"""Taking what a receiver delivers: frames are counted, hashed, or written to files, a stream each."""

import errno
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headrace import outputs
from headrace._core import Frame, FramePart, StreamEnded, StreamOpened
from headrace.errors import MissingFileError, SystemError, UsageError  # noqa: A004
from headrace.ingest.body import Body
from headrace.ingest.gaps import present

_ALL_OF_IT = Body.all_of_it()
_PIECE_BYTES = 4 << 20  # between two looks at signals and clocks
_SHORT_BYTES = 4 << 10  # what copying costs less than another call
_FILES_MOST = 256  # open at the same time: a process may have some 1,000, and a capture holds more streams

OUT_FILES_MAX = 10_000
KEPT_STREAMS = 10_000

Delivery = StreamOpened | Frame | FramePart | StreamEnded


class _QuotaError(OSError):
    """More files or bytes than there may be."""


def _first_file(path: Path) -> BinaryIO:
    """The file of the first stream, open.

    Raises:
        UsageError: for a folder, and for standard output and error: what a command prints would be within the data.
        SystemError: naming it, when it cannot be written.
    """
    if outputs.is_stream(path, 1, 2):
        raise UsageError(f"{path} is where the figures are printed: give a file or a FIFO for the data")
    try:
        return path.open("wb")
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a file to write") from None
    except FileNotFoundError:
        folder = outputs.shown_folder(path)
        raise MissingFileError(f"there is no folder {folder} to write {path.name} to") from None
    except OSError as error:
        raise SystemError(f"writing {path}: {error.strerror}", native=error.errno or 0) from error


def _opened_again(path: Path) -> BinaryIO:
    """A file that was written before, to write on at its end.

    One that was removed meanwhile is not made anew: it would lack what it had.

    Raises:
        OSError: when it is not there, or cannot be written.
    """
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags & ~os.O_CREAT))


@dataclass(slots=True)
class TakenStream:
    """One stream so far."""

    stream: int
    peer: str
    destination: str = ""
    """Where it goes to, as far as that is known."""
    bytes: int = 0
    frames: int = 0
    missing_bytes: int = 0
    behind: int = 0
    """Bytes of the last frame behind its last datagram, which was short: they count where another frame follows."""
    short_packets: int = 0
    """Datagrams that came with less payload than their place has; zeros are behind them."""
    end: str = "cut"
    """Why it ended: finished, reset, timed out; cut where the receiver went first; incomplete where its sender had
    promised more."""
    path: Path | None = None
    error: str | None = None
    """Why not all of it was written; the stream was reset."""
    hash: Any = field(default=None, repr=False)
    file: BinaryIO | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        made: dict[str, Any] = {
            "stream": self.stream,
            "peer": self.peer,
            "destination": self.destination,
            "bytes": self.bytes,
            "frames": self.frames,
            "missing_bytes": self.missing_bytes,
            "end": self.end,
        }
        if self.short_packets:
            made["short_packets"] = self.short_packets
        if self.hash is not None:
            made["sha256"] = self.hash.hexdigest()
        if self.path is not None:
            made["file"] = str(self.path)
        if self.error is not None:
            made["error"] = self.error
        return made


@dataclass
class Totals:
    """All streams so far, also those that are forgotten."""

    streams: int = 0
    bytes: int = 0
    missing_bytes: int = 0
    failed: int = 0
    """Streams of which not all was written."""
    error: str | None = None
    """Why not, of the first of them."""
    ends: dict[str, int] = field(default_factory=dict)
    """How many ended by each reason."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "streams": self.streams,
            "bytes": self.bytes,
            "missing_bytes": self.missing_bytes,
            "failed": self.failed,
            "ends": dict(self.ends),
        }


class Taker:
    """Takes deliveries, in the order in which they come.

    Args:
        sha256: hash each stream, as its frames hold it.
        out: a file that gets the first stream's bytes; the others' go to the same name with .1, .2, ... behind it. A
            file is opened when a stream's first byte comes: one without any has none. What is there is written over.
        files_max, bytes_max: of all files together. A stream that needs more fails.
        reset: called with the number of a stream that fails, because of these limits or of its file, such as one on a
            disk that is full: others go on. Where nothing can be reset, None: then it is raised.
        keep: streams that have ended are kept so many, the last ones.
        packet_bytes: of a datagram in a frame, 0 for TCP: a stream ends behind the last byte that came.
        growth: how many times as large as the stream its frames are, by their conversion of items of `item` bytes.
        body: where the data of a stream lies, which alone is taken: as Answering.body. Streams without any are none.
            None: all of every stream.
        look: called now and then while a large frame is worked on.

    Raises:
        OSError: for `out`, where it cannot be written.
    """

    def __init__(
        self,
        *,
        sha256: bool = False,
        out: Path | None = None,
        files_max: int = OUT_FILES_MAX,
        bytes_max: int | None = None,
        reset: Callable[[int], None] | None = None,
        keep: int = KEPT_STREAMS,
        packet_bytes: int = 0,
        growth: int = 1,
        item: int = 1,
        body: Callable[[int], Body | None] | None = None,
        look: Callable[[], object] = lambda: None,
    ) -> None:
        self.streams: dict[int, TakenStream] = {}
        self.totals = Totals()
        self.frames = 0
        self.ended = 0
        self._sha256 = sha256
        self._out = out
        self._files = 0
        self._files_max = files_max
        self._bytes_left = bytes_max
        self._reset = reset
        self._keep_max = keep
        self._kept: deque[int] = deque()
        self._packet_bytes = packet_bytes
        self._growth = growth
        self._item = item
        self._body = body or (lambda _: _ALL_OF_IT)
        self._look = look
        self._open_now: dict[int, TakenStream] = {}
        """Streams whose file is open, the one that was written to last at the end."""
        # What cannot be written is known before anything is received. It stays open, for the reader of a FIFO.
        self._first = None if out is None else _first_file(out)

    def take(self, delivery: Delivery) -> None:
        """Does what is to be done with it, and lets go of it."""
        body = self._body(delivery.stream)
        if body is None or isinstance(delivery, FramePart):
            if not isinstance(delivery, StreamOpened | StreamEnded):
                delivery.release()
            return
        stream = self._stream(delivery)
        if isinstance(delivery, StreamOpened):
            stream.destination = delivery.destination
        elif isinstance(delivery, StreamEnded):
            self._end(stream, _end_of(delivery, body))
        elif isinstance(delivery, Frame):
            self._take_frame(stream, delivery, body)
            stream.frames += 1
            self.frames += 1
            delivery.release()

    def close(self) -> None:
        """Closes the files."""
        for stream in self.streams.values():
            self._close(stream)
        if self._first is not None:
            self._first.close()

    def _end(self, stream: TakenStream, reason: str) -> None:
        stream.end = reason
        self.ended += 1
        self._close(stream)
        self.totals.ends[reason] = self.totals.ends.get(reason, 0) + 1
        self._kept.append(stream.stream)
        if len(self._kept) > self._keep_max:
            del self.streams[self._kept.popleft()]

    def _stream(self, delivery: Delivery) -> TakenStream:
        found = self.streams.get(delivery.stream)
        if found is None:
            found = TakenStream(delivery.stream, delivery.peer or "")
            if self._sha256:
                found.hash = hashlib.sha256()
            self.streams[delivery.stream] = found
            self.totals.streams += 1
        return found

    def _file(self, stream: TakenStream) -> BinaryIO:
        """The file of a stream, open; another's may be closed until it is written to again."""
        self._open_now.pop(stream.stream, None)
        if stream.file is None:
            if len(self._open_now) >= _FILES_MOST:
                self._close(next(iter(self._open_now.values())))
            path = stream.path
            stream.file = self._begin(stream) if path is None else self._open(lambda: _opened_again(path))
        self._open_now[stream.stream] = stream
        return stream.file

    def _begin(self, stream: TakenStream) -> BinaryIO:
        if self._out is None or self._files >= self._files_max:
            raise _QuotaError(f"stream {stream.stream}: the limit of {self._files_max:,} files has been reached")
        path = self._out if self._files == 0 else Path(f"{self._out}.{self._files}")
        self._files += 1  # also where it cannot be opened: the next has another name
        file, self._first = self._first or self._open(lambda: path.open("wb")), None
        stream.path = path
        return file

    def _open(self, how: Callable[[], BinaryIO]) -> BinaryIO:
        """Opens a file; where the process has no descriptor left, files of other streams are closed for it."""
        while True:
            try:
                return how()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open_now:
                    raise
            self._close(next(iter(self._open_now.values())))

    def _write(self, stream: TakenStream, piece: memoryview) -> None:
        """Fails the stream where that cannot be, and not the others."""
        if stream.error is not None:
            return
        try:
            if self._bytes_left is not None and self._bytes_left < len(piece):
                raise _QuotaError(f"stream {stream.stream}: all files together would exceed their limit of bytes")
            self._file(stream).write(piece)
            if self._bytes_left is not None:
                self._bytes_left -= len(piece)
        except OSError as error:
            self._fail(stream, error)

    def _fail(self, stream: TakenStream, error: OSError) -> None:
        if self._reset is None:
            if error.strerror and error.filename is None:
                error.filename = str(stream.path)
            raise error
        stream.error = f"{error.filename or stream.path}: {error.strerror}" if error.strerror else str(error)
        self.totals.failed += 1
        self.totals.error = self.totals.error or stream.error
        self._open_now.pop(stream.stream, None)
        file, stream.file = stream.file, None
        if file is not None:
            with suppress(OSError):  # what it could not write is known
                file.close()
        self._reset(stream.stream)

    def _take_frame(self, stream: TakenStream, frame: Frame, body: Body) -> None:
        """Takes what is behind a short datagram at the end of a frame once another frame follows."""
        at = frame.stream_offset
        data = body.within(at, at + frame.bytes) - at
        behind = self._behind(stream, frame)
        if behind:
            data = np.array([[0, frame.bytes - behind]])
        if stream.hash is not None or (self._out is not None and stream.error is None):
            for piece in range(0, stream.behind, _PIECE_BYTES):
                self._keep(stream, memoryview(bytes(min(_PIECE_BYTES, stream.behind - piece))))
            for view in _views(frame, data):
                self._keep(stream, view)
        taken = stream.behind + int(_lengths(data).sum())
        stream.bytes += taken
        stream.missing_bytes += frame.missing_bytes * self._growth
        self.totals.bytes += taken
        self.totals.missing_bytes += frame.missing_bytes * self._growth
        stream.behind = behind

    def _behind(self, stream: TakenStream, frame: Frame) -> int:
        """Bytes behind the last datagram of a frame, where that is short; counts short ones."""
        lengths = frame.lengths
        if not lengths or not self._packet_bytes:
            return 0
        full = self._packet_bytes // self._growth
        came = present(frame.presence, len(lengths)) if frame.presence else np.ones(len(lengths), np.bool_)
        stream.short_packets += int(np.count_nonzero(came & (np.asarray(lengths) < full)))
        last = (len(lengths) - 1) * self._packet_bytes + lengths[-1] // self._item * self._item * self._growth
        return max(0, frame.bytes - last) if came[-1] else 0

    def _keep(self, stream: TakenStream, view: memoryview) -> None:
        for at in range(0, len(view), _PIECE_BYTES):
            piece = view[at : at + _PIECE_BYTES]
            if stream.hash is not None:
                stream.hash.update(piece)
            if self._out is not None and len(piece) != 0:
                self._write(stream, piece)
            self._look()

    def _close(self, stream: TakenStream) -> None:
        self._open_now.pop(stream.stream, None)
        if stream.file is None:
            return
        try:
            stream.file.close()
            stream.file = None
        except OSError as error:
            self._fail(stream, error)


def _lengths(data: NDArray[np.int64]) -> NDArray[np.int64]:
    return data[:, 1] - data[:, 0]


def _views(frame: Frame, data: NDArray[np.int64]) -> Iterator[memoryview]:
    """Those parts of a frame. Many short ones are joined, all at once: a sender may make them of a byte each."""
    if _lengths(data).sum() >= _SHORT_BYTES * len(data):
        for first, last in data.tolist():
            yield frame.to_host(first, last - first).data
        return
    begin, end = int(data[0, 0]), int(data[-1, 1])
    borders = np.zeros(end - begin + 1, np.int8)
    borders[data[:, 0] - begin] += 1
    borders[data[:, 1] - begin] -= 1
    is_data = np.cumsum(borders[:-1], dtype=np.int8).view(np.bool_)
    yield frame.to_host(begin, end - begin)[is_data].data


def _end_of(ended: StreamEnded, body: Body) -> str:
    """What was promised and came is whole, however the connection ended after it."""
    if body.whole is None:
        return ended.reason
    if body.whole:
        return "finished"
    return "incomplete" if ended.reason == "finished" else ended.reason
