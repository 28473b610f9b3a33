"""Plots the scaling of grids over devices: cells per second with ideal and roof, and the efficiency of each shape."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headrace import quiet
from headrace.profiles import Json
from headrace.report import style, svg
from headrace.results import accepted, share_of_roof
from headrace.tables import figure
from headrace.units import GIGA

_WANTED = 0.99
_HEIGHT = 2.6
_EFFICIENCY = ".efficiency"
_SMALL = "grid.small.seconds"
_NAMES = {"fdtd2d": "FDTD, 2D", "fdtd3d": "FDTD, 3D", "jacobi": "Jacobi", "small": "FDTD, 2D"}


@dataclass
class Scaling:
    """Rate of one grid in cells per second, by number of devices."""

    name: str
    rates: dict[int, float] = field(default_factory=dict)
    roofs: dict[int, float] = field(default_factory=dict)

    @property
    def efficiency(self) -> dict[int, float]:
        """Efficiency of n devices: the share of n times the rate of one."""
        return {count: rate / (count * self.rates[1]) for count, rate in self.rates.items() if count > 1}


def _of_efficiency(row: Json, found: Scaling) -> None:
    about = row["conditions"]
    count = int(about["devices"])
    cells = prod(map(int, about["shape"].split("x")))
    found.rates[1] = cells * about["steps"] / about["one_seconds"]
    found.rates[count] = about["cells_per_second"]
    found.roofs[count] = about["memory_gb_per_s"] * GIGA / about["bytes_per_cell"]


def _of_small(row: Json, found: Scaling) -> None:
    about = row["conditions"]
    found.rates[int(about["devices"])] = about["cells_per_second"]
    found.roofs[int(about["devices"])] = about["roof_cells_per_second"]


def scalings(rows: Sequence[Json]) -> list[Scaling]:
    """The grids that were measured on one device and on several; unverified rows do not count."""
    made: dict[str, Scaling] = {}
    counted = [row for row in rows if accepted(row)]
    for row in counted:
        small = row["id"].startswith(_SMALL)
        if not small and not (row["id"].startswith("grid.") and _EFFICIENCY in row["id"]):
            continue
        kind = row["id"].split(".")[1]
        found = made.setdefault(
            f"{kind} {row['conditions']['shape']}", Scaling(f"{_NAMES.get(kind, kind)}, {row['conditions']['shape']}")
        )
        (_of_small if small else _of_efficiency)(row, found)
    # The roof of one device is measured for few shapes; devices of one kind have the same roof.
    for found in made.values():
        if 1 not in found.roofs:
            count, roof = next(iter(found.roofs.items()))
            found.roofs[1] = roof / count
    return [found for found in made.values() if 1 in found.rates and len(found.rates) > 1]


def _panel(axes: Axes, found: Scaling) -> None:
    counts = sorted(found.rates)
    axes.set_title(found.name)
    axes.plot(counts, [count * found.rates[1] / GIGA for count in counts], color=style.FAINT, linestyle="--")
    roofs = sorted(found.roofs)
    axes.plot(roofs, [found.roofs[count] / GIGA for count in roofs], color=style.BOUND, linestyle=":", marker=".")
    colour = style.STRATEGY_COLOURS["interleaved"]
    axes.plot(counts, [found.rates[count] / GIGA for count in counts], color=colour, marker="o", markersize=4)
    for count in counts:
        axes.annotate(
            figure(found.rates[count] / GIGA), (count, found.rates[count] / GIGA), (5, -11), "data", "offset points"
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.8, counts[-1] + 0.4)
    axes.set_ylim(0)


def _efficiencies(axes: Axes, all_found: Sequence[Scaling]) -> None:
    bars = [(f"{found.name} on {count}", share) for found in all_found for count, share in found.efficiency.items()]
    places = range(len(bars))
    axes.set_title("efficiency: share of n times one device")
    axes.barh(places, [share for _, share in bars], color=style.STRATEGY_COLOURS["interleaved"], height=0.6)
    axes.axvline(_WANTED, color=style.BOUND, linewidth=0.9, linestyle=":")
    axes.set_yticks(places, [name for name, _ in bars])
    axes.invert_yaxis()
    for place, (_, share) in zip(places, bars, strict=True):
        axes.annotate(f"{share:.1%}", (share, place), (4, 0), "data", "offset points", va="center", color=style.INK)
    axes.set_xlim(0, max(1.0, *(share for _, share in bars)) * 1.12)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def scaling(all_found: Sequence[Scaling]) -> Figure:
    """A panel for each grid, and one with the efficiencies of all."""
    columns = min(4, len(all_found))
    rows = (len(all_found) + columns - 1) // columns
    bars = 0.5 + 0.32 * sum(len(found.efficiency) for found in all_found)
    figure = svg.figure(_HEIGHT * rows + bars + 0.6)
    halves = figure.subfigures(2, 1, squeeze=False, height_ratios=[_HEIGHT * rows, bars])
    upper, lower = halves[0][0], halves[1][0]
    grid = [axes for row in upper.subplots(rows, columns, squeeze=False) for axes in row]
    for axes in grid[len(all_found) :]:
        axes.set_visible(False)
    for axes, found in zip(grid, all_found, strict=False):
        _panel(axes, found)
    handles = [
        Line2D([], [], color=style.STRATEGY_COLOURS["interleaved"], marker="o", markersize=4, label="measured"),
        Line2D([], [], color=style.FAINT, linestyle="--", label="ideal: n times one device"),
        Line2D([], [], color=style.BOUND, linestyle=":", marker=".", label="roof: memory of all devices"),
    ]
    upper.legend(handles=handles, loc="outside upper left", ncols=3, labelcolor=style.INK)
    upper.supxlabel("devices", color=style.FAINT, fontsize=9)
    upper.supylabel("Gcells/s", color=style.FAINT, fontsize=9)
    _efficiencies(lower.subplots(), all_found)
    return figure


def with_rates(rows: Sequence[Json]) -> list[Json]:
    """Rows that rates() can draw: accepted ones, in cells per second."""
    return [row for row in rows if row["unit"] == "cells/s" and accepted(row)]


def rates(rows: Sequence[Json]) -> Figure:
    """A bar for each row of with_rates(), with a mark at its roof and the share beside it."""
    drawn = svg.figure(0.9 + 0.42 * len(rows))
    axes = drawn.subplots()
    places = range(len(rows))
    names = [f"{row['id'].removesuffix('.cells')}\n{row['conditions'].get('shape', '')}" for row in rows]
    colour = style.STRATEGY_COLOURS["interleaved"]
    axes.barh(places, [row["value"] / GIGA for row in rows], color=colour, height=0.55)
    for place, row in zip(places, rows, strict=True):
        roof = row.get("roof")
        most = max(row["value"], roof or 0) / GIGA
        if roof:
            axes.plot([roof / GIGA] * 2, [place - 0.38, place + 0.38], color=style.BOUND, linewidth=1.6)
        share = f", {quiet.share_text(share_of_roof(row), '', 0)} of the roof" if roof else ""
        text = f"{figure(row['value'] / GIGA)} Gcells/s{share}"
        axes.annotate(text, (most, place), (6, 0), "data", "offset points", va="center", color=style.INK, fontsize=9)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    least = min(row["value"] for row in rows) / GIGA
    most = max(max(row["value"], row.get("roof") or 0) for row in rows) / GIGA
    axes.set_xlim(least / 3, most * max(6.0, (most / least) ** 0.6))  # leaves room for the text after the bars
    axes.set_xlabel("Gcells/s", color=style.FAINT, fontsize=9)
    handles = [
        Line2D([], [], color=colour, linewidth=6, label="measured"),
        Line2D([], [], color=style.BOUND, linewidth=1.6, label="roof: what memory allows"),
    ]
    drawn.legend(handles=handles, loc="outside upper left", ncols=2, labelcolor=style.INK)
    return drawn
