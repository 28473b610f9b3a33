"""The command line. One verb a file; each file has one function, which is added here."""

import signal

import typer

from headrace import __version__
from headrace.cli import (
    advise,
    devices,
    doctor,
    each,
    fetch,
    grid,
    index,
    ingest,
    ladder,
    link,
    load,
    oversubscribe,
    query,
    results,
    roof,
    run,
    soak,
    taxi,
)
from headrace.cli.errors import STATUS_USAGE, guarded, report

app = typer.Typer(name="headrace", invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False)

app.command("run")(run.run)
app.command("devices")(devices.devices)
app.add_typer(index.app, name="index")
app.command("query")(query.query)
app.command("ladder")(ladder.ladder)
app.command("roof")(roof.roof)
app.command("load")(load.load)
app.command("advise")(advise.advise)
app.command("oversubscribe")(oversubscribe.oversubscribe)
app.command("soak")(soak.soak)
app.command("link")(link.link)
app.command("fetch")(fetch.fetch)
app.command("doctor")(doctor.doctor)
app.command("each", context_settings=each.CONTEXT)(each.each)
app.add_typer(grid.app, name="grid")
app.add_typer(ingest.app, name="ingest")
app.add_typer(taxi.app, name="taxi")
app.add_typer(results.app, name="results")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def headrace(
    context: typer.Context,
    _version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Keep GPUs fed; everything also runs on the CPU device.

    Example: headrace run
    """
    if context.invoked_subcommand is None:
        report("no verb given; 'headrace --help' lists them")
        raise typer.Exit(STATUS_USAGE)


def main() -> int:
    """Runs the command line. Returns the exit status: 0, 1 for failures, 2 for usage errors, 130 on Ctrl-C.

    SIGTERM is taken as Ctrl-C is: what has been measured is printed and saved.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return guarded(app)
