"""The solver of `headrace grid fdtd`, from scenes to fields: everything of a run except the stencil itself."""

from headrace.grid.solver.model import Layout
from headrace.grid.solver.reading import parse_scene, read_scene
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.session import Done, Outputs, run_one, run_scan

__all__ = ["Done", "Layout", "Outputs", "Scene", "parse_scene", "read_scene", "run_one", "run_scan"]
