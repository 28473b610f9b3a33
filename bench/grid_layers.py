"""What absorbing layers send back in several media, beside the target, and beside gprMax where its Python is named.

    python bench/grid_layers.py [--gprmax PYTHON]

A pulse in the middle of 80 x 80 cells, layers of ten among them, is recorded on the way to a side and to a corner. The
reflection is the largest difference from a domain whose walls are too far to be seen, in dB of what arrives. Frequency
and length of the run follow the medium's speed, so that waves have the same length in cells in all of them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.grid import Fdtd

_TARGET = -110.0  # dB
_SPACING = 2e-3
_LIGHT = 299_792_458.0
_DT = _SPACING / (_LIGHT * np.sqrt(2)) * (1 - 1e-12)
_COUNT, _MARGIN, _LAYERS, _STEPS, _PULSE = 80, 200, 10, 500, 0.9e9
_PLACES = ((15, 0), (18, 18))  # from the middle: towards a side, and towards a corner

Traces = list[NDArray[np.float64]]


@dataclass(frozen=True)
class Medium:
    """Relative permittivity and permeability."""

    permittivity: float
    permeability: float

    @property
    def index(self) -> float:
        """How much slower than in vacuum waves are."""
        return float(np.sqrt(self.permittivity * self.permeability))

    @property
    def steps(self) -> int:
        """The steps of a run."""
        return round(_STEPS * self.index)


_MEDIA = (Medium(1, 1), Medium(6, 1), Medium(25, 1), Medium(81, 1), Medium(1, 100))


def _headrace(medium: Medium, margin: int, layers: int, precision: str) -> Traces:
    size = _COUNT + 2 * margin
    run = Fdtd((size, size), _SPACING, dt=_DT, cpml=layers, precision=precision, devices=["cpu:0"])
    run.set_materials(medium.permittivity, 0, medium.permeability)
    frequency = _PULSE / medium.index
    phase = (np.pi * frequency * ((np.arange(medium.steps) + 0.5) * _DT - np.sqrt(2) / frequency)) ** 2
    run.add_source("ez", (size // 2, size // 2), (1 - 2 * phase) * np.exp(-phase))
    receivers = [run.add_receiver("ez", (size // 2 + x, size // 2 + y)) for x, y in _PLACES]
    run.step(medium.steps)
    return [run.trace(receiver) for receiver in receivers]


def _gprmax_input(medium: Medium, margin: int, layers: int) -> str:
    size = _COUNT + 2 * margin
    length, middle = size * _SPACING, size // 2 * _SPACING
    receivers = "".join(f"#rx: {middle + x * _SPACING:.6f} {middle + y * _SPACING:.6f} 0\n" for x, y in _PLACES)
    return (
        f"#domain: {length:.6f} {length:.6f} {_SPACING}\n#dx_dy_dz: {_SPACING} {_SPACING} {_SPACING}\n"
        f"#time_window: {medium.steps}\n#pml_cells: {layers} {layers} 0 {layers} {layers} 0\n"
        f"#material: {medium.permittivity} 0 {medium.permeability} 0 medium\n"
        f"#box: 0 0 0 {length:.6f} {length:.6f} {_SPACING} medium\n"
        f"#waveform: ricker 1 {_PULSE / medium.index:.6e} pulse\n"
        f"#hertzian_dipole: z {middle:.6f} {middle:.6f} 0 pulse\n{receivers}"
    )


def _gprmax(python: str, medium: Medium, margin: int, layers: int) -> Traces:
    import h5py  # noqa: PLC0415 - only for this comparison

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layers.in"
        path.write_text(_gprmax_input(medium, margin, layers), encoding="utf-8")
        done = subprocess.run([python, "-m", "gprMax", str(path)], capture_output=True, text=True, check=False)
        made = sorted([*Path(folder).glob("*.h5"), *Path(folder).glob("*.out")])
        if done.returncode or not made:
            sys.exit(f"gprMax failed: {(done.stderr or done.stdout).strip()[-500:]}")
        with h5py.File(made[0]) as file:
            return [file[f"rxs/rx{number}/Ez"][:].astype(np.float64) for number in (1, 2)]


def _levels(absorbed: Traces, free: Traces) -> list[float]:
    """In dB; of the same steps of both."""
    return [
        float(20 * np.log10(np.max(np.abs(one - other)) / np.max(np.abs(other))))
        for one, other in zip(absorbed, free, strict=True)
    ]


def _measure(python: str | None) -> list[dict[str, Any]]:
    rows = []
    for medium in _MEDIA:
        row: dict[str, Any] = {"permittivity": medium.permittivity, "permeability": medium.permeability}
        free = _headrace(medium, _MARGIN, 0, "double")
        row["double"] = _levels(_headrace(medium, 0, _LAYERS, "double"), free)
        row["single"] = _levels(_headrace(medium, 0, _LAYERS, "single"), _headrace(medium, _MARGIN, 0, "single"))
        if python:
            row["gprmax"] = _levels(_gprmax(python, medium, 0, _LAYERS), _gprmax(python, medium, _MARGIN, 0))
        row["met"] = max(row["double"]) <= _TARGET
        rows.append(row)
        if sys.stderr.isatty():
            print(f"{len(rows)} of {len(_MEDIA)} media", file=sys.stderr)
    return rows


def main() -> None:
    """Prints a line for each medium."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gprmax", metavar="PYTHON", help="a Python that has gprMax 4, run beside")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = _measure(options.gprmax)
    if options.json:
        print(json.dumps({"target": _TARGET, "media": rows}))
        return
    print(f"reflection in dB at a side, and at a corner; the target is {_TARGET:g} in double precision")
    for row in rows:
        figures = "; ".join(
            f"{name} {row[name][0]:.1f}, {row[name][1]:.1f}" for name in ("double", "single", "gprmax") if name in row
        )
        verdict = "met" if row["met"] else "missed"
        print(f"permittivity {row['permittivity']:g}, permeability {row['permeability']:g}: {figures} ({verdict})")


if __name__ == "__main__":
    main()
