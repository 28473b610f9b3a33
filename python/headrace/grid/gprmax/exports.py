"""Writes traces in forms that other programs read: gprMax's HDF5 output files, and SEG-Y.

gprMax's user guide describes the layout ("Output data"): /rxs/rx1/Ez and so on, of (iterations,), or of (iterations,
traces) in a merged file.
"""

import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace import outputs
from headrace._core import version
from headrace.errors import DataError, UsageError, how_to_install, reading
from headrace.grid.solver.keys import nearest
from headrace.grid.solver.model import Array
from headrace.grid.solver.scene import fields_of, main_field
from headrace.grid.solver.traces import DAMAGED, FORMAT, values_of
from headrace.grid.spacing import Spacing, in_space, spacing_of

_SAMPLES_MOST = 32767  # samples per SEG-Y trace, whose header counts them in 16 bits
_SPECIAL = 10_000  # coordinates are whole multiples of this fraction of a metre


@dataclass(frozen=True)
class Place:
    """A source or receiver: its name, its place at each position, in metres, and its direction or fields."""

    name: str
    positions: Array
    fields: dict[str, Array]  # for a receiver: (positions, steps)
    field: str = ""  # for a source


@dataclass(frozen=True)
class Exported:
    """Content of a trace file."""

    title: str
    shape: tuple[int, ...]
    polarisation: str
    spacing: Spacing
    dt: float
    steps: int
    numbers: list[int]  # numbers of the positions
    scan_cells: tuple[int, ...]
    sources: list[Place]
    receivers: list[Place]


def read(path: Path) -> Exported:
    """Reads a file written by `headrace grid fdtd --traces`.

    Raises:
        UsageError: when h5py is not installed, or the file's version has no positions of sources.
        DataError: when it is not such a file.
        SystemError: when it cannot be read.
    """
    if importlib.util.find_spec("h5py") is None:
        raise UsageError(f"traces are HDF5, which needs h5py: {how_to_install('h5py')}")
    import h5py  # noqa: PLC0415 - optional

    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise DataError(f"{path}: not a trace file of headrace grid")
            return _content(file)
    except FileNotFoundError as error:
        raise reading(path, error) from None
    except DAMAGED as error:
        raise DataError(f"{path}: not a complete HDF5 trace file: {error}") from None


def _content(file: Any) -> Exported:  # noqa: ANN401 - h5py has no types
    shape = tuple(int(count) for count in file.attrs["shape"])
    receivers = []
    for name, group in sorted(file["receivers"].items(), key=lambda item: int(item[1].attrs["order"])):
        fields = {key: values_of(data) for key, data in group.items() if not key.startswith(("time_", "position"))}
        receivers.append(Place(name, values_of(group["position"]), fields))
    groups = sorted(file.get("sources", {}).items(), key=lambda item: int(item[1].attrs["order"]))
    steps = int(file.attrs["steps"])
    positions = [int(number) for number in values_of(file["positions"])]
    for receiver in receivers:
        for key, data in receiver.fields.items():
            if data.shape != (len(positions), steps):
                raise ValueError(f"{receiver.name}/{key} does not have {len(positions):,} rows of {steps:,} values")
    return Exported(
        str(file.attrs["title"]),
        shape,
        str(file.attrs.get("polarisation", "tm")),
        _spacing(file, len(shape)),
        float(file.attrs["dt"]),
        steps,
        positions,
        tuple(int(count) for count in file.attrs.get("scan_cells", [0] * len(shape))),
        [Place(name, values_of(one["position"]), {}, str(one.attrs["field"])) for name, one in groups],
        receivers,
    )


def write_gprmax(path: Path, found: Exported, *, separate: bool) -> list[Path]:
    """Writes gprMax's output: all positions in one merged file, or one file per position, numbered from 1.

    The first sample is for time 0, when all fields are 0; so sample n of an electric field is at n times dt, and that
    of a magnetic field half a step earlier.

    Raises:
        SystemError: naming the file that cannot be written.
    """
    count = len(found.numbers)
    if not separate:
        outputs.write(path, _gprmax(found, list(range(count))))
        return [path]
    paths = [path.with_name(f"{path.stem}{number + 1}{path.suffix}") for number in found.numbers]
    for row, one in enumerate(paths):
        outputs.write(one, _gprmax(found, [row]))
    return paths


