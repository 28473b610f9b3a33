"""The operator `light` as C++ source text, to compare the cost of operators that are compiled on use and built in.

headrace ladder --operator bench/light_from_source.py:served --rung dispatched --bound 0.1ms --device cuda:0
"""

from pathlib import Path

import numpy as np

from headrace import operators

_QUERY_WORDS, _ANSWER_WORDS = 256, 8

light_from_source = operators.from_source(
    Path(__file__).with_name("light_source.cu"),
    "light",
    query=("u4", _QUERY_WORDS),
    answer=("u8", _ANSWER_WORDS),
    sample=lambda index: np.random.default_rng(index).integers(0, 2**32, _QUERY_WORDS, np.uint32),
    threads=128,
)
served = light_from_source()
