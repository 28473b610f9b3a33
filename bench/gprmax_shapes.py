"""Compares shapes, edges, sources and dispersive media with gprMax: the material of every edge, and traces.

gprMax is a separate program under a different licence: it runs in its own environment, and is not part of this one.

    python -m venv /tmp/gprmax && /tmp/gprmax/bin/pip install gprMax
    .venv/bin/python bench/gprmax_shapes.py --gprmax /tmp/gprmax/bin/python

For each case it prints the number of edges whose permittivity differs from gprMax's (#geometry_objects_write), and the
largest difference of all components at a receiver, relative to the largest value of their kind. Walls reflect in all
cases, so that layers play no part. Fails if an edge differs, or if a trace differs by more than single precision
explains; that of a transmission line, whose impedance is approximate, may differ by 0.1%.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from headrace.grid.gprmax import convert
from headrace.grid.solver.model import Layout, build
from headrace.grid.solver.painting import lay
from headrace.grid.solver.scene import Scene

MOST = 1e-4  # relative to the largest value; both are in single precision
BASE = """\
#domain: 0.04 0.036 0.032
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 400
#pml_cells: 0
#material: 4 0.01 1 0 m4
#material: 9 0.2 1 0 m9
#material: 16 0.03 1 0 m16
#waveform: gaussiandot 1e-9 6e9 p
#waveform: gaussian 1 6e9 v
#rx: 0.015 0.025 0.022
#geometry_objects_write: 0 0 0 0.04 0.036 0.032 geometry
"""
DIPOLE = "#hertzian_dipole: z 0.02 0.018 0.016 p\n"
CASES = {
    "box, n": DIPOLE + "#box: 0.0031 0.0045 0.0055 0.0204 0.0205 0.0206 m4 n\n",
    "sphere": DIPOLE + "#sphere: 0.0163 0.0245 0.0206 0.005 m4\n",
    "sphere, n": DIPOLE + "#sphere: 0.026 0.024 0.020 0.0055 pec n\n",
    "cylinder, slanted": DIPOLE + "#cylinder: 0.03 0.01 0.01 0.03 0.03 0.03 0.004 m9\n",
    "cone, slanted, n": DIPOLE + "#cone: 0.02 0.01 0.01 0.02 0.03 0.03 0.004 0.002 m9 n\n",
    "ellipsoid": DIPOLE + "#ellipsoid: 0.02 0.02 0.018 0.006 0.004 0.008 m16\n",
    "prism": DIPOLE + "#triangle: 0.01 0.01 0.02 0.03 0.01 0.02 0.03 0.03 0.02 0.004 m4\n",
    "patch": DIPOLE + "#triangle: 0.01 0.013 0.02 0.031 0.011 0.02 0.02 0.033 0.02 0 pec\n",
    "sector, n": DIPOLE + "#cylindrical_sector: x 0.02 0.018 0.012 0.015 0.01 30 200 m4 n\n",
    "sector, thin": DIPOLE + "#cylindrical_sector: z 0.02 0.02 0.012 0.012 0.01 0 90 m16\n",
    "plates": DIPOLE + "#plate: 0.01 0.023 0.01 0.018 0.023 0.03 pec\n#plate: 0.025 0.01 0.01 0.025 0.03 0.03 m9 m16\n",
    "edges": DIPOLE + "#edge: 0.018 0.018 0.010 0.018 0.018 0.030 pec\n",
    "three materials": DIPOLE + "#cylinder: 0.01 0.022 0.01 0.01 0.022 0.03 0.006 m4 m9 m16\n",
    "overpainted": DIPOLE
    + "#box: 0.002 0.002 0.002 0.010 0.010 0.010 m4 n\n#edge: 0.008 0.008 0.003 0.008 0.008 0.017 m16\n"
    + "#plate: 0.003 0.003 0.008 0.012 0.012 0.008 m16\n#sphere: 0.01 0.01 0.01 0.004 m9\n",
    "voltage": "#box: 0 0 0 0.04 0.018 0.032 m9\n#voltage_source: x 0.02 0.018 0.016 20 v 1e-10 1e-9\n",
    "magnetic dipole": "#magnetic_dipole: y 0.02 0.018 0.016 v\n#box: 0.01 0.022 0.01 0.018 0.03 0.03 m9\n",
}


DISPERSIVE = """\
#material: 4.9 0 1 0 wet
#add_dispersion_debye: 1 75.2 9.231e-12 wet
#material: 3 0.02 1 0 clay
#add_dispersion_debye: 3 2 10e-12 1.5 40e-12 1 200e-12 clay
#material: 2 0.01 1 0 glass
#add_dispersion_lorentz: 1 1.5 12e9 6e9 glass
#material: 4 0 1 0 plasma
#add_dispersion_drude: 1 8e9 10e9 plasma
"""
HALF = "#box: 0 0 0 0.04 0.018 0.032 "
CASES |= {
    "Debye": DIPOLE + DISPERSIVE + HALF + "wet\n",
    "three Debye poles": DIPOLE + DISPERSIVE + HALF + "clay\n",
    "Lorentz": DIPOLE + DISPERSIVE + HALF + "glass\n",
    "Drude": DIPOLE + DISPERSIVE + HALF + "plasma\n",
    "media that meet": DIPOLE
    + DISPERSIVE
    + HALF
    + "m4\n#box: 0 0 0 0.015 0.018 0.032 wet\n#sphere: 0.016 0.018 0.012 0.008 glass\n"
    + "#cylinder: 0.01 0.022 0.01 0.03 0.022 0.01 0.004 plasma n\n#box: 0.02 0.01 0.02 0.03 0.02 0.03 m9\n",
    "voltage in Debye": DISPERSIVE + HALF + "clay\n#voltage_source: x 0.02 0.018 0.016 20 v\n",
    "Peplinski soil": DIPOLE
    + "#soil_peplinski: 0.5 0.5 2.0 2.66 0.001 0.25 soil\n"
    + "#fractal_box: 0.01 0 0.006 0.028 0.018 0.024 1.5 1 1 1 20 soil ground 42\n",
    "transmission line": "#edge: 0.02 0.018 0.006 0.02 0.018 0.016 pec\n#edge: 0.02 0.018 0.017 0.02 0.018 0.027 pec\n"
    + "#transmission_line: z 0.02 0.018 0.016 73 v\n",
}
LIMITS = {"transmission line": (0, 1e-3), "boxes, transmission line": (0, 2e-3)}
"""Allowed differences of edges and traces, for cases with their own limits."""
PLANE = """\
#domain: 0.08 0.06 0.001
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 400
#pml_cells: 0
#material: 4 0.01 1 0 m4
#waveform: gaussiandot 1e-9 6e9 p
#hertzian_dipole: z 0.04 0.036 0 p
#rx: 0.055 0.045 0
"""
PLANES = {
    f"plane, {name}": PLANE
    + DISPERSIVE
    + f"#box: 0 0 0 0.08 0.03 0.001 {name}\n#cylinder: 0.05 0.02 0 0.05 0.02 0.001 0.008 m4\n"
    for name in ("wet", "clay", "glass", "plasma")
}
_BOXES = ("sphere", "cylinder, slanted", "prism", "sector, n", "plates", "edges", "three materials", "voltage",
          "magnetic dipole", "Debye", "media that meet", "transmission line")  # fmt: skip
_CUBES = "#dx_dy_dz: 0.001 0.001 0.001"
BOXES = {f"boxes, {name}": BASE.replace(_CUBES, "#dx_dy_dz: 0.002 0.001 0.0016") + CASES[name] for name in _BOXES} | {
    f"rectangles, {name}": text.replace(_CUBES, "#dx_dy_dz: 0.002 0.001 0.001")
    for name, text in {
        **{name.removeprefix("plane, "): text for name, text in PLANES.items()},
        "voltage": PLANE.replace("#hertzian_dipole: z 0.04 0.036 0 p", "#voltage_source: z 0.04 0.036 0 20 p"),
        "magnetic dipole": PLANE.replace("#hertzian_dipole: z 0.04 0.036 0 p", "#magnetic_dipole: x 0.04 0.036 0 p"),
    }.items()
}
"""The same in cells with edges of different lengths."""


def traces_of(python: str, folder: Path, text: str) -> h5py.File:
    """Runs gprMax and returns its traces."""
    (folder / "case.in").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [python, "-m", "gprMax", "case.in", "--allow-underresolved"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr or done.stdout)
    return h5py.File(folder / "case.h5")


def geometry_of(folder: Path) -> tuple[h5py.File, list[float]]:
    """The edges that gprMax wrote, and the permittivity of each of its materials."""
    geometry = h5py.File(folder / "geometry.h5")
    materials = json.loads((folder / "geometry_materials.json").read_text(encoding="utf-8"))["materials"]
    names = [name.decode() for name in geometry["material_keys"][:]]
    return geometry, [materials[one]["base"]["relative_permittivity"] for one in names]


def permittivities(scene: Scene, name: str) -> NDArray[np.float64]:
    """The permittivity at each component of E, computed cell by cell from the painted materials."""
    laid = lay(scene)
    table = np.array([one.permittivity for one in laid.materials])
    mean = table[laid.cells]
    for axis in range(3):
        if axis != "xyz".index(name[1]):
            mean = (mean + np.concatenate([np.take(mean, [0], axis), np.delete(mean, -1, axis)], axis)) / 2
    own = laid.edges.get(name)
    if own is not None:
        mean[np.unravel_index(own.cells, scene.shape, order="F")] = table[own.materials]
    return mean


def edges_apart(scene: Scene, geometry: h5py.File, table: list[float]) -> int:
    """The number of edges inside the walls with a different permittivity."""
    apart = 0
    for number, name in enumerate(("ex", "ey", "ez")):
        theirs = np.array(table)[geometry["ID"][number]][tuple(slice(0, count) for count in scene.shape)]
        inside = tuple(slice(0 if axis == number else 1, None) for axis in range(3))
        apart += int((~np.isclose(permittivities(scene, name), theirs))[inside].sum())
    return apart


def traces_apart(scene: Scene, output: h5py.File) -> float:
    """The largest difference at the receiver, relative to the largest value of E or of H there."""
    model = build(scene, Layout())
    model.solver.step(scene.steps)
    theirs = {name.lower(): np.array(output["rxs/rx1"][name]) for name in output["rxs/rx1"]}
    top = {kind: max(np.abs(values).max() for name, values in theirs.items() if name[0] == kind) for kind in "eh"}
    apart = 0.0
    for (_, name), number in model.receivers.items():
        if name not in theirs:
            continue
        ours = model.solver.trace(number)
        apart = max(apart, np.abs(ours - theirs[name][1 : 1 + len(ours)]).max() / top[name[0]])
    return float(apart)


def main() -> None:
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gprmax", required=True, help="Python interpreter with gprMax installed")
    parser.add_argument("--only", default="", help="run only cases whose names contain this")
    given = parser.parse_args()
    failed = []
    for name, text in {**{name: BASE + text for name, text in CASES.items()}, **PLANES, **BOXES}.items():
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            output = traces_of(given.gprmax, Path(folder), text)
            scene = convert(text, Path(folder) / "case.in").scene
            traces, edges = traces_apart(scene, output), 0
            output.close()
            if "geometry_objects_write" in text:
                geometry, table = geometry_of(Path(folder))
                edges = edges_apart(scene, geometry, table)
                geometry.close()
        print(f"{name:26} {edges:6} edges apart, traces {traces:.1e}", flush=True)
        edges_most, traces_most = LIMITS.get(name, (0, MOST))
        if edges > edges_most or traces > traces_most:
            failed.append(name)
    if failed:
        sys.exit(f"apart: {', '.join(failed)}")


if __name__ == "__main__":
    main()
