"""Converts the text of an input file to a scene."""

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import DataError, Error
from headrace.grid.gprmax import dispersion, fractals, general, layers, newer, sheets, solids, sources, turned
from headrace.grid.gprmax.lines import Command, Findings, Runner, commands
from headrace.grid.gprmax.model import Model
from headrace.grid.gprmax.older import Older, is_older
from headrace.grid.gprmax.writing import scene_text
from headrace.grid.solver.reading import parse_scene
from headrace.grid.solver.scene import Scene

_READERS = {
    **general.READERS,
    **layers.READERS,
    **dispersion.READERS,
    **sources.READERS,
    **solids.READERS,
    **sheets.READERS,
    **fractals.READERS,
}

# Commands about how to run or what to write, which do not describe the model.
_NOTED = {
    "messages": "does not describe the model",
    "num_threads": "the device and its cores are chosen with --device",
    "num_of_procs": "the device and its cores are chosen with --device",
    "omp_threads": "the device and its cores are chosen with --device",
    "cpu_freq": "does not describe the model",
    "output_dir": "output files are named by options such as --traces and --snapshots",
    "geometry_view": "--snapshots writes materials.vti",
    "geometry_file": "--snapshots writes materials.vti",
    "geometry_vtk": "--snapshots writes materials.vti",
    "geometry_objects_write": "--snapshots writes materials.vti",
    "snapshot": "snapshots are taken at regular intervals: see [snapshots] and --snapshots",
    "pml_formulation": "layers of one pole are the same in every formulation",
    "abc_type": "the walls have absorbing layers (CPML)",
    "abc_order": "the walls have absorbing layers (CPML)",
    "abc_stability_factors": "the walls have absorbing layers (CPML)",
    "abc_optimization_angles": "the walls have absorbing layers (CPML)",
    "abc_mixing_parameters": "the walls have absorbing layers (CPML)",
    "number_of_media": "the solver has no such limit",
    "nips_number": "the solver has no such limit",
    "nips_size": "the solver has no such limit",
    "end_analysis": "",
}

# Commands that the solver does not support.
_LACKING = {
    "x_segment": "a segment of a disc",
    "y_segment": "a segment of a disc",
    "z_segment": "a segment of a cylinder",
    "rotated_box": "a rotated box",
    "bowtie": "a bowtie antenna",
    "thin_wire": "a wire below the cell size",
    "plane_wave": "a plane wave of version 2",
    "discrete_plane_wave": "a plane wave at an angle",
    "huygens_surface": "a Huygens surface",
    "add_grass": "grass",
    "material_range": "a range of materials",
    "media_file": "media from a file",
    "subgrid_hsg": "a subgrid",
    "study": "a study of several runs",
    "virtual_waveguide": "a virtual waveguide",
}
# Families of unsupported commands, by the beginning of their names.
_LACKING_FAMILIES = {
    "eigenmode_": "a waveguide port",
    "ntff_": "a transform to the far field",
    "ksir_": "a transform to the far field",
    "network_": "a circuit",
    "rational_": "a circuit",
    "plane_wave_": "a plane wave at an angle",
    "add_": "an addition to a fractal box or a material",
}


@dataclass(frozen=True)
class Converted:
    """A scene's text, the scene, and notes about it."""

    text: str
    scene: Scene
    notes: list[str]


def convert(text: str, path: Path, *, runner: Runner | None = None, count: int | None = None) -> Converted:
    """Converts an input file to a scene.

    `runner` runs Python blocks; without one, blocks are a problem. `count` is the number of runs of the model: with
    #src_steps and #rx_steps, the positions of its scan.

    Raises:
        InputFileError: with the line and command of everything that is wrong or unsupported.
    """
    findings = Findings()
    found = commands(text, path, findings, runner)
    model = Model(findings, count, untold=bool(findings.problems))
    if is_older(found):
        older = Older(found, findings)
        found = list(older.translated())
        model.count, model.older = count or older.runs, True
    flat = turned.translated(list(newer.translated(found, findings)), findings)
    for command in _sorted(list(flat)):
        with findings.noting():
            _take(model, command)
    _note_others(found, findings)
    for given, name in ((model.domain, "domain"), (model.spacing, "dx_dy_dz"), (model.window, "time_window")):
        if not given and not model.untold and not any(f"#{name}:" in line for line in findings.problems):
            findings.problems.append(f"{path}: there is no #{name}")
    try:
        made = scene_text(model, path)
        findings.finish()
        scene = parse_scene(made, path.with_suffix(".toml"))
    except OverflowError:
        findings.finish()
        raise DataError(f"{path}: #domain, #dx_dy_dz or #time_window is out of range") from None
    return Converted(made, scene, findings.notes)


def _sorted(found: list[Command]) -> Iterator[Command]:
    """Puts the domain and its cells first, which others need; except for objects, the order of commands is free."""
    first = ("domain", "dx_dy_dz")
    yield from (one for one in found if one.name in first)
    yield from (one for one in found if one.name not in first)


def _take(model: Model, command: Command) -> None:
    if command.name in _NOTED:
        return
    if command.name not in _READERS:
        raise command.error(_unknown(command.name))
    try:
        _READERS[command.name](model, command)
    except IndexError:
        raise command.error(f"has too few parameters: {len(command.words)}") from None
    except OverflowError:
        raise command.error("a number is out of range") from None
    except Error as error:
        # An error that names its own file does not name this line.
        raise error if str(error).startswith(command.place) else command.error(str(error)) from None


def _unknown(name: str) -> str:
    """Why a command is not read: it is unsupported or unknown."""
    families = (reason for start, reason in _LACKING_FAMILIES.items() if name.startswith(start))
    lacking = _LACKING.get(name) or next(families, None)
    if lacking:
        return f"the solver does not support {lacking}"
    close = difflib.get_close_matches(name, [*_READERS, *_NOTED, *_LACKING], n=1)
    return f"there is no such command; did you mean '{close[0]}'?" if close else "there is no such command"


def _note_others(found: list[Command], findings: Findings) -> None:
    """Adds one note for each kind of command that has no part in a scene."""
    counts = Counter(one.name for one in found)
    for name, reason in _NOTED.items():
        if not counts[name] or not reason:
            continue
        first = next(one for one in found if one.name == name)
        more = f" (and {counts[name] - 1} more)" if counts[name] > 1 else ""
        findings.note(f"{first.place}: left out{more}: {reason}")
