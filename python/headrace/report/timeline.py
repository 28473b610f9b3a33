"""Timelines drawn as a picture: bars over time, a row per worker."""

import importlib.util
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.errors import UsageError, how_to_install
from headrace.report.style import FAINT, INK

FORMATS = (".svg", ".png")
_MICROSECONDS_BELOW = 1e-2  # seconds
_EDGED_SHARE = 4e-3  # of the total time: some pixels

Interval = tuple[float, float]


class Bar(NamedTuple):
    """Work done in a row, with begin and end in seconds."""

    row: int
    work: str
    begin: float
    end: float


def check(path: Path) -> None:
    """Checks that a timeline can be drawn to this path, before the recorded work starts.

    Raises:
        UsageError: for another format, or without matplotlib.
    """
    if path.suffix not in FORMATS:
        raise UsageError(f"{path}: a timeline is drawn as {' or '.join(FORMATS)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"pictures need matplotlib: {how_to_install('matplotlib')}")


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same times in order, without overlap."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Seconds covered by any interval."""
    return sum(end - begin for begin, end in union(intervals))


def shared(ones: Iterable[Interval], others: Iterable[Interval]) -> float:
    """Seconds covered by both."""
    others = union(others)
    return sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in union(ones) for first, last in others)


def render(
    form: str, title: str, rows: Sequence[str], bars: Sequence[Bar], colours: Mapping[str, str], clock: str
) -> bytes:
    """The picture as .svg or .png.

    Args:
        form: one of FORMATS.
        title: heading.
        rows: names of the rows, from the top.
        bars: bars of these rows; in a row, later ones hide earlier ones.
        colours: colour of each kind of work, in the order of the legend.
        clock: the clock of the times, shown after their unit.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional, slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    longest = max((bar.end for bar in bars), default=0.0)
    unit, name = (1e6, "us") if longest < _MICROSECONDS_BELOW else (1e3, "ms")
    figure = Figure(figsize=(9.0, 1.5 + 0.4 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for row in range(len(rows)):
        for work, colour in colours.items():
            spans = [
                (bar.begin * unit, (bar.end - bar.begin) * unit) for bar in bars if (bar.row, bar.work) == (row, work)
            ]
            # A white edge separates neighbouring bars, but would hide bars no wider than itself.
            edges = ["white" if span[1] > _EDGED_SHARE * longest * unit else colour for span in spans]
            axes.broken_barh(spans, (row - 0.4, 0.8), facecolors=colour, edgecolors=edges, linewidth=0.5)
    axes.set_yticks(range(len(rows)), rows, color=INK, fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, longest * unit * 1.01 or 1)
    axes.set_xlabel(f"{name}{clock}", color=INK)
    axes.tick_params(colors=FAINT)
    axes.set_title(title, fontsize="medium", color=INK)
    there = [work for work in colours if any(bar.work == work for bar in bars)]
    patches = [Patch(color=colours[work], label=work) for work in there]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False)
    written = io.BytesIO()
    figure.savefig(written, dpi=120, format=form[1:])
    return written.getvalue()
