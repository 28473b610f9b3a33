"""The rate of one event loop on the CPU device: operators.await.qps, and the latency at a far lower rate.

    python bench/await_asks.py --save docs/results/await.<machine>.json

Queries of `light` arrive at times drawn from a Poisson process before the run, regardless of earlier answers.
Coroutines take them one after the other, `await client.ask(query)`, and record the time since the arrival. Everything
runs in one event loop; with --plan caller, the default, the engine has no thread of its own. All answers are compared
with the host's afterwards.

Rates descend from the rate of the loop without waiting for arrivals, until one is sustained: as many answers per second
as arrivals, less 1%, and p99 within --bound. The roof is the same program in the same run, in which a callback of the
loop resolves the futures without an engine.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import row_by_row
from headrace import Device, Engine, Operator, light, results, serve
from headrace.cli.options import duration
from headrace.cli.options import rate as rate_of
from headrace.profiles import Json

_DISTINCT = 4096  # number of different queries
_KEPT = 0.99  # share of arrivals that must be answered within the arrival time
_STEP = 0.95  # factor from one rate to the next


class Asks(Protocol):
    """The interface that coroutines ask through."""

    def ask(self, query: NDArray[np.uint8]) -> asyncio.Future[Any]:
        """Returns the future of an answer."""
        ...


class Nobody:
    """The roof: a callback of the loop answers all queries asked since the last one."""

    def __init__(self, answer: NDArray[Any]) -> None:
        """Every query gets `answer`."""
        self._answer = answer
        self._asked: list[asyncio.Future[Any]] = []
        self._loop = asyncio.get_running_loop()

    def ask(self, query: NDArray[np.uint8]) -> asyncio.Future[Any]:  # noqa: ARG002
        """See Asks.ask()."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._asked:
            self._loop.call_soon(self._tell)
        self._asked.append(future)
        return future

    def _tell(self) -> None:
        asked, self._asked = self._asked, []
        for future in asked:
            future.set_result(self._answer)


class Run(NamedTuple):
    """Result of one run at a rate."""

    offered: float  # arrivals per second
    answered: float  # per second
    latencies: NDArray[np.float64]  # seconds since the scheduled arrival, per query
    answers: list[Any]  # one per query

    def p(self, share: float) -> float:
        """The latency in microseconds within which this share of queries stays."""
        return float(np.quantile(self.latencies, share, method="higher")) * 1e6

    def keeps(self, bound: float) -> bool:
        """Whether answers kept up with arrivals, with p99 within the bound in seconds."""
        return self.answered >= _KEPT * self.offered and self.p(0.99) <= bound * 1e6


async def offer(client: Asks, queries: list[NDArray[np.uint8]], arrivals: NDArray[np.float64], tasks: int) -> Run:
    """Offers queries: number i of an endless repetition of `queries` arrives `arrivals[i]` seconds after the start."""
    loop = asyncio.get_running_loop()
    due = arrivals.tolist()
    count = len(due)
    noted: list[float] = [0.0] * count
    answers: list[Any] = [None] * count
    idle: list[asyncio.Future[None]] = []
    clock = time.perf_counter
    taken = 0
    started = float("inf")  # until every coroutine has started

    async def asker() -> None:
        nonlocal taken
        while taken < count:
            if due[taken] > clock() - started:
                parked = loop.create_future()
                idle.append(parked)
                await parked
                continue
            number = taken
            taken += 1
            answers[number] = await client.ask(queries[number % _DISTINCT])
            noted[number] = clock() - started

    def look() -> None:
        """Wakes a coroutine for each arrival that no coroutine has taken; the loop calls this repeatedly."""
        now = clock() - started
        at = taken
        while idle and at < count and due[at] <= now:
            at += 1
            idle.pop().set_result(None)
        if taken < count:
            loop.call_soon(look)
        else:
            for parked in idle:
                parked.set_result(None)

    askers = [loop.create_task(asker()) for _ in range(tasks)]
    while len(idle) < tasks:
        await asyncio.sleep(0)
    started = clock()
    look()
    await asyncio.gather(*askers)
    spent = clock() - started
    latencies = np.array(noted) - arrivals
    return Run(count / due[-1] if due[-1] > 0 else float("inf"), count / spent, latencies, answers)


