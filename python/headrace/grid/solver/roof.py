"""How fast memory would let a run be: what its speed is a share of."""

from statistics import median

from headrace import measure
from headrace._core import Device
from headrace.grid.solver.model import Layout, Solver
from headrace.grid.solver.scene import Scene

_LEAST, _MOST = 1 << 20, 1 << 30  # bytes that a copy moves; the most is more than any cache, and soon done
_MOST_ON_CPU = 1 << 28
_FREE_SHARE = 8  # a copy takes no more than this part of the memory that is left, twice
_RUNS = 5


def cells_per_second(scene: Scene, layout: Layout, solver: Solver) -> float:
    """Cells a second that the devices' memory allows: copies by all of them at once, over what a step moves a cell.

    All processes call it. Copies are as large as what a device moves in a step: small grids have the roof of a cache.
    """
    devices = [Device.parse(name) for name in layout.devices]
    most = _MOST if devices[0].kind.name == "cuda" else _MOST_ON_CPU
    free = min(device.memory().free_bytes for device in devices) // _FREE_SHARE
    each = max(_LEAST, min(solver.moved_bytes // layout.count // 4, most, free))
    layout.agree([0])  # all at once, as they step
    own = median(measure.memory_copies(devices, each, _RUNS))
    rates = map(float, layout.ranks.gather(repr(own))) if layout.ranks else [own]
    return sum(rates) * scene.cells / solver.moved_bytes
