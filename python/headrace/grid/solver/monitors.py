"""Monitors: spectra of fields in a box, and of the energy that flows through a plane, summed up while a scene runs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.grid.solver.components import read_components
from headrace.grid.solver.ids import unique
from headrace.grid.solver.keys import Keys
from headrace.grid.solver.model import Solver, time_of
from headrace.grid.solver.places import Cell, nearest_node
from headrace.grid.solver.running import Watcher
from headrace.grid.solver.scene import Monitor, Scene, offset_of
from headrace.grid.solver.shapes import AXES
from headrace.grid.solver.waveforms import Wave
from headrace.grid.spacing import Spacing, area_across

FLUX, REMAINING = "flux", "remaining"
Spectra = dict[tuple[str, str], NDArray[Any]]
"""By monitor and quantity: a field, FLUX, or REMAINING, the field at the end as a share of its peak."""

_KINDS = ("fields", FLUX)
_FREQUENCIES_MOST = 100_000
_BYTES_MOST = 16 << 30
_SILENT = 1e-5  # share of a source's strongest frequency below which its content is neglected
_TRANSFORM_LEAST = 1 << 14  # samples, so that short pulses are resolved in frequency


def read_monitors(
    tables: list[Keys],
    shape: Cell,
    spacing: Spacing,
    fields: tuple[str, ...],
    dt: float,
    periodic: tuple[int, ...] = (),
) -> tuple[Monitor, ...]:
    """Reads `[[monitors]]`.

    Raises:
        UsageError: naming the key and value at fault.
    """
    found = []
    for number, keys in enumerate(tables, 1):
        name, kind = keys.text("id", f"monitor{number}"), keys.choice("type", _KINDS)
        asked = keys.point("low", [len(shape)]), keys.point("high", [len(shape)])
        low, high = (nearest_node(corner, spacing) for corner in asked)
        for axis, (first, last, count) in enumerate(zip(low, high, shape, strict=True)):
            end = count if axis in periodic else count - 1  # the last node of a periodic axis is the first one
            if not 0 <= first <= last <= end:
                raise keys.error(
                    f"it goes from node {first} to {last} along {AXES[axis]}, but must lie within 0 to {end} and go up"
                )
        summed = fields
        if kind == FLUX:
            _check_plane(keys, low, high, periodic)
        else:
            summed = read_components(keys, "fields", fields)
        frequencies = _frequencies(keys, dt)
        nodes = int(np.prod([last - first + 1 for first, last in zip(low, high, strict=True)], dtype=np.int64))
        needed = 16 * nodes * len(summed) * len(frequencies)
        if needed > _BYTES_MOST:
            raise keys.error(f"{len(frequencies):,} frequencies at {nodes:,} nodes need {needed / 2**30:.3g} GiB, "
                             f"more than {_BYTES_MOST >> 30}")  # fmt: skip
        found.append(Monitor(name, kind, low, high, frequencies, summed, asked))
        keys.done()
    unique(zip(tables, (one.name for one in found), strict=True))
    return tuple(found)


def _check_plane(keys: Keys, low: Cell, high: Cell, periodic: tuple[int, ...]) -> None:
    across = [axis for axis, first, last in zip(AXES, low, high, strict=False) if first == last]
    if len(across) != 1:
        what = f"it has no extent along {' and '.join(across)}" if across else "it has an extent along every axis"
        raise keys.error(f"{what}: flux goes through a plane, or in two dimensions a line, with no extent along one")
    axis = AXES.index(across[0])
    if low[axis] == 0 and axis not in periodic:
        raise keys.error(f"its plane lies on the wall at {across[0]} = 0, through which nothing flows")


def _frequencies(keys: Keys, dt: float) -> tuple[float, ...]:
    if keys.either("frequencies", "band") == "frequencies":
        found = keys.numbers("frequencies")
        key = "frequencies"
    else:
        low, high = keys.point("band", [2])
        if low >= high:
            raise keys.error(f"{high:g} is not above {low:g}", "band")
        count = keys.whole("count", 101, least=2, most=_FREQUENCIES_MOST)
        found = tuple(np.linspace(low, high, count).tolist())
        key = "band"
    if len(found) > _FREQUENCIES_MOST:
        raise keys.error(f"{len(found):,} frequencies are more than {_FREQUENCIES_MOST:,}", key)
    if min(found) < 0 or max(found) > 1 / (2 * dt):
        raise keys.error(
            f"{min(found):g} to {max(found):g} Hz are not within the 0 to {1 / (2 * dt):g} Hz of the time step",
            key,
        )
    return found


def interval(scene: Scene) -> int:
    """Steps between two samples: so few that nothing of the sources is mistaken for a monitored frequency.

    A frequency f is mistaken for one that differs from it by 1 / (interval dt).
    """
    highest = max(frequency for monitor in scene.monitors for frequency in monitor.frequencies)
    waves = [*(one.wave for one in scene.sources), *(one.wave for one in scene.plane_waves)]
    content = max((_content(scene, wave) for wave in waves), default=0.0)
    return max(1, int(1 / max((content + highest) * scene.dt, 1e-3)))


def _content(scene: Scene, wave: Wave) -> float:
    """The frequency in Hz above which a waveform has next to no content, as its samples have it."""
    begins = np.asarray(np.arange(scene.steps) * scene.dt, dtype=np.float64)
    samples = wave.at(begins, np.asarray(begins + scene.dt / 2), scene.dt)
    spectrum = np.abs(np.fft.rfft(samples, max(2 * len(samples), _TRANSFORM_LEAST)))
    loud = np.flatnonzero(spectrum > _SILENT * spectrum.max())
    return float(loud[-1] / (len(spectrum) - 1) / (2 * scene.dt)) if loud.size else 0.0


@dataclass
class _Part:
    """The sum of one field in one box."""

    frequencies: NDArray[np.float64]
    where: tuple[Any, ...]
    total: NDArray[np.complex128]
    peak: float = 0.0
    last: float = 0.0

    def add(self, values: NDArray[Any], time: float, duration: float) -> None:
        """Adds a sample, which stands for this duration in seconds."""
        inside = values[self.where].astype(np.float64)
        factors = np.exp(-2j * np.pi * self.frequencies * time) * duration
        self.total += factors.reshape(-1, *(1,) * inside.ndim) * inside
        self.last = float(np.abs(inside).max())
        self.peak = max(self.peak, self.last)


class Recorder:
    """Sums up the spectra of a scene's monitors while it runs."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._every = interval(scene) if scene.monitors else 0
        self._parts: dict[str, dict[str, _Part]] = {}  # by field, then by monitor
        for monitor in scene.monitors:
            across = monitor.axis if monitor.kind == FLUX else None
            names = [name for name in monitor.fields if across is None or AXES.index(name[1]) != across]
            for name in names:
                # The magnetic field on a plane of nodes is the mean of those half a cell below and above.
                low = [at - (axis == across and name[0] == "h") for axis, at in enumerate(monitor.low)]
                ranges = [range(first, last + 1) for first, last in zip(low, monitor.high, strict=True)]
                shape = (len(monitor.frequencies), *map(len, ranges))
                part = _Part(np.array(monitor.frequencies), _where(scene, ranges), np.zeros(shape, np.complex128))
                self._parts.setdefault(name, {})[monitor.name] = part

    def watchers(self) -> list[Watcher]:
        """Watchers for run(); none without monitors."""
        return [Watcher(self._take, every=self._every)] if self._every else []

    def _take(self, solver: Solver) -> None:
        duration = self._every * self._scene.dt
        for name, parts in self._parts.items():
            values, time = solver.field(name), time_of(self._scene, name, solver.steps_done)
            for part in parts.values():
                part.add(values, time, duration)

    def spectra(self) -> Spectra:
        """What has been summed up so far."""
        found: Spectra = {}
        for monitor in self._scene.monitors:
            its = {name: parts[monitor.name] for name, parts in self._parts.items() if monitor.name in parts}
            if monitor.kind == FLUX:
                found[monitor.name, FLUX] = self._flux(monitor, {name: part.total for name, part in its.items()})
            else:
                found |= {(monitor.name, name): part.total for name, part in its.items()}
            found[monitor.name, REMAINING] = np.array(max(_share(part.last, part.peak) for part in its.values()))
        return found

    def _flux(self, monitor: Monitor, totals: dict[str, NDArray[np.complex128]]) -> NDArray[np.float64]:
        """Energy per hertz that flows along the axis: the integral of 2 Re(E x H*) over the plane.

        The curl's components pair E and H that lie at the same places, once H is averaged across the plane.
        """
        scene, axis = self._scene, monitor.axis
        first, second = AXES[(axis + 1) % 3], AXES[(axis + 2) % 3]
        found = np.zeros(len(monitor.frequencies))
        for electric, magnetic, sign in (("e" + first, "h" + second, 1), ("e" + second, "h" + first, -1)):
            if electric not in totals or magnetic not in totals:
                continue
            before, after = np.moveaxis(totals[magnetic], axis + 1, 0)
            product = np.moveaxis(totals[electric], axis + 1, 0)[0] * np.conj((before + after) / 2)
            across = [one for one in range(scene.dimensions) if one != axis]
            offsets = offset_of(electric, scene.dimensions)
            for place, one in enumerate(across, 1):
                weights = _weights(product.shape[place], cells=offsets[one] > 0)
                product = product * weights.reshape(-1, *(1,) * (product.ndim - place - 1))
            found += sign * 2 * np.real(product.reshape(len(found), -1).sum(axis=1))
        area = area_across(scene.spacing, axis) if scene.dimensions == len(AXES) else scene.spacing[1 - axis]
        return np.asarray(found * area)


def _where(scene: Scene, ranges: list[range]) -> tuple[Any, ...]:
    """An index of these nodes; beyond periodic walls they are those at the other wall."""
    if not scene.periodic:
        return tuple(slice(one.start, one.stop) for one in ranges)
    return np.ix_(*(np.array(one) % count for one, count in zip(ranges, scene.shape, strict=True)))


def _share(last: float, peak: float) -> float:
    return last / peak if peak > 0 else 0.0


def _weights(count: int, *, cells: bool) -> NDArray[np.float64]:
    """Weights of an integral along an axis, in spacings: over values in the middle of cells, or at nodes."""
    weights = np.ones(count)
    if cells:
        weights[-1] = 0  # the last node begins a cell beyond the plane
    else:
        weights[[0, -1]] = 0.5
    return weights
