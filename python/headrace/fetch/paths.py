"""The files that a table is opened by."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from headrace.errors import Errc, MissingFileError, UsageError

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def expand(paths: PathLike | Iterable[PathLike]) -> list[str]:
    """The files that a path, a pattern such as "taxi-*.parquet", a folder, or several of them stand for, in order.

    Of a folder, also one that fits a pattern, these are the files in it, and those in folders called name=value in it,
    as datasets in partitions have them; names that begin with "." or "_" are left out.

    Raises:
        MissingFileError: for a pattern that fits no file.
        UsageError: for what is no path, and a folder that cannot be read.
    """
    names = [paths] if isinstance(paths, str | bytes | os.PathLike) else _listed(paths)
    found: list[str] = []
    for name in map(_text, names):
        if Path(name).is_dir():
            some = sorted(_files_in(Path(name)))
        elif any(sign in name for sign in "*?[") and not Path(name).exists():
            some = [file for one in sorted(glob.glob(name, recursive=True)) for file in _matched(one, name)]  # noqa: PTH207
        else:
            some = [name]
        if not some:
            raise MissingFileError(f"no file matches {name}")
        found += some
    if not found:
        raise UsageError("a table needs at least one file")
    return found


def shown(path: str) -> str:
    """The path as errors and Python name it: bytes that are no UTF-8 are written out."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _listed(paths: Iterable[PathLike]) -> list[PathLike]:
    try:
        if hasattr(paths, "read"):
            raise TypeError
        return list(paths)
    except TypeError:
        raise _no_path(paths) from None


def _text(path: PathLike) -> str:
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise _no_path(path) from None
    if "\0" in name:
        raise UsageError(f"a path cannot contain a zero byte, as {name!r} does")
    return name


def _no_path(given: object) -> UsageError:
    hint = ": give its name" if hasattr(given, "read") else ""
    return UsageError(
        f"files must be given as one path or several, not as an object of type {type(given).__name__}{hint}"
    )


def _matched(path: str, pattern: str) -> list[str]:
    """What a pattern takes: a file, or the files in a folder, unless the pattern goes through folders by itself."""
    if not Path(path).is_dir():
        return [path]
    return [] if "**" in pattern else sorted(_files_in(Path(path)))


def _files_in(folder: Path) -> list[str]:
    """List the files of the folder, and of partitions in it."""
    found: list[str] = []
    try:
        entries = [entry for entry in folder.iterdir() if entry.name[0] not in "._"]
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be read: {error.strerror}", Errc.no_permission) from error
    for entry in entries:
        if entry.is_file():
            found.append(str(entry))
        elif "=" in entry.name and entry.is_dir():
            found += _files_in(entry)
    return found
