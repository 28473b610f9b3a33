"""The speed that memory bandwidth allows a run, its roof."""

from statistics import median

from headrace import measure
from headrace._core import Device
from headrace.grid.solver.model import Layout, Solver
from headrace.grid.solver.scene import Scene

_LEAST, _MOST = 1 << 20, 1 << 30  # bytes per copy; the maximum exceeds any cache, and is quickly done
_MOST_ON_CPU = 1 << 28
_FREE_SHARE = 8  # each of a copy's two buffers takes at most this fraction of free memory
_RUNS = 5


def cells_per_second(scene: Scene, layout: Layout, solver: Solver) -> float:
    """Cells per second that device memory allows: rate of simultaneous copies, over the bytes of a step per cell.

    Every process calls it. Copies are as large as the data of a part: small grids have the roof of a cache.
    """
    devices = [Device.parse(name) for name, _ in solver.parts]  # a CPU device has a part for each core
    parts = len(devices) * (layout.ranks.count if layout.ranks else 1)
    most = _MOST if devices[0].kind.name == "cuda" else _MOST_ON_CPU
    free = min(device.memory().free_bytes for device in devices) // _FREE_SHARE // len(devices)
    each = max(_LEAST, min(solver.moved_bytes * solver.redundant // parts // 4, most, free))
    layout.agree([0])  # all start together, as in a run
    own = median(measure.memory_copies(devices, each, _RUNS))
    rates = map(float, layout.ranks.gather(repr(own))) if layout.ranks else [own]
    return sum(rates) * scene.cells / solver.moved_bytes
