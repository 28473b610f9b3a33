"""How grids are run for timing: on which devices, how they exchange, and how long a step takes."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headrace
from headrace import Device, DeviceError, UsageError
from headrace.grid import Fdtd, Jacobi

_SPACING = 1e-3
_SEED = 1
_RANDOM_VALUES = 4_194_301  # a prime
_ROOF_BYTES_MIN = 1 << 20
_ROOF_BYTES_MAX = 1 << 30
_ROOF_RUNS = 3
_TRIAL_STEPS = 16
_TRIALS = 3

Shape = tuple[int, ...]


class NoFigureError(Exception):
    """The reason why a figure has no row."""


@dataclass(frozen=True)
class Settings:
    """How a grid runs."""

    devices: tuple[Device, ...]
    cut: str | tuple[int, ...] = "best"
    redundant: int = 1
    push: str = "automatic"
    passes: str = "automatic"
    pass_steps: int = 4
    precision: str = "single"

    def _options(self, shape: Shape) -> dict[str, Any]:
        # A single device has one part: several are compared with it, each of which is one core of a CPU.
        alone = len(self.devices) == 1 and self.cut == "best"
        return {
            "devices": list(self.devices),
            "cut": (1,) * len(shape) if alone else self.cut,
            "redundant": self.redundant,
            "push": self.push,
            "passes": self.passes,
            "pass_steps": self.pass_steps,
            "precision": self.precision,
        }

    def fdtd(self, shape: Shape, layers: int) -> Fdtd:
        """A domain of vacuum with absorbing layers of this many cells."""
        return Fdtd(shape, _SPACING, cpml=layers, **self._options(shape))

    def jacobi(self, shape: Shape) -> Jacobi:
        """A domain of zeros."""
        return Jacobi(shape, **self._options(shape))


@functools.lru_cache(maxsize=1)
def _random(shape: Shape) -> NDArray[Any]:
    """Values between -0.5 and 0.5 for every cell: zeros would be computed faster than other values.

    They repeat after some millions, a number that has no factor in common with a row's.
    """
    values = np.random.default_rng(_SEED).random(_RANDOM_VALUES, dtype=np.float32)
    values -= np.float32(0.5)
    return np.resize(values, int(np.prod(shape, dtype=np.int64))).reshape(shape, order="F")


@dataclass
class Work:
    """A configured grid: the function that advances it, and the bytes that a step must move."""

    advance: Callable[[int], None]
    step_bytes: int
    about: dict[str, Any] = field(default_factory=dict)


def fdtd_work(settings: Settings, shape: Shape, layers: int) -> Work:
    """Maxwell's equations from random fields."""
    run = settings.fdtd(shape, layers)
    run.set_field("ez", _random(shape))
    about = {"cpml": layers, "cut": "; ".join(cells for _, cells in run.parts), "push": run.push}
    return Work(run.step, run.moved_bytes, about)


def jacobi_work(settings: Settings, shape: Shape) -> Work:
    """Jacobi's iteration for a random source, with the norms of the residual after each."""
    run = settings.jacobi(shape)
    run.set_source(_random(shape))

    def advance(count: int) -> None:
        run.step_with_residuals(count)

    cut = settings.cut if isinstance(settings.cut, str) else "x".join(map(str, settings.cut))
    # Without passes, each step goes through memory for itself, because its norm follows: it reads a solution and the
    # source, and writes a solution. The norm reads four values a cell.
    step_bytes = run.moved_bytes if run.passes else run.residual_bytes // 4 * 3 + run.residual_bytes
    return Work(advance, step_bytes, {"cut": cut, "push": run.push, "norm_every": 1})


@dataclass
class Timed:
    """The measurements of a grid."""

    seconds: list[float]
    steps: int
    cells: int
    step_bytes: int
    memory: float  # bytes per second of copies of the same size in the same run
    about: dict[str, Any]

    @property
    def rates(self) -> list[float]:
        """Rates in cells per second."""
        return [self.cells * self.steps / seconds for seconds in self.seconds]

    @property
    def roof(self) -> float:
        """Cells per second that memory allows for this scheme."""
        return self.memory * self.cells / self.step_bytes


