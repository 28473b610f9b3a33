"""Plots of the stages of queries: averages, and timelines of some queries."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from headrace.profiles import SAMPLE, STAGES, Json
from headrace.report import style, svg
from headrace.tables import figure as figure_text

_QUERIES = 10
_WAY = SAMPLE[1:]


def _legend(figure: Figure, stages: Sequence[str]) -> None:
    patches = [Patch(color=style.STAGE_COLOURS[stage], label=stage.replace("_", " ")) for stage in stages]
    figure.legend(handles=patches, loc="outside upper left", ncols=len(stages), handlelength=0.9, columnspacing=1.2)


def _stack(axes: Axes, place: float, widths: dict[str, float], height: float) -> None:
    left = 0.0
    for stage, width in widths.items():
        axes.barh(place, width, left=left, height=height, color=style.STAGE_COLOURS[stage])
        left += width


def breakdown(entries: Sequence[Json]) -> str:
    """Mean time per stage at the best rate, a bar per rung: in microseconds, and as shares."""
    figure = svg.figure(0.27 * len(entries) + 1.1)
    left, right = figure.subplots(1, 2, sharey=True)
    for place, entry in enumerate(entries):
        times = {stage: entry["stages_us"][stage] for stage in STAGES}
        whole = sum(times.values())
        _stack(left, place, times, 0.66)
        _stack(right, place, {stage: time / whole * 100 for stage, time in times.items()}, 0.66)
        left.annotate(
            figure_text(whole),
            (whole, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=8,
        )
    left.set_yticks(range(len(entries)), [entry["rung"] for entry in entries], color=style.INK)
    left.invert_yaxis()
    left.set_xlabel("mean time per query, us")
    right.set_xlabel("share of it, %")
    right.set_xlim(0, 100)
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
    left.margins(x=0.1)
    _legend(figure, STAGES)
    return svg.inline(figure, "mean time in each stage, every rung")


def timelines(entries: Sequence[Json]) -> str:
    """Some sampled queries of each rung, one line per query, from its submission on."""
    figure, grid = svg.panels(len(entries), 1.75)
    for axes, entry in zip(grid, entries, strict=True):
        rows = entry["samples"][-_QUERIES:]
        for place, row in enumerate(rows):
            _stack(axes, place, dict(zip(_WAY, row[1:], strict=True)), 0.72)
        number = int(entry["rung"].split()[0])
        axes.set_title(entry["rung"], color=style.rung_colour(number), fontweight="bold")
        axes.set_yticks([])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    figure.supxlabel("time since the query was submitted, us", color=style.FAINT, fontsize=9)
    _legend(figure, _WAY)
    return svg.inline(figure, "sampled queries through the stages")
