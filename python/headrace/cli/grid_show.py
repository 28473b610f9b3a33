"""The results of a run of `headrace grid fdtd`, as text and as JSON."""

from dataclasses import asdict
from typing import Any

import numpy as np

from headrace import quiet, tables
from headrace.cli import show
from headrace.grid.solver.choosing import Chosen
from headrace.grid.solver.model import times
from headrace.grid.solver.monitors import REMAINING
from headrace.grid.solver.poles import is_dispersive
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.session import Done
from headrace.grid.spacing import plain, text
from headrace.text import printable

_COMPLETE = 0.01  # share of its peak below which a field has decayed


def _peaks(done: Done) -> list[dict[str, Any]]:
    """The largest value of every trace; of the first position if there are several."""
    found = []
    assert done.traces is not None
    for (receiver, field), values in done.traces.values.items():
        trace = values[0]
        at = int(np.argmax(np.abs(trace))) if trace.size else None
        seconds = None if at is None else float(times(done.traces.scene, field, trace.size)[at])
        peak = None if at is None else float(trace[at])
        found.append({"receiver": receiver, "field": field, "peak": peak, "seconds": seconds})
    return found


def _places(scene: Scene, kind: str, done: Done) -> list[dict[str, Any]]:
    """Sources or receivers at the scan's first position, in metres: the node used, and the position requested."""
    number = done.positions[0] if done.positions else 0
    used, asked = getattr(scene.moved(number), kind), getattr(scene.asked(number), kind)
    return [
        {"id": there.name, "position": scene.placed(there.position), "position_requested": wanted.position}
        for there, wanted in zip(used, asked, strict=True)
    ]


def _monitors(done: Done) -> list[dict[str, Any]]:
    """Each monitor, and the largest share of the peak that its field had at the end of a run."""
    spectra = done.traces.spectra if done.traces else {}
    return [
        {"id": name, "remaining": max(float(one) for one in values)}
        for (name, quantity), values in spectra.items()
        if quantity == REMAINING and values
    ]


def summary(scene: Scene, chosen: Chosen, devices: list[str], done: Done) -> dict[str, Any]:
    """A run as JSON."""
    layout = chosen.layout
    return {
        "scene": str(scene.path),
        "title": scene.title,
        "shape": list(scene.shape),
        "cells": scene.cells,
        "spacing": plain(scene.spacing),
        "dt": scene.dt,
        "steps": scene.steps,
        "first_step": done.first_step,
        "steps_done": done.steps,
        "precision": scene.precision,
        "devices": devices,
        "ranks": layout.ranks.count if layout.ranks else 1,
        "cut": layout.cut if isinstance(layout.cut, str) else list(layout.cut),
        "weights": layout.weights,
        "redundant": done.redundant,
        "push": layout.push,
        "mode": layout.mode,
        "device_memory": layout.device_memory or None,
        "slabs": asdict(done.slabs) if done.slabs else None,
        "trials": [trial._asdict() for trial in chosen.trials],
        "positions": done.positions,
        "sources": _places(scene, "sources", done),
        "receivers": _places(scene, "receivers", done),
        "seconds": done.speed.seconds,
        "cells_per_second": done.speed.cells_per_second,
        "roof_cells_per_second": done.roof,
        "disturbed": done.disturbed,
        "traces": _peaks(done),
        "monitors": _monitors(done),
        "files": [str(path) for path in done.files.written],
        "warnings": list(scene.warnings),
        "interrupted": done.interrupted,
    }


def _choices(scene: Scene, chosen: Chosen, devices: list[str]) -> list[str]:
    """The trials before the run, and the choices made from them."""
    layout, lines = chosen.layout, []
    if is_dispersive(scene):
        lines.append("Steps run one at a time: passes of several steps do not support dispersive materials")
    if layout.weights and len(devices) > 1:
        shares = [weight / sum(layout.weights) for weight in layout.weights]
        each = ", ".join(f"{share:.0%} to {device}" for share, device in zip(shares, devices, strict=True))
        lines.append(f"Cut by measured speed: {each}")
    seconds = chosen.seconds_per_step
    if seconds is not None:
        push = f", push {layout.push}" if len(devices) > 1 else ""
        lines.append(
            f"Exchanges every {layout.redundant} steps{push}: the fastest of {len(chosen.trials)} tried, "
            f"{seconds * 1e6:.4g} us per step"
        )
    return lines


def write(scene: Scene, chosen: Chosen, devices: list[str], done: Done, scanned: bool) -> None:
    """Writes a run as text to stdout."""
    layout = chosen.layout
    shape = " x ".join(f"{count:,}" for count in scene.shape)
    lines = [
        f"{printable(scene.title)}: {shape} cells of {text(scene.spacing)}, {scene.steps:,} steps of "
        f"{tables.short_time(scene.dt)}, {scene.precision} precision, "
        f"on {', '.join(devices)}{f' of {len(devices)} ranks' if layout.ranks else ''}"
    ]
    lines += _choices(scene, chosen, devices)
    if done.slabs:
        kind = "planes" if len(scene.shape) > 2 else "rows"  # noqa: PLR2004 - axes
        lines.append(
            f"In host memory, visited in {done.slabs.count} slabs of {done.slabs.rows:,} {kind}, "
            f"{done.slabs.steps} steps a visit"
        )
    if done.interrupted:
        got = f"{len(done.positions)} complete positions" if scanned else f"step {done.steps:,}"
        lines.append(f"Interrupted after {got}" if scanned else f"Interrupted at {got}")
    steps = f"{len(done.positions)} positions" if scanned else f"{done.steps - done.first_step:,} steps"
    rate = done.speed.cells_per_second
    share = (
        f", {quiet.share_text(rate / done.roof, done.disturbed, 0)} of what memory allows "
        f"({tables.short_rate(done.roof)}cells/s)"
        if done.roof and not done.disturbed
        else ""
    )
    lines.append(f"{steps} in {done.speed.seconds:.2f} s: {tables.short_rate(rate)}cells/s{share}")
    lines += [
        f"{one['receiver']}: {one['field']} reaches {one['peak']:.4g} {'V/m' if one['field'][0] == 'e' else 'A/m'} "
        f"after {tables.short_time(one['seconds'])}"
        for one in _peaks(done)
        if one["peak"] is not None
    ]
    lines += [
        f"{one['id']}: the field was still at {one['remaining']:.1%} of its peak at the end, so its spectrum is cut "
        "short: extend [time] window"
        for one in _monitors(done)
        if one["remaining"] > _COMPLETE and not done.interrupted
    ]
    lines += [f"Wrote {path}" for path in done.files.written]
    for line in lines:
        show.stdout().print(line, markup=False, soft_wrap=True)
    show.print_quiet(show.stdout(), done.disturbed)
