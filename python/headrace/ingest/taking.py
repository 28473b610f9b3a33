"""Taking what a receiver delivers: frames are counted, hashed, or written to files, a stream each."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headrace._core import Frame, FramePart, StreamEnded, StreamOpened
from headrace.ingest.answering import Body
from headrace.ingest.gaps import fill, present

_PIECE_BYTES = 4 << 20  # between two looks at signals and clocks
_FILES_MOST = 256  # open at the same time: a process may have some 1,000, and a capture holds more streams

Delivery = StreamOpened | Frame | FramePart | StreamEnded


@dataclass
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
    """Bytes of the last frame behind the last datagram that came, where its timeout closed it: the receiver could not
    know whether more would come."""
    end: str = "cut"
    """Why it ended: finished, reset, timed out; cut where the receiver went first."""
    path: Path | None = None
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
        if self.hash is not None:
            made["sha256"] = self.hash.hexdigest()
        if self.path is not None:
            made["file"] = str(self.path)
        return made


class Taker:
    """Takes deliveries, in the order in which they come.

    Args:
        sha256: hash each stream, as its frames hold it.
        out: a file that gets the first stream's bytes; the others' go to the same name with .1, .2, ... behind it.
            What is there is written over.
        packet_bytes: of a datagram in a frame, 0 for TCP. Those that are missing are zeros in hash and file, and a
            stream ends with the last that came.
        body: where the data of a stream lies, which alone is taken: as Answering.body. Streams without any are none.
        look: called now and then while a large frame is worked on.

    Raises:
        OSError: for a file that cannot be written.
    """

    def __init__(
        self,
        *,
        sha256: bool = False,
        out: Path | None = None,
        packet_bytes: int = 0,
        body: Callable[[int], Body | None] = lambda _: (0, None),
        look: Callable[[], object] = lambda: None,
    ) -> None:
        self.streams: dict[int, TakenStream] = {}
        self.frames = 0
        self.ended = 0
        self._sha256 = sha256
        self._out = out
        self._packet_bytes = packet_bytes
        self._body = body
        self._look = look
        self._open: dict[int, TakenStream] = {}
        """Streams whose file is open, the one that was written to last at the end."""
        if out is not None:
            out.open("wb").close()  # what cannot be written is known before anything is received

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
            stream.end = delivery.reason
            self.ended += 1
            self._close(stream)
        elif isinstance(delivery, Frame):
            self._take_frame(stream, delivery, body)
            stream.frames += 1
            self.frames += 1
            delivery.release()

    def close(self) -> None:
        """Closes the files."""
        for stream in self.streams.values():
            self._close(stream)

    def _stream(self, delivery: Delivery) -> TakenStream:
        found = self.streams.get(delivery.stream)
        if found is None:
            found = TakenStream(delivery.stream, delivery.peer or "")
            if self._sha256:
                found.hash = hashlib.sha256()
            if self._out is not None:
                found.path = self._out if not self.streams else Path(f"{self._out}.{len(self.streams)}")
                found.path.open("wb").close()
            self.streams[delivery.stream] = found
        return found

    def _take_frame(self, stream: TakenStream, frame: Frame, body: Body) -> None:
        """Of a frame of datagrams, what is behind the last that came counts when another frame follows."""
        begin = min(max(body[0] - frame.stream_offset, 0), frame.bytes)
        end, missing, came = frame.bytes, frame.missing_bytes, None
        if body[1] is not None:
            end = min(max(body[1] - frame.stream_offset, begin), frame.bytes)
        if frame.presence and self._packet_bytes:
            came = present(frame.presence, -(-frame.bytes // self._packet_bytes))
            last = int(np.flatnonzero(came)[-1]) + 1 if came.any() else 0
            end = min(frame.bytes, last * self._packet_bytes)
            missing = int(np.count_nonzero(~came[:last])) * self._packet_bytes
        if stream.hash is not None or stream.path is not None:
            whole: NDArray[np.uint8] = frame.to_host().view(np.uint8)
            if came is not None:
                whole = fill(whole, came, self._packet_bytes)
            for at in range(0, stream.behind, _PIECE_BYTES):
                self._keep(stream, memoryview(bytes(min(_PIECE_BYTES, stream.behind - at))))
            self._keep(stream, whole[begin:end].data)
        stream.bytes += stream.behind + end - begin
        stream.missing_bytes += stream.behind + missing
        stream.behind = frame.bytes - end if came is not None else 0

    def _keep(self, stream: TakenStream, view: memoryview) -> None:
        for at in range(0, len(view), _PIECE_BYTES):
            piece = view[at : at + _PIECE_BYTES]
            if stream.hash is not None:
                stream.hash.update(piece)
            if stream.path is not None:
                self._file(stream, stream.path).write(piece)
            self._look()

    def _file(self, stream: TakenStream, path: Path) -> BinaryIO:
        """The file of a stream, open; another's may be closed until it is written to again."""
        self._open.pop(stream.stream, None)
        if stream.file is None:
            if len(self._open) >= _FILES_MOST:
                self._close(next(iter(self._open.values())))
            stream.file = path.open("ab")
        self._open[stream.stream] = stream
        return stream.file

    def _close(self, stream: TakenStream) -> None:
        self._open.pop(stream.stream, None)
        if stream.file is not None:
            stream.file.close()
            stream.file = None
