"""Makes Ctrl-C end work at once that is inside a call which ignores signals."""

import threading
from collections.abc import Callable

from headrace.threads import Started

_LOOK_SECONDS = 0.05

_left: list[Started] = []


def stopped(work: Callable[[], object]) -> bool:
    """Runs the work beside the main thread; returns whether Ctrl-C came first, without waiting for the work then.

    Results of the work so far remain where it stored them. The process must end soon afterwards: see any_left().
    """
    failures: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)
        done.set()

    thread = Started(run)
    try:
        while not done.wait(_LOOK_SECONDS):
            pass
    except KeyboardInterrupt:
        _left.append(thread)
        return True
    if failures:
        raise failures[0]
    return False


def any_left() -> bool:
    """Whether stopped work is still running: then the interpreter must neither wait for it nor tear it down."""
    return any(thread.alive for thread in _left)
