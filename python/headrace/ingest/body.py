"""Tracks which bytes of a stream are the sender's data and which belong to the protocol."""

from array import array
from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

_WITHOUT_END = (1 << 63) - 1


class Body:
    """Ranges of a stream's bytes, in order."""

    def __init__(self) -> None:
        self._begins = array("Q")
        self._ends = array("Q")
        self._last_end = 0
        self.whole: bool | None = None
        """Whether all promised data has arrived; None if the sender promised none, and data ends with the stream."""

    @classmethod
    def all_of_it(cls) -> "Body":
        """The body of a stream that consists of data only."""
        made = cls()
        made.add(0, None)
        return made

    def __len__(self) -> int:
        """Number of ranges kept."""
        return len(self._begins)

    def add(self, begin: int, end: int | None) -> None:
        """Adds data after the previous range; None: up to the stream's end.

        Raises:
            ValueError: for data that begins before the end of the previous range.
        """
        if begin < self._last_end:
            raise ValueError(
                f"the data from byte {begin} on begins before the end of earlier data, byte {self._last_end}"
            )
        if begin == end:
            return
        self._last_end = _WITHOUT_END if end is None else end
        self._begins.append(begin)
        self._ends.append(self._last_end)

    def extend(self, begins: NDArray[np.uint64], ends: NDArray[np.uint64]) -> None:
        """Like add() for each of these ranges, which are in order and not empty."""
        if not len(begins):
            return
        if begins[0] < self._last_end:
            raise ValueError(
                f"the data from byte {begins[0]} on begins before the end of earlier data, byte {self._last_end}"
            )
        self._begins.frombytes(begins.tobytes())
        self._ends.frombytes(ends.tobytes())
        self._last_end = self._ends[-1]

    def within(self, begin: int, end: int) -> NDArray[np.int64]:
        """Begin and end of data, one row per range, among the bytes from `begin` to before `end`.

        None of these ranges may have been dropped.
        """
        first = bisect_right(self._ends, begin)
        past = bisect_left(self._begins, end, first)
        return np.clip(np.array([self._begins[first:past], self._ends[first:past]], np.int64).T, begin, end)

    def drop(self, before: int) -> None:
        """Forgets data that ends at `before` or earlier."""
        count = bisect_right(self._ends, before)
        del self._begins[:count], self._ends[:count]
