"""Converts gprMax's own input files, runs both programs, and compares every receiver, sample by sample.

gprMax is a separate program under a different licence: it runs in its own environment, and is not part of this one. Its
input files are in its repository, and in the folder `_examples` of the package.

    python -m venv /tmp/gprmax && /tmp/gprmax/bin/pip install gprMax
    .venv/bin/python bench/gprmax_files.py --gprmax /tmp/gprmax/bin/python FOLDER [--save F] [--json]

Files are shortened, so that a run takes minutes: both programs run the same number of steps, with at most --work cell
updates, or if that is more, half as many steps again as a wave takes in vacuum to the last receiver, and 50. The
domain, its objects and its layers stay as they are. Lines that only write files are left out, and a file without a
receiver gets one, --beside cells from its first source along each axis. Python blocks run, and gprMax gets the commands
that they print: trust the files. Scans are compared at their first position.

The difference of a file is the largest one of any receiver: the largest difference of a component at any sample, over
the largest length of gprMax's field vector (E or H) at that receiver. A component that a scene does not have counts as
0. Both programs run in double precision: in single precision, the rounding of a dipole's own field reaches 0.1% of the
field 30 cells away.

Files of the same content are run once, and counted each. A file is not run if it has more than --cells cells, which
also bounds memory, or if gprMax takes longer than --seconds. With --keep, gprMax's output files stay in a folder, and
later runs use them instead of running gprMax again.
"""

import argparse
import hashlib
import math
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from headrace import Error, results
from headrace.grid.gprmax import InputFileError, convert, newer, read, turned
from headrace.grid.gprmax.blocks import runner
from headrace.grid.gprmax.lines import Command, Findings, commands
from headrace.grid.solver.model import Layout, build
from headrace.grid.solver.scene import LIGHT, Scene
from row_by_row import keep, say

LIMIT = 1e-3
_WRITES = (
    "geometry_view",
    "geometry_objects_write",
    "snapshot",
    "output_dir",
    "messages",
    "num_threads",
    "omp_threads",
)
_OPTIONS = ("--hide-progress-bars", "-cpu_precision", "double")
_ROUNDING = 1e-4  # of the other kind's field vector, below which a field counts as rounding
_IMPEDANCE = 376.73
_SOURCES = ("hertzian_dipole", "magnetic_dipole", "voltage_source", "transmission_line")
_PIECE = 50  # steps between looks at the clock

Values = NDArray[np.float64]


