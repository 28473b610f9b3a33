"""Servers behind rings in shared memory, in this process and in others, and helpers to inspect them."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from wire_serving import SECONDS, serving

import headrace
from headrace import wire

_numbers = count()


def fresh() -> str:
    """A name that no other server on this machine has."""
    return f"test-{os.getpid()}-{next(_numbers)}"


def until(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


@contextmanager
def behind_shm(*operators: headrace.Operator, **options: Any) -> Iterator[tuple[wire.Server, str]]:
    """A server, and its URL without a model."""
    name = fresh()
    with serving(*operators, shm=name, **options) as (server, _):
        yield server, f"shm://{name}"


@contextmanager
def running(text: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Runs Python code as a process."""
    words = [sys.executable, "-c", text, *arguments]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def descriptors() -> int:
    """Number of open files of this process. What only garbage of other tests keeps open does not count."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def rings() -> int:
    """Ring memory that this process has mapped."""
    return Path("/proc/self/maps").read_text().count("headrace-ring")


def halves_of(queries: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The answers of halve(), computed by NumPy."""
    answers = np.zeros(len(queries), [("y", "f8", (3,)), ("n", "i8"), ("large", "?")])
    answers["y"] = queries["x"].astype(np.float64) / 2
    answers["n"] = -queries["n"]
    answers["large"] = queries["n"] > 100
    return answers


def random_queries(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Queries for halve()."""
    queries = np.zeros(count, [("x", "f4", (3,)), ("n", "i8")])
    queries["x"] = generator.standard_normal((count, 3))
    queries["n"] = generator.integers(-1000, 1000, count)
    return queries


_SERVER = """
import sys, numpy as np, headrace
from headrace import wire
sys.path.insert(0, sys.argv[2])
from wire_serving import third
with headrace.Engine("cpu", third()) as engine:
    with wire.Server([wire.model(engine)], http_port=0, shm=sys.argv[1]) as server:
        print("on", flush=True)
        sys.stdin.readline()
        print(server.drain(10), flush=True)
"""


@contextmanager
def other_server() -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server in another process."""
    name = fresh()
    with running(_SERVER, name, str(Path(__file__).parent)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        yield process, f"shm://{name}/third"


def stop(process: "subprocess.Popen[str]") -> None:
    """Stops a process, and waits until each of its threads has stopped."""
    process.send_signal(signal.SIGSTOP)
    threads = Path(f"/proc/{process.pid}/task")
    until(lambda: all(one.read_text().rpartition(")")[2].split()[0] == "T" for one in threads.glob("*/stat")))
