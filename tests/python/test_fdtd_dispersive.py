"""Dispersive media in the solver, compared with Fresnel's formula, plain NumPy, and other cuts and modes."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headrace import Device, UsageError
from headrace.grid import Debye, Drude, Fdtd, Lorentz
from headrace.grid.dispersion import Pole, medium_of

LIGHT = 299792458.0
PERMEABILITY = 1.25663706127e-6
PERMITTIVITY = 1 / (PERMEABILITY * LIGHT**2)
SPACING = 1e-3

MEDIA: dict[str, tuple[float, float, Sequence[Pole]]] = {
    "debye": (3.0, 0.02, [Debye(4.0, 20e-12)]),
    "two debye": (4.0, 0.0, [Debye(3.0, 10e-12), Debye(2.0, 60e-12)]),
    "lorentz": (2.0, 0.0, [Lorentz(1.5, 14e9, 8e9)]),
    "overdamped lorentz": (2.0, 0.0, [Lorentz(1.5, 9e9, 90e9)]),
    "drude": (2.0, 0.0, [Drude(9e9, 12e9)]),
    "all": (2.5, 0.01, [Debye(1.0, 15e-12), Lorentz(1.0, 16e9, 10e9), Drude(5e9, 9e9)]),
}


class Guide:
    """Waves between two walls with a half sine across: each frequency has a single wave number along the guide.

    This is also an exact mode of the scheme, so only the medium behind a plane reflects it.
    """

    across, length, source, receiver, face = 40, 3000, 1100, 1160, 1200
    steps = 3200

    def __init__(self, dimensions: int = 2, dt: float | None = None) -> None:
        self.shape = (self.length, self.across, *(2,) * (dimensions - 2))
        self.dt = dt

    def trace(self, medium: tuple[float, float, Sequence[Pole]] | None) -> tuple[NDArray[np.float64], float]:
        """The receiver's trace with or without a medium beyond the face, and the time step."""
        values = medium_of(medium[2]).pole_values if medium else 0
        run = Fdtd(self.shape, SPACING, dt=self.dt, devices=["cpu:0"], cpml=0, precision="double", pole_values=values)
        if medium:
            beyond = np.broadcast_to(
                (np.arange(self.length) >= self.face).reshape(-1, *(1,) * (len(self.shape) - 1)), self.shape
            )
            run.set_materials(
                np.where(beyond, medium[0], 1.0), beyond * medium[1], media=[medium[2]], medium=beyond.astype(np.uint16)
            )
        moments = np.arange(self.steps) * run.dt
        pulse = np.exp(-(((moments - 500e-12) / 150e-12) ** 2)) * np.sin(2 * np.pi * 8e9 * (moments - 500e-12))
        for y in range(1, self.across):
            for z in range(self.shape[2] if len(self.shape) > 2 else 1):
                cell = (self.source, y, z)[: len(self.shape)]
                run.add_source("ez", cell, np.sin(np.pi * y / self.across) * pulse)
        receiver = run.add_receiver("ez", (self.receiver, self.across // 2, 0)[: len(self.shape)])
        run.step(self.steps)
        return run.trace(receiver), run.dt

    def along(self, permittivity: Any, frequency: NDArray[np.complex128], dt: float) -> NDArray[np.complex128]:
        """The wave number along the guide in the scheme, for its time step and the wave number across."""
        omega = 2 * np.sin(np.pi * frequency * dt) / dt
        across = 2 / SPACING * np.sin(np.pi / 2 / self.across)
        square = np.asarray(permittivity * (omega / LIGHT) ** 2 - across**2, dtype=np.complex128)
        root = np.sqrt(square)
        root = np.where(root.imag > 0, -root, root)
        return np.asarray(2 / SPACING * np.arcsin(root * SPACING / 2))


@pytest.mark.parametrize("name", list(MEDIA))
def test_a_half_space_reflects_as_fresnel_says_at_every_frequency(name: str) -> None:
    guide, (at_infinity, conductivity, poles) = Guide(), MEDIA[name]
    incident, dt = guide.trace(None)
    total, _ = guide.trace(MEDIA[name])
    # Damped traces correspond to a complex frequency, at which the truncation at the end of the run vanishes.
    damping = 10 / (guide.steps * dt)
    decay = np.exp(-damping * dt * np.arange(guide.steps))
    there, back = (np.fft.rfft(one * decay, 1 << 16) for one in (incident, total - incident))
    frequency = np.fft.rfftfreq(1 << 16, dt)
    band = (frequency > 6e9) & (frequency < 10e9)
    f = frequency[band] - 1j * damping / (2 * np.pi)
    epsilon = at_infinity + sum(np.array([pole.permittivity(one) for one in f]) for pole in poles)
    epsilon = epsilon + conductivity / (2j * np.pi * f * PERMITTIVITY)
    first, second = guide.along(1.0, f, dt), guide.along(epsilon, f, dt)
    # E lies in the face and H half a cell to either side: wave numbers appear as sines of the phase per cell.
    admittances = [np.sin(one * SPACING) for one in (first, second)]
    expected = (admittances[0] - admittances[1]) / (admittances[0] + admittances[1])
    found = back[band] / there[band] * np.exp(2j * first * (guide.face - guide.receiver) * SPACING)
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()


def test_three_dimensions_guide_the_same_wave_as_two() -> None:
    dt = SPACING / LIGHT / 2
    flat, solid = (Guide(dimensions, dt).trace(MEDIA["all"])[0] for dimensions in (2, 3))
    assert np.abs(flat - solid).max() < 1e-11 * np.abs(flat).max()


def scene_of(dimensions: int, **options: Any) -> Fdtd:
    """A domain with blocks of dispersive media at its walls and in its middle, an individual edge, and a source."""
    shape = (26, 22, 20)[:dimensions]
    run = Fdtd(shape, SPACING, pole_values=5, **options)
    x, y = (
        np.arange(count).reshape([-1 if axis == a else 1 for a in range(dimensions)])
        for axis, count in zip(range(2), shape[:2], strict=True)
    )
    medium = np.broadcast_to(np.where(x < 9, 1, np.where((x > 15) & (y > 8), 2, 0)), shape).astype(np.uint16)
    permittivity = np.broadcast_to(1.0 + (y > 12) + (medium > 0), shape)
    node = tuple(count // 2 for count in shape)
    run.set_materials(
        permittivity,
        np.where(medium == 2, 0.05, 0.0),
        media=[[Debye(3.0, 15e-12), Drude(4e9, 6e9)], [Lorentz(2.0, 15e9, 5e9), Debye(1.0, 30e-12)]],
        medium=medium,
        edges={"ez": ([node], [3.0], [0.01], [1])},
    )
    time = np.arange(120) / 15 - 4
    run.add_source("ez", tuple(count // 2 + 1 for count in shape), -time * np.exp(-(time**2) / 2))
    return run


ALL: dict[str, Any] = {"devices": ["cpu:0"]}


@pytest.mark.parametrize("device", [device.name for device in Device.list()])
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("cpml", [0, 4])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_devices_cuts_redundant_steps_and_modes_change_no_bit(
    dimensions: int, cpml: int, precision: str, device: str
) -> None:
    alone = scene_of(dimensions, cpml=cpml, precision=precision, **ALL)
    receiver = alone.add_receiver("ez", (7,) * dimensions)
    alone.step(60)
    state = alone.state()
    assert any(name.startswith("pole_ez_") and np.any(values) for name, values in state.items())
    ways: list[dict[str, Any]] = [
        {"devices": [device]},
        {"devices": [device] * 3},
        {"devices": [device] * 4, "cut": [2, 2, 1][:dimensions], "redundant": 3},
        {"devices": [device] * 2, "push": "copy", "redundant": 2},
        {"devices": [device] * (2 if device.startswith("cpu") else 1), "mode": "resident"},
        {"devices": [device], "redundant": 4, "passes": "always"},
    ]
    for way in ways:
        other = scene_of(dimensions, cpml=cpml, precision=precision, **way)
        other.add_receiver("ez", (7,) * dimensions)
        other.step(60)
        for name, values in other.state().items():
            assert np.array_equal(values, state[name]), (way, name)
        assert np.array_equal(other.trace(receiver), alone.trace(receiver))


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_state_goes_on_where_it_was(dimensions: int) -> None:
    whole, first, second = (scene_of(dimensions, cpml=4, **ALL) for _ in range(3))
    whole.step(50)
    first.step(23)
    second.restore(first.state())
    second.step(27)
    for name, values in second.state().items():
        assert np.array_equal(values, whole.state()[name]), name


def test_a_plane_does_what_plain_numpy_does() -> None:
    """The recursion of docs/decisions/0101, written out for one pole of each kind in a closed plane."""
    shape, steps = (14, 12), 40
    poles: list[Pole] = [Debye(3.0, 15e-12), Lorentz(2.0, 15e9, 5e9)]
    run = Fdtd(shape, SPACING, devices=["cpu:0"], cpml=0, precision="double", pole_values=3)
    run.set_materials(2.0, 0.03, media=[poles], medium=1)
    samples = np.sin(np.arange(steps) / 5)
    run.add_source("ez", (5, 6), samples)
    run.step(steps)
    dt = run.dt
    omega, damping = 2 * np.pi * 15e9, 5e9
    beta = np.sqrt(omega**2 - damping**2)
    terms = [(3.0 / 15e-12 + 0j, 1 / 15e-12 + 0j), (-2j * omega**2 / beta, damping - 1j * beta)]
    half = [np.exp(-q * dt / 2) for _, q in terms]
    within = [a / (q * dt) * (1 - h) for (a, q), h in zip(terms, half, strict=True)]
    before = [a / (q * dt) * h * (1 - h * h) for (a, q), h in zip(terms, half, strict=True)]
    permittivity = 2.0 + dt * sum(one.real for one in within)
    loss = 0.03 * dt / (2 * permittivity * PERMITTIVITY)
    ez, hx, hy = (np.zeros(shape) for _ in range(3))
    memory = [np.zeros(shape, dtype=complex) for _ in terms]
    for step in range(steps):
        hx[:, :-1] -= dt / (PERMEABILITY * SPACING) * np.diff(ez, axis=1)
        hx[:, -1] += dt / (PERMEABILITY * SPACING) * ez[:, -1]
        hy[:-1] += dt / (PERMEABILITY * SPACING) * np.diff(ez, axis=0)
        hy[-1] -= dt / (PERMEABILITY * SPACING) * ez[-1]
        old = ez.copy()
        curl = np.zeros(shape)
        curl[1:, 1:] = (np.diff(hy, axis=0)[:, 1:] - np.diff(hx, axis=1)[1:]) / SPACING / PERMITTIVITY
        current = sum(one.real for one in memory)
        ez = ((1 - loss) * old + dt / permittivity * (curl - current)) / (1 + loss)
        ez[0], ez[:, 0] = 0, 0
        ez[5, 6] += samples[step]
        for number, (h, k) in enumerate(zip(half, before, strict=True)):
            memory[number] = h * h * memory[number] + k * (ez - old)
    assert np.abs(run.field("ez") - ez).max() < 1e-12 * np.abs(ez).max()


def test_a_run_without_dispersive_media_has_what_it_had() -> None:
    plain, ready = (Fdtd((12, 10, 8), SPACING, devices=["cpu:0"], cpml=2, pole_values=values) for values in (0, 2))
    assert not [name for name in plain.state() if name.startswith("pole_")]
    assert len([name for name in ready.state() if name.startswith("pole_")]) == 6
    for run in (plain, ready):
        run.add_source("ez", (6, 5, 4), [1.0, 2.0, 1.0])
        run.step(20)
    for name, values in plain.state().items():
        assert np.array_equal(values, ready.state()[name]), name


@pytest.mark.parametrize(
    ("poles", "message"),
    [
        ([Debye(1.0, -1e-12)], "the relaxation time of a Debye pole is -1e-12"),
        ([Debye(1.0, 1e-13)], "below the time step"),
        ([Lorentz(-1.0, 20e9, 5e9)], "generate energy"),
        ([Lorentz(1.0, 20e9, -5e9)], "the damping of a Lorentz pole is -5e"),
        ([Lorentz(1.0, 400e9, 1e9)], "more than a quarter of a turn"),
        ([Drude(0.0, 1e9)], "the frequency of a Drude pole is 0"),
        ([Debye(np.nan, 1e-11)], "the permittivity difference of a Debye pole is nan"),
        ([Drude(60e9, 1e9)], "not stable"),
        ([Debye(1.0, 1e-11)] * 4, "need 4 values of memory"),
    ],
)
def test_media_that_cannot_be_are_refused(poles: list[Pole], message: str) -> None:
    run = Fdtd((20, 20), SPACING, cpml=0, devices=["cpu:0"], pole_values=3)
    with pytest.raises(UsageError, match=message):
        run.set_materials(1.0, media=[poles], medium=1)


def test_numbers_that_cannot_be_are_refused() -> None:
    run = Fdtd((20, 20), SPACING, cpml=0, devices=["cpu:0"], pole_values=1)
    with pytest.raises(UsageError, match="a cell has dispersive medium 2, but there are only 1"):
        run.set_materials(3.0, media=[[Debye(1.0, 1e-11)]], medium=2)
    with pytest.raises(UsageError, match="medium has shape"):
        run.set_materials(3.0, media=[[Debye(1.0, 1e-11)]], medium=np.ones((3, 4)))
    with pytest.raises(UsageError, match="set up for their poles"):
        Fdtd((20, 20), SPACING, cpml=0, devices=["cpu:0"]).set_materials(3.0, media=[[Debye(1.0, 1e-11)]], medium=1)
    with pytest.raises(UsageError, match="it must be 0 to 14"):
        Fdtd((20, 20), SPACING, cpml=0, devices=["cpu:0"], pole_values=15)
    with pytest.raises(UsageError, match="cannot be dispersive"):
        Fdtd((20, 20), SPACING, cpml=0, devices=["cpu:0"], pole_values=1, per_component=True)


def test_random_media_keep_the_fields_bounded() -> None:
    """A closed box with poles of all kinds next to each other, cell by cell, for many steps."""
    numbers = np.random.default_rng(3).integers(0, 5, (14, 12, 10)).astype(np.uint16)
    media: list[list[Pole]] = [
        [Debye(5.0, 12e-12)],
        [Lorentz(2.0, 20e9, 1e9)],
        [Drude(8e9, 1e9)],
        [Debye(1.0, 9e-12), Drude(3e9, 3e9)],
    ]
    run = Fdtd(numbers.shape, SPACING, devices=["cpu:0"], cpml=0, precision="double", pole_values=6)
    run.set_materials(2.0, media=media, medium=numbers)
    for field, at in zip(("ex", "ey", "ez"), itertools.count(3), strict=False):
        run.add_source(field, (at, 5, 4), np.sin(np.arange(60) / 3))
    run.step(200)
    early = max(np.abs(run.field(name)).max() for name in ("ex", "ey", "ez"))
    run.step(4000)
    assert max(np.abs(run.field(name)).max() for name in ("ex", "ey", "ez")) < early
