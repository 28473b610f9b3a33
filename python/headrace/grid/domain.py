"""Conversions that all simulations on a grid share: shapes and cuts as users write them."""

from collections.abc import Sequence

from headrace.errors import UsageError

AXES = 3


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
