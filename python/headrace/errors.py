"""The exceptions of Headrace. Mirrors headrace/base/error.hpp.

>>> import headrace
>>> try:
...     headrace.Device.parse("toaster")
... except headrace.UsageError as error:
...     print(error.code)
not found
"""

import errno
import shlex
import sys
from enum import StrEnum
from pathlib import Path

__all__ = ["DataError", "DeviceError", "Errc", "Error", "MissingFileError", "SystemError", "UsageError"]


class Errc(StrEnum):
    """The kind of failure, in terms that a caller can act on."""

    invalid_argument = "invalid argument"
    not_supported = "not supported"
    not_found = "not found"
    out_of_memory = "out of memory"
    no_permission = "no permission"
    corrupt_data = "corrupt data"
    device_fault = "device fault"
    system = "system error"
    full = "full"
    cancelled = "cancelled"
    deadline_exceeded = "deadline exceeded"
    stopped = "stopped"
    hung = "hung operator"

    @classmethod
    def of_status(cls, status: int) -> "Errc | None":
        """The code for an entry of a status array; None for 0, which means an answer."""
        return None if status == 0 else list(cls)[status - 1]


class Error(Exception):
    """Base class of all Headrace exceptions.

    Attributes:
        code: kind of failure.
        native: the CUDA or errno code that caused it, or 0.
    """

    def __init__(self, message: str, code: Errc | str = Errc.system, native: int = 0) -> None:
        super().__init__(message)
        self.code = Errc(code)
        self.native = native

    def __reduce__(self) -> tuple[type["Error"], tuple[str, Errc, int]]:
        """For pickle, which would drop the code when a worker process sends an error to its parent."""
        return type(self), (str(self), self.code, self.native)


class UsageError(Error):
    """The caller asked for something that can never work: a bad option, name, size or query."""

    def __init__(self, message: str, code: Errc | str = Errc.invalid_argument, native: int = 0) -> None:
        super().__init__(message, code, native)


class DataError(Error):
    """A file or message from outside is not what it claims to be."""

    def __init__(self, message: str, code: Errc | str = Errc.corrupt_data, native: int = 0) -> None:
        super().__init__(message, code, native)


class DeviceError(Error):
    """A device refused, failed, or lacks a required feature."""


class SystemError(Error):  # noqa: A001 - the name that C++ has
    """An operating system call failed; `native` is its errno."""


class MissingFileError(SystemError, FileNotFoundError):
    """A missing file or folder. Code that catches FileNotFoundError catches it too."""

    def __init__(self, message: str, code: Errc | str = Errc.not_found, native: int = errno.ENOENT) -> None:
        super().__init__(message, code, native)
        self.errno = native


def reading(path: object, error: OSError) -> SystemError:
    """The exception for a file that cannot be read; it names the file."""
    if isinstance(error, FileNotFoundError):
        return MissingFileError(f"there is no file {path}")
    code = Errc.no_permission if isinstance(error, PermissionError) else Errc.system
    return SystemError(f"reading {path}: {error.strerror or error}", code, error.errno or 0)


def how_to_install(*packages: str) -> str:
    """The command that installs packages into this environment, ready to paste."""
    python = Path(sys.executable)
    here = Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return f"{shlex.quote(str(shown))} -m pip install {' '.join(packages)}"
