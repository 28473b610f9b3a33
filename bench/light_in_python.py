"""The operator `light` in Python, to compare the cost of operators in Python and in C++.

headrace ladder --operator bench/light_in_python.py:served --rung dispatched --bound 0.1ms --device cuda:0

It sums the query and runs two chains of 64 steps per thread, like include/headrace/operators/light.hpp. `contract`
makes each step a fused multiply-add, as there, so that both give the same bits.

`light_in_python` is for a GPU, where each thread has a lane in its registers. `light_on_cpu` is for a CPU device, where
the innermost loop runs over arrays of lanes and becomes SIMD instructions (docs/python-operators.md).
"""

import numpy as np

import headrace

_LANES = 128
_STEPS = 64

_as_light = headrace.operator(
    query=("u4", 256),
    answer=("u8", 8),
    sample=lambda index: np.random.default_rng(index).integers(0, 2**32, 256, np.uint32),
    threads=_LANES,
    contract=True,
)


@_as_light
def light_in_python(group, query, answer):  # noqa: ANN001, ANN201, D103
    total = np.uint64(0)
    for i in group.each(len(query)):
        total += np.uint64(query[i])
    for lane in group.each(_LANES):
        seed = query[lane] ^ np.uint32(np.uint32(lane) * np.uint32(0x9E3779B9))
        a = np.float32(np.uint32(seed) >> np.uint32(8)) * np.float32(2.0**-24)
        b = np.float32(1) - a
        for _ in range(_STEPS):
            a = a * np.float32(1 - 2.0**-12) + np.float32(2.0**-13)
            b = b * np.float32(2.0**-12 - 1) + np.float32(0.875)
        total += np.uint64(31) * np.uint64(np.float32(a).view(np.uint32)) + np.uint64(np.float32(b).view(np.uint32))
    total = group.sum(total)
    for i in group.each(len(answer)):
        answer[i] = (total + np.uint64(i)) * np.uint64(0x9E3779B97F4A7C15)


@_as_light
def light_on_cpu(group, query, answer):  # noqa: ANN001, ANN201, D103
    a = group.shared(128, np.float32)
    b = group.shared(128, np.float32)
    total = np.uint64(0)
    for i in range(np.uint64(len(query))):
        total += np.uint64(query[i])
    for lane in range(np.uint64(_LANES)):
        seed = query[lane] ^ np.uint32(np.uint32(lane) * np.uint32(0x9E3779B9))
        a[lane] = np.float32(np.uint32(seed) >> np.uint32(8)) * np.float32(2.0**-24)
        b[lane] = np.float32(1) - a[lane]
    for _ in range(_STEPS):
        for lane in range(np.uint64(_LANES)):
            a[lane] = a[lane] * np.float32(1 - 2.0**-12) + np.float32(2.0**-13)
            b[lane] = b[lane] * np.float32(2.0**-12 - 1) + np.float32(0.875)
    bits_of_a, bits_of_b = a.view(np.uint32), b.view(np.uint32)
    for lane in range(np.uint64(_LANES)):
        total += np.uint64(31) * np.uint64(bits_of_a[lane]) + np.uint64(bits_of_b[lane])
    for i in range(np.uint64(len(answer))):
        answer[i] = (total + np.uint64(i)) * np.uint64(0x9E3779B97F4A7C15)


served = light_in_python()
served_on_cpu = light_on_cpu()
