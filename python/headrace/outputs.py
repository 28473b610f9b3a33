"""Files that are whole or not there at all. Every file that the package writes at once goes through this module."""

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from headrace._core import OutputFile
from headrace.errors import DataError, Error, SystemError, UsageError  # noqa: A004

_NULL = os.makedev(1, 3)
_CAUSES = (r"\berrno = (\d+)", r"\[[Ee]rrno (\d+)\]")  # as HDF5 and Arrow write it


class _Reserved:
    """Whether standard output is for JSON alone, so that no file may be written there."""

    value = False


def reserve_standard_output(wanted: bool) -> None:
    """From now on refuses standard output as a file, because JSON goes there; or allows it again."""
    _Reserved.value = wanted


def is_stream(path: Path, *numbers: int) -> bool:
    """Whether a path is what one of these standard streams writes to. /dev/null is not: it takes all."""
    for number in numbers:
        try:
            file, stream = path.stat(), os.fstat(number)
        except OSError:  # what is wrong with either is said where it is written
            continue
        null = stat.S_ISCHR(stream.st_mode) and stream.st_rdev == _NULL
        if (file.st_dev, file.st_ino) == (stream.st_dev, stream.st_ino) and not null:
            return True
    return False


def _check_apart(path: Path) -> None:
    if _Reserved.value and is_stream(path, 1):
        raise UsageError(f"{path} is standard output, where --json prints: give another file")


def shown_folder(path: Path) -> Path:
    """The folder of a path, for a message: whole, unless the working directory that it starts from was deleted."""
    try:
        return path.resolve().parent
    except OSError:
        return path.parent


def check(path: Path) -> None:
    """Finds out whether a file can be written there, before the work for it is done.

    Raises:
        UsageError: when it is a folder, or standard output where JSON goes.
        SystemError: naming it, when its folder is missing or nothing can be written there.
    """
    _check_apart(path)
    OutputFile(path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write bytes under; they become the content of `path` when the block ends well, and vanish otherwise.

    Links are followed, and device nodes, FIFOs and standard streams get the bytes written into them. The name has no
    ending, so a library that goes by endings must be told the format.

    Raises:
        UsageError: as check() does.
        SystemError: naming `path`, when it cannot be written or the block fails to write.
    """
    _check_apart(path)
    file = OutputFile(path)
    try:
        yield Path(file.staging)
    except OSError as error:
        if isinstance(error, Error) or (error.filename is not None and str(error.filename) != file.staging):
            raise
        raise SystemError(f"writing {path}: {_reason(error)}", native=error.errno or 0) from error
    sys.stdout.flush()  # before what goes to the same place
    file.commit()


@contextmanager
def writing(path: Path, nbytes: int = 0) -> Iterator[BinaryIO]:
    """As replacing(), an open file that can also be read and sought in; `nbytes` is about what it will take.

    Raises:
        SystemError: as replacing() does; on a full disk with that size, where it is given.
    """
    try:
        with replacing(path) as staged, staged.open("w+b") as file:
            yield file
    except SystemError as error:
        if nbytes == 0 or error.native not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise SystemError(f"{error}: it takes {nbytes:,} bytes", native=error.native) from error


def write(path: Path, content: str | bytes | memoryview) -> None:
    """Writes all of a file, text as UTF-8.

    Raises:
        DataError: for text with a lone surrogate, which UTF-8 does not have; JSON can hold one.
        SystemError: as writing() does.
    """
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise DataError(f"writing {path}: its text has a lone surrogate at character {error.start}") from None
    with writing(path, memoryview(data).nbytes) as file:
        file.write(data)


def _reason(error: OSError) -> str:
    """Why writing failed, without the name under which the bytes were kept."""
    if error.errno is not None:
        return os.strerror(error.errno)  # which is less than Arrow's own words, and what others say
    if error.strerror is not None:
        return error.strerror
    found = (re.search(cause, str(error)) for cause in _CAUSES)
    number = next((int(match[1]) for match in found if match), None)
    return os.strerror(number) if number is not None else str(error)


class Attempts:
    """Writes the files of a command, each whatever has become of the others.

    Attributes:
        written: those that are there.
        failures: why others are not.
    """

    def __init__(self) -> None:
        self.written: list[Path] = []
        self.failures: list[Exception] = []

    def write(self, path: Path | None, how: Callable[[Path], object]) -> bool:
        """Writes a file if there is to be one. Returns whether it is there."""
        if path is None:
            return False
        try:
            how(path)
        except (Error, OSError) as error:
            self.failures.append(error)
            return False
        if path not in self.written:
            self.written.append(path)
        return True
