"""Dispersive materials of a scene: their keys, their checks, and their form for the solver."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace._core import pole_values_needed
from headrace.errors import UsageError
from headrace.grid.dispersion import Debye, Drude, Lorentz, Pole, medium_of
from headrace.grid.domain import walls_of
from headrace.grid.solver.keys import Keys
from headrace.grid.solver.painting import Laid, lay
from headrace.grid.solver.scene import Material, Scene

_KINDS = ("debye", "lorentz", "drude")
_CONDUCTOR = 1e9  # S/m from which a material is a perfect conductor
_AXES = 3


def read_poles(keys: Keys) -> tuple[Pole, ...]:
    """The poles of a material."""
    found = []
    for one in keys.tables("poles"):
        kind = one.choice("type", _KINDS)
        if kind == "debye":
            pole: Pole = Debye(one.number("difference"), one.number("relaxation_time", above=0))
        elif kind == "lorentz":
            pole = Lorentz(one.number("difference"), one.number("frequency", above=0), one.number("damping", least=0))
        else:
            pole = Drude(one.number("frequency", above=0), one.number("rate", above=0))
        one.done()
        found.append(pole)
    return tuple(found)


def check_poles(keys: Keys, material: Material, dt: float) -> None:
    """Refuses poles that are invalid for a run with this time step.

    Raises:
        UsageError: naming the material, and what is wrong with its poles.
    """
    if not material.poles:
        return
    if material.conductivity >= _CONDUCTOR:
        raise keys.error(
            f"{material.conductivity:g} S/m is a perfect conductor, which cannot have poles", "conductivity"
        )
    try:
        problem = medium_of(material.poles).problem(dt)
    except UsageError as error:
        raise keys.error(str(error), "poles") from None
    if problem:
        raise keys.error(problem, "poles")


def stable_permittivity(material: Material, dt: float) -> float:
    """The permittivity for which the time step must be stable."""
    return float(material.permittivity + medium_of(material.poles).permittivity_at_fastest(dt))


def permittivity_of(material: Material, frequency: float) -> complex:
    """The relative permittivity at a frequency in Hz, without the conductivity."""
    return material.permittivity + sum((one.permittivity(frequency) for one in material.poles), start=0j)


def in_step(material: Material, dt: float) -> Material:
    """The equivalent material without poles for a step of this length, in which part of the polarisation acts."""
    if not material.poles:
        return material
    medium = medium_of(material.poles)
    return replace(
        material,
        permittivity=material.permittivity + medium.permittivity_in_step(dt),
        conductivity=material.conductivity + medium.conductivity,
        poles=(),
    )


def mean_poles(around: Iterable[Material], count: int) -> tuple[Pole, ...]:
    """The poles of a mean of `count` materials: those of all, weighted by their shares."""
    shares: dict[tuple[Pole, ...], int] = {}
    for one in around:
        shares[one.poles] = shares.get(one.poles, 0) + 1
    return tuple(pole.scaled(share / count) for poles, share in shares.items() for pole in poles)


@dataclass
class Media:
    """The dispersive media of a run, numbered from 1."""

    listed: list[tuple[Pole, ...]]

    def number(self, material: Material) -> int:
        """The number of a material's poles, which are added if new; 0 for none."""
        if not material.poles:
            return 0
        if material.poles not in self.listed:
            self.listed.append(material.poles)
        return self.listed.index(material.poles) + 1

    def of_cells(self, laid: Laid) -> NDArray[np.uint16] | int:
        """The number of every cell; a single number if all are equal."""
        table = np.array([self.number(one) for one in laid.materials], dtype=np.uint16)
        used = np.unique(table[np.unique(laid.cells)])
        return int(used[0]) if used.size == 1 else np.asarray(table[laid.cells], dtype=np.uint16)


def is_dispersive(scene: Scene) -> bool:
    """Whether the scene uses a material with poles."""
    used = {scene.background, *(name for one in scene.objects for name in one.along)}
    return any(scene.materials[name].poles for name in used)


def values_needed(scene: Scene, laid: Laid) -> int:
    """Number of memory values that each component of E needs for poles; 0 if no material has any."""
    if not is_dispersive(scene):
        return 0
    media = Media([])
    cells = media.of_cells(laid)
    flat = np.array([cells], dtype=np.uint16) if isinstance(cells, int) else cells.ravel(order="F")
    edges: list[tuple[Any, Any]] = []
    for name in ("ex", "ey", "ez"):
        own = laid.edges.get(name)
        table = np.array([media.number(one) for one in laid.materials], dtype=np.uint16)
        edges.append((own.cells, table[own.materials]) if own else (np.zeros(0, np.int64), np.zeros(0, np.uint16)))
    shape = (*scene.shape, *(1,) * (_AXES - scene.dimensions))
    made = [medium_of(poles) for poles in media.listed]
    return int(
        pole_values_needed(
            scene.dimensions,
            shape,
            scene.averaging,
            made,
            flat,
            (edges[0], edges[1], edges[2]),
            scene.polarisation,
            walls_of(scene.periodic_named(), scene.dimensions),
        )
    )


@lru_cache(maxsize=4)
def _values_of(digest: str, scene_of: "_Scene") -> int:  # noqa: ARG001 - the digest is the key
    return values_needed(scene_of.scene, lay(scene_of.scene))


class _Scene:
    """Wraps a scene so that caches do not compare it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scene)


def values_of(scene: Scene) -> int:
    """Like values_needed(), for a scene that has not been painted."""
    return _values_of(scene.digest(), _Scene(scene)) if is_dispersive(scene) else 0
