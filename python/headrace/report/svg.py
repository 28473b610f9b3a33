"""Figures as SVG within a page: text stays text, colours are the page's variables, ids are unique."""

import io
import re
from itertools import count
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from headrace.report import style

WIDTH = 11.0  # inches; the page scales figures
_PANELS = 4  # small panels per row

_PARAMETERS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "headrace",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": style.LINE,
    "axes.labelcolor": style.FAINT,
    "axes.titlecolor": style.INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": style.LINE,
    "grid.linewidth": 0.5,
    "text.color": style.INK,
    "xtick.color": style.LINE,
    "ytick.color": style.LINE,
    "xtick.labelcolor": style.FAINT,
    "ytick.labelcolor": style.FAINT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
}
_numbers = count(1)


def styled() -> Any:  # noqa: ANN401 - a context of matplotlib's
    """Context in which figures have the report's style."""
    return mpl.rc_context(_PARAMETERS)


def figure(height: float) -> Figure:
    """An empty figure with the width of the page."""
    made = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasSVG(made)
    return made


def panels(
    number: int,
    height: float,
    columns: int = _PANELS,
    **options: Any,  # noqa: ANN401
) -> tuple[Figure, list[Axes]]:
    """Small axes side by side, without unused ones."""
    rows = (number + columns - 1) // columns
    made = figure(height * rows + 0.3)
    grid = made.subplots(rows, columns, squeeze=False, **options)
    flat = [axes for row in grid for axes in row]
    for axes in flat[number:]:
        axes.set_visible(False)
    return made, flat[:number]


def standalone(drawn: Figure) -> str:
    """The figure as a separate file, in the colours of a light page."""
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", facecolor=style.CARD, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def inline(drawn: Figure, label: str) -> str:
    """The figure as an element of a page."""
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\s(?:xmlns|xmlns:xlink|version)="[^"]*"', "", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    prefix = f"f{next(_numbers)}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = text.replace("url(#", f"url(#{prefix}").replace('xlink:href="#', f'href="#{prefix}')
    for colour, variable in style.variables().items():
        text = text.replace(colour, variable)
    text = re.sub(r"\s*\n\s*", "\n", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
