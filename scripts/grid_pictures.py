"""Draws the pictures of docs/ghosts.md: how a domain is cut, and what devices do when. What it draws, it has run.

Usage: .venv/bin/python scripts/grid_pictures.py [FOLDER]   (docs/pictures if not given)
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headrace.grid import Fdtd
from headrace.grid.solver import Layout, read_scene, timeline
from headrace.report.style import FAINT, INK

_GHOST, _BORDER, _INSIDE = "#e8c9a0", "#d98a3d", "#6f93c4"
_SHAPE, _CUT = (24, 16), (2, 2)
_RADAR = (2000, 1000)


def boxes(run: Fdtd) -> list[tuple[list[int], list[int]]]:
    """The first cell of each part, and that behind its last, as the library says them."""
    found = []
    for _, words in run.parts:
        numbers = [int(number) for number in re.findall(r"\d+", words)]
        found.append((numbers[0:4:2], numbers[1:4:2]))
    return found


def draw_parts(path: Path, width: int) -> None:
    """A small domain in four parts, pulled apart: what each owns, its border, and the ghosts it keeps of others."""
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
        for x in range(low[0] - width, high[0] + width):
            for y in range(low[1] - width, high[1] + width):
                if not (0 <= x < _SHAPE[0] and 0 <= y < _SHAPE[1]):
                    continue
                owned = low[0] <= x < high[0] and low[1] <= y < high[1]
                strength = float(np.clip(abs(field[x, y]) / limit, 0, 1))
                near = any(
                    (0 < low[a] and at < low[a] + width) or (high[a] < _SHAPE[a] and at >= high[a] - width)
                    for a, at in enumerate((x, y))
                )
                colour = (_BORDER if near else _INSIDE) if owned else _GHOST
                place = (x + apart[0], y + apart[1])
                axes.add_patch(Rectangle(place, 1, 1, facecolor=colour, edgecolor="white", linewidth=0.6))
                axes.add_patch(Rectangle(place, 1, 1, facecolor="black", alpha=0.6 * strength, linewidth=0))
        middle = [(low[a] + high[a]) / 2 + apart[a] for a in (0, 1)]
        axes.text(*middle, f"device {number}", ha="center", va="center", color="white", fontsize="large")
    for colour, what in ((_INSIDE, "interior"), (_BORDER, "border: sent to neighbours"), (_GHOST, "ghosts: copies")):
        axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=colour, label=what))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize="small")
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_axis_off()
    axes.set_title(f"ghosts {width} layer{'s' if width > 1 else ''} wide; dark: a wave that crosses the cuts", color=INK)
    save(figure, path)


def draw_redundant(path: Path) -> None:
    """What a part computes in each step between two exchanges, for R = 4, along a line across it."""
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


def draw_timeline(path: Path, redundant: int) -> None:
    """The example of a radar over two devices."""
    scene = replace(read_scene(Path("examples/radar.toml")), shape=_RADAR, sources=(), receivers=(), objects=())
    layout = Layout(devices=("cpu:0", "cpu:1"), cut=(1, 2), redundant=redundant)
    spans = timeline.record(scene, layout, cycles=3)
    took, beside = timeline.hidden(spans)
    what = f"R = {redundant}: {beside / took:.0%} of the exchange lies beside computing"
    timeline.draw(path, what, spans, layout.devices)


def save(figure: Figure, path: Path) -> None:
    """Writes it as SVG."""
    FigureCanvasSVG(figure)
    figure.savefig(path, format="svg")


def main() -> None:
    """Draws all."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    folder.mkdir(exist_ok=True)
    draw_parts(folder / "ghosts.svg", 1)
    draw_redundant(folder / "redundant.svg")
    draw_timeline(folder / "timeline-r1.svg", 1)
    draw_timeline(folder / "timeline-r4.svg", 4)


if __name__ == "__main__":
    main()
