"""Periodic walls: what lies beyond one wall of an axis is what lies inside the other."""

from typing import Any

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import Cpml, Debye, Fdtd, Lorentz

SHAPES = {2: (11, 9), 3: (7, 6, 5)}
SPACING = {2: (1e-3, 1.6e-3), 3: (1e-3, 1.5e-3, 1.2e-3)}
MU0 = 1.25663706127e-6
EPS0 = 1 / (MU0 * 299_792_458.0**2)
TE = {"polarisation": "te"}


def made(dimensions: int, periodic: str, turned: tuple[int, ...] = (0, 0, 0), **options: Any) -> Fdtd:
    """A closed domain in random materials, turned by some cells along its periodic axes, with sources everywhere."""
    shape = SHAPES[dimensions]
    by = [count if "xyz"[axis] in periodic else 0 for axis, count in enumerate(turned[:dimensions])]
    random = np.random.default_rng(4)
    given = {
        "permittivity": 1 + 3 * random.random(shape),
        "conductivity": 0.2 * random.random(shape) * (random.random(shape) < 0.5),
        "permeability": 1 + random.random(shape),
    }
    media = options.pop("media", [])
    keys: dict[str, Any] = {}
    if media:
        keys = {"media": media, "medium": np.roll(random.integers(0, len(media) + 1, shape), by, range(dimensions))}
    run = Fdtd(
        shape,
        SPACING[dimensions],
        cpml=0,
        periodic=list(periodic),
        **{"precision": "double", "devices": ["cpu:0"], **options},
    )
    run.set_materials(**{name: np.roll(one, by, range(dimensions)) for name, one in given.items()}, **keys)
    for number, name in enumerate(run.fields):
        for cell in ((1, 4, 2), (shape[0] - 1, 1, 1), (3, shape[1] - 1, 4), (4, 4, 3)):
            place = tuple((at + one) % count for at, one, count in zip(cell, by, shape, strict=False))
            run.add_source(name, place, np.random.default_rng(number).standard_normal(20))
    return run


def turned_back(run: Fdtd, periodic: str, turned: tuple[int, ...]) -> dict[str, np.ndarray]:
    axes = [axis for axis in range(len(run.shape)) if "xyz"[axis] in periodic]
    return {name: np.roll(run.field(name), [-turned[axis] for axis in axes], axes) for name in run.fields}


CASES = [
    *[(2, axes, keys) for keys in ({}, TE) for axes in ("x", "y", "xy")],
    *[(3, axes, {}) for axes in ("x", "z", "xyz")],
    (2, "xy", {"media": [[Debye(2.0, 2e-11)], [Lorentz(1.5, 6e9, 2e9)]], "pole_values": 8}),
    (3, "yz", {"media": [[Debye(2.0, 2e-11)], [Lorentz(1.5, 6e9, 2e9)]], "pole_values": 8}),
    (3, "xz", {"averaging": False}),
]


@pytest.mark.parametrize("turned", [(1, 1, 1), (6, 5, 3)])
@pytest.mark.parametrize(("dimensions", "axes", "keys"), CASES)
def test_a_domain_that_is_turned_has_the_same_fields_there(
    dimensions: int, axes: str, keys: dict[str, Any], turned: tuple[int, ...]
):
    run, other = made(dimensions, axes, **keys), made(dimensions, axes, turned, **keys)
    for one in (run, other):
        one.step(60)
    found = turned_back(other, axes, turned)
    for name in run.fields:
        assert np.abs(run.field(name)).max() > 0
        # The order in which four materials around an edge are added does not change, nor does anything else.
        assert (found[name] == run.field(name)).all(), name


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(("dimensions", "axes", "keys"), CASES[:9])
def test_cuts_and_pushes_give_the_same_bits(dimensions: int, axes: str, keys: dict[str, Any], precision: str):
    fields = []
    for other in (
        {},
        {"devices": ["cpu:0"] * 2, "cut": (2, 1), "push": "copy"},
        {"devices": ["cpu:0"] * 4, "cut": (2, 2), "redundant": 2},
        {"redundant": 3},
        {"devices": ["cpu:0"] * 2, "cut": (1, 2), "push": "host"},
    ):
        cut = (*other["cut"], 1)[:dimensions] if "cut" in other else "best"
        run = made(dimensions, axes, precision=precision, **{**keys, **other, "cut": cut})
        run.step(50)
        fields.append({name: run.field(name) for name in run.fields})
    assert all((fields[0][name] == other[name]).all() for other in fields[1:] for name in fields[0])


