"""Two operators that share one device: operators.tenants.p99_ratio and operators.tenants.scan_share.

    python bench/tenants.py [--device cuda:0] [--bound 0.5ms] [--save docs/results/tenants.<machine>.json]

The operators are `reference` and `light` with 4,096 steps, under schedule `dispatched`, with half of the device each.
The capacity of each is its highest rate within --bound when alone. Then both are loaded with 60% of their capacity,
alone and together in turn: a row is the worse ratio of the p99 together to the p99 alone. With `noisy`, the neighbour
is offered ten times as much, most of which is refused. With `scan`, one operator has half of the device, and PyTorch
(left out if it is not installed) repeatedly sums 8 GiB on it; scan_share is its speed divided by half of its speed
alone. Arrivals are Poisson, and answers are verified. Exit status: 0; 1 when an answer was wrong or no rate kept the
bound; 2 for wrong use.
"""

import argparse
import importlib.util
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import headrace
import row_by_row
from headrace import Device, Error, Plan, results, serve
from headrace.cli.options import duration
from headrace.profiles import Json

_LOAD = 0.6  # share of the capacity
_NOISY = 10
_FIRST, _LEAST = 100_000.0, 1_000.0  # queries per second
_FINE = 1.1  # precision of the capacity search
_STEPS = 4096
_SCAN_BYTES = 8 << 30


def _plan(generators: int, slots: int) -> Plan:
    plan = serve.find_rung("dispatched").plan
    plan.share, plan.clients_max, plan.slots = 0.5, generators, slots
    plan.binding = "none"  # otherwise the generators of both would be bound to the same processors
    return plan


class Tenant:
    """An operator with half of the device, and its capacity alone."""

    def __init__(self, device: Device, operator: headrace.Operator, given: argparse.Namespace) -> None:
        """Searches for its capacity."""
        self.name, self._given = operator.name, given
        plan = _plan(given.generators, given.slots)
        self.session = serve.LoadSession(device, operator, plan, generators=given.generators)
        self.capacity = self._find_capacity()

    def _find_capacity(self) -> float:
        """The highest sustained rate, within a tenth."""
        low, high = 0.0, math.inf
        rate = _FIRST
        while high / max(low, 1.0) > _FINE and rate > _LEAST:
            done = self.session.run(rate=rate, window=0.05, windows_max=5, stable_windows=5)
            if done.latency.p99 <= self._given.bound and done.refused == 0 and not done.gave_up:
                low = rate
            else:
                high = rate
            rate = 2 * low if math.isinf(high) else math.sqrt(low * high) if low > 0 else high / 2
        if low <= 0:
            raise Error(f"no rate of {self.name} keeps p99 within {self._given.bound * 1e3:g} ms")
        return low

    def run(self, times: float = 1.0) -> headrace.measure.LoadResult:
        """A load at 60% of its capacity, or a multiple of that."""
        windows = max(1, round(self._given.seconds / 0.1))
        result = self.session.run(
            rate=_LOAD * times * self.capacity, window=0.1, windows_max=windows, stable_windows=windows
        )
        if result.wrong:
            raise Error(f"{self.name}: {result.wrong} answers were wrong")
        return result


def _together(*runs: Callable[[], headrace.measure.LoadResult]) -> list[headrace.measure.LoadResult]:
    with ThreadPoolExecutor(len(runs)) as pool:
        return [one.result() for one in [pool.submit(run) for run in runs]]


