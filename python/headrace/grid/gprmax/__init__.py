"""gprMax's input files as scenes, and traces as gprMax's output files.

What the commands mean is in gprMax's user guide ("Input file commands"; for version 2, "GprMax2D/3D user's guide").
docs/scenes.md says what is read, and which conventions differ.
"""

from headrace.grid.gprmax.convert import Converted, convert
from headrace.grid.gprmax.lines import InputFileError, read

__all__ = ["Converted", "InputFileError", "convert", "read"]
