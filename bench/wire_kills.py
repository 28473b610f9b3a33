"""Kills, hangs and faults a supervised server under an open load: wire.kills.back.* and wire.kills.requests.

    python bench/wire_kills.py [--harms 100] [--rate 200] [--save docs/results/wire-kills.<machine>.json]

`headrace serve --supervise` serves an operator that doubles whole numbers on the CPU device. An open load of Poisson
arrivals asks it over HTTP, on connections that are reopened whenever they end, and compares every answer. Meanwhile its
worker is harmed repeatedly, in turn: killed (SIGKILL), stopped so that it hangs (SIGSTOP), and faulted by a query on
which the operator raises an exception. The next harm follows once requests have been answered for a while.

`back` is the time from the harm to the first right answer of the replacement worker; `load` is the part of it from that
worker's start, and `noticed` the part before. Every request must end: with the right answer, refused (429, 503), or
with its connection, which gRPC clients see as UNAVAILABLE. A wrong answer, any other status, and a request that does
not end within --patience are failures; so is a worker whose failure is noticed later than after 2 s. Exit status: 0; 1
when one of these failures happened; 2 for wrong use.
"""

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from headrace import Device, Error, UsageError, quiet, results
from headrace.profiles import Json

_OPERATOR = """
import headrace


@headrace.operator(query="i8", answer="i8")
def picky(_group, query, answer):
    if query[0] == 7:
        raise ValueError("seven")
    answer[0] = 2 * query[0]
"""
_FAULT = 7
_PATH = "/v2/models/picky/infer"
_CLIENTS = 64  # connections
_CALM_SECONDS = 0.6  # of answers between two harms
_NOTICED_MOST = 2.0  # seconds
_REFUSED = (429, 503)
_OK = 200


@dataclass
class Harmed:
    """One harm, and the times until the server was back, in seconds."""

    kind: str
    noticed: float
    load: float

    @property
    def back(self) -> float:
        """Time from the harm to the first right answer."""
        return self.noticed + self.load


@dataclass
class Load:
    """Outcomes of the requests of an open load."""

    port: int
    rate: float
    patience: float
    outcomes: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    right_at: float = 0.0
    """Monotonic time of the last right answer; its request was sent at `right_of`."""
    right_of: float = 0.0
    wrong: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ends: threading.Event = field(default_factory=threading.Event)
    _due: float = 0.0
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Puts the load on the server until end()."""
        self._due = time.monotonic()
        draws = random.Random(1)
        self._threads = [threading.Thread(target=self._ask, args=(draws,), daemon=True) for _ in range(_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> int:
        """Ends the load; returns the number of requests that did not end within --patience."""
        self._ends.set()
        until = time.monotonic() + 2 * self.patience
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return self.sent - sum(self.outcomes.values())

    def _next(self, draws: random.Random) -> int | None:
        """Waits until the next request is due, regardless of earlier ones; returns its number."""
        with self._lock:
            due = self._due
            self._due += draws.expovariate(self.rate)
        if self._ends.wait(max(0.0, due - time.monotonic())):
            return None
        with self._lock:
            self.sent += 1
            return self.sent

    def _ask(self, draws: random.Random) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.patience)
        while (number := self._next(draws)) is not None:
            asked, sent_at = 1000 + number, time.monotonic()
            outcome = self._outcome(connection, asked)
            with self._lock:
                self.outcomes[outcome] += 1
                if outcome == "answered" and sent_at > self.right_of:
                    self.right_of, self.right_at = sent_at, time.monotonic()
        connection.close()

    def _outcome(self, connection: http.client.HTTPConnection, asked: int) -> str:
        try:
            connection.request("POST", _PATH, body_of(asked))
            reply = connection.getresponse()
            content = reply.read()
        except TimeoutError:
            connection.close()
            return "unended"
        except (OSError, http.client.HTTPException):
            connection.close()
            return "disconnected"
        if reply.status in _REFUSED:
            return "refused"
        try:
            if reply.status == _OK and json.loads(content)["outputs"][0]["data"] == [2 * asked]:
                return "answered"
        except (ValueError, LookupError):
            pass
        self.wrong.append(f"{asked}: {reply.status} {content[:200]!r}")
        return "wrong"


def body_of(number: int) -> bytes:
    """A request with one query."""
    tensor = {"name": "query", "datatype": "INT64", "shape": [1], "data": [number]}
    return json.dumps({"inputs": [tensor]}).encode()


def _free_port() -> int:
    """Below the system's range for clients, which could otherwise take the port while the server is away."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@contextmanager
def _supervised(folder: Path, unresponsive_after: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The supervisor, and the server's port."""
    (folder / "picky.py").write_text(_OPERATOR)
    port = _free_port()
    command = ["serve", str(folder / "picky.py"), "--http", str(port), "--grpc", "none", "--device", "cpu", "--json"]
    command += ["--supervise", "--unresponsive-after", unresponsive_after]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *command], stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise UsageError(f"`headrace serve` did not start: {(folder / 'log').read_text()}")
        yield process, port
        process.terminate()
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def _worker_of(watcher: int) -> int | None:
    found = Path(f"/proc/{watcher}/task/{watcher}/children").read_text().split()
    return int(found[0]) if found else None


