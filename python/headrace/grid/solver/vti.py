"""Snapshots for ParaView: VTK ImageData in XML with raw binary data appended, and a .pvd list of them in time."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from headrace import outputs
from headrace.grid.solver.model import Array

_TYPES = {np.dtype(np.float32): "Float32", np.dtype(np.float64): "Float64", np.dtype(np.uint16): "UInt16"}
_ORDER = "LittleEndian" if sys.byteorder == "little" else "BigEndian"


def write(path: Path, fields: Mapping[str, Array], spacing: float, time: float | None = None) -> None:
    """Writes arrays of one shape, x first, as cell data; two dimensions are one layer of cells.

    The format is in VTK's "File Formats" (XML, appended data, header type UInt64).
    """
    shape = next(iter(fields.values())).shape
    extent = " ".join(f"0 {count}" for count in (*shape, 1)[:3])
    arrays, blocks, offset = [], [], 0
    for name, values in fields.items():
        data = np.asarray(values).tobytes(order="F")  # x is contiguous in VTK
        kind = _TYPES[values.dtype]
        arrays.append(f'<DataArray type="{kind}" Name={quoteattr(name)} format="appended" offset="{offset}"/>')
        blocks += [np.uint64(len(data)).tobytes(), data]
        offset += 8 + len(data)
    when = "" if time is None else _time_value(time)
    head = (
        f'<?xml version="1.0"?>\n<VTKFile type="ImageData" version="1.0" byte_order="{_ORDER}" header_type="UInt64">\n'
        f'<ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="{spacing!r} {spacing!r} {spacing!r}">\n{when}'
        f'<Piece Extent="{extent}">\n<CellData>\n' + "\n".join(arrays) + "\n</CellData>\n</Piece>\n</ImageData>\n"
        '<AppendedData encoding="raw">\n_'
    )
    with outputs.writing(path) as file:
        file.write(head.encode())
        file.writelines(blocks)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


def _time_value(time: float) -> str:
    return (
        '<FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">'
        f"{time!r}</DataArray></FieldData>\n"
    )


def write_series(path: Path, files: Sequence[tuple[float, str]]) -> None:
    """Writes the list of files with their times, which ParaView opens as one that moves."""
    lines = [f'<DataSet timestep="{time!r}" file={quoteattr(name)}/>' for time, name in files]
    text = (
        f'<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0" byte_order="{_ORDER}">\n<Collection>\n'
        + "\n".join(lines)
        + "\n</Collection>\n</VTKFile>\n"
    )
    outputs.write(path, text)
