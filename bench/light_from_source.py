"""The operator `light` as C++ source text, to measure the cost of an operator that is compiled on use.

    python bench/light_from_source.py [--device cpu] [--queries 200K] [--samples 7] [--save docs/results/FILE.json]

Asks the same queries of the built-in operator and of the one compiled from bench/light_source.cu, in turn, under every
technique that calls operators, from one thread. Every answer is compared bit by bit. A row is the rate of the compiled
operator divided by that of the built-in one, in pairs. `headrace ladder --operator bench/light_from_source.py` measures
it too. Exit status: 0; 1 when an answer differs or is missing; 2 for wrong use.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headrace
import row_by_row
from headrace import Device, operators, results
from headrace.cli.options import count
from headrace.profiles import Json

_QUERY_WORDS, _ANSWER_WORDS = 256, 8
_BUILT_IN = headrace.light(query_bytes=4 * _QUERY_WORDS, threads=128, steps=64)
light = operators.from_source(
    Path(__file__).with_name("light_source.cu"),
    "light",
    query=("u4", _QUERY_WORDS),
    answer=("u8", _ANSWER_WORDS),
    sample=lambda index: np.random.default_rng(index).integers(0, 2**32, _QUERY_WORDS, np.uint32),
    threads=128,
)


def _asked(device: Device, operator: headrace.Operator, plan: headrace.Plan, queries: NDArray[Any]) -> Any:  # noqa: ANN401
    """Queries per second, and the answers."""
    with headrace.Engine(device, operator, plan) as engine, engine.connect() as client:
        client.ask_many(queries[: len(queries) // 10])
        begin = perf_counter()
        answers, status = client.ask_many(queries)
        took = perf_counter() - begin
    if status.any():
        sys.exit(f"error: {plan.schedule}: a query of {operator.name} was not answered")
    return len(queries) / took, answers.view(np.uint64).reshape(-1, _ANSWER_WORDS)


def _rows(device: Device, queries: NDArray[Any], samples: int) -> Iterator[Json]:
    compiled = light()
    for rung in headrace.serve.rungs():
        if rung.plan.schedule == "none":
            continue
        rates: list[tuple[float, float]] = []
        for _ in range(samples + 1):
            (theirs, expected), (ours, answers) = (
                _asked(device, one, rung.plan, queries) for one in (_BUILT_IN, compiled)
            )
            if not np.array_equal(expected, answers):
                sys.exit(f"error: {rung.id}: the answers differ")
            rates.append((ours, theirs))
        shares = [ours / theirs for ours, theirs in rates[1:]]  # the first sample of each runs on cold memory
        fastest = median(theirs for _, theirs in rates[1:])
        row_by_row.say(f"{rung.id}: {median(shares):.3f} of {fastest:,.0f} queries/s")
        about = {"queries": len(queries), "built_in_qps": fastest, "verified": True}
        name = "" if rung.plan.schedule == "dispatched" else f".{rung.id}"
        yield results.row(f"operators.light.source.share{name}", shares, "fraction", None, about)


def main() -> int:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--queries", type=count, default=200_000)
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    queries = _BUILT_IN.sample(given.queries)
    return row_by_row.run("source", given, lambda device: _rows(device, queries, given.samples))


if __name__ == "__main__":
    sys.exit(main())