def _gprmax(found: Exported, rows: list[int]) -> memoryview:
    import h5py  # noqa: PLC0415 - optional

    def deep(values: Any, filler: float) -> Array:  # noqa: ANN401 - a list or an array
        """Adds z, which two dimensions lack."""
        return np.array([*values, filler][:3])

    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file.attrs["gprMax"] = f"headrace {version}"
        file.attrs["Title"] = found.title
        file.attrs["Iterations"] = found.steps + 1
        file.attrs["nx_ny_nz"] = deep(found.shape, 1)
        file.attrs["dx_dy_dz"] = np.array(in_space(found.spacing))
        file.attrs["dt"] = found.dt
        file.attrs["nsrc"], file.attrs["nrx"] = len(found.sources), len(found.receivers)
        file.attrs["srcsteps"] = file.attrs["rxsteps"] = deep(found.scan_cells, 0)
        for number, source in enumerate(found.sources, 1):
            group = file.create_group(f"srcs/src{number}")
            group.attrs["Type"] = "MagneticDipole" if source.field.startswith("h") else "HertzianDipole"
            group.attrs["Position"] = deep(source.positions[rows[0]], 0.0)
        for number, receiver in enumerate(found.receivers, 1):
            group = file.create_group(f"rxs/rx{number}")
            group.attrs["Name"] = receiver.name
            group.attrs["Position"] = deep(receiver.positions[rows[0]], 0.0)
            for name, values in receiver.fields.items():
                # Samples run downwards and traces to the right, after the zero fields of time 0.
                columns = np.concatenate([np.zeros((1, len(rows)), values.dtype), values[rows].T])
                group.create_dataset(name.capitalize(), data=columns if len(rows) > 1 else columns[:, 0])
    return content.getbuffer()


def write_segy(path: Path, found: Exported, receiver: str | None, field: str | None = None) -> Path:
    """Writes one field of a receiver (default: ez, or hz) as SEG-Y revision 1: a trace per position, in IEEE single.

    Headers give the sample interval in picoseconds instead of microseconds, as radar files do, and x and y of source
    and receiver in tenths of a millimetre (scalar -10000).

    Raises:
        UsageError: when segyio is not installed, there is no such trace, or it does not fit the format.
        SystemError: naming the file, when it cannot be written.
    """
    if importlib.util.find_spec("segyio") is None:
        raise UsageError(f"SEG-Y needs segyio: {how_to_install('segyio')}")
    import segyio  # noqa: PLC0415 - optional

    known = {one.name: one for one in found.receivers}
    name = receiver if receiver is not None else next(iter(known), "")
    if name not in known:
        raise UsageError(f"there is no receiver '{name}'{nearest(name, known)}")
    field = field or main_field(fields_of(len(found.shape), found.polarisation))
    if field not in known[name].fields:
        raise UsageError(f"receiver '{name}' has no field '{field}'{nearest(field, known[name].fields)}")
    values = known[name].fields[field].astype(np.float32)
    picoseconds = round(found.dt * 1e12)
    if values.shape[1] > _SAMPLES_MOST:
        raise UsageError(f"{values.shape[1]:,} samples are more than the {_SAMPLES_MOST:,} that a SEG-Y trace can hold")
    spec = segyio.spec()
    spec.format, spec.sorting = 5, None
    spec.samples = np.arange(values.shape[1]) * found.dt * 1e12
    spec.tracecount = len(values)
    with outputs.replacing(path) as staged, segyio.create(str(staged), spec) as file:
        file.text[0] = segyio.tools.create_text_header(
            {
                1: f"{found.title}"[:70],
                2: f"{name} {field}, by headrace {version}",
                3: f"sample interval {found.dt:.9e} s",
                4: "the interval in headers is in picoseconds; coordinates are in 0.1 mm",
            }
        )
        file.bin.update(hdt=min(picoseconds, _SAMPLES_MOST), hns=values.shape[1], format=5, rev=1, mfeet=1)
        for row, trace in enumerate(values):
            file.trace[row] = trace
            file.header[row] = _trace_header(segyio, found, known[name], row, picoseconds)
    return path


def _trace_header(segyio: Any, found: Exported, receiver: Place, row: int, interval: int) -> dict[int, int]:  # noqa: ANN401
    fields = segyio.TraceField

    def whole(metres: float) -> int:
        return round(float(metres) * _SPECIAL)

    header = {
        fields.TRACE_SEQUENCE_LINE: row + 1,
        fields.TRACE_SEQUENCE_FILE: row + 1,
        fields.FieldRecord: found.numbers[row] + 1,
        fields.TraceNumber: 1,
        fields.TraceIdentificationCode: 1,
        fields.SourceGroupScalar: -_SPECIAL,
        fields.CoordinateUnits: 1,
        fields.GroupX: whole(receiver.positions[row][0]),
        fields.GroupY: whole(receiver.positions[row][1]),
        fields.TRACE_SAMPLE_COUNT: receiver.fields[next(iter(receiver.fields))].shape[1],
        fields.TRACE_SAMPLE_INTERVAL: min(interval, _SAMPLES_MOST),
    }
    if found.sources:
        header[fields.SourceX] = whole(found.sources[0].positions[row][0])
        header[fields.SourceY] = whole(found.sources[0].positions[row][1])
    return header


def _spacing(file: Any, dimensions: int) -> Spacing:  # noqa: ANN401 - h5py has no types
    try:
        return spacing_of(np.asarray(file.attrs["spacing"]).tolist(), dimensions)
    except UsageError as error:
        raise ValueError(str(error)) from error
