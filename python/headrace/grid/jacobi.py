"""Jacobi's iteration for Poisson's equation, with NumPy arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace._core import Device, JacobiCore
from headrace.errors import UsageError
from headrace.grid.domain import cuts_of, padded, shape_of

Array = NDArray[Any]


class Jacobi:
    """Jacobi's iteration for -laplace(u) = f, where u is 0 beyond the domain, over one or several devices.

    Arrays have the shape of the domain, x first. An iteration gives each cell the sum of its neighbours and the source
    (spacing^2 times f), over the number of neighbours. It is a stencil of the grid library; see docs/grid.md.
    """

    def __init__(
        self,
        shape: Sequence[int],
        *,
        devices: Sequence[str | Device] = ("best",),
        cut: str | Sequence[int] = "best",
        redundant: int = 1,
        push: str = "automatic",
        passes: str = "automatic",
        pass_steps: int = 4,
        precision: str = "single",
    ) -> None:
        """A domain of zeros in one to three dimensions; a part for each of `devices`, cut as in Fdtd.

        On a GPU up to `redundant` and `pass_steps` (1 to 4) iterations are done in one pass over memory, unless
        `passes` is "never".

        Raises UsageError for what cannot be.
        """
        self._shape = shape_of(shape, (1, 2, 3))
        self._core = JacobiCore(
            shape=padded(self._shape, 1),
            devices=[devices] if isinstance(devices, str | Device) else list(devices),
            cut=cuts_of(cut, len(self._shape)),
            redundant=redundant,
            push=push,
            passes=passes,
            pass_steps=pass_steps,
            precision=precision,
        )
        self._type = np.dtype(np.float32 if precision == "single" else np.float64)

    def set_source(self, values: ArrayLike) -> None:
        """Spacing^2 times f: an array of the domain's shape, or a number."""
        self._core.set_source(self._flat("the source", values))

    def set_solution(self, values: ArrayLike) -> None:
        """What to go on from: an array of the domain's shape, or a number."""
        self._core.set_solution(self._flat("the solution", values))

    def solution(self) -> Array:
        """A copy of u, of the domain's shape, x contiguous."""
        return self._core.get_solution().reshape(self._shape, order="F")

    def step(self, count: int = 1) -> None:
        """Does so many iterations."""
        if count < 0:
            raise UsageError(f"count must be 0 or more, not {count}")
        self._core.step(count)

    def step_with_residuals(self, count: int) -> list[tuple[float, float]]:
        """Does so many iterations, and gives for each the residual before it, as residual() does.

        Residuals are added up while cells are computed, at no cost in memory traffic where passes do the iterations.

        Raises DataError where they grow 64-fold within 64 iterations, which those of Jacobi's do not.
        """
        if count < 0:
            raise UsageError(f"count must be 0 or more, not {count}")
        return self._core.step_with_residuals(count)

    def residual(self) -> tuple[float, float]:
        """The residual before the last iteration: its largest absolute value, and the root of its sum of squares.

        It is taken from what that iteration changed. Both are equal for every cut and device.
        """
        return self._core.residual()

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self._shape

    @property
    def cells(self) -> int:
        """Cells of the domain."""
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def steps_done(self) -> int:
        """Iterations done so far."""
        return self._core.steps_done

    @property
    def push(self) -> str:
        """How border cells get to neighbours: what "automatic" came to."""
        return self._core.push

    @property
    def passes(self) -> bool:
        """Whether all iterations are done in passes, which add up residuals as they go."""
        return self._core.passes

    @property
    def moved_bytes(self) -> int:
        """Bytes that an iteration reads and writes at the least, without what a residual reads."""
        return self._core.moved_bytes

    @property
    def residual_bytes(self) -> int:
        """Bytes that residual() reads: two solutions, once for the largest difference and once for the sum."""
        return 4 * self.cells * self._type.itemsize

    def _flat(self, name: str, values: ArrayLike) -> Array:
        given = np.asarray(values, dtype=self._type)
        if given.shape not in {(), self._shape}:
            raise UsageError(f"{name} has shape {given.shape}, but the domain has shape {self._shape}")
        return np.broadcast_to(given, self._shape).ravel(order="F")
