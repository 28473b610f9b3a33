"""`headrace grid timeline`: shows whether computing hides the exchange between devices."""

import json
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import grid_fdtd, options, show
from headrace.cli.errors import finish
from headrace.cli.grid_fdtd import Mode, Push
from headrace.grid.ranks import failing_together, joined
from headrace.grid.solver import timeline as lines
from headrace.grid.solver.reading import read_scene
from headrace.outputs import Attempts


def timeline(
    scene_file: Annotated[
        Path,
        typer.Argument(
            metavar="SCENE.toml",
            readable=False,
            help="Scene file; docs/scenes.md describes the format.",
            show_default=False,
        ),
    ],
    device: Annotated[list[str] | None, typer.Option("--device", help="Devices, as for headrace grid fdtd.")] = None,
    cut: Annotated[
        str, typer.Option("--cut", help="How to cut the domain: best, or parts along each axis, such as 2x1.")
    ] = "best",
    redundant: Annotated[int, typer.Option("--redundant", min=1, help="Steps between two exchanges of borders.")] = 1,
    push: Annotated[Push, typer.Option("--push", help="How borders reach the neighbour.")] = Push.automatic,
    cycles: Annotated[
        int,
        typer.Option("--cycles", min=1, max=1000, help="Number of cycles to draw, each from one exchange to the next."),
    ] = 6,
    output: Annotated[Path, typer.Option("--output", "-o", readable=False, help="Output file, .svg or .png.")] = Path(
        "timeline.svg"
    ),
    as_json: options.JsonOption = False,
) -> None:
    """Draw a timeline of borders, exchanges and interiors on each device.

    Example: headrace grid timeline examples/radar.toml --device cuda:0 --device cuda:1 -o timeline.svg
    """
    ranks = joined()
    with failing_together(ranks):
        scene = read_scene(scene_file)
        lines.check(output)
        layout = grid_fdtd.make_layout(scene, ranks, device or [], cut, redundant, push, Mode.streams)
        spans = lines.record(scene, layout, cycles)
        if not layout.first:
            return
        took, beside = lines.hidden(spans)
        share = beside / took if took else None
        shape = " x ".join(f"{count:,}" for count in scene.shape)
        whose = f", rank 0 of {ranks.count}" if ranks else ""
        how = f", {share:.0%} of the exchange overlapped with computing" if share is not None else ""
        parts = len({span.part for span in spans})
        title = f"{shape} cells in {parts} part{'s' * (parts > 1)}{whose}{how}"
        attempts = Attempts()
        attempts.write(output, lambda path: lines.draw(path, title, spans, layout.devices))
    if as_json:
        found = {
            "exchange_seconds": took,
            "hidden_seconds": beside,
            "hidden_share": share,
            "file": str(output) if attempts.written else None,
            "spans": [span._asdict() for span in spans],
        }
        typer.echo(json.dumps(found, indent=2))
    else:
        said = "no exchange"
        if share is not None:
            said = f"{took * 1e6:.0f} us of exchange on all parts, {share:.0%} of it overlapped with computing"
        shown = [f"{cycles} cycles: {said}", *(f"Wrote {path}" for path in attempts.written)]
        show.stdout().print("\n".join(shown), markup=False, soft_wrap=True)
    finish(attempts)