def _started_at(process: int) -> float:
    """Start of a process in monotonic time, to 10 ms."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[19])  # starttime; the second field is left of the bracket
    since_boot = ticks / os.sysconf("SC_CLK_TCK")
    return since_boot + time.monotonic() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _wait_for(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(f"waiting for {what}")
        time.sleep(0.002)


def _harm(kind: str, worker: int, port: int) -> None:
    if kind == "kill":
        os.kill(worker, signal.SIGKILL)
    elif kind == "hang":
        os.kill(worker, signal.SIGSTOP)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("POST", _PATH, body_of(_FAULT))
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # the server may end before it has answered
        finally:
            connection.close()


def _harm_and_wait(kind: str, watcher: int, load: Load) -> Harmed:
    """Harms the worker, and waits until its replacement answers."""
    worker = _worker_of(watcher)
    assert worker is not None
    began = time.monotonic()
    _harm(kind, worker, load.port)
    _wait_for("another worker", lambda: _worker_of(watcher) not in {None, worker})
    another = _worker_of(watcher)
    assert another is not None
    started = _started_at(another)
    _wait_for("an answer", lambda: load.right_of > started)
    back = load.right_at
    calm_since = time.monotonic()
    _wait_for("calm", lambda: load.right_of > calm_since + _CALM_SECONDS)
    return Harmed(kind, max(started - began, 0.0), back - started)


def _rows(found: list[Harmed], load: Load, unended: int, given: argparse.Namespace) -> list[Json]:
    rows = []
    verified = not load.wrong and unended == 0 and load.outcomes["unended"] == 0
    for kind in dict.fromkeys(one.kind for one in found):
        of_kind = [one for one in found if one.kind == kind]
        noticed = [one.noticed for one in of_kind]
        about: Json = {
            "harms": len(of_kind),
            "noticed_s": median(noticed),
            "noticed_most_s": max(noticed),
            "load_s": median(one.load for one in of_kind),
            "noticed_within_2s": sum(one <= _NOTICED_MOST for one in noticed),
            "unresponsive_after": given.unresponsive_after,
            "verified": verified,
        }
        rows.append(results.row(f"wire.kills.back.{kind}", [one.back for one in of_kind], "s", None, about))
    counts: Json = {name: load.outcomes[name] for name in ("answered", "refused", "disconnected")}
    counts |= {"wrong": len(load.wrong), "unended": unended + load.outcomes["unended"]}
    about = {"harms": len(found), "rate": given.rate, "arrivals": "poisson", **counts, "verified": verified}
    rows.append(results.row("wire.kills.requests", [load.sent], "requests", None, about))
    return rows


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harms", type=int, default=100)
    parser.add_argument("--rate", type=float, default=200.0, help="requests per second")
    parser.add_argument("--patience", type=float, default=20.0, help="maximum seconds per request")
    parser.add_argument("--unresponsive-after", default="1s", help="the option of headrace serve")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    if given.harms < 1 or given.rate <= 0 or given.patience <= 0:
        parser.error("--harms, --rate and --patience must be above 0")
    return given


def _measured(given: argparse.Namespace, folder: Path) -> tuple[list[Harmed], Load, int]:
    found: list[Harmed] = []
    with _supervised(folder, given.unresponsive_after) as (process, port):
        load = Load(port, given.rate, given.patience)
        load.start()
        _wait_for("the first answer", lambda: load.right_of > 0)
        for i in range(given.harms):
            kind = ("kill", "hang", "fault")[i % 3]
            found.append(_harm_and_wait(kind, process.pid, load))
            one = found[-1]
            print(f"{i + 1:4} {kind:5} noticed {one.noticed:.2f} s, load {one.load:.2f} s", file=sys.stderr)
        unended = load.end()
    return found, load, unended


def main() -> int:
    """Runs the program."""
    given = _parse()
    try:
        device = Device.parse("cpu")
        topic = results.topic_of(given.save, device) if given.save else "wire-kills"
        watch = quiet.Watch()
        with tempfile.TemporaryDirectory() as folder:
            found, load, unended = _measured(given, Path(folder))
    except (Error, TimeoutError) as error:
        print(f"wire_kills: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    for wrong in load.wrong[:10]:
        print(f"wire_kills: wrong: {wrong}", file=sys.stderr)
    rows = _rows(found, load, unended, given)
    for row in rows:
        print(f"{row['id']:<24} {row['value']:8.4g} {row['unit']:<9} {results.describe(row['conditions'])}")
    if given.save:
        results.save(given.save, results.document(topic, device, rows, watch))
    slow = [one for one in found if one.noticed > _NOTICED_MOST]
    for one in slow:
        print(f"wire_kills: a {one.kind} was noticed after {one.noticed:.2f} s", file=sys.stderr)
    return 0 if not slow and all(row["conditions"]["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
