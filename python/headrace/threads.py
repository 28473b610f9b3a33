"""Threads whose start cannot hang."""

import _thread
import threading
import weakref
from collections.abc import Callable

_LOOK_SECONDS = 0.05


class _Held:
    """An object that only its own thread references."""


class Started:
    """A daemon thread that runs `work`, which must not raise.

    `threading.Thread.start()` waits for the new thread's first step, and forever if memory lacks for that step.

    Raises:
        MemoryError: when there is no memory for the thread's first step.
        RuntimeError: when no thread can be started.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        held, begun = _Held(), threading.Event()
        self._held = weakref.ref(held)
        _thread.start_new_thread(_run, (work, begun, held))
        del held
        while not begun.wait(_LOOK_SECONDS):
            if not self.alive and not begun.is_set():
                raise MemoryError

    @property
    def alive(self) -> bool:
        """Whether the thread is still running."""
        return self._held() is not None


def _run(work: Callable[[], object], begun: threading.Event, _held: _Held) -> None:
    begun.set()
    work()
