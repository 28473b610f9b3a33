"""The command line. Each file has one verb as a function or an app, and verbs.py lists them."""

import os
import signal
import sys

import typer

from headrace import interrupts
from headrace.cli import help_tables, stopping
from headrace.cli.errors import guarded, open_standard_streams
from headrace.cli.verbs import app_of

app: typer.Typer


def __getattr__(name: str) -> typer.Typer:
    """Makes `app` the app of all verbs."""
    if name == "app":
        return app_of()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> int:
    """Runs the command line. Returns the exit status: 0, 1 for failures, 2 for usage errors, 130 on Ctrl-C.

    SIGTERM has the same effect as Ctrl-C, with status 143: what has been measured is printed and saved.
    """
    open_standard_streams()
    # For completion, the shell passes the words of its line in the environment, and they may name any verb.
    word = sys.argv[1] if len(sys.argv) > 1 and "_HEADRACE_COMPLETE" not in os.environ else None
    asked = app_of(word)  # Ctrl-C while loading: see starting.py
    if not {"-h", "--help", "help"}.isdisjoint(sys.argv):
        help_tables.fold_long_names()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupts.interrupt)
    status = guarded(asked)
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is interrupts.interrupt:
            signal.signal(number, signal.SIG_DFL)  # nothing is left to interrupt
    if stopping.any_left():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
