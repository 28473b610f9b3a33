"""The command line. One verb a file; each file has one function, which is added here."""

import os
import signal
import sys
from typing import Annotated

import typer

from headrace import UsageError, interrupts
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
    stopping,
    taxi,
    version,
)
from headrace.cli.errors import STATUS_USAGE, guarded, report
from headrace.text import printable

app = typer.Typer(
    name="headrace",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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


@app.command("help")
def show_help(
    context: typer.Context,
    verb: Annotated[list[str] | None, typer.Argument(help="A command, such as: grid fdtd.", show_default=False)] = None,
) -> None:
    """Show what a verb does, as --help behind it does; without a verb, what there is.

    Example: headrace help grid fdtd
    """
    assert context.parent is not None
    found, command = context.parent, context.parent.command
    for word in verb or []:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            raise UsageError(f"there is no verb '{printable(' '.join(verb or []))}'; 'headrace help' lists them")
        found, command = type(found)(below, info_name=word, parent=found), below
    typer.echo(found.get_help())


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo("\n".join(version.lines()))
        raise typer.Exit


@app.callback()
def headrace(
    context: typer.Context,
    _version: bool = typer.Option(
        False,
        "--version",
        "-V",
        callback=_print_version,
        is_eager=True,
        help="Print version, commit, CUDA and CPU, and exit.",
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

    SIGTERM is taken as Ctrl-C is, with status 143: what has been measured is printed and saved.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupts.interrupt)
    status = guarded(app)
    if stopping.any_left():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
