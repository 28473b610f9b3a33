"""Handles Ctrl-C and SIGTERM: both end work in the same way, and the exit status tells them apart."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_came: list[int] = []


def note(number: int) -> None:
    """Records that a signal asked the process to end."""
    _came.append(number)


def interrupt(number: int, _frame: FrameType | None) -> None:
    """A signal handler that raises KeyboardInterrupt."""
    note(number)
    raise KeyboardInterrupt


def status() -> int:
    """Exit status of a process that was asked to end: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (_came[0] if _came else signal.SIGINT)


class Stop:
    """Context in which the first Ctrl-C or SIGTERM is only recorded; the second interrupts at once.

    Use it in the main thread only, as Python requires of signal handlers.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Installs the handlers."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Restores the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        note(number)
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
