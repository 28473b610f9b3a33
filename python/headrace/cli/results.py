"""`headrace results`: makes pages from results files."""

from pathlib import Path
from typing import Annotated

import typer

from headrace import MissingFileError, outputs, results_page
from headrace import report as pages
from headrace.cli.errors import STATUS_FAILURE, report

app = typer.Typer(help="Render results files as pages.", no_args_is_help=False)


@app.callback()
def group() -> None:
    """Measured figures, from files that --save wrote."""


@app.command("render")
def render(
    folder: Annotated[Path, typer.Argument(readable=False, help="Folder with the JSON files.")] = Path("docs/results"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the page is out of date.")] = False,
) -> None:
    """Write the README.md of a folder from its JSON files.

    Example: headrace results render docs/results
    """
    if not folder.is_dir():
        raise MissingFileError(f"there is no folder {folder}")
    page = results_page.render(folder)
    path = folder / "README.md"
    if not check:
        outputs.write(path, page)
    elif not path.exists() or path.read_bytes() != page.encode(errors="surrogatepass"):
        report(f"{path} is out of date: run headrace results render {folder}")
        raise typer.Exit(STATUS_FAILURE)


@app.command("report")
def write_report(
    files: Annotated[list[Path], typer.Argument(readable=False, help="Results files of ladders and floors.")],
    output: Annotated[Path, typer.Option("--output", "-o", readable=False, help="Page to write.")] = Path(
        "report.html"
    ),
) -> None:
    r"""Write a page with plots and tables of results files; needs matplotlib.

    Example: headrace results report ladder-light.h100-16.json -o report.html
    """
    pages.check(output)
    pages.write([pages.read(path) for path in files], output)
