"""The verbs of the command line, and the Typer app of all of them or of a single one.

A program loads only the requested verb: importing the others takes three times as long.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

import typer

from headrace import UsageError
from headrace.cli.errors import STATUS_USAGE, report
from headrace.text import printable

_WORK = "Work"
_MEASURE = "Measure and report"
_VERSION = ("--version", "-V")


@dataclass(frozen=True)
class Verb:
    """A verb. Its module in this package has the same name, and contains a function or an app of verbs below it."""

    name: str
    panel: str
    member: str
    settings: dict[str, Any] = field(default_factory=dict)

    def add_to(self, app: typer.Typer) -> None:
        """Imports the verb's module and adds its command or group."""
        found = getattr(importlib.import_module(f"headrace.cli.{self.name}"), self.member)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=self.name, rich_help_panel=self.panel)
        else:
            app.command(self.name, rich_help_panel=self.panel, context_settings=self.settings)(found)


def _verbs() -> Iterable[Verb]:
    """The verbs in the order of the help."""
    for name, member in (("run", "run"), ("index", "app"), ("query", "query"), ("fetch", "fetch")):
        yield Verb(name, _WORK, member)
    for name in ("ingest", "grid"):
        yield Verb(name, _WORK, "app")
    # Options end at the first word of the command, so that the program keeps its own options.
    yield Verb("each", _WORK, "each", {"allow_interspersed_args": False})
    for name, member in (("serve", "serve"), ("check", "check_operator"), ("advise", "advise")):
        yield Verb(name, _WORK, member)
    for name in ("devices", "doctor"):
        yield Verb(name, _WORK, name)
    for name in ("ladder", "tune", "load", "soak", "roof", "link", "oversubscribe"):
        yield Verb(name, _MEASURE, name)
    for name in ("taxi", "results"):
        yield Verb(name, _MEASURE, "app")


_VERBS = {verb.name: verb for verb in _verbs()}


def _show_help(
    context: typer.Context,
    verb: Annotated[list[str] | None, typer.Argument(help="Command, such as: grid fdtd.", show_default=False)] = None,
) -> None:
    """Show the help of a command, or list all commands.

    Example: headrace help grid fdtd
    """
    assert context.parent is not None
    found, command = context.parent, context.parent.command
    for word in verb or []:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            raise UsageError(f"there is no command '{printable(' '.join(verb or []))}'; see 'headrace help'")
        found, command = type(found)(below, info_name=word, parent=found), below
    typer.echo(found.get_help())


def _print_version(wanted: bool) -> None:
    if wanted:
        from headrace.cli import version  # noqa: PLC0415 - for this alone

        typer.echo("\n".join(version.lines()))
        raise typer.Exit


def _headrace(
    context: typer.Context,
    _version: bool = typer.Option(
        False,
        *_VERSION,
        callback=_print_version,
        is_eager=True,
        help="Print version, commit, CUDA and CPU, and exit.",
    ),
) -> None:
    """Keep GPUs fed; everything also runs on the CPU device.

    Example: headrace run
    """
    if context.invoked_subcommand is None:
        report("no command given; see 'headrace --help'")
        raise typer.Exit(STATUS_USAGE)


@cache
def app_of(word: str | None = None) -> typer.Typer:
    """The app of the verb `word`; of no verb if it asks for the version, and otherwise of all verbs."""
    app = typer.Typer(
        name="headrace",
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_headrace)
    for name in () if word in _VERSION else (word,) if word in _VERBS else _VERBS:
        _VERBS[name].add_to(app)
    app.command("help", rich_help_panel=_WORK)(_show_help)
    return app
