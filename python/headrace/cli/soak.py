"""`headrace soak`: applies load for hours, and checks that nothing is lost, leaked or left behind."""

import ctypes
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer

import headrace
from headrace import Error, Plan, results, tables
from headrace.cli import options, show
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_FAILURE, STATUS_INTERRUPTED
from headrace.cli.grouped import grouped
from headrace.measure import LoadResult
from headrace.quiet import Watch
from headrace.serve import LoadSession
from headrace.units import bytes_text

_FLAT = 0.02
_CHUNK = 5.0
_WINDOWS = 10
_WARM_CHUNKS = 3
_SLOTS = 8192  # room for arrivals while a shared machine pauses for some milliseconds


def resident_bytes() -> int:
    """Resident memory of this process, after the allocator has returned unused blocks."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _give_memory_back_at_once() -> None:
    """Makes the allocator return every large block when it is freed.

    By default it sometimes keeps vectors in which latencies are collected, and constant memory appears to change.
    """
    m_mmap_threshold = -3
    ctypes.CDLL(None).mallopt(m_mmap_threshold, 256 * 1024)


def thread_count() -> int:
    """Number of threads of this process."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


@dataclass
class Report:
    """Results of a soak."""

    rate: float
    seconds: float = 0
    submitted: int = 0
    back: int = 0
    refused: int = 0
    failed: int = 0
    wrong: int = 0
    p99_worst: float = 0
    threads_before: int = 0
    threads_after: int = 0
    resident: list[int] = field(default_factory=list)
    interrupted: bool = False

    @property
    def resident_drift(self) -> float:
        """Change of memory since warm-up, as a share of its value then."""
        warm = self.resident[_WARM_CHUNKS:] or self.resident[-1:]
        return (max(warm) - min(warm)) / warm[0] if warm else 0.0

    def faults(self) -> list[str]:
        """Everything that is wrong."""
        found = []
        if self.back != self.submitted:
            found.append(f"{self.submitted:,} queries were admitted and {self.back:,} came back")
        if self.wrong or self.failed:
            found.append(f"{self.wrong:,} wrong answers, {self.failed:,} failures")
        if self.resident_drift > _FLAT:
            found.append(f"memory changed by {self.resident_drift:.1%} after warm-up")
        if self.threads_after > self.threads_before:
            found.append(f"{self.threads_after} threads at the end, {self.threads_before} at the start")
        return found

    def take(self, load: LoadResult) -> None:
        """Adds one chunk."""
        self.back += load.answered
        self.refused += load.refused
        self.failed += load.failed
        self.wrong += load.wrong
        self.p99_worst = max(self.p99_worst, load.latency.p99)
        self.interrupted = load.interrupted
        self.resident.append(resident_bytes())


def find_peak(device: headrace.Device, op: headrace.Operator, rung: str, generators: int) -> tuple[float, Plan] | None:
    """The highest rate that the rung sustains within 0.5 ms, and its plan; None when interrupted."""
    number = headrace.serve.find_rung(rung).number
    with show.live_ladder() as live:
        climb = headrace.serve.ladder(
            device, op, rungs=[number], generators=generators, progress=live.progress, finished=live.finished
        )
    if climb.interrupted:
        return None
    result = climb.rungs[0]
    if result.load is None:
        raise Error(f"rung {number} has no peak to take a share of ({result.note}): name --rung or --rate")
    return result.load.measured_per_second, result.plan


@contextmanager
def suppress_interrupt(report: Report) -> Iterator[None]:
    """Makes Ctrl-C end the block, and records it in the report."""
    try:
        yield
    except KeyboardInterrupt:
        report.interrupted = True


def soak_plan(
    device: headrace.Device, op: headrace.Operator, plan: Plan, rate: float, seconds: float, generators: int
) -> Report:
    """Runs the load in chunks on one engine until the time is up."""
    _give_memory_back_at_once()
    report = Report(rate, threads_before=thread_count())
    session = LoadSession(device, op, plan, generators=generators)
    began = time.monotonic()
    # Ctrl-C may also arrive between two chunks, in Python.
    with suppress_interrupt(report), show.progress_bar(f"Soak at {tables.rate(rate)} queries/s") as bar:
        # All chunks have the same length, so that each needs the same memory.
        count = max(1, math.ceil(seconds / _CHUNK))
        for number in range(count):
            if report.interrupted:
                break
            load = session.run(
                rate=rate,
                seed=1 + number,
                window=seconds / count / _WINDOWS,
                windows_max=_WINDOWS,
                stable_windows=_WINDOWS,
                warm_up=0,
            )
            report.take(load)
            report.seconds = time.monotonic() - began
            bar((number + 1) / count)
    report.submitted = session.statistics().submitted
    session.stop()
    del session
    report.threads_after = thread_count()
    return report


def _print(report: Report, faults: list[str], watch: Watch) -> None:
    lines = [
        f"{report.seconds:.1f} s at {tables.rate(report.rate)} queries/s",
        f"queries admitted / came back: {report.submitted:,} / {report.back:,}; refused {report.refused:,}, failed "
        f"{report.failed:,}, wrong {report.wrong:,}",
        f"worst p99 of {len(report.resident)} chunks: {tables.latency(report.p99_worst)}",
        f"memory: {bytes_text(resident_bytes())} at the end, changed by {report.resident_drift:.2%} after warm-up",
        f"threads: {report.threads_before} before, {report.threads_after} after",
        f"FAILED: {'; '.join(faults)}" if faults else "passed",
    ]
    for line in lines:
        show.stdout().print(line, markup=False, soft_wrap=True)
    show.print_quiet(show.stdout(), watch.stop())


@grouped
def soak(
    minutes: Annotated[float, typer.Option("--minutes", min=0.01, help="Duration in minutes.")] = 10.0,
    share: Annotated[
        float, typer.Option("--share", min=0.01, max=1.0, help="Load, as a share of the rung's peak.")
    ] = 0.8,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            parser=options.rate,
            metavar="RATE",
            help="Load in queries per second, instead of a share of the peak.",
        ),
    ] = None,
    rung: Annotated[str, typer.Option("--rung", help="Rung, by number or id.")] = "6",
    operator: options.OperatorOption = options.OperatorName.light,
    index: options.IndexOption = None,
    device: options.DeviceOption = "best",
    generators: options.GeneratorsOption = 1,
    *,
    dense: Dense,
    as_json: options.JsonOption = False,
) -> None:
    """Load one rung for minutes and check that every query returns once, memory stays flat and threads end.

    Example: headrace soak --minutes 10 --share 0.8
    """
    chosen = options.find_device(device)
    op = options.make_operator(operator, index, dense=dense)
    plan = headrace.serve.find_rung(rung).plan
    if rate is None:
        peak = find_peak(chosen, op, rung, generators)
        if peak is None:
            raise typer.Exit(STATUS_INTERRUPTED)
        rate, plan = share * peak[0], peak[1]
    plan.slots = max(plan.slots, _SLOTS)
    show.expect(minutes * 60)
    watch = Watch()
    report = soak_plan(chosen, op, plan, rate, minutes * 60, generators)
    faults = report.faults()
    if as_json:
        facts = asdict(report) | {"resident_drift": report.resident_drift, "faults": faults}
        facts["quiet"] = watch.as_dict()
        typer.echo(json.dumps(facts | {"machine": results.machine(chosen), "commit": results.commit()}, indent=2))
    else:
        _print(report, faults, watch)
    if report.interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
    if faults:
        raise typer.Exit(STATUS_FAILURE)
