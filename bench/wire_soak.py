"""`headrace serve` under a long load of clients that come and go: wire.soak.memory, wire.soak.p99.

    python bench/wire_soak.py [--minutes 30] [--share 0.8] [--bound 2] [--save docs/results/wire-soak.<machine>.json]

The server serves `light` on the CPU device. Clients come at even intervals (`headrace load --url grpc://`, 4
connections of 64 streams, Poisson arrivals), each for 12 s, so that four are there at any time. Beside them, short
connections by HTTP ask one query each or leave without an answer, and a client compares answers by HTTP and through
shared memory with the host's.

First the peak is found under that same load: the search begins at the rate that one client sustains alone, and goes
down in steps of 15% until the median of the clients' 99th percentiles is within --bound milliseconds and 99.9% of
their requests are answered. Then they ask at --share of it for --minutes. Where clients share their cores with the
server, the start of each client takes part of what the server has, so give such a machine a wider bound.

wire.soak.memory is the server's resident memory in the last tenth of the time over that in the second tenth. It is
verified where every request that was sent was answered, at most 0.1% were never sent (else the load was not --share of
the peak), every compared answer was right, the server still runs, and has as many open descriptors after its clients
have gone as before they came. wire.soak.p99 is the median of the clients' 99th percentiles.
Exit status: 0; 1 when an error ended it, or a row was not verified; 2 for wrong use; 130 after Ctrl-C.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from headrace import Device, UsageError, results
from headrace.profiles import Json
from row_by_row import run, say
from wire_rates import Servers, Way, highest, load
from wire_served import Comparer, Server, short_connection

_CLIENT_SECONDS = 12.0
_EVERY_SECONDS = 3.0  # between two clients, so that four are there
_SHORT_SECONDS = 0.02  # between two short connections
_SAMPLE_SECONDS = 1.0
_SETTLE_SECONDS = 90.0  # that the server may take to give up what clients left
_TRIAL_SECONDS = 24.0  # in which clients come, for a rate of the search
_STEP = 0.85  # from one rate of the search to the next
_LEAST = 200.0  # requests per second; a lower peak does not count
_KEPT = 0.999  # share of requests that must be answered


class _Shorts(threading.Thread):
    """Connections that ask one query by HTTP, every other of which leaves without reading the answer."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._ends = threading.Event()
        self.count = 0
        self.failures: list[str] = []

    def run(self) -> None:
        """Connects until finish()."""
        while not self._ends.wait(_SHORT_SECONDS):
            try:
                short_connection(self._port, reads=self.count % 2 == 0)
                self.count += 1
            except (OSError, ValueError) as error:
                self.failures.append(f"a short connection failed: {type(error).__name__}: {error}")

    def finish(self) -> None:
        """Ends it, and waits."""
        self._ends.set()
        self.join()


