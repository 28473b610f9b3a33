"""Checks the load generator against what must come out: the Pollaczek-Khinchine formula, and stops of known length.

With one worker whose service time S is constant, Poisson arrivals at a rate of rho / S wait rho * S / (2 * (1 - rho))
on average, besides S itself. S is measured by a client that asks one query after the other. Then a generator at a
constant rate is stopped by SIGSTOP for a known time: every arrival of that time is late by what was left of it, so that
p99 and the greatest lateness follow. A machine that is not quiet shows in `disturbed`.

    .venv/bin/python bench/load_check.py
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import headrace

_STEPS = 400_000  # some 200 us of one core, which hides what the engine costs besides
_OPERATOR = {"query_bytes": 64, "answer_bytes": 64, "blocks": 1, "threads": 1}
_ASKS = 2000
_STOPS = (0.2, 0.5, 1.0, 3.0)
_STOP_RATE = 10_000
_STOP_SECONDS = 10.0
_BEFORE_STOP = 3.0


def _load(rate: float, seconds: float, *more: str) -> list[str]:
    return [sys.executable, "-m", "headrace", "load", "--device", "cpu:0", "--rate", f"{rate:.9g}", "--duration",
            f"{seconds:g}s", "--json", *more]  # fmt: skip


def service_seconds(steps: int) -> float:
    """The time of one query that waits for no other, from submit to answer: the median of many."""
    operator = headrace.reference(steps=steps, **_OPERATOR)
    query = operator.sample(1)[0]
    times = []
    with headrace.Engine("cpu:0", operator) as engine, engine.connect() as client:
        for _ in range(_ASKS):
            began = time.perf_counter()
            client.ask(query)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def queueing(rho: float, steps: int, seconds: float) -> dict[str, Any]:
    """Measured mean latency beside the formula's, with the service time measured just before."""
    service = service_seconds(steps)
    shape = ["--operator", "reference", "--steps", str(steps), "--query-bytes", "64", "--answer-bytes", "64",
             "--blocks", "1", "--block-threads", "1", "--threads", "1", "--slots", "65536"]  # fmt: skip
    done = subprocess.run(_load(rho / service, seconds, *shape), check=True, capture_output=True, text=True)
    load = json.loads(done.stdout)["load"]
    service = (service + service_seconds(steps)) / 2
    offered = load["incoming_per_second"] * service
    formula = service * (1 + offered / (2 * (1 - offered))) if offered < 1 else float("inf")
    mean = load["latency_us"]["mean"] * 1e-6
    return {
        "rho": rho,
        "offered": offered,
        "service_us": service * 1e6,
        "mean_us": mean * 1e6,
        "formula_us": formula * 1e6,
        "ratio": mean / formula,
        "disturbed": load["disturbed"],
    }


def stopped(stop: float) -> dict[str, Any]:
    """p99 and lateness of a load at a constant rate that was stopped for `stop` seconds, beside the truth."""
    command = _load(_STOP_RATE, _STOP_SECONDS, "--operator", "light", "--arrivals", "constant", "--slots", "65536")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(_BEFORE_STOP)
    os.kill(process.pid, signal.SIGSTOP)
    began = time.perf_counter()
    time.sleep(stop)
    os.kill(process.pid, signal.SIGCONT)
    stop = time.perf_counter() - began
    out, _ = process.communicate()
    load = json.loads(out)["load"]
    # The first arrivals of the stop are the latest, each by what was left of it: 1% of all arrivals are later than p99.
    p99 = max(stop - 0.01 * _STOP_SECONDS, 0.0)
    return {
        "stop_s": stop,
        "p99_ms": load["latency_us"]["p99"] * 1e-3,
        "p99_truth_ms": p99 * 1e3,
        "lateness_ms": load["lateness_us"]["max"] * 1e-3,
        "lateness_truth_ms": stop * 1e3,
        "arrivals_share": load["incoming_per_second"] / _STOP_RATE,
        "refused": load["refused"],
        "disturbed": load["disturbed"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", type=float, nargs="*", default=[0.3, 0.5, 0.7, 0.8, 0.9])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each load")
    parser.add_argument("--steps", type=int, default=_STEPS)
    parser.add_argument("--stops", type=float, nargs="*", default=list(_STOPS))
    given = parser.parse_args(arguments)
    for rho in given.rho:
        print(json.dumps(queueing(rho, given.steps, given.seconds)), flush=True)
    for stop in given.stops:
        print(json.dumps(stopped(stop)), flush=True)


if __name__ == "__main__":
    main()
