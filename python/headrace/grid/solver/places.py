"""Converts positions in metres to nodes of the grid."""

import math

from headrace.grid.solver.shapes import SLACK, Point
from headrace.grid.spacing import Spacing

Cell = tuple[int, ...]


def nearest_node(position: Point, spacing: Spacing) -> Cell:
    """The node nearest to a position; half way between two, the lower one, regardless of the last bits."""
    return tuple(math.ceil(at / one - 0.5 - SLACK) for at, one in zip(position, spacing, strict=True))


def whole_cells(step: Point, spacing: Spacing) -> Cell:
    """A displacement in cells, rounded like positions: half a cell rounds towards zero."""
    return tuple(
        int(math.copysign(math.ceil(abs(along) / one - 0.5 - SLACK), along))
        for along, one in zip(step, spacing, strict=True)
    )
