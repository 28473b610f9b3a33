"""Finite differences in the time domain: the class compared with plain NumPy, and refused arguments."""

import os
import re
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from grid_reference import around

from headrace import DataError, Device, DeviceError, Errc, UsageError
from headrace._core import FdtdOptions
from headrace.grid import Cpml, Fdtd

LIGHT = 299792458.0
PERMEABILITY = 1.25663706127e-6
PERMITTIVITY = 1 / (PERMEABILITY * LIGHT**2)
SPACING = 1e-3

LAYOUTS: dict[str, dict[str, Any]] = {
    "one device": {"devices": ["cpu:0"]},
    "two devices": {"devices": ["cpu:0", "cpu:1"], "cut": (2, 1)},
    "three devices": {"devices": ["cpu:2", "cpu:0", "cpu:1"]},
    "redundant": {"devices": ["cpu:0", "cpu:1", "cpu:1", "cpu:0"], "cut": (2, 2), "redundant": 3},
    "passes of a step": {"devices": ["cpu:0", "cpu:1"], "redundant": 4, "passes": "always", "pass_steps": 1},
    "through the host": {"devices": ["cpu:0", "cpu:1"], "push": "host", "redundant": 2},
    "resident": {"devices": ["cpu:0", "cpu:1"], "mode": "resident", "redundant": 2},
}


def pulse(steps: int, width: float) -> np.ndarray:
    """The derivative of a Gaussian, starting near 0."""
    late = np.arange(steps) / width - 6
    return -late * np.exp(-(late**2) / 2)


