"""`headrace grid convert` and `headrace grid export`: read gprMax's input files, and write its output files."""

from pathlib import Path
from typing import Annotated

import typer

from headrace import UsageError, outputs
from headrace.cli import show
from headrace.cli.errors import STATUS_USAGE, report
from headrace.grid import gprmax
from headrace.grid.gprmax import blocks, exports
from headrace.text import printable


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="FILE.in", readable=False, help="Input file for gprMax, versions 2 to 4.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", readable=False, help="Scene file to write. Default: FILE.toml beside the input."
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Number of positions in the scan, as given to gprMax with -n.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the Python blocks in the file, in a process without privileges.")
    ] = False,
) -> None:
    """Convert a gprMax input file to a scene; unsupported commands are listed with their lines.

    Example: headrace grid convert cylinder.in -o cylinder.toml
    """
    written = output or source.with_suffix(".toml")
    if written.exists() and source.exists() and written.samefile(source):
        raise UsageError(f"{written} would overwrite its own input")
    text = gprmax.read(source)
    try:
        found = gprmax.convert(text, source, runner=blocks.runner(source, count or 1) if trust else None, count=count)
    except gprmax.InputFileError as problems:
        for line in problems.lines:
            report(line)
        raise typer.Exit(STATUS_USAGE) from None
    outputs.write(written, found.text)
    for line in found.notes:
        show.stderr().print(f"headrace: note: {printable(line)}", markup=False, soft_wrap=True)
    for line in found.scene.warnings:
        show.stderr().print(f"headrace: warning: {printable(line)}", markup=False, soft_wrap=True)
    shape = " x ".join(str(count) for count in found.scene.shape)
    show.stdout().print(f"{written}: {shape} cells, {found.scene.steps:,} steps", markup=False, soft_wrap=True)


def export(
    source: Annotated[
        Path, typer.Argument(metavar="TRACES.h5", readable=False, help="Trace file, as written by grid fdtd --traces.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            readable=False,
            help="Output file. Default: TRACES.out beside the input; .sgy writes SEG-Y.",
        ),
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="Write one file per position, as gprMax does: NAME1.out, NAME2.out.")
    ] = False,
    receiver: Annotated[
        str | None, typer.Option("--receiver", help="Receiver to write as SEG-Y. Default: the first.")
    ] = None,
    field: Annotated[
        str | None, typer.Option("--field", help="Field to write as SEG-Y. Default: ez, or hz if there is no ez.")
    ] = None,
) -> None:
    """Write traces as gprMax's HDF5 output, which its tools plot and merge, or as SEG-Y.

    Example: headrace grid export scan.h5 -o scan_merged.out
    """
    target = output or source.with_suffix(".out")
    if target.exists() and source.exists() and target.samefile(source):
        raise UsageError(f"{target} would overwrite its own input")
    found = exports.read(source)
    if target.suffix.lower() in (".sgy", ".segy"):
        if separate:
            raise UsageError("--separate is for gprMax's format: a SEG-Y file holds all positions")
        paths = [exports.write_segy(target, found, receiver, field)]
    elif receiver is not None:
        raise UsageError("--receiver is for SEG-Y: gprMax's files hold all receivers")
    else:
        paths = exports.write_gprmax(target, found, separate=separate)
    for path in paths:
        show.stdout().print(f"Wrote {path}", markup=False, soft_wrap=True)
