"""The kinds of objects that a scene file may have."""

from collections.abc import Callable

from headrace.grid.solver.keys import Keys
from headrace.grid.solver.shapes import Shape, read_box, read_cylinder, read_half_space, read_sphere
from headrace.grid.solver.sheets import Sheet, Thin, Wire, flattened, read_plate, read_wire
from headrace.grid.solver.solids import read_cone, read_ellipsoid, read_sector, read_triangle

_READERS: dict[str, Callable[[Keys, int], Shape | Thin]] = {
    "box": read_box,
    "cylinder": read_cylinder,
    "sphere": read_sphere,
    "half_space": read_half_space,
    "ellipsoid": read_ellipsoid,
    "cone": read_cone,
    "triangle": read_triangle,
    "sector": read_sector,
    "plate": read_plate,
    "wire": read_wire,
}


def kinds() -> list[str]:
    """The types of objects that there are."""
    return list(_READERS)


def read_shape(keys: Keys, dimensions: int) -> Shape | Thin:
    """The shape that a table under [[objects]] describes."""
    found = _READERS[keys.choice("type", list(_READERS))](keys, dimensions)
    return found if isinstance(found, Sheet | Wire) else flattened(found)
