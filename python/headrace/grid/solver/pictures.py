"""Pictures of a field, animations, and radargrams, drawn by matplotlib."""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import outputs, tables
from headrace.errors import UsageError, how_to_install
from headrace.grid.solver.model import Array, paint
from headrace.grid.solver.scene import ELECTRIC, MAGNETIC, Scene
from headrace.grid.solver.shapes import AXES
from headrace.grid.solver.traces import Traces
from headrace.report.style import FAINT, INK

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_GOOD_CONDUCTOR = 1e3  # S/m; drawn as metal
_MOST_PIXELS = 1600
_FRAME_PIXELS = 640
_DPI = 120
_COLOURS = 256
_MARKER_ROWS = 8
FRAMES_PER_SECOND = 15
_SHOWN = 99.0  # percentile of the field's strength that gets the full colour: the field near a source is far stronger
SOURCE, RECEIVER, WALL = "#b3541e", "#1d7a4c", "#5b3f8f"
PERIODIC = "periodic"
STYLES = {MAGNETIC: "--", ELECTRIC: "-", PERIODIC: ":"}
"""Lines of walls that are planes of symmetry, or periodic."""


@dataclass(frozen=True)
class Frame:
    """A cut through a field at one time."""

    seconds: float
    values: Array


@dataclass(frozen=True)
class Plane:
    """The cut to draw: all of two dimensions, or across an axis through the first source of three."""

    scene: Scene
    across: int | None
    index: int

    @classmethod
    def of(cls, scene: Scene, name: str) -> "Plane":
        """The plane with that name, "xy", "xz" or "yz"."""
        if scene.dimensions == 2:  # noqa: PLR2004
            return cls(scene, None, 0)
        across = next(axis for axis, letter in enumerate(AXES) if letter not in name)
        middle = tuple(count // 2 for count in scene.shape)
        cell = scene.cell(scene.sources[0].position) if scene.sources else middle
        return cls(scene, across, cell[across])

    @property
    def axes(self) -> tuple[int, int]:
        """The axes to the right and upwards."""
        first, second = [axis for axis in range(self.scene.dimensions) if axis != self.across]
        return first, second

    def cut(self, values: Array, pixels: int) -> Array:
        """The values in the plane, thinned to at most this many pixels."""
        flat = values if self.across is None else np.take(values, self.index, axis=self.across)
        stride = -(-max(flat.shape) // pixels)
        return flat[::stride, ::stride].copy()

    def frame(self, values: Array, seconds: float, *, moving: bool = False) -> Frame:
        """A frame of a field."""
        return Frame(seconds, self.cut(values, _FRAME_PIXELS if moving else _MOST_PIXELS))


def check(path: Path) -> None:
    """Checks that a picture can be written to this path, before the work for it starts.

    Raises:
        UsageError: when matplotlib is not installed.
        SystemError: when the file cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"pictures need matplotlib: {how_to_install('matplotlib', 'pillow')}")
    outputs.check(path)


def _ground(plane: Plane, shape: tuple[int, ...]) -> Array:
    """The materials as greys: air is white, a higher index is darker, metal is darkest."""
    cells, materials = paint(plane.scene)
    cut = plane.cut(cells, max(shape))
    index = np.array([(one.permittivity * one.permeability) ** 0.5 for one in materials])
    metal = np.array([one.conductivity >= _GOOD_CONDUCTOR for one in materials])
    most = max(index[np.unique(cells)].max(), 2.0)
    grey = 1 - 0.28 * (index - 1).clip(0) / (most - 1)
    grey[metal] = 0.35
    return np.asarray(grey[cut])


def _blend(ground: Array, values: Array, limit: float) -> Array:
    """Pixels from the top left: red for positive and blue for negative fields, over the ground."""
    share = np.clip(np.nan_to_num(values) / limit, -1, 1)[..., None]
    strength = np.abs(share) ** 0.7
    colour = np.where(share > 0, [0.80, 0.10, 0.12], [0.08, 0.30, 0.75])
    mixed = ground[..., None] * (1 - strength) + colour * strength
    return np.asarray(np.swapaxes(mixed * 255, 0, 1).round(), dtype=np.uint8)


def _limit(frames: Sequence[Frame]) -> float:
    """The strength with the full colour in all frames."""
    strengths = np.concatenate([np.abs(frame.values[np.isfinite(frame.values)]).ravel() for frame in frames])
    strengths = strengths[strengths > strengths.max(initial=0) * 1e-4]
    return float(np.percentile(strengths, _SHOWN)) if strengths.size else 1.0


def mark_walls(axes: Any, scene: Scene, right: int, up: int) -> list[str]:  # noqa: ANN401 - matplotlib is optional
    """Draws the walls beyond which the scene continues, as its mirror image or periodically; returns their kinds."""
    shown = [(axis, 0.0, kind) for axis, kind in enumerate(scene.symmetry) if kind and axis in (right, up)]
    shown += [(axis, at, PERIODIC) for axis in scene.periodic if axis in (right, up) for at in (0.0, scene.size[axis])]
    for axis, at, kind in shown:
        ends = ([at, at], [0, scene.size[up]]) if axis == right else ([0, scene.size[right]], [at, at])
        axes.plot(*ends, color=WALL, lw=4, ls=STYLES[kind], solid_capstyle="butt", clip_on=False, zorder=4)
    return [kind for _, _, kind in shown]


def unit_of(field: str) -> str:
    """The unit of a component."""
    return "V/m" if field.startswith("e") else "A/m"


def _scale() -> Array:
    """Colours of a field over air, from the strongest negative value to the strongest positive one."""
    shares = np.linspace(-1, 1, _COLOURS)
    return np.asarray(_blend(np.ones((_COLOURS, 1)), shares[:, None], 1.0)[0])


def _colour_bar(figure: Any, axes: Any, colours: Array, limit: float, label: str) -> None:  # noqa: ANN401 - optional
    """A colour bar to the right of the axes; stronger fields have the colours of its ends."""
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - optional, slow to import
    from matplotlib.colors import ListedColormap, Normalize  # noqa: PLC0415

    shown = ScalarMappable(Normalize(-limit, limit), ListedColormap(colours))
    bar = figure.colorbar(shown, ax=axes, extend="both", shrink=0.9, pad=0.02)
    bar.set_label(label, color=INK)
    bar.ax.tick_params(colors=FAINT)


class _Canvas:
    """A figure of a scene whose field can be changed."""

    def __init__(self, plane: Plane, field: str, first: Frame, limit: float, width: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional, slow to import
        from matplotlib.figure import Figure  # noqa: PLC0415

        scene = plane.scene
        right, up = plane.axes
        ratio = scene.shape[up] / scene.shape[right] * (scene.spacing[up] / scene.spacing[right])
        self._field, self._limit, self._title = field, limit, scene.title
        self._ground = _ground(plane, first.values.shape)
        self.figure = Figure(figsize=(width, min(3 * width, width * 0.88 * ratio + 1.0)), layout="constrained")
        FigureCanvasAgg(self.figure)
        self._axes = self.figure.add_subplot()
        extent = (0, scene.size[right], 0, scene.size[up])
        self._image = self._axes.imshow(self._pixels(first), origin="lower", extent=extent, interpolation="nearest")
        self._axes.set_xlabel(f"{AXES[right]}, m", color=INK)
        self._axes.set_ylabel(f"{AXES[up]}, m", color=INK)
        self._axes.tick_params(colors=FAINT)
        _colour_bar(self.figure, self._axes, np.asarray(_scale()) / 255, limit, f"{field}, {unit_of(field)}")
        self._mark(plane)
        self.show(first)

    def _pixels(self, frame: Frame) -> Array:
        return _blend(self._ground, frame.values, self._limit)

    def _mark(self, plane: Plane) -> None:
        right, up = plane.axes
        mark_walls(self._axes, plane.scene, right, up)
        for places, marker, colour, label in (
            (plane.scene.sources, "*", SOURCE, "source"),
            (plane.scene.receivers, "v", RECEIVER, "receiver"),
        ):
            if places:
                x, y = ([plane.scene.placed(one.position)[axis] for one in places] for axis in (right, up))
                self._axes.scatter(x, y, marker=marker, s=46, c=colour, edgecolors="white", lw=0.6, label=label)
        if plane.scene.sources or plane.scene.receivers:  # beside the picture, so that it hides nothing
            self.figure.legend(loc="outside lower right", ncols=2, fontsize="small", frameon=False)

    def settle(self) -> None:
        """Fixes the layout, which makes drawing faster."""
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")

    def show(self, frame: Frame) -> None:
        """Shows another frame."""
        self._image.set_data(self._pixels(frame))
        title = f"{self._title}: {self._field} after {tables.short_time(frame.seconds)}"
        self._axes.set_title(title, fontsize="medium", color=INK)


def draw(path: Path, plane: Plane, field: str, frame: Frame) -> None:
    """Writes one frame as PNG."""
    canvas = _Canvas(plane, field, frame, _limit([frame]), 9.0)
    with outputs.writing(path) as written:
        canvas.figure.savefig(written, dpi=_DPI, format="png")


def animate(path: Path, plane: Plane, field: str, frames: Sequence[Frame]) -> None:
    """Writes frames as a repeating GIF, with the same colours throughout.

    Raises:
        UsageError: when there are no frames.
    """
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    images = [Image.fromarray(pixels) for pixels in drawn(path, plane, field, frames)]
    palette = _palette(images)
    # No dithering and a single palette, so that static parts keep their colours in all frames.
    pictures = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    with outputs.writing(path) as written:
        pictures[0].save(
            written,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=1000 // FRAMES_PER_SECOND,
            loop=0,
        )


def _palette(images: "Sequence[Picture]") -> "Picture":
    """Colours that fit all images: those of some of them side by side, plus as many pixels of markers."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    some = [images[round(i * (len(images) - 1) / 3)] for i in range(min(4, len(images)))]
    width, height = some[0].size
    sheet = Image.new("RGB", (width * len(some), height + _MARKER_ROWS))
    for place, image in enumerate(some):
        sheet.paste(image, (place * width, 0))
    for number, colour in enumerate((SOURCE, RECEIVER)):
        sheet.paste(colour, (number * sheet.width // 2, height, (number + 1) * sheet.width // 2, sheet.height))
    return sheet.quantize(256, dither=Image.Dither.NONE)


def drawn(path: Path, plane: Plane, field: str, frames: Sequence[Frame]) -> Iterator[Array]:
    """Frames as pixels, rows from the top, with the same colours throughout.

    Raises:
        UsageError: when there are no frames for the file.
    """
    if not frames:
        raise UsageError(f"no snapshots were taken, so there is nothing to make {path} of")
    canvas = _Canvas(plane, field, frames[0], _limit(frames), 7.0)
    canvas.settle()
    for frame in frames:
        canvas.show(frame)
        agg: Any = canvas.figure.canvas
        agg.draw()
        yield np.ascontiguousarray(np.asarray(agg.buffer_rgba())[..., :3])


def _way(scene: Scene, receiver: str) -> tuple[int, float, float]:
    """The axis along which a receiver moves most in a scan, its start, and its step per position."""
    place = scene.placed(next(one for one in scene.receivers if one.name == receiver).position)
    steps = scene.at(scene.scan.cells) if scene.scan else (1.0,)
    axis = max(range(len(steps)), key=lambda number: abs(steps[number]))
    return axis, place[axis], steps[axis]


def draw_radargram(path: Path, traces: Traces, key: tuple[str, str]) -> None:
    """Writes a B-scan as PNG: positions to the right, time downwards, without the mean of all positions."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional, slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    draw_radargram_in(figure, figure.add_subplot(), traces, key)
    with outputs.writing(path) as written:
        figure.savefig(written, dpi=_DPI, format="png")


def draw_radargram_in(figure: Any, axes: Any, traces: Traces, key: tuple[str, str]) -> None:  # noqa: ANN401 - optional
    """The same as part of a figure."""
    scene, values = traces.scene, traces.stacked(key).astype(np.float64)
    several = len(values) > 2  # noqa: PLR2004 - of two, nothing but their difference would be left
    if several:
        values -= values.mean(axis=0)
    limit = float(np.percentile(np.abs(values), 99.5)) or 1.0
    first, last = traces.positions[0], traces.positions[-1]
    axis, start, step = _way(scene, key[0])
    shown = np.full((last - first + 1, traces.steps), np.nan)  # blank for missing positions
    shown[np.array(traces.positions) - first] = values
    if step < 0:
        shown = shown[::-1]
    unit, size = tables.time_unit(traces.steps * scene.dt)
    ends = sorted((start + first * step, start + last * step))
    extent = (ends[0] - abs(step) / 2, ends[1] + abs(step) / 2, traces.steps * scene.dt / size, 0.0)
    axes.imshow(shown.T, cmap="gray", vmin=-limit, vmax=limit, extent=extent, aspect="auto", interpolation="nearest")
    greys = np.repeat(np.linspace(0, 1, _COLOURS)[:, None], 3, axis=1)
    _colour_bar(figure, axes, greys, limit, f"{key[1]}, {unit_of(key[1])}")
    axes.set_xlabel(f"{AXES[axis]} of {key[0]}, m", color=INK)
    axes.set_ylabel(f"time, {unit}", color=INK)
    axes.tick_params(colors=FAINT)
    less = ", less the mean of all positions" if several else ""
    axes.set_title(f"{scene.title}: {key[1]} at {key[0]}{less}", fontsize="medium", color=INK)
