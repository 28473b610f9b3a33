"""Grading of the absorbing layers for Maxwell's equations."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headrace.errors import UsageError
from headrace.grid.domain import AXES


@dataclass(frozen=True)
class Cpml:
    """Convolutional perfectly matched layers; docs/fdtd.md describes the profile and the reflection of the defaults.

    At a depth of d, from 0 at a layer's inner border to 1 at the wall, the conductivity is sigma * d^order and alpha is
    alpha * (1 - d)^alpha_order, both in units of 0.8 (order + 1) / (wave impedance of vacuum * spacing * index of the
    medium at the wall); the stretch is 1 + (kappa - 1) * d^kappa_order. Headrace's solver refuses invalid values.
    """

    cells: int = 10
    """Thickness of each layer, or of the thickest; 0 means no layers, and walls that reflect everything."""
    order: float = 3.72
    sigma: float = 1.1
    kappa: float = 6.73
    kappa_order: float = 5.59
    alpha: float = 0.0063
    alpha_order: float = 0.683
    sides: tuple[tuple[int, int], ...] | None = field(default=None, repr=False)
    """Thickness at the low and the high wall of each axis if walls differ; the largest is `cells`."""

    @property
    def at(self) -> tuple[tuple[int, int], ...]:
        """Thickness at the low and the high wall of each of up to three axes."""
        return self.sides or ((self.cells, self.cells),) * 3

    def walls(self, dimensions: int) -> tuple[tuple[int, int], ...] | None:
        """The layers at each wall of three axes, if they differ.

        Raises:
            UsageError: when the number of axes is not that of the domain.
        """
        if self.sides is None:
            return None
        if len(self.sides) != dimensions:
            raise UsageError(
                f"layers are given for the walls of {len(self.sides)} axes, but the domain has {dimensions}"
            )
        return (*self.sides, *((0, 0),) * (AXES - len(self.sides)))

    def without(self, mirrored: Sequence[bool], periodic: Sequence[bool]) -> "Cpml":
        """The layers without those at walls beyond which a scene continues.

        These are the low walls of axes where it continues as its mirror image, and both walls of periodic axes.

        Raises:
            UsageError: when `sides` gives such a wall a layer.
        """
        if not (any(mirrored) or any(periodic)) or not self.cells:
            return self
        for letter, mirror, wraps, (low, high) in zip("xyz", mirrored, periodic, self.at, strict=False):
            if self.sides and mirror and low:
                raise UsageError(
                    f"the mirror image begins at the low wall of {letter}, which has a layer of {low} cells: give it 0"
                )
            if self.sides and wraps and (low or high):
                raise UsageError(
                    f"the walls of {letter} are periodic, but have layers of {low} and {high} cells: give both 0"
                )
        kept = tuple(
            (0 if mirror or wraps else low, 0 if wraps else high)
            for mirror, wraps, (low, high) in zip(mirrored, periodic, self.at, strict=False)
        )
        thickest = max(cells for pair in kept for cells in pair)
        return replace(self, cells=thickest, sides=kept if thickest else None)

    @property
    def grading(self) -> tuple[float, float, float, float, float, float]:
        """All fields except the thicknesses, in order."""
        return (self.order, self.sigma, self.kappa, self.kappa_order, self.alpha, self.alpha_order)