@dataclass
class Outcome:
    """What came of a file: its difference if it was compared, otherwise the reason why not."""

    name: str
    converted: bool = False
    cells: int = 0
    steps: int = 0
    whole: int = 0
    """Steps of the file as it is."""
    added: bool = False
    """Whether a receiver was added."""
    apart: float | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For a results file: only what there is to say."""
        about: dict[str, Any] = {"file": self.name}
        if self.converted:
            about |= {"cells": self.cells, "steps": self.steps, "of_steps": self.whole}
        if self.added:
            about["receiver"] = "added"
        return about | ({"apart": float(f"{self.apart:.2g}")} if self.apart is not None else {"reason": self.reason})


class NotComparedError(Exception):
    """Why two runs of a file cannot be compared."""


def shortened(found: list[Command], scene: Scene, axes: list[int], steps: int, beside: int) -> tuple[str, bool]:
    """The text of these commands with so many steps after time 0, and whether it has a receiver that they lack.

    Raises:
        NotComparedError: when there is neither a receiver nor a source to add one beside.
    """
    kept = [one for one in found if one.name not in (*_WRITES, "time_window")]
    lines = [f"#{one.name}: {' '.join(one.words)}" for one in kept]
    lines.append(f"#time_window: {steps + 1}")
    add = not scene.receivers
    if add:
        source = next((one for one in found if one.name in _SOURCES), None)
        if source is None:
            raise NotComparedError("it has neither a receiver nor a source")
        at = [float(word) for word in source.words[1:4]]
        for axis in axes[: scene.dimensions]:
            at[axis] += beside * scene.spacing[axis]
        lines.append("#rx: " + " ".join(f"{value:.9g}" for value in at))
    return "\n".join(lines) + "\n", add


def reach(scene: Scene) -> int:
    """Steps in which a wave surely reaches every receiver in vacuum."""
    places = [[np.array(one.position) for one in many] for many in (scene.sources, scene.receivers)]
    furthest = max((float(np.linalg.norm(source - seen)) for source in places[0] for seen in places[1]), default=0.0)
    return math.ceil(1.5 * furthest / (LIGHT * scene.dt)) + 50


def output_of(given: argparse.Namespace, path: Path, text: str) -> Path:
    """Runs gprMax, unless its output for this text is kept; returns the output file.

    Raises:
        NotComparedError: when gprMax fails or takes too long.
    """
    folder = given.keep / hashlib.sha256(text.encode()).hexdigest()[:16]
    output, said = folder / "case.h5", folder / "said"
    if not said.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for other in path.parent.iterdir():  # which commands may name
            if other.suffix != ".in":
                (folder / other.name).symlink_to(other.resolve())
        (folder / "case.in").write_text(text, encoding="utf-8")
        command = [given.gprmax, "-m", "gprMax", "case.in", "--allow-underresolved", *_OPTIONS]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=given.seconds, check=False
            )
            lines = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
            why = f"gprMax fails: {lines[-1]}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            why = f"gprMax takes more than {given.seconds:g} s"
        said.write_text(why, encoding="utf-8")
    why = said.read_text(encoding="utf-8")
    if why or not output.exists():
        raise NotComparedError(why or "gprMax wrote no output file")
    return output


def traces_of(scene: Scene, seconds: float) -> dict[tuple[str, str], Values]:
    """This solver's traces, by receiver and field."""
    model = build(scene, Layout())
    until = time.monotonic() + seconds
    for done in range(0, scene.steps, _PIECE):
        model.solver.step(min(_PIECE, scene.steps - done))
        if time.monotonic() > until:
            raise NotComparedError(f"this solver takes more than {seconds:g} s")
    return {key: np.asarray(model.solver.trace(number), dtype=np.float64) for key, number in model.receivers.items()}


def apart(scene: Scene, axes: list[int], output: h5py.File, ours: dict[tuple[str, str], Values]) -> float:
    """The difference of a file, see above; `axes` are those of the file that are x, y and z of the scene.

    Raises:
        NotComparedError: when the receivers differ, or no field reaches any.
    """
    receivers = [output[f"rxs/rx{number + 1}"] for number in range(int(output.attrs["nrx"]))]
    if len(receivers) != len(scene.receivers):
        raise NotComparedError(f"gprMax has {len(receivers)} receivers, but the scene has {len(scene.receivers)}")
    found = []
    for mine, theirs in zip(scene.receivers, receivers, strict=True):
        fields = {
            f"{name[0].lower()}{'xyz'[axes.index('xyz'.index(name[1]))]}": np.asarray(theirs[name][1 : 1 + scene.steps])
            for name in theirs
            if name[0] in "EH"
        }
        none = np.zeros(scene.steps)
        tops = {
            kind: max(np.sqrt(sum((one**2 for name, one in fields.items() if name[0] == kind), none))) for kind in "eh"
        }
        # In the plane of a dipole one of the two vanishes, but for rounding.
        top = max(tops["e"], tops["h"] * _IMPEDANCE)
        for kind, unit in (("e", 1.0), ("h", _IMPEDANCE)):
            if tops[kind] * unit <= _ROUNDING * top:
                continue
            off = [
                np.abs(ours.get((mine.name, name), none) - one).max() for name, one in fields.items() if name[0] == kind
            ]
            found.append(float(max(off) / tops[kind]))
    if not found:
        raise NotComparedError(f"no field reaches a receiver within {scene.steps} steps")
    return max(found)


def outcome_of(given: argparse.Namespace, path: Path, name: str) -> Outcome:
    """Converts, runs and compares one file."""
    outcome = Outcome(name)
    try:
        text = read(path)
        scene = convert(text, path, runner=runner(path, 1)).scene
        outcome.converted, outcome.cells = True, math.prod(scene.shape)
        outcome.whole = outcome.steps = scene.steps
        if outcome.cells > given.cells:
            raise NotComparedError(f"more than {given.cells:,.0f} cells")
        outcome.steps = min(scene.steps, max(reach(scene), int(given.work / outcome.cells)))
        found = commands(text, path, Findings(), runner(path, 1))
        axes = turned.axes(list(newer.translated(found, Findings())))
        shorter, outcome.added = shortened(found, scene, axes, outcome.steps, given.beside)
        case = path.with_name("case.in")
        scene = replace(convert(shorter, case).scene, precision="double")
        with h5py.File(output_of(given, path, shorter)) as output:
            outcome.apart = apart(scene, axes, output, traces_of(scene, given.seconds))
    except InputFileError as error:
        outcome.reason = f"not converted: {error.lines[0].removeprefix(f'{path}:')}"
    except NotComparedError as error:
        outcome.reason = str(error)
    except Error as error:
        outcome.reason = f"{'not run' if outcome.converted else 'not converted'}: {str(error).removeprefix(f'{path}:')}"
    return outcome


