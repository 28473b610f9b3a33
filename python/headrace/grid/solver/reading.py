"""Reads scene files: TOML to a Scene. Every error names the file, the key and the value."""

import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.errors import DataError
from headrace.grid.solver.checks import check_objects, check_places, check_resolution, courant_limit, listed
from headrace.grid.solver.components import read_component, read_components
from headrace.grid.solver.domain import read_periodic, read_polarisation, read_shape, read_smoothing, read_symmetry
from headrace.grid.solver.ids import known_material, unique
from headrace.grid.solver.keys import WHOLE_MOST, Keys
from headrace.grid.solver.monitors import read_monitors
from headrace.grid.solver.objects import read_objects
from headrace.grid.solver.poles import check_poles, is_dispersive, read_poles, stable_permittivity
from headrace.grid.solver.scene import (
    BUILT_IN,
    Cell,
    Material,
    PlaneWave,
    Receiver,
    Scan,
    Scene,
    Snapshots,
    Source,
    fields_of,
    main_field,
    nearest_node,
    whole_cells,
)
from headrace.grid.solver.shapes import AXES
from headrace.grid.solver.waveform_files import read_table
from headrace.grid.solver.waveforms import FILE, IMPULSE, NAMES, Wave
from headrace.grid.spacing import Spacing, text
from headrace.text import read_utf8

_FRAMES = 60  # default number of snapshots of a run
_PLANE = ("plane", "plane_wave")
_POSITIONS_MOST = 1_000_000
_FLAT = 2  # number of dimensions


def read_scene(path: Path) -> Scene:
    """Reads a scene file.

    Raises:
        UsageError: naming the file, key and value at fault.
        DataError: when it is not TOML.
    """
    return parse_scene(read_utf8(path), path)


def parse_scene(text: str, path: Path) -> Scene:
    """Parses the text of a scene file; `path` is its name in errors."""
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise DataError(f"{path}: not a scene: its lists and tables are nested too deeply") from None
    except ValueError:  # raised by the standard library for a number with thousands of digits
        raise DataError(f"{path}: a number has too many digits") from None
    return parse_content(content, path, _lines(text, "objects"))


def parse_content(content: dict[str, Any], path: Path, lines: list[int] | None = None) -> Scene:
    """The scene of these tables; `lines` are those on which objects begin, for warnings."""
    try:
        return _scene(Keys(path, "", content), path, lines or [])
    except OverflowError as error:
        raise DataError(f"{path}: a number is out of range: {error}") from None


def _lines(text: str, key: str) -> list[int]:
    """The lines on which the tables of an array begin; a file in another notation may give too few."""
    header = re.compile(rf"\s*\[\[\s*[\"']?{key}[\"']?\s*\]\]")
    return [number for number, line in enumerate(text.splitlines(), 1) if header.match(line)]


def _scene(top: Keys, path: Path, lines: list[int]) -> Scene:
    title = top.text("title", path.stem)
    domain = top.table("domain", required=True)
    symmetry = read_symmetry(domain)
    periodic = read_periodic(domain, symmetry)
    shape, spacing, layers = read_shape(domain, symmetry, periodic)
    dimensions = len(shape)
    polarisation = read_polarisation(domain, dimensions)
    fields = fields_of(dimensions, polarisation)
    precision = domain.choice("precision", ("single", "double"), "single")
    background = domain.text("background", "free_space")
    given = top.tables("materials")
    materials = _materials(given)
    known_material(domain, "background", background, materials)
    averaging = domain.flag("averaging", True)
    smoothing = read_smoothing(domain, dimensions, polarisation, averaging=averaging)
    domain.done()
    dt, steps = _time(top.table("time", required=True), spacing, materials)
    _check_dispersive(given, materials, dt, spacing)
    sources = _sources(top.tables("sources"), dimensions, fields, path)
    scene = Scene(
        path,
        title,
        shape,
        spacing,
        layers,
        precision,
        averaging,
        background,
        dt,
        steps,
        materials,
        objects=read_objects(
            top.tables("objects"), shape, spacing, materials, lines, path, fields=fields, smoothing=smoothing
        ),
        sources=sources,
        receivers=_receivers(top.tables("receivers"), dimensions, fields),
        snapshots=_snapshots(top.table("snapshots"), fields, dt, steps),
        scan=_scan(top.table("scan"), dimensions, spacing, given="scan" in top),
        plane_waves=_plane_waves(top.tables("plane_waves"), shape, spacing, layers.cells, fields, sources, path),
        monitors=read_monitors(top.tables("monitors"), shape, spacing, fields, dt, periodic),
        polarisation=polarisation,
        symmetry=symmetry,
        periodic=periodic,
        smoothing=smoothing,
    )
    top.done()
    if "ez" in fields and len(shape) == _FLAT and scene.magnetic_walls and is_dispersive(scene):
        raise domain.error(
            'with polarisation = "tm" a magnetic wall cannot be combined with dispersive materials: compute the whole '
            "scene, or use three dimensions",
            "symmetry",
        )
    if smoothing and periodic:
        raise domain.error("cannot be combined with periodic walls: leave it out", "smoothing")
    if smoothing and is_dispersive(scene):
        raise domain.error("cannot be combined with dispersive materials: leave it out", "smoothing")
    return check_resolution(check_places(check_objects(scene)))


