"""Reads `[domain]` of a scene."""

from headrace.errors import UsageError
from headrace.grid.layers import Cpml
from headrace.grid.solver.keys import Keys
from headrace.grid.solver.scene import ELECTRIC, MAGNETIC, POLARISATIONS, Cell
from headrace.grid.solver.shapes import AXES
from headrace.grid.spacing import Spacing

_CELLS_MOST = 1 << 31  # along an axis
_GRADING_MOST = 1e6  # limit on the layers' grading, far beyond anything that absorbs
_FLAT = 2  # number of dimensions


def read_polarisation(domain: Keys, dimensions: int) -> str:
    """Which components a plane has.

    Raises:
        UsageError: for an unknown one, or in three dimensions.
    """
    found = domain.choice("polarisation", POLARISATIONS, "tm")
    if dimensions != _FLAT and "polarisation" in domain:
        raise domain.error("is for two dimensions: in three there are all components", "polarisation")
    return found


def read_smoothing(domain: Keys, dimensions: int, polarisation: str, *, averaging: bool) -> bool:
    """Whether means are taken over the exact shapes.

    Raises:
        UsageError: where that is not available.
    """
    wanted = domain.flag("smoothing", False)
    if wanted and polarisation != "tm":
        raise domain.error(f'is not available with polarisation = "{polarisation}": leave it out', "smoothing")
    if wanted and dimensions != _FLAT:
        raise domain.error("is available in two dimensions only", "smoothing")
    if wanted and not averaging:
        raise domain.error("is a finer averaging: it cannot be on while averaging is off", "smoothing")
    return wanted


def read_symmetry(domain: Keys) -> tuple[str | None, ...]:
    """What the low wall of each axis is to the mirror image beyond it.

    Raises:
        UsageError: for unknown axes or walls.
    """
    given = domain.table("symmetry")
    axes = AXES[: len(domain.point("size", [2, 3]))]
    found = tuple(given.choice(axis, (ELECTRIC, MAGNETIC)) if axis in given else None for axis in axes)
    given.done()
    return found


def read_periodic(domain: Keys, symmetry: tuple[str | None, ...]) -> tuple[int, ...]:
    """The axes along which the scene continues at its other wall.

    Raises:
        UsageError: for unknown axes, or planes of symmetry.
    """
    named = domain.words("periodic", AXES[: len(symmetry)], ("x",)) if "periodic" in domain else ()
    found = tuple(axis for axis, letter in enumerate(AXES[: len(symmetry)]) if letter in named)
    for axis in found:
        if symmetry[axis]:
            raise domain.error(
                f"{AXES[axis]} also has a plane of symmetry: leave it out here or in symmetry", "periodic"
            )
    return found


def read_shape(domain: Keys, symmetry: tuple[str | None, ...], periodic: tuple[int, ...]) -> tuple[Cell, Spacing, Cpml]:
    """Cells along each axis, their spacing, and the absorbing layers, which are part of the domain.

    Raises:
        UsageError: naming the key and value at fault.
    """
    size = domain.point("size", [2, 3])
    spacing = domain.per_axis("spacing", len(size), above=0)
    layers = _layers(domain, len(size))
    mirrored = [kind is not None for kind in symmetry]
    for key, mirrors, wraps in (("symmetry", mirrored, ()), ("periodic", (), periodic)):
        try:
            layers = layers.without(mirrors or [False] * len(size), [axis in wraps for axis in range(len(size))])
        except UsageError as error:
            raise domain.error(str(error), key) from None
    shape = []
    for axis, length, one, (low, high) in zip(AXES, size, spacing, layers.at, strict=False):
        count = length / one
        if count > _CELLS_MOST:
            raise domain.error(f"{length:g} m along {axis} is {count:g} cells, more than {_CELLS_MOST:,}", "spacing")
        whole = round(count)
        if whole < 1 or abs(count - whole) > 1e-6 * max(1, whole):
            least = max(1, int(count))
            raise domain.error(
                f"{length:g} m along {axis} is {count:g} cells of {one:g} m, not a whole number; use "
                f"{least * one:g} or {(least + 1) * one:g} m",
                "size",
            )
        if whole <= low + high:
            both = f"{low} cells at both ends" if low == high else f"{low} and {high} cells at the ends"
            raise domain.error(f"{both} leave nothing of the {whole} cells along {axis}", "cpml")
        shape.append(whole)
    return tuple(shape), spacing, layers


def _layers(domain: Keys, dimensions: int) -> Cpml:
    """The absorbing layers: only their cells, or a table with their cells and grading."""
    usual = Cpml()
    if not domain.is_table("cpml"):
        return Cpml(domain.whole("cpml", usual.cells))
    given = domain.table("cpml")
    sides = _sides(given, dimensions) if given.is_list("cells") else None
    layers = Cpml(
        cells=max(max(pair) for pair in sides) if sides else given.whole("cells", usual.cells),
        order=given.number("order", usual.order, least=1),
        sigma=given.number("sigma", usual.sigma, least=0, most=_GRADING_MOST),
        kappa=given.number("kappa", usual.kappa, least=1, most=_GRADING_MOST),
        kappa_order=given.number("kappa_order", usual.kappa_order, above=0),
        alpha=given.number("alpha", usual.alpha, least=0, most=_GRADING_MOST),
        alpha_order=given.number("alpha_order", usual.alpha_order, above=0),
        sides=sides,
    )
    given.done()
    return layers


def _sides(given: Keys, dimensions: int) -> tuple[tuple[int, int], ...] | None:
    """Cells at the low and the high wall of each axis; None if all are equal."""
    pairs = given.pairs("cells", dimensions)
    return None if len({cells for pair in pairs for cells in pair}) == 1 and pairs[0][0] else pairs
