"""Speed against gprMax, both on the CPU with as many threads: grid.gprmax.speed.2d and .3d.

gprMax is a separate program under a different licence: it runs in its own environment, and is not part of this one.

    python -m venv /tmp/gprmax && /tmp/gprmax/bin/pip install gprMax
    .venv/bin/python bench/gprmax_speed.py --gprmax /tmp/gprmax/bin/python [--threads 2] [--save F] [--json]

Both programs run the same input file in single precision: a dipole in the middle of 1000 x 1000 cells of a plane,
and of 150 x 150 x 150 cells, above a half-space of permittivity 6, with ten absorbing layers on each side. Each
runs --steps and three times as many; the difference of the two times is that of the steps between, without start
and setup. A row is gprMax's time over this solver's, in pairs taken in turn. It is verified where the receiver's
traces agree within 0.5% of the largest field, which leaves room for single precision.
Exit status: 0; 1 when an error ended it, or a row was not verified; 2 for wrong use.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import h5py
import numpy as np
from numpy.typing import NDArray

from headrace import Device, UsageError, results
from headrace.cli.options import count
from headrace.grid.gprmax import convert
from headrace.grid.solver.model import Layout, build
from headrace.grid.solver.scene import Scene
from headrace.profiles import Json
from row_by_row import run, say

_LIMIT = 5e-3
_TIMES = 3  # as many steps in the longer run
_SPACING = 0.001  # m


@dataclass(frozen=True)
class Case:
    """A domain: its cells along each axis, and the steps of the shorter run for `--steps 1`."""

    name: str
    shape: tuple[int, int, int]
    steps: int

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape))

    def text(self, steps: int) -> str:
        """The input file of a run of so many steps."""
        size = [cells * _SPACING for cells in self.shape]
        middle = [_SPACING * (cells // 2) for cells in self.shape]
        seen = [middle[0] + 20 * _SPACING, *middle[1:]]
        lines = [
            f"#domain: {size[0]:g} {size[1]:g} {size[2]:g}",
            f"#dx_dy_dz: {_SPACING:g} {_SPACING:g} {_SPACING:g}",
            f"#time_window: {steps + 1}",
            "#material: 6 0 1 0 half_space",
            f"#box: 0 0 0 {size[0]:g} {size[1] / 2:g} {size[2]:g} half_space",
            "#waveform: ricker 1 5e9 pulse",
            f"#hertzian_dipole: z {middle[0]:g} {middle[1]:g} {middle[2] if self.shape[2] > 1 else 0:g} pulse",
            f"#rx: {seen[0]:g} {seen[1]:g} {seen[2] if self.shape[2] > 1 else 0:g}",
        ]
        return "\n".join(lines) + "\n"


_CASES = (Case("2d", (1000, 1000, 1), 500), Case("3d", (150, 150, 150), 100))
_ALONG = "Ez"  # the dipole's own component

Values = NDArray[np.float64]


def _theirs(given: argparse.Namespace, folder: Path, text: str) -> tuple[float, Values]:
    """Seconds of a run of gprMax, and the receiver's trace."""
    file = folder / "case.in"
    file.write_text(text)
    command = [given.gprmax, "-m", "gprMax", file.name, "--hide-progress-bars", "-cpu_precision", "single"]
    environment = os.environ | {"OMP_NUM_THREADS": str(given.threads)}
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    took = time.monotonic() - begin
    if done.returncode:
        raise UsageError(f"gprMax fails: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")
    with h5py.File(folder / "case.h5") as output:
        return took, np.asarray(output[f"rxs/rx1/{_ALONG}"], dtype=np.float64)[1:]


def _scene(folder: Path, text: str) -> Scene:
    return convert(text, folder / "case.in").scene


def _ours(scene: Scene) -> tuple[float, Values]:
    """Seconds of a run of this solver, and the receiver's trace."""
    begin = time.monotonic()
    model = build(scene, Layout())
    model.solver.step(scene.steps)
    number = next(number for (_, field), number in model.receivers.items() if field == _ALONG.lower())
    trace = np.asarray(model.solver.trace(number), dtype=np.float64)
    return time.monotonic() - begin, trace


def _row(case: Case, given: argparse.Namespace, folder: Path) -> Json:
    steps = case.steps * given.steps
    between = steps * (_TIMES - 1) * case.cells
    ratios, rates, apart = [], [], []
    for _ in range(given.samples):
        seconds: dict[str, list[float]] = {"theirs": [], "ours": []}
        for long in (steps, steps * _TIMES):
            text = case.text(long)
            took, expected = _theirs(given, folder, text)
            seconds["theirs"].append(took)
            took, found = _ours(_scene(folder, text))
            seconds["ours"].append(took)
            apart.append(float(np.abs(found - expected[: len(found)]).max() / np.abs(expected).max()))
        theirs, ours = (seconds[who][1] - seconds[who][0] for who in ("theirs", "ours"))
        if min(theirs, ours) <= 0:
            raise UsageError("a long run took no longer than a short one: choose more --steps")
        ratios.append(theirs / ours)
        rates.append((between / theirs, between / ours))
        say(f"{case.name}: gprMax {rates[-1][0] / 1e6:,.0f} Mcells/s, Headrace {rates[-1][1] / 1e6:,.0f} Mcells/s")
    conditions: Json = {
        "shape": list(case.shape),
        "layers": 10,
        "steps": steps * (_TIMES - 1),
        "threads": given.threads,
        "precision": "single",
        "peer_cells_per_second": median(theirs for theirs, _ in rates),
        "cells_per_second": median(ours for _, ours in rates),
        "apart": max(apart),
        "verified": max(apart) <= _LIMIT,
    }
    return results.row(f"grid.gprmax.speed.{case.name}", ratios, "times", None, conditions)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gprmax", required=True, help="Python interpreter with gprMax installed")
    parser.add_argument("--threads", type=count, default=2, help="threads of gprMax; this solver uses every processor")
    parser.add_argument("--steps", type=count, default=1, help="times 500 steps in a plane, 100 in space")
    parser.add_argument("--samples", type=count, default=3)
    parser.add_argument("--save", type=Path, help="write the results file gprmax-speed.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    given = parser.parse_args()
    given.device = "cpu:0"
    if len(os.sched_getaffinity(0)) != given.threads:
        parser.error(f"this solver uses {len(os.sched_getaffinity(0))} processors: run it with taskset, or --threads")
    return given


def main() -> int:
    """Runs the program."""
    given = _parse()

    def measure(_: Device) -> Iterator[Json]:
        with tempfile.TemporaryDirectory(prefix="headrace-gprmax-") as folder:
            for case in _CASES:
                yield _row(case, given, Path(folder))

    return run("gprmax-speed", given, measure)


if __name__ == "__main__":
    sys.exit(main())
