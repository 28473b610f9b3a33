"""Grids over several devices: Maxwell's equations by finite differences in the time domain."""

from headrace.grid.fdtd import Fdtd

__all__ = ["Fdtd"]
