"""Rows for the rates of an operator, and of equivalent libraries, for bench/shipped.py and bench/lookup.py."""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import row_by_row
import shipped_peers
from headrace import Device, Operator, Plan, measure, results
from headrace.cli.options import duration
from headrace.dtypes import read_dtype
from headrace.operators.dense import reference_of
from headrace.profiles import Json
from headrace.serve import search_plan

CHECKED = 20  # number of answers compared with NumPy


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that rate() reads, and those of row_by_row.run()."""
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument("--rung", default="dispatched", help="rung that answers single queries, by number or id")
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float16", help="type of stored matrices")
    parser.add_argument("--generators", type=int, default=1, help="threads that generate load")
    parser.add_argument("--samples", type=int, default=3, help="number of confirmations of a figure")
    parser.add_argument("--window", type=duration, default=0.1, help="minimum length of a window, such as 100ms")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")


def samples_of(operator: Operator, count: int, first: int = 0) -> Any:  # noqa: ANN401
    """Sample queries in their type."""
    query = read_dtype(operator.query_type)
    return operator.sample(count, first).view(query.base).reshape(-1, *query.shape)


def agrees(operator: Operator) -> bool:
    """Whether the host's answers equal those of NumPy in float64 up to rounding."""
    reference = reference_of(operator)
    assert reference is not None
    queries = samples_of(operator, CHECKED)
    return reference.differs(queries, operator.answer_on_host(queries)) is None


def rate(
    identity: str,
    operator: Operator,
    plan: Plan,
    bound: float,
    device: Device,
    given: argparse.Namespace,
    about: Json | None = None,
) -> Iterator[Json]:
    """The row of the highest rate, if there is one. `about` are further conditions."""
    row_by_row.say(f"{identity} ...")
    found = search_plan(
        device,
        operator,
        plan,
        bound=bound,
        generators=given.generators,
        confirmations=given.samples,
        window=given.window,
    )
    if not found.confirmed:
        row_by_row.say(f"  left out: {found.note}")
        return
    roofs = measure.roofs(device, operator, given.generators)
    shared = {"dtype": given.dtype, "bound_us": bound * 1e6, "arrivals": "poisson", **(about or {})}
    conditions = results.conditions(found.plan, found.confirmed[0], found.generators, shared)
    right = all(load.wrong == load.failed == 0 < load.answered for load in found.confirmed)
    conditions["verified"] = right and agrees(operator)
    rates = [load.measured_per_second for load in found.confirmed]
    yield results.row(identity, rates, "queries/s", (roofs.lowest, roofs.lowest_name), conditions)


def one_by_one(
    identity: str, queries: list[Any], call: shipped_peers.Call, samples: int, about: Json, at_once: int = 1
) -> Json:
    """The row of a library that is asked one query at a time, or `count` at once, each waited for."""
    rates = []
    for query in queries:
        call(query)
    for _ in range(samples):
        began = time.perf_counter()
        for query in queries:
            call(query)
        rates.append(at_once * len(queries) / (time.perf_counter() - began))
    return results.row(identity, rates, "queries/s", None, {"arrivals": "one after the other", **about})


def close(answer: Any, expected: Any, tolerance: float) -> bool:  # noqa: ANN401
    """Whether all numbers are within the tolerance, relative to the expected ones and at least absolute."""
    return bool(np.allclose(answer, expected, rtol=tolerance, atol=tolerance))


def where(device: Device) -> str:
    """PyTorch's name for this kind of device."""
    return "cuda" if device.kind.name == "cuda" else "cpu"
