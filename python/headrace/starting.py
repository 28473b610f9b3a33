"""Ctrl-C while the command line is loaded ends the process at once, without a traceback: by importing this module."""

import os
import signal
import sys


def _is_command() -> bool:
    """Whether this process runs `headrace` or `python -m headrace`, rather than a program that imports the package."""
    program = sys.argv[0] if sys.argv else ""
    if program != "-m":  # which it is until Python has found the module
        return os.path.basename(program) == "headrace"  # noqa: PTH119 - pathlib takes milliseconds to load
    words = sys.orig_argv
    return words[words.index("-m") + 1 : words.index("-m") + 2] == ["headrace"] if "-m" in words else False


def _let_ctrl_c_end_it() -> None:
    """Gives SIGINT the system's own way where the process runs a command and nothing else handles the signal.

    Python's handler raises KeyboardInterrupt, which is a traceback in the middle of an import, and ends the process by
    SIGABRT within the extension's.
    """
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        except ValueError:  # this is not the main thread
            return


_let_ctrl_c_end_it()
