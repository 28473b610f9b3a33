"""The signal of a source over time: pulses by name, and samples from a file.

The pulses are defined in gprMax's user guide ("Built-in waveforms"), under the same names.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

# After this many periods every pulse is less than a double can hold, and so 0.
PERIODS = 12
FILE, IMPULSE = "file", "impulse"


@dataclass(frozen=True)
class Table:
    """Values of a waveform at ascending times in seconds; without times, at every step of the scene from its start."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, time: Samples, dt: float) -> Samples:
        """Interpolated linearly, and 0 before the first and after the last value."""
        times = self.times or np.arange(len(self.values)) * dt
        return np.interp(time, times, self.values, left=0.0, right=0.0)


@dataclass(frozen=True)
class Wave:
    """The signal of a source over time."""

    waveform: str
    frequency: float  # Hz; 0 if the waveform has none
    amplitude: float  # A for a current, V/m for a plane wave
    delay: float  # seconds: silent before
    stop: float | None = None  # seconds: silent afterwards
    table: Table | None = None

    def at(self, begins: Samples, moments: Samples, dt: float) -> Samples:
        """Its values at moments within steps that begin at these times, all in seconds."""
        time = np.asarray(moments - self.delay, dtype=np.float64)
        if self.table is not None:
            values = self.table.at(time, dt)
        elif self.waveform == IMPULSE:
            values = np.where(time < dt, 1.0, 0.0)
        else:
            values = WAVEFORMS[self.waveform](time, self.frequency)
        # A delayed source is silent before its delay, because a pulse has a small step at its very start.
        slack = 1e-6 * dt
        active = begins >= self.delay - slack
        if self.stop is not None:
            active &= begins <= self.stop + slack
        return np.where(active, self.amplitude * values, 0.0)

    def end(self, dt: float) -> float:
        """The time after which it stays 0, in seconds; infinity if it continues."""
        ends = [np.inf if self.stop is None else self.stop + 2 * dt]
        if self.table is not None:
            ends.append(self.delay + (self.table.times[-1] if self.table.times else len(self.table.values) * dt))
        elif self.waveform == IMPULSE:
            ends.append(self.delay + 2 * dt)
        elif self.waveform != "contsine":
            ends.append(self.delay + PERIODS / self.frequency)
        return float(min(ends))

    @property
    def highest(self) -> float:
        """The frequency in Hz above which it has almost no content (-27 dB or less); 0 if unknown."""
        return BANDS.get(self.waveform, 0.0) * self.frequency


def _from_peak(time: Samples, frequency: float) -> tuple[float, Samples]:
    """Zeta and t - chi of the Gaussian and its first derivatives."""
    return 2 * (np.pi * frequency) ** 2, np.asarray(time - 1 / frequency)


def _from_centre(time: Samples, frequency: float) -> tuple[float, Samples]:
    """Zeta and t - chi of the second derivatives whose spectrum peaks at the frequency."""
    return (np.pi * frequency) ** 2, np.asarray(time - np.sqrt(2) / frequency)


def gaussian(time: Samples, frequency: float) -> Samples:
    """A Gaussian that peaks at 1 after 1 / frequency."""
    zeta, late = _from_peak(time, frequency)
    return np.asarray(np.exp(-zeta * late**2))


def gaussiandot(time: Samples, frequency: float) -> Samples:
    """The first derivative of that Gaussian, per second."""
    zeta, late = _from_peak(time, frequency)
    return np.asarray(-2 * zeta * late * np.exp(-zeta * late**2))


def gaussiandotnorm(time: Samples, frequency: float) -> Samples:
    """The same, normalised to a peak of 1."""
    zeta = 2 * (np.pi * frequency) ** 2
    return np.asarray(np.sqrt(np.e / (2 * zeta)) * gaussiandot(time, frequency))


def gaussiandoubleprime(time: Samples, frequency: float) -> Samples:
    """The second derivative of that Gaussian, per second squared; its spectrum peaks at sqrt(2) times the frequency."""
    zeta, late = _from_peak(time, frequency)
    return np.asarray(2 * zeta * (2 * zeta * late**2 - 1) * np.exp(-zeta * late**2))


def gaussiandotdotnorm(time: Samples, frequency: float) -> Samples:
    """The second derivative of a Gaussian, with a peak of -1, whose spectrum peaks at the frequency."""
    zeta, late = _from_centre(time, frequency)
    return np.asarray((2 * zeta * late**2 - 1) * np.exp(-zeta * late**2))


def gaussiandotdot(time: Samples, frequency: float) -> Samples:
    """The same, per second squared, not normalised."""
    zeta = (np.pi * frequency) ** 2
    return 2 * zeta * gaussiandotdotnorm(time, frequency)


def ricker(time: Samples, frequency: float) -> Samples:
    """The negative, normalised second derivative of a Gaussian, whose spectrum peaks at `frequency`.

    It peaks at 1 after sqrt(2) / frequency, so it starts from almost nothing.
    """
    return -gaussiandotdotnorm(time, frequency)


def sine(time: Samples, frequency: float) -> Samples:
    """A single cycle of a sine."""
    cycles = np.asarray(time * frequency)
    return np.where(cycles <= 1, np.sin(2 * np.pi * cycles), 0.0)


def contsine(time: Samples, frequency: float) -> Samples:
    """A continuous sine whose amplitude rises over four cycles."""
    cycles = np.asarray(time * frequency)
    return np.asarray(np.minimum(cycles / 4, 1.0) * np.sin(2 * np.pi * cycles))


WAVEFORMS: dict[str, Callable[[Samples, float], Samples]] = {
    "ricker": ricker,
    "gaussian": gaussian,
    "gaussiandot": gaussiandot,
    "gaussiandotnorm": gaussiandotnorm,
    "gaussiandotdot": gaussiandotdot,
    "gaussiandotdotnorm": gaussiandotdotnorm,
    "gaussianprime": gaussiandot,
    "gaussiandoubleprime": gaussiandoubleprime,
    "sine": sine,
    "contsine": contsine,
}
NAMES = (*WAVEFORMS, IMPULSE, FILE)

# A pulse has almost no content (-27 dB or less) above this multiple of its frequency. A single cycle of a sine falls
# off slowly: at 3 it is at -20 dB. An impulse has no limit, and the content of a file is not examined.
BANDS = {
    "ricker": 2.5,
    "gaussian": 2.5,
    "gaussiandot": 3.2,
    "gaussiandotnorm": 3.2,
    "gaussiandotdot": 2.5,
    "gaussiandotdotnorm": 2.5,
    "gaussianprime": 3.2,
    "gaussiandoubleprime": 3.6,
    "sine": 3.0,
    "contsine": 1.0,
}
