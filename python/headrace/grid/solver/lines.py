"""Transmission lines that end at an edge of the grid.

A line is a second, one-dimensional grid of voltages and currents (Maloney, Shlager and Smith, IEEE Transactions on
Antennas and Propagation 42, 1994), as in gprMax: a wave enters it at a node and runs in one direction to its last node,
which is the edge. There the current around the edge takes the place of the line's next current.

Waves of such a line have the impedance Z at every frequency, so the part that runs back needs no grid of its own. For
the wave number k in cells and the current I into the grid, the equations leave for the edge's voltage V

    V exp(j k / 2) = 2 cos(k / 2) V0 - Z I

where V0 is the voltage of the wave that arrives. The left side is V behind Z, with half the capacitance of the line's
last cell; 2 cos(k / 2) V0 is Z times the sum of the arriving wave's currents on both sides of the last node. An edge of
the grid has cos(omega dt / 2) in place of the real part cos(k / 2). The voltage of the open line is corrected for that;
what remains is a relative error of Z of (omega dt)^2 / 4.
"""

from dataclasses import replace

import numpy as np

from headrace.grid.solver.scene import VACUUM_PERMITTIVITY, Material
from headrace.grid.solver.waveforms import Samples, Wave

_CELLS = 5  # from the node where a wave enters to the last one, as in gprMax
_RATIO = 3**-0.5  # of the way of light within a step to a cell of the line, as in gprMax
_BEYOND_MOST = 5000  # cells on either side, from whose ends nothing returns within the first 17,000 steps
_AVERAGED = (1 / _RATIO**2 - 1) / 8  # by which cos(k / 2) is lower than cos(omega dt / 2), over (omega dt)^2
LATE = 100  # steps after which a wave has left the line
_MUR = (_RATIO - 1) / (_RATIO + 1)


def arriving(wave: Wave, count: int, dt: float) -> Samples:
    """The voltage that drives the edge in each of `count` steps: that of an open line, twice the wave's."""
    begins = np.asarray(np.arange(count) * dt, dtype=np.float64)
    at_node, before_node = wave.at(begins, begins, dt), wave.at(begins, begins + dt / 2, dt)
    beyond = min(int(count * _RATIO / 2), _BEYOND_MOST) + 2
    source, end = beyond, beyond + _CELLS
    voltages, currents = np.zeros(end + beyond + 1), np.zeros(end + beyond)  # currents are times Z
    found = np.zeros(count)
    for step in range(count):
        currents -= _RATIO * np.diff(voltages)
        currents[source - 1] += _RATIO * before_node[step]
        sides = voltages[[0, 1, -2, -1]]
        voltages[1:-1] -= _RATIO * np.diff(currents)
        voltages[source] += _RATIO * at_node[step]
        # Mur's first condition.
        voltages[0] = sides[1] + _MUR * (voltages[1] - sides[0])
        voltages[-1] = sides[2] + _MUR * (voltages[-2] - sides[3])
        found[step] = currents[end - 1] + currents[end]
    around = np.pad(found, 1)
    return found - _AVERAGED * (around[2:] - 2 * found + around[:-2])


def ended(material: Material, dt: float, least: float) -> Material:
    """The material of an edge that is the end of lines: their conductance, which is given, and half a cell of each.

    Its permittivity is at least `least`, for which the time step is stable: that of lines above 188 Ohm would be less.
    """
    cells = material.conductivity * dt / (2 * _RATIO * VACUUM_PERMITTIVITY)
    return replace(material, permittivity=max(cells, least))
