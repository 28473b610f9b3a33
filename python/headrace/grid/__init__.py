"""Grids over several devices: Maxwell's equations by finite differences in the time domain, and Jacobi's iteration."""

from headrace import display
from headrace._core import Ranks
from headrace.grid.dispersion import Debye, Drude, Lorentz
from headrace.grid.fdtd import Fdtd
from headrace.grid.jacobi import Jacobi
from headrace.grid.layers import Cpml

__all__ = ["Cpml", "Debye", "Drude", "Fdtd", "Jacobi", "Lorentz", "Ranks"]

display.complete([Fdtd, Jacobi])
