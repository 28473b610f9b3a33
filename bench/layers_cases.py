"""The cases of grid_layers.py: places of sources and receivers, lengths of waves and runs, and media.

Places are in cells from the inner border of the low layers, independent of the layers' thickness.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SPACING = 2e-3
_LIGHT = 299_792_458.0
_LONG = 166.5517  # cells: 0.9 GHz in vacuum
_SHORT = 28.0
_IN_SINGLE = ("vacuum", "eps25")  # further media show nothing new, and take as much time again
_CLEAR = 8  # cells beyond the distance from which a wave can return

Place = tuple[int, ...]


@dataclass(frozen=True)
class Medium:
    """Relative permittivity and permeability."""

    name: str
    permittivity: float
    permeability: float

    @property
    def in_single(self) -> bool:
        """Whether it is also measured in single precision."""
        return self.name in _IN_SINGLE

    @property
    def index(self) -> float:
        """How much slower waves are than in vacuum."""
        return math.sqrt(self.permittivity * self.permeability)


MEDIA = (
    Medium("vacuum", 1, 1),
    Medium("eps6", 6, 1),
    Medium("eps25", 25, 1),
    Medium("eps81", 81, 1),
    Medium("mu100", 1, 100),
)


@dataclass(frozen=True)
class Case:
    """A source and receivers in an unbounded box."""

    name: str
    inside: Place
    """Cells between the layers."""
    source: Place
    places: dict[str, Place]
    wave: float
    """Wavelength in cells at the centre of the pulse's spectrum."""
    steps: int
    """Steps of a run in vacuum."""

    @property
    def dt(self) -> float:
        """The largest stable time step in vacuum."""
        return SPACING / (_LIGHT * math.sqrt(len(self.inside)))

    def steps_in(self, medium: Medium) -> int:
        """Number of steps in which waves travel as far as in vacuum."""
        return round(self.steps * medium.index)

    @property
    def beyond(self) -> int:
        """Cells around the box such that no wave returns from walls within a run."""
        return math.ceil(self.steps / math.sqrt(len(self.inside)) / 2) + _CLEAR

    def _frequency(self, medium: Medium) -> float:
        return _LIGHT / (self.wave * SPACING * medium.index)

    def pulse(self, medium: Medium) -> NDArray[np.float64]:
        """Samples of a Ricker pulse that begins 1.4 periods before its peak."""
        frequency = self._frequency(medium)
        time = (np.arange(self.steps_in(medium)) + 0.5) * self.dt
        phase = (np.pi * frequency * (time - math.sqrt(2) / frequency)) ** 2
        return (1 - 2 * phase) * np.exp(-phase)

    def gprmax_input(self, medium: Medium, cells: int) -> str:
        """A plane as gprMax input, with gprMax's default layers of this many cells; 0 for walls out of reach."""
        margin = cells or self.beyond
        sizes = " ".join(f"{(count + 2 * margin) * SPACING:.6f}" for count in self.inside)
        points = [
            " ".join(f"{(at + margin) * SPACING:.6f}" for at in cell) for cell in (self.source, *self.places.values())
        ]
        receivers = "".join(f"#rx: {point} 0\n" for point in points[1:])
        return (
            f"#domain: {sizes} {SPACING}\n#dx_dy_dz: {SPACING} {SPACING} {SPACING}\n"
            f"#time_window: {self.steps_in(medium)}\n#pml_cells: {cells} {cells} 0 {cells} {cells} 0\n"
            f"#material: {medium.permittivity} 0 {medium.permeability} 0 medium\n"
            f"#box: 0 0 0 {sizes} {SPACING} medium\n"
            f"#waveform: ricker 1 {self._frequency(medium):.6e} pulse\n"
            f"#hertzian_dipole: z {points[0]} 0 pulse\n{receivers}"
        )


_MIDDLE: dict[str, Place] = {"side": (45, 30), "corner": (48, 48)}
_NEAR: dict[str, Place] = {"beside": (3, 30), "corner": (3, 3), "across": (20, 20)}
_GRAZING: dict[str, Place] = {"half": (10, 60), "end": (10, 110), "across": (30, 110)}

CASES = (
    Case("long", (60, 60), (30, 30), _MIDDLE, _LONG, 800),
    Case("short", (60, 60), (30, 30), _MIDDLE, _SHORT, 400),
    Case("near-long", (40, 40), (3, 20), _NEAR, _LONG, 800),
    Case("near-short", (40, 40), (3, 20), _NEAR, _SHORT, 400),
    Case("grazing-long", (40, 120), (10, 10), _GRAZING, _LONG, 800),
    Case("grazing-short", (40, 120), (10, 10), _GRAZING, _SHORT, 600),
    Case("space", (20, 20, 20), (10, 10, 10), {"side": (18, 10, 10), "corner": (18, 18, 18)}, _SHORT, 150),
)
