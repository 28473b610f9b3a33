"""Magnetic walls: a half, a quarter or an eighth of a symmetric domain has the same fields as the whole."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import Cpml, Debye, Drude, Fdtd, Lorentz

HALF = {2: (16, 13), 3: (9, 8, 7)}
SPACING = {2: (1e-3, 1.6e-3), 3: (1e-3, 1.5e-3, 1.2e-3)}


def unfolded(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Cells and their mirror images below the low wall of each axis."""
    for axis in axes:
        values = np.concatenate([np.flip(values, axis), values], axis)
    return values


def pair(dimensions: int, axes: tuple[int, ...], cpml: int, **options: Any) -> tuple[Fdtd, Fdtd]:
    """A part of a domain with magnetic walls, and the whole domain, in the same random materials."""
    half, spacing = HALF[dimensions], SPACING[dimensions]
    random = np.random.default_rng(8)
    media = options.pop("media", [])
    given = [1 + 3 * random.random(half), 0.2 * random.random(half) * (random.random(half) < 0.5)]
    # Where media meet, four of them at most; every second cell has none.
    medium = random.integers(0, len(media) + 1, half) if media else None
    # In a plane with ez, H takes the permeability of one of two cells, which is no mirror image of itself.
    mirrored = dimensions == 3 or options.get("polarisation") == "te"
    given.append(1 + random.random(half) if mirrored else np.full(half, 1.7))
    runs = []
    for whole in (False, True):
        shape = [count * (1 + (whole and axis in axes)) for axis, count in enumerate(half)]
        sides = tuple((0 if axis in axes and not whole else cpml, cpml) for axis in range(dimensions))
        walls = [] if whole else ["xyz"[axis] for axis in axes]
        layers = Cpml(cpml, sides=sides) if cpml else 0
        run = Fdtd(
            shape,
            spacing,
            cpml=layers,
            magnetic_walls=walls,
            **{"precision": "double", "devices": ["cpu:0"], **options},
        )
        used = [unfolded(one, axes) if whole else one for one in given]
        keys = {}
        if medium is not None:
            keys = {"media": media, "medium": unfolded(medium, axes) if whole else medium}
        run.set_materials(*used, **keys)
        runs.append(run)
    return runs[0], runs[1]


def images(field: str, cell: tuple[int, ...], axes: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
    """The places in the whole domain of a component of the part, and of its images, with their signs.

    Tangential E and normal H are even, the other components odd.
    """
    half = HALF[len(cell)]
    found = {}
    for flips in product((False, True), repeat=len(axes)):
        place, sign = [at + half[axis] * (axis in axes) for axis, at in enumerate(cell)], 1
        for axis, flip in zip(axes, flips, strict=True):
            if not flip:
                continue
            along = "xyz"[axis] == field[1]
            at_node = along != (field[0] == "e")
            place[axis] = half[axis] - cell[axis] - (0 if at_node else 1)
            sign *= 1 if at_node else -1
        found[tuple(place)] = sign
    return list(found.items())


POINTS = {
    ("ez", "hx", "hy"): [
        *[
            ("ez", (0, 0)),
            ("ez", (5, 6)),
            ("ez", (0, 7)),
            ("hx", (0, 4)),
            ("hx", (6, 5)),
            ("hy", (3, 0)),
            ("hy", (4, 4)),
        ]
    ],
    ("hz", "ex", "ey"): [
        *[
            ("hz", (0, 0)),
            ("hz", (5, 6)),
            ("hz", (0, 7)),
            ("ex", (3, 0)),
            ("ex", (6, 5)),
            ("ey", (0, 4)),
            ("ey", (4, 4)),
        ]
    ],
    ("ex", "ey", "ez", "hx", "hy", "hz"): [
        *[("ez", (0, 0, 3)), ("ex", (3, 0, 0)), ("ey", (0, 3, 4)), ("ez", (4, 4, 3)), ("ey", (4, 0, 0))],
        *[("hx", (0, 3, 3)), ("hy", (4, 0, 3)), ("hz", (4, 3, 0)), ("hz", (5, 4, 3)), ("hx", (0, 0, 2))],
    ],
}


def excite(part: Fdtd, whole: Fdtd, axes: tuple[int, ...]) -> list[tuple[int, int]]:
    """The same sources and receivers in both, within the walls."""
    receivers = []
    for number, (field, cell) in enumerate(POINTS[tuple(part.fields)]):
        along = "xyz".index(field[1])
        if field[0] == "e" and any(at == 0 and axis != along and axis not in axes for axis, at in enumerate(cell)):
            continue  # on a wall that conducts
        samples = np.random.default_rng(number).standard_normal(25)
        part.add_source(field, cell, samples)
        for place, sign in images(field, cell, axes):
            whole.add_source(field, place, sign * samples)
        place = tuple(at + HALF[len(cell)][axis] * (axis in axes) for axis, at in enumerate(cell))
        receivers.append((part.add_receiver(field, cell), whole.add_receiver(field, place)))
    return receivers


def check_alike(part: Fdtd, whole: Fdtd, axes: tuple[int, ...], most: float = 1e-12) -> None:
    inside = tuple(slice(count if axis in axes else 0, None) for axis, count in enumerate(part.shape))
    for name in part.fields:
        right = whole.field(name)[inside]
        assert np.abs(right).max() > 0, name
        np.testing.assert_allclose(part.field(name), right, rtol=0, atol=most * np.abs(right).max(), err_msg=name)


TE = {"polarisation": "te"}
WALLS = [
    *[(2, one, keys) for keys in ({}, TE) for one in ((0,), (1,), (0, 1))],
    *[(3, one, {}) for one in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2))],
]


