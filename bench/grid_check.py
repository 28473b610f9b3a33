"""Checks that a way to run a grid computes what plain NumPy does: small domains, every bit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grid_run import Settings
from headrace.grid import Fdtd, Jacobi

Array = NDArray[Any]

_LIGHT = 299792458.0
_PERMEABILITY = 1.25663706127e-6
_PERMITTIVITY = 1 / (_PERMEABILITY * _LIGHT**2)
_SPACING = 1e-3
_STEPS = 24
_SHAPES = {2: (61, 47), 3: (33, 37, 31)}
_SEED = 6
_CONDUCTING = 0.2  # share of the cells
_RESIDUAL_ERROR = 1e-12

# The curl of each component: field and axis of the difference that is added, and of the one that is subtracted.
_MAGNETIC = {"hx": (("ez", 1), ("ey", 2)), "hy": (("ex", 2), ("ez", 0)), "hz": (("ey", 0), ("ex", 1))}
_ELECTRIC = {"ex": (("hz", 1), ("hy", 2)), "ey": (("hx", 2), ("hz", 0)), "ez": (("hy", 0), ("hx", 1))}


def _shape(dimensions: int, settings: Settings) -> tuple[int, ...]:
    """A small domain in which each part has the cells that its neighbours keep, however the domain is cut."""
    cells = len(settings.devices) * settings.redundant
    return tuple(max(count, cells + count // 4) for count in _SHAPES[dimensions])


def _materials(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(_SEED)
    conductivity = np.where(random.random(shape) < _CONDUCTING, random.random(shape), 0)
    return 1 + 3 * random.random(shape), conductivity, 1 + random.random(shape)


def _before(values: Array, *axes: int) -> Array:
    """The value of the preceding cell along some axes; the cells at a wall count twice."""
    for axis in axes:
        values = np.concatenate([np.take(values, [0], axis), np.delete(values, -1, axis)], axis)
    return values


def _at_edge(values: Array, name: str) -> Array:
    """The mean of the four cells around the edge on which a component of E lies, added in the solver's order."""
    one, other = (axis for axis in range(3) if axis != "xyz".index(name[1]))
    ends, sides = (values, _before(values, one, other)), (_before(values, one), _before(values, other))
    if values.ndim == 2:  # noqa: PLR2004 - in a plane, where rows are pairs
        ends, sides = (ends[1], sides[1]), (sides[0], ends[0])
    mean: Array = ((ends[0] + ends[1]) + (sides[0] + sides[1])) / 4
    return mean


def _at_face(values: Array, name: str) -> Array:
    """The harmonic mean of the two cells that share the face of a component of H; in a plane, that of its cell."""
    if values.ndim == 2:  # noqa: PLR2004
        return values
    before = _before(values, "xyz".index(name[1]))
    return np.where(before == values, values, 2 / (1 / before + 1 / values))


def _difference(fields: dict[str, Array], name: str, axis: int, *, above: bool) -> Array | float:
    """To the neighbour above or from the one below; fields beyond the domain are 0, and so are those there are not."""
    if name not in fields:
        return 0.0
    edge = np.zeros_like(np.take(fields[name], [0], axis))
    return np.diff(np.concatenate([fields[name], edge] if above else [edge, fields[name]], axis), axis=axis)


def _plain_fdtd(fields: dict[str, Array], dt: float) -> None:
    """The steps of Yee's scheme in a closed box, with the arithmetic of the stencil."""
    some = next(iter(fields.values()))
    kept, moved = {}, {}
    materials = _materials(some.shape)
    for name in fields:
        if name.startswith("e"):
            permittivity, conductivity = (_at_edge(values, name) for values in materials[:2])
            loss = conductivity * dt / (2 * permittivity * _PERMITTIVITY)
            kept[name] = ((1 - loss) / (1 + loss)).astype(some.dtype)
            moved[name] = (dt / (permittivity * _PERMITTIVITY * _SPACING) / (1 + loss)).astype(some.dtype)
        else:
            permeability = _at_face(materials[2], name)
            moved[name] = (dt / (permeability * _PERMEABILITY * _SPACING)).astype(some.dtype)
    for _ in range(_STEPS):
        for name, (plus, minus) in _MAGNETIC.items():
            if name in fields:
                curl = _difference(fields, *plus, above=True) - _difference(fields, *minus, above=True)
                fields[name] = fields[name] - moved[name] * curl
        for name, (plus, minus) in _ELECTRIC.items():
            if name not in fields:
                continue
            curl = _difference(fields, *plus, above=False) - _difference(fields, *minus, above=False)
            fields[name] = kept[name] * fields[name] + moved[name] * curl
            for axis in range(some.ndim):
                if axis != "xyz".index(name[1]):
                    fields[name][(slice(None),) * axis + (0,)] = 0


def _advanced(run: Fdtd) -> dict[str, Array]:
    """The fields after some steps from random ones, which are also set in the run."""
    random = np.random.default_rng(_SEED)
    run.set_materials(*_materials(run.shape))
    for name in run.fields:
        if name.startswith("h"):
            run.set_field(name, random.random(run.shape) - 0.5)
    run.step(_STEPS)
    return {name: run.field(name) for name in run.fields}


def _same(some: dict[str, Array], others: dict[str, Array]) -> bool:
    return all(np.any(values) and np.array_equal(values, others[name]) for name, values in some.items())


def fdtd_is_right(dimensions: int, settings: Settings, layers: int) -> bool:
    """Compares a closed box with NumPy, and absorbing layers with one CPU device."""
    shape = _shape(dimensions, settings)
    run = settings.fdtd(shape, layers=0)
    found = _advanced(run)
    random = np.random.default_rng(_SEED)
    plain = {name: np.zeros_like(values) for name, values in found.items()}
    for name, values in plain.items():
        if name.startswith("h"):
            values[...] = random.random(shape) - 0.5
    _plain_fdtd(plain, run.dt)
    if not _same(found, plain):
        return False
    if layers == 0:
        return True
    one = Fdtd(shape, _SPACING, cpml=layers, precision=settings.precision)
    return _same(_advanced(settings.fdtd(shape, layers=layers)), _advanced(one))


def jacobi_is_right(settings: Settings) -> bool:
    """Compares the solution to the last bit, and the norms of the residual up to the rounding of a sum."""
    run: Jacobi = settings.jacobi(_shape(2, settings))
    source = np.random.default_rng(_SEED).random(run.shape).astype(run.solution().dtype)
    run.set_source(source)
    wide = np.zeros([count + 2 for count in run.shape], source.dtype)
    quarter = source.dtype.type(0.25)
    wanted = []
    for _ in range(_STEPS):
        before = wide[1:-1, 1:-1].copy()
        about = wide[:-2, 1:-1] + wide[2:, 1:-1]
        about += wide[1:-1, :-2] + wide[1:-1, 2:]
        wide[1:-1, 1:-1] = (about + source) * quarter
        change = 4 * (wide[1:-1, 1:-1].astype(np.float64) - before)
        wanted.append((np.max(np.abs(change)), np.sqrt(np.sum(change**2))))
    residuals = [*run.step_with_residuals(_STEPS), run.residual()]
    are_right = np.allclose(residuals, [*wanted, wanted[-1]], rtol=_RESIDUAL_ERROR, atol=0)
    return are_right and np.array_equal(run.solution(), wide[1:-1, 1:-1])
