"""How fast threads of the host copy, an upper bound for staging pageable memory."""

import os
import threading
import time
from collections.abc import Iterator

import numpy as np

_SLOT = 512 << 10
_SLOTS = 4  # per thread
_LAPS = 8  # passes through the array, so that the start of threads hardly counts


def copy_rates(threads: int, samples: int, total_bytes: int) -> list[float]:
    """GB/s of this many threads (0: one per processor, at most 16) from one array to slots of their own.

    The slots are small and rewritten repeatedly, like those of a CopyBatch; no device takes part.
    """
    count = threads or min(len(os.sched_getaffinity(0)), 16)
    parts = max(total_bytes // _SLOT, count)
    source = np.ones(parts * _SLOT, np.uint8)
    slots = np.ones((count, _SLOTS, _SLOT), np.uint8)
    barrier = threading.Barrier(count + 1)
    numbers: Iterator[int] = iter(())  # numbers of the parts to copy: a delayed thread leaves more of them to others

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
