"""Runs functions in a forked child of the test process."""

import os
import pickle
import select
import signal
from collections.abc import Callable
from typing import Any

SECONDS_MOST = 30


def in_child(function: Callable[[], Any]) -> Any:
    """Returns the result of `function` in a forked child, or raises its exception here.

    A child without an answer within half a minute is killed, and the test fails.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            answer: object = ("returned", function())
        except BaseException as error:
            answer = ("raised", error)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        if not select.select([pipe], [], [], SECONDS_MOST)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the forked child hangs")
        how, value = pickle.load(pipe)
    os.waitpid(child, 0)
    if how == "raised":
        raise value
    return value
