"""Fixtures that several test files use."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_server import CommandServer

import headrace

Run = Callable[..., subprocess.CompletedProcess[str]]

# Tests fork after others have used gRPC, whose fork handlers would end a child whose parent has calls in flight.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Programs inherit ignored signals. Tests started in the background, or by nohup, ignore signals that some tests send.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

DOCUMENTS = ["an apple", "an apple pie", "a pie in the sky", "", "banana bread"]


@pytest.fixture(scope="module", autouse=True)
def _clients_of_gevent_end_here() -> Iterator[None]:
    """Collects tritonclient's HTTP clients in this thread, because each creates an event loop when it is destroyed.

    gevent crashes if such a loop is destroyed in a C++ thread, such as those that read files into a table.
    """
    yield
    if "gevent" in sys.modules:
        gc.collect()


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs the command line as a process; keyword arguments are its environment."""
    server = CommandServer()
    limit = 300

    def run_headrace(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        variables = {**os.environ, "COLUMNS": "100", **environment}
        if server.runs(variables):
            return server.run(words, variables, limit)
        command = [sys.executable, "-m", "headrace", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit, env=variables)

    yield run_headrace
    server.close()


@pytest.fixture(scope="session")
def small_index() -> headrace.Index:
    return headrace.Index.build(DOCUMENTS)


@pytest.fixture(scope="session")
def index_file(small_index: headrace.Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "small.hridx"
    small_index.save(path)
    return path
