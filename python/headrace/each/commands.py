"""What to run: a program and its arguments, filled in for each input; and the sources of inputs."""

import glob
import itertools
import math
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.each.slots import Slot
from headrace.errors import Errc, MissingFileError, UsageError, reading
from headrace.text import printable, read_bytes, read_whole, shortened

SEPARATOR = ":::"
_MARK = re.compile(r"\{(?:device|index|[1-9][0-9]*)?\}")
_INPUT = re.compile(r"\{(?:[1-9][0-9]*)?\}")
_COMBINATIONS_MAX = 1_000_000
_DIGITS_MOST = 9  # digits of the number in a mark: a command has fewer words


@dataclass(frozen=True)
class Command:
    """A program and its arguments, with marks for the parts that vary between inputs.

    `{}` is the input, `{device}` the device it runs on ("cuda:1", "cpu"), `{index}` its number from 0. An input may
    have several parts, `{1}`, `{2}` and so on. A word that is just `{}` becomes one word per part; within a word, `{}`
    is all parts separated by blanks. Without a mark for the input, its parts become the last arguments.
    """

    words: tuple[str, ...]

    @classmethod
    def split(cls, words: Sequence[str]) -> "tuple[Command, list[list[str]]]":
        """Splits words into the command before the first `:::` and the inputs after each `:::`.

        Raises:
            UsageError: when there is no program.
        """
        groups: list[list[str]] = [[]]
        for word in words:
            if word == SEPARATOR:
                groups.append([])
            else:
                groups[-1].append(word)
        if not groups[0]:
            raise UsageError("no program to run: headrace each -- PROGRAM ARGUMENTS {} ::: INPUTS")
        return cls(tuple(groups[0])), groups[1:]

    def for_input(self, parts: tuple[str, ...], index: int, slot: Slot) -> list[str]:
        """The words of one process's command line."""
        values = {"{}": " ".join(parts), "{device}": slot.device, "{index}": str(index)}
        values |= {f"{{{number}}}": part for number, part in enumerate(parts, 1)}
        words = [part for word in self.words for part in (parts if word == "{}" else (self._fill(word, values),))]
        return words if any(_INPUT.search(word) for word in self.words) else [*words, *parts]

    @staticmethod
    def _fill(word: str, values: Mapping[str, str]) -> str:
        return _MARK.sub(lambda mark: values[mark[0]], word)

    def require_parts(self, count: int) -> None:
        """Checks that inputs have all parts that the marks name.

        Raises:
            UsageError: naming the first mark without a part.
        """
        for word in self.words:
            for mark in _INPUT.findall(word):
                number = mark[1:-1]
                if number and (len(number) > _DIGITS_MOST or int(number) > count):
                    raise UsageError(
                        f"the command names {shortened(mark)}, but an input has {count} part(s): one for each "
                        f"'{SEPARATOR}'"
                    )

    def require_programs(self, inputs: Sequence[tuple[str, ...]], slots: Sequence[Slot]) -> None:
        """Checks that the programs exist.

        Raises:
            UsageError: naming the first program that does not exist.
        """
        only = Command(self.words[:1])
        seen = set()
        for index, parts in enumerate(inputs):
            for slot in slots:
                program = only.for_input(parts, index, slot)[0]
                if program not in seen and shutil.which(program) is None:
                    raise UsageError(f"there is no executable program '{printable(program)}'", Errc.not_found)
                seen.add(program)


def _items(source: str, *, null: bool) -> list[str]:
    """The lines of a file, or its NUL-separated items; "-" is standard input. Empty items are skipped.

    Items may contain any bytes.
    """
    try:
        content = read_whole(sys.stdin.buffer, "standard input") if source == "-" else read_bytes(Path(source))
    except OSError as error:
        raise (error if isinstance(error, MissingFileError) else reading(source, error)) from error
    items = content.split(b"\0") if null else [line for line in content.splitlines() if line.strip()]
    return [os.fsdecode(item) for item in items if item]


def _matches(pattern: str) -> list[str]:
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - as the user wrote it, not as paths
    if not found:
        raise UsageError(f"no file matches '{pattern}'", Errc.not_found)
    return found


def gather_inputs(
    given: Sequence[str], files: Sequence[str] = (), patterns: Sequence[str] = (), *, null: bool = False
) -> list[str]:
    """All inputs: first those given, then those from files, then the files that match patterns.

    Files have one input per line. With `null`, NUL bytes separate inputs, which may then contain line breaks.

    Raises:
        UsageError: when there are no inputs, a file cannot be read, a pattern matches nothing, or an input contains a
            NUL, which no argument can.
    """
    inputs = [*given]
    for file in files:
        inputs += _items(file, null=null)
    for pattern in patterns:
        inputs += _matches(pattern)
    if not inputs:
        raise UsageError(f"no inputs: give them after '{SEPARATOR}', with --inputs-from or with --glob")
    for number, text in enumerate(inputs):
        if "\0" in text:
            raise UsageError(
                f"input {number} contains a NUL byte, which no argument can contain; -0 splits files at NUL bytes"
            )
    return inputs


def combine(sources: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """All combinations of one input per source; the last source varies fastest.

    Raises:
        UsageError: when a source has no inputs, or there are more than a million combinations.
    """
    for number, source in enumerate(sources, 1):
        if not source:
            raise UsageError(f"no inputs after '{SEPARATOR}' number {number}")
    count = math.prod(map(len, sources))
    if count > _COMBINATIONS_MAX:
        raise UsageError(f"{count} combinations of inputs: at most {_COMBINATIONS_MAX}")
    return list(itertools.product(*sources))