@pytest.mark.parametrize("cpml", [0, 3])
@pytest.mark.parametrize(("dimensions", "axes", "keys"), WALLS)
def test_a_part_has_the_fields_of_the_whole(dimensions: int, axes: tuple[int, ...], keys: dict[str, str], cpml: int):
    part, whole = pair(dimensions, axes, cpml, **keys)
    receivers = excite(part, whole, axes)
    for run in (part, whole):
        run.step(150)
    check_alike(part, whole, axes)
    for here, there in receivers:
        right = whole.trace(there)
        np.testing.assert_allclose(part.trace(here), right, rtol=0, atol=1e-12 * np.abs(right).max())


@pytest.mark.parametrize(("dimensions", "keys"), [(2, TE), (3, {})])
def test_dispersive_media(dimensions: int, keys: dict[str, str]):
    media = [[Debye(2.0, 2e-11)], [Lorentz(1.5, 6e9, 2e9), Drude(2e9, 4e9)]]
    part, whole = pair(dimensions, (0, 1), 3, media=media, pole_values=12, **keys)
    excite(part, whole, (0, 1))
    for run in (part, whole):
        run.step(120)
    check_alike(part, whole, (0, 1))


@pytest.mark.parametrize(("dimensions", "keys"), [(2, {}), (2, TE), (3, {})])
def test_a_field_that_is_set_is_the_one_that_is_read_and_a_restart_has_the_same_bits(
    dimensions: int, keys: dict[str, str]
):
    axes = (0, 1)
    part, whole = pair(dimensions, axes, 3, **keys)
    again, _ = pair(dimensions, axes, 3, devices=["cpu:0"] * 2, **keys)
    random = np.random.default_rng(2)
    for name in part.fields:
        values = random.standard_normal(part.shape)
        part.set_field(name, values)
        np.testing.assert_allclose(part.field(name), values, rtol=1e-15)
        part.set_field(name, 0.0)
    excite(part, whole, axes)
    excite(again, whole, axes)
    part.step(30)
    again.restore(part.state())
    for run in (part, again):
        run.step(30)
    for name in part.fields:
        assert (again.field(name) == part.field(name)).all(), name


@pytest.mark.parametrize("polarisation", ["tm", "te"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_cuts_and_passes_give_the_same_bits(precision: str, polarisation: str):
    fields = []
    for keys in (
        {"passes": "never"},
        {"devices": ["cpu:0"] * 4, "cut": (2, 2), "redundant": 2},
        {"passes": "always", "redundant": 4},
    ):
        part, whole = pair(2, (0, 1), 3, precision=precision, polarisation=polarisation, **keys)
        excite(part, whole, (0, 1))
        part.step(96)
        fields.append({name: part.field(name) for name in part.fields})
    assert all((fields[0][name] == other[name]).all() for other in fields[1:] for name in fields[0])


def test_slabs_give_the_same_bits():
    fields = []
    for keys in ({}, {"device_memory": "500KiB", "visit_steps": 2}):
        run = Fdtd((12, 10, 60), (1e-3, 2e-3, 1e-3), cpml=0, magnetic_walls=["x", "z"], devices=["cpu:0"], **keys)
        for field, cell in (("ez", (0, 4, 30)), ("ex", (3, 4, 0)), ("hx", (0, 5, 20))):
            run.add_source(field, cell, np.random.default_rng(1).standard_normal(20))
        run.step(40)
        assert (run.slabs is None) == (not keys)
        fields.append({name: run.field(name) for name in run.fields})
    assert all((fields[0][name] == fields[1][name]).all() for name in fields[0])


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="no wall across 'z': axes are x, y"):
        Fdtd((8, 8), 1e-3, cpml=0, magnetic_walls=["z"])
    with pytest.raises(UsageError, match="low wall of x, which has a layer of 3 cells: give it 0"):
        Fdtd((18, 18), 1e-3, cpml=Cpml(3, sides=((3, 3), (3, 3))), magnetic_walls=["x"])
    with pytest.raises(UsageError, match="dispersive media cannot be combined with magnetic walls in two dimensions"):
        Fdtd((8, 8), 1e-3, cpml=0, pole_values=1, magnetic_walls=["x"])
    assert Fdtd((18, 18), 1e-3, cpml=3, magnetic_walls=["x"]).layers.sides == ((0, 3), (3, 3))
    one, other = (Fdtd((8, 8), 1e-3, cpml=0, magnetic_walls=walls) for walls in (["x"], ["y"]))
    with pytest.raises(UsageError, match="other magnetic walls"):
        other.restore(one.state())
