"""Makes signals something to wait for: the end of a child, Ctrl-C, and requests to end."""

import select
import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Self

_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupts:
    """Context in which signals that ask to end are only counted, and end a wait().

    Use it in the main thread only, as Python requires of signal handlers. An ignored signal stays ignored.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: signal.Signals | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Installs the handlers."""
        self._receiver, self._sender = socket.socketpair()
        for end in (self._receiver, self._sender):
            end.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        # The handler does nothing, but without one the end of a child would not wake the loop.
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in _TO_END:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Restores the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._receiver.close()
        self._sender.close()

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or signal.Signals(number)

    def wait(self, seconds: float) -> None:
        """Returns after this time, or at once if a signal arrived since the last call."""
        readable, _, _ = select.select([self._receiver], [], [], seconds)
        if readable:
            self._receiver.recv(4096)
