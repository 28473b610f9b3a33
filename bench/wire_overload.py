"""`headrace serve` under three times the load that it can carry: wire.overload.goodput, .late and .refusal.p99.

    python bench/wire_overload.py [--seconds 60] [--save docs/results/wire-overload.<machine>.json]

The server serves `light` with so many steps (--steps) that the device is the limit, and not the network or the client,
which on few cores shares them with the server. First its peak is found: the highest rate of gRPC requests that keeps
p99 within --bound. Then an open load of --times the peak, in which each request has the bound as its deadline, goes on
for --seconds.

  wire.overload.goodput      requests answered in time, over the peak
  wire.overload.late         requests that missed their deadline, of those that were not refused; up to 0.01, p99 of
                             these is within the bound
  wire.overload.refusal.p99  p99 of the refusals, from the scheduled arrival of what was refused

Rows are verified where each request was answered, refused or late, and the server counts as many answers as its client.
Exit status: 0; 1 when an error ended it, or a row was not verified; 2 for wrong use.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from headrace import Device, UsageError, results
from headrace.profiles import Json
from row_by_row import run, say
from wire_rates import Result, Servers, Way, highest, load
from wire_served import Server

_ENDS = ("answered", "refused", "late")  # how a request may end
_FIRST = 1_000.0  # requests per second, the start of the search


def _failures(servers: Servers, found: list[Result], before: int) -> list[str]:
    """What keeps the rows from being verified."""
    failures = []
    for one in found:
        others = {name: count for name, count in one.requests.items() if count and name not in _ENDS}
        if others:
            failures.append(f"requests ended in other ways: {others}")
    answered = sum(one.requests["answered"] for one in found)
    counted = (servers.answered() or 0) - before
    if counted < answered:
        failures.append(f"the server counts {counted} answers, its client {answered}")
    return failures


def _measure(given: argparse.Namespace) -> Iterator[Json]:
    bound = given.bound * 1e-3
    way = Way("wire.overload.goodput", "grpc://{grpc}/light", bound, first=_FIRST, generators=given.generators,
              options=("--connections", str(given.connections)))  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="headrace-overload-") as name,
        closing(
            Server(Path(name), "--threads", str(given.threads), device=given.device, plan=given.plan, steps=given.steps)
        ) as server,
    ):
        servers = Servers("headrace", {"grpc": f"127.0.0.1:{server.grpc}"}, server.stats)
        peak = highest(lambda rate: load(servers, way, rate, argparse.Namespace(seconds=1.0)), way)
        if peak is None:
            raise UsageError(f"no rate keeps p99 within {given.bound:g} ms: choose fewer --steps or a wider --bound")
        say(f"peak: {peak:,.0f} requests/s")
        before = servers.answered() or 0
        deadline = ("--deadline", f"{given.bound:g}ms")
        found = [load(servers, way, given.times * peak, given, deadline) for _ in range(given.samples)]
        failures = _failures(servers, found, before)
    for failure in failures:
        say(failure)
    total = sum(sum(one.requests.values()) for one in found)
    conditions: Json = {
        "device": given.device,
        "plan": given.plan,
        "steps": given.steps,
        "peak_per_second": peak,
        "times": given.times,
        "seconds": given.seconds,
        "bound_us": given.bound * 1e3,
        "generator_late_p99_us": median(one.late for one in found) * 1e6,
        "verified": not failures,
    } | {f"{name}_share": sum(one.requests[name] for one in found) / total for name in _ENDS}
    yield results.row(way.identity, [one.per_second / peak for one in found], "fraction", None, conditions)
    verified: Json = {"verified": not failures}
    late = [one.requests["late"] / max(one.requests["late"] + one.requests["answered"], 1) for one in found]
    yield results.row("wire.overload.late", late, "fraction", None, verified)
    yield results.row("wire.overload.refusal.p99", [one.refused_p99 * 1e6 for one in found], "us", None, verified)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plan", default="page-locked", help="plan of the engine, by rung")
    parser.add_argument("--steps", type=int, default=100_000, help="steps of `light`, which make it slow")
    parser.add_argument("--bound", type=float, default=10.0, help="milliseconds of p99 at the peak, and the deadline")
    parser.add_argument("--times", type=float, default=3.0, help="the load, over the peak")
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of the load")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="server threads for HTTP and gRPC")
    parser.add_argument("--generators", type=int, default=1, help="client threads")
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--save", type=Path, help="write the results file wire-overload.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    given = parser.parse_args()
    if min(given.steps, given.bound, given.seconds, given.samples, given.threads, given.generators) <= 0:
        parser.error("--steps, --bound, --seconds, --samples, --threads and --generators must be above 0")
    if given.times <= 1:
        parser.error("--times must be above 1")
    return given


def main() -> int:
    """Runs the program."""
    given = _parse()

    def measure(_: Device) -> Iterator[Json]:
        return _measure(given)

    return run("wire-overload", given, measure)


if __name__ == "__main__":
    sys.exit(main())
