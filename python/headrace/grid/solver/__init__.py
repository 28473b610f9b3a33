"""The solver of `headrace grid fdtd`: scenes in, fields out. Everything of a run that is not the stencil itself."""

from headrace.grid.solver.model import Layout
from headrace.grid.solver.reading import parse_scene, read_scene
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.session import Done, Outputs, run_one, run_scan

__all__ = ["Done", "Layout", "Outputs", "Scene", "parse_scene", "read_scene", "run_one", "run_scan"]
