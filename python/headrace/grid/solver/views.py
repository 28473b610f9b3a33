"""Draws a scene before a run with matplotlib: materials, layers, sheets, sources and receivers; and its traces."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace import outputs, tables
from headrace.errors import UsageError
from headrace.grid.solver.model import times
from headrace.grid.solver.painting import Laid, lay
from headrace.grid.solver.pictures import (
    PERIODIC,
    RECEIVER,
    SOURCE,
    STYLES,
    WALL,
    Plane,
    draw_radargram_in,
    mark_walls,
    unit_of,
)
from headrace.grid.solver.scene import Material, Scene
from headrace.grid.solver.shapes import AXES
from headrace.grid.solver.sheets import Sheet, Wire
from headrace.grid.solver.traces import Traces
from headrace.grid.spacing import text
from headrace.report.style import FAINT, INK, LINE

_FLAT = 2  # number of dimensions
_DPI = 120
_WIDTH, _PANEL = 9.0, 4.2  # inches, for a single cut and for each of several
_TRACES = 3.4  # inches
_GOOD_CONDUCTOR = 1e3  # S/m; drawn as metal
_AIR, _METAL = "#ffffff", "#3b4046"
# Ground is brown; the other colours differ from it and from each other.
_MEDIA = ("#d9c4a0", "#a9c5a4", "#a8c4dc", "#d7b3c2", "#c6bddb", "#e3d38b", "#9fc9c4", "#dcae8f", "#b9b9b0", "#8fb0d0")
_LISTED_MOST = 12  # materials in the legend
_PIXELS_MOST = 1600


@dataclass(frozen=True)
class Colours:
    """A colour for each material of a scene."""

    of: dict[str, str]

    @classmethod
    def for_scene(cls, materials: list[Material]) -> "Colours":
        """Air is white and metal dark; other materials have a colour each, reused from the first if there are many."""
        found, number = {}, 0
        for one in materials:
            if one.conductivity >= _GOOD_CONDUCTOR:
                found[one.name] = _METAL
            elif (one.permittivity, one.permeability, one.conductivity, one.poles) == (1.0, 1.0, 0.0, ()):
                found[one.name] = _AIR
            else:
                found[one.name] = _MEDIA[number % len(_MEDIA)]
                number += 1
        return cls(found)


def planes_of(scene: Scene) -> list[Plane]:
    """The cuts to draw: all of two dimensions, or three through the first source."""
    names = ("xy",) if scene.dimensions == _FLAT else ("xy", "xz", "yz")
    return [Plane.of(scene, name) for name in names]


def draw_scene(path: Path, scene: Scene, traces: Traces | None = None, key: tuple[str, str] | None = None) -> None:
    """Writes a scene as PNG or, depending on the file name, as SVG.

    Traces are drawn below it, if given: the field of `key` at one position, or the radargram of `key`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional, slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    planes, laid = planes_of(scene), lay(scene)
    colours = Colours.for_scene(laid.materials)
    heights = [_height(scene, planes)] + ([_TRACES] if traces else [])
    figure = Figure(figsize=(_WIDTH if len(planes) == 1 else 3 * _PANEL, sum(heights) + 1.3), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(heights), len(planes), height_ratios=heights)
    for number, plane in enumerate(planes):
        _draw_plane(figure.add_subplot(grid[0, number]), plane, laid, colours)
    _legend(figure, scene, laid, colours)
    figure.suptitle(_title(scene), fontsize="medium", color=INK)
    if traces and key:
        _draw_traces(figure, figure.add_subplot(grid[1, :]), traces, key)
    with outputs.writing(path) as written:
        figure.savefig(written, dpi=_DPI, format="svg" if path.suffix.lower() == ".svg" else "png")


def _height(scene: Scene, planes: list[Plane]) -> float:
    """Height of the cuts in inches."""
    width = _WIDTH if len(planes) == 1 else _PANEL
    ratio = max(scene.size[plane.axes[1]] / scene.size[plane.axes[0]] for plane in planes)
    return float(np.clip(width * 0.85 * ratio, 1.2, 2 * width))


def _title(scene: Scene) -> str:
    cells = " x ".join(f"{count:,}" for count in scene.shape)
    return (
        f"{scene.title}: {cells} cells of {text(scene.spacing)}, {scene.steps:,} steps of {tables.short_time(scene.dt)}"
    )


