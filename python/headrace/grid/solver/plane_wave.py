"""Plane waves: sources on the faces of a box create the wave inside, and only the scattered field is outside."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.grid.solver.scene import LIGHT, Material, PlaneWave, Scene
from headrace.grid.solver.waveforms import Samples
from headrace.grid.spacing import in_space

_LETTERS = "xyz"
# The solver's constants, so that the wave on the faces equals the one inside to the last digits: CODATA 2022, H/m and
# F/m.
_PERMEABILITY = 1.25663706127e-6
_PERMITTIVITY = 1 / (_PERMEABILITY * LIGHT**2)

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class Face:
    """Samples to add to a field in some cells."""

    field: str
    cells: Cells
    samples: Samples


@dataclass(frozen=True)
class _Wave:
    """The wave on its way through the box, computed by the one-dimensional scheme sample by sample.

    In one dimension a step and a cell are those of the domain, so the wave has exactly the speed that it has there
    along an axis: what the faces inject at one end they remove at the other, up to rounding.
    """

    electric: NDArray[np.float64]  # (steps, nodes): before the electric update of a step
    magnetic: NDArray[np.float64]  # after its magnetic update, half a cell further; with the sign of the electric field

    @classmethod
    def of(cls, scene: Scene, wave: PlaneWave, material: Material, nodes: int) -> "_Wave":
        permittivity = material.permittivity * _PERMITTIVITY
        spacing = scene.spacing[wave.axis]
        to_electric = scene.dt / permittivity / spacing
        to_magnetic = scene.dt / (material.permeability * _PERMEABILITY) / spacing
        # Long enough that nothing reflects from its end: a signal travels at most one cell per step.
        length = nodes + scene.steps // 2 + 2
        electric, magnetic = np.zeros(length), np.zeros(length)
        kept = np.zeros((scene.steps, nodes)), np.zeros((scene.steps, nodes))
        moments: Samples = np.asarray(np.arange(scene.steps) * scene.dt, dtype=np.float64)
        driven = wave.wave.at(moments, moments, scene.dt)
        for step in range(scene.steps):
            electric[0] = driven[step]
            kept[0][step] = electric[:nodes]
            magnetic[:-1] += to_magnetic * np.diff(electric)
            kept[1][step] = magnetic[:nodes]
            electric[1:] += to_electric * np.diff(magnetic)
        return cls(*kept)


def faces(scene: Scene, wave: PlaneWave, materials: NDArray[np.uint16], palette: list[Material]) -> Iterator[Face]:
    """What to add on the faces of the box (total field and scattered field, Taflove and Hagness, chapter 5).

    Raises:
        UsageError: when the box ends in different materials, or in a conducting one.
    """
    material = _around(scene, wave, materials, palette)
    p, k = _LETTERS.index(wave.field[1]), wave.axis
    q = 3 - p - k
    low, high = wave.low, wave.high
    nodes = high[k] - low[k] + 3
    inside = _Wave.of(scene, wave, material, nodes)
    # By the axis across a face, along which the difference is taken.
    spacing = in_space(scene.spacing)
    to_electric = [scene.dt / (material.permittivity * _PERMITTIVITY) / one for one in spacing]
    to_magnetic = [scene.dt / (material.permeability * _PERMEABILITY) / one for one in spacing]
    turn = 1 if (p, k, q) in {(0, 1, 2), (1, 2, 0), (2, 0, 1)} else -1

    def electric(at: int) -> Samples:
        return inside.electric[:, at - low[k] + 1 if wave.forward else high[k] + 1 - at]

    def magnetic(at: int) -> Samples:
        """Half a cell above a node, with its sign."""
        if wave.forward:
            return turn * inside.magnetic[:, at - low[k] + 1]
        return -turn * inside.magnetic[:, high[k] - at]

    def cells(half: set[int], fixed: dict[int, int]) -> Cells:
        """Cells of a component: it lies half a cell further along some axes, and on a face along others."""
        ranges = [
            np.array([fixed[axis]]) if axis in fixed else np.arange(low[axis], high[axis] + (axis not in half))
            for axis in range(scene.dimensions)
        ]
        return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, scene.dimensions).astype(np.int64)

    e_p, h_q, half_p = wave.field, "h" + _LETTERS[q], {p}
    yield Face(e_p, cells(half_p, {k: low[k]}), -turn * to_electric[k] * magnetic(low[k] - 1))
    yield Face(e_p, cells(half_p, {k: high[k]}), turn * to_electric[k] * magnetic(high[k]))
    yield Face(h_q, cells(half_p, {k: low[k] - 1}), -turn * to_magnetic[k] * electric(low[k]))
    yield Face(h_q, cells(half_p, {k: high[k]}), turn * to_magnetic[k] * electric(high[k]))
    for at in range(low[k], high[k] + 1) if q < scene.dimensions else ():
        for side, sign in ((low[q] - 1, 1), (high[q], -1)):
            here = cells(half_p, {k: at, q: side})
            yield Face("h" + _LETTERS[k], here, sign * turn * to_magnetic[q] * electric(at))
    if p >= scene.dimensions:
        return  # in two dimensions there are no faces across z, the axis of p or q
    for at in range(low[k], high[k]):
        for side, sign in ((low[p], 1), (high[p], -1)):
            here = cells({k}, {k: at, p: side})
            yield Face("e" + _LETTERS[k], here, sign * turn * to_electric[p] * magnetic(at))


def _around(scene: Scene, wave: PlaneWave, cells: NDArray[np.uint16], palette: list[Material]) -> Material:
    """The single material on the faces of the box, and next to them."""
    found: set[int] = set()
    for axis in range(scene.dimensions):
        for at in (wave.low[axis], wave.high[axis]):
            shell = tuple(
                slice(at - 1, at + 1) if other == axis else slice(wave.low[other] - 1, wave.high[other] + 1)
                for other in range(scene.dimensions)
            )
            found |= set(np.unique(cells[shell]).tolist())
    if len(found) > 1:
        names = ", ".join(sorted(palette[number].name for number in found))
        raise UsageError(
            f"{scene.path}: [[plane_waves]] {wave.name}: its box ends in several materials ({names}), but a "
            "plane wave must enter through one: make the box smaller or larger"
        )
    material = palette[found.pop()]
    if material.poles:
        raise UsageError(
            f"{scene.path}: [[plane_waves]] {wave.name}: its box ends in {material.name}, which is dispersive: a plane "
            "wave must enter through a non-dispersive material"
        )
    if material.conductivity > 0:
        raise UsageError(
            f"{scene.path}: [[plane_waves]] {wave.name}: its box ends in {material.name}, which conducts: a plane wave "
            "must enter through a non-conducting material"
        )
    return material
