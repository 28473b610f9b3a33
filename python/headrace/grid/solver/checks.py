"""Checks of a scene with valid keys: thin objects, positions, time steps, wavelengths."""

import decimal
from collections.abc import Iterable
from dataclasses import replace

from headrace.errors import UsageError
from headrace.grid.solver.painting import cells_of
from headrace.grid.solver.scene import LIGHT, Material, Painted, Receiver, Scene, Source
from headrace.grid.solver.shapes import AXES, SLACK, Shape
from headrace.grid.solver.sheets import Sheet, Thin, Wire
from headrace.grid.solver.smoothing import PERFECT
from headrace.grid.spacing import Spacing, is_even, stable_step, text

_CELLS_A_WAVELENGTH = 10  # with fewer cells, waves on the grid are noticeably slower than in the medium
_THREE_DIGITS = decimal.Context(prec=3, rounding=decimal.ROUND_DOWN)
_POSITIONS_LOOKED_AT = 1000
_GOOD_CONDUCTOR = 1e3  # S/m; no wave travels in it that would need fine cells


def courant_limit(spacing: Spacing, materials: Iterable[Material]) -> float:
    """The longest stable time step, in seconds: 1 / (speed sqrt(sum of 1 / spacing^2)).

    The speed is that of light, or a higher one if a permittivity or permeability is below 1: the smallest of each are
    combined, because they may meet in neighbouring cells.
    """
    listed = list(materials)
    permittivity = min([1.0, *(material.permittivity for material in listed)])
    permeability = min([1.0, *(material.permeability for material in listed)])
    return stable_step(spacing, LIGHT, (permittivity * permeability) ** 0.5)


def check_objects(scene: Scene) -> Scene:
    """The scene with warnings about objects that its cells cannot represent."""
    found = (_object(scene, one) for one in scene.objects)
    return replace(scene, warnings=(*scene.warnings, *(warning for warning in found if warning)))


def _object(scene: Scene, painted: Painted) -> str | None:
    """A warning for an object that lies outside, or is thinner than cells can represent."""
    line = f":{painted.line}" if painted.line else ""
    named = f"{scene.path}{line}: [[objects]] {painted.name}"
    if isinstance(painted.shape, Sheet | Wire):
        return None if _has_edges(scene, painted.shape) else f"{named}: covers no edges within the domain"
    if _outside(scene, painted.shape.bounds(scene.size)):
        return f"{named}: lies entirely outside the domain"
    thin = _thin(scene, painted.shape, scene.materials[painted.material])
    return f"{named}: {thin}" if thin else None


def _has_edges(scene: Scene, shape: Thin) -> bool:
    """Whether an edge of a sheet or a wire lies in the domain."""
    edges = shape.edges(scene.shape, scene.spacing, scene.electric_axes)
    return any(scene.has_node(node) for nodes in edges.values() for node in nodes.tolist())


def _thin(scene: Scene, shape: Shape, material: Material) -> str | None:
    """The warning for a shape thinner than cells can represent."""
    thickness, spacing = shape.thickness(), scene.spacing
    low, high = shape.bounds(scene.size)
    extents = (last - first for first, last in zip(low, high, strict=True))
    # A shape at least as thick as the shortest edge may still be thinner than cells along another axis.
    flat = any(extent < one * (1 - SLACK) for extent, one in zip(extents, spacing, strict=True))
    thin = thickness < (max if flat else min)(spacing) * (1 - SLACK)
    if scene.smoothing:
        # With smoothing, a non-conductor counts with its share of the area, however thin it is.
        thin = thin and material.conductivity >= PERFECT
        return f"is {thickness:g} m thick: the nearest nodes represent it" if thin else None
    # A ball of this diameter contains a cell centre wherever it lies.
    if thickness >= max(spacing) * scene.dimensions**0.5:
        return None
    covered = cells_of(shape, scene)
    cells = f"{thickness:g} m thick, but cells are {text(spacing)}"
    if covered == 0:
        return f"is {cells}: it contains no cell centre and is left out"
    if not thin:
        return None
    stands = (
        "the cell whose centre it contains represents"
        if covered == 1
        else f"the {covered:,} cells whose centres it contains represent"
    )
    return f"is {cells}: {stands} it in full"


