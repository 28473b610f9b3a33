"""Compiles an operator's function for CPU devices, by Numba."""

import dis
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import Errc, UsageError, how_to_install

_TEMPLATE = """
def answer_query(state, query, answer, _block, _block_count):
    try:
        words = carray(state, {words}, intp)
        body(make_group(), {query}, {answer}{state})
    except Exception:
        return 1
    return 0
"""


@dataclass(frozen=True)
class StateType:
    """The type of a named array: what has to be compiled anew when it changes."""

    dtype: np.dtype[Any]
    dimensions: int

    @property
    def words(self) -> int:
        """How many words describe one: its address and its shape."""
        return 1 + self.dimensions


@dataclass(frozen=True)
class Compiled:
    """Machine code that answers a query, with the signature of headrace::operators::AnswerFunction."""

    address: int
    code: object
    """Keeps it in memory."""


def _numba() -> Any:  # noqa: ANN401
    try:
        import numba  # noqa: PLC0415 # takes 0.2 s, and only those who write operators have it
    except ImportError:
        raise UsageError(
            f"operators in Python are compiled by Numba, which is not installed: {how_to_install('numba')}",
            Errc.not_found,
        ) from None
    return numba


def _view(name: str, dtype: np.dtype[Any]) -> str:
    """The expression for a query's or answer's bytes: an array, a record, or an array of the one scalar."""
    if dtype.subdtype is not None:
        return f"carray({name}, {dtype.subdtype[1]!r}, {name}_type)"
    return f"carray({name}, 1, {name}_type)" + ("[0]" if dtype.names is not None else "")


def _array(index: int, first: int, dimensions: int) -> str:
    """The expression for a named array, which is described from word `first` on."""
    shape = "".join(f"words[{first + 1 + axis}], " for axis in range(dimensions))
    made = f"carray(pointer(words[{first}]), ({shape or '1,'}), state_type_{index})"
    return made if dimensions else f"{made}[0]"


def compile_answer(
    function: Callable[..., None], query: np.dtype[Any], answer: np.dtype[Any], state: Sequence[StateType]
) -> Compiled:
    """The machine code of `function(group, query, answer, *state)`.

    Raises:
        UsageError: where Numba is missing, or cannot compile the function; the message has its file and line.
    """
    numba = _numba()
    from headrace.operators.compiled_group import make_group, pointer  # noqa: PLC0415 # they need Numba

    names: dict[str, object] = {
        "carray": numba.carray,
        "intp": np.intp,
        "make_group": make_group,
        "pointer": pointer,
        # Division by zero is what it is on a GPU, an infinity or NaN, rather than an exception.
        "body": numba.njit(error_model="numpy")(function),
        "query_type": query.base,
        "answer_type": answer.base,
    }
    arrays, first = "", 0
    for index, one in enumerate(state):
        names[f"state_type_{index}"] = one.dtype
        arrays += f", {_array(index, first, one.dimensions)}"
        first += one.words
    source = _TEMPLATE.format(
        words=max(first, 1), query=_view("query", query), answer=_view("answer", answer), state=arrays
    )
    exec(source, names)
    types = numba.types
    signature = types.int32(types.voidptr, types.voidptr, types.voidptr, types.uint32, types.uint32)
    try:
        code = numba.cfunc(signature, error_model="numpy")(names["answer_query"])
    except numba.core.errors.NumbaError as error:
        raise UsageError(_explain(function, error)) from error
    return Compiled(code.address, code)


def _first_use(function: Callable[..., None], name: str) -> int | None:
    """The line of a function that has a name first."""
    line = None
    for step in dis.get_instructions(function):
        line = step.starts_line or line
        if step.argval == name:
            return line
    return None


def _explain(function: Callable[..., None], error: Exception) -> str:
    """Numba's message in one line, behind the place in the user's file."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    for found in re.finditer(r'File "(?P<file>[^"]+)", line (?P<line>\d+)', text):
        if file.endswith(found["file"].removeprefix("../").lstrip("./")):
            line = int(found["line"])
    if unknown := re.search(r"NameError: name '(\w+)' is not defined", text):
        line = _first_use(function, unknown[1]) or line
    said = [part.strip() for part in text.splitlines()]
    told = next((part for part in said if part and not part.startswith(("Failed in", "During", "-", "File"))), "")
    return f"{file}:{line}: operator {function.__name__} cannot be compiled: {told}"
