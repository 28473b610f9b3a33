"""Converts gprMax's input files to scenes, and traces to gprMax's output files.

gprMax's user guide explains the commands ("Input file commands"; for version 2, "GprMax2D/3D user's guide").
docs/scenes.md says what is supported, and which conventions differ.
"""

from headrace.grid.gprmax.convert import Converted, convert
from headrace.grid.gprmax.lines import InputFileError, read

__all__ = ["Converted", "InputFileError", "convert", "read"]
