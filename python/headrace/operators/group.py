"""What an operator's function sees of the threads that run it, where Python itself runs it."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

T = TypeVar("T")


class Group:
    """The threads that answer one query together.

    A query is answered by `block_count` blocks of `size` threads. A CPU device has one block of one thread, so that
    every sum has one summand. Write loops that any number of threads may share:

        for i in group.each(len(rows)): ...

    Attributes:
        rank: this thread among those of its block.
        size: the threads of a block.
        block: this block among those of the query.
        block_count: the blocks of the query.
        thread: this thread among all of the query.
        thread_count: all threads of the query.
    """

    rank = 0
    size = 1
    block = 0
    block_count = 1
    thread = 0
    thread_count = 1

    def each(self, count: int) -> range:
        """This thread's part of the numbers from 0 to `count` - 1: every `thread_count`th, from `thread` on.

        On a GPU it is faster than a range with that step, for which Numba divides to find how many numbers it has.
        """
        return range(self.thread, count, self.thread_count)

    def sync(self) -> None:
        """Waits for all threads of the block; what they wrote before can be read after it."""

    def sum(self, value: T) -> T:
        """The sum over the threads of the block. Every thread must call it, as all that follow."""
        return value

    def any(self, value: bool) -> bool:
        """Whether `value` holds for any thread of the block. A barrier as well."""
        return value

    def broadcast(self, value: T) -> T:
        """The value that the thread of rank 0 passed."""
        return value

    def shared(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array of the block, contents undefined at first. `shape` is a constant."""
        return np.empty(shape, dtype)


#: The attributes of a Group, which are numbers.
ATTRIBUTES = ("rank", "size", "block", "block_count", "thread", "thread_count")
