"""Protocols on a receiver's connections: what a sender says besides its data, and the answers that it expects."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from headrace._core import Frame, FramePart, Receiver, StreamEnded, StreamOpened
from headrace.ingest.body import Body

Delivery = StreamOpened | Frame | FramePart | StreamEnded

_log = logging.getLogger("headrace.ingest")


@dataclass(frozen=True)
class Some:
    """Waits for at least one byte; the talk gets the bytes that have arrived, at most this many."""

    most: int = 1 << 12


@dataclass(frozen=True)
class Skip:
    """Waits until this many bytes have arrived, without copying them; the talk gets none of them."""

    count: int


Wants = int | bytes | Some | Skip
"""What a talk waits for: a number of bytes, bytes up to a terminator, any bytes, or bytes to be skipped."""

Talk = Generator[Wants, bytes, None]
"""The conversation on one connection: it yields what it waits for, and is sent that. Later bytes are ignored."""

_WAIT_MOST = 1 << 20
"""Maximum bytes kept for a talk: a talk that waits for more is ended, and its connection reset."""


class ProtocolError(Exception):
    """Raised by a talk whose peer does not speak the protocol; the connection is reset."""


@dataclass
class _Connection:
    talk: Talk | None = None
    wants: Wants = 0
    kept: bytearray = field(default_factory=bytearray)
    """Received bytes from `position` on."""
    position: int = 0
    """Stream offset of the first byte that the talk has not been given."""
    searched: int = 0
    """Where the search in `kept` resumes: the terminator does not begin before."""
    seen: int = 0
    """Bytes of the stream that have arrived."""
    then: tuple[int, Callable[[], None]] | None = None
    due: float | None = None
    body: Body | None = None


class Answering(ABC):
    """A protocol spoken on all TCP connections of a receiver, which needs host control.

    Pass every delivery to it first, and None from time to time when there is none, for deadlines; the caller still
    releases the frames. A failure in one conversation resets only that connection, and is logged ("headrace.ingest").
    """

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._connections: dict[int, _Connection] = {}
        self._over: int | None = None
        self._framed: tuple[Body, int] | None = None
        self._next_due = float("inf")

    @abstractmethod
    def talk(self, stream: int) -> Talk:
        """The conversation on a new connection."""

    @property
    def busy(self) -> bool:
        """A sender is waiting for an answer: do not stop the receiver now."""
        return False

    def body(self, stream: int) -> Body | None:
        """Where a stream's data lies; None if there is none, or if that is not known yet.

        Known for a frame, or a stream's end, after take() of it and until the next delivery.
        """
        connection = self._connections.get(stream)
        return None if connection is None else connection.body

    def take(self, delivery: Delivery | None) -> None:
        """Reads a delivery and answers it. None: nothing arrived, but time has passed.

        Raises:
            UsageError: for a receiver that cannot answer on its connections.
        """
        self._forget_taken()
        if delivery is not None:
            self._take(delivery)
        if time.monotonic() >= self._next_due:
            self._expire()

    def ended(self, stream: int) -> None:  # noqa: B027
        """Called when a stream has ended, for protocols that need to know."""

    def say(self, stream: int, data: bytes) -> None:
        """Sends data, as Receiver.send() does."""
        self.receiver.send(stream, data)

    def seen(self, stream: int) -> int:
        """Bytes of a stream that are known to have arrived."""
        return self._connections[stream].seen

    def position(self, stream: int) -> int:
        """Stream offset of the next byte that its talk will be given."""
        return self._connections[stream].position

    def open_body(self, stream: int) -> Body:
        """Declares that the stream has data; the result records where."""
        connection = self._connections[stream]
        connection.body = Body()
        return connection.body

    def when(self, stream: int, count: int, then: Callable[[], None]) -> None:
        """Calls `then` once the stream has this many bytes. For a connection whose talk ends now or has ended."""
        connection = self._connections[stream]
        if connection.seen >= count:
            then()
            return
        connection.then = (count, then)
        self.receiver.peek(stream, count - 1, count)

    def deadline(self, stream: int, seconds: float | None) -> None:
        """Sets a deadline in seconds: the talk then gets a TimeoutError, or its connection is reset if it has ended.

        Replaces the previous deadline; None removes it.
        """
        connection = self._connections[stream]
        connection.due = None if seconds is None else time.monotonic() + seconds
        if connection.due is not None:
            self._next_due = min(self._next_due, connection.due)

    def _forget_taken(self) -> None:
        if self._over is not None:
            del self._connections[self._over]
            self._over = None
        if self._framed is not None:
            body, end = self._framed
            body.drop(end)
            self._framed = None

    def _take(self, delivery: Delivery) -> None:
        stream = delivery.stream
        if isinstance(delivery, StreamOpened):
            self.receiver.peek(stream, 0)
            self._connections[stream] = connection = _Connection()
            if self._guard(stream, lambda: setattr(connection, "talk", self.talk(stream))):
                self._go_on(stream, None)
        elif isinstance(delivery, StreamEnded):
            self._guard(stream, lambda: self.ended(stream))
            self._over = stream
        else:
            connection = self._connections[stream]
            self._guard(stream, lambda: self._add(connection, delivery))
            if isinstance(delivery, Frame) and connection.body is not None:
                self._framed = (connection.body, delivery.stream_offset + delivery.bytes)

    def _add(self, connection: _Connection, piece: Frame | FramePart) -> None:
        end = piece.stream_offset + piece.bytes
        if end <= connection.seen:
            return
        new = end - max(connection.seen, connection.position)
        connection.seen = end
        if connection.talk is not None:
            if new > 0:
                connection.kept += piece.to_host(piece.bytes - new).data
            self._feed(piece.stream, connection)
        if connection.then is not None and connection.seen >= connection.then[0]:
            _, then = connection.then
            connection.then = None
            self._guard(piece.stream, then)

    def _feed(self, stream: int, connection: _Connection) -> None:
        """Sends the talk what it waits for, as long as it has arrived."""
        while connection.talk is not None:
            count = self._found(connection)
            if count is None:
                self._wait(stream, connection)
                return
            given = bytes(connection.kept[:count])
            del connection.kept[:count]
            connection.position += count
            connection.searched = 0
            self._go_on(stream, given)

    @staticmethod
    def _found(connection: _Connection) -> int | None:
        """How many of the kept bytes to send to the talk; None if it must wait."""
        wants, kept = connection.wants, connection.kept
        if isinstance(wants, Skip):
            return 0 if connection.seen >= connection.position else None
        if isinstance(wants, Some):
            return min(len(kept), wants.most) or None
        if isinstance(wants, int):
            return wants if wants <= len(kept) else None
        found = kept.find(wants, connection.searched)
        if found < 0:
            connection.searched = max(0, len(kept) - len(wants) + 1)
            return None
        return found + len(wants)

    def _wait(self, stream: int, connection: _Connection) -> None:
        """Requests the missing bytes from the receiver."""
        wants = connection.wants
        if len(connection.kept) > _WAIT_MOST:
            self._refuse(stream)
        elif isinstance(wants, Skip):
            self.receiver.peek(stream, connection.position - 1, connection.position)
        else:
            least = connection.position + wants if isinstance(wants, int) else 0
            self.receiver.peek(stream, max(connection.seen, connection.position), least)

    def _go_on(self, stream: int, given: bytes | None) -> None:
        connection = self._connections[stream]
        talk = connection.talk
        assert talk is not None
        self._resume(stream, connection, lambda: next(talk) if given is None else talk.send(given))

    def _resume(self, stream: int, connection: _Connection, go_on: Callable[[], Wants]) -> None:
        def step() -> None:
            try:
                connection.wants = go_on()
            except StopIteration:
                connection.talk = None
                connection.kept.clear()
                return
            if isinstance(connection.wants, Skip):
                passed = min(connection.wants.count, len(connection.kept))
                del connection.kept[:passed]
                connection.position += connection.wants.count

        self._guard(stream, step)

    def _guard(self, stream: int, call: Callable[[], object]) -> bool:
        """Runs code of one conversation, whose failure ends only that conversation. Returns whether it succeeded."""
        try:
            call()
        except Exception as error:
            if not isinstance(error, ProtocolError):
                detailed = _log.isEnabledFor(logging.DEBUG)
                _log.warning("stream %d is reset: its conversation failed: %r", stream, error, exc_info=detailed)
            self._refuse(stream)
            return False
        return True

    def _expire(self) -> None:
        now = time.monotonic()
        late = [stream for stream, one in self._connections.items() if one.due is not None and one.due <= now]
        for stream in late:
            connection = self._connections[stream]
            connection.due = None
            talk = connection.talk
            if talk is None:
                self._refuse(stream)
                continue
            error = TimeoutError("the deadline of its conversation has passed")
            self._resume(stream, connection, lambda talk=talk, error=error: talk.throw(error))  # type: ignore[misc]
            self._feed(stream, connection)
        dues = (connection.due for connection in self._connections.values() if connection.due is not None)
        self._next_due = min(dues, default=float("inf"))

    def _refuse(self, stream: int) -> None:
        connection = self._connections.get(stream)
        if connection is not None:
            connection.talk = connection.then = connection.due = None
            connection.kept.clear()
        self.receiver.reset(stream)
