"""Timelines: bars over time, a row for whoever does the work, drawn as a picture."""

import importlib.util
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.errors import UsageError, how_to_install
from headrace.report.style import FAINT, INK

FORMATS = (".svg", ".png")
_MICROSECONDS_BELOW = 1e-2  # s
_EDGED_SHARE = 4e-3  # of the whole time: some pixels

Interval = tuple[float, float]


class Bar(NamedTuple):
    """What was done in a row, from when until when, in seconds."""

    row: int
    work: str
    begin: float
    end: float


def check(path: Path) -> None:
    """Whether a timeline can be drawn there, before what it shows is done.

    Raises:
        UsageError: for another format, or without matplotlib.
    """
    if path.suffix not in FORMATS:
        raise UsageError(f"{path}: a timeline is drawn as {' or '.join(FORMATS)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"pictures need matplotlib: {how_to_install('matplotlib')}")


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same times, in order, with none twice."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Seconds that any of them covers."""
    return sum(end - begin for begin, end in union(intervals))


def shared(ones: Iterable[Interval], others: Iterable[Interval]) -> float:
    """Seconds that some of both cover."""
    others = union(others)
    return sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in union(ones) for first, last in others)


def render(
    form: str, title: str, rows: Sequence[str], bars: Sequence[Bar], colours: Mapping[str, str], clock: str
) -> bytes:
    """The picture, as .svg or .png.

    Args:
        form: one of FORMATS.
        title: above it.
        rows: their names, from the top.
        bars: of these rows; one above another in a row hides it.
        colours: of each work, in the order of the legend.
        clock: what the times are by, behind their unit.
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
            # A white edge parts neighbours, and would hide what is no wider than it.
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
