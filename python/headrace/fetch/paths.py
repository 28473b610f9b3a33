"""The files that a table is opened by."""

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from headrace.errors import MissingFileError, UsageError


def expand(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that a path, a pattern such as "taxi-*.parquet", a folder, or several of them stand for, in order.

    Raises:
        UsageError: for a path that is not there and a pattern that fits none.
    """
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for name in (os.fspath(one) for one in names):
        if Path(name).is_dir():
            some = sorted(str(file) for file in Path(name).iterdir() if file.is_file() and file.name[0] not in "._")
        elif any(sign in name for sign in "*?[") and not Path(name).exists():
            some = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - a pattern may be absolute
        else:
            some = [name]
        if not some:
            raise MissingFileError(f"no file fits {name}")
        found += some
    if not found:
        raise UsageError("a table needs at least one file")
    return found
