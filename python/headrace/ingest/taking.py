"""Taking what a receiver delivers: frames are counted, hashed, or written to files, a stream each."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from headrace._core import Frame, FramePart, StreamEnded, StreamOpened
from headrace.ingest.body import Body
from headrace.ingest.gaps import fill, present

_ALL_OF_IT = Body.all_of_it()
_PIECE_BYTES = 4 << 20  # between two looks at signals and clocks

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
    """Why it ended: finished, reset, timed out; cut where the receiver went first; incomplete where its sender had
    promised more."""
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
        body: Callable[[int], Body | None] = lambda _: _ALL_OF_IT,
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
            stream.end = _end_of(delivery, body)
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
                found.file = found.path.open("wb")
            self.streams[delivery.stream] = found
        return found

    def _take_frame(self, stream: TakenStream, frame: Frame, body: Body) -> None:
        """Of a frame of datagrams, what is behind the last that came counts when another frame follows."""
        at = frame.stream_offset
        data = [(begin - at, end - at) for begin, end in body.within(at, at + frame.bytes)]
        end, missing, came = frame.bytes, frame.missing_bytes, None
        if frame.presence and self._packet_bytes:
            came = present(frame.presence, -(-frame.bytes // self._packet_bytes))
            last = int(np.flatnonzero(came)[-1]) + 1 if came.any() else 0
            end = min(frame.bytes, last * self._packet_bytes)
            missing = int(np.count_nonzero(~came[:last])) * self._packet_bytes
            data = [(0, end)]
        if stream.hash is not None or stream.file is not None:
            whole: NDArray[np.uint8] = frame.to_host().view(np.uint8)
            if came is not None:
                whole = fill(whole, came, self._packet_bytes)
            for at in range(0, stream.behind, _PIECE_BYTES):
                self._keep(stream, memoryview(bytes(min(_PIECE_BYTES, stream.behind - at))))
            for first, last in data:
                self._keep(stream, whole[first:last].data)
        stream.bytes += stream.behind + sum(last - first for first, last in data)
        stream.missing_bytes += stream.behind + missing
        stream.behind = frame.bytes - end if came is not None else 0

    def _keep(self, stream: TakenStream, view: memoryview) -> None:
        for at in range(0, len(view), _PIECE_BYTES):
            piece = view[at : at + _PIECE_BYTES]
            if stream.hash is not None:
                stream.hash.update(piece)
            if stream.file is not None:
                stream.file.write(piece)
            self._look()

    @staticmethod
    def _close(stream: TakenStream) -> None:
        if stream.file is not None:
            stream.file.close()
            stream.file = None


def _end_of(ended: StreamEnded, body: Body) -> str:
    """What was promised and came is whole, however the connection ended after it."""
    if body.whole is None:
        return ended.reason
    if body.whole:
        return "finished"
    return "incomplete" if ended.reason == "finished" else ended.reason
