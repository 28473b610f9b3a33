"""Taking what a receiver delivers: frames are counted, hashed, or written to files, a stream each."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from headrace._core import Frame, FramePart, StreamEnded, StreamOpened
from headrace.ingest.answering import Body
from headrace.ingest.gaps import present

_PIECE_BYTES = 4 << 20  # between two looks at signals and clocks

Delivery = StreamOpened | Frame | FramePart | StreamEnded


@dataclass
class TakenStream:
    """One stream so far."""

    stream: int
    peer: str
    bytes: int = 0
    frames: int = 0
    missing_bytes: int = 0
    behind: int = 0
    """Bytes of the last frame behind its last datagram, which was short: they count where another frame follows."""
    short_packets: int = 0
    """Datagrams that came with less payload than their place has; zeros are behind them."""
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
        return made


class Taker:
    """Takes deliveries, in the order in which they come.

    Args:
        sha256: hash each stream, as its frames hold it.
        out: a file that gets the first stream's bytes; the others' go to the same name with .1, .2, ... behind it.
            What is there is written over.
        packet_bytes: of a datagram in a frame, 0 for TCP: a stream ends behind the last byte that came.
        growth: how many times as large as the stream its frames are, by their conversion of items of `item` bytes.
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
        growth: int = 1,
        item: int = 1,
        body: Callable[[int], Body | None] = lambda _: (0, None),
        look: Callable[[], object] = lambda: None,
    ) -> None:
        self.streams: dict[int, TakenStream] = {}
        self.frames = 0
        self.ended = 0
        self._sha256 = sha256
        self._out = out
        self._packet_bytes = packet_bytes
        self._growth = growth
        self._item = item
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
        if isinstance(delivery, StreamEnded):
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
                found.file = found.path.open("wb")
            self.streams[delivery.stream] = found
        return found

    def _take_frame(self, stream: TakenStream, frame: Frame, body: Body) -> None:
        """What is behind a short datagram at the end of a frame counts when another frame follows."""
        begin = min(max(body[0] - frame.stream_offset, 0), frame.bytes)
        end = frame.bytes
        if body[1] is not None:
            end = min(max(body[1] - frame.stream_offset, begin), frame.bytes)
        behind = 0
        lengths = frame.lengths
        if lengths and self._packet_bytes:
            full = self._packet_bytes // self._growth
            came = present(frame.presence, len(lengths)) if frame.presence else np.ones(len(lengths), np.bool_)
            stream.short_packets += int(np.count_nonzero(came & (np.asarray(lengths) < full)))
            last = (len(lengths) - 1) * self._packet_bytes + lengths[-1] // self._item * self._item * self._growth
            behind = max(0, end - last) if came[-1] else 0
        if stream.hash is not None or stream.file is not None:
            for at in range(0, stream.behind, _PIECE_BYTES):
                self._keep(stream, memoryview(bytes(min(_PIECE_BYTES, stream.behind - at))))
            self._keep(stream, frame.to_host(begin, end - behind - begin).data)
        stream.bytes += stream.behind + end - behind - begin
        stream.missing_bytes += frame.missing_bytes * self._growth
        stream.behind = behind

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
