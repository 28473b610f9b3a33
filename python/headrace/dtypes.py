"""What the bytes of the shipped operators' answers mean, as NumPy types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace._core import Operator

#: How many documents match, and the smallest of their ids; 0xFFFFFFFF after the last.
RETRIEVAL_ANSWER = np.dtype([("hits", "<u4"), ("ids", "<u4", (15,))])

_LIGHT_ANSWER = np.dtype("<u8")


def answer_dtype(operator: Operator) -> np.dtype[Any]:
    """The type of the items of an operator's answer; bytes for one that Headrace does not know."""
    return {"light": _LIGHT_ANSWER, "retrieval": RETRIEVAL_ANSWER}.get(operator.name, np.dtype(np.uint8))


def typed_answers(operator: Operator, answers: NDArray[np.uint8]) -> NDArray[Any]:
    """The same answers, not copied, as rows of answer_dtype(); one record each where a row is one item."""
    typed = answers.view(answer_dtype(operator))
    return typed.reshape(-1) if typed.shape[-1] == 1 else typed
