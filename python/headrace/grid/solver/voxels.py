"""Objects given cell by cell: arrays from files, and fractals."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import DataError, UsageError, how_to_install
from headrace.grid.solver import fractals
from headrace.grid.solver.keys import Keys
from headrace.grid.solver.places import Cell, nearest_node
from headrace.grid.solver.shapes import AXES, Axes, Mask, Point
from headrace.grid.spacing import Spacing, plain, text

Numbers = NDArray[np.int32]  # material numbers in the order of a list; -1: outside of the object

_MATERIALS_MOST = 10_000
_DIMENSION_MOST = 10  # beyond it, noise is its longest waves alone
_SAME = 1e-6  # relative tolerance for cell lengths


@dataclass(frozen=True)
class Voxels:
    """The cells of an array that hold one number, starting at a corner."""

    corner: Cell
    spacing: Spacing
    number: int
    key: str
    """A hash that identifies the array."""
    data: Numbers = field(repr=False, compare=False)

    def __repr__(self) -> str:
        """Content for the hash of a scene."""
        spacing = plain(self.spacing)
        return f"Voxels(corner={self.corner!r}, spacing={spacing!r}, number={self.number!r}, key={self.key!r})"

    def bounds(self, size: Point) -> tuple[Point, Point]:  # noqa: ARG002
        """Corners of the whole array."""
        low = tuple(at * one for at, one in zip(self.corner, self.spacing, strict=True))
        ends = zip(self.corner, self.data.shape, self.spacing, strict=True)
        return low, tuple((at + count) * one for at, count, one in ends)

    def covers(self, centres: Axes, slack: float) -> Mask:  # noqa: ARG002 - cells are told by their middles
        """Whether the array has this number there."""
        inside: Any = True
        places = []
        for axis, at, count, one in zip(centres, self.corner, self.data.shape, self.spacing, strict=True):
            place = np.floor(axis / one).astype(np.int64) - at
            inside = inside & (place >= 0) & (place < count)
            places.append(np.clip(place, 0, count - 1))
        return np.asarray(inside & (self.data[tuple(places)] == self.number))

    def thickness(self) -> float:
        """It consists of whole cells."""
        return np.inf


def parts(data: Numbers, corner: Cell, spacing: Spacing) -> list[tuple[int, Voxels]]:
    """The numbers in an array, each with its cells."""
    key = hashlib.sha256(repr((data.shape, corner)).encode() + np.ascontiguousarray(data).tobytes()).hexdigest()[:16]
    found = [int(number) for number in np.unique(data) if number >= 0]
    return [(number, Voxels(corner, spacing, number, key, data)) for number in found]


def read_file(path: Path, dimensions: int, spacing: Spacing) -> Numbers:
    """Reads an array from a file: the data set `data` of HDF5, as in gprMax, or a .npy file.

    Raises:
        UsageError: when its cells have another length, or h5py is not installed.
        DataError: when it is not such a file.
        SystemError: when it cannot be read.
    """
    try:
        data = np.load(path, allow_pickle=False) if path.suffix == ".npy" else _read_hdf5(path, spacing)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path}: not an array of cells: {error}") from None
    if data.ndim == dimensions + 1 and data.shape[-1] == 1:
        data = data[..., 0]
    if data.ndim != dimensions or data.dtype.kind not in "iu" or data.size == 0:
        raise DataError(
            f"{path}: an array of {data.dtype} with shape {data.shape}, not of whole numbers along {dimensions} axes"
        )
    if data.min() < -1 or data.max() >= _MATERIALS_MOST:
        raise DataError(
            f"{path}: numbers from {data.min()} to {data.max()} are out of range: -1 means nothing, and 0 the "
            "first material"
        )
    return np.asarray(data, dtype=np.int32)


def _read_hdf5(path: Path, spacing: Spacing) -> NDArray[Any]:
    try:
        import h5py  # noqa: PLC0415 - optional
    except ImportError:
        raise UsageError(f"{path} is HDF5, which needs h5py: {how_to_install('h5py')}") from None
    with h5py.File(path, "r") as file:
        if "dx_dy_dz" in file.attrs:
            cells = np.asarray(file.attrs["dx_dy_dz"], dtype=np.float64)
            own = np.array(spacing)
            if cells.size < own.size or np.any(np.abs(cells[: own.size] - own) > _SAME * own):
                raise UsageError(
                    f"{path}: it has cells of {' x '.join(f'{one:g}' for one in cells)} m, not of {text(spacing)}"
                )
        return np.asarray(file["data"])


@dataclass(frozen=True)
class Many:
    """The shapes of one table, and the material of each."""

    shapes: list[tuple[str, Voxels]]


def read_voxels(keys: Keys, dimensions: int, spacing: Spacing, path: Path) -> Many:
    """Reads an array of cells from a file, and places its low corner."""
    corner = nearest_node(keys.point("position", [dimensions]), spacing)
    data = read_file(path.parent / keys.text("file"), dimensions, spacing)
    return _made(keys, data, corner, spacing)


def read_fractal(keys: Keys, dimensions: int, spacing: Spacing, path: Path) -> Many:  # noqa: ARG001 - as the others
    """Reads a box with a fractal distribution of materials; its surfaces may be rough."""
    low, high = (nearest_node(keys.point(key, [dimensions]), spacing) for key in ("low", "high"))
    for axis, first, last in zip(AXES, low, high, strict=False):
        if first >= last:
            raise keys.error(f"it is less than a cell thick along {axis}", "high")
    count = len(keys.names("material", None)) if keys.is_list("material") else 1
    noise = fractals.Noise(
        keys.number("dimension", least=0, most=_DIMENSION_MOST), _weights(keys, dimensions), keys.whole("seed", 0)
    )
    surfaces = [_surface(table, dimensions, spacing) for table in keys.tables("surfaces")]
    sides = [(one.axis, one.upper) for one in surfaces]
    if len(set(sides)) < len(sides):
        raise keys.error("a side has two surfaces", "surfaces")
    even = keys.choice("spread", ("even", "gprmax"), "even") == "even"
    found = fractals.box(low, high, noise, count, surfaces, even=even)
    made = _made(keys, found.data, found.corner, spacing)
    for one in found.water:
        made.shapes.extend((one.material, shape) for _, shape in parts(one.data, found.corner, spacing))
    return made


def _weights(keys: Keys, count: int) -> tuple[float, ...]:
    weights = keys.point("weights", [count]) if "weights" in keys else (1.0,) * count
    if min(weights) <= 0:
        raise keys.error(f"{min(weights):g} is not above 0", "weights")
    return weights


def _surface(table: Keys, dimensions: int, spacing: Spacing) -> fractals.Surface:
    sides = [f"{letter}{sign}" for letter in AXES[:dimensions] for sign in "-+"]
    side = table.choice("side", sides)
    lowest, highest = table.number("lowest"), table.number("highest")
    if lowest >= highest:
        raise table.error(f"{highest:g} is not above lowest, {lowest:g}", "highest")
    noise = fractals.Noise(
        table.number("dimension", least=0, most=_DIMENSION_MOST),
        _weights(table, dimensions - 1),
        table.whole("seed", 0),
    )
    across = (
        [[table.point(key, [dimensions - 1]) for key in ("low", "high")]] if "low" in table or "high" in table else []
    )
    axis = AXES.index(side[0])
    one, others = spacing[axis], (*spacing[:axis], *spacing[axis + 1 :])
    reach = tuple(nearest_node(corner, others) for corner in across[0]) if across else None
    water = table.number("water") / one if "water" in table else None
    wet = table.text("water_material") if water is not None else ""
    table.done()
    limits = (lowest / one, highest / one)
    return fractals.Surface(axis, side[1] == "+", limits, noise, reach, water, wet)


def _made(keys: Keys, data: Numbers, corner: Cell, spacing: Spacing) -> Many:
    names = keys.names("material", None) if keys.is_list("material") else (keys.text("material"),)
    found = parts(data, corner, spacing)
    if found and found[-1][0] >= len(names):
        raise keys.error(
            f"the array has number {found[-1][0]}, but there are {len(names)} materials, counted from 0", "material"
        )
    return Many([(names[number], shape) for number, shape in found])
