"""Checks the load generator against theory: the Pollaczek-Khinchine formula, and pauses of known length.

With one worker whose service time S is constant, Poisson arrivals at a rate of rho / S wait rho * S / (2 * (1 - rho))
on average, in addition to S itself. S is the latency of constant arrivals at a tenth of that rate, measured before and
after. Lindley's recursion gives the waiting time of the arrivals of one load, without the formula's sampling error: the
load replays a trace, and the measured mean is shown next to both. Then SIGSTOP pauses a generator at a constant rate
for a known time: every arrival of that time is late by the rest of it, which determines p99 and the greatest lateness.
`disturbed` says if the machine was not quiet.

    .venv/bin/python bench/load_check.py
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_STEPS = 400_000  # some 700 us of one core, which dominates the engine's own cost
_STEP_SECONDS = 2e-9
_ALONE = 0.1
_STOPS = (0.2, 0.5, 1.0, 3.0)
_STOP_RATE = 10_000
_STOP_SECONDS = 10.0
_BEFORE_STOP = 3.0


def _load(*words: str) -> list[str]:
    return [sys.executable, "-m", "headrace", "load", "--device", "cpu:0", "--json", *words]


def lindley(arrivals: npt.NDArray[np.float64], service: float) -> float:
    """Mean seconds from arrival to answer with one worker that takes `service` seconds per query."""
    # A query leaves a service time after its arrival or the previous departure, whichever is later: a running maximum.
    index = np.arange(arrivals.size)
    starts = np.maximum.accumulate(arrivals - index * service) + index * service
    return float(np.mean(starts - arrivals)) + service


def service_seconds(shape: Sequence[str], about: float, seconds: float) -> float:
    """Time of a query that waits for no other: the median latency of constant arrivals at a tenth of the rate."""
    rate = f"{_ALONE / about:.9g}"
    command = _load("--arrivals", "constant", "--rate", rate, "--duration", f"{seconds:g}s", *shape)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["load"]["latency_us"]["p50"]) * 1e-6


def queueing(rho: float, steps: int, seconds: float, seed: int) -> dict[str, Any]:
    """Measured mean latency and its theoretical value, with the service time measured just before and after."""
    shape = ["--operator", "reference", "--steps", str(steps), "--query-bytes", "64", "--answer-bytes", "64",
             "--blocks", "1", "--block-threads", "1", "--threads", "1", "--slots", "65536"]  # fmt: skip
    service = service_seconds(shape, _STEP_SECONDS * steps, seconds / 4)
    count = max(1, round(rho / service * seconds))
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(service / rho, count))
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "arrivals"
        trace.write_text("".join(f"{at:.9f}\n" for at in arrivals))
        command = _load("--arrivals", "trace", "--trace", str(trace), *shape)
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    load = json.loads(done.stdout)["load"]
    service = (service + service_seconds(shape, service, seconds / 4)) / 2
    offered = count / float(arrivals[-1]) * service
    formula = service * (1 + offered / (2 * (1 - offered))) if offered < 1 else float("inf")
    truth = lindley(arrivals, service)
    mean = load["latency_us"]["mean"] * 1e-6
    return {
        "rho": rho,
        "offered": offered,
        "arrivals": count,
        "service_us": service * 1e6,
        "mean_us": mean * 1e6,
        "lindley_us": truth * 1e6,
        "over_lindley": mean / truth,
        "formula_us": formula * 1e6,
        "over_formula": mean / formula,
        "disturbed": load["disturbed"],
    }


def stopped(stop: float) -> dict[str, Any]:
    """p99 and lateness of a load at a constant rate that was paused for `stop` seconds, and their true values."""
    words = ["--rate", str(_STOP_RATE), "--duration", f"{_STOP_SECONDS:g}s", "--operator", "light"]
    command = _load(*words, "--arrivals", "constant", "--slots", "65536")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(_BEFORE_STOP)
    os.kill(process.pid, signal.SIGSTOP)
    began = time.perf_counter()
    time.sleep(stop)
    os.kill(process.pid, signal.SIGCONT)
    stop = time.perf_counter() - began
    out, _ = process.communicate()
    load = json.loads(out)["load"]
    # The first arrivals of the pause are the latest, each by the rest of it: 1% of all arrivals are later than p99.
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
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each load")
    parser.add_argument("--runs", type=int, default=3, help="number of runs of each load")
    parser.add_argument("--steps", type=int, default=_STEPS)
    parser.add_argument("--stops", type=float, nargs="*", default=list(_STOPS))
    given = parser.parse_args(arguments)
    for rho in given.rho:
        for seed in range(given.runs):
            print(json.dumps(queueing(rho, given.steps, given.seconds, seed)), flush=True)
    for stop in given.stops:
        print(json.dumps(stopped(stop)), flush=True)


if __name__ == "__main__":
    main()