def outcomes(given: argparse.Namespace) -> Iterator[tuple[Outcome, int]]:
    """The outcome of each content, and how many files have it."""
    paths = sorted(path for path in given.folder.rglob("*.in") if path.name != "MANIFEST.in")
    contents = Counter(path.read_bytes() for path in paths)
    for path in paths:
        content = path.read_bytes()
        if content not in contents or given.only not in str(path):
            continue
        count = contents.pop(content)
        yield outcome_of(given, path, str(path.relative_to(given.folder).with_suffix(""))), count


def _line(outcome: Outcome, count: int) -> str:
    share = f"{outcome.apart:.1e}" if outcome.apart is not None else outcome.reason
    steps = f"{outcome.steps:,}" + ("" if outcome.steps == outcome.whole else f" of {outcome.whole:,}")
    size = f"{outcome.cells:>11,} {steps:>15}" if outcome.converted else " " * 27
    return f"{outcome.name}{f' (x{count})' if count > 1 else ''}{' +rx' if outcome.added else ''}\n  {size}  {share}"


def rows_of(found: list[tuple[Outcome, int]], given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a results file: files converted, and files within the limit of gprMax."""

    def count(chosen: list[bool]) -> int:
        return sum(number for (_, number), one in zip(found, chosen, strict=True) if one)

    compared = [one.apart is not None for one, _ in found]
    within = [one.apart is not None and one.apart <= LIMIT for one, _ in found]
    shared = {"files": sum(number for _, number in found), "distinct": len(found)}
    limits = {"cells_most": given.cells, "updates_most": given.work}
    about = (
        shared
        | limits
        | {
            "limit": LIMIT,
            "compared": count(compared),
            "distinct_within": sum(within),
            "receiver_added": count([w and one.added for w, (one, _) in zip(within, found, strict=True)]),
            "precision": "double",
            "verified": True,
        }
    )
    converted = [one.converted for one, _ in found]
    return [
        results.row(
            "grid.gprmax.converted",
            [count(converted)],
            "files",
            None,
            shared | {"distinct_converted": sum(converted), "verified": True},
        ),
        results.row("grid.gprmax.within", [count(within)], "files", None, about),
    ]


def main() -> None:
    """Compares all files of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of input files (*.in), searched with its subfolders")
    parser.add_argument("--gprmax", required=True, help="Python interpreter with gprMax installed")
    parser.add_argument("--cells", type=float, default=30e6, help="largest domain that is run (default: 30e6 cells)")
    parser.add_argument("--work", type=float, default=1e9, help="most cell updates of a longer run (default: 1e9)")
    parser.add_argument("--seconds", type=float, default=600, help="longest run of either program (default: 600 s)")
    parser.add_argument("--beside", type=int, default=3, help="cells from a source to a receiver that is added")
    parser.add_argument("--only", default="", help="run only files whose path contains this")
    parser.add_argument("--keep", type=Path, help="folder for gprMax's output files, to use them again")
    parser.add_argument("--save", type=Path, help="write the results file gprmax-files.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    found: list[tuple[Outcome, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        given.keep = (given.keep or Path(folder)).absolute()
        for outcome, count in outcomes(given):
            say(_line(outcome, count))
            found.append((outcome, count))
    if not found:
        parser.error(f"{given.folder}: no input files (*.in) here")
    rows = rows_of(found, given)
    files = [outcome.as_dict() | ({"times": count} if count > 1 else {}) for outcome, count in found]
    if keep("gprmax-files", given, rows, files=files):
        return
    for row in rows:
        print(f"{row['id']}: {row['value']} of {row['conditions']['files']} files")


if __name__ == "__main__":
    main()
