"""Materials of a plane per component, from the exact shapes: shares of areas, and contours cut by conductors.

Ez is parallel to every interface of a plane, so it takes the mean permittivity and conductivity, weighted by the area
of each material in the square around it. If a perfect conductor cuts the way between two Ez, Faraday's law is applied
around the remaining part (the contour-path method: Jurgens, Taflove, Umashankar and Moore, IEEE Transactions on
Antennas and Propagation 40, 1992; Dey and Mittra, IEEE Microwave and Guided Wave Letters 7, 1997).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.grid.solver.scene import LIGHT, Cell, Material, Scene
from headrace.grid.solver.shapes import SLACK

PERFECT = 1e10  # S/m from which a material is a perfect conductor: that of `pec`

_SAMPLES = 32  # along each axis of the square around a component
_POINTS_AT_ONCE = 1 << 21
_PARTS = 8  # parts of the way between two nodes in which a conductor's surface is searched
_HALVINGS = 30  # halvings that then locate it to 1e-10 of the spacing
_SHORTEST = 1e-5  # share of the spacing: a node closer to a conductor belongs to it
_ROUNDED = 1 + 1e-12  # the solver adds the same numbers in a different order

Array = NDArray[np.float64]
Nodes = NDArray[np.int64]  # (nodes, 2)
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Smoothed:
    """Material of each component: arrays of the domain's shape, x contiguous."""

    permittivity: Array  # for ez
    conductivity: Array
    permeability_hx: Array
    permeability_hy: Array

    def at(self, name: str, node: Cell) -> Material:
        """The material of a component of a node."""
        permeability = {"hx": self.permeability_hx, "hy": self.permeability_hy}.get(name)
        if permeability is not None:
            return Material("mean", permeability=float(permeability[node]))
        return Material("mean", float(self.permittivity[node]), 1.0, float(self.conductivity[node]))


def smooth(scene: Scene) -> Smoothed:
    """The materials of a plane per component."""
    plane = _Plane(scene)
    mixed = plane.mixed()
    found = Smoothed(
        *(plane.uniform(name) for name in ("permittivity", "conductivity", "permeability", "permeability"))
    )
    conducts = plane.table("conductivity")[plane.at_nodes] >= PERFECT
    for nodes in _pieces(np.argwhere(mixed)):
        numbers = plane.around(nodes, (0.0, 0.0))
        _mean_of_ez(plane, numbers, nodes, found)
        conducts[tuple(nodes.T)] = plane.touches_conductor(nodes)
    if len(set(plane.table("permeability").tolist())) > 1:
        for nodes in _pieces(np.argwhere(_grown(mixed))):
            _mean_of_h(plane, nodes, found)
    cut = _cut_contours(plane, np.argwhere(_grown(mixed)), conducts, found)
    found.conductivity[conducts] = np.maximum(found.conductivity[conducts], PERFECT)
    _keep_stable(scene, cut, found)
    return found


