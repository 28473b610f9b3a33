"""Spacings of a grid: the lengths of a cell's edges in metres, one along each axis."""

from collections.abc import Iterable, Sequence

from headrace.errors import UsageError

Spacing = tuple[float, ...]
"""One length for each axis of the domain."""

_FLAT = 2  # number of dimensions


def spacing_of(given: float | Sequence[float], dimensions: int) -> Spacing:
    """The spacing along each axis, of a number for all axes or one for each.

    Raises:
        UsageError: for another number of axes.
    """
    if not isinstance(given, Iterable):
        return (float(given),) * dimensions
    each = tuple(float(along) for along in given)
    if len(each) != dimensions:
        raise UsageError(f"spacing has {len(each)} numbers, but must have one, or one for each of {dimensions} axes")
    return each


def is_even(spacing: Spacing) -> bool:
    """Whether cells are cubes, or squares."""
    return len(set(spacing)) == 1


def plain(spacing: Spacing) -> float | list[float]:
    """As in files: one number if cells are cubes, else a list."""
    return spacing[0] if is_even(spacing) else list(spacing)


def text(spacing: Spacing) -> str:
    """For messages: "0.001 m", or "0.002 x 0.001 m"."""
    lengths = spacing[:1] if is_even(spacing) else spacing
    return f"{' x '.join(f'{one:g}' for one in lengths)} m"


def in_space(spacing: Spacing) -> Spacing:
    """Three lengths: in two dimensions, cells are as long across the plane as their shortest edge."""
    return (*spacing, min(spacing)) if len(spacing) == _FLAT else spacing


def area_across(spacing: Spacing, axis: int) -> float:
    """The area of a cell's face across an axis."""
    first, second = (one for other, one in enumerate(in_space(spacing)) if other != axis)
    return float(first**2 if first == second else first * second)


def stable_step(spacing: Spacing, light: float, index: float = 1.0) -> float:
    """The longest stable time step in seconds, for the speed of light in m/s and the smallest index of refraction.

    Taflove and Hagness, Computational Electrodynamics, chapter 4.
    """
    shortest = min(spacing)
    return float(shortest * index / (light * sum((shortest / one) * (shortest / one) for one in spacing) ** 0.5))
