"""The command line. One verb a file; each file has one function, which is added here."""

import os
import signal
import sys
from typing import Annotated

import typer

from headrace import UsageError, interrupts
from headrace.cli import (
    advise,
    check,
    devices,
    doctor,
    each,
    fetch,
    grid,
    help_tables,
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
    serve,
    soak,
    stopping,
    taxi,
    tune,
    version,
)
from headrace.cli.errors import STATUS_USAGE, guarded, open_standard_streams, report
from headrace.text import printable

app = typer.Typer(
    name="headrace",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_WORK = "Work"
_MEASURE = "Measure and report"

app.command("run", rich_help_panel=_WORK)(run.run)
app.add_typer(index.app, name="index", rich_help_panel=_WORK)
app.command("query", rich_help_panel=_WORK)(query.query)
app.command("fetch", rich_help_panel=_WORK)(fetch.fetch)
app.add_typer(ingest.app, name="ingest", rich_help_panel=_WORK)
app.add_typer(grid.app, name="grid", rich_help_panel=_WORK)
app.command("each", context_settings=each.CONTEXT, rich_help_panel=_WORK)(each.each)
app.command("serve", rich_help_panel=_WORK)(serve.serve)
app.command("check", rich_help_panel=_WORK)(check.check_operator)
app.command("advise", rich_help_panel=_WORK)(advise.advise)
app.command("devices", rich_help_panel=_WORK)(devices.devices)
app.command("doctor", rich_help_panel=_WORK)(doctor.doctor)

app.command("ladder", rich_help_panel=_MEASURE)(ladder.ladder)
app.command("tune", rich_help_panel=_MEASURE)(tune.tune)
app.command("load", rich_help_panel=_MEASURE)(load.load)
app.command("soak", rich_help_panel=_MEASURE)(soak.soak)
app.command("roof", rich_help_panel=_MEASURE)(roof.roof)
app.command("link", rich_help_panel=_MEASURE)(link.link)
app.command("oversubscribe", rich_help_panel=_MEASURE)(oversubscribe.oversubscribe)
app.add_typer(taxi.app, name="taxi", rich_help_panel=_MEASURE)
app.add_typer(results.app, name="results", rich_help_panel=_MEASURE)


@app.command("help", rich_help_panel=_WORK)
def show_help(
    context: typer.Context,
    verb: Annotated[list[str] | None, typer.Argument(help="A command, such as: grid fdtd.", show_default=False)] = None,
) -> None:
    """Show the help of a command, or list all commands.

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
    open_standard_streams()
    if not {"-h", "--help", "help"}.isdisjoint(sys.argv):
        help_tables.fold_long_names()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupts.interrupt)
    status = guarded(app)
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is interrupts.interrupt:
            signal.signal(number, signal.SIG_DFL)  # nothing is left to interrupt
    if stopping.any_left():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
