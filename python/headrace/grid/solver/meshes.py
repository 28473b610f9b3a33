"""Objects whose surface is a mesh of triangles: STL, PLY and OBJ files, which trimesh reads."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import DataError, UsageError, how_to_install
from headrace.grid.solver.keys import Keys
from headrace.grid.solver.shapes import SLACK
from headrace.grid.solver.voxels import Many, Numbers, parts
from headrace.grid.spacing import Spacing, text
from headrace.text import read_bytes

Triangles = NDArray[np.float64]  # by triangle, corner and axis, in metres

_SUFFIXES = (".stl", ".ply", ".obj")
_SPACE = 3
_CELLS_MOST = 1 << 30


def read_mesh(keys: Keys, dimensions: int, spacing: Spacing, path: Path) -> Many:
    """Reads a closed mesh, scales it and moves it; cells whose centre lies inside belong to it."""
    if dimensions != _SPACE:
        raise keys.error("a mesh encloses a volume, so it needs three dimensions", "type")
    file = path.parent / keys.text("file")
    scale = keys.number("scale", 1.0, above=0)
    position = keys.point("position", [_SPACE]) if "position" in keys else (0.0,) * _SPACE
    material = keys.text("material")
    triangles = load(file) * scale + np.array(position)
    low, high = triangles.min(axis=(0, 1)), triangles.max(axis=(0, 1))
    cell = np.array(spacing)
    corner = np.floor(low / cell - SLACK).astype(np.int64)
    shape = np.ceil(high / cell + SLACK).astype(np.int64) - corner
    if float(np.prod(shape.astype(np.float64))) > _CELLS_MOST:
        size = " x ".join(f"{length:g}" for length in high - low)
        raise keys.error(
            f"the mesh of {file} measures {size} m, which are more than {_CELLS_MOST:,} cells; files have no unit, so "
            "scale = 0.001 is for one in millimetres",
            "scale",
        )
    inside = filled(triangles / cell - corner, (int(shape[0]), int(shape[1]), int(shape[2])))
    numbers: Numbers = np.where(inside, 0, -1).astype(np.int32)
    found = parts(numbers, tuple(corner.tolist()), spacing)
    if not found:
        raise keys.error(f"the mesh of {file} encloses no cell centre: cells are {text(spacing)}", "file")
    return Many([(material, shape) for _, shape in found])


def load(path: Path) -> Triangles:
    """The triangles of a closed mesh.

    Raises:
        UsageError: when it is a file of another kind, or trimesh is not installed.
        SystemError: when it cannot be read.
        DataError: when it holds no closed mesh, or is larger than other files may be.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{path}: a mesh is a file of {', '.join(_SUFFIXES)}")
    try:
        import trimesh  # noqa: PLC0415 - optional
    except ImportError:
        raise UsageError(f"{path} is a mesh, which needs trimesh: {how_to_install('trimesh')}") from None
    content = io.BytesIO(read_bytes(path))
    try:
        mesh: Any = trimesh.load_mesh(content, file_type=path.suffix[1:].lower())
        triangles = np.asarray(mesh.triangles, dtype=np.float64)
        edges = np.asarray(mesh.edges_sorted)
    except Exception as error:  # the errors of its readers have no common class
        raise DataError(f"{path}: not a mesh: {error}") from None
    if len(triangles) == 0 or not np.isfinite(triangles).all():
        raise DataError(f"{path}: not a mesh: it has {len(triangles):,} triangles with finite corners")
    _, counts = np.unique(edges, axis=0, return_counts=True)
    if open_edges := int(np.count_nonzero(counts % 2)):
        raise DataError(
            f"{path}: its surface is not closed: {open_edges:,} of {len(counts):,} edges have a triangle on one side "
            "only; repair the mesh"
        )
    return triangles


def filled(triangles: Triangles, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    """The cells whose centre lies inside of a closed surface, in a box of unit cells at the origin.

    A ray along z through the centre of each column counts the triangles that it crosses. Two triangles that share an
    edge decide with the same number which of them a ray beside the edge meets, so no ray slips through or counts twice.
    """
    crossed = np.zeros((shape[0], shape[1], shape[2] + 1), dtype=np.int32)
    for corners in triangles:
        _cross(corners, crossed)
    inside: NDArray[np.bool_] = np.cumsum(crossed, axis=2)[:, :, : shape[2]] % 2 == 1
    return inside


def _cross(corners: NDArray[np.float64], crossed: NDArray[np.int32]) -> None:
    """Counts, for each column that a triangle crosses, the first cell whose centre lies above."""
    flat = corners[:, :2]
    first = np.maximum(np.ceil(flat.min(axis=0) - 0.5 - SLACK), 0).astype(np.int64)
    past = np.minimum(np.floor(flat.max(axis=0) - 0.5 + SLACK) + 1, crossed.shape[:2]).astype(np.int64)
    if np.any(first >= past):
        return
    # A surface right through centres takes the cells above it, along each axis.
    x = np.arange(first[0], past[0], dtype=np.float64)[:, np.newaxis] + 0.5 + SLACK
    y = np.arange(first[1], past[1], dtype=np.float64)[np.newaxis, :] + 0.5 + SLACK
    sides, weights = [], []
    for start, end in pairwise((*flat, flat[0])):
        turned = tuple(start) > tuple(end)  # both triangles of an edge compute with the same end first
        (x0, y0), (x1, y1) = (end, start) if turned else (start, end)
        side = (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)
        sides.append((side >= 0) != turned)
        weights.append(-side if turned else side)
    total = sum(weights)
    meets = (sides[0] == sides[1]) & (sides[1] == sides[2]) & (total != 0)
    columns = np.nonzero(meets)
    # The weight of an edge belongs to the corner opposite of it.
    heights = sum(weight[columns] * corners[(edge + 2) % 3, 2] for edge, weight in enumerate(weights)) / total[columns]
    cells = np.clip(np.ceil(heights - 0.5 - SLACK), 0, crossed.shape[2] - 1).astype(np.int64)
    np.add.at(crossed, (columns[0] + first[0], columns[1] + first[1], cells), 1)
