"""NumPy types for the bytes of operators' answers."""

import ast
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace._core import Operator

#: Number of matching documents, and the smallest of their ids, followed by 0xFFFFFFFF.
RETRIEVAL_ANSWER = np.dtype([("hits", "<u4"), ("ids", "<u4", (15,))])


def write_dtype(dtype: np.dtype[Any]) -> str:
    """A type as text, from which read_dtype() makes it again."""
    return repr((np.lib.format.dtype_to_descr(dtype.base), dtype.shape))


def read_dtype(text: str) -> np.dtype[Any]:
    """Restores the type from text of write_dtype()."""
    base, shape = ast.literal_eval(text)
    return np.dtype((np.lib.format.descr_to_dtype(base), shape))


def answer_dtype_of(answer_type: str, answer_bytes: int) -> np.dtype[Any]:
    """The type of a complete answer: from text of write_dtype(), or bytes if the text is empty."""
    return read_dtype(answer_type) if answer_type else np.dtype((np.uint8, (answer_bytes,)))


def answer_dtype(operator: Operator) -> np.dtype[Any]:
    """The type of the items of an operator's answer; bytes if its answers have no type."""
    return read_dtype(operator.answer_type) if operator.answer_type else np.dtype(np.uint8)


def typed_answers(operator: Operator, answers: NDArray[Any]) -> NDArray[Any]:
    """Views the bytes of answers as the operator's type, without a copy; typed answers are returned unchanged."""
    if not operator.answer_type:
        return answers
    dtype = read_dtype(operator.answer_type)
    if answers.dtype == dtype.base:
        return answers
    return answers.view(dtype.base).reshape(-1, *dtype.shape)
