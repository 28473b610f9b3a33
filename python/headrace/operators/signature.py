"""Source text of the function that kernels call, the same for every target of Numba."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Words that kernels hold; further words are in device memory (kFunctionWordsMost in operators/function.hpp).
WORDS_MOST = 13


@dataclass(frozen=True)
class StateType:
    """The type of a named array. A change of it requires recompilation."""

    dtype: np.dtype[Any]
    dimensions: int

    @property
    def words(self) -> int:
        """Number of words that describe an array: its address and its shape."""
        return 1 + self.dimensions


@dataclass(frozen=True)
class Compiled:
    """Machine code that answers a query, with the signature of headrace::operators::AnswerFunction."""

    address: int
    code: object
    """Keeps the code in memory."""


def view(name: str, dtype: np.dtype[Any]) -> str:
    """The expression for the bytes of a query or answer: an array, a record, or an array with the one scalar."""
    if dtype.subdtype is not None:
        return f"carray({name}, {dtype.subdtype[1]!r}, {name}_type)"
    return f"carray({name}, 1, {name}_type)" + ("[0]" if dtype.names is not None else "")


def arrays(state: Sequence[StateType]) -> str:
    """The expressions for the named arrays, described one after the other by `words`."""
    text, first = "", 0
    for index, one in enumerate(state):
        shape = "".join(f"words[{first + 1 + axis}], " for axis in range(one.dimensions))
        made = f"carray(pointer(words[{first}]), ({shape or '1,'}), state_type_{index})"
        text += f", {made if one.dimensions else f'{made}[0]'}"
        first += one.words
    return text


def words_count(state: Sequence[StateType]) -> int:
    """The number of words, at least one."""
    return max(sum(one.words for one in state), 1)
