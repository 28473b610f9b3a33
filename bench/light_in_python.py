"""The operator `light` in Python, to compare the cost of operators in Python and in C++.

headrace ladder --operator bench/light_in_python.py:served --rung dispatched --bound 0.1ms --device cuda:0

It sums the query and runs two chains of 64 steps per thread, like include/headrace/operators/light.hpp. `contract`
makes each step a fused multiply-add, as there.
"""

import numpy as np

import headrace

_LANES = 128
_STEPS = 64


@headrace.operator(
    query=("u4", 256),
    answer=("i8", 8),
    sample=lambda index: np.random.default_rng(index).integers(0, 2**32, 256, np.uint32),
    threads=_LANES,
    contract=True,
)
def light_in_python(group, query, answer):  # noqa: ANN001, ANN201, D103
    total = np.int64(0)
    for i in group.each(len(query)):
        total += query[i]
    for lane in group.each(_LANES):
        a = np.float32(query[lane] >> 8) * np.float32(2.0**-24)
        b = np.float32(1) - a
        for _ in range(_STEPS):
            a = a * np.float32(1 - 2.0**-12) + np.float32(2.0**-13)
            b = b * np.float32(2.0**-12 - 1) + np.float32(0.875)
        total += 31 * np.int64(a * np.float32(2.0**24)) + np.int64(b * np.float32(2.0**24))
    total = group.sum(total)
    for i in group.each(len(answer)):
        answer[i] = total + i


served = light_in_python()
