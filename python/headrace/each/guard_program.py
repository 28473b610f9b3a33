"""The script of a Guard: kills what it guards when its standard input ends.

Arguments: a variable, NAME=VALUE, that the environment of every process to be killed contains.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

_ROUNDS = 100  # a process may create another during the search


def _marked(variable: bytes) -> list[int]:
    """Processes that have the variable, except this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(entry.name) != os.getpid() and variable in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def main() -> None:
    """Reads "+7" for a group to watch and "-7" for one that has ended, one per line, until the writer is gone."""
    groups: set[int] = set()
    for line in sys.stdin:
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    # A process that was just started is in no known group, and one with its own session has left its group.
    for _ in range(_ROUNDS):
        found = _marked(os.fsencode(sys.argv[1]))
        if not found:
            return
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
