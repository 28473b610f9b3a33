"""Plots of loads: latency and throughput by incoming rate, throughput per rung, batch sizes."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from headrace.profiles import Json
from headrace.report import style, svg
from headrace.report.curves import INCOMING, MEAN, MEASURED, P50, P99, Curve
from headrace.tables import micro, short_rate

_ROOFS = {"compute": "compute", "link_in": "link in", "link_out": "link out"}
_DOT_WIDE, _DOT_TALL = 0.021, 0.062  # size of a numbered dot, as shares of the axes
_SHIFTS = ((0, 0), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, -1), (0, -2), (1, -2), (-1, -2), (2, -1), (-2, -1), (0, -3))
_PANEL_TICKS = 4
_FEW_DECADES = 300.0
_CLOSE = 10.0  # labels of roofs closer than this would overlap


def _rates(axis: Any) -> None:  # noqa: ANN401
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_rate(value)))


def _times(axis: Any) -> None:  # noqa: ANN401
    axis.set_major_formatter(FuncFormatter(lambda value, _: micro(value)))


def _log(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    for wanted, axis, scale in ((x, axes.xaxis, axes.set_xscale), (y, axes.yaxis, axes.set_yscale)):
        if wanted:
            scale("log")
            axis.set_major_locator(LogLocator(numticks=12))
            axis.set_minor_locator(NullLocator())


def _fine_ticks(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Also labels 2 and 5 on a logarithmic axis with few decades."""
    for wanted, axis, limits in ((x, axes.xaxis, axes.get_xlim()), (y, axes.yaxis, axes.get_ylim())):
        if wanted and limits[1] / limits[0] < _FEW_DECADES:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))


def latency_overview(curves: Sequence[Curve], bound_us: float) -> str:
    """p99 by incoming throughput, every rung in one plot; the number of a rung marks its best load."""
    figure = svg.figure(4.6)
    axes = figure.subplots()
    _log(axes, x=True, y=True)
    for one in curves:
        colour = style.rung_colour(one.number)
        axes.plot(one.column(INCOMING), one.column(P99), color=colour, marker="o", markersize=2.5)
    axes.axhline(bound_us, color=style.BOUND, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"bound {micro(bound_us)}",
        (0, bound_us),
        xycoords=("axes fraction", "data"),
        xytext=(4, 3),
        textcoords="offset points",
        color=style.BOUND,
        fontsize=8,
    )
    highest = max(max(one.column(P99)) for one in curves)
    axes.set_ylim(top=min(highest * 1.6, bound_us * 30))
    _number_rungs(axes, curves)
    axes.set_xlabel("incoming throughput, queries/s")
    axes.set_ylabel("p99 latency")
    _fine_ticks(axes, x=True, y=True)
    _rates(axes.xaxis)
    _times(axes.yaxis)
    return svg.inline(figure, "p99 latency against incoming throughput, every rung")