def _materials(tables: list[Keys]) -> dict[str, Material]:
    found = {material.name: material for material in BUILT_IN}
    made = []
    for keys in tables:
        material = Material(
            keys.text("id"),
            keys.number("permittivity", 1.0, above=0),
            keys.number("permeability", 1.0, above=0),
            keys.number("conductivity", 0.0, least=0),
            read_poles(keys),
            keys.flag("averaging", True),
        )
        keys.done()
        made.append((keys, material))
    unique([(keys, material.name) for keys, material in made], found)
    return found | {material.name: material for _, material in made}


def _check_dispersive(tables: list[Keys], materials: dict[str, Material], dt: float, spacing: Spacing) -> None:
    """Refuses poles that the time step cannot resolve, or that make it unstable."""
    for keys in tables:
        check_poles(keys, materials[keys.text("id")], dt)
    dispersive = [one for one in materials.values() if one.poles]
    if not dispersive:
        return
    least = {one.name: replace(one, permittivity=stable_permittivity(one, dt), poles=()) for one in dispersive}
    limit = (
        courant_limit(spacing, {**materials, **least}.values())
        if all(one.permittivity > 0 for one in least.values())
        else 0.0
    )
    if dt > limit * (1 + 1e-12):
        worst = min(least.values(), key=lambda one: one.permittivity)
        keys = next(one for one in tables if one.text("id") == worst.name)
        courant = 0.99 * max(worst.permittivity, 0.01) ** 0.5
        raise keys.error(
            f"a time step of {dt:.6g} s is unstable: for the fastest oscillations, the permittivity is "
            f"{worst.permittivity:.4g}; set [time] courant to {courant:.3g} or less",
            "poles",
        )


def _time(keys: Keys, spacing: Spacing, materials: dict[str, Material]) -> tuple[float, int]:
    """The time step and the number of steps."""
    limit = courant_limit(spacing, materials.values())
    if "step" in keys and "courant" in keys:
        raise keys.error("step and courant both set the time step; leave one out")
    if "step" in keys:
        dt = keys.number("step", above=0)
        if dt > limit:
            raise keys.error(
                f"{dt:g} s is unstable: with a spacing of {text(spacing)} in {len(spacing)} dimensions a step can be "
                f"at most {limit:.6g} s (Courant); leave out step for a stable one",
                "step",
            )
    else:
        courant = keys.number("courant", 0.99, above=0)
        if courant > 1:
            raise keys.error(f"{courant:g} is unstable: the limit is 1", "courant")
        dt = courant * limit
    if keys.either("window", "steps") == "steps":
        steps = keys.whole("steps", least=1)
    else:
        # Rounded first, and then up: the time of 100 steps is 100 steps.
        count = keys.number("window", above=0) / dt
        if count > WHOLE_MOST:
            raise keys.error(f"{count:g} steps of {dt:g} s are too many", "window")
        steps = max(1, math.ceil(round(count, 6)))
    keys.done()
    return dt, steps


def _sources(tables: list[Keys], dimensions: int, fields: tuple[str, ...], path: Path) -> tuple[Source, ...]:
    found = []
    for number, keys in enumerate(tables, 1):
        if "waveform" not in keys and "type" in keys and keys.text("type") in _PLANE:
            raise keys.error("a source is a current in one cell; plane waves are [[plane_waves]]", "type")
        field = read_component(keys, "field", fields, fields, main_field(fields))
        resistance = keys.number("resistance", above=0) if "resistance" in keys else None
        if resistance is not None and field.startswith("h"):
            raise keys.error("is for a voltage source, which lies along an electric field", "resistance")
        line = keys.flag("line", False)
        if line and resistance is None:
            raise keys.error("is a transmission line, which needs its resistance", "line")
        name, position = keys.text("id", f"source{number}"), keys.point("position", [dimensions])
        found.append(Source(name, field, position, _wave(keys, path), resistance, line))
        keys.done()
    unique(zip(tables, (one.name for one in found), strict=True))
    return tuple(found)


