"""Keeps every slot busy until all inputs are done, and reports how each one ended."""

import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from headrace.each.child import Child, last_lines
from headrace.each.commands import Command
from headrace.each.guard import Guard
from headrace.each.interrupts import Interrupts
from headrace.each.logs import Again, Logs, disk_is_full
from headrace.each.slots import Slot


class Ending(StrEnum):
    """How an input ended."""

    ok = "ok"
    failed = "failed"
    timed_out = "timed out"
    not_started = "not started"
    interrupted = "interrupted"
    not_run = "not run"


@dataclass(frozen=True)
class Rules:
    """When to give up on a process, and what to do then."""

    retries: int = 0
    timeout: float | None = None
    stop_on_failure: bool = False
    grace: float = 5.0  # time between SIGINT, SIGTERM and SIGKILL
    lines: int = 10  # lines of stderr to keep of a failed input


@dataclass
class Outcome:
    """An input, and how its last attempt ended."""

    index: int
    parts: tuple[str, ...]
    stdout: Path
    stderr: Path
    ending: Ending = Ending.not_run
    device: str | None = None
    attempts: int = 0
    seconds: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None  # why the process could not be started
    last_lines: list[str] = field(default_factory=list)
    resumed: bool = False  # it had already succeeded in an earlier run

    @property
    def text(self) -> str:
        """The input as displayed."""
        return " ".join(self.parts)

    def as_dict(self) -> dict[str, Any]:
        """The record for a job log and --json."""
        return {
            "index": self.index,
            "input": list(self.parts),
            "status": str(self.ending),
            "device": self.device,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "reason": self.reason,
            "attempts": self.attempts,
            "seconds": self.seconds,
            "stdout": str(self.stdout) if self.attempts else None,
            "stderr": str(self.stderr) if self.attempts else None,
        }

    def describe(self) -> str:
        """Text such as "failed: exit code 3" or "timed out: SIGTERM"."""
        why = self.reason or self.signal or (f"exit code {self.exit_code}" if self.exit_code is not None else "")
        return f"{self.ending}: {why}" if why else str(self.ending)


@dataclass(frozen=True)
class Report:
    """Outcomes of all inputs, in order."""

    outcomes: list[Outcome]
    seconds: float
    interrupted_by: signal.Signals | None

    def count(self, *endings: Ending) -> int:
        """Number of inputs that ended in one of these ways."""
        return sum(1 for outcome in self.outcomes if outcome.ending in endings)

    @property
    def failures(self) -> list[Outcome]:
        """Inputs that were tried and failed by themselves."""
        wrong = (Ending.failed, Ending.timed_out, Ending.not_started)
        return [outcome for outcome in self.outcomes if outcome.ending in wrong]


def _open_log(path: str, flags: int) -> int:
    """Opens a log at once or fails: if it is a FIFO, nothing would end a wait for its reader."""
    opened = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(opened, True)
    return opened


