"""Measures the cost of operators in Python and as source text: operators.light.python.share and .source.share.

    python bench/light_shares.py [--language source] [--rung dispatched] [--device cpu] [--queries 200K] [--samples 7]
                                 [--save docs/results/FILE.json]

Asks the same queries of the built-in `light` and of the same operator in another language (light_in_python.py,
light_from_source.py), in turn, under every technique that calls operators, from one thread. Every answer is compared
bit by bit. A row is the rate of the other operator divided by that of the built-in one, in pairs. Exit status: 0; 1
when an answer differs or is missing; 2 for wrong use.
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
import light_from_source
import light_in_python
import row_by_row
from headrace import Device, results
from headrace.cli.options import count
from headrace.profiles import Json

_BUILT_IN = headrace.light(query_bytes=1024, threads=128, steps=64)
_LANGUAGES = ("python", "source")


def _written(language: str, device: Device) -> headrace.Operator:
    if language == "source":
        return light_from_source.served
    return light_in_python.served_on_cpu if device.name.startswith("cpu") else light_in_python.served


def _asked(device: Device, operator: headrace.Operator, plan: headrace.Plan, queries: NDArray[Any]) -> Any:  # noqa: ANN401
    """Queries per second, and the answers."""
    with headrace.Engine(device, operator, plan) as engine, engine.connect() as client:
        client.ask_many(queries[: len(queries) // 10])
        begin = perf_counter()
        answers, status = client.ask_many(queries)
        took = perf_counter() - begin
    if status.any():
        sys.exit(f"error: {plan.schedule}: a query of {operator.name} was not answered")
    return len(queries) / took, np.ascontiguousarray(answers).view(np.uint64).reshape(len(queries), -1)


def _rows(device: Device, queries: NDArray[Any], given: argparse.Namespace) -> Iterator[Json]:
    written = _written(given.language, device)
    for rung in headrace.serve.rungs():
        if rung.plan.schedule == "none" or (given.rung and rung.id not in given.rung):
            continue
        rates: list[tuple[float, float]] = []
        for _ in range(given.samples + 1):
            (theirs, expected), (ours, answers) = (
                _asked(device, one, rung.plan, queries) for one in (_BUILT_IN, written)
            )
            if not np.array_equal(expected, answers):
                sys.exit(f"error: {rung.id}: the answers differ")
            rates.append((ours, theirs))
        shares = [ours / theirs for ours, theirs in rates[1:]]  # the first sample of each runs on cold memory
        fastest = median(theirs for _, theirs in rates[1:])
        row_by_row.say(f"{rung.id}: {median(shares):.3f} of {fastest:,.0f} queries/s")
        about = {"queries": len(queries), "built_in_qps": fastest, "verified": True}
        name = "" if rung.plan.schedule == "dispatched" else f".{rung.id}"
        yield results.row(f"operators.light.{given.language}.share{name}", shares, "fraction", None, about)


def main() -> int:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=_LANGUAGES, default="source")
    parser.add_argument("--rung", action="append", help="only this technique, by its id; may be repeated")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--queries", type=count, default=200_000)
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    queries = _BUILT_IN.sample(given.queries)
    return row_by_row.run(given.language, given, lambda device: _rows(device, queries, given))


if __name__ == "__main__":
    sys.exit(main())
