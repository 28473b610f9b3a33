"""Conversions that simulations on a grid share: shapes, cuts, cells and arrays as users write them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace.errors import UsageError

AXES = 3
_LETTERS = ("x", "y", "z")


def padded(numbers: Sequence[int], rest: int) -> tuple[int, int, int]:
    """Three numbers, one per axis."""
    x, y, z = [*numbers, *[rest] * AXES][:AXES]
    return (x, y, z)


def shape_of(shape: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    """Cells along each axis as integers. Raises UsageError for a wrong number of axes, or an axis without cells."""
    given = tuple(int(count) for count in shape)
    if len(given) not in dimensions:
        raise UsageError(f"a shape must have {' or '.join(map(str, dimensions))} numbers, not {len(given)}: {given}")
    if any(count < 1 for count in given):
        raise UsageError(f"a shape must have 1 cell or more along each axis, not {given}")
    return given


def cuts_of(cut: str | Sequence[int], axes: int) -> tuple[int, int, int] | None:
    """Number of parts along each axis; None for the best cut. Raises UsageError for anything else."""
    if isinstance(cut, str):
        if cut != "best":
            raise UsageError(f'cut must be "best" or a number of parts along each axis, not "{cut}"')
        return None
    given = tuple(int(parts) for parts in cut)
    if not axes <= len(given) <= AXES or any(parts < 1 for parts in given):
        raise UsageError(f"cut must give 1 part or more along each of {axes} axes, not {given}")
    return padded(given, 1)


def cell_of(cell: Sequence[int], shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A cell with three indices. Raises UsageError for a wrong number of them."""
    given = tuple(int(index) for index in cell)
    if len(given) != len(shape):
        raise UsageError(f"cell {given} has {len(given)} indices, but the domain has {len(shape)} axes")
    return padded(given, 0)


def walls_of(axes: Sequence[str], dimensions: int) -> tuple[bool, bool, bool]:
    """Whether each axis is named. Raises UsageError for names that are no axes of the domain."""
    for axis in axes:
        if axis not in _LETTERS[:dimensions]:
            raise UsageError(f"there is no wall across '{axis}': axes are {', '.join(_LETTERS[:dimensions])}")
    x, y, z = (letter in axes for letter in _LETTERS)
    return (x, y, z)


def per_cell(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values as the solver takes them: one, or one for each cell, x fastest. Raises UsageError for another shape."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim == 0:
        return given.reshape(1)
    if given.shape != shape:
        raise UsageError(f"{name} has shape {given.shape}, but the domain has shape {shape}")
    return given.ravel(order="F")


def media_of(medium: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """Numbers of media like per_cell(). Raises UsageError also for numbers that cannot be."""
    given = np.asarray(medium)
    if given.shape not in {(), shape}:
        raise UsageError(f"medium has shape {given.shape}, but the domain has shape {shape}")
    if np.any((given < 0) | (given > np.iinfo(np.uint16).max)):
        raise UsageError("medium must hold numbers of media: 0 for none, 1 for the first")
    return given.astype(np.uint16).ravel(order="F")
