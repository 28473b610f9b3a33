"""Writes files completely or not at all. Every file that the package writes at once goes through this module."""

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
_CAUSES = (r"\berrno = (\d+)", r"\[[Ee]rrno (\d+)\]")  # the forms in which HDF5 and Arrow report errno


class _Reserved:
    """Whether standard output carries only JSON, so that no file may be written there."""

    value = False


def reserve_standard_output(wanted: bool) -> None:
    """Refuses standard output as a file from now on, because JSON goes there; or allows it again."""
    _Reserved.value = wanted


def is_stream(path: Path, *numbers: int) -> bool:
    """Whether a path is where one of these standard streams goes. /dev/null does not count: it discards everything."""
    for number in numbers:
        try:
            file, stream = path.stat(), os.fstat(number)
        except OSError:  # the write itself reports what is wrong with either
            continue
        null = stat.S_ISCHR(stream.st_mode) and stream.st_rdev == _NULL
        if (file.st_dev, file.st_ino) == (stream.st_dev, stream.st_ino) and not null:
            return True
    return False


def _check_apart(path: Path) -> None:
    if _Reserved.value and is_stream(path, 1):
        raise UsageError(f"{path} is standard output, where --json prints: give another file")


def shown_folder(path: Path) -> Path:
    """The folder of a path for a message: absolute, unless the current working directory was deleted."""
    try:
        return path.resolve().parent
    except OSError:
        return path.parent


def check(path: Path) -> None:
    """Checks before the work starts that a file can be written to this path.

    Raises:
        UsageError: when it is a folder, or standard output where JSON goes.
        SystemError: naming the path, when its folder is missing or not writable.
    """
    _check_apart(path)
    OutputFile(path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name to write to; the bytes become the content of `path` when the block succeeds, else vanish.

    Links are followed. Device nodes, FIFOs and standard streams get the bytes written into them. The name has no
    extension, so libraries that choose the format by extension must be told it.

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
    sys.stdout.flush()  # flush before other output to the same place
    file.commit()


@contextmanager
def writing(path: Path, nbytes: int = 0) -> Iterator[BinaryIO]:
    """Like replacing(), but gives an open file that can also be read and sought; `nbytes` is its approximate size.

    Raises:
        SystemError: as replacing() does; on a full disk it includes that size, if given.
    """
    try:
        with replacing(path) as staged, staged.open("w+b") as file:
            yield file
    except SystemError as error:
        if nbytes == 0 or error.native not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise SystemError(f"{error}: it takes {nbytes:,} bytes", native=error.native) from error


def write(path: Path, content: str | bytes | memoryview) -> None:
    """Writes a complete file; text as UTF-8.

    Raises:
        DataError: for text with a lone surrogate, which JSON can hold but UTF-8 cannot encode.
        SystemError: as writing() does.
    """
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise DataError(f"writing {path}: its text has a lone surrogate at character {error.start}") from None
    with writing(path, memoryview(data).nbytes) as file:
        file.write(data)


def _reason(error: OSError) -> str:
    """The reason why a write failed, without the temporary name."""
    if error.errno is not None:
        return os.strerror(error.errno)  # shorter than Arrow's own text, and the usual wording
    if error.strerror is not None:
        return error.strerror
    found = (re.search(cause, str(error)) for cause in _CAUSES)
    number = next((int(match[1]) for match in found if match), None)
    return os.strerror(number) if number is not None else str(error)


class Attempts:
    """Writes the files of a command independently: a failure does not stop the others.

    Attributes:
        written: the files that were written.
        failures: reasons why the others were not.
    """

    def __init__(self) -> None:
        self.written: list[Path] = []
        self.failures: list[Exception] = []

    def write(self, path: Path | None, how: Callable[[Path], object]) -> bool:
        """Writes a file if one is wanted. Returns whether it was written."""
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
