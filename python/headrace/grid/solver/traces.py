"""Traces of receivers: kept in memory while a scene or its scan runs, and in an HDF5 file."""

import importlib.util
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headrace import outputs
from headrace.errors import DataError, UsageError, how_to_install, reading
from headrace.grid.solver.model import Array, Model, times
from headrace.grid.solver.scene import Monitor, Scene
from headrace.grid.solver.shapes import AXES
from headrace.grid.spacing import plain

FORMAT = "headrace grid traces 1"
DAMAGED = (OSError, KeyError, ValueError, TypeError, AttributeError, OverflowError, MemoryError, RuntimeError)
"""Exceptions when a file lacks something, or holds it in another form."""


_UNPACKED_MOST = 1100
"""Maximum ratio of a data set's size to its bytes in the file: deflate packs at most 1,032 to one."""


def values_of(data: Any) -> Array:  # noqa: ANN401 - h5py has no types
    """Reads a data set; one that only claims its size, or is stored in another file, is refused and takes no memory.

    Raises:
        ValueError: for such a data set.
    """
    if data.external or data.is_virtual:
        raise ValueError(f"{data.name} is stored in another file")
    if data.nbytes > data.id.get_storage_size() * _UNPACKED_MOST:
        raise ValueError(
            f"{data.name} claims {data.nbytes:,} bytes, but only {data.id.get_storage_size():,} are stored"
        )
    return np.asarray(data[:])


@dataclass
class Traces:
    """The traces of one or several positions of a scene, by (receiver, field): an array of (positions, steps).

    `spectra` are those of monitors, by (monitor, quantity).
    """

    scene: Scene
    steps: int
    positions: list[int] = field(default_factory=list)
    values: dict[tuple[str, str], list[Array]] = field(default_factory=dict)
    spectra: dict[tuple[str, str], list[Array]] = field(default_factory=dict)

    def take(self, position: int, model: Model, spectra: Mapping[tuple[str, str], Array]) -> None:
        """Adds what a position recorded; all positions run for the same number of steps."""
        self.positions.append(position)
        for quantity, values in spectra.items():
            self.spectra.setdefault(quantity, []).append(values)
        for key, number in model.receivers.items():
            self.values.setdefault(key, []).append(np.array(model.solver.trace(number)))

    def stacked(self, key: tuple[str, str]) -> Array:
        """The traces of one receiver and field."""
        return np.stack(self.values[key])


def check(path: Path) -> None:
    """Checks that traces can be written to this path, before the work for them starts.

    Raises:
        UsageError: when h5py is not installed.
        SystemError: when the file cannot be written.
    """
    if importlib.util.find_spec("h5py") is None:
        raise UsageError(f"receivers are kept in HDF5, which needs h5py: {how_to_install('h5py')}")
    outputs.check(path)