def _memory(devices: Sequence[Device], step_bytes: int) -> list[float]:
    """Copies of as much memory as a step touches, limited to a size that exceeds any cache."""
    each = step_bytes // (4 * len(devices))
    each = max(_ROOF_BYTES_MIN, min(each, _ROOF_BYTES_MAX))
    return headrace.measure.memory_copies(list(devices), each, _ROOF_RUNS)


@dataclass(frozen=True)
class Case:
    """A grid to time."""

    make: Callable[[Settings], Work]
    settings: Settings
    shape: Shape


def timed(case: Case, steps: int, samples: int) -> Timed:
    """Times `samples` times `steps` steps after an untimed warm-up; the roof is measured before and after."""
    return timed_in_turn([case], steps, samples)[0]


def timed_in_turn(cases: Sequence[Case], steps: int, samples: int) -> list[Timed]:
    """Times several grids for comparison: they take turns, sample by sample, so that all see the same machine.

    If memory cannot hold all of them at once, they are timed one after the other.
    """
    works = _made(cases)
    if not works:
        return [timed(case, steps, samples) for case in cases]
    memory = [_memory(case.settings.devices, work.step_bytes) for case, work in zip(cases, works, strict=True)]
    seconds: list[list[float]] = [[] for _ in cases]
    for sample in range(samples + 1):
        for work, taken in zip(works, seconds, strict=True):
            began = time.perf_counter()
            work.advance(steps)
            if sample > 0:
                taken.append(time.perf_counter() - began)
    found = []
    for case, work, taken, before in zip(cases, works, seconds, memory, strict=True):
        found.append(_described(case, work, steps, taken, before + _memory(case.settings.devices, work.step_bytes)))
    return found


def _made(cases: Sequence[Case]) -> list[Work]:
    """All of them; empty if they do not fit in memory together."""
    works: list[Work] = []
    try:
        works.extend(case.make(case.settings) for case in cases)
    except DeviceError:
        if len(cases) == 1:
            raise
        works.clear()
    return works


def _described(case: Case, work: Work, steps: int, seconds: list[float], memory: list[float]) -> Timed:
    settings = case.settings
    cells = int(np.prod(case.shape, dtype=np.int64))
    about = {
        "shape": "x".join(map(str, case.shape)),
        "steps": steps,
        "devices": len(settings.devices),
        "precision": settings.precision,
        "redundant": settings.redundant,
        "passes": settings.passes,
        "pass_steps": settings.pass_steps,
        **work.about,
        "bytes_per_cell": round(work.step_bytes / cells, 3),
        "memory_gb_per_s": median(memory) / 1e9,
    }
    return Timed(seconds, steps, cells, work.step_bytes, median(memory), about)


def choose(
    make: Callable[[Settings], Work],
    settings: Settings,
    redundants: Sequence[int],
    pushes: Sequence[str],
    say: Callable[[str], None],
    cuts: Sequence[str | Shape] = (),
) -> Settings:
    """The settings with the shortest step among redundant layers, pushes and cuts; a single device is not cut.

    Raises:
        NoFigureError: when no setting works.
    """
    several = len(settings.devices) > 1
    ways = pushes if several else ("automatic",)
    shapes = cuts if several and cuts else (settings.cut,)
    tried = [
        replace(settings, redundant=count, push=push, cut=cut)
        for count in redundants
        for push in ways
        for cut in shapes
    ]
    if len(tried) == 1:
        return tried[0]
    found: list[tuple[float, int]] = []
    reason = "nothing to choose from"
    for number, candidate in enumerate(tried):
        try:
            work = make(candidate)
        except UsageError as error:
            reason = str(error)
            say(f"  redundant {candidate.redundant}, push {candidate.push}: {reason}")
            continue
        work.advance(_TRIAL_STEPS)
        best = float("inf")
        for _ in range(_TRIALS):
            began = time.perf_counter()
            work.advance(_TRIAL_STEPS)
            best = min(best, time.perf_counter() - began)
        found.append((best, number))
        del work  # so that the next one finds its memory free
    if not found:
        raise NoFigureError(reason)
    return tried[min(found)[1]]
