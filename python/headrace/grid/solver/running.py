"""Steps a model to its end: pauses for watchers, detects fields that are not finite, and handles Ctrl-C."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.errors import DataError
from headrace.grid.solver.model import Array, Solver
from headrace.grid.solver.scene import Scene
from headrace.interrupts import Stop

_CHUNK_SECONDS = 0.1  # stepping time between two checks for Ctrl-C
_CHECK_SHARE = 0.03  # share of the time that checks for non-finite fields may take


@dataclass(frozen=True)
class Watcher:
    """Called with the solver after every `every` steps, or once after `at` steps."""

    act: Callable[[Solver], None]
    every: int = 0
    at: int = 0

    def next(self, step: int) -> int | None:
        """The next step after which to call it; None if there is none."""
        if self.every:
            return (step // self.every + 1) * self.every
        return self.at if self.at > step else None


@dataclass
class Speed:
    """Cells done, and the time of stepping alone."""

    cells: int = 0
    seconds: float = 0.0

    @property
    def cells_per_second(self) -> float:
        """0 before the first step."""
        return self.cells / self.seconds if self.seconds else 0.0


class FiniteCheck:
    """Checks whether the field is finite, as often as the cost allows."""

    def __init__(self, scene: Scene, solver: Solver) -> None:
        self._scene = scene
        self._solver = solver
        self._good = solver.steps_done
        self._next = 0.0

    def due(self) -> bool:
        """Whether a check is due."""
        return time.monotonic() >= self._next

    def look(self) -> None:
        """Checks the field.

        Raises:
            DataError: naming step and cell when the field is not finite.
        """
        began = time.monotonic()
        # One component suffices: through the curls the others follow within a step.
        values = self._solver.field(self._scene.main_field)
        if not np.isfinite(values).all():
            raise self._error(values)
        self._good = self._solver.steps_done
        ended = time.monotonic()
        self._next = ended + (ended - began) / _CHECK_SHARE

    def _error(self, values: Array) -> DataError:
        # A fault spreads evenly in all directions, so its origin is in the middle.
        bad = np.argwhere(~np.isfinite(values))
        cell = tuple(int(at) for at in np.median(bad, axis=0))
        return DataError(
            f"{self._scene.path}: the field is not finite at step {self._solver.steps_done:,} (it was at step "
            f"{self._good:,}): {len(bad):,} cells of {self._scene.main_field} around cell "
            f"{list(cell)}; is the amplitude of a source too large for {self._scene.precision} precision?"
        )


def run(
    scene: Scene,
    solver: Solver,
    watchers: Sequence[Watcher] = (),
    *,
    progress: Callable[[int, Speed], None] = lambda _step, _speed: None,
    stop: Stop | None = None,
    agree: Callable[[list[int]], list[int]] = list,
) -> Speed:
    """Steps the solver to the scene's end, or until `stop` is requested.

    If several processes step together, `agree` gives all of them the numbers of one.

    Raises:
        DataError: naming step and cell when the field is no longer finite.
    """
    speed = Speed()
    check = FiniteCheck(scene, solver)
    least = getattr(solver, "steps_at_once", 1)
    chunk = least
    while solver.steps_done < scene.steps:
        chunk, due, asked = agree([chunk, int(check.due()), int(stop is not None and stop.asked)])
        if asked:
            break
        step = solver.steps_done
        wanted = [found for watcher in watchers if (found := watcher.next(step)) is not None]
        count = min(chunk, min([*wanted, scene.steps]) - step)
        began = time.monotonic()
        solver.step(count)
        seconds = time.monotonic() - began
        speed.cells += count * scene.cells
        speed.seconds += seconds
        chunk = max(least, min(2 * chunk, int(count * _CHUNK_SECONDS / max(seconds, 1e-9))) // least * least)
        if due or solver.steps_done == scene.steps:
            check.look()
        for watcher in watchers:
            if watcher.next(step) == solver.steps_done:
                watcher.act(solver)
        progress(solver.steps_done, speed)
    return speed
