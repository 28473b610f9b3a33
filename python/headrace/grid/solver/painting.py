"""Paints the objects of a scene in order: the material of every cell, and of edges with their own."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, product

import numpy as np
from numpy.typing import NDArray

from headrace.grid.solver.scene import Cell, Material, Painted, Scene
from headrace.grid.solver.shapes import SLACK, Axes, Mask, Shape
from headrace.grid.solver.sheets import Nodes, Thin
from headrace.grid.spacing import Spacing

Numbers = NDArray[np.uint16]
Slab = tuple[slice, ...]

# Number of cells processed at once while an object is painted.
_SLAB_CELLS = 1 << 22


@dataclass(frozen=True)
class OwnEdges:
    """Edges along one axis that keep their own material, whatever the cells around them are made of."""

    cells: NDArray[np.int64]
    """Number of each edge's node, x fastest, ascending."""
    materials: Numbers
    """Number of each edge's material."""


@dataclass(frozen=True)
class Laid:
    """A scene's painted objects."""

    cells: Numbers
    """Material of every cell as a number in the list; x is contiguous, as for the solver."""
    materials: list[Material]
    edges: dict[str, OwnEdges] = field(default_factory=dict)
    """By the component of E along the edges; empty if no object has such edges."""

    def edge_material(self, name: str, node: Cell) -> Material | None:
        """The material set for a component of a node, if there is one."""
        found = self.edges.get(name)
        if found is None:
            return None
        number = int(np.ravel_multi_index(node, self.cells.shape, order="F"))
        at = int(np.searchsorted(found.cells, number))
        if at == found.cells.size or found.cells[at] != number:
            return None
        own: Material = self.materials[found.materials[at]]
        return own


def lay(scene: Scene) -> Laid:
    """Paints all objects of a scene."""
    canvas = _Canvas(scene)
    for _, group in groupby(enumerate(scene.objects), key=_array_of):
        canvas.paint_together([painted for _, painted in group])
    return Laid(canvas.cells, canvas.materials, canvas.edges())


def _array_of(numbered: tuple[int, Painted]) -> tuple[object, ...]:
    """The same for objects that are the cells of one array, which come from one table."""
    number, painted = numbered
    key = getattr(painted.shape, "key", None)
    return (number,) if key is None else (key, painted.name)


def paint(scene: Scene) -> tuple[Numbers, list[Material]]:
    """The material of every cell as a number in the list, and the list."""
    laid = lay(scene)
    return laid.cells, laid.materials


