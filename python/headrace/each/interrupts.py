"""Signals as something to wait for: the end of a child, Ctrl-C, and being asked to end."""

import select
import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Self

_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupts:
    """While it is entered, signals that ask to end are counted rather than obeyed, and end a wait().

    For the main thread, as Python's signal handlers are. A signal that was ignored before stays ignored.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: signal.Signals | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Takes over the signals."""
        self._receiver, self._sender = socket.socketpair()
        for end in (self._receiver, self._sender):
            end.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        # Handled, though there is nothing to do: only then does the end of a child wake the loop.
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in _TO_END:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Gives them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._receiver.close()
        self._sender.close()

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or signal.Signals(number)

    def wait(self, seconds: float) -> None:
        """Returns after that time, or at once when a signal came since the last call."""
        readable, _, _ = select.select([self._receiver], [], [], seconds)
        if readable:
            self._receiver.recv(4096)
