"""The plot of oversubscription: bandwidth by factor, on a logarithmic scale."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from headrace import outputs
from headrace.oversubscription import best, measured, pattern_name
from headrace.profiles import Json
from headrace.report import style, svg

_FEW_DECADES = 30.0
_PANEL_HEIGHT = 2.5
_ROOF_DASHES = (0, (2, 2))


def _lines(cells: Sequence[Json]) -> dict[str, list[Json]]:
    """The best cell of each factor, by strategy, in order of factor."""
    made: dict[str, list[Json]] = {}
    for strategy in style.STRATEGY_COLOURS:
        of_strategy = [cell for cell in cells if cell["strategy"] == strategy]
        found = [
            best(cell for cell in of_strategy if cell["factor"] == factor)
            for factor in sorted({cell["factor"] for cell in of_strategy})
        ]
        made[strategy] = [cell for cell in found if cell]
    return {strategy: line for strategy, line in made.items() if line}


def _panel(axes: Axes, title: str, cells: Sequence[Json]) -> None:
    axes.set_title(title)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for strategy, line in _lines(cells).items():
        colour = style.STRATEGY_COLOURS[strategy]
        factors = [cell["factor"] for cell in line]
        roofs = [cell["roof_gb_per_s"] for cell in line]
        axes.plot(factors, roofs, color=colour, linestyle=_ROOF_DASHES, linewidth=0.9)
        axes.plot(factors, [cell["gb_per_s"] for cell in line], color=colour, marker="o", markersize=3.5)
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < _FEW_DECADES else (1,), numticks=12))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_locator(FixedLocator(sorted({cell["factor"] for cell in cells})))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1.0, color=style.FAINT, linewidth=0.8)


def bandwidths(cells: Sequence[Json]) -> str:
    """A panel per pattern and operation, a line per strategy, and its roof dashed in the same colour."""
    found = measured(cells)
    operations = list(dict.fromkeys(cell["operation"] for cell in found))
    groups: dict[str, list[Json]] = {}
    for cell in found:
        name = pattern_name(cell) if len(operations) == 1 else f"{pattern_name(cell)}: {cell['operation']}"
        groups.setdefault(name, []).append(cell)
    figure, grid = svg.panels(len(groups), _PANEL_HEIGHT, columns=min(3, len(groups)))
    for axes, (name, of_group) in zip(grid, groups.items(), strict=True):
        _panel(axes, name, of_group)
    present = {cell["strategy"] for cell in found}
    handles = [
        Line2D([], [], color=colour, marker="o", markersize=3.5, label=strategy)
        for strategy, colour in style.STRATEGY_COLOURS.items()
        if strategy in present
    ]
    handles.append(Line2D([], [], color=style.FAINT, linestyle=_ROOF_DASHES, linewidth=0.9, label="its roof"))
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), labelcolor=style.INK)
    figure.supxlabel("factor: bytes of data over bytes of the budget", color=style.FAINT, fontsize=9)
    what = operations[0] if len(operations) == 1 else "bytes touched"
    figure.supylabel(f"{what}, GB/s", color=style.FAINT, fontsize=9)
    return svg.standalone(figure)


def write(cells: Sequence[Json], path: Path) -> None:
    """Writes the plot atomically to its own file."""
    with svg.styled():
        drawn = bandwidths(cells)
    outputs.write(path, drawn)