def _poisson(rate: float, seconds: float, seed: int) -> NDArray[np.float64]:
    """Arrival times; for an infinite rate all at once, as many as at a million per second."""
    if rate == float("inf"):
        return np.zeros(int(seconds * 1e6) // 4)
    return np.random.default_rng(seed).exponential(1 / rate, max(int(rate * seconds), 1)).cumsum()


class Bench:
    """An operator with its queries and answers, and the command-line options."""

    def __init__(self, given: argparse.Namespace) -> None:
        """Makes the queries."""
        self.given = given
        self.operator: Operator = light(query_bytes=64, steps=8)
        sample = self.operator.sample(_DISTINCT)
        self.queries = list(sample)
        self.expected = self.operator.answer_on_host(sample)
        self.plan = serve.find_rung(given.plan).plan
        self.plan.slots = given.slots
        self._seed = 0

    def run(self, rate: float, *, with_engine: bool = True) -> tuple[Run, bool]:
        """Does one run; also returns whether all answers are right."""
        self._seed += 1
        arrivals = _poisson(rate, self.given.seconds, self._seed)
        runs: list[Run] = []  # a variable, because asyncio.run() formats the coroutine's result at its end
        asyncio.run(self._run(arrivals, runs, with_engine=with_engine))
        found = runs[0]
        if not with_engine:
            return found, True
        wanted = self.expected[np.arange(len(arrivals)) % _DISTINCT]
        return found, bool(np.array_equal(np.stack(found.answers), wanted))

    async def _run(self, arrivals: NDArray[np.float64], runs: list[Run], *, with_engine: bool) -> None:
        if not with_engine:
            runs.append(await offer(Nobody(self.expected[0]), self.queries, arrivals, self.given.tasks))
            return
        with Engine("cpu", self.operator, self.plan) as engine:
            async with engine.connect_async() as client:
                runs.append(await offer(client, self.queries, arrivals, self.given.tasks))

    def conditions(self, runs: list[Run], *, verified: bool) -> Json:
        """Conditions and latencies of runs."""
        middle = sorted(runs, key=lambda run: run.p(0.99))[len(runs) // 2]
        return {
            "schedule": self.plan.schedule,
            "slots": self.given.slots,
            "tasks": self.given.tasks,
            "arrivals": "poisson",
            "offered": middle.offered,
            "p50_us": middle.p(0.5),
            "p99_us": middle.p(0.99),
            "load_average": os.getloadavg()[0],
            "verified": verified,
        }


def measure(bench: Bench) -> Iterator[Json]:
    """The rows."""
    given = bench.given
    most = [bench.run(float("inf"))[0].answered for _ in range(3)]
    roof = max(bench.run(float("inf"), with_engine=False)[0].answered for _ in range(3))
    row_by_row.say(f"all at once: {max(most):,.0f} queries/s; without an engine {roof:,.0f}")
    rate = max(most)
    while True:
        tries = [bench.run(rate) for _ in range(given.samples)]
        kept = [(run, right) for run, right in tries if run.keeps(given.bound)]
        row_by_row.say(f"{rate:,.0f} queries/s: kept {len(kept)} times of {len(tries)}")
        if len(kept) * 2 > len(tries) or rate < given.lowest:
            break
        rate *= _STEP
    if kept:
        runs = [run for run, _ in kept]
        yield results.row(
            "operators.await.qps",
            [run.answered for run in runs],
            "queries/s",
            (roof, "the same program with futures that a callback resolves"),
            {
                **bench.conditions(runs, verified=all(right for _, right in tries)),
                "all_at_once": max(most),
                "bound_us": given.bound * 1e6,
            },
        )
    below = [bench.run(given.at) for _ in range(given.samples)]
    runs = [run for run, _ in below]
    yield results.row(
        f"operators.await.at{given.at / 1e3:g}k.p99",
        [run.p(0.99) for run in runs],
        "us",
        None,
        bench.conditions(runs, verified=all(right for _, right in below)),
    )


def main() -> int:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bound", type=duration, default=10e-3, help="bound on p99 at the highest rate, such as 10ms")
    parser.add_argument("--at", type=rate_of, default=100e3, help="rate in queries/s of the row that reports a latency")
    parser.add_argument("--lowest", type=rate_of, default=50e3, help="rate in queries/s at which the search ends")
    parser.add_argument("--tasks", type=int, default=512, help="number of coroutines that ask")
    parser.add_argument("--plan", default="caller", help="plan of the engine, by rung")
    parser.add_argument("--slots", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of the arrivals of a run")
    parser.add_argument("--samples", type=int, default=5, help="number of runs at each rate")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    given.device = "cpu:0"
    bench = Bench(given)

    def rows(_device: Device) -> Iterator[Json]:
        return measure(bench)

    return row_by_row.run("await", given, rows)


if __name__ == "__main__":
    sys.exit(main())
