"""The versions of installed packages, from the names of folders: importlib.metadata takes 15 ms to import."""

import sys
from pathlib import Path


def version_of(package: str) -> str | None:
    """The version of the package that Python finds first, by its name on PyPI; None where it is not installed."""
    begin, end = package.replace("-", "_") + "-", ".dist-info"
    for folder in sys.path:
        for found in sorted(Path(folder).glob(f"{begin}*{end}")):
            if (found / "METADATA").exists():  # else it is what an uninstalled one has left
                return found.name[len(begin) : -len(end)]
    return _by_metadata(package)


def _by_metadata(package: str) -> str | None:
    """For packages whose folder has another name."""
    from importlib import metadata  # noqa: PLC0415 # see above

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
