"""What lies at the walls of a domain for Maxwell's equations: absorbing layers, mirrors, or the other wall."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace.errors import UsageError
from headrace.grid.domain import walls_of
from headrace.grid.layers import Cpml

_LAYERS, _MAGNETIC, _PERIODIC = "layers", "magnetic_walls", "periodic"
_OTHER = {
    _LAYERS: "another grading of its absorbing layers: give the same Cpml",
    _MAGNETIC: "other magnetic walls: give the same ones",
    _PERIODIC: "other periodic walls: give the same ones",
}


@dataclass(frozen=True)
class Walls:
    """The walls of three axes."""

    layers: Cpml
    magnetic: tuple[bool, bool, bool]
    """Whether the low wall of each axis is a magnetic conductor."""
    periodic: tuple[bool, bool, bool]
    """Whether the domain continues at its other wall along each axis."""

    @classmethod
    def of(cls, cpml: int | Cpml, magnetic: Sequence[str], periodic: Sequence[str], dimensions: int) -> "Walls":
        """The walls as users name them.

        Raises:
            UsageError: for unknown axes, or layers where there cannot be any.
        """
        mirrored, wraps = walls_of(magnetic, dimensions), walls_of(periodic, dimensions)
        layers = cpml if isinstance(cpml, Cpml) else Cpml(cpml)
        return cls(layers.without(mirrored[:dimensions], wraps[:dimensions]), mirrored, wraps)

    def state(self) -> dict[str, NDArray[Any]]:
        """The part of a state that describes them; empty if all walls conduct and have no layers."""
        found = {}
        if self.layers.cells:
            sides = [cells for pair in self.layers.sides or () for cells in pair]
            found[_LAYERS] = np.array([self.layers.cells, *self.layers.grading, *sides], dtype=np.float64)
        if any(self.magnetic):
            found[_MAGNETIC] = np.array(self.magnetic)
        if any(self.periodic):
            found[_PERIODIC] = np.array(self.periodic)
        return found

    def check(self, state: Mapping[str, ArrayLike]) -> None:
        """Checks that a state with the same keys is of a run with these walls.

        Raises:
            UsageError: when it is not.
        """
        for name, values in self.state().items():
            if not np.array_equal(np.asarray(state[name]), values):
                raise UsageError(f"this state is of a run with {_OTHER[name]}")
