"""How fast threads of the host copy: whoever stages pageable memory can be no faster."""

import os
import threading
import time
from collections.abc import Iterator

import numpy as np

_SLOT = 512 << 10
_SLOTS = 4  # of a thread
_LAPS = 8  # through the array, so that what threads start with is little of it


def copy_rates(threads: int, samples: int, total_bytes: int) -> list[float]:
    """GB/s of so many threads (0: as many as there are processors, 16 at most) from one array to slots of their own.

    The slots are small and written again and again, as those of a CopyBatch are; no device takes part.
    """
    count = threads or min(len(os.sched_getaffinity(0)), 16)
    parts = max(total_bytes // _SLOT, count)
    source = np.ones(parts * _SLOT, np.uint8)
    slots = np.ones((count, _SLOTS, _SLOT), np.uint8)
    barrier = threading.Barrier(count + 1)
    numbers: Iterator[int] = iter(())  # of the parts to be copied: a thread that is held up leaves more to others

    def work(thread: int) -> None:
        for _ in range(samples):
            barrier.wait()
            for turn, number in enumerate(numbers):
                at = number % parts * _SLOT
                np.copyto(slots[thread, turn % _SLOTS], source[at : at + _SLOT])
            barrier.wait()

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(count)]
    for worker in workers:
        worker.start()
    rates = []
    for _ in range(samples):
        numbers = iter(range(_LAPS * parts))
        barrier.wait()
        began = time.perf_counter()
        barrier.wait()
        rates.append(_LAPS * source.nbytes / (time.perf_counter() - began) / 1e9)
    for worker in workers:
        worker.join()
    return rates
