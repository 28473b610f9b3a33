"""`headrace grid view`: draws a scene before a run, and its traces afterwards."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import show
from headrace.cli.errors import finish
from headrace.grid.solver import pictures, traces, views
from headrace.grid.solver.reading import read_scene
from headrace.outputs import Attempts
from headrace.text import printable


def view(
    scene_file: Annotated[
        Path,
        typer.Argument(
            metavar="SCENE.toml",
            readable=False,
            help="Scene file; docs/scenes.md describes the format.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", readable=False, help="Output file, .png or .svg. Default: SCENE.png beside the scene."
        ),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--traces", readable=False, help="Trace file to draw below the scene, as written by grid fdtd --traces."
        ),
    ] = None,
    receiver: Annotated[
        str | None,
        typer.Option("--receiver", help="Receiver of the radargram. Default: the first that has the field."),
    ] = None,
    field: Annotated[
        str | None, typer.Option("--field", help="Field of the traces to draw. Default: ez, or hz if there is no ez.")
    ] = None,
) -> None:
    """Draw a scene: materials, absorbing layers, sources, receivers, and the traces of a run.

    Example: headrace grid view examples/radar.toml -o radar.png
    """
    scene = read_scene(scene_file)
    path = output or scene_file.with_suffix(".png")
    pictures.check(path)
    for line in scene.warnings:
        show.stderr().print(f"headrace: warning: {printable(line)}", markup=False, soft_wrap=True)
    found, key = None, None
    if recorded:
        found, key = traces.read(recorded, scene), views.key_of(scene, receiver, field)
    attempts = Attempts()
    attempts.write(path, lambda to: views.draw_scene(to, scene, found, key))
    shown = [f"Wrote {one}" for one in attempts.written]
    show.stdout().print("\n".join(shown), markup=False, soft_wrap=True)
    finish(attempts)
