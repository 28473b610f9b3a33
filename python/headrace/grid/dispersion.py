"""Dispersive media: the poles that add to a material's permittivity at infinite frequency. Units are SI."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace._core import FdtdMedium

_TURN = 2 * math.pi  # radians


@dataclass(frozen=True)
class Debye:
    """Relaxing polarisation: difference / (1 + j omega relaxation_time). The time is in seconds."""

    difference: float
    relaxation_time: float

    def add_to(self, medium: FdtdMedium) -> None:
        """Adds the pole to the solver's medium. Raises UsageError for a time that is not above 0."""
        medium.add_debye(self.difference, self.relaxation_time)

    def permittivity(self, frequency: float) -> complex:
        """Contribution to the relative permittivity at a frequency in Hz, for fields that vary as exp(j omega t)."""
        return self.difference / (1 + 1j * _TURN * frequency * self.relaxation_time)

    def scaled(self, share: float) -> "Debye":
        """This pole weighted by its share in a mean of materials."""
        return replace(self, difference=share * self.difference)


@dataclass(frozen=True)
class Lorentz:
    """Resonating charges: difference omega_0^2 / (omega_0^2 + 2 j omega damping - omega^2).

    `frequency` is omega_0 / (2 pi), in Hz; the oscillation decays as exp(-damping t), with the damping in 1/s.
    """

    difference: float
    frequency: float
    damping: float

    def add_to(self, medium: FdtdMedium) -> None:
        """Adds the pole to the solver's medium. Raises UsageError for a frequency of 0 or a negative damping."""
        medium.add_lorentz(self.difference, _TURN * self.frequency, self.damping)

    def permittivity(self, frequency: float) -> complex:
        """Contribution to the relative permittivity at a frequency in Hz, for fields that vary as exp(j omega t)."""
        omega, own = _TURN * frequency, _TURN * self.frequency
        return self.difference * own**2 / (own**2 + 2j * omega * self.damping - omega**2)

    def scaled(self, share: float) -> "Lorentz":
        """This pole weighted by its share in a mean of materials."""
        return replace(self, difference=share * self.difference)


@dataclass(frozen=True)
class Drude:
    """Free charges: -omega_p^2 / (omega^2 - j omega rate).

    `frequency` is the plasma frequency omega_p / (2 pi), in Hz; a current decays as exp(-rate t), with the rate in 1/s.
    """

    frequency: float
    rate: float

    def add_to(self, medium: FdtdMedium) -> None:
        """Adds the pole to the solver's medium. Raises UsageError for numbers that are not above 0."""
        medium.add_drude(_TURN * self.frequency, self.rate)

    def permittivity(self, frequency: float) -> complex:
        """Contribution to the relative permittivity at a frequency in Hz, for fields that vary as exp(j omega t)."""
        omega = _TURN * frequency
        return complex(-((_TURN * self.frequency) ** 2) / (omega**2 - 1j * omega * self.rate))

    def scaled(self, share: float) -> "Drude":
        """This pole weighted by its share in a mean of materials."""
        return replace(self, frequency=math.sqrt(share) * self.frequency)


Pole = Debye | Lorentz | Drude


def medium_of(poles: Iterable[Pole]) -> FdtdMedium:
    """The medium for the solver. Raises UsageError for an invalid pole."""
    medium = FdtdMedium()
    for pole in poles:
        pole.add_to(medium)
    return medium
