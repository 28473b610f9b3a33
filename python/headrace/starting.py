"""Importing this module makes Ctrl-C end the process at once, without a traceback, while the command line loads."""

import os
import signal
import sys


def _is_command() -> bool:
    """Whether this process runs `headrace` or `python -m headrace` rather than a program that imports the package."""
    program = sys.argv[0] if sys.argv else ""
    if program != "-m":  # its value until Python has found the module
        return os.path.basename(program) == "headrace"  # noqa: PTH119 - pathlib takes milliseconds to load
    words = sys.orig_argv
    return words[words.index("-m") + 1 : words.index("-m") + 2] == ["headrace"] if "-m" in words else False


def _let_ctrl_c_end_it() -> None:
    """Restores SIGINT's default action if the process runs a command and has no other handler.

    Python's handler raises KeyboardInterrupt, which would print a traceback in the middle of an import, or end the
    process by SIGABRT within an import of the extension.
    """
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        except ValueError:  # not the main thread
            return


_let_ctrl_c_end_it()