def check_places(scene: Scene) -> Scene:
    """The scene with warnings about rounded positions, and about those in the absorbing layers.

    Raises:
        UsageError: when a source or a receiver is outside the domain.
    """
    warnings = [
        f"{scene.path}: [[{kind}]] {place.name} position: {listed(place.position)} m lies between nodes; the nearest, "
        f"{listed(scene.placed(place.position))} m, is used"
        for kind, places in (("sources", scene.sources), ("receivers", scene.receivers))
        for place in places
        if not scene.is_placed(place.position)
    ]
    warnings += [
        f"{scene.path}: [[monitors]] {monitor.name} {key}: {listed(corner)} m lies between nodes; the nearest, "
        f"{listed(scene.placed(corner))} m, is used"
        for monitor in scene.monitors
        for key, corner in zip(("low", "high"), monitor.asked, strict=True)
        if not scene.is_placed(corner)
    ]
    scan = scene.scan
    if scan and not scene.is_placed(tuple(abs(along) for along in scan.step)):
        used = listed(scene.at(scan.cells))
        warnings.append(
            f"{scene.path}: [scan] step: {listed(scan.step)} m is not a whole number of cells of "
            f"{text(scene.spacing)}; {used} m is used, so that positions are evenly spaced"
        )
    warned: set[str] = set()  # places that were warned of once, so that further positions are not reported
    # A scan is a straight line: if two positions are in the domain and not in its layers, so are all between them.
    last = scan.count - 1 if scan else 0
    for number in range(last + 1) if last <= _POSITIONS_LOOKED_AT else (0, last):
        moved = scene.moved(number)
        where = f" at position {number} of the scan" if number else ""
        for kind, places in (("sources", moved.sources), ("receivers", moved.receivers)):
            for place in places:
                warning = _place(moved, kind, place, where)
                if warning and kind + place.name not in warned:
                    warned.add(kind + place.name)
                    warnings.append(warning)
    return replace(scene, warnings=(*scene.warnings, *warnings))


def _index(material: Material, frequency: float) -> float:
    """The refractive index at a frequency."""
    permittivity = material.permittivity + sum((one.permittivity(frequency) for one in material.poles), start=0j)
    return max(float(((permittivity * material.permeability) ** 0.5).real), 1e-6)


def _outside(scene: Scene, bounds: tuple[tuple[float, ...], tuple[float, ...]]) -> bool:
    return any(high <= 0 or low >= size or low >= high for low, high, size in zip(*bounds, scene.size, strict=True))


def _place(scene: Scene, kind: str, place: Source | Receiver, where: str) -> str | None:
    cell = scene.cell(place.position)
    named = f"{scene.path}: [[{kind}]] {place.name} position: {listed(place.position)} m{where}"
    slack = SLACK * min(scene.spacing)
    if not all(-slack <= at <= size + slack for at, size in zip(place.position, scene.size, strict=True)):
        raise UsageError(f"{named} is not in the domain, which is {listed(scene.size)} m")
    if not all(at < count for at, count in zip(cell, scene.shape, strict=True)):
        last = listed(scene.at(count - 1 for count in scene.shape))
        raise UsageError(
            f"{named} is on the far wall of the domain, which is a conductor: the last nodes are at {last} m"
        )
    for at, count, (low, high) in zip(cell, scene.shape, scene.layers.at, strict=False):
        if at < low or at >= count - high:
            thick = f"{scene.cpml} cells at each edge" if scene.layers.sides is None else "which reach this position"
            return f"{named} lies in the absorbing layers, {thick}"
    return None


def listed(numbers: Iterable[float]) -> str:
    """Numbers in the notation of a scene file."""
    return "[" + ", ".join(f"{number:.12g}" for number in numbers) + "]"


def check_resolution(scene: Scene) -> Scene:
    """The scene, with a warning if its cells are too large for its shortest wave."""
    waves = [*(source.wave for source in scene.sources), *(wave.wave for wave in scene.plane_waves)]
    frequency = max((wave.highest for wave in waves), default=0.0)
    if frequency == 0:
        return scene
    used = {scene.background, *(one.material for one in scene.objects)}
    slow = [scene.materials[name] for name in used if scene.materials[name].conductivity < _GOOD_CONDUCTOR]
    if not slow:
        return scene
    slowest = max(slow, key=lambda material: _index(material, frequency))
    wavelength = LIGHT / _index(slowest, frequency) / frequency
    longest = max(scene.spacing)
    cells = wavelength / longest
    if cells >= _CELLS_A_WAVELENGTH:
        return scene
    along = "" if is_even(scene.spacing) else f" along {AXES[scene.spacing.index(longest)]}"
    warning = (
        f"{scene.path}: [domain] spacing: the shortest wave, at {frequency:.3g} Hz in {slowest.name}, has "
        f"{_rounded_down(cells):g} cells of {longest:g} m{along}; {_CELLS_A_WAVELENGTH} cells need a spacing of "
        f"{_rounded_down(wavelength / _CELLS_A_WAVELENGTH):g} m"
    )
    return replace(scene, warnings=(*scene.warnings, warning))


def _rounded_down(number: float) -> float:
    """A number with three digits, none of which promises more than there is."""
    return float(_THREE_DIGITS.create_decimal_from_float(number))
