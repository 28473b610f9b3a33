"""Versions of installed packages, from folder names: importing importlib.metadata takes 15 ms."""

import sys
from pathlib import Path


def version_of(package: str) -> str | None:
    """The version of the package that Python finds first, by its name on PyPI; None if it is not installed."""
    begin, end = package.replace("-", "_") + "-", ".dist-info"
    for folder in sys.path:
        for found in sorted(Path(folder).glob(f"{begin}*{end}")):
            if (found / "METADATA").exists():  # otherwise it is a leftover of an uninstalled package
                return found.name[len(begin) : -len(end)]
    return _by_metadata(package)


def _by_metadata(package: str) -> str | None:
    """Used for packages whose folder has another name."""
    from importlib import metadata  # noqa: PLC0415 # see above

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
