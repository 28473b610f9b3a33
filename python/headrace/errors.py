"""What Headrace raises. Mirrors headrace/base/error.hpp.

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
    """What went wrong, in terms that a caller can act on."""

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
        """What an entry of a status array stands for: None for 0, which is an answer."""
        return None if status == 0 else list(cls)[status - 1]


class Error(Exception):
    """The base of everything that Headrace raises.

    Attributes:
        code: what went wrong.
        native: the CUDA or errno code that caused it, 0 where there is none.
    """

    def __init__(self, message: str, code: Errc | str = Errc.system, native: int = 0) -> None:
        super().__init__(message)
        self.code = Errc(code)
        self.native = native

    def __reduce__(self) -> tuple[type["Error"], tuple[str, Errc, int]]:
        """For pickle, which would drop the code: an error of a worker process tells its parent what it was."""
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
    """A device refused, failed, or lacks what was asked of it."""


class SystemError(Error):  # noqa: A001 - the name that C++ has
    """An operating system call failed; `native` is its errno."""


class MissingFileError(SystemError, FileNotFoundError):
    """A file or folder that is not there. Python code may catch it as the FileNotFoundError that it is."""

    def __init__(self, message: str, code: Errc | str = Errc.not_found, native: int = errno.ENOENT) -> None:
        super().__init__(message, code, native)
        self.errno = native


def reading(path: object, error: OSError) -> SystemError:
    """The exception for a file that cannot be read, which names it."""
    if isinstance(error, FileNotFoundError):
        return MissingFileError(f"there is no file {path}")
    code = Errc.no_permission if isinstance(error, PermissionError) else Errc.system
    return SystemError(f"reading {path}: {error.strerror or error}", code, error.errno or 0)


def how_to_install(*packages: str) -> str:
    """The command that installs packages beside this one, to paste."""
    python = Path(sys.executable)
    here = Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return f"{shlex.quote(str(shown))} -m pip install {' '.join(packages)}"
