"""When the parts of a grid did what: recorded on the streams of a scene's run, and drawn."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import UsageError
from headrace.grid.solver import memory
from headrace.grid.solver.files import check_folder, replacing
from headrace.grid.solver.model import Layout, build
from headrace.grid.solver.scene import Scene
from headrace.report.style import FAINT, INK

if TYPE_CHECKING:
    from headrace.grid.fdtd import WorkSpan

_WARM_UP_CYCLES = 20
_COLOURS = {
    "body": "#c9d6e8",
    "interior": "#6f93c4",
    "border": "#d98a3d",
    "push": "#b23a48",
    "messages": "#b23a48",
    "receive": "#7d4f9e",
}
_EXCHANGE = ("push", "messages", "receive")
_COMPUTING = ("body", "interior")
_FORMATS = (".svg", ".png")

Interval = tuple[float, float]


def check(path: Path) -> None:
    """Whether a timeline can be drawn there.

    Raises:
        UsageError: for another format, no such folder, or without matplotlib.
    """
    from headrace.grid.solver import pictures  # noqa: PLC0415 - with all that it needs

    if path.suffix not in _FORMATS:
        raise UsageError(f"{path}: a timeline is drawn as {' or '.join(_FORMATS)}")
    pictures.check(path)
    check_folder(path)


def record(scene: Scene, layout: Layout, cycles: int) -> "list[WorkSpan]":
    """Runs a scene's first steps, and notes some cycles after as many as it takes to warm up.

    Raises:
        UsageError: when the run is over before.
    """
    steps = (_WARM_UP_CYCLES + cycles) * layout.redundant
    if steps > scene.steps:
        raise UsageError(
            f"{scene.path}: {cycles} cycles after {_WARM_UP_CYCLES} are {steps} steps, and it has {scene.steps}"
        )
    memory.check(scene, layout)
    from headrace.grid.fdtd import Fdtd  # noqa: PLC0415 - loads the extension

    solver = build(scene, layout).solver
    assert isinstance(solver, Fdtd)
    solver.step(_WARM_UP_CYCLES * layout.redundant)
    solver.record_timeline(cycles)
    solver.step(cycles * layout.redundant)
    return solver.timeline()


def hidden(spans: "Iterable[WorkSpan]") -> tuple[float, float]:
    """Seconds that exchanges took on all parts together, and how many of these the same part computed meanwhile."""
    listed = list(spans)
    took = beside = 0.0
    for part in {span.part for span in listed}:
        own = [span for span in listed if span.part == part]
        computing = _union((span.begin, span.end) for span in own if span.work in _COMPUTING)
        for begin, end in _union((span.begin, span.end) for span in own if span.work in _EXCHANGE):
            took += end - begin
            beside += sum(max(0.0, min(end, last) - max(begin, first)) for first, last in computing)
    return took, beside


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def draw(path: Path, title: str, spans: "Sequence[WorkSpan]", devices: Sequence[str]) -> None:
    """Writes the timeline: for each part a row of what computes the most, and one of borders and exchanges."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional, slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    parts = sorted({span.part for span in spans})
    longest = max(span.end for span in spans)
    unit, name = (1e6, "us") if longest < 1e-2 else (1e3, "ms")  # noqa: PLR2004 - s
    figure = Figure(figsize=(9.0, 1.5 + 0.8 * len(parts)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for span in spans:
        row = 2 * parts.index(span.part) + (span.work not in _COMPUTING)
        bar = [(span.begin * unit, (span.end - span.begin) * unit)]
        axes.broken_barh(bar, (row - 0.4, 0.8), facecolors=_COLOURS[span.work], edgecolor="white", linewidth=0.3)
    labels = [f"{device}, part {part}: {row}" for part, device in zip(parts, devices, strict=True) for row in _ROWS]
    axes.set_yticks(range(len(labels)), labels, color=INK, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(f"{name}, each part by the clock of its device", color=INK)
    axes.tick_params(colors=FAINT)
    axes.set_title(title, fontsize="medium", color=INK)
    there = [work for work in _COLOURS if any(span.work == work for span in spans)]
    patches = [Patch(color=_COLOURS[work], label=work) for work in there]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False)
    with replacing(path) as written:
        figure.savefig(written, dpi=120, format=path.suffix[1:])


_ROWS = ("computing", "exchanging")