class Soak:
    """Clients that come and go, and what the server holds meanwhile."""

    def __init__(self, server: Server, rate: float) -> None:
        self._server = server
        self._command = [sys.executable, "-m", "headrace", "load", "--url", f"grpc://127.0.0.1:{server.grpc}/light"]
        self._command += ["--rate", f"{rate * _EVERY_SECONDS / _CLIENT_SECONDS:.0f}", "--connections", "4", "--json"]
        self._command += ["--duration", f"{_CLIENT_SECONDS:g}s"]
        self._clients: list[subprocess.Popen[str]] = []
        self.requests: Counter[str] = Counter()
        self.p99: list[float] = []
        self.resident: list[int] = []
        self.failures: list[str] = []

    def run(self, seconds: float) -> None:
        """Has clients come for so long, and waits until the last has gone."""
        began = time.monotonic()
        coming = sampled = 0
        try:
            while (passed := time.monotonic() - began) < seconds:
                if passed >= coming * _EVERY_SECONDS:
                    seed = ("--seed", str(coming))
                    self._clients.append(
                        subprocess.Popen(
                            [*self._command, *seed], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                        )
                    )
                    coming += 1
                if passed >= sampled * _SAMPLE_SECONDS:
                    self.resident.append(self._server.resident)
                    sampled += 1
                self._collect()
                if not self._server.alive:
                    self.failures.append("the server ended")
                    return
                time.sleep(0.05)
            while self._clients:
                self._collect()
                time.sleep(0.05)
        finally:
            for client in self._clients:
                client.kill()
                client.communicate()

    def _collect(self) -> None:
        """Takes what clients say that have ended."""
        for client in [one for one in self._clients if one.poll() is not None]:
            self._clients.remove(client)
            out, err = client.communicate()
            if not out.startswith("{"):
                self.failures.append(f"a client failed: {err.strip() or out.strip()}")
                continue
            said = json.loads(out)
            self.requests.update(said["requests"])
            self.p99.append(said["load"]["latency_us"]["p99"])

    def growth(self) -> float:
        """Memory in the last tenth of the time over that in the second."""
        tenth = max(len(self.resident) // 10, 1)
        return median(self.resident[-tenth:]) / median(self.resident[tenth : 2 * tenth] or self.resident[:1])


def _alone(server: Server, shm: str, given: argparse.Namespace) -> float:
    """Requests per second that one client sustains alone."""
    places = {"grpc": f"127.0.0.1:{server.grpc}", "http": f"127.0.0.1:{server.http}", "shm": shm}
    servers = Servers("headrace", places)
    way = Way("wire.grpc.qps", "grpc://{grpc}/light", given.bound * 1e-3, options=("--connections", "4"))
    found = highest(lambda rate: load(servers, way, rate, given), way)
    if found is None:
        raise UsageError(f"no rate keeps p99 within {given.bound:g} ms: the machine is too busy")
    return found


def _peak(server: Server, shm: str, given: argparse.Namespace) -> float:
    """Requests per second that clients which come and go sustain together."""
    rate = _alone(server, shm, given)
    while rate >= _LEAST:
        with _beside(server, shm) as others:
            trial = Soak(server, rate)
            trial.run(_TRIAL_SECONDS)
        if failures := trial.failures + others.failures:
            raise UsageError(f"the server failed while its peak was looked for: {failures[0]}")
        p99, answered = median(trial.p99) / 1e3, trial.requests["answered"] / sum(trial.requests.values())
        say(f"{rate:,.0f} requests/s: p99 {p99:,.2f} ms, {answered:.2%} answered")
        if p99 <= given.bound and answered >= _KEPT:
            return rate
        rate *= _STEP
    raise UsageError(f"no rate of clients that come and go keeps p99 within {given.bound:g} ms; --bound widens it")


@dataclass(frozen=True)
class _Others:
    """What runs beside the clients."""

    shorts: _Shorts
    comparer: Comparer

    @property
    def failures(self) -> list[str]:
        return self.shorts.failures + self.comparer.failures


@contextmanager
def _beside(server: Server, shm: str) -> Iterator[_Others]:
    """Short connections and compared answers, until the end of the block."""
    others = _Others(_Shorts(server.http), Comparer(server.http, f"shm://{shm}/light"))
    for thread in (others.shorts, others.comparer):
        thread.start()
    try:
        yield others
    finally:
        for thread in (others.shorts, others.comparer):
            thread.finish()


def _measure(given: argparse.Namespace) -> Iterator[Json]:
    shm = f"headrace-soak-{os.getpid()}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-soak-")))
        server = Server(folder, "--shm", shm)
        stack.callback(server.close)
        descriptors = server.descriptors
        peak = _peak(server, shm, given)
        say(f"peak: {peak:,.0f} requests/s")
        server.settle(descriptors, _SETTLE_SECONDS)
        soak = Soak(server, given.share * peak)
        with _beside(server, shm) as others:
            soak.run(60 * given.minutes)
        server.settle(descriptors, _SETTLE_SECONDS)
        yield from _rows(soak, others, server.descriptors - descriptors, peak, given)


def _rows(soak: Soak, others: _Others, left: int, peak: float, given: argparse.Namespace) -> Iterator[Json]:
    asked, answered, unsent = sum(soak.requests.values()), soak.requests["answered"], soak.requests["unsent"]
    failures = soak.failures + others.failures
    failures += [f"{left} descriptors are left"] if left > 0 else []
    if asked - unsent > answered:
        failures.append(f"{asked - unsent - answered} requests were not answered: {dict(soak.requests)}")
    if unsent > (1 - _KEPT) * asked:
        failures.append(f"{unsent} of {asked} requests were never sent: the load was less than asked for")
    for failure in failures[:20]:
        say(failure)
    conditions: Json = {
        "minutes": given.minutes,
        "peak_per_second": peak,
        "bound_us": given.bound * 1e3,
        "answered_per_second": answered / (60 * given.minutes),
        "clients": len(soak.p99),
        "requests": asked,
        "answered": answered,
        "unsent": unsent,
        "short_connections": others.shorts.count,
        "compared": 2 * others.comparer.compared,
        "resident_bytes_first": soak.resident[0],
        "resident_bytes_most": max(soak.resident),
        "resident_bytes_last": soak.resident[-1],
        "descriptors_left": left,
        "verified": not failures,
    }
    yield results.row("wire.soak.memory", [soak.growth()], "ratio", None, conditions)
    if soak.p99:
        yield results.row("wire.soak.p99", soak.p99, "us", None, {"verified": not failures})


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--share", type=float, default=0.8, help="of the peak that clients ask at")
    parser.add_argument("--bound", type=float, default=2.0, help="milliseconds of p99 that the peak keeps")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each load that finds what one client sustains")
    parser.add_argument("--save", type=Path, help="write the results file wire-soak.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    given = parser.parse_args()
    given.device = "cpu"
    if given.minutes <= 0 or not 0 < given.share <= 1 or given.seconds <= 0 or given.bound <= 0:
        parser.error("--minutes, --seconds and --bound must be above 0, --share above 0 and at most 1")
    return given


def main() -> int:
    """Runs the program."""
    given = _parse()

    def measure(_: Device) -> Iterator[Json]:
        return _measure(given)

    return run("wire-soak", given, measure)


if __name__ == "__main__":
    sys.exit(main())