@pytest.mark.parametrize(("keys", "along"), [({}, "ez"), (TE, "ex")])
def test_a_uniform_line_makes_a_plane_wave(keys: dict[str, str], along: str):
    traces = []
    for width in (2, 9):
        run = Fdtd((width, 60), 1e-3, cpml=Cpml(10), periodic=["x"], precision="double", devices=["cpu:0"], **keys)
        pulse = np.exp(-(((np.arange(60) - 30) / 8) ** 2))
        run.add_sources(along, [(x, 25) for x in range(width)], pulse)
        receiver = run.add_receiver(along, (width // 2, 40))
        run.step(250)
        values = run.field(along)
        assert (values == values[:1]).all()
        traces.append(run.trace(receiver).copy())
    assert (traces[0] == traces[1]).all()
    peak = np.abs(traces[0]).max()
    assert peak > 0.1
    assert np.abs(traces[0][-60:]).max() < 1e-3 * peak, "the layers of the other axis absorb it"


@pytest.mark.parametrize(("dimensions", "keys"), [(2, {}), (2, TE), (3, {})])
def test_a_closed_domain_keeps_its_energy(dimensions: int, keys: dict[str, str]):
    shape, axes = SHAPES[dimensions], "xyz"[:dimensions]
    run = Fdtd(shape, 1e-3, cpml=0, periodic=list(axes), precision="double", devices=["cpu:0"], **keys)
    random = np.random.default_rng(3)
    for name in run.fields:
        run.set_field(name, random.standard_normal(shape) * (1 if name[0] == "e" else (EPS0 / MU0) ** 0.5))
    energies = []
    for _ in range(40):
        run.step(20)
        last = {name: run.field(name) for name in run.fields}
        run.step(1)
        after = {name: run.field(name) for name in run.fields}
        electric = sum(EPS0 * (last[name] ** 2).sum() for name in run.fields if name[0] == "e")
        magnetic = sum(MU0 * (last[name] * after[name]).sum() for name in run.fields if name[0] == "h")
        energies.append(electric + magnetic)
    np.testing.assert_allclose(energies, energies[0], rtol=1e-8)


def test_a_restart_has_the_same_bits_and_only_with_the_same_walls():
    run, again = made(2, "xy"), made(2, "xy", devices=["cpu:0"] * 2)
    run.step(30)
    again.restore(run.state())
    for one in (run, again):
        one.step(30)
    assert all((run.field(name) == again.field(name)).all() for name in run.fields)
    one, other = (Fdtd((8, 8), 1e-3, cpml=0, periodic=axes, devices=["cpu:0"]) for axes in (["x"], ["y"]))
    with pytest.raises(UsageError, match="other periodic walls"):
        other.restore(one.state())


def test_layers_leave_periodic_walls_out():
    assert Fdtd((8, 18), 1e-3, cpml=3, periodic=["x"], devices=["cpu:0"]).layers.sides == ((0, 0), (3, 3))
    assert Fdtd((8, 8), 1e-3, cpml=3, periodic=["x", "y"], devices=["cpu:0"]).layers.cells == 0
    found = Fdtd((18, 8), 1e-3, cpml=3, magnetic_walls=["x"], periodic=["y"], devices=["cpu:0"]).layers
    assert found.sides == ((0, 3), (0, 0))


def test_what_cannot_be_is_refused():
    for keys, why in (
        ({"periodic": ["z"]}, "no wall across 'z': axes are x, y"),
        ({"periodic": ["x"], "magnetic_walls": ["x"]}, "walls of x are periodic, so the low one cannot be a magnetic"),
        ({"periodic": ["x"], "cpml": Cpml(3, sides=((3, 3), (3, 3)))}, "walls of x are periodic, but have layers of 3"),
        ({"periodic": ["x"], "mode": "resident"}, "mode 'resident' is not possible with periodic walls"),
        ({"periodic": ["x"], "passes": "always"}, "passes over memory are not possible with periodic walls"),
        ({"periodic": ["x"], "device_memory": 4096}, "cannot run with periodic walls; use more devices$"),
        ({"periodic": ["x"], "redundant": 20}, "the 18 cells along x are fewer than the 20 ghost layers"),
    ):
        with pytest.raises(UsageError, match=why):
            Fdtd((18, 18), 1e-3, **{"cpml": 0, "devices": ["cpu:0"], **keys})


def test_measured_choices_run():
    run = Fdtd((32, 24), 1e-3, periodic=["x"], cpml=0, devices=["cpu:0"] * 2, redundant="measured", push="measured")
    run.step(10)
    assert any(trial.seconds_per_step for trial in run.trials)