def materials(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(8)
    conductivity = np.where(random.random(shape) < 0.2, random.random(shape), 0)
    return 1 + 3 * random.random(shape), conductivity, 1 + random.random(shape)


def plain_ez(shape: tuple[int, int], dt: float, source: tuple[int, int], samples: np.ndarray) -> np.ndarray:
    """Ez in a metal box, computed on whole arrays with the stencil's arithmetic in single precision."""
    permittivity, conductivity, permeability = materials(shape)
    permittivity, conductivity = around(permittivity, shape), around(conductivity, shape)
    loss = conductivity * dt / (2 * permittivity * PERMITTIVITY)
    ca = ((1 - loss) / (1 + loss)).astype(np.float32)
    cb = (dt / (permittivity * PERMITTIVITY * SPACING) / (1 + loss)).astype(np.float32)
    db = (dt / (permeability * PERMEABILITY * SPACING)).astype(np.float32)
    ez = np.zeros((shape[0] + 1, shape[1] + 1), np.float32)
    hx, hy = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    inner = (slice(1, shape[0]), slice(1, shape[1]))
    for sample in samples.astype(np.float32):
        hx -= db * (ez[:-1, 1:] - ez[:-1, :-1])
        hy += db * (ez[1:, :-1] - ez[:-1, :-1])
        curl = (hy[1:, 1:] - hy[:-1, 1:]) - (hx[1:, 1:] - hx[1:, :-1])
        ez[inner] = ca[1:, 1:] * ez[inner] + cb[1:, 1:] * curl
        ez[source] += sample
    return ez[:-1, :-1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_plane_is_that_of_plain_numpy(layout: str):
    shape = (33, 27)
    run = Fdtd(shape, SPACING, cpml=0, **LAYOUTS[layout])
    run.set_materials(*materials(shape))
    samples = np.random.default_rng(2).standard_normal(50)
    run.add_source("ez", (17, 13), samples)
    receiver = run.add_receiver("ez", (9, 20))
    run.step(20)
    run.step(30)
    wanted = plain_ez(shape, run.dt, (17, 13), samples)
    np.testing.assert_array_equal(run.field("ez"), wanted)
    assert run.trace(receiver)[-1] == wanted[9, 20]
    assert run.trace(receiver).shape == (run.steps_done,) == (50,)
    assert len(run.parts) == len(LAYOUTS[layout]["devices"])


@pytest.mark.parametrize("shape", [(30, 24), (16, 13, 14)])
def test_any_layout_gives_the_same_bits(shape: tuple[int, ...]):
    results = []
    for layout in ({"devices": "cpu:0"}, {"devices": ["cpu:0", "cpu:2", "cpu:1"], "redundant": 2}):
        run = Fdtd(shape, SPACING, cpml=3, precision="double", **layout)
        run.set_materials(*materials(shape))
        run.add_source("ez", [count // 2 for count in shape], pulse(40, 3))
        run.add_source("hx", [count // 2 + 1 for count in shape], pulse(40, 2))
        receiver = run.add_receiver("hy", [count // 3 for count in shape])
        run.step(40)
        results.append([run.trace(receiver), *(run.field(name) for name in run.fields)])
    for one, other in zip(*results, strict=True):
        assert np.any(one)
        np.testing.assert_array_equal(one, other)


def test_state_goes_on_elsewhere():
    def made(**layout: object) -> Fdtd:
        run = Fdtd((30, 24), SPACING, cpml=4, **layout)  # type: ignore[arg-type]
        run.set_materials(permittivity=2.5)
        run.add_source("ez", (15, 12), pulse(40, 3))
        run.add_receiver("ez", (20, 12))
        return run

    whole = made()
    whole.step(40)
    first = made(devices=["cpu:0", "cpu:1"], redundant=2)
    first.step(17)
    second = made(devices=["cpu:0", "cpu:1", "cpu:2"])
    second.restore(first.state())
    assert second.steps_done == 17
    second.step(23)
    for name, values in whole.state().items():
        np.testing.assert_array_equal(second.state()[name], values, err_msg=name)


def test_arrays_have_the_shape_of_the_domain_and_scalars_are_for_all_cells():
    shape = (12, 9, 10)
    run = Fdtd(shape, SPACING, cpml=2, precision="double")
    values = np.random.default_rng(1).standard_normal(shape)
    run.set_field("hz", values)
    np.testing.assert_array_equal(run.field("hz"), values)
    run.set_field("hz", 3.0)
    assert np.all(run.field("hz") == 3)
    assert run.shape == shape
    assert run.cells == 1080
    assert run.fields == ["ex", "ey", "ez", "hx", "hy", "hz"]
    assert run.field("ex").dtype == np.float64
    assert Fdtd((9, 8), SPACING, cpml=0).field("ez").dtype == np.float32
    assert run.dt == pytest.approx(0.99 * SPACING / LIGHT / np.sqrt(3))


def test_a_cpu_device_takes_all_its_cores():
    """A part for each core of a domain that is large enough; the fields are those of one part."""
    cores = min(Device.parse("cpu:0").properties.multiprocessor_count, len(os.sched_getaffinity(0)))
    runs = [Fdtd((300, 400), 1e-3, devices=["cpu:0"], **more) for more in ({}, {"cut": (1, 1)}, {"redundant": 3})]
    for run in runs:
        run.add_source("ez", (150, 200), np.sin(np.arange(60) * 0.3))
        run.step(100)
    assert [len(run.parts) for run in runs] == [min(cores, 300 * 400 >> 14), 1, min(cores, 300 * 400 >> 14)]
    assert runs[0].redundant > 1
    assert runs[2].redundant == 3
    for name in runs[1].fields:
        for run in (runs[0], runs[2]):
            np.testing.assert_array_equal(run.field(name), runs[1].field(name))
    slabs = Fdtd((300, 400), 1e-3, devices=["cpu:0"], device_memory="1MiB")
    assert len(slabs.parts) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (10,)}, "2 or 3 numbers"),
        ({"shape": (10, 0)}, "1 cell or more along each axis"),
        ({"dt": 1e-11}, "not stable: it must be above 0 and at most 2.358"),
        ({"dt": float("nan")}, "not stable"),
        ({"spacing": -1.0}, "spacing"),
        ({"cpml": 15}, "use at most 14 cells"),
        ({"cpml": -1}, "cannot have -1 cells"),
        ({"cpml": Cpml(cells=15)}, "use at most 14 cells"),
        ({"cpml": Cpml(order=0.5)}, "the order of an absorbing layer is 0.5: it must be finite and at least 1"),
        ({"cpml": Cpml(sigma=-1)}, r"\(sigma\) of an absorbing layer is -1"),
        ({"cpml": Cpml(sigma=1e308)}, "out of range"),
        ({"cpml": Cpml(kappa=float("nan"))}, r"\(kappa\) of an absorbing layer is nan"),
        ({"cpml": Cpml(kappa_order=0)}, "kappa_order.* is 0: it must be finite and above 0"),
        ({"cpml": Cpml(alpha=float("inf"))}, "alpha of an absorbing layer is inf"),
        ({"cpml": Cpml(alpha_order=-1)}, "alpha_order"),
        ({"precision": "half"}, "single, double"),
        ({"push": "pull"}, "pull"),
        ({"mode": "eternal"}, "streams, resident"),
        ({"mode": "resident", "push": "copy"}, "push 'store' or 'automatic'"),
        ({"cut": "worst"}, "worst"),
        ({"cut": (2, 1)}, "1 devices were given for 2 parts"),
        ({"cut": (0, 1)}, r"\(0, 1\)"),
        ({"devices": ["cuda:99"]}, "cuda:99"),
        ({"devices": []}, "at least one"),
        ({"redundant": 0}, "redundant"),
        ({"pass_steps": 0}, "a pass over memory must do 1 to 4 steps, not 0"),
    ],
)
def test_refuses_what_cannot_be(options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        Fdtd(**{"shape": (30, 30), "spacing": SPACING, **options})


def test_refuses_values_that_cannot_be():
    run = Fdtd((30, 20), SPACING, cpml=0)
    wrong = np.ones((30, 20))
    with pytest.raises(UsageError, match=r"shape \(20, 30\), but the domain has shape \(30, 20\)"):
        run.set_materials(permittivity=np.ones((20, 30)))
    wrong[7, 3] = np.nan
    with pytest.raises(UsageError, match=r"permeability is nan in cell \(7, 3\)"):
        run.set_materials(permeability=wrong)
    with pytest.raises(UsageError, match=r"at most 1\.17"):
        run.set_materials(permittivity=0.25)
    with pytest.raises(UsageError, match="lies outside the domain of 30 x 20"):
        run.add_source("ez", (30, 3), [1.0])
    with pytest.raises(UsageError, match="3 indices"):
        run.add_receiver("ez", (3, 3, 3))
    with pytest.raises(UsageError, match="the fields are ez, hx, hy"):
        run.field("ex")
    with pytest.raises(UsageError, match="one dimension"):
        run.add_source("ez", (3, 3), [[1.0]])
    with pytest.raises(UsageError, match="sample 1 of a source is nan"):
        run.add_source("ez", (3, 3), [0.0, np.nan])
    with pytest.raises(UsageError, match="no receiver 0"):
        run.trace(0)
    with pytest.raises(UsageError, match="shape"):
        run.set_field("ez", np.zeros((20, 30)))
    with pytest.raises(UsageError, match="0 or more"):
        run.step(-1)


def test_refuses_a_state_of_another_run():
    run = Fdtd((30, 20), SPACING, cpml=0)
    state = run.state()
    with pytest.raises(UsageError, match="psi_ezx"):
        Fdtd((30, 20), SPACING, cpml=4).restore(state)
    with pytest.raises(UsageError, match="shape"):
        Fdtd((20, 30), SPACING, cpml=0).restore(state)
    run.add_receiver("ez", (4, 4))
    with pytest.raises(UsageError, match="trace_0"):
        run.restore(state)


def test_layers_are_those_of_cpp_where_nothing_is_said():
    core = FdtdOptions(
        *(
            2,
            (30, 30, 1),
            (SPACING,) * 3,
            None,
            ["cpu:0"],
            None,
            1,
            "automatic",
            "streams",
            "automatic",
            4,
            30.0,
            10,
            "single",
        )
    )
    assert tuple(core.grading) == Cpml().grading
    assert Fdtd((30, 30), SPACING).layers == Cpml()
    assert Fdtd((30, 30), SPACING, cpml=4).layers == Cpml(cells=4)


def test_a_state_goes_on_with_the_same_layers_only():
    random = np.random.default_rng(3)
    permittivity = 1 + 30 * random.random((30, 24))

    def made(layers: Cpml) -> Fdtd:
        run = Fdtd((30, 24), SPACING, cpml=layers, precision="double")
        run.set_materials(permittivity)
        run.add_source("ez", (15, 12), random_samples)
        return run

    random_samples = random.standard_normal(20)
    graded = Cpml(cells=5, order=3, sigma=0.7, kappa=2, kappa_order=3, alpha=0.01, alpha_order=1)
    whole, first, second = made(graded), made(graded), made(graded)
    whole.step(60)
    first.step(33)
    second.restore(first.state())
    second.step(27)
    np.testing.assert_array_equal(second.field("ez"), whole.field("ez"))
    usual = made(Cpml(cells=5))
    with pytest.raises(UsageError, match="another grading of its absorbing layers: give the same Cpml"):
        usual.restore(first.state())
    assert usual.steps_done == 0
    usual.step(60)
    assert not np.array_equal(usual.field("ez"), whole.field("ez"))


def test_says_where_and_when_a_field_is_not_finite():
    run = Fdtd((30, 20), SPACING, cpml=0)
    run.step(3, check_every=1)
    values = np.zeros((30, 20))
    values[4, 11] = np.inf
    run.set_field("hx", values)
    with pytest.raises(DataError, match=r"hx is inf in cell \(4, 11\) after 3 steps"):
        run.check_finite()
    with pytest.raises(DataError, match="after 5 steps"):
        run.step(10, check_every=2)


def test_ctrl_c_ends_it_between_steps_and_it_goes_on():
    script = """
from headrace.grid import Fdtd
run = Fdtd((16, 16), 1e-3, cpml=0)
try:
    print("on", flush=True)
    run.step(10**12)
except KeyboardInterrupt:
    done = run.steps_done
    run.step(5)
    print(run.steps_done - done)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    assert output == "5\n"


def filled(run: Fdtd) -> Fdtd:
    """The run after 40 steps of a pulse in random materials."""
    run.set_materials(*materials(run.shape))
    run.add_source("ez", [count // 2 for count in run.shape], pulse(40, 3))
    run.step(40)
    return run


def test_what_is_measured_changes_no_value():
    plain = filled(Fdtd((40, 36), SPACING, cpml=4))
    chosen = Fdtd(
        (40, 36),
        SPACING,
        cpml=4,
        devices=["cpu:0", "cpu:1", "cpu:0"],
        cut="measured",
        redundant="measured",
        push="measured",
    )
    assert np.array_equal(filled(chosen).field("ez"), plain.field("ez"))
    assert {(trial.redundant, trial.push) for trial in chosen.trials} == {
        (layers, push) for layers in (1, 2, 4, 8) for push in ("store", "copy", "host")
    }
    best = min(
        (trial for trial in chosen.trials if trial.seconds_per_step is not None),
        key=lambda trial: trial.seconds_per_step,
    )
    assert (chosen.redundant, chosen.push) == (best.redundant, best.push)
    assert len(chosen.speeds) == 3
    assert chosen.speeds[0] == chosen.speeds[2]
    assert all(trial.why_not for trial in chosen.trials if trial.seconds_per_step is None)


def test_what_is_forced_is_not_tried():
    forced = Fdtd((40, 36), SPACING, devices=["cpu:0", "cpu:1"], redundant=2, push="measured")
    assert {(trial.redundant, trial.push) for trial in forced.trials} == {(2, "store"), (2, "copy"), (2, "host")}
    assert forced.redundant == 2
    assert Fdtd((40, 36), SPACING, devices=["cpu:0", "cpu:1"]).trials == []


def test_weights_make_slabs_and_no_other_values():
    plain = filled(Fdtd((40, 36), SPACING, cpml=4))
    weighted = filled(Fdtd((40, 36), SPACING, cpml=4, devices=["cpu:0", "cpu:1"], weights=[3, 1]))
    assert np.array_equal(weighted.field("ez"), plain.field("ez"))
    assert weighted.speeds == [3, 1]
    whole = [re.findall(r"\d+", words) for _, words in weighted.parts]
    assert [part[2:4] for part in whole] == [["0", "27"], ["27", "36"]]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"redundant": "often"}, 'redundant must be "measured" or a number'),
        ({"weights": [1, 1], "cut": (2, 1)}, "leave out cut"),
        ({"weights": [1, 1], "cut": "measured"}, "leave out cut"),
        ({"weights": [1, 0]}, "a speed must be finite and above 0"),
        ({"weights": [1, 1, 1]}, "2 devices were given for 3 parts"),
        ({"push": "measured", "dt": 1.0}, "stable"),
        ({"wait_limit": 0.0}, "above 0 and at most a day"),
        ({"wait_limit": -1.0}, "wait_limit must be 0 to"),
        ({"wait_limit": float("nan")}, "wait_limit must be 0 to"),
    ],
)
def test_choices_that_cannot_be(more: dict[str, Any], why: str):
    with pytest.raises(UsageError, match=re.escape(why)):
        Fdtd((40, 36), SPACING, devices=["cpu:0", "cpu:1"], **more)


def test_a_wait_beyond_its_limit_names_who_was_waited_for():
    # No neighbour is ready within a nanosecond, so it looks as if it hung.
    run = Fdtd((600, 600), SPACING, devices=["cpu:0", "cpu:1"], mode="resident", wait_limit=1e-9)
    with pytest.raises(DeviceError, match=r"which has part \d of 2, did not answer within 1e-09 s") as raised:
        run.step(2000)
    assert raised.value.code == Errc.hung
    with pytest.raises(DeviceError, match="did not answer"):
        run.step(1)
