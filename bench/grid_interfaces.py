"""How fast errors at curved interfaces fall with the spacing, with and without smoothing.

    python bench/grid_interfaces.py [--spacings 4] [--fine 3] [--save F] [--json]

A line current illuminates a cylinder, dielectric or perfectly conducting, whose centre lies between nodes. The
scattered field, at four frequencies and four receivers, is compared with the exact series of Bessel functions (Balanis,
Advanced Engineering Electromagnetics, chapter 11). The third table is gprMax's tutorial of a metal cylinder in a
half-space (cylinder_Ascan_2D), compared with the limit of fine grids, extrapolated from runs of this solver.
"""

import argparse
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import h2vp, hankel2, jv, jvp

from headrace import results
from headrace.grid.solver import Scene, parse_scene
from headrace.grid.solver.model import Layout, build, times
from row_by_row import keep

_LIGHT = 299_792_458.0
_IMPEDANCE = 1.25663706127e-6 * _LIGHT
_FREQUENCIES = np.array([0.5e9, 0.7e9, 0.9e9, 1.1e9])
_COARSEST = 0.01  # m
_LAYERS = 0.1  # metres of absorbing layers: the reflection of fewer cells would show at fine spacings
_CENTRE = (0.4037, 0.4019)
_SOURCE = (0.2, 0.4)
_RECEIVERS = ((0.2, 0.5), (0.4, 0.2), (0.6, 0.4), (0.5, 0.55))
_ORDERS = 40  # terms of the series
_GPRMAX = {0.002: 4.2, 0.001: 2.3}  # percent, of gprMax 4.0.1 with its averages, as measured for issue 26

Complex = NDArray[np.complex128]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Cylinder:
    """A cylinder along z: its radius in m, its material, and how long it rings, in s."""

    name: str
    radius: float
    permittivity: float
    conductor: bool
    window: float


CYLINDERS = (
    Cylinder("dielectric", 0.0973, 4.0, conductor=False, window=40e-9),
    Cylinder("conductor", 0.0973, 1.0, conductor=True, window=14e-9),
)


def exact(cylinder: Cylinder) -> Complex:
    """Its scattered field for a line current of 1 A: (frequencies, receivers), in V/m, for exp(j w t)."""
    found = np.zeros((len(_FREQUENCIES), len(_RECEIVERS)), dtype=np.complex128)
    from_axis = [complex(x - _CENTRE[0], y - _CENTRE[1]) for x, y in (_SOURCE, *_RECEIVERS)]
    source, receivers = from_axis[0], np.array(from_axis[1:])
    angle = np.angle(receivers) - np.angle(source)
    order = np.arange(-_ORDERS, _ORDERS + 1)
    for row, frequency in enumerate(_FREQUENCIES):
        outside = 2 * np.pi * frequency / _LIGHT
        inside = outside * math.sqrt(cylinder.permittivity)
        at, within = outside * cylinder.radius, inside * cylinder.radius
        if cylinder.conductor:
            factor = -jv(order, at) / hankel2(order, at)
        else:
            above = outside * jvp(order, at) * jv(order, within) - inside * jv(order, at) * jvp(order, within)
            below = outside * h2vp(order, at) * jv(order, within) - inside * hankel2(order, at) * jvp(order, within)
            factor = -above / below
        waves = hankel2(order, outside * abs(source)) * hankel2(order[None, :], outside * abs(receivers)[:, None])
        series = (factor * waves * np.exp(1j * order * angle[:, None])).sum(axis=1)
        found[row] = -outside * _IMPEDANCE / 4 * series
    return found


def scattered(cylinder: Cylinder, spacing: float, *, smoothing: bool) -> Complex:
    """The field of exact() by this solver: the result with the cylinder minus that without it."""
    scenes = [_lit(cylinder, spacing, smoothing=smoothing, there=there) for there in (True, False)]
    return _spectra(scenes[0]) - _spectra(scenes[1])


def error_of(cylinder: Cylinder, spacing: float, *, smoothing: bool) -> float:
    """The relative error over all frequencies and receivers, root mean square."""
    wanted = exact(cylinder)
    found = scattered(cylinder, spacing, smoothing=smoothing)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def _lit(cylinder: Cylinder, spacing: float, *, smoothing: bool, there: bool) -> Scene:
    """The scene of a cylinder, or the same domain without it. Layers have the same thickness at every spacing."""
    text = f"""
    [domain]
    size = [0.8, 0.8]
    spacing = {spacing}
    precision = "double"
    cpml = {round(_LAYERS / spacing)}
    smoothing = {str(smoothing).lower()}
    [time]
    window = {cylinder.window}
    [[materials]]
    id = "rod"
    permittivity = {cylinder.permittivity}
    [[sources]]
    position = {list(_SOURCE)}
    waveform = "ricker"
    frequency = 0.8e9
    """
    text += "".join(f"[[receivers]]\nposition = {list(at)}\n" for at in _RECEIVERS)
    if there:
        material = "pec" if cylinder.conductor else "rod"
        text += f"""
        [[objects]]
        type = "cylinder"
        centre = {list(_CENTRE)}
        radius = {cylinder.radius}
        material = "{material}"
        """
    return parse_scene(text, Path("cylinder.toml"))


def _spectra(scene: Scene) -> Complex:
    """Fields at the receivers for a current of 1 A: (frequencies, receivers)."""
    model = build(scene, Layout())
    model.solver.step(scene.steps)
    begins: Values = np.arange(scene.steps) * scene.dt
    middles = begins + scene.dt / 2
    current = scene.sources[0].wave.at(begins, middles, scene.dt)
    at = times(scene, "ez", scene.steps)
    turn = -2j * np.pi * _FREQUENCIES[:, None]
    driven = (np.exp(turn * middles) * current).sum(axis=1)
    traces = np.array([model.solver.trace(number) for number in model.receivers.values()])
    return np.asarray((np.exp(turn * at) @ traces.T) / driven[:, None])


