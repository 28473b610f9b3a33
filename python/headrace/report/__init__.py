"""A page about a ladder with tables and plots, made from its results files. It needs no network and no other file."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from headrace import outputs
from headrace.errors import DataError, UsageError, how_to_install
from headrace.profiles import Json
from headrace.text import read_json

_NEEDED = ("topic", "machine", "commit", "date", "command", "rows")


def check(path: Path) -> None:
    """Checks that a report can be written to this path, before the work for it starts.

    Raises:
        UsageError: when matplotlib is not installed.
        SystemError: when the file cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"a report needs matplotlib: {how_to_install('matplotlib')}")
    outputs.check(path)


def read(path: Path) -> Json:
    """Reads a results file.

    Raises:
        DataError: naming the file, when it is not a results file.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a results file")
    lacks = [key for key in _NEEDED if key not in content]
    if lacks:
        raise DataError(f"{path}: not a results file: it lacks '{lacks[0]}'")
    return content


def write(contents: Sequence[Json], path: Path) -> None:
    """Writes the page of these results atomically, with a chapter each.

    Raises:
        DataError: when a results file lacks what a report shows.
    """
    from headrace.report.page import page  # noqa: PLC0415 - matplotlib is optional and slow to import

    try:
        text = page(contents)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise DataError(f"a report cannot be made of these results: {type(error).__name__}: {error}") from error
    outputs.write(path, text)