class Runner:
    """Runs `command` for each input in order, one process per slot at a time.

    `finished` is called with each outcome when it becomes final; `changed` is called whenever a process starts or ends,
    with the numbers of final and of running inputs.
    """

    def __init__(
        self,
        command: Command,
        inputs: Sequence[tuple[str, ...]],
        slots: Sequence[Slot],
        logs: Path,
        rules: Rules,
        again: Again = Again.refuse,
        *,
        finished: Callable[[Outcome], None] = lambda _outcome: None,
        changed: Callable[[int, int], None] = lambda _done, _running: None,
    ) -> None:
        """Raises UsageError when a program is missing, or logs cannot be written or would overwrite others."""
        command.require_parts(min(map(len, inputs)))
        command.require_programs(inputs, slots)
        self._command = command
        self._rules = rules
        self._finished = finished
        self._changed = changed
        self._logs = Logs(logs, command.words, inputs, again)
        self._outcomes = [Outcome(index, parts, *self._logs.files(index)) for index, parts in enumerate(inputs)]
        for index, record in self._logs.succeeded.items():
            outcome = self._outcomes[index]
            outcome.ending, outcome.exit_code, outcome.resumed = Ending.ok, 0, True
            outcome.device, outcome.attempts, outcome.seconds = (
                record.get("device"),
                record.get("attempts", 1),
                record.get("seconds", 0.0),
            )
        self._waiting = deque(outcome for outcome in self._outcomes if not outcome.resumed)
        self._free = deque(slots)
        self._running: dict[int, tuple[Child, Outcome, Slot]] = {}
        self._done = len(self._logs.succeeded)
        self._stopping = False
        self._guard: Guard | None = None

    def run(self) -> Report:
        """Returns when every input is done, or after Ctrl-C when all running processes have ended."""
        began = time.monotonic()
        with Interrupts() as interrupts, contextlib.closing(self._logs):
            try:
                self._guard = Guard()
                self._loop(interrupts)
            finally:
                self._end_all(interrupts)
                if self._guard is not None:
                    self._guard.close()
        return Report(self._outcomes, time.monotonic() - began, interrupts.first)

    def _loop(self, interrupts: Interrupts) -> None:
        answered = 0
        while self._running or self._waiting:
            while self._waiting and self._free:
                self._start(self._waiting.popleft(), self._free.popleft())
            if self._running:
                interrupts.wait(min(child.look_again_in() for child, _, _ in self._running.values()))
            if interrupts.count > answered:
                self._give_up(at_once=interrupts.count > 1)
                answered = interrupts.count
            self._collect()

    def _give_up(self, *, at_once: bool) -> None:
        """Starts no more processes and asks the running ones to end; the second time, kills them."""
        self._waiting.clear()
        self._stopping = True
        for child, _, _ in self._running.values():
            if at_once:
                child.kill()
            else:
                child.stop()

    def _end_all(self, interrupts: Interrupts) -> None:
        """Kills all processes when something unforeseen ends the loop."""
        for child, _, _ in self._running.values():
            child.kill()
        while True:
            # Checked before each wait, which does not notice processes that ended before it began.
            self._running = {pid: entry for pid, entry in self._running.items() if not entry[0].done()}
            if not self._running:
                return
            interrupts.wait(min(child.look_again_in() for child, _, _ in self._running.values()))

    def _start(self, outcome: Outcome, slot: Slot) -> None:
        outcome.attempts += 1
        outcome.device = slot.device
        words = self._command.for_input(outcome.parts, outcome.index, slot)
        mode = "wb" if outcome.attempts == 1 else "ab"
        try:
            with (
                open(outcome.stdout, mode, opener=_open_log) as out,
                open(outcome.stderr, mode, opener=_open_log) as err,
            ):
                if outcome.attempts > 1:
                    err.write(f"headrace: attempt {outcome.attempts}\n".encode())
                    err.flush()
                child = Child(
                    words,
                    slot.environment(os.environ),
                    out,
                    err,
                    timeout=self._rules.timeout,
                    grace=self._rules.grace,
                    guard=self._guard,
                )
        except OSError as error:
            outcome.reason = error.strerror or str(error)
            self._end_attempt(outcome, Ending.not_started, slot)
            return
        self._running[child.pid] = (child, outcome, slot)
        self._changed(self._done, len(self._running))

    def _collect(self) -> None:
        for pid, (child, outcome, slot) in list(self._running.items()):
            if not child.done():
                continue
            del self._running[pid]
            status = child.returncode
            outcome.seconds = child.seconds
            outcome.exit_code = status if status >= 0 else None
            outcome.signal = _signal_name(-status) if status < 0 else None
            ending = self._ending(child)
            outcome.reason = None
            if ending in (Ending.ok, Ending.failed) and disk_is_full(self._logs.folder):
                ending = Ending.failed
                outcome.reason = f"the disk of {self._logs.folder} is full, so its logs may be truncated"
            self._end_attempt(outcome, ending, slot)

    def _ending(self, child: Child) -> Ending:
        if child.timed_out:
            return Ending.timed_out
        if child.returncode == 0:
            return Ending.ok
        return Ending.interrupted if self._stopping else Ending.failed

    def _end_attempt(self, outcome: Outcome, ending: Ending, slot: Slot) -> None:
        """Frees the slot; the input is final, or is retried after the waiting ones."""
        self._free.append(slot)
        outcome.ending = ending
        wrong = ending not in (Ending.ok, Ending.interrupted)
        outcome.last_lines = []
        if ending is not Ending.ok:
            with contextlib.suppress(OSError):  # there is no log, if opening it was what failed
                outcome.last_lines = last_lines(outcome.stderr, self._rules.lines)
        if wrong and outcome.attempts <= self._rules.retries and not self._stopping:
            self._waiting.append(outcome)
            self._changed(self._done, len(self._running))
            return
        self._done += 1
        if wrong and self._rules.stop_on_failure:
            self._waiting.clear()
        self._logs.record(outcome.as_dict())
        self._finished(outcome)
        self._changed(self._done, len(self._running))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
