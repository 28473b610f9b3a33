"""Reads length-prefixed messages from the frames of a receiver."""

from collections import deque
from collections.abc import Iterator
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from headrace._core import Frame, FramePart, Message, MessageReader, Receiver, StreamEnded, StreamOpened
from headrace.errors import DataError


class LengthPrefix(TypedDict, total=False):
    """Form of the length of a message, as for MessageReader."""

    width: int
    offset: int
    header_bytes: int | None
    big_endian: bool
    counts_header: bool
    body_max: int


class Messages(Iterator[Message]):
    """The messages of all streams of a receiver, each as soon as it is complete.

    For TCP with host control, a message does not wait for a frame to fill, and an invalid length is reported as soon as
    it arrives. With resident control, and for datagrams, messages come with their frames.

    A message beyond the limit, and a stream that ends in the middle of one, raise DataError, which names stream and
    peer. The stream is then reset; iteration continues with the others. A message keeps its frames allocated, so
    release it soon.
    """

    def __init__(self, receiver: Receiver, **prefix: Unpack[LengthPrefix]) -> None:
        MessageReader(**prefix)  # raises for invalid options
        self._receiver = receiver
        self._prefix = prefix
        self._readers: dict[int, MessageReader] = {}
        self._refused: set[int] = set()
        self._ready: deque[int] = deque()

    def __next__(self) -> Message:
        """Waits for a message; iteration ends with the receiver."""
        while True:
            while self._ready:
                if message := self._next_of(self._ready[0]):
                    return message
                self._ask(self._ready.popleft())
            item = self._receiver.next()
            if item is None:
                raise StopIteration
            if isinstance(item, StreamOpened):
                self._readers[item.stream] = MessageReader(**self._prefix)
                self._ask(item.stream)
            elif isinstance(item, StreamEnded):
                self._end(item)
            else:
                self._add(item)

    def _add(self, piece: Frame | FramePart) -> None:
        if piece.stream in self._refused:
            return
        reader = self._readers.setdefault(piece.stream, MessageReader(**self._prefix))
        reader.add(piece)
        self._ready.append(piece.stream)

    def _ask(self, stream: int) -> None:
        """Requests the rest of a message, so that it does not wait for its frame to fill."""
        reader = self._readers.get(stream)
        if reader is not None and self._receiver.has_parts:
            self._receiver.peek(stream, reader.end, reader.needs)

    def _next_of(self, stream: int) -> Message | None:
        reader = self._readers.get(stream)
        if reader is None:
            return None
        try:
            return reader.next()
        except DataError as error:
            del self._readers[stream]
            self._refused.add(stream)
            self._receiver.reset(stream)
            raise DataError(f"stream {stream}: {error}") from None

    def _end(self, ended: StreamEnded) -> None:
        self._refused.discard(ended.stream)
        reader = self._readers.pop(ended.stream, None)
        if reader is not None and reader.rest:
            raise DataError(
                f"stream {ended.stream} of {ended.peer or 'an unknown peer'} ended ({ended.reason}) in the middle of a "
                f"message, {reader.rest} bytes after the last complete one"
            )


def messages(receiver: Receiver, **prefix: Unpack[LengthPrefix]) -> Messages:
    """The messages of a receiver's streams; by default each is preceded by its length in 4 bytes, big-endian."""
    return Messages(receiver, **prefix)


def body(message: Message) -> NDArray[np.uint8]:
    """Copies a message's body to host memory, from any device."""
    parts = [frame.to_host(offset, count) for frame, offset, count in message.parts]
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)
