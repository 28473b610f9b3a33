"""Finds the files of a table."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from headrace.errors import Errc, MissingFileError, UsageError

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def expand(paths: PathLike | Iterable[PathLike]) -> list[str]:
    """The files named by a path, a pattern such as "taxi-*.parquet", a folder, or several of these, in order.

    A folder, also one that matches a pattern, stands for its files and those in folders named name=value, as in
    partitioned datasets; names that begin with "." or "_" are skipped.

    Raises:
        MissingFileError: for a pattern without a matching file.
        UsageError: for something that is not a path, and a folder that cannot be read.
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
    """The path as shown in errors and by Python: bytes that are not UTF-8 are escaped."""
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
    """Files for a match of a pattern: the file itself, or a folder's files unless the pattern is recursive."""
    if not Path(path).is_dir():
        return [path]
    return [] if "**" in pattern else sorted(_files_in(Path(path)))


def _files_in(folder: Path) -> list[str]:
    """Lists the files of a folder and of its partitions."""
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