class _Plane:
    """A two-dimensional scene as material numbers at any point."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._materials = list(scene.materials.values())
        self._numbers = {material.name: number for number, material in enumerate(self._materials)}
        self._inside = np.array(scene.size) * (1 - 1e-12)
        self._cell = np.array(scene.spacing)
        self._slack = SLACK * min(scene.spacing)
        self._mirrored = np.array([axis in scene.magnetic_walls for axis in range(2)])

    def table(self, name: str) -> Array:
        """A property of each material."""
        return np.array([getattr(material, name) for material in self._materials], dtype=np.float64)

    def at(self, points: NDArray[np.float64]) -> NDArray[np.uint16]:
        """The material at each point of an array of (..., 2); beyond a wall that at the wall, or its mirror image."""
        inside = np.clip(np.where(self._mirrored, np.abs(points), points), 0.0, self._inside).reshape(-1, 2)
        found = np.full(len(inside), self._numbers[self._scene.background], dtype=np.uint16)
        axes = [inside[:, [0]], inside[:, [1]]]
        low, high = inside.min(axis=0, initial=np.inf), inside.max(axis=0, initial=-np.inf)
        for shape, material in self._scene.solids:
            least, most = shape.bounds(self._scene.size)
            if np.any(high < np.array(least) - self._cell) or np.any(low > np.array(most) + self._cell):
                continue
            covered = shape.covers(axes, self._slack)
            found[np.broadcast_to(covered, (len(inside), 1)).ravel()] = self._numbers[material]
        return found.reshape(points.shape[:-1])

    def _lattice(self, first: tuple[float, float], shape: tuple[int, int]) -> NDArray[np.uint16]:
        """The material at nodes moved by `first` spacings."""
        found = np.full(shape, self._numbers[self._scene.background], dtype=np.uint16)
        spacing, rows = self._scene.spacing, max(1, _POINTS_AT_ONCE // shape[1])
        xs, ys = (
            np.clip(np.abs(at) if mirrored else at, 0.0, size)
            for at, mirrored, size in (
                ((np.arange(count) + by) * one, mirrored, size)
                for count, by, one, mirrored, size in zip(
                    shape, first, spacing, self._mirrored, self._inside, strict=True
                )
            )
        )
        for shaped, material in self._scene.solids:
            (left, right), (bottom, top) = (
                (max(0, int(least / one - by) - 1), min(count, max(0, int(most / one - by) + 3)))
                for least, most, by, count, one in zip(
                    *shaped.bounds(self._scene.size), first, shape, spacing, strict=True
                )
            )
            for begin in range(left, right, rows):
                part = found[begin : min(begin + rows, right), bottom:top]
                axes = [xs[begin : begin + len(part), None], ys[None, bottom : bottom + part.shape[1]]]
                covered = shaped.covers(axes, self._slack)
                part[np.broadcast_to(covered, part.shape)] = self._numbers[material]
        return found

    @cached_property
    def at_nodes(self) -> NDArray[np.uint16]:
        """The material at each node."""
        nx, ny = self._scene.shape
        return self._lattice((0.0, 0.0), (nx, ny))

    def mixed(self) -> Flags:
        """Nodes with more than one material around them, as far as nine points and thin objects show."""
        nx, ny = self._scene.shape
        here = self.at_nodes
        found = np.zeros((nx, ny), dtype=bool)
        along_x = self._lattice((-0.5, 0.0), (nx + 1, ny))
        along_y = self._lattice((0.0, -0.5), (nx, ny + 1))
        corners = self._lattice((-0.5, -0.5), (nx + 1, ny + 1))
        for by in (0, 1):
            found |= along_x[by : by + nx] != here
            found |= along_y[:, by : by + ny] != here
            for also in (0, 1):
                found |= corners[by : by + nx, also : also + ny] != here
        for shape, _ in self._scene.solids:
            if shape.thickness() >= 2 * max(self._scene.spacing):
                continue
            low, high = shape.bounds(self._scene.size)
            ends = [
                slice(max(0, int(np.floor(least / one - 1))), max(0, int(most / one) + 3))
                for least, most, one in zip(low, high, self._scene.spacing, strict=True)
            ]
            found[tuple(ends)] = True
        return found

    def uniform(self, name: str) -> Array:
        """A property of the material at each node."""
        return np.asarray(self.table(name)[self.at_nodes], order="F")

    def around(self, nodes: Nodes, offset: tuple[float, float]) -> NDArray[np.uint16]:
        """Materials in the rectangle of one spacing around places `offset` from nodes: (nodes, along x, y)."""
        within = (np.arange(_SAMPLES) + 0.5) / _SAMPLES - 0.5
        square = np.stack(np.meshgrid(within + offset[0], within + offset[1], indexing="ij"), axis=-1)
        return self.at((nodes[:, None, None, :] + square) * self._cell)

    def touches_conductor(self, nodes: Nodes) -> Flags:
        """Whether a perfect conductor covers a node or ends in it."""
        corners = np.array(list(product((-1.0, 1.0), repeat=2))) * 4 * SLACK
        return np.asarray(self.conducts(nodes[:, None, :] + corners).any(axis=1))

    def conducts(self, places: NDArray[Any]) -> Flags:
        """Whether a perfect conductor covers places, in spacings."""
        return np.asarray(self.table("conductivity")[self.at(places * self._cell)] >= PERFECT)


def _pieces(nodes: Nodes) -> Iterator[Nodes]:
    """Pieces small enough that their samples take little memory."""
    some = max(1, _POINTS_AT_ONCE // _SAMPLES**2)
    for begin in range(0, len(nodes), some):
        yield nodes[begin : begin + some]


def _grown(flags: Flags) -> Flags:
    """The set flags, and their neighbours along each axis."""
    found = flags.copy()
    found[1:] |= flags[:-1]
    found[:-1] |= flags[1:]
    found[:, 1:] |= flags[:, :-1]
    found[:, :-1] |= flags[:, 1:]
    return found


def _mean_of_ez(plane: _Plane, numbers: NDArray[np.uint16], nodes: Nodes, found: Smoothed) -> None:
    """The mean by area, without perfect conductors, in which there is no field."""
    conductivity = plane.table("conductivity")
    weight = (conductivity < PERFECT).astype(np.float64)[numbers]
    total = weight.sum(axis=(1, 2))
    left = total > 0
    where = tuple(nodes[left].T)
    for name in ("permittivity", "conductivity"):
        values = plane.table(name)[numbers] * weight
        getattr(found, name)[where] = values.sum(axis=(1, 2))[left] / total[left]


def _mean_of_h(plane: _Plane, nodes: Nodes, found: Smoothed) -> None:
    """Along a component of H the harmonic mean, because B passes through there; across it the arithmetic one."""
    permeability = plane.table("permeability")
    for name, offset, along in (("permeability_hx", (0.0, 0.5), 1), ("permeability_hy", (0.5, 0.0), 2)):
        values = permeability[plane.around(nodes, offset)]
        across = values.mean(axis=3 - along)
        getattr(found, name)[tuple(nodes.T)] = 1 / (1 / across).mean(axis=1)


def _cut_contours(plane: _Plane, nodes: Nodes, conducts: Flags, found: Smoothed) -> Flags:
    """Shortens contours with a conductor between two nodes; returns the nodes that they end in. Adds to `conducts`."""
    cut = np.zeros(conducts.shape, dtype=bool)
    ways = []
    for axis in (1, 0):  # hx lies half way along y, hy half way along x
        step = np.eye(2, dtype=np.int64)[axis]
        lows = nodes[nodes[:, axis] + 1 < conducts.shape[axis]]
        if len(lows) == 0:
            continue
        places = lows[:, None, :] + np.linspace(0.0, 1.0, _PARTS + 1)[:, None] * step
        inside = plane.conducts(places)
        between = inside[:, 1:-1].any(axis=1) & ~conducts[tuple(lows.T)] & ~conducts[tuple((lows + step).T)]
        # A conductor that contains no node, such as a wire: the nearer node represents it.
        first = inside[between].argmax(axis=1)
        nearer = lows[between] + np.where(first > _PARTS - first, 1, 0)[:, None] * step
        conducts[tuple(nearer.T)] = True
        ways.append((axis, step, lows, inside))
    for axis, step, lows, inside in ways:
        here, there = conducts[tuple(lows.T)], conducts[tuple((lows + step).T)]
        crossed = here != there
        share = _free_share(plane, lows[crossed], step, inside[crossed], here[crossed])
        where = tuple(lows[crossed].T)
        (found.permeability_hx if axis == 1 else found.permeability_hy)[where] *= share
        cut[where] = True
        cut[tuple((lows[crossed] + step).T)] = True
    return cut


def _free_share(plane: _Plane, lows: Nodes, step: Nodes, inside: Flags, backwards: Flags) -> Array:
    """The free share of the way from a free node to a conducting one. Measured backwards if the low node conducts."""
    ordered = np.where(backwards[:, None], inside[:, ::-1], inside)
    reached = ordered.any(axis=1)
    last = np.where(reached, ordered.argmax(axis=1), _PARTS) / _PARTS
    low, high = np.maximum(last - 1 / _PARTS, 0), last
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        at = np.where(backwards, 1 - middle, middle)
        conducting = plane.conducts(lows + at[:, None] * step)
        low, high = np.where(conducting, low, middle), np.where(conducting, middle, high)
    return np.maximum(np.where(reached, high, 1.0), _SHORTEST)


def _keep_stable(scene: Scene, cut: Flags, found: Smoothed) -> None:
    """Raises the permittivity of nodes beside conductors to the minimum of Fdtd.set_component_materials().

    A node at a distance d from a conductor has a field of order d, and a permittivity raised to the order of spacing /
    d: what this adds to the equations is of the order of the spacing, less than the error of cut contours.
    """
    inverse_x, inverse_y = 1 / found.permeability_hx, 1 / found.permeability_hy
    shortest, (along_x, along_y) = min(scene.spacing), scene.spacing
    # hx lies half way along y, hy half way along x. In squares, both factors are exactly 1.
    inverse_x *= (shortest / along_y) ** 2
    inverse_y *= (shortest / along_x) ** 2
    around = inverse_x + inverse_y
    around[:, 1:] += inverse_x[:, :-1]
    around[1:] += inverse_y[:-1]
    # At a magnetic wall, H outside is the mirror image of that inside.
    if 0 in scene.magnetic_walls:
        around[0] += inverse_y[0]
    if 1 in scene.magnetic_walls:
        around[:, 0] += inverse_x[:, 0]
    least = (LIGHT * scene.dt / shortest) ** 2 / 2 * around * _ROUNDED
    found.permittivity[cut] = np.maximum(found.permittivity, least)[cut]