def _wave(keys: Keys, path: Path) -> Wave:
    """The waveform of a source; files are searched in the scene's folder."""
    name = keys.choice("waveform", list(NAMES))
    plain = name in (FILE, IMPULSE)
    found = Wave(
        name,
        keys.number("frequency", 0.0, least=0) if plain else keys.number("frequency", above=0),
        keys.number("amplitude", 1.0),
        keys.number("delay", 0.0),
        keys.number("stop") if "stop" in keys else None,
        read_table(path.parent / keys.text("file"), keys.text("column", "")) if name == FILE else None,
    )
    if found.stop is not None and found.stop <= found.delay:
        raise keys.error(f"{found.stop:g} s is not after its delay, {found.delay:g} s", "stop")
    return found


def _plane_waves(
    tables: list[Keys],
    shape: Cell,
    spacing: Spacing,
    cpml: int,
    fields: tuple[str, ...],
    sources: tuple[Source, ...],
    path: Path,
) -> tuple[PlaneWave, ...]:
    found = []
    dimensions = len(shape)
    directions = [sign + letter for letter in AXES[:dimensions] for sign in "+-"]
    margin = max(cpml, 1) + 2  # between the box and the layers or walls
    for number, keys in enumerate(tables, 1):
        direction = keys.choice("direction", directions)
        axis = AXES.index(direction[1])
        electric = [name for name in fields if name[0] == "e"]
        default = "ez" if "ez" in electric else "ey" if axis == 0 else "ex"
        field = read_component(keys, "field", fields, electric, default)
        if AXES.index(field[1]) == axis:
            raise keys.error(f"a wave along {AXES[axis]} has no {field}: its electric field is transverse", "field")
        usual = (
            [margin * one for one in spacing],
            [(count - margin) * one for count, one in zip(shape, spacing, strict=True)],
        )
        low, high = (
            nearest_node(keys.point(key, [dimensions]) if key in keys else tuple(corner), spacing)
            for key, corner in zip(("low", "high"), usual, strict=True)
        )
        for letter, first, last, count in zip(AXES, low, high, shape, strict=False):
            if not margin - 1 <= first < last <= count - margin + 1:
                raise keys.error(
                    f"its box goes from cell {first} to {last} along {letter}: it must lie within {margin - 1} to "
                    f"{count - margin + 1}, clear of the absorbing layers and walls"
                )
        found.append(
            PlaneWave(
                keys.text("id", f"plane_wave{number}"),
                field,
                axis,
                direction[0] == "+",
                low,
                high,
                _wave(keys, path),
            )
        )
        keys.done()
    unique(zip(tables, (one.name for one in found), strict=True), (one.name for one in sources))
    return tuple(found)


def _receivers(tables: list[Keys], dimensions: int, fields: tuple[str, ...]) -> tuple[Receiver, ...]:
    found = []
    for number, keys in enumerate(tables, 1):
        name = keys.text("id", f"receiver{number}")
        position = keys.point("position", [dimensions])
        found.append(Receiver(name, position, read_components(keys, "fields", fields)))
        keys.done()
    unique(zip(tables, (one.name for one in found), strict=True))
    return tuple(found)


def _snapshots(keys: Keys, fields: tuple[str, ...], dt: float, steps: int) -> Snapshots:
    kept = read_components(keys, "fields", fields)
    default = max(1, steps // _FRAMES)
    interval = keys.number("interval", default * dt, above=0)
    keys.done()
    return Snapshots(kept, max(1, round(interval / dt)))


def _scan(keys: Keys, dimensions: int, spacing: Spacing, *, given: bool) -> Scan | None:
    if not given:
        return None
    step = keys.point("step", [dimensions])
    count = keys.whole("count", least=1, most=_POSITIONS_MOST)
    keys.done()
    if not any(step):
        raise keys.error("moves nothing", "step")
    found = Scan(step, count, whole_cells(step, spacing))
    if not any(found.cells):
        raise keys.error(
            f"{listed(step)} m moves nothing: it is rounded to whole cells, and half a cell of {text(spacing)} or less "
            "rounds to 0",
            "step",
        )
    return found
