"""Noise with a fractal spectrum, boxes of cells with materials spread by it, and surfaces made rough by it.

White noise is filtered in the space of wave numbers k: amplitudes fall as |k| to the power of minus the dimension, so
the spectrum falls like that of gprMax's fractals (Turcotte, Fractals and Chaos in Geology and Geophysics, chapter 7).
Wave numbers are multiplied by the weights: a larger weight smooths structures along that axis. In a box they count
waves per cell, so equal weights make structures equally long along every axis. On a surface they count waves along each
side, as in gprMax.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.grid.solver.places import Cell
from headrace.grid.solver.shapes import SLACK

Values = NDArray[np.float64]
Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Noise:
    """Parameters of noise: its dimension, a weight per axis, and its seed."""

    dimension: float
    weights: tuple[float, ...]
    seed: int

    def values(self, shape: Cell, *, per_cell: bool) -> Values:
        """Noise for this shape, from 0 to 1; the same seed gives the same noise.

        `per_cell`: whether wave numbers count waves per cell, not along each side.
        """
        white = np.random.default_rng(self.seed).standard_normal(shape)
        squared = np.zeros(shape)
        for axis, (count, weight) in enumerate(zip(shape, self.weights, strict=True)):
            along = [1] * len(shape)
            along[axis] = count
            # The centre of an odd number of wave numbers is half a wave beside their middle one, as in gprMax.
            number = (np.fft.ifftshift(np.arange(count)) - count / 2) * weight
            squared = squared + ((number / count if per_cell else number) ** 2).reshape(along)
        squared[squared == 0] = np.inf  # excludes the mean
        found = np.fft.ifftn(np.fft.fftn(white) * squared ** (-self.dimension / 2)).real
        low, high = found.min(), found.max()
        return np.asarray((found - low) / (high - low) if high > low else np.zeros(shape))


@dataclass(frozen=True)
class Surface:
    """A rough side of a box, in cells: it varies between two limits with noise in its plane."""

    axis: int
    upper: bool
    limits: tuple[float, float]
    noise: Noise
    reach: tuple[Cell, ...] | None
    """Corners of the rough part of the side, in its plane; None means all of it."""
    water: float | None
    """Level up to which open space at the surface is filled; None means not at all."""
    material: str
    """Material of the filling."""


@dataclass(frozen=True)
class Water:
    """The filled cells of a surface: 0 where filled, -1 elsewhere."""

    data: Numbers
    material: str


@dataclass(frozen=True)
class Filled:
    """A box with its surfaces: the material number of each cell, -1 outside of the box."""

    corner: Cell
    data: Numbers
    water: list[Water]


def box(low: Cell, high: Cell, noise: Noise, count: int, surfaces: list[Surface], *, even: bool) -> Filled:
    """A box between two nodes with `count` materials; rough surfaces enlarge it by the height they rise.

    With `even`, each material has an equal part of the range of the noise; otherwise all but the first do, as in
    gprMax.
    """
    corner, end = list(low), list(high)
    for one in surfaces:
        if one.upper:
            end[one.axis] = max(end[one.axis], int(np.ceil(one.limits[1])), int(np.ceil(one.water or 0)))
        else:
            corner[one.axis] = min(corner[one.axis], int(np.floor(one.limits[0])), int(np.floor(one.water or 0)))
    shape = tuple(last - first for first, last in zip(corner, end, strict=True))
    data = np.zeros(shape, dtype=np.int32)
    if count > 1:
        values = noise.values(shape, per_cell=True)
        numbers = np.minimum(values * count, count - 1) if even else np.ceil(values * (count - 1) - SLACK)
        data = numbers.astype(np.int32)
    walls: list[list[Values]] = [[np.array(float(at)) for at in pair] for pair in zip(low, high, strict=True)]
    rough = {}
    for one in surfaces:
        heights, where = _heights(one, tuple(corner), shape, low, high)
        walls[one.axis][one.upper] = np.where(where, heights, walls[one.axis][one.upper])
        rough[one.axis, one.upper] = where
    between = []
    for axis, (lower, upper) in enumerate(walls):
        centres = _along(axis, corner[axis], shape)
        between.append((centres > lower) & (centres < upper))
    water = []
    for one in surfaces:
        if one.water is None:
            continue
        centres, wall = _along(one.axis, corner[one.axis], shape), walls[one.axis][one.upper]
        open_ = (centres > wall) & (centres < one.water) if one.upper else (centres < wall) & (centres > one.water)
        others = [part for axis, part in enumerate(between) if axis != one.axis]
        filled = _all([open_ & rough[one.axis, one.upper], *others], shape)
        water.append(Water(np.where(filled, 0, -1).astype(np.int32), one.material))
    return Filled(tuple(corner), np.where(_all(between, shape), data, -1).astype(np.int32), water)


def _all(parts: list[NDArray[np.bool_]], shape: Cell) -> NDArray[np.bool_]:
    """Cells where all masks are set."""
    found = np.ones(shape, dtype=bool)
    for part in parts:
        found &= part
    return found


def _along(axis: int, begin: int, shape: Cell) -> Values:
    """Cell centres along an axis, shaped to broadcast."""
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return np.asarray(begin + np.arange(shape[axis]) + 0.5, dtype=np.float64).reshape(along)


def _heights(one: Surface, corner: Cell, shape: Cell, low: Cell, high: Cell) -> tuple[Values, NDArray[np.bool_]]:
    """Height of a surface in cells along its axis, and which columns are rough; both broadcast over the box."""
    axes = [axis for axis in range(len(shape)) if axis != one.axis]
    first, last = one.reach or (tuple(low[axis] for axis in axes), tuple(high[axis] for axis in axes))
    first = tuple(max(at, low[axis]) for at, axis in zip(first, axes, strict=True))
    last = tuple(min(at, high[axis]) for at, axis in zip(last, axes, strict=True))
    plane = tuple(shape[axis] for axis in axes)
    heights, rough = np.zeros(plane), np.zeros(plane, dtype=bool)
    if all(begin < end for begin, end in zip(first, last, strict=True)):
        part = tuple(
            slice(begin - corner[axis], end - corner[axis]) for begin, end, axis in zip(first, last, axes, strict=True)
        )
        rough_shape = tuple(end - begin for begin, end in zip(first, last, strict=True))
        values = one.noise.values(rough_shape, per_cell=False)
        heights[part] = np.ceil(one.limits[0] + values * (one.limits[1] - one.limits[0]) - SLACK)
        rough[part] = True
    return np.expand_dims(heights, one.axis), np.expand_dims(rough, one.axis)
