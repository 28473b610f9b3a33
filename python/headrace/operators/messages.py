"""What compilers say, in one line that begins with a place in the user's file."""

import dis
import re
from collections.abc import Callable


def _first_use(function: Callable[..., None], name: str) -> int | None:
    """The line of a function that has a name first."""
    line = None
    for step in dis.get_instructions(function):
        line = step.starts_line or line
        if step.argval == name:
            return line
    return None


def explain(function: Callable[..., None], error: Exception, target: str = "") -> str:
    """Numba's message in one line, behind the place in the user's file."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    for found in re.finditer(r'File "(?P<file>[^"]+)", line (?P<line>\d+)', text):
        if file.endswith(found["file"].removeprefix("../").lstrip("./")):
            line = int(found["line"])
    place = getattr(error, "loc", None)
    if place is not None and file.endswith(str(place.filename).removeprefix("../").lstrip("./")):
        line = place.line
    if unknown := re.search(r"NameError: name '(\w+)' is not defined", text):
        line = _first_use(function, unknown[1]) or line
    said = [part.strip() for part in text.splitlines()]
    told = next((part for part in said if part and not part.startswith(("Failed in", "During", "-", "File"))), "")
    if specific := re.search(r"raised a specific error:\s*\w+: (.+)", text):
        told = specific[1]
    return f"{file}:{line}: operator {function.__name__} cannot be compiled {target}".rstrip() + f": {told}"
