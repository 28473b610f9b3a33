"""Records what the parts of a grid do when a scene runs, and draws it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace import outputs
from headrace.errors import UsageError
from headrace.grid.solver import memory
from headrace.grid.solver.model import Layout, build
from headrace.grid.solver.scene import Scene
from headrace.report import timeline

if TYPE_CHECKING:
    from headrace.grid.records import WorkSpan

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


def check(path: Path) -> None:
    """Checks that a timeline can be drawn to this path.

    Raises:
        UsageError: for another format, or without matplotlib.
        SystemError: when the file cannot be written.
    """
    timeline.check(path)
    outputs.check(path)


def record(scene: Scene, layout: Layout, cycles: int) -> "list[WorkSpan]":
    """Runs a scene's first steps, and records some cycles after the warm-up.

    Raises:
        UsageError: when the run ends before that.
    """
    memory.check(scene, layout)
    from headrace.grid.fdtd import Fdtd  # noqa: PLC0415 - loads the extension

    solver = build(scene, layout).solver
    assert isinstance(solver, Fdtd)
    steps = (_WARM_UP_CYCLES + cycles) * solver.redundant
    if steps > scene.steps:
        raise UsageError(
            f"{scene.path}: {cycles} cycles after {_WARM_UP_CYCLES} of warm-up need {steps} steps, but it "
            f"has {scene.steps}"
        )
    solver.step(_WARM_UP_CYCLES * solver.redundant)
    solver.record_timeline(cycles)
    solver.step(cycles * solver.redundant)
    return solver.timeline()


def hidden(spans: "Iterable[WorkSpan]") -> tuple[float, float]:
    """Seconds of exchange on all parts together, and how many of these overlap with computing on the same part."""
    listed = list(spans)
    took = beside = 0.0
    for part in {span.part for span in listed}:
        own = [span for span in listed if span.part == part]
        computing = [(span.begin, span.end) for span in own if span.work in _COMPUTING]
        exchange = [(span.begin, span.end) for span in own if span.work in _EXCHANGE]
        took += timeline.length(exchange)
        beside += timeline.shared(exchange, computing)
    return took, beside


def draw(path: Path, title: str, spans: "Sequence[WorkSpan]", devices: Sequence[str]) -> None:
    """Writes the timeline: for each part a row of computing, and one of borders and exchanges.

    A CPU device that stands alone may have several parts.
    """
    parts = sorted({span.part for span in spans})
    devices = devices if len(devices) > 1 else [devices[0]] * len(parts)
    rows = [f"{device}, part {part}: {row}" for part, device in zip(parts, devices, strict=True) for row in _ROWS]
    bars = [
        timeline.Bar(2 * parts.index(span.part) + (span.work not in _COMPUTING), span.work, span.begin, span.end)
        for span in spans
    ]
    clock = ", each part by the clock of its device; where there is no bar, it waits"
    outputs.write(path, timeline.render(path.suffix, title, rows, bars, _COLOURS, clock))


_ROWS = ("computing", "exchanging")
