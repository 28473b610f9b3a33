"""The solver of `headrace grid fdtd`: scenes in, fields out. Everything of a run that is not the stencil itself."""

from headrace.grid_solver.model import Layout
from headrace.grid_solver.reading import parse_scene, read_scene
from headrace.grid_solver.scene import Scene
from headrace.grid_solver.session import Done, Outputs, run_one, run_scan

__all__ = ["Done", "Layout", "Outputs", "Scene", "parse_scene", "read_scene", "run_one", "run_scan"]