class _Scan:
    """PyTorch, which repeatedly sums a table on the device."""

    def __init__(self, device: Device) -> None:
        """Starts PyTorch and sums once, because its first calls and allocations would wait for resident kernels."""
        import torch  # noqa: PLC0415 # left out where it is missing

        self._torch = torch
        self._stream = torch.cuda.Stream(device.name)
        with torch.cuda.stream(self._stream):
            self._table = torch.ones(_SCAN_BYTES // 4, dtype=torch.float32, device=device.name)
            for _ in range(3):
                self.sum()

    def sum(self) -> None:
        """Sums the table and waits."""
        with self._torch.cuda.stream(self._stream):
            self._table.sum()
            self._stream.synchronize()


def _scan_of(device: Device) -> _Scan | None:
    """None without PyTorch. Call it before any pool is created."""
    if device.kind.name != "cuda" or importlib.util.find_spec("torch") is None:
        row_by_row.say("no scan: PyTorch or a GPU is missing")
        return None
    return _Scan(device)


@contextmanager
def _scanning(scan: _Scan) -> Iterator[Callable[[], float]]:
    """Sums on the GPU until the context ends; gives a function for the bytes per second since its last call."""
    stop, sums = threading.Event(), [0]

    def sum_on() -> None:
        while not stop.is_set():
            scan.sum()
            sums[0] += 1

    thread = threading.Thread(target=sum_on)
    last = [time.perf_counter(), 0]

    def rate() -> float:
        now, done = time.perf_counter(), sums[0]
        per_second = (done - last[1]) * _SCAN_BYTES / (now - last[0])
        last[:] = [now, done]
        return per_second

    thread.start()
    try:
        yield rate
    finally:
        stop.set()
        thread.join()


def _beside_scan(tenant: Tenant, given: argparse.Namespace, alone: list[float], scan: _Scan) -> Iterator[Json]:
    ratios, speeds = [], []
    with _scanning(scan) as rate:
        for sample in range(given.samples + 1):
            rate()
            result = tenant.run()
            if sample > 0:
                speeds.append(rate())
                ratios.append(result.latency.p99 / median(alone))
    yield results.row(
        "operators.tenants.p99_ratio.scan", ratios, "ratio", None, {"tenant": tenant.name, "verified": True}
    )
    tenant.session.stop()  # now the scan has the device to itself
    with _scanning(scan) as rate:
        time.sleep(1)
        rate()
        time.sleep(given.seconds)
        whole = rate()
    about = {"scan_alone_gb_per_s": whole / 1e9, "verified": True}
    yield results.row(
        "operators.tenants.scan_share", [speed / (whole / 2) for speed in speeds], "fraction", None, about
    )


def _rows(device: Device, given: argparse.Namespace) -> Iterator[Json]:
    scan = _scan_of(device)
    operators = [headrace.operators.reference(), headrace.light(query_bytes=64, threads=128, steps=_STEPS)]
    tenants = [Tenant(device, operator, given) for operator in operators]
    alone: list[list[float]] = [[], []]
    ratios: dict[str, list[float]] = {"": [], ".noisy": []}
    refused = 0
    for sample in range(given.samples + 1):
        single = [tenant.run().latency.p99 for tenant in tenants]
        both = _together(*(tenant.run for tenant in tenants))
        quiet, noisy = _together(tenants[0].run, lambda: tenants[1].run(_NOISY))
        if sample == 0:  # warms up
            continue
        refused += noisy.refused
        for kept, one in zip(alone, single, strict=True):
            kept.append(one)
        ratios[""].append(max(one.latency.p99 / p99 for one, p99 in zip(both, single, strict=True)))
        ratios[".noisy"].append(quiet.latency.p99 / single[0])
    about: Json = {"share": 0.5, "load": _LOAD, "bound_us": given.bound * 1e6, "verified": True}
    for tenant, p99s in zip(tenants, alone, strict=True):
        about |= {f"{tenant.name}_capacity": tenant.capacity, f"{tenant.name}_p99_us": median(p99s) * 1e6}
    yield results.row("operators.tenants.p99_ratio", ratios[""], "ratio", None, about)
    noise = about | {"times": _NOISY, "refused": refused}
    yield results.row("operators.tenants.p99_ratio.noisy", ratios[".noisy"], "ratio", None, noise)
    if scan is not None:
        tenants[1].session.stop()
        yield from _beside_scan(tenants[0], given, alone[0], scan)


def main() -> int:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best")
    parser.add_argument("--bound", type=duration, default=0.5e-3)
    parser.add_argument("--generators", type=int, default=2, help="threads that ask each operator")
    parser.add_argument("--slots", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of a load")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    return row_by_row.run("tenants", given, lambda device: _rows(device, given))


if __name__ == "__main__":
    sys.exit(main())