class _Canvas:
    """The state of painting.

    An object without averaging gives its material to all edges of its cells. Each of these cells then holds its edges,
    and releases them when another object is painted over the cell. An edge keeps its material while one of the four
    cells around it holds it. gprMax does the same, as its geometry files (#geometry_objects_write) show.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.materials = list(scene.materials.values())
        self._number = {material.name: index for index, material in enumerate(self.materials)}
        self.cells: Numbers = np.full(scene.shape, self._number[scene.background], dtype=np.uint16, order="F")
        self._alongs = scene.electric_axes
        self._held: Numbers | None = None  # 12 bits per cell, one for each of its edges
        self._own: dict[int, Numbers] = {}

    def paint(self, painted: Painted) -> None:
        """Paints an object over the previous ones."""
        numbers = [self._number[name] for name in painted.along]
        if isinstance(painted.shape, Thin):
            for along, nodes in painted.shape.edges(self._scene.shape, self._scene.spacing, self._alongs).items():
                if len(nodes):
                    self._keep_edges(along, nodes, numbers[along])
            return
        for slab, mask in covered(painted.shape, self._scene):
            part = self.cells[slab]
            inside = np.broadcast_to(mask, part.shape)
            part[inside] = self._number[painted.material]
            if not painted.averaging:
                self._hold(slab, inside, numbers)
            elif self._held is not None:
                self._held[slab][inside] = 0

    def paint_together(self, group: list[Painted]) -> None:
        """Paints an object, or those that are the cells of one array.

        Where unaveraged cells of the array meet, an edge takes the material of the last of them, x slowest.
        """
        if len(group) == 1:
            self.paint(group[0])
            return
        shapes = [one.shape for one in group if not isinstance(one.shape, Thin)]
        for together in zip(*(covered(one, self._scene) for one in shapes), strict=True):
            slab = together[0][0]
            part = self.cells[slab]
            rigid = np.zeros(part.shape, dtype=np.bool_)
            for one, (_, mask) in zip(group, together, strict=True):
                inside = np.broadcast_to(mask, part.shape)
                part[inside] = self._number[one.material]
                if not one.averaging:
                    rigid |= inside
                elif self._held is not None:
                    self._held[slab][inside] = 0
            if rigid.any():
                self._hold(slab, rigid, [part.copy()] * 3)

    def _edges_own(self) -> Numbers:
        """Bits of the edges that cells hold; allocated only when an object needs it."""
        if self._held is None:
            self._held = np.zeros(self.cells.shape, dtype=np.uint16, order="F")
            self._own = {along: np.zeros_like(self._held) for along in self._alongs}
        return self._held

    def _around(self, along: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The four edges of a cell along an axis: the bit of each, and the offset of its node in cells."""
        across = [axis for axis in range(3) if axis != along]
        for number, steps in enumerate(product((0, 1), repeat=2)):
            offset = [0, 0, 0]
            for axis, step in zip(across, steps, strict=True):
                offset[axis] = step
            yield 1 << (4 * along + number), tuple(offset[: self.cells.ndim])

    def _keep_edges(self, along: int, nodes: Nodes, number: int) -> None:
        """Gives some edges their own material, and makes all cells around them hold it."""
        held = self._edges_own()
        shape, inside = np.array(self.cells.shape), nodes.copy()
        wraps = [axis for axis in self._scene.periodic if axis != along]
        for axis in wraps:
            inside[inside[:, axis] == shape[axis], axis] = 0  # the far wall is the near one
        inside = inside[((inside >= 0) & (inside < shape)).all(axis=1)]
        self._own[along][tuple(inside.T)] = number
        for bit, offset in self._around(along):
            cells = inside - np.array(offset)
            cells[:, wraps] %= shape[wraps]
            cells = cells[(cells >= 0).all(axis=1)]
            held[tuple(cells.T)] |= np.uint16(bit)

    def _hold(self, slab: Slab, inside: Mask, numbers: list[int] | list[Numbers]) -> None:
        """Gives all edges of the masked cells of a slab their own material, one per axis.

        `numbers` are for the slab, or for each of its cells.
        """
        held = self._edges_own()
        for along in self._alongs:
            number = numbers[along]
            for bit, offset in reversed(list(self._around(along))):
                held[slab][inside] |= np.uint16(bit)
                for kept, moved in self._nodes_of(slab, offset):
                    here = inside[kept]
                    self._own[along][moved][here] = number if isinstance(number, int) else number[kept][here]

    def _nodes_of(self, slab: Slab, offset: tuple[int, ...]) -> Iterator[tuple[Slab, Slab]]:
        """Cells of a slab, relative to its corner, and their nodes at this offset, in pieces.

        Nodes on a far wall do not belong to the domain, unless they are those on the other wall of a periodic axis.
        """
        choices = []
        for axis, (one, step, count) in enumerate(zip(slab, offset, self.cells.shape, strict=True)):
            stop = min(one.stop + step, count)
            pieces = [(slice(0, stop - one.start - step), slice(one.start + step, stop))]
            if one.stop + step > count and axis in self._scene.periodic:
                pieces.append((slice(stop - one.start - step, None), slice(0, 1)))
            choices.append(pieces)
        for chosen in product(*choices):
            yield tuple(kept for kept, _ in chosen), tuple(moved for _, moved in chosen)

    def edges(self) -> dict[str, OwnEdges]:
        """The edges that cells hold in the end."""
        found: dict[str, OwnEdges] = {}
        if self._held is None:
            return found
        for along in self._alongs:
            kept = np.zeros(self.cells.shape, dtype=bool, order="F")
            for bit, offset in self._around(along):
                whole = tuple(slice(0, count) for count in self.cells.shape)
                for of, to in self._nodes_of(whole, offset):
                    kept[to] |= (self._held[of] & np.uint16(bit)) != 0
            cells = np.flatnonzero(kept.ravel(order="F")).astype(np.int64)
            if cells.size:
                found[f"e{'xyz'[along]}"] = OwnEdges(cells, self._own[along].ravel(order="F")[cells])
        return found


def cells_of(shape: Shape, scene: Scene) -> int:
    """Number of cells of the domain that a shape covers."""
    return sum(
        int(np.count_nonzero(np.broadcast_to(mask, [one.stop - one.start for one in slab])))
        for slab, mask in covered(shape, scene)
    )


def covered(shape: Shape, scene: Scene) -> Iterator[tuple[Slab, Mask]]:
    """Slabs of cells around a shape, and masks of the covered cells; along the last axis, so that arrays stay small."""
    ranges = []
    for low, high, count, one in zip(*shape.bounds(scene.size), scene.shape, scene.spacing, strict=True):
        first, end = np.clip(np.floor([low / one - 1, high / one + 2]), 0, count)
        ranges.append(range(int(first), int(end)))
    if any(len(one) == 0 for one in ranges):
        return
    last = ranges[-1]
    thickness = max(1, _SLAB_CELLS // int(np.prod([len(one) for one in ranges[:-1]])))
    for first in range(last.start, last.stop, thickness):
        slab = [*ranges[:-1], range(first, min(first + thickness, last.stop))]
        mask = shape.covers(_centres(slab, scene.spacing), SLACK * min(scene.spacing))
        yield tuple(slice(one.start, one.stop) for one in slab), mask


def _centres(ranges: list[range], spacing: Spacing) -> Axes:
    """The centres of these cells along each axis, shaped to broadcast."""
    found = []
    for axis, (one, length) in enumerate(zip(ranges, spacing, strict=True)):
        shape = [1] * len(ranges)
        shape[axis] = len(one)
        found.append(np.asarray((np.arange(one.start, one.stop) + 0.5) * length, dtype=np.float64).reshape(shape))
    return found
