"""Files that are whole or not there at all."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.errors import UsageError


def check_folder(path: Path) -> None:
    """Whether a file can be written there, before the work for it is done.

    Raises:
        UsageError: when its folder is not there, or it is a folder itself.
    """
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a file to write")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path of the same ending to write to; it takes the place of `path` when the block ends well."""
    check_folder(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        written = Path(folder) / path.name
        yield written
        written.replace(path)
