"""A process with its process group: it is started, watched, and ended so that nothing of it stays behind."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from headrace.each.guard import Guard

_LEFTOVER_POLL = 0.02
_WAIT_POLL = 3600.0
_SOFT = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_TAIL_BYTES = 64 * 1024


def living_members(group: int) -> bool:
    """Whether a process of the group is still running; a zombie does not count."""
    with os.scandir("/proc") as entries:
        return any(entry.name.isdigit() and _lives_in(group, Path(entry.path, "stat")) for entry in entries)


def _lives_in(group: int, stat: Path) -> bool:
    try:
        content = stat.read_bytes()
    except OSError:
        return False  # it ended in the meantime
    state, _parent, of_group = content.rpartition(b")")[2].split()[:3]  # the name may contain any character
    return int(of_group) == group and state not in (b"Z", b"X")


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log as text, whatever bytes it contains."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return lines[-count:]


class Child:
    """A process that leads its own group, with its output in two files and empty input.

    The process is reaped only once its group is empty. Until then its number cannot be reused, so a signal to the group
    cannot reach a stranger.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
        *,
        timeout: float | None,
        grace: float,
        guard: Guard | None = None,
    ) -> None:
        """Starts the process; with a guard, it ends with this process. Raises OSError when it cannot be started."""
        marked = {**environment, **(guard.variable if guard else {})}
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=marked, process_group=0
        )
        self._guard = guard
        if guard is not None:
            try:
                guard.watch(self.pid)
            except OSError:
                os.killpg(self.pid, signal.SIGKILL)
                self._process.wait()
                raise
        self._grace = grace
        self.began = time.monotonic()
        self.seconds = 0.0
        self.timed_out = False
        self._timeout_at = None if timeout is None else self.began + timeout
        self._signals: list[signal.Signals] = []  # signals still to send, one per grace period
        self._next_at: float | None = None
        self._leader_ended = False

    @property
    def pid(self) -> int:
        """Process number, which is also the group's."""
        return self._process.pid

    @property
    def returncode(self) -> int:
        """Exit status, or minus the signal that ended it. Valid only once it is done."""
        return self._process.returncode

    def stop(self) -> None:
        """Asks the group to end: with SIGINT, after the grace period with SIGTERM, then with SIGKILL."""
        self._timeout_at = None
        self._begin(_SOFT)

    def kill(self) -> None:
        """Ends the group at once."""
        self._timeout_at = None
        self._begin((signal.SIGKILL,))

    def _begin(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = list(signals)
        self._advance(time.monotonic())

    def _advance(self, now: float) -> None:
        """Sends the next signal, and sets when the following one is due."""
        number = self._signals.pop(0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        self._next_at = now + self._grace if self._signals else None

    def _leader_has_ended(self) -> bool:
        if not self._leader_ended:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            self._leader_ended = found is not None
            if self._leader_ended:
                self.seconds = time.monotonic() - self.began
        return self._leader_ended

    def done(self) -> bool:
        """Sends signals that are due; returns true once the process has ended and its group is empty."""
        now = time.monotonic()
        if self._leader_has_ended():
            if not living_members(self.pid):
                if self._guard is not None:
                    self._guard.forget(self.pid)
                self._process.wait()
                return True
            if not self._signals and self._next_at is None:
                self._begin(_SOFT[1:])  # ends what it left in the background
        elif self._timeout_at is not None and now >= self._timeout_at:
            self._timeout_at = None
            self.timed_out = True
            self._begin(_SOFT[1:])
        if self._next_at is not None and now >= self._next_at:
            self._advance(now)
        return False

    def look_again_in(self) -> float:
        """Seconds until done() must be called again, if no child ends before."""
        if self._leader_ended:
            return _LEFTOVER_POLL
        due = [at for at in (self._timeout_at, self._next_at) if at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else _WAIT_POLL
