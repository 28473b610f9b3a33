"""Draws the pictures of docs/ghosts.md and docs/grid.md: how a domain is cut, and when devices do what.

The pictures show real runs; the speed-up of several devices comes from docs/results.

Usage: .venv/bin/python scripts/grid_pictures.py FOLDER [DEVICE DEVICE...]

Timelines are drawn for the given devices, which should be otherwise idle GPUs: otherwise they show other work too.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headrace import outputs
from headrace.grid import Fdtd
from headrace.grid.solver import Layout, read_scene, timeline
from headrace.report import grid_plots, read, svg
from headrace.report.style import FAINT, INK

_GHOST, _BORDER, _INSIDE = "#e8c9a0", "#d98a3d", "#6f93c4"
_SHAPE, _CUT = (24, 16), (2, 2)
_RADAR = (8000, 8000)


def boxes(run: Fdtd) -> list[tuple[list[int], list[int]]]:
    """The first cell of each part, and the one after its last, as reported by the library."""
    found = []
    for _, words in run.parts:
        numbers = [int(number) for number in re.findall(r"\d+", words)]
        found.append((numbers[0:4:2], numbers[1:4:2]))
    return found


def colour(x: int, y: int, low: list[int], high: list[int], width: int) -> tuple[float, float, float]:
    """The colour of a cell as seen by the part from `low` to `high`."""
    if not (low[0] <= x < high[0] and low[1] <= y < high[1]):
        return to_rgb(_GHOST)
    near = any(
        (low[axis] > 0 and at < low[axis] + width) or (high[axis] < _SHAPE[axis] and at >= high[axis] - width)
        for axis, at in enumerate((x, y))
    )
    return to_rgb(_BORDER if near else _INSIDE)


def draw_parts(path: Path, width: int) -> None:
    """A small domain in four parts, drawn apart: what each owns, its border, and its ghosts of other parts."""
    run = Fdtd(_SHAPE, 1e-3, devices=["cpu:0"] * 4, cut=_CUT, redundant=width, cpml=0)
    samples = np.array([1.0, 2.0, 1.0])
    run.add_source("ez", (9, 9), samples)
    run.step(8)
    field = run.field("ez")
    limit = np.abs(field).max() * 0.6
    figure = Figure(figsize=(8.0, 5.6), layout="constrained")
    axes = figure.add_subplot()
    for number, (low, high) in enumerate(boxes(run)):
        apart = [(number % 2) * (2 * width + 2), (number // 2) * (2 * width + 2)]
        shown = [range(max(0, low[a] - width), min(_SHAPE[a], high[a] + width)) for a in (0, 1)]
        pixels = np.array([[colour(x, y, low, high, width) for x in shown[0]] for y in shown[1]])
        strength = np.clip(np.abs(field[np.ix_(*shown)].T) / limit, 0, 1)
        pixels *= 1 - 0.6 * strength[..., None]
        sides = [apart[a] + end for a in (0, 1) for end in (shown[a].start, shown[a].stop)]
        axes.imshow(pixels, extent=sides, origin="lower", interpolation="nearest")
        middle = [(low[a] + high[a]) / 2 + apart[a] for a in (0, 1)]
        axes.text(*middle, f"device {number}", ha="center", va="center", color="white", fontsize="large")
    for tone, what in ((_INSIDE, "interior"), (_BORDER, "border: sent to neighbours"), (_GHOST, "ghosts: copies")):
        axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=tone, label=what))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize="small")
    axes.set_xlim(-1, _SHAPE[0] + 4 * width + 3)
    axes.set_ylim(-1, _SHAPE[1] + 4 * width + 3)
    axes.set_axis_off()
    axes.set_title(
        f"ghosts {width} layer{'s' if width > 1 else ''} wide; dark: a wave that crosses the cuts", color=INK
    )
    save(figure, path)


def draw_redundant(path: Path) -> None:
    """The cells that a part computes in each step between two exchanges for R = 4, along a line across it."""
    figure = Figure(figsize=(8.0, 2.6), layout="constrained")
    axes = figure.add_subplot()
    cells, width = 12, 4
    for step in range(width):
        reach = width - 1 - step
        for at in range(-width, cells + width):
            owned = 0 <= at < cells
            computed = -reach <= at < cells + reach
            colour = (_INSIDE if owned else _BORDER) if computed else "#ffffff" if step else _GHOST
            axes.add_patch(Rectangle((at, -step), 1, 0.9, facecolor=colour, edgecolor=FAINT, linewidth=0.4))
        axes.text(-width - 0.3, 0.45 - step, f"step {step + 1}", ha="right", va="center", color=INK, fontsize="small")
    for colour, what in ((_INSIDE, "B: its own"), (_BORDER, "computed by two"), (_GHOST, "read only")):
        axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=colour, label=what))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize="small")
    axes.autoscale_view()
    axes.set_axis_off()
    save(figure, path)


def draw_timeline(path: Path, devices: tuple[str, ...], redundant: int) -> None:
    """An empty domain with the settings of the example, cut across its slowest axis."""
    scene = replace(read_scene(Path("examples/radar.toml")), shape=_RADAR, sources=(), receivers=(), objects=())
    layout = Layout(devices, cut=(1, len(devices)), redundant=redundant)
    spans = timeline.record(scene, layout, cycles=3)
    took, beside = timeline.hidden(spans)
    what = f"R = {redundant}: {beside / took:.0%} of the exchange lies beside computing"
    timeline.draw(path, what, spans, layout.devices)


def draw_scaling(path: Path) -> None:
    """Every grid in the results that was measured on one device and on several; later files take precedence."""
    rows = [row for file in sorted(Path("docs/results").glob("grid.*.json")) for row in read(file)["rows"]]
    found = grid_plots.scalings(rows)
    if not found:
        return
    with svg.styled():
        outputs.write(path, svg.standalone(grid_plots.scaling(found)))


def save(figure: Figure, path: Path) -> None:
    """Writes it as SVG."""
    FigureCanvasSVG(figure)
    with outputs.writing(path) as file:
        figure.savefig(file, format="svg")


def main() -> None:
    """Draws all."""
    if len(sys.argv) in {1, 3}:
        sys.exit("usage: grid_pictures.py FOLDER [DEVICE DEVICE...]")
    folder, devices = Path(sys.argv[1]), tuple(sys.argv[2:])
    folder.mkdir(exist_ok=True)
    draw_parts(folder / "ghosts.svg", 1)
    draw_redundant(folder / "redundant.svg")
    draw_scaling(folder / "scaling.svg")
    for redundant in (1, 4) if devices else ():
        draw_timeline(folder / f"timeline-r{redundant}.svg", devices, redundant)


if __name__ == "__main__":
    main()
