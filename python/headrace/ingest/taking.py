"""Takes deliveries of a receiver: counts and hashes frames, and writes them to one file per stream."""

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
_SHORT_BYTES = 4 << 10  # copying this much costs less than another call
_FILES_MOST = 256  # open at the same time: a process may have some 1,000, but a capture has more streams

OUT_FILES_MAX = 10_000
KEPT_STREAMS = 10_000

Delivery = StreamOpened | Frame | FramePart | StreamEnded


class _QuotaError(OSError):
    """The limit of files or bytes was reached."""


def _first_file(path: Path) -> BinaryIO:
    """Opens the file of the first stream.

    Raises:
        UsageError: for a folder, and for standard output and error, where the command's own output would mix with the
            data.
        SystemError: naming the file, when it cannot be written.
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
    """Opens a file again to append to it.

    A file that was removed meanwhile is not created anew, because it would lack its beginning.

    Raises:
        OSError: when it does not exist or cannot be written.
    """
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags & ~os.O_CREAT))


@dataclass(slots=True)
class TakenStream:
    """A stream so far."""

    stream: int
    peer: str
    destination: str = ""
    """Its destination, as far as known."""
    bytes: int = 0
    frames: int = 0
    missing_bytes: int = 0
    behind: int = 0
    """Bytes of the last frame after its last datagram, which was short: they count if another frame follows."""
    short_packets: int = 0
    """Datagrams with less payload than their place, which zeros fill."""
    end: str = "cut"
    """Why it ended: finished, reset, timed out; cut if the receiver ended first; incomplete if its sender had promised
    more."""
    path: Path | None = None
    error: str | None = None
    """Why not all of it was written; the stream was reset."""
    hash: Any = field(default=None, repr=False)
    file: BinaryIO | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The stream for JSON."""
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
    """Totals of all streams, including forgotten ones."""

    streams: int = 0
    bytes: int = 0
    missing_bytes: int = 0
    failed: int = 0
    """Streams that were not written completely."""
    error: str | None = None
    """The reason for the first of them."""
    ends: dict[str, int] = field(default_factory=dict)
    """Number of streams by reason of their end."""

    def as_dict(self) -> dict[str, Any]:
        """The totals for JSON."""
        return {
            "streams": self.streams,
            "bytes": self.bytes,
            "missing_bytes": self.missing_bytes,
            "failed": self.failed,
            "ends": dict(self.ends),
        }


class Taker:
    """Takes deliveries in the order of their arrival.

    Args:
        sha256: hash each stream in the form its frames have.
        out: file for the first stream's bytes; the others go to this name followed by .1, .2, ... A file is opened when
            a stream's first byte arrives: a stream without bytes has no file. Existing files are overwritten.
        files_max, bytes_max: limits on all files together. A stream that exceeds them fails.
        reset: called with the number of a stream that fails because of these limits or an error of its file, such as a
            full disk; other streams continue. None if streams cannot be reset: then the error is raised.
        keep: number of ended streams to keep; the latest are kept.
        packet_bytes: bytes of a datagram in a frame, 0 for TCP: a stream ends after the last byte received.
        growth: ratio of the size of frames to that of the stream, due to the conversion of items of `item` bytes.
        body: returns where a stream's data is, which alone is taken: as Answering.body. Streams without data do not
            count. None: all bytes of every stream.
        look: called from time to time while a large frame is processed.

    Raises:
        OSError: when `out` cannot be written.
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
        """Streams whose file is open, ordered by their last write."""
        # An error of the file must show before anything is received. It stays open for the reader of a FIFO.
        self._first = None if out is None else _first_file(out)

    def take(self, delivery: Delivery) -> None:
        """Processes a delivery and releases it."""
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
        """The open file of a stream; another stream's file may be closed for it until its next write."""
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
        self._files += 1  # counts even if it cannot be opened, so that the next file has another name
        file, self._first = self._first or self._open(lambda: path.open("wb")), None
        stream.path = path
        return file

    def _open(self, how: Callable[[], BinaryIO]) -> BinaryIO:
        """Opens a file; if the process has no descriptor left, closes files of other streams."""
        while True:
            try:
                return how()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open_now:
                    raise
            self._close(next(iter(self._open_now.values())))

    def _write(self, stream: TakenStream, piece: memoryview) -> None:
        """Writes to a stream's file; a failure fails only this stream."""
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
            with suppress(OSError):  # the write error is already known
                file.close()
        self._reset(stream.stream)

    def _take_frame(self, stream: TakenStream, frame: Frame, body: Body) -> None:
        """Takes a frame, and what follows a short datagram at the end of the previous frame."""
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
        """Bytes after the last datagram of a frame, if that is short; also counts short ones."""
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
    """These parts of a frame. Many short ones are joined first, because a sender may make them one byte each."""
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
    """Data that was promised and has arrived is complete, however the connection ended afterwards."""
    if body.whole is None:
        return ended.reason
    if body.whole:
        return "finished"
    return "incomplete" if ended.reason == "finished" else ended.reason
