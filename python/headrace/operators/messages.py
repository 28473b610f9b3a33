"""Reduces compiler output to one line that begins with a place in the user's file."""

import dis
import re
from collections.abc import Callable

from headrace.operators.source_text import GENERATED

#: The forms of GCC and Clang, file:12:3: error: ..., and of NVRTC, file(12): error: ...
_SOURCE_ERROR = re.compile(
    r"^(?P<file>.+?)(?::(?P<line>\d+)(?::\d+)?|\((?P<nvrtc>\d+)\)): (?:fatal error|catastrophic error|error)"
    r"(?: #\d+-D)?: (?P<said>.*)$"
)


def _first_use(function: Callable[..., None], name: str) -> int | None:
    """The first line of a function that uses a name."""
    line = None
    for step in dis.get_instructions(function):
        line = step.starts_line or line
        if step.argval == name:
            return line
    return None


def explain(function: Callable[..., None], error: Exception, target: str = "") -> str:
    """Numba's message in one line, after the place in the user's file."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    for found in re.finditer(r'File "(?P<file>[^"]+)", line (?P<line>\d+)', text):
        if file.endswith(found["file"].removeprefix("../").lstrip("./")):
            line = int(found["line"])
    place = getattr(error, "loc", None)
    if place is not None and file.endswith(str(place.filename).removeprefix("../").lstrip("./")):
        line = place.line
    if unknown := re.search(r"(?:NameError: name|^module '.*' has no attribute) '(\w+)'", text):
        line = _first_use(function, unknown[1]) or line
    said = [part.strip() for part in text.splitlines()]
    told = next((part for part in said if part and not part.startswith(("Failed in", "During", "-", "File"))), "")
    if specific := re.search(r"raised a specific error:\s*\w+: (.+)", text):
        told = specific[1]
    return f"{file}:{line}: operator {function.__name__} cannot be compiled {target}".rstrip() + f": {told}"


def explain_source(name: str, said: str, target: str = "") -> str:
    """A C++ compiler's message on an operator's source in one line, after the place in the user's file."""
    errors = [found for line in said.splitlines() if (found := _SOURCE_ERROR.match(line)) is not None]
    users = [one for one in errors if one["file"] != GENERATED]
    of_call = next((one for one in errors if "static assertion failed" in one["said"]), None)
    what = f"operator {name} cannot be compiled {target}".rstrip()
    if of_call is not None and of_call["file"] == GENERATED:
        reason = re.sub(r'^.*static assertion failed(?: with|:)? *"?(.*?)"?$', r"\1", of_call["said"])
        return f"{what}: {reason}"
    if users:
        return f"{users[0]['file']}:{users[0]['line'] or users[0]['nvrtc']}: {what}: {users[0]['said']}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{what}: {errors[0]['said'] if errors else (lines or ['the compiler gives no reason'])[0]}"
