"""`headrace grid`: fields on grids that are spread over devices."""

from pathlib import Path
from typing import Annotated

import typer

from headrace import UsageError, outputs
from headrace.cli import grid_fdtd, grid_timeline, show
from headrace.cli.errors import finish
from headrace.grid.solver import gprmax, pictures, session, traces
from headrace.grid.solver.reading import read_scene
from headrace.text import printable

app = typer.Typer(help="Fields on grids.", no_args_is_help=False)


@app.callback()
def group() -> None:
    """Fields on grids that are spread over devices."""


app.command("fdtd")(grid_fdtd.fdtd)
app.command("timeline")(grid_timeline.timeline)


@app.command("convert")
def convert(
    source: Annotated[Path, typer.Argument(metavar="FILE.in", readable=False, help="An input file of gprMax.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", readable=False, help="The scene; FILE.toml beside it if not given.")
    ] = None,
) -> None:
    """Make a scene of the common part of gprMax's input files; what it does not cover is refused by name.

    Example: headrace grid convert cylinder.in -o cylinder.toml
    """
    written = output or source.with_suffix(".toml")
    if written.exists() and written.samefile(source):
        raise UsageError(f"{written} would take the place of the file that it is made of")
    found = gprmax.convert(gprmax.read(source), source)
    outputs.write(written, found.text)
    for line in (*found.notes, *found.scene.warnings):
        show.stderr().print(f"headrace: warning: {printable(line)}", markup=False, soft_wrap=True)
    shape = " x ".join(str(count) for count in found.scene.shape)
    show.stdout().print(f"{written}: {shape} cells, {found.scene.steps:,} steps", markup=False, soft_wrap=True)


@app.command("merge")
def merge(
    scene_file: Annotated[
        Path, typer.Argument(metavar="SCENE.toml", readable=False, help="The scene that they are of.")
    ],
    parts: Annotated[
        list[Path], typer.Argument(metavar="FILES...", readable=False, help="What --position and --traces wrote.")
    ],
    output: Annotated[Path, typer.Option("--traces", "-o", readable=False, help="All positions, as HDF5.")] = Path(
        "scan.h5"
    ),
    png: Annotated[Path | None, typer.Option("--png", readable=False, help="The radargram.")] = None,
    field: Annotated[str, typer.Option("--field", help="Of the radargram.")] = "ez",
) -> None:
    """Put the positions of a scan together that were run one by one.

    Example: headrace grid merge radar.toml position-*.h5 -o scan.h5 --png scan.png
    """
    scene = read_scene(scene_file)
    traces.check(output)
    if png:
        pictures.check(png)
    found = traces.merge([(path, traces.read(path, scene)) for path in parts])
    attempts = outputs.Attempts()
    session.write_traces(session.Outputs(traces=output, png=png, field=field), found, attempts)
    written = ", ".join(map(str, attempts.written)) or "nothing written"
    show.stdout().print(
        f"{len(found.positions)} positions of {found.steps:,} steps: {written}",
        markup=False,
        soft_wrap=True,
    )
    finish(attempts)
