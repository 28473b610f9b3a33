"""Finds the present bytes in frames of datagrams with gaps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def present(presence: Sequence[int], count: int) -> NDArray[np.bool_]:
    """Whether each of `count` packets of a frame arrived, according to the words of Frame.presence."""
    words = np.asarray(presence, dtype="<u8")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:count]
    return np.pad(bits, (0, count - len(bits))).astype(np.bool_)
