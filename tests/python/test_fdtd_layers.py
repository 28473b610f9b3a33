"""Reflections of absorbing layers for short waves, near sources and grazing waves, against walls out of reach."""

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import Cpml, Fdtd

SPACING = 1e-3
LIGHT = 299_792_458.0
STABLE = SPACING / (LIGHT * np.sqrt(2)) * (1 - 1e-12)


def reflection(
    inside: tuple[int, int],
    source: tuple[int, int],
    receiver: tuple[int, int],
    layers: Cpml,
    *,
    wave: float,
    travel: int,
    slower: int = 1,
    field: str = "ez",
    polarisation: str = "tm",
) -> float:
    """In dB: the largest difference at the receiver, relative to the largest field there without walls.

    Cells count from the inner border of the low layers. The run is as long as a wave needs for `travel` cells, in steps
    of 1 / `slower` of the largest stable one. The pulse is the derivative of a Gaussian.
    """
    dt = STABLE / slower
    steps = int(travel * np.sqrt(2) * slower)
    time = np.arange(steps) * dt * LIGHT / (SPACING * wave) * 2 * np.pi - 6.5
    traces = []
    for cpml, margin in ((layers, layers.cells), (0, travel // 2 + 5)):
        shape = tuple(count + 2 * margin for count in inside)
        run = Fdtd(shape, SPACING, dt=dt, cpml=cpml, precision="double", devices=["cpu:0"], polarisation=polarisation)
        run.add_source(field, tuple(at + margin for at in source), -time * np.exp(-(time**2) / 2))
        number = run.add_receiver(field, tuple(at + margin for at in receiver))
        run.step(steps)
        traces.append(run.trace(number))
    absorbed, free = traces
    return float(20 * np.log10(np.max(np.abs(absorbed - free)) / np.max(np.abs(free))))


@pytest.mark.parametrize(("field", "polarisation"), [("ez", "tm"), ("hz", "te"), ("ex", "te"), ("ey", "te")])
@pytest.mark.parametrize("slower", [1, 2, 6])
def test_waves_of_28_cells_come_back_alike_at_every_time_step(slower: int, field: str, polarisation: str):
    """A first-order recursion in time would differ between time steps: -86 dB at the largest step, then -94."""
    which = {"field": field, "polarisation": polarisation}
    at = (28, 40) if field == "ex" else (40, 28)  # not along a dipole, where it radiates nothing
    level = reflection((50, 50), (25, 25), at, Cpml(), wave=28, travel=150, slower=slower, **which)
    assert level < -100


GRAZING = {"inside": (36, 110), "source": (8, 12), "receiver": (9, 95), "travel": 260}
BESIDE = {"inside": (36, 44), "source": (4, 20), "receiver": (4, 33), "travel": 160}


@pytest.mark.parametrize("where", [GRAZING, BESIDE], ids=["grazing", "beside"])
@pytest.mark.parametrize("wave", [30.0, 120.0])
@pytest.mark.parametrize(("field", "polarisation"), [("ez", "tm"), ("hz", "te")])
def test_thicker_layers_return_nothing_of_grazing_waves_and_near_sources(
    where: dict, wave: float, field: str, polarisation: str
):
    """Eighteen cells, with the numbers that layers have by default."""
    assert reflection(**where, layers=Cpml(18), wave=wave, field=field, polarisation=polarisation) < -110


def test_layers_stay_stable_with_any_grading():
    """Noise of all wavelengths in layers from almost none to far too strong, for thousands of steps."""
    noise = np.random.default_rng(3).standard_normal(200)
    gradings = [
        Cpml(8),
        Cpml(8, kappa=1, alpha=0),
        Cpml(8, sigma=8, kappa=1, alpha=0.3),
        Cpml(3, sigma=20, kappa=15),
        Cpml(8, order=1, sigma=1e4, kappa=1),
    ]
    for layers in gradings:
        run = Fdtd((40, 36), SPACING, dt=STABLE, cpml=layers, precision="double")
        run.set_materials(permittivity=np.where(np.arange(40) > 25, 6.0, 1.0)[:, None] * np.ones((40, 36)))
        run.add_source("ez", (20, 17), noise)
        run.step(400)
        early = np.max(np.abs(run.field("ez")))
        run.step(6000)
        assert np.max(np.abs(run.field("ez"))) < 3 * early, layers


def run_with(layers: Cpml | int, source: tuple[int, ...], shape: tuple[int, ...] = (70, 50), devices: int = 1) -> Fdtd:
    run = Fdtd(shape, SPACING, cpml=layers, precision="double", devices=["cpu:0"] * devices)
    time = np.arange(60) / 6 - 4
    run.add_source("ez", source, -time * np.exp(-(time**2) / 2))
    return run


def test_layers_given_wall_by_wall_are_those_given_once():
    fields = []
    for layers in (Cpml(8), Cpml(8, sides=((8, 8), (8, 8))), Cpml(8, sides=((8, 8), (8, 7)))):
        run = run_with(layers, (30, 22))
        run.step(200)
        fields.append(run.field("ez"))
    assert (fields[0] == fields[1]).all()
    assert not (fields[0] == fields[2]).all()


@pytest.mark.parametrize("devices", [1, 2])
def test_a_wall_without_a_layer_reflects_and_one_with_it_does_not(devices: int):
    """A source 20 cells from a reflecting wall of x: its image in a domain twice as wide has the same effect."""
    one = run_with(Cpml(10, sides=((0, 10), (10, 10))), (20, 25), devices=devices)
    # The image of a current before a conductor flows the other way.
    image = Fdtd((140, 50), SPACING, cpml=Cpml(10), precision="double", devices=["cpu:0"])
    time = np.arange(60) / 6 - 4
    for at, sign in ((90, 1), (50, -1)):
        image.add_source("ez", (at, 25), -sign * time * np.exp(-(time**2) / 2))
    for run in (one, image):
        run.step(90)
    here, there = one.field("ez"), image.field("ez")[70:]
    assert np.abs(here).max() > 0.01
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-12)


def test_layers_at_some_walls_in_space():
    """A mirror image of the scene, layers and all, gives the mirror image of the field."""
    shape = (24, 20, 16)
    fields = []
    for sides, at in ((((0, 6), (6, 0), (0, 0)), (9, 8, 7)), (((6, 0), (0, 6), (0, 0)), (15, 12, 7))):
        run = run_with(Cpml(6, sides=sides), at, shape)
        run.step(120)
        fields.append(run.field("ez"))
    # Ez lies on the nodes along x and y: node 0 is the wall of its own image.
    np.testing.assert_allclose(fields[0][1:, 1:], fields[1][:0:-1, :0:-1], rtol=0, atol=1e-13)
    assert np.abs(fields[0]).max() > 1e-3


def test_layers_that_cannot_be():
    with pytest.raises(UsageError, match="30 and 20 cells leave no cell between them on an axis of 50 cells"):
        Fdtd((70, 50), SPACING, cpml=Cpml(30, sides=((5, 5), (30, 20))), devices=["cpu:0"])
    with pytest.raises(UsageError, match="layers are given for the walls of 3 axes, but the domain has 2"):
        Fdtd((70, 50), SPACING, cpml=Cpml(5, sides=((5, 5),) * 3), devices=["cpu:0"])
    with pytest.raises(UsageError, match="5 and 9 cells are thicker than the 5 cells given for the thickest"):
        Fdtd((70, 50), SPACING, cpml=Cpml(5, sides=((5, 9), (5, 5))), devices=["cpu:0"])
    run = run_with(Cpml(8, sides=((8, 8), (8, 7))), (30, 22))
    run.step(3)
    other = run_with(Cpml(8, sides=((8, 8), (7, 8))), (30, 22))
    with pytest.raises(UsageError, match="another grading"):
        other.restore(run.state())