def write(path: Path, traces: Traces) -> None:
    """Writes /receivers/<id>/<field>, a data set of (positions, steps), with its times and places."""
    import h5py  # noqa: PLC0415 - optional

    scene = traces.scene
    whole = io.BytesIO()  # in memory, so that no disk error occurs in the middle of HDF5
    with h5py.File(whole, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["title"] = scene.title
        file.attrs["scene"] = scene.digest()
        file.attrs["dt"] = scene.dt
        if scene.dimensions < len(AXES):
            file.attrs["polarisation"] = scene.polarisation
        file.attrs["averaging"] = scene.averaging
        file.attrs["smoothing"] = scene.smoothing
        for name, value in asdict(scene.layers).items():
            if value is not None:
                file.attrs["cpml" if name == "cells" else f"cpml_{name}"] = value
        if any(scene.symmetry):
            file.attrs["symmetry"] = [kind or "" for kind in scene.symmetry]
        if scene.periodic:
            file.attrs["periodic"] = list(scene.periodic_named())
        file.attrs["spacing"] = plain(scene.spacing)
        file.attrs["shape"] = scene.shape
        file.attrs["steps"] = traces.steps
        file.create_dataset("positions", data=np.array(traces.positions, dtype=np.int64))
        if scene.scan:
            file.attrs["scan_cells"] = scene.scan.cells
        for index, source in enumerate(scene.sources):
            group = file.create_group(f"sources/{source.name}")
            group.attrs["field"], group.attrs["order"] = source.field, index
            _write_places(group, traces, "sources", index)
        for receiver in scene.receivers:
            group = file.create_group(f"receivers/{receiver.name}")
            group.attrs["order"] = scene.receivers.index(receiver)
            _write_places(group, traces, "receivers", group.attrs["order"])
            for name in receiver.fields:
                data = group.create_dataset(name, data=traces.stacked((receiver.name, name)))
                data.attrs["unit"] = "V/m" if name.startswith("e") else "A/m"
                # Offset in metres of the component from `position`.
                data.attrs["offset"] = scene.offset(name)
                group.create_dataset(f"time_{name}", data=times(scene, name, traces.steps)).attrs["unit"] = "s"
        for monitor in scene.monitors:
            _write_monitor(file.create_group(f"monitors/{monitor.name}"), monitor, traces)
    outputs.write(path, whole.getbuffer())


def _write_monitor(group: Any, monitor: Monitor, traces: Traces) -> None:  # noqa: ANN401 - h5py has no types
    """Spectra of a monitor: a data set of (positions, frequencies) and, for fields, the nodes along each axis."""
    scene = traces.scene
    group.attrs["type"] = monitor.kind
    for key, corner, asked in zip(("low", "high"), (monitor.low, monitor.high), monitor.asked, strict=True):
        group.attrs[key] = scene.at(corner)
        group.attrs[f"{key}_requested"] = asked
    group.create_dataset("frequency", data=np.array(monitor.frequencies)).attrs["unit"] = "Hz"
    for (name, quantity), values in traces.spectra.items():
        if name != monitor.name:
            continue
        data = group.create_dataset(quantity, data=np.stack(values))
        if quantity == "flux":
            data.attrs["unit"] = "J/Hz" if scene.dimensions == len(AXES) else "J/(Hz m)"
            data.attrs["axis"] = AXES[monitor.axis]
        elif quantity != "remaining":
            data.attrs["unit"] = "V s/m" if quantity.startswith("e") else "A s/m"
            data.attrs["offset"] = scene.offset(quantity)


def _write_places(group: Any, traces: Traces, kind: str, index: int) -> None:  # noqa: ANN401 - h5py has no types
    """Places of a source or receiver at each position, in metres: the node used, and the place requested."""
    scene, numbers = traces.scene, traces.positions
    used = [scene.placed(getattr(scene.moved(number), kind)[index].position) for number in numbers]
    asked = [getattr(scene.asked(number), kind)[index].position for number in numbers]
    for name, places in (("position", used), ("position_requested", asked)):
        group.create_dataset(name, data=np.array(places)).attrs["unit"] = "m"


def read(path: Path, scene: Scene) -> Traces:
    """Reads traces of this scene, as written by write().

    Raises:
        DataError: when the file is not a trace file.
        UsageError: when it is of another scene.
    """
    import h5py  # noqa: PLC0415 - optional

    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise DataError(f"{path}: not a trace file of headrace grid")
            if file.attrs["scene"] != scene.digest():
                raise UsageError(f"{path}: the traces are of another scene than {scene.path}")
            return _content(file, scene)
    except FileNotFoundError as error:
        raise reading(path, error) from None
    except DAMAGED as error:
        raise DataError(f"{path}: not a complete HDF5 trace file: {error}") from None


def _content(file: Any, scene: Scene) -> Traces:  # noqa: ANN401 - h5py has no types
    traces = Traces(scene, int(file.attrs["steps"]), [int(number) for number in values_of(file["positions"])])
    for receiver in scene.receivers:
        for name in receiver.fields:
            data = file[f"receivers/{receiver.name}/{name}"]
            if data.shape != (len(traces.positions), traces.steps):
                raise ValueError(
                    f"{receiver.name}/{name} does not have {len(traces.positions):,} rows of {traces.steps:,} values"
                )
            traces.values[receiver.name, name] = list(values_of(data))
    for monitor in scene.monitors:
        for quantity in (*(("flux",) if monitor.kind == "flux" else monitor.fields), "remaining"):
            data = file[f"monitors/{monitor.name}/{quantity}"]
            if data.shape[:1] != (len(traces.positions),):
                raise ValueError(f"{monitor.name}/{quantity} does not have {len(traces.positions):,} rows")
            traces.spectra[monitor.name, quantity] = list(values_of(data))
    return traces


def merge(parts: list[tuple[Path, Traces]]) -> Traces:
    """Merges the traces of several files, in the order of their positions.

    Raises:
        UsageError: when a position occurs twice, or files differ in length.
    """
    first = parts[0][1]
    order: dict[int, tuple[Traces, int]] = {}
    for path, part in parts:
        if part.steps != first.steps:
            raise UsageError(f"{path}: it has {part.steps:,} steps, but {parts[0][0]} has {first.steps:,}")
        for row, number in enumerate(part.positions):
            if number in order:
                raise UsageError(f"{path}: position {number} is already in another file")
            order[number] = (part, row)
    merged = Traces(first.scene, first.steps, sorted(order))
    for kind in ("values", "spectra"):
        for key in getattr(first, kind):
            rows = [getattr(order[number][0], kind)[key][order[number][1]] for number in merged.positions]
            getattr(merged, kind)[key] = rows
    return merged
