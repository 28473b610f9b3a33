"""What the bytes of the shipped operators' answers mean, as NumPy types."""

import ast
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace._core import Operator

#: How many documents match, and the smallest of their ids; 0xFFFFFFFF after the last.
RETRIEVAL_ANSWER = np.dtype([("hits", "<u4"), ("ids", "<u4", (15,))])

_LIGHT_ANSWER = np.dtype("<u8")


def write_dtype(dtype: np.dtype[Any]) -> str:
    """A type as text, from which read_dtype() makes it again."""
    return repr((np.lib.format.dtype_to_descr(dtype.base), dtype.shape))


def read_dtype(text: str) -> np.dtype[Any]:
    """The type that write_dtype() wrote."""
    base, shape = ast.literal_eval(text)
    return np.dtype((np.lib.format.descr_to_dtype(base), shape))


def answer_dtype(operator: Operator) -> np.dtype[Any]:
    """The type of the items of an operator's answer; bytes for one that Headrace does not know."""
    if operator.answer_type:
        return read_dtype(operator.answer_type)
    return {"light": _LIGHT_ANSWER, "retrieval": RETRIEVAL_ANSWER}.get(operator.name, np.dtype(np.uint8))


def typed_answers(operator: Operator, answers: NDArray[np.uint8]) -> NDArray[Any]:
    """The same answers, not copied, as rows of answer_dtype(); one record each where a row is one item."""
    if operator.answer_type:
        return answers  # clients have done so
    typed = answers.view(answer_dtype(operator))
    return typed.reshape(-1) if typed.shape[-1] == 1 else typed
