"""Splits input files into commands with their lines, and collects problems."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import DataError, Error, UsageError
from headrace.text import read_bytes

_INCLUDES_MOST = 16  # levels of nesting
_COMMANDS_MOST = 2_000_000
_BLOCK, _BLOCK_END, _INCLUDE = "python", "end_python", "include_file"

# Runs blocks of code and returns the output of each; the line numbers of the blocks are for errors.
Runner = Callable[[list[tuple[int, str]]], list[str]]


_DIGITS_MOST = 15  # below 2^53


class InputFileError(UsageError):
    """All problems that prevent the conversion of a file.

    Attributes:
        lines: one per problem, naming file, line and command.
    """

    def __init__(self, lines: list[str]) -> None:
        count = len(lines) - 1
        more = f" (and {count} more problem{'s' if count > 1 else ''})" if count else ""
        super().__init__(lines[0] + more)
        self.lines = lines

    def __reduce__(self) -> tuple[type["InputFileError"], tuple[list[str]]]:  # type: ignore[override] # of its own arguments
        """For pickle: rebuilds it from its lines."""
        return type(self), (self.lines,)


@dataclass(frozen=True)
class Command:
    """A command in a file."""

    path: Path
    line: int
    name: str
    words: list[str]

    @property
    def place(self) -> str:
        """File, line and name, the prefix of messages."""
        return f"{self.path}:{self.line}: #{self.name}"

    def error(self, what: str) -> UsageError:
        """The error for a problem with this command."""
        return UsageError(f"{self.place}: {what}")

    def expect(self, *counts: int) -> None:
        """Refuses any other number of parameters."""
        if len(self.words) not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise self.error(f"has {len(self.words)} parameters, not {wanted}")

    def number(self, index: int) -> float:
        """A parameter as a finite number."""
        if index >= len(self.words):
            raise self.error(f"has {len(self.words)} parameters, but needs {index + 1} or more")
        try:
            value = float(self.words[index])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"'{self.words[index]}' is not a number")
        return value

    def whole(self, index: int) -> int | None:
        """A parameter as a whole number, if it consists of digits only; otherwise None."""
        word = self.words[index]
        if not (word.isascii() and word.isdigit()):
            return None
        if len(word.lstrip("0")) > _DIGITS_MOST:
            raise self.error(f"a number of {len(word):,} digits is out of range")
        return int(word)

    def numbers(self, first: int, count: int) -> list[float]:
        """Several parameters as numbers."""
        return [self.number(index) for index in range(first, first + count)]

    def as_other(self, name: str, *words: object) -> "Command":
        """A replacement command in the same place."""
        return Command(self.path, self.line, name, [str(word) for word in words])


@dataclass
class Findings:
    """Problems and notes collected while a file is read."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Adds an error raised inside to the problems, and continues."""
        try:
            yield
        except Error as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))

    def note(self, line: str) -> None:
        """Adds a note, once."""
        if line not in self.notes:
            self.notes.append(line)

    def finish(self) -> None:
        """Raises the problems, if there are any."""
        if self.problems:
            raise InputFileError(self.problems)


def read(path: Path) -> str:
    """Reads the text of an input file. Files of version 2 are often older than UTF-8.

    Raises:
        DataError: when it is not text.
        SystemError: when it cannot be read.
    """
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = raw.decode("latin-1")
        if any(line.startswith("#") and not line.isascii() for line in text.splitlines()):
            raise DataError(f"{path}: not text in UTF-8: {error}") from None
    if "\0" in text:
        raise DataError(f"{path}: not text: it contains NUL bytes")
    return text


def commands(text: str, path: Path, findings: Findings, runner: Runner | None) -> list[Command]:
    """The commands of a file and of its included files; `runner` runs its Python blocks if it is trusted."""
    found = list(plain(text, path, findings))
    blocks = [one for one in found if one.name == _BLOCK]
    if blocks and runner is None:
        for block in blocks:
            findings.problems.append(
                f"{block.place}: a block of code runs only with --trust (in a process without privileges)"
            )
        found = [one for one in found if one.name != _BLOCK]
    elif blocks and runner is not None:
        with findings.noting():
            printed = dict(zip(map(id, blocks), runner([(one.line, one.words[0]) for one in blocks]), strict=True))
            found = [more for one in found for more in _expanded(one, printed, findings)]
    if findings.problems:
        found = [one for one in found if one.name != _BLOCK]
    return [more for one in found for more in _included(one, findings, 0)]


def _expanded(command: Command, printed: dict[int, str], findings: Findings) -> Iterator[Command]:
    """The command itself or, for a block, the commands that it printed, at the line of the block."""
    if command.name != _BLOCK:
        yield command
        return
    for number, line in enumerate(printed[id(command)].splitlines()):
        if number == _COMMANDS_MOST:
            raise command.error(f"it printed more than {_COMMANDS_MOST:,} lines")
        yield from _line(line, command.path, command.line, findings)


def _included(command: Command, findings: Findings, depth: int) -> Iterator[Command]:
    if command.name != _INCLUDE:
        yield command
        return
    with findings.noting():
        command.expect(1)
        if depth == _INCLUDES_MOST:
            raise command.error(f"files include one another more than {_INCLUDES_MOST} levels deep")
        path = command.path.parent / command.words[0]
        for inner in plain(read(path), path, findings):
            if inner.name == _BLOCK:
                raise inner.error("a block of code in an included file is not supported")
            yield from _included(inner, findings, depth + 1)


def plain(text: str, path: Path, findings: Findings) -> Iterator[Command]:
    """The commands of one text; a Python block is one command, with its code as its only word."""
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if not re.match(rf"#{_BLOCK}\s*:", line):
            yield from _line(line, path, number, findings)
            continue
        code = []
        for _, inner in lines:
            if re.match(rf"#{_BLOCK_END}\s*:", inner):
                break
            code.append(inner)
        else:
            findings.problems.append(f"{path}:{number}: #{_BLOCK}: it has no #{_BLOCK_END}")
            return
        yield Command(path, number, _BLOCK, ["\n".join(code)])


def _line(line: str, path: Path, number: int, findings: Findings) -> Iterator[Command]:
    """The command of a line, if there is one: lines that do not begin with # are comments, as are those with ##."""
    if not line.startswith("#") or line.startswith("##"):
        return
    match = re.fullmatch(r"#(\w+)\s*:(.*)", line.rstrip())
    if match is None:
        findings.problems.append(f"{path}:{number}: '{line.rstrip()}' is not a command, such as #domain: 1 1 0.01")
        return
    words = [match[2].strip()] if match[1] == "title" else match[2].split()
    yield Command(path, number, match[1], words)
