"""What a source radiates over time."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

# A pulse has next to nothing (-27 dB or less) above so many times its frequency.
BAND = 2.5
# After so many periods a pulse is less than a double can hold, and so 0.
PERIODS = 12


def ricker(time: Samples, frequency: float) -> Samples:
    """The negative, normalised second derivative of a Gaussian, whose spectrum peaks at `frequency`.

    It peaks at 1 after sqrt(2) / frequency, so that it starts from next to nothing. gprMax's pulse of that name is the
    same.
    """
    squared = (np.pi * frequency * (time - np.sqrt(2) / frequency)) ** 2
    return np.asarray((1 - 2 * squared) * np.exp(-squared))


def gaussian(time: Samples, frequency: float) -> Samples:
    """A Gaussian that peaks at 1 after 1 / frequency; gprMax's pulse of that name is the same."""
    return np.asarray(np.exp(-2 * (np.pi * frequency * (time - 1 / frequency)) ** 2))


WAVEFORMS: dict[str, Callable[[Samples, float], Samples]] = {"ricker": ricker, "gaussian": gaussian}
