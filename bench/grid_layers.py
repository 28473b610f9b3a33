"""Reflections of absorbing layers: in several media, for long and short waves, near a layer and along it.

    python bench/grid_layers.py [--only long] [--medium eps25] [--gprmax PYTHON] [--save F] [--json]

A domain of one medium with layers around it is compared with one whose walls are too far away to matter. The reflection
is the largest difference at a receiver over the run, in dB relative to the largest field there without walls. The
source is a soft source of Ez, a Ricker pulse whose mean wave has the same length in cells in every medium; the run has
the same length in the medium's own time. layers_cases.py has the cases.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace import results
from headrace.grid import Cpml, Fdtd
from layers_cases import CASES, MEDIA, SPACING, Case, Medium
from row_by_row import keep

_TARGET = -110.0  # dB
_SHARE_OF_STABLE = 1 - 1e-12
# Thicker layers: with the default grading, and graded for 14 cells (docs/fdtd.md).
_THICKER = {
    "cells18": Cpml(18),
    "cells14": Cpml(14, order=3.587, sigma=1.099, kappa=7.734, kappa_order=4.586, alpha=0.01281, alpha_order=0.854),
}

Traces = list[NDArray[np.float64]]
Figures = dict[str, list[float]]


def traces(case: Case, medium: Medium, layers: Cpml | None, precision: str) -> Traces:
    """Traces of a case: within layers, or in a domain whose walls are out of reach."""
    margin = layers.cells if layers else case.beyond
    shape = tuple(count + 2 * margin for count in case.inside)
    run = Fdtd(shape, SPACING, dt=case.dt * _SHARE_OF_STABLE, cpml=layers or 0, precision=precision, devices=["cpu:0"])
    run.set_materials(medium.permittivity, 0, medium.permeability)
    run.add_source("ez", tuple(at + margin for at in case.source), case.pulse(medium))
    receivers = [run.add_receiver("ez", tuple(at + margin for at in place)) for place in case.places.values()]
    run.step(case.steps_in(medium))
    return [run.trace(receiver) for receiver in receivers]


def levels(absorbed: Traces, free: Traces) -> list[float]:
    """Reflections in dB over the same steps of both."""
    return [
        float(20 * np.log10(np.max(np.abs(one - other)) / np.max(np.abs(other))))
        for one, other in zip(absorbed, free, strict=True)
    ]


def _measure(case: Case, medium: Medium, layers: Cpml, gprmax: Callable[[int], Traces] | None) -> Figures:
    """The reflection at every place: in both precisions, with thicker layers, and of gprMax if available."""
    free = traces(case, medium, None, "double")
    found = {
        "double": levels(traces(case, medium, layers, "double"), free),
    }
    if medium.in_single:
        found["single"] = levels(traces(case, medium, layers, "single"), traces(case, medium, None, "single"))
    found |= {name: levels(traces(case, medium, its, "double"), free) for name, its in _THICKER.items()}
    if gprmax:
        found["gprmax"] = levels(gprmax(layers.cells), gprmax(0))
    return found


def _gprmax(python: str, case: Case, medium: Medium, cells: int) -> Traces:
    """Runs the same case with gprMax; without layers if `cells` is 0."""
    import h5py  # noqa: PLC0415 - only for this comparison

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layers.in"
        path.write_text(case.gprmax_input(medium, cells), encoding="utf-8")
        done = subprocess.run(
            [python, "-m", "gprMax", str(path), "-cpu_precision", "double"], capture_output=True, text=True, check=False
        )
        made = sorted([*Path(folder).glob("*.h5"), *Path(folder).glob("*.out")])
        if done.returncode or not made:
            sys.exit(f"gprMax failed: {(done.stderr or done.stdout).strip()[-500:]}")
        with h5py.File(made[0]) as file:
            return [file[f"rxs/rx{number + 1}/Ez"][:].astype(np.float64) for number in range(len(case.places))]


def _rows(case: Case, medium: Medium, layers: Cpml, found: Figures) -> list[dict[str, Any]]:
    """A row of a results file for each place."""
    rows = []
    for number, place in enumerate(case.places):
        conditions: dict[str, Any] = {
            "cells": layers.cells,
            "precision": "double",
            "wave_cells": case.wave,
            "inside": "x".join(str(count) for count in case.inside),
            "source": list(case.source),
            "receiver": list(case.places[place]),
            "steps": case.steps_in(medium),
            "of": "peak of the difference over peak without walls",
            "target": _TARGET,
        }
        conditions |= {f"{name}_db": values[number] for name, values in found.items() if name != "double"}
        identity = f"grid.layers.{medium.name}.{case.name + '.' if case.name != 'long' else ''}{place}"
        value = found["double"][number]
        rows.append(results.row(identity, [value], "dB", None, conditions | {"verified": bool(np.isfinite(value))}))
    return rows


def _worst(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The figure of issue 26: the worst of long waves in the middle of a plane, over all media."""
    names = [f"grid.layers.{medium.name}.{place}" for medium in MEDIA for place in CASES[0].places]
    values = {row["id"]: row["value"] for row in rows if row["id"] in names}
    if len(values) < len(names):
        return None
    worst = max(values, key=lambda name: values[name])
    return results.row(
        "grid.cpml.worst_db", [values[worst]], "dB", None, {"row": worst, "target": _TARGET, "verified": True}
    )


def _print(rows: list[dict[str, Any]]) -> None:
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        others = (f"{name[:-3]} {value:.1f}" for name, value in row["conditions"].items() if name.endswith("_db"))
        print(f"{row['id']:<{width}}  {row['value']:7.1f} dB  {', '.join(others)}")


def main() -> None:
    """Prints a line for each figure, or writes them as results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10, help="thickness of the layers in cells")
    parser.add_argument("--only", action="append", default=[], help="case to run; may be repeated")
    parser.add_argument("--medium", action="append", default=[], help="medium to run; may be repeated")
    parser.add_argument(
        "--gprmax", metavar="PYTHON", help="Python interpreter with gprMax 4, which is run too for planes of vacuum"
    )
    parser.add_argument("--save", type=Path, help="write the results file grid-layers.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    layers = Cpml(given.cells)
    rows: list[dict[str, Any]] = []
    for case in CASES:
        if given.only and case.name not in given.only:
            continue
        for medium in MEDIA:
            if given.medium and medium.name not in given.medium:
                continue
            beside: Callable[[int], Traces] | None = None
            if given.gprmax and len(case.inside) == 2 and medium is MEDIA[0]:  # noqa: PLR2004 - a plane
                beside = lambda cells, case=case, medium=medium: _gprmax(given.gprmax, case, medium, cells)  # noqa: E731
            rows += _rows(case, medium, layers, _measure(case, medium, layers, beside))
            if sys.stderr.isatty():
                print(f"{case.name}: {medium.name}", file=sys.stderr)
    if not rows:
        cases, media = ", ".join(case.name for case in CASES), ", ".join(medium.name for medium in MEDIA)
        parser.error(f"unknown case or medium; cases are {cases}; media are {media}")
    worst = _worst(rows)
    rows += [worst] if worst else []
    if keep("grid-layers", given, rows):
        return
    _print(rows)


if __name__ == "__main__":
    main()
