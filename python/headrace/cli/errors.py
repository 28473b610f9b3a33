"""How the command line fails: one line on stderr, no traceback, and a status that a script can act on."""

import os
import resource
import signal
import sys

import typer

from headrace import interrupts
from headrace.errors import Error, UsageError
from headrace.outputs import Attempts
from headrace.text import printable

STATUS_FAILURE = 1
STATUS_USAGE = 2
STATUS_INTERRUPTED = 128 + signal.SIGINT
_NO_THREAD = "can't start new thread"  # as Python's threads say it


def report(message: str) -> None:
    """Prints "headrace: error: <message>" on stderr, as one line."""
    print(f"headrace: error: {printable(' '.join(message.split()))}", file=sys.stderr)


def finish(attempts: Attempts, status: int = 0) -> None:
    """Reports the files that could not be written, and leaves with that status or, if it is 0, with that of a failure.

    It is called last, so that a failed file suppresses neither the figures nor another file.
    """
    for failure in attempts.failures:
        report(str(failure))
    if status or attempts.failures:
        raise typer.Exit(status or STATUS_FAILURE)


def _silence_stdout() -> None:
    """Keeps the interpreter from failing when it flushes a stdout whose reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str | None:
    """What to say of a failure; None of one that nobody expected."""
    if isinstance(error, RuntimeError) and not isinstance(error, Error):
        if str(error) != _NO_THREAD:
            return None
        limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
        return f"no thread could be started: raise the limit on processes (ulimit -u, {limit} here)"
    return str(error) or type(error).__name__


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the words of a command, and which command says what it takes."""
    context = getattr(error, "ctx", None)
    said = error.format_message().rstrip(".")
    return said if context is None else f"{said}; '{context.command_path} --help' shows what it takes"


def guarded(app: typer.Typer, arguments: list[str] | None = None) -> int:
    """Runs the app and returns its exit status. HEADRACE_TRACEBACK=1 in the environment lets exceptions through."""
    try:
        status = app(args=arguments, prog_name="headrace", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return interrupts.status()
    except typer.TyperException as error:
        report(_usage(error))
        return STATUS_USAGE
    except BrokenPipeError:
        _silence_stdout()
        return STATUS_FAILURE
    except (Error, OSError, MemoryError, RuntimeError) as error:
        message = _message(error)
        if message is None or os.environ.get("HEADRACE_TRACEBACK") == "1":
            raise
        report(message)
        return STATUS_USAGE if isinstance(error, UsageError) else STATUS_FAILURE
    if status == STATUS_INTERRUPTED:
        return interrupts.status()
    return status if isinstance(status, int) else 0
