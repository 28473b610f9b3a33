"""Converts positions in metres to nodes of the grid."""

import math

from headrace.grid.solver.shapes import SLACK, Point

Cell = tuple[int, ...]


def nearest_node(position: Point, spacing: float) -> Cell:
    """The node nearest to a position; half way between two, the lower one, regardless of the last bits."""
    return tuple(math.ceil(at / spacing - 0.5 - SLACK) for at in position)


def whole_cells(step: Point, spacing: float) -> Cell:
    """A displacement in cells, rounded like positions: half a cell rounds towards zero."""
    return tuple(int(math.copysign(math.ceil(abs(along) / spacing - 0.5 - SLACK), along)) for along in step)
