"""`headrace grid`: fields on grids over several devices."""

from pathlib import Path
from typing import Annotated

import typer

from headrace import outputs
from headrace.cli import grid_fdtd, grid_gprmax, grid_timeline, grid_view, show
from headrace.cli.errors import finish
from headrace.grid.solver import pictures, session, traces
from headrace.grid.solver.reading import read_scene

app = typer.Typer(help="Simulate fields on grids, and work with the results.", no_args_is_help=False)


@app.callback()
def group() -> None:
    """Fields on grids that are spread over devices."""


app.command("fdtd")(grid_fdtd.fdtd)
app.command("timeline")(grid_timeline.timeline)
app.command("view")(grid_view.view)
app.command("convert")(grid_gprmax.convert)
app.command("export")(grid_gprmax.export)


@app.command("merge")
def merge(
    scene_file: Annotated[
        Path, typer.Argument(metavar="SCENE.toml", readable=False, help="Scene that the traces belong to.")
    ],
    parts: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...",
            readable=False,
            help="Trace files of the positions, written by grid fdtd --position N --traces FILE.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--traces", "-o", readable=False, help="HDF5 file to write, with the traces of all positions."),
    ] = Path("scan.h5"),
    png: Annotated[
        Path | None, typer.Option("--png", readable=False, help="File for a picture of the radargram.")
    ] = None,
    field: Annotated[
        str | None,
        typer.Option("--field", help="Field to show in the radargram. Default: ez, or hz if there is no ez."),
    ] = None,
) -> None:
    """Merge the traces of scan positions that were run one by one.

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
