"""What kernels call, as source text: it is the same for every target of Numba."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Words that the kernels hold; more lie in the device's memory (kFunctionWordsMost in operators/function.hpp).
WORDS_MOST = 13


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


def view(name: str, dtype: np.dtype[Any]) -> str:
    """The expression for a query's or answer's bytes: an array, a record, or an array of the one scalar."""
    if dtype.subdtype is not None:
        return f"carray({name}, {dtype.subdtype[1]!r}, {name}_type)"
    return f"carray({name}, 1, {name}_type)" + ("[0]" if dtype.names is not None else "")


def arrays(state: Sequence[StateType]) -> str:
    """The expressions for the named arrays, which `words` describes one after the other."""
    text, first = "", 0
    for index, one in enumerate(state):
        shape = "".join(f"words[{first + 1 + axis}], " for axis in range(one.dimensions))
        made = f"carray(pointer(words[{first}]), ({shape or '1,'}), state_type_{index})"
        text += f", {made if one.dimensions else f'{made}[0]'}"
        first += one.words
    return text


def words_count(state: Sequence[StateType]) -> int:
    """How many words there are at least one of."""
    return max(sum(one.words for one in state), 1)
