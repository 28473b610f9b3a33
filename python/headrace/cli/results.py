"""`headrace results render`: the page made from the results files."""

from pathlib import Path
from typing import Annotated

import typer

from headrace import UsageError, results
from headrace.cli.errors import STATUS_FAILURE, report

app = typer.Typer(help="Measured figures.", no_args_is_help=False)


@app.callback()
def group() -> None:
    """Measured figures, from files that --save wrote."""


@app.command("render")
def render(
    folder: Annotated[Path, typer.Argument(help="Where the JSON files are.")] = Path("docs/results"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when the page is not current.")] = False,
) -> None:
    """Make README.md of a folder from its JSON files.

    Example: headrace results render docs/results
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    page = results.render(folder)
    path = folder / "README.md"
    if not check:
        results.write_whole(path, page)
    elif not path.exists() or path.read_text(encoding="utf-8") != page:
        report(f"{path} is not current: run headrace results render {folder}")
        raise typer.Exit(STATUS_FAILURE)
