"""Error handling of the command line: one line on stderr, no traceback, and a status for scripts."""

import errno
import os
import re
import resource
import signal
import sys

import typer

from headrace import interrupts
from headrace.errors import Error, UsageError
from headrace.outputs import Attempts
from headrace.text import printable, shortened

STATUS_FAILURE = 1
STATUS_USAGE = 2
STATUS_INTERRUPTED = 128 + signal.SIGINT
_MANY_DIGITS = re.compile(r"[0-9]{10}")  # numbers of 2^32 and beyond
_NO_THREAD = "can't start new thread"  # the message of Python's threads
#: CPython's message when it has no memory for a function's frame and sets no exception (3.11).
_NO_FRAME = "error return without exception set"
_NO_DETAIL = {"", "std::bad_alloc"}  # messages of a MemoryError without details


def report(message: str) -> None:
    """Prints "headrace: error: <message>" on stderr, as one line."""
    print(f"headrace: error: {printable(' '.join(message.split()))}", file=sys.stderr)


def finish(attempts: Attempts, status: int = 0) -> None:
    """Reports the files that could not be written, and exits with `status` or, if that is 0, with that of a failure.

    Call it last, so that a failed file suppresses neither the figures nor another file.
    """
    for failure in dict.fromkeys(map(str, attempts.failures)):  # a checkpoint fails each time with the same message
        report(failure)
    if status or attempts.failures:
        raise typer.Exit(status or STATUS_FAILURE)


def open_standard_streams() -> None:
    """Opens missing standard streams on a descriptor that fails as a closed one does.

    Otherwise the next opened file would get the number of standard output or error, and the output of libraries.
    """
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
            opened = os.open(os.devnull, os.O_WRONLY if number else os.O_RDONLY)  # another descriptor has its number
        except OSError:
            opened = os.open(os.devnull, flags)  # writing to standard output then fails with a bad file descriptor
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
                opened = number
        setattr(sys, name, os.fdopen(opened, "w" if number else "r", closefd=False))


def _silence_stdout() -> None:
    """Keeps the interpreter from failing when it flushes a stdout whose reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _drop_unwritten() -> int | None:
    """Discards output that stdout could not take, so that the interpreter does not fail again at exit.

    Returns:
        Returns the errno of standard output's failure, or None if it works.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        _silence_stdout()
        return error.errno
    return None


def _system_message(error: OSError) -> str:
    """The file and the cause of a failed call, worded as in C++, without Python's errno and quotes."""
    if isinstance(error, Error) or error.strerror is None:
        return str(error) or type(error).__name__
    if isinstance(error.filename, str | bytes):
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if error.errno == _drop_unwritten():  # printed output could not be written
        return f"writing standard output: {error.strerror}"
    if error.errno == errno.EAGAIN:
        return _no_more("process")
    return error.strerror


def _no_more(what: str) -> str:
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    return f"cannot start a {what}: raise the limit on processes (ulimit -u, currently {limit})"


def _message(error: Exception) -> str | None:
    """The message for a failure; None for an unexpected one."""
    if isinstance(error, OSError):
        return _system_message(error)
    if isinstance(error, MemoryError) and str(error) in _NO_DETAIL:
        return "there is not enough memory"
    if isinstance(error, SystemError):
        return "there is not enough memory" if str(error) == _NO_FRAME else None
    if isinstance(error, RuntimeError) and not isinstance(error, Error):
        return _no_more("thread") if str(error) == _NO_THREAD else None
    return str(error) or type(error).__name__


def _usage(error: typer.TyperException) -> str:
    """The message for a usage error, and the command whose help explains the usage."""
    context = getattr(error, "ctx", None)
    said = error.format_message().rstrip(".")
    return said if context is None else f"{said}; see '{context.command_path} --help'"


def _odd_word(words: list[str]) -> str | None:
    """Describes the first word of a command that no function could accept, or returns None."""
    for word in words:
        if not word.isascii() and any(0xD800 <= ord(letter) <= 0xDFFF for letter in word):  # noqa: PLR2004
            return f"'{shortened(word)}' is not valid UTF-8"
        if _MANY_DIGITS.search(word):
            return f"'{shortened(word)}' has a number that is out of range"
    return None


def guarded(  # noqa: PLR0911 - a kind of failure each
    app: typer.Typer, arguments: list[str] | None = None
) -> int:
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
    except (Error, OSError, MemoryError, RuntimeError, SystemError, ImportError) as error:  # the last one: loaded late
        message = _message(error)
        if message is None or os.environ.get("HEADRACE_TRACEBACK") == "1":
            raise
        report(message)
        _drop_unwritten()
        return STATUS_USAGE if isinstance(error, UsageError) else STATUS_FAILURE
    except (TypeError, ValueError, OverflowError):
        # C++ or the standard library reports a number beyond its type, or bytes that are not text.
        said = _odd_word(sys.argv[1:] if arguments is None else arguments)
        if said is None or os.environ.get("HEADRACE_TRACEBACK") == "1":
            raise
        report(said)
        return STATUS_USAGE
    if status == STATUS_INTERRUPTED:
        return interrupts.status()
    return status if isinstance(status, int) else 0
