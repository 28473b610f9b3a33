"""Ctrl-C and SIGTERM: both end work alike, and the exit status tells which it was."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_came: list[int] = []


def note(number: int) -> None:
    """Remembers that a signal asked for an end."""
    _came.append(number)


def interrupt(number: int, _frame: FrameType | None) -> None:
    """A signal handler that raises KeyboardInterrupt."""
    note(number)
    raise KeyboardInterrupt


def status() -> int:
    """What a process that was asked to end exits with: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (_came[0] if _came else signal.SIGINT)


class Stop:
    """While it is entered, the first Ctrl-C or SIGTERM is noted rather than obeyed; the second interrupts at once.

    For the main thread, as Python's signal handlers are.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Takes over the signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Gives them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        note(number)
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
