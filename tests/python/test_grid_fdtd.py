"""The solver on its devices compared with the plain one, and with itself for different cuts."""

import numpy as np
import pytest
from grid_reference import NumpyFdtd
from grid_scenes import flat

from headrace import UsageError
from headrace.grid.solver import Done, Layout, Outputs, Scene, run_one

DEEP = (
    ("size = [0.4, 0.3]", "size = [0.4, 0.3, 0.2]"),
    ("position = [0.2, 0.2]", "position = [0.2, 0.2, 0.1]"),
    ("position = [0.25, 0.2]", "position = [0.25, 0.2, 0.1]"),
    ("step = [0.05, 0.0]", "step = [0.05, 0.0, 0.0]"),
    ("steps = 150", "steps = 80"),
)
DOUBLE = ("cpml = 0", 'cpml = 0\nprecision = "double"')


def ran(scene: Scene, layout: Layout = Layout(), **more: object) -> dict[str, np.ndarray]:  # noqa: B008 - it is frozen
    done: Done = run_one(scene, layout, Outputs(), **more)
    assert done.traces is not None
    return {field: values[0] for (_, field), values in done.traces.values.items()}


@pytest.mark.parametrize("scene", [flat(DOUBLE), flat(DOUBLE, *DEEP)], ids=["flat", "deep"])
def test_it_does_what_the_plain_solver_does(scene: Scene):
    plain = ran(scene, maker=NumpyFdtd)
    for field, values in ran(scene).items():
        # The vacuum constants differ in their tenth digit.
        assert np.abs(values - plain[field]).max() < 1e-7 * np.abs(plain[field]).max()


@pytest.mark.parametrize(
    "layout",
    [
        Layout(("cpu:0", "cpu:0")),
        Layout(("cpu:0", "cpu:0"), (2, 1), 3, "copy"),
        Layout(("cpu:0", "cpu:0", "cpu:0"), (1, 3), 2, "host"),
        Layout(("cpu:0",) * 4, (2, 2), 1, "store"),
    ],
    ids=str,
)
def test_every_cut_gives_the_same_bits(layout: Layout):
    scene = flat(("cpml = 0", "cpml = 4"), ("steps = 150", "steps = 100"))
    whole = ran(scene)
    for field, values in ran(scene, layout).items():
        assert (values == whole[field]).all()


def test_the_longest_stable_step_is_allowed():
    ran(flat(("steps = 150", "steps = 2\ncourant = 1")))
    ran(flat(("steps = 150", "steps = 2\ncourant = 1"), ("permittivity = 4.0", "permittivity = 0.7")))


def test_absorbing_layers_absorb():
    """The field in a small domain equals that in one too large for reflections."""
    empty = ("below = 0.1", "below = 0.0")
    small = flat(("cpml = 0", "cpml = 10"), ("size = [0.4, 0.3]", "size = [0.6, 0.6]"), empty)
    large = flat(
        ("size = [0.4, 0.3]", "size = [4.0, 4.0]"),
        ("position = [0.2, 0.2]", "position = [1.9, 1.9]"),
        ("position = [0.25, 0.2]", "position = [1.95, 1.9]"),
        empty,
    )
    free, found = ran(large)["ez"], ran(small)["ez"]
    assert np.abs(found - free).max() < 1e-2 * np.abs(free).max()


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (
            Layout(devices=("cpu:0",) * 41, cut=(41, 1)),
            "41 parts along x are too many: the domain of 40 x 30 x 1 has 40 cells",
        ),
        (
            Layout(devices=("cpu:0",) * 8, cut=(1, 8), redundant=8),
            "is thinner than the 8 ghost layers of its neighbour",
        ),
    ],
)
def test_a_domain_smaller_than_its_devices_or_ghosts_is_refused(layout: Layout, says: str):
    with pytest.raises(UsageError, match=says):
        run_one(flat(), layout, Outputs())
