"""Ctrl-C and SIGTERM: both end work alike, and the exit status tells which it was."""

import signal
from types import FrameType

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
