"""Protocols over a receiver's connections: what a sender says beside its data, and the answers that it waits for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from headrace._core import Frame, FramePart, Receiver, StreamEnded, StreamOpened

Delivery = StreamOpened | Frame | FramePart | StreamEnded

Body = tuple[int, int | None]
"""Where the data of a stream begins and ends, in bytes; None: with the stream."""

Talk = Generator[int | bytes, bytes, None]
"""What is done on one connection: it yields how many bytes it waits for, or the bytes that end them, and is given
them. What comes after its end is not looked at."""

_WAIT_MOST = 1 << 20


class ProtocolError(Exception):
    """Raised by a talk whose peer does not speak the protocol: the connection is reset."""


@dataclass
class _Connection:
    talk: Talk | None
    wants: int | bytes = 0
    kept: bytearray = field(default_factory=bytearray)
    """That came and was not given to the talk."""
    seen: int = 0
    """Bytes of the stream that have come."""
    then: tuple[int, Callable[[], None]] | None = None
    body: Body | None = None


class Answering(ABC):
    """A protocol that is spoken on all TCP connections of a receiver; control must be the host's.

    Give it every delivery first; frames are still to be released by whoever took them.
    """

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._connections: dict[int, _Connection] = {}
        self._over: int | None = None

    @abstractmethod
    def talk(self, stream: int) -> Talk:
        """What is done on a new connection."""

    @property
    def busy(self) -> bool:
        """A sender waits for an answer: do not stop the receiver now."""
        return False

    def body(self, stream: int) -> Body | None:
        """Where a stream's data lies; None where it has none, or that is not known yet.

        Known when a frame with data of it, or its end, has been taken; until another delivery is.
        """
        connection = self._connections.get(stream)
        return None if connection is None else connection.body

    def take(self, delivery: Delivery) -> None:
        """Reads what a delivery brings, and answers it.

        Raises:
            UsageError: for a receiver whose connections cannot be answered.
        """
        if self._over is not None:
            del self._connections[self._over]
            self._over = None
        stream = delivery.stream
        if isinstance(delivery, StreamOpened):
            self._connections[stream] = _Connection(self.talk(stream))
            self._go_on(stream, None)
        elif isinstance(delivery, StreamEnded):
            self.ended(stream)
            self._over = stream
        else:
            self._add(self._connections[stream], delivery)

    def ended(self, stream: int) -> None:  # noqa: B027
        """A stream has ended: for a protocol that has to know."""

    def say(self, stream: int, data: bytes) -> None:
        """As Receiver.send()."""
        self.receiver.send(stream, data)

    def seen(self, stream: int) -> int:
        """Bytes of a stream that are known to have come."""
        return self._connections[stream].seen

    def set_body(self, stream: int, begin: int, end: int | None) -> None:
        """What body() says from now on."""
        self._connections[stream].body = (begin, end)

    def when(self, stream: int, count: int, then: Callable[[], None]) -> None:
        """Calls `then` once the stream has so many bytes. For a connection whose talk is over, or ends thereby."""
        connection = self._connections[stream]
        if connection.seen >= count:
            then()
            return
        connection.then = (count, then)
        self.receiver.peek(stream, count - 1)

    def _add(self, connection: _Connection, piece: Frame | FramePart) -> None:
        end = piece.stream_offset + piece.bytes
        new = end - connection.seen
        if new <= 0:
            return
        connection.seen = end
        if connection.talk is not None:
            came = piece.to_host(piece.bytes - new) if isinstance(piece, Frame) else piece.to_host()[-new:]
            connection.kept += came.tobytes()
            self._feed(piece.stream, connection)
        if connection.then is not None and connection.seen >= connection.then[0]:
            _, then = connection.then
            connection.then = None
            then()

    def _feed(self, stream: int, connection: _Connection) -> None:
        """Gives the talk what it waits for, as long as that is there."""
        while connection.talk is not None:
            wants = connection.wants
            found = connection.kept.find(wants) if isinstance(wants, bytes) else 0
            count = found + len(wants) if isinstance(wants, bytes) else wants
            if found < 0 or count > len(connection.kept):
                if len(connection.kept) > _WAIT_MOST:
                    self._refuse(stream)
                else:
                    self.receiver.peek(stream, connection.seen)
                return
            given = bytes(connection.kept[:count])
            del connection.kept[:count]
            self._go_on(stream, given)

    def _go_on(self, stream: int, given: bytes | None) -> None:
        connection = self._connections[stream]
        assert connection.talk is not None
        try:
            connection.wants = next(connection.talk) if given is None else connection.talk.send(given)
        except StopIteration:
            connection.talk = None
            connection.kept.clear()
            return
        except ProtocolError:
            self._refuse(stream)
            return
        if given is None:
            self.receiver.peek(stream, 0)

    def _refuse(self, stream: int) -> None:
        self._connections[stream].talk = None
        self.receiver.reset(stream)
