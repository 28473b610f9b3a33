"""The kinds of objects in a scene file."""

from collections.abc import Callable
from pathlib import Path

from headrace.grid.solver.ids import known_material, unique
from headrace.grid.solver.keys import Keys
from headrace.grid.solver.meshes import read_mesh
from headrace.grid.solver.places import Cell
from headrace.grid.solver.scene import Material, Painted, electric_axes
from headrace.grid.solver.shapes import Shape, read_box, read_cylinder, read_half_space, read_sphere
from headrace.grid.solver.sheets import Sheet, Thin, Wire, flattened, read_plate, read_wire
from headrace.grid.solver.solids import read_cone, read_ellipsoid, read_sector, read_triangle
from headrace.grid.solver.voxels import Many, read_fractal, read_voxels
from headrace.grid.spacing import Spacing

MANY: dict[str, Callable[[Keys, int, Spacing, Path], Many]] = {
    "voxels": read_voxels,
    "fractal_box": read_fractal,
    "mesh": read_mesh,
}
"""Objects given cell by cell."""
_FLAT = 2  # number of dimensions
_ALONG = 3  # number of axes that may each have a material

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
    """The types of objects."""
    return [*_READERS, *MANY]


def read_shape(keys: Keys, dimensions: int) -> Shape | Thin:
    """The shape of a table under [[objects]]."""
    found = _READERS[keys.choice("type", kinds())](keys, dimensions)
    return found if isinstance(found, Sheet | Wire) else flattened(found)


def _read_many(
    keys: Keys, name: str, dimensions: int, spacing: Spacing, materials: dict[str, Material], path: Path, line: int
) -> list[Painted]:
    """The objects of one table: the cells of each of its materials."""
    averaging = keys.flag("averaging", True)
    made = MANY[keys.text("type")](keys, dimensions, spacing, path)
    keys.done()
    for material, _ in made.shapes:
        known_material(keys, "material", material, materials)
    return [
        Painted(name, shape, material, line, averaging and materials[material].averaging)
        for material, shape in made.shapes
    ]


def read_objects(
    tables: list[Keys],
    cells: Cell,
    spacing: Spacing,
    materials: dict[str, Material],
    lines: list[int],
    path: Path,
    *,
    fields: tuple[str, ...],
    smoothing: bool,
) -> tuple[Painted, ...]:
    """The objects of a scene, in order. An object given cell by cell becomes one object per material."""
    dimensions, names = len(cells), []
    found: list[Painted] = []
    if len(lines) != len(tables):
        lines = [0] * len(tables)
    for number, keys in enumerate(tables, 1):
        name = keys.text("id", f"object{number}")
        names.append(name)
        if keys.text("type") in MANY:
            found += _read_many(keys, name, dimensions, spacing, materials, path, lines[number - 1])
            continue
        shape = read_shape(keys, dimensions)
        along = _along(keys, shape, materials)
        averaging = keys.flag("averaging", len(along) == 1) and not isinstance(shape, Sheet | Wire)
        averaging = averaging and (len(along) > 1 or materials[along[0]].averaging)
        if averaging and len(along) > 1:
            raise keys.error("an object with a material for each axis cannot be averaged", "averaging")
        if smoothing and not averaging:
            raise keys.error("has no averaging or no volume, which smoothing = true does not support", "type")
        if isinstance(shape, Wire) and dimensions == _FLAT:
            _check_wire(keys, shape, fields)
        keys.done()
        own = along if len(along) > 1 else ()
        material = along[electric_axes(fields)[0] if len(along) > 1 else 0]
        found.append(Painted(name, shape, material, lines[number - 1], averaging, own))
    unique(zip(tables, names, strict=True))
    return tuple(found)


def _check_wire(keys: Keys, wire: Wire, fields: tuple[str, ...]) -> None:
    """Refuses a wire in two dimensions along which there is no electric field."""
    across = wire.start == wire.end
    if across and "ez" not in fields:
        raise keys.error("a wire across the plane has no edges where ez is absent: give start and end", "position")
    if not across and "ez" in fields:
        raise keys.error("a wire in the plane has no edges where ez is the electric field: give position", "start")


def _along(keys: Keys, shape: Shape | Thin, materials: dict[str, Material]) -> tuple[str, ...]:
    """The material of an object, or one per axis; a plate has the two of its plane."""
    if not keys.is_list("material"):
        given: tuple[str, ...] = (keys.text("material"),)
    else:
        wanted = _ALONG - 1 if isinstance(shape, Sheet) else _ALONG
        if isinstance(shape, Wire):
            raise keys.error("a wire lies along one axis, so it has one material", "material")
        given = keys.names("material", wanted)
    for name in given:
        known_material(keys, "material", name, materials)
    if isinstance(shape, Sheet) and len(given) > 1:
        # The axis across it has no edges.
        return (*given[: shape.axis], given[0], *given[shape.axis :])
    return given
