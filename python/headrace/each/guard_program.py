"""What a Guard runs, as a script of its own: ends what it guards once its standard input ends.

Arguments: a variable, NAME=VALUE, that every process to be ended has in its environment.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

_ROUNDS = 100  # a process may make another while it is looked for


def _marked(variable: bytes) -> list[int]:
    """Processes that have the variable, but for this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(entry.name) != os.getpid() and variable in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def main() -> None:
    """Reads "+7" for a group to watch and "-7" for one that has ended, a line each, until the writer is gone."""
    groups: set[int] = set()
    for line in sys.stdin:
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    # One that had just been started is in no group that is known, and one with a session of its own has left its group.
    for _ in range(_ROUNDS):
        found = _marked(os.fsencode(sys.argv[1]))
        if not found:
            return
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