def _draw_plane(axes: Any, plane: Plane, laid: Laid, colours: Colours) -> None:  # noqa: ANN401 - matplotlib is optional
    from matplotlib.colors import to_rgb  # noqa: PLC0415 - optional, slow to import

    scene = plane.scene
    right, up = plane.axes
    table = np.array([to_rgb(colours.of[one.name]) for one in laid.materials])
    pixels = table[plane.cut(laid.cells, _PIXELS_MOST)].swapaxes(0, 1)
    extent = (0, scene.size[right], 0, scene.size[up])
    axes.imshow(pixels, origin="lower", extent=extent, interpolation="nearest")
    _draw_layers(axes, scene, right, up)
    _draw_thin(axes, plane, colours)
    _draw_places(axes, scene, right, up)
    mark_walls(axes, scene, right, up)
    axes.set_xlim(0, scene.size[right])
    axes.set_ylim(0, scene.size[up])
    axes.set_xlabel(f"{AXES[right]}, m", color=INK)
    axes.set_ylabel(f"{AXES[up]}, m", color=INK)
    axes.tick_params(colors=FAINT)
    if plane.across is not None:
        place = plane.index * scene.spacing[plane.across]
        axes.set_title(f"{AXES[plane.across]} = {place:.4g} m", fontsize="small", color=INK)


def _draw_layers(axes: Any, scene: Scene, right: int, up: int) -> None:  # noqa: ANN401
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - optional, slow to import

    wide, high = scene.size[right], scene.size[up]
    (left, far), (bottom, top) = (
        tuple(cells * scene.spacing[axis] for cells in scene.layers.at[axis]) for axis in (right, up)
    )
    for x, y, dx, dy in (
        (0, 0, left, high),
        (wide - far, 0, far, high),
        (0, 0, wide, bottom),
        (0, high - top, wide, top),
    ):
        if dx and dy:
            layer = Rectangle((x, y), dx, dy)
            layer.set(facecolor="none", edgecolor=FAINT, linewidth=0.0, hatch="////", alpha=0.35)
            axes.add_patch(layer)
    inner = Rectangle((left, bottom), wide - left - far, high - bottom - top)
    inner.set(fill=False, edgecolor=LINE, linewidth=0.8)
    axes.add_patch(inner)


def _thin_of(scene: Scene) -> Iterator[tuple[str, int, NDArray[np.int64]]]:
    """The edges of sheets and wires: the material, the axis along them, and their nodes."""
    for painted in scene.objects:
        if isinstance(painted.shape, Sheet | Wire):
            for along, nodes in painted.shape.edges(scene.shape, scene.spacing, scene.electric_axes).items():
                yield painted.along[along], along, nodes