def _number_rungs(axes: Axes, curves: Sequence[Curve]) -> None:
    """Puts a dot with the rung's number at its best load; if dots would overlap, moves the later one and links it."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(left, right)
    wide, tall = math.log(right / left), math.log(high / low)
    taken: list[tuple[float, float]] = []  # as shares of the axes
    for one in sorted((one for one in curves if one.best), key=lambda one: one.best[INCOMING] if one.best else 0.0):
        assert one.best is not None
        colour = style.rung_colour(one.number)
        x, y = math.log(one.best[INCOMING] / left) / wide, math.log(one.best[P99] / low) / tall
        shifts = [(dx * _DOT_WIDE, dy * _DOT_TALL) for dx, dy in _SHIFTS]
        dx, dy = next(
            (
                (dx, dy)
                for dx, dy in shifts
                if all(abs(x + dx - a) >= _DOT_WIDE or abs(y + dy - b) >= _DOT_TALL for a, b in taken)
            ),
            shifts[-1],
        )
        taken.append((x + dx, y + dy))
        place = left * math.exp((x + dx) * wide), low * math.exp((y + dy) * tall)
        if dx or dy:
            line = [one.best[INCOMING], place[0]], [one.best[P99], place[1]]
            axes.plot(*line, color=colour, linewidth=0.8, marker="o", markevery=[0], markersize=3, zorder=3)
        axes.plot(*place, marker="o", markersize=11, color=colour, zorder=3)
        axes.annotate(str(one.number), place, ha="center", va="center_baseline", fontsize=7, color=style.CARD, zorder=4)


def _panel(axes: Axes, one: Curve) -> None:
    axes.set_title(f"{one.number} {one.name}", color=style.rung_colour(one.number), fontweight="bold")
    axes.xaxis.set_major_locator(MaxNLocator(_PANEL_TICKS))
    axes.set_xlim(0, max([*one.column(INCOMING), *(load[INCOMING] for load in one.given_up[:1])]) * 1.08)
    _rates(axes.xaxis)


def latency_panels(curves: Sequence[Curve], bound_us: float) -> str:
    """Mean, p50 and p99 by incoming throughput, one plot per rung."""
    figure, grid = svg.panels(len(curves), 1.9, sharey=True)
    lines: tuple[tuple[int, str, Any, float], ...] = (
        (P99, "p99", "-", 1.6),
        (MEAN, "mean", "--", 1.2),
        (P50, "p50", ":", 1.4),
    )
    for axes, one in zip(grid, curves, strict=True):
        _log(axes, y=True)
        _panel(axes, one)
        colour = style.rung_colour(one.number)
        for column, name, dashes, width in lines:
            axes.plot(
                one.column(INCOMING),
                one.column(column),
                color=colour,
                linestyle=dashes,
                linewidth=width,
                label=name,
                marker="o" if column == P99 else "",
                markersize=2.5,
            )
        axes.axhline(bound_us, color=style.BOUND, linewidth=0.8, linestyle=(0, (4, 3)))
        _times(axes.yaxis)
    highest = max(max(one.column(P99)) for one in curves)
    grid[0].set_ylim(top=min(highest * 1.6, bound_us * 30))
    _fine_ticks(grid[0], y=True)
    handles = [
        Line2D([], [], color=style.FAINT, linestyle=dashes, linewidth=width, label=name)
        for _, name, dashes, width in lines
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, labelcolor=style.INK)
    figure.supxlabel("incoming throughput, queries/s", color=style.FAINT, fontsize=9)
    figure.supylabel("latency", color=style.FAINT, fontsize=9)
    return svg.inline(figure, "mean, p50 and p99 latency against incoming throughput, one plot per rung")


def throughput_panels(curves: Sequence[Curve]) -> str:
    """Measured by incoming throughput, one plot per rung: off the diagonal, the rung no longer keeps up."""
    figure, grid = svg.panels(len(curves), 1.9)
    for axes, one in zip(grid, curves, strict=True):
        _panel(axes, one)
        colour = style.rung_colour(one.number)
        right = axes.get_xlim()[1]
        axes.plot([0, right], [0, right], color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.plot(one.column(INCOMING), one.column(MEASURED), color=colour, marker="o", markersize=2.5)
        shown = [load for load in one.given_up if load[INCOMING] <= right]
        axes.plot(
            [load[INCOMING] for load in shown],
            [load[MEASURED] for load in shown],
            color=colour,
            marker="o",
            markersize=3.5,
            markerfacecolor="none",
            linestyle="",
        )
        if one.best:
            axes.plot(one.best[INCOMING], one.best[MEASURED], marker="o", markersize=6, color=colour)
        axes.set_ylim(0, max([right, *(1.05 * rate for rate in one.column(MEASURED))]))
        axes.yaxis.set_major_locator(MaxNLocator(_PANEL_TICKS))
        _rates(axes.yaxis)
    figure.supxlabel("incoming throughput, queries/s", color=style.FAINT, fontsize=9)
    figure.supylabel("measured throughput, queries/s", color=style.FAINT, fontsize=9)
    return svg.inline(figure, "measured against incoming throughput, one plot per rung")


def _roof_lines(axes: Axes, roofs: Json, generators: int) -> None:
    found = {name: roofs[key] for key, name in _ROOFS.items()}
    found[f"generator, {generators} thread{'s' if generators > 1 else ''}"] = roofs["generator"] * generators
    before, level = 0.0, 0
    for name, value in sorted(found.items(), key=lambda item: item[1]):
        level = level + 1 if value < before * _CLOSE else 0
        before = value
        axes.axvline(value, color=style.BOUND, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{name} {short_rate(value)} ",
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 10 * level),
            textcoords="offset points",
            ha="right",
            color=style.BOUND,
            fontsize=8,
            annotation_clip=False,
        )


def throughput_bars(entries: Sequence[Json], single: Sequence[Json], roofs: Json) -> str:
    """The best rate of each rung on a logarithmic scale, with roofs as lines; a diamond marks one thread's rate."""
    found = [entry for entry in entries if entry.get("load")]
    alone = {entry["rung"]: entry["load"]["measured_per_second"] for entry in single if entry.get("load")}
    figure = svg.figure(0.31 * len(found) + 1.1)
    axes = figure.subplots()
    _log(axes, x=True)
    rates = [entry["load"]["measured_per_second"] for entry in found]
    least = min([*rates, *alone.values()])
    for place, (entry, value) in enumerate(zip(found, rates, strict=True)):
        axes.barh(place, value, height=0.66, color=style.rung_colour(int(entry["rung"].split()[0])))
        axes.annotate(
            short_rate(value),
            (max(value, alone.get(entry["rung"], 0)), place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=8,
            bbox={"facecolor": style.CARD, "edgecolor": "none", "pad": 1},
            zorder=3,
        )
        if entry["rung"] in alone:
            axes.plot(alone[entry["rung"]], place, marker="D", markersize=5, color=style.INK, linestyle="")
    axes.set_yticks(range(len(found)), [entry["rung"] for entry in found], color=style.INK)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    generators = max([1, *(entry.get("generators", 1) for entry in found)])
    _roof_lines(axes, roofs, generators)
    axes.set_xlim(10 ** int(f"{least / 3:e}".split("e")[1]), axes.get_xlim()[1] * 1.3)
    axes.set_xlabel("queries/s with p99 within the bound")
    _rates(axes.xaxis)
    return svg.inline(figure, "throughput of every rung, with the roofs")


def batch_impact(batches: Sequence[Json], bound_us: float) -> str:
    """Throughput and latency by batch size, of one plan."""
    figure = svg.figure(2.9)
    left, right = figure.subplots(1, 2)
    found = [batch for batch in batches if batch["load"]]
    sizes = [batch["batch_max"] for batch in batches]
    colour = style.rung_colour(13)
    left.plot(
        sizes,
        [batch["capacity"] for batch in batches],
        color=style.FAINT,
        linestyle="--",
        label="nothing bounds latency",
    )
    held = [batch["batch_max"] for batch in found]
    left.plot(
        held,
        [batch["load"]["measured_per_second"] for batch in found],
        color=colour,
        marker="o",
        markersize=4,
        label="p99 within the bound",
    )
    left.set_ylabel("queries/s")
    left.set_ylim(bottom=0)
    _rates(left.yaxis)
    left.legend(loc="best")
    for key, dashes in (("p99", "-"), ("mean", "--"), ("p50", ":")):
        times = [batch["load"]["latency_us"][key] for batch in found]
        right.plot(held, times, color=colour, linestyle=dashes, marker="o", markersize=3, label=key)
    right.axhline(bound_us, color=style.BOUND, linewidth=0.8, linestyle=(0, (4, 3)))
    right.set_ylabel("latency at that rate")
    right.set_ylim(bottom=0)
    _times(right.yaxis)
    right.legend(loc="best")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("maximum queries per batch")
    return svg.inline(figure, "throughput and latency by batch size")
