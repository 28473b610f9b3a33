"""The threads that run an operator's function, as seen when Python itself runs it."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

T = TypeVar("T")


class Group:
    """The threads that answer a query together.

    A query is answered by `block_count` blocks of `size` threads. A CPU device has one block of one thread, so every
    sum has one summand. Write loops that any number of threads can share:

        for i in group.each(len(rows)): ...

    Attributes:
        rank: this thread's number in its block.
        size: threads per block.
        block: this block's number in the query.
        block_count: blocks per query.
        thread: this thread's number in the query.
        thread_count: threads per query.
    """

    rank = 0
    size = 1
    block = 0
    block_count = 1
    thread = 0
    thread_count = 1

    def each(self, count: int) -> range:
        """This thread's part of the numbers from 0 to `count` - 1: every `thread_count`th, starting at `thread`.

        On a GPU this is faster than a range with that step, for which Numba needs a division to find its length.
        """
        return range(self.thread, count, self.thread_count)

    def sync(self) -> None:
        """Waits for all threads of the block; what they wrote before is visible afterwards."""

    def sum(self, value: T) -> T:
        """The sum over the threads of the block. Every thread must call it, and the functions below."""
        return value

    def any(self, value: bool) -> bool:
        """Whether `value` is true for any thread of the block. It is also a barrier."""
        return value

    def broadcast(self, value: T) -> T:
        """The value passed by the thread with rank 0."""
        return value

    def shared(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array shared by the block, initially undefined. `shape` must be a constant."""
        return np.empty(shape, dtype)


#: The numeric attributes of a Group.
ATTRIBUTES = ("rank", "size", "block", "block_count", "thread", "thread_count")
