"""Snapshots for ParaView: VTK ImageData in XML with appended raw binary data, and a .pvd list of them over time.

Field components lie at different places of a cell, but an image has a single place: each component has its own file.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from headrace import outputs
from headrace.grid.solver.model import Array
from headrace.grid.spacing import Spacing, in_space

_TYPES = {np.dtype(np.float32): "Float32", np.dtype(np.float64): "Float64", np.dtype(np.uint16): "UInt16"}
_ORDER = "LittleEndian" if sys.byteorder == "little" else "BigEndian"


def write_cells(path: Path, name: str, values: Array, spacing: Spacing) -> None:
    """Writes an array, x first, as cell data; two dimensions are one layer of cells.

    Raises:
        SystemError: naming the file, when it cannot be written.
    """
    extent = " ".join(f"0 {count}" for count in (*values.shape, 1)[:3])
    _write(path, "CellData", name, values, extent, (0.0, 0.0, 0.0), spacing)


def write_points(path: Path, name: str, values: Array, origin: Sequence[float], spacing: Spacing, time: float) -> None:
    """Writes an array, x first, as point data for a time in seconds; `origin` is the first point.

    Raises:
        SystemError: naming the file, when it cannot be written.
    """
    extent = " ".join(f"0 {count - 1}" for count in (*values.shape, 1)[:3])
    _write(path, "PointData", name, values, extent, (*origin, 0.0)[:3], spacing, _time_value(time))


def _write(
    path: Path,
    kind: str,
    name: str,
    values: Array,
    extent: str,
    origin: Sequence[float],
    spacing: Spacing,
    when: str = "",
) -> None:
    """VTK's "File Formats" describes the format (XML, appended data, header type UInt64)."""
    data = np.asarray(values).tobytes(order="F")  # x is contiguous in VTK
    first = " ".join(repr(float(at)) for at in origin)
    lengths = " ".join(repr(float(one)) for one in in_space(spacing))
    array = f'<DataArray type="{_TYPES[values.dtype]}" Name={quoteattr(name)} format="appended" offset="0"/>'
    head = (
        f'<?xml version="1.0"?>\n<VTKFile type="ImageData" version="1.0" byte_order="{_ORDER}" header_type="UInt64">\n'
        f'<ImageData WholeExtent="{extent}" Origin="{first}" Spacing="{lengths}">\n{when}'
        f'<Piece Extent="{extent}">\n<{kind}>\n{array}\n</{kind}>\n</Piece>\n</ImageData>\n'
        '<AppendedData encoding="raw">\n_'
    )
    outputs.write(path, head.encode() + np.uint64(len(data)).tobytes() + data + b"\n</AppendedData>\n</VTKFile>\n")


def _time_value(time: float) -> str:
    return (
        '<FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">'
        f"{time!r}</DataArray></FieldData>\n"
    )


def write_series(path: Path, files: Sequence[tuple[float, int, str]]) -> None:
    """Writes the list of files with their times and parts, which ParaView opens as an animation."""
    lines = [f'<DataSet timestep="{time!r}" part="{part}" file={quoteattr(name)}/>' for time, part, name in files]
    text = (
        f'<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0" byte_order="{_ORDER}">\n<Collection>\n'
        + "\n".join(lines)
        + "\n</Collection>\n</VTKFile>\n"
    )
    outputs.write(path, text)