def tutorial(spacing: float, *, smoothing: bool) -> Scene:
    """The scene cylinder_Ascan_2D of gprMax."""
    return parse_scene(
        f"""
        [domain]
        size = [0.24, 0.21]
        spacing = {spacing}
        precision = "double"
        smoothing = {str(smoothing).lower()}
        cpml = {round(0.02 / spacing)}
        [time]
        window = 3e-9
        courant = 1.0
        [[materials]]
        id = "half_space"
        permittivity = 6.0
        [[objects]]
        type = "box"
        low = [0, 0]
        high = [0.24, 0.17]
        material = "half_space"
        [[objects]]
        type = "cylinder"
        centre = [0.12, 0.08]
        radius = 0.01
        material = "pec"
        [[sources]]
        position = [0.1, 0.17]
        waveform = "ricker"
        frequency = 1.5e9
        [[receivers]]
        position = [0.14, 0.17]
        """,
        Path("tutorial.toml"),
    )


def tutorial_trace(spacing: float, *, smoothing: bool) -> Values:
    """Ez of that scene at 4,000 times from 0.2 to 2.9 ns; the echo of the cylinder begins at about 1.9."""
    scene = tutorial(spacing, smoothing=smoothing)
    model = build(scene, Layout())
    model.solver.step(scene.steps)
    at = np.concatenate([[0.0], times(scene, "ez", scene.steps)])
    trace = np.concatenate([[0.0], model.solver.trace(0)])
    return np.asarray(CubicSpline(at, trace)(np.linspace(0.2e-9, 2.9e-9, 4000)))


@dataclass(frozen=True)
class Series:
    """Errors of one case with or without smoothing, for spacings that halve from one to the next."""

    case: str
    smoothing: bool
    spacings: list[float]
    errors: list[float]

    @property
    def orders(self) -> list[float]:
        """Orders between each spacing and the previous one."""
        return [math.log2(before / after) for before, after in pairwise(self.errors)]

    def rows(self, against: str) -> list[dict[str, Any]]:
        """The rows of a results file: an error for each spacing, and the order between the two finest."""
        identity = f"grid.interfaces.{self.case}.{'smooth' if self.smoothing else 'plain'}"
        shared = {"smoothing": self.smoothing, "precision": "double", "against": against, "verified": True}
        made = [
            results.row(f"{identity}.{1e3 * spacing:g}mm", [error], "fraction", None, {"spacing": spacing} | shared)
            for spacing, error in zip(self.spacings, self.errors, strict=True)
        ]
        if self.orders:
            about = {"spacings": self.spacings[-2:]} | shared
            made.append(results.row(f"{identity}.order", [self.orders[-1]], "order", None, about))
        return made


def _print(title: str, columns: list[Series]) -> None:
    names = [f"smoothing {'on' if column.smoothing else 'off'}" for column in columns]
    print(f"\n{title}\n  spacing   " + "  ".join(f"{name:>12} order" for name in names))
    for row, spacing in enumerate(columns[0].spacings):
        orders = [f"{column.orders[row - 1]:.2f}" if row else "" for column in columns]
        parts = [f"{100 * its.errors[row]:11.4f}% {order:>5}" for its, order in zip(columns, orders, strict=True)]
        print(f"  {1e3 * spacing:5.3g} mm  " + "  ".join(parts))


def _cylinder(cylinder: Cylinder, spacings: list[float]) -> list[Series]:
    return [
        Series(
            cylinder.name,
            smoothing,
            spacings,
            [error_of(cylinder, spacing, smoothing=smoothing) for spacing in spacings],
        )
        for smoothing in (False, True)
    ]


def _tutorial(spacings: list[float]) -> list[Series]:
    smoothed = [tutorial_trace(spacing, smoothing=True) for spacing in (*spacings, spacings[-1] / 2)]
    plain = [tutorial_trace(spacing, smoothing=False) for spacing in spacings]
    limit = smoothed[-1] + (smoothed[-1] - smoothed[-2]) / 3  # extrapolated with second order
    return [
        Series(
            "tutorial",
            smoothing,
            spacings,
            [float(np.linalg.norm(trace - limit) / np.linalg.norm(limit)) for trace in traces],
        )
        for smoothing, traces in ((False, plain), (True, smoothed[:-1]))
    ]


def main() -> None:
    """Prints the tables, or writes them as results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--spacings", type=int, default=4, help="number of spacings of the series, each half of the previous"
    )
    parser.add_argument(
        "--fine",
        type=int,
        default=3,
        help="number of spacings of the tutorial, from 2 mm on; the limit takes a finer one",
    )
    parser.add_argument("--save", type=Path, help="write the results file grid-interfaces.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    spacings = [_COARSEST / 2**number for number in range(given.spacings)]
    tables = [
        (f"{cylinder.name} cylinder against the series", "the exact series", _cylinder(cylinder, spacings))
        for cylinder in CYLINDERS
    ]
    fine = _tutorial([0.002 / 2**number for number in range(given.fine)])
    tables.append(("gprMax's tutorial against the limit of fine grids", "the limit of fine grids", fine))
    rows = [row for _, against, columns in tables for column in columns for row in column.rows(against)]
    if keep("grid-interfaces", given, rows):
        return
    for title, _, columns in tables:
        _print(title, columns)
    print("  gprMax 4.0.1, measured for issue 26: " + ", ".join(f"{p}% at {1e3 * s:g} mm" for s, p in _GPRMAX.items()))


if __name__ == "__main__":
    main()