def _draw_thin(axes: Any, plane: Plane, colours: Colours) -> None:  # noqa: ANN401
    """Draws sheets and wires in the plane as lines, those across it as dots; white ones have an outline."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - optional, slow to import

    scene = plane.scene
    right, up = plane.axes
    for material, along, nodes in _thin_of(scene):
        here = nodes if plane.across is None else nodes[nodes[:, plane.across] == plane.index]
        if len(here) == 0:
            continue
        colour = colours.of[material] if colours.of[material] != _AIR else FAINT
        starts = here[:, [right, up]] * np.array([scene.spacing[right], scene.spacing[up]])
        if along in (right, up):
            ends = starts.copy()
            ends[:, (right, up).index(along)] += scene.spacing[along]
            axes.add_collection(LineCollection(list(np.stack([starts, ends], axis=1)), colors=colour, linewidths=1.6))
        else:
            axes.scatter(starts[:, 0], starts[:, 1], marker="s", s=6, c=colour, edgecolors="none", zorder=2)


def _draw_places(axes: Any, scene: Scene, right: int, up: int) -> None:  # noqa: ANN401
    """Draws sources and receivers, and the range of their movement in a scan."""
    last = scene.moved(scene.scan.count - 1) if scene.scan else scene
    for kind, marker, colour in (("sources", "*", SOURCE), ("receivers", "v", RECEIVER)):
        places, ends = getattr(scene, kind), getattr(last, kind)
        for one, end in zip(places, ends, strict=True):
            (x, y), (to_x, to_y) = ([scene.placed(at.position)[axis] for axis in (right, up)] for at in (one, end))
            if (x, y) != (to_x, to_y):
                axes.annotate("", (to_x, to_y), (x, y), arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.0})
        columns = [[scene.placed(one.position)[axis] for one in places] for axis in (right, up)]
        axes.scatter(
            *columns, marker=marker, s=90 if marker == "*" else 52, c=colour, edgecolors="white", lw=0.6, zorder=3
        )
    for kind, colour, style in (("plane_waves", SOURCE, "--"), ("monitors", RECEIVER, ":")):
        for one in getattr(scene, kind):
            corners = [(scene.at(one.low)[axis], scene.at(one.high)[axis]) for axis in (right, up)]
            (x0, x1), (y0, y1) = corners
            axes.plot([x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0], color=colour, lw=1.4, ls=style)


def _legend(figure: Any, scene: Scene, laid: Laid, colours: Colours) -> None:  # noqa: ANN401
    """Explains colours and marks beside the picture."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - optional, slow to import
    from matplotlib.patches import Patch  # noqa: PLC0415

    used = {laid.materials[number].name for number in np.unique(laid.cells).tolist()}
    used |= {name for one in scene.objects for name in one.along}
    listed = [one for one in laid.materials if one.name in used]
    entries: list[Any] = [
        Patch(facecolor=colours.of[one.name], edgecolor=LINE, label=_described(one)) for one in listed[:_LISTED_MOST]
    ]
    if len(listed) > _LISTED_MOST:
        entries.append(Patch(facecolor="none", edgecolor="none", label=f"and {len(listed) - _LISTED_MOST} more"))
    if scene.cpml:
        entries.append(Patch(facecolor="none", edgecolor=FAINT, hatch="////", lw=0, label="absorbing layers"))
    for places, marker, colour, label in (
        (scene.sources, "*", SOURCE, "source"),
        (scene.receivers, "v", RECEIVER, "receiver"),
    ):
        if places:
            entries.append(
                Line2D(
                    [],
                    [],
                    marker=marker,
                    ls="",
                    color=colour,
                    markeredgecolor="white",
                    ms=12 if marker == "*" else 9,
                    label=label,
                )
            )
    if scene.plane_waves:
        entries.append(Line2D([], [], color=SOURCE, ls="--", label="box of a plane wave"))
    if scene.monitors:
        entries.append(Line2D([], [], color=RECEIVER, ls=":", label="monitor"))
    entries += [
        Line2D([], [], color=WALL, ls=STYLES[kind], lw=3, label=f"mirror, {kind} wall")
        for kind in dict.fromkeys(kind for kind in scene.symmetry if kind)
    ]
    if scene.periodic:
        entries.append(Line2D([], [], color=WALL, ls=STYLES[PERIODIC], lw=3, label="periodic wall"))
    columns = max(1, min(4 if scene.dimensions == _FLAT else 6, len(entries)))
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, fontsize="small", frameon=False)


def _described(one: Material) -> str:
    if one.conductivity >= _GOOD_CONDUCTOR:
        return one.name
    parts = [f"ε {one.permittivity:g}"]
    if one.permeability != 1:
        parts.append(f"µ {one.permeability:g}")
    if one.conductivity:
        parts.append(f"{one.conductivity:g} S/m")
    if one.poles:
        parts[0] = f"ε∞ {one.permittivity:g}"
        kinds = [type(pole).__name__ for pole in one.poles]
        parts += [f"{kind} x {kinds.count(kind)}" if kinds.count(kind) > 1 else kind for kind in dict.fromkeys(kinds)]
    return f"{one.name}: {', '.join(parts)}"


def _draw_traces(figure: Any, axes: Any, traces: Traces, key: tuple[str, str]) -> None:  # noqa: ANN401
    """Draws a radargram of several positions, or the traces of one."""
    if len(traces.positions) > 1:
        draw_radargram_in(figure, axes, traces, key)
        return
    unit, size = tables.time_unit(traces.steps * traces.scene.dt)
    for (name, component), values in traces.values.items():
        if component == key[1]:
            axes.plot(times(traces.scene, component, traces.steps) / size, values[0], lw=1.1, label=name)
    axes.set_xlabel(f"time, {unit}", color=INK)
    axes.set_ylabel(f"{key[1]}, {unit_of(key[1])}", color=INK)
    axes.tick_params(colors=FAINT)
    axes.grid(color=LINE, lw=0.6)
    axes.legend(fontsize="small", frameon=False)


def key_of(scene: Scene, receiver: str | None, component: str | None) -> tuple[str, str]:
    """The receiver and field to draw: the scene's main field and the first receiver that records it, unless named.

    Raises:
        UsageError: when no receiver records it.
    """
    component = component or scene.main_field
    found = [one.name for one in scene.receivers if component in one.fields and receiver in (None, one.name)]
    if not found:
        of = f"receiver '{receiver}'" if receiver else "receiver"
        raise UsageError(f"{scene.path}: there is no {of} that records {component}")
    return found[0], component
