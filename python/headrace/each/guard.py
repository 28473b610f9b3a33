"""A process that ends the children's groups if this process is killed."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

_PROGRAM = Path(__file__).with_name("guard_program.py")
_NAME = "HEADRACE_EACH"


class Guard:
    """Kills every watched group, and every process with its variable, when this process ends.

    A parent-death signal (`prctl(PR_SET_PDEATHSIG)`) would reach only the leaders of the groups. The guard leads its
    own session, so neither a terminal nor a signal to this process's group ends it.
    """

    def __init__(self) -> None:
        """Starts the guard. Raises OSError when it cannot be started."""
        self.variable = {_NAME: f"{os.getpid()}-{secrets.token_hex(8)}"}
        self._groups: set[int] = set()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), f"{_NAME}={self.variable[_NAME]}"],
            bufsize=0,
            env={name: value for name, value in os.environ.items() if name != _NAME},  # for a run inside of another
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Makes the group end with this process from now on."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Stops watching a group that has ended; call it before its number can be reused."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def _tell(self, lines: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(lines.encode())
        except BrokenPipeError:  # the guard has been killed
            self._process.stdin.close()
            self._process.wait()
            self._process = self._start()
            self._tell("".join(f"+{group}\n" for group in self._groups))

    def close(self) -> None:
        """Ends the guard, and with it every group that it still watches."""
        self._process.communicate()
