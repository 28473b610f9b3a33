"""`headrace serve --supervise`: a server that dies, hangs or fails comes back, and no request gets a wrong answer."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Run

from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from wire_serving import SECONDS

OPERATOR = """
import headrace


@headrace.operator(query="i8", answer="i8")
def picky(_group, query, answer):
    if query[0] == 7:
        raise ValueError("seven")
    answer[0] = 2 * query[0]
"""
REFUSED = "refused"


class Supervised:
    """The supervisor, and the process that serves."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process = process
        self.url = url

    def worker(self) -> int:
        """The number of the serving process; waits until there is one."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until = time.monotonic() + SECONDS
        while not (found := children.read_text().split()) and time.monotonic() < until:
            time.sleep(0.01)
        return int(found[0])

    def ask(self, number: int) -> int | str:
        """The answer, or REFUSED if the server refuses or is away."""
        content = {"inputs": [{"name": "query", "datatype": "INT64", "shape": [1], "data": [number]}]}
        request = urllib.request.Request(f"{self.url}/v2/models/picky/infer", json.dumps(content).encode())
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return int(json.load(answer)["outputs"][0]["data"][0])
        except urllib.error.HTTPError as error:
            return REFUSED if error.code == 503 else f"status {error.code}"
        except (OSError, EOFError):
            return REFUSED

    def comes_back(self) -> bool:
        """Waits until it answers."""
        until = time.monotonic() + SECONDS
        while (answer := self.ask(21)) == REFUSED and time.monotonic() < until:
            time.sleep(0.02)
        return answer == 42

    def end(self, number: int = signal.SIGTERM) -> dict[str, object]:
        """Ends it, and returns its totals."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=SECONDS)
        return json.loads(out)


def free_port() -> int:
    """Below the system's range for clients: a client that retries without a listener may get the very port it connects
    to, connect to itself, and keep the port from the server."""
    while True:
        port = random.randrange(20_000, 30_000)  # not a secret
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@contextmanager
def supervised(folder: Path, *options: str) -> Iterator[Supervised]:
    (folder / "mine.py").write_text(OPERATOR)
    ports = ("--http", str(free_port()), "--grpc", str(free_port()) if _core.built_with_grpc else "none")
    command = ["serve", str(folder / "mine.py"), *ports, "--device", "cpu", "--json", "--supervise", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield Supervised(process, json.loads(process.stdout.readline())["url"])
    finally:
        process.kill()  # the server ends with it
        process.communicate()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda served: os.kill(served.worker(), signal.SIGKILL), "ended with signal SIGKILL"),
        (lambda served: os.kill(served.worker(), signal.SIGSTOP), "has given no sign of life for 1 s"),
        (lambda served: served.ask(7), "has a model whose engine has failed"),
    ],
    ids=["killed", "stopped", "failed"],
)
def test_it_is_back_at_the_same_port(harm: Callable[[Supervised], object], said: str, tmp_path: Path):
    with supervised(tmp_path, "--unresponsive-after", "1s") as served:
        assert served.ask(21) == 42
        first = served.worker()
        harm(served)
        time.sleep(0.1)  # the failure must happen before the question below
        assert served.comes_back()
        assert served.worker() != first
        served.process.send_signal(signal.SIGTERM)
        out, errors = served.process.communicate(timeout=SECONDS)
    assert json.loads(out)["restarts"] == 1, "one line of totals, that of the last server"
    assert f"The server {said}: restarting it." in errors
    assert served.process.returncode == 0


def test_no_answer_is_wrong_while_servers_are_killed(tmp_path: Path):
    wrong: list[object] = []
    answered = [0] * 4
    over = threading.Event()

    def client(which: int) -> None:
        number = which
        while not over.is_set():
            number += 8
            got = served.ask(number)
            if got == 2 * number:
                answered[which] += 1
            elif got == REFUSED:
                time.sleep(0.02)
            else:
                wrong.append((number, got))

    with supervised(tmp_path) as served:
        clients = [threading.Thread(target=client, args=(which,)) for which in range(4)]
        for one in clients:
            one.start()
        for _ in range(3):
            before = sum(answered)
            os.kill(served.worker(), signal.SIGKILL)
            until = time.monotonic() + SECONDS
            while sum(answered) < before + 50 and time.monotonic() < until:
                time.sleep(0.02)
            assert sum(answered) >= before + 50
        over.set()
        for one in clients:
            one.join()
        totals = served.end()
    assert wrong == []
    assert totals["restarts"] == 3


def test_it_drains_when_it_is_asked_to_end(tmp_path: Path):
    with supervised(tmp_path) as served:
        assert served.ask(1) == 2
        with urllib.request.urlopen(f"{served.url}/v2/models/picky/stats", timeout=SECONDS) as answer:
            assert json.load(answer)["model_stats"][0]["inference_count"] == 1
        totals = served.end(signal.SIGINT)
    assert (totals["restarts"], totals["drained"], totals["failed"]) == (0, True, 0)
    assert served.process.returncode == 0


def test_a_server_whose_watcher_is_killed_ends(tmp_path: Path):
    with supervised(tmp_path) as served:
        worker = served.worker()
        served.process.kill()
        until = time.monotonic() + SECONDS
        while Path(f"/proc/{worker}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not Path(f"/proc/{worker}").exists()


def test_arguments_that_are_wrong_are_said_once(run: Run, tmp_path: Path):
    done = run("serve", tmp_path / "absent.py", "--supervise", "--device", "cpu")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "absent.py" in done.stderr
    done = run("serve", "light", "--unresponsive-after", "1s")
    assert done.returncode == 2
    assert "--unresponsive-after needs --supervise" in done.stderr
