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
    """Jacobi's iteration for -laplace(u) = f with u = 0 outside of the domain, on one or several devices.

    Arrays have the shape of the domain, x first. An iteration sets each cell to the sum of its neighbours and the
    source (spacing^2 times f), divided by the number of neighbours. It is a stencil of the grid library; see
    docs/grid.md.
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
        """Creates a domain of zeros in one to three dimensions, with a part per device or core, cut as in Fdtd.

        On a GPU, one pass over memory does up to `redundant` and `pass_steps` (1 to 4) iterations, unless `passes` is
        "never".

        Raises UsageError for invalid arguments.
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
        """Sets spacing^2 times f: an array of the domain's shape, or a number."""
        self._core.set_source(self._flat("the source", values))

    def set_solution(self, values: ArrayLike) -> None:
        """Sets the current solution: an array of the domain's shape, or a number."""
        self._core.set_solution(self._flat("the solution", values))

    def solution(self) -> Array:
        """A copy of u with the domain's shape, x contiguous."""
        return self._core.get_solution().reshape(self._shape, order="F")

    def step(self, count: int = 1) -> None:
        """Does `count` iterations."""
        if count < 0:
            raise UsageError(f"count must be 0 or more, not {count}")
        self._core.step(count)

    def step_with_residuals(self, count: int) -> list[tuple[float, float]]:
        """Does `count` iterations, and returns for each the residual before it, as residual() does.

        Residuals are summed while cells are computed, without memory traffic if the iterations are done in passes.

        Raises DataError if they grow 64-fold within 64 iterations, which those of Jacobi's iteration do not.
        """
        if count < 0:
            raise UsageError(f"count must be 0 or more, not {count}")
        return self._core.step_with_residuals(count)

    def residual(self) -> tuple[float, float]:
        """The residual before the last iteration: its largest absolute value, and the root of its sum of squares.

        It is computed from the changes of that iteration. Both values are equal for every cut and device.
        """
        return self._core.residual()

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self._shape

    @property
    def cells(self) -> int:
        """Number of cells of the domain."""
        return int(np.prod(self._shape, dtype=np.int64))

    @property
    def steps_done(self) -> int:
        """Number of iterations done."""
        return self._core.steps_done

    @property
    def push(self) -> str:
        """How border cells reach neighbours, with "automatic" resolved."""
        return self._core.push

    @property
    def passes(self) -> bool:
        """Whether all iterations are done in passes, which sum residuals on the way."""
        return self._core.passes

    @property
    def moved_bytes(self) -> int:
        """Minimum bytes that an iteration reads and writes, without those of a residual."""
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
