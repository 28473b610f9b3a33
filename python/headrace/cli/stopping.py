"""Work that Ctrl-C ends at once, although it is inside a call that does not look at signals."""

import threading
from collections.abc import Callable

from headrace.threads import Started

_LOOK_SECONDS = 0.05

_left: list[Started] = []


def stopped(work: Callable[[], object]) -> bool:
    """Does the work beside the main thread; returns whether Ctrl-C came before its end, which is not waited for.

    What the work has found so far lies where it put it. The process must end soon after: see any_left().
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
    """Whether work is still going on that was stopped: then the interpreter must not wait for it, nor take it down."""
    return any(thread.alive for thread in _left)
