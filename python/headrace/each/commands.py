"""What is run: a program and its arguments, filled in for each input; and where inputs come from."""

import glob
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.each.slots import Slot
from headrace.errors import Errc, UsageError, reading
from headrace.text import printable

SEPARATOR = ":::"
_MARK = re.compile(r"\{(?:device|index)?\}")


@dataclass(frozen=True)
class Command:
    """A program and its arguments, with marks for what differs between inputs.

    `{}` is the input, `{device}` the device it runs on ("cuda:1", "cpu"), `{index}` its number from 0. Where `{}` is
    nowhere, the input is the last argument.
    """

    words: tuple[str, ...]

    @classmethod
    def split(cls, words: Sequence[str]) -> "tuple[Command, list[str]]":
        """The command before the first `:::`, and the inputs behind it.

        Raises:
            UsageError: when there is no program, or a second `:::`.
        """
        inputs: list[str] = []
        if SEPARATOR in words:
            at = words.index(SEPARATOR)
            words, inputs = words[:at], list(words[at + 1 :])
        if SEPARATOR in inputs:
            raise UsageError(f"one '{SEPARATOR}' separates the command from its inputs, and a second one is there")
        if not words:
            raise UsageError("no program to run: headrace each -- PROGRAM ARGUMENTS {} ::: INPUTS")
        return cls(tuple(words)), inputs

    def for_input(self, text: str, index: int, slot: Slot) -> list[str]:
        """The words of one process."""
        values = {"{}": text, "{device}": slot.device, "{index}": str(index)}
        filled = [_MARK.sub(lambda mark: values[mark[0]], word) for word in self.words]
        return filled if any("{}" in word for word in self.words) else [*filled, text]

    def require_programs(self, inputs: Sequence[str], slots: Sequence[Slot]) -> None:
        """Checks that what is to be run is there.

        Raises:
            UsageError: naming the first program that is not.
        """
        only = Command(self.words[:1])
        seen = set()
        for index, text in enumerate(inputs):
            for slot in slots:
                program = only.for_input(text, index, slot)[0]
                if program not in seen and shutil.which(program) is None:
                    raise UsageError(f"there is no executable program '{printable(program)}'", Errc.not_found)
                seen.add(program)


def _lines(source: str) -> list[str]:
    """The lines of a file, or of standard input where it is called "-"; empty lines are none. Any bytes will do."""
    try:
        content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise reading(source, error) from error
    return [os.fsdecode(line) for line in content.splitlines() if line.strip()]


def _matches(pattern: str) -> list[str]:
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - as the user wrote it, not as paths
    if not found:
        raise UsageError(f"no file matches '{pattern}'", Errc.not_found)
    return found


def gather_inputs(given: Sequence[str], files: Sequence[str] = (), patterns: Sequence[str] = ()) -> list[str]:
    """All inputs: those given, then the lines of files, then the files that match patterns.

    Raises:
        UsageError: when there are none, a file cannot be read, a pattern matches nothing, or an input has a NUL in it,
            which no argument can.
    """
    inputs = [*given]
    for file in files:
        inputs += _lines(file)
    for pattern in patterns:
        inputs += _matches(pattern)
    if not inputs:
        raise UsageError(f"no inputs: give them behind '{SEPARATOR}', with --inputs-from or with --glob")
    for number, text in enumerate(inputs):
        if "\0" in text:
            raise UsageError(f"input {number} has a NUL byte in it, which no program can be given")
    return inputs
