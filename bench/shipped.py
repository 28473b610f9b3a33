"""The rates of mlp and topk: operators.mlp.qps, operators.topk.share, their roofs, and NumPy and PyTorch.

    python bench/shipped.py [--device cuda:0] [--rows 1000000] [--save docs/results/shipped.<machine>.json]

- operators.mlp.qps: 256-256-256-16, the highest rate of the chosen rung with p99 within --bound.
- operators.topk.qps and operators.topk.batch64.qps: the best 10 of --rows x 128, single queries (rung --rung) and
  batches of 64 (rung batched), p99 within --scan-bound; operators.topk.share is the first over the second.
- operators.<name>.numpy.qps and .torch.qps: one query after the other, by the same arrays in float32, in the same run.
  NumPy runs on the processor, PyTorch (where it is installed) on the device; operators.mlp.graph.qps is PyTorch's
  network as one CUDA graph. operators.topk.faiss.qps and .faiss.batch64.qps: FAISS's exact index on all processors
  (where it is installed), single queries and 64 at once.

Arrivals are a Poisson process that does not wait for answers. Engines' answers are verified against the host's, and the
host's first ones against NumPy in float64.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import operator_rows
import row_by_row
import shipped_peers
from headrace import Device, operators, results
from headrace.cli.options import duration
from headrace.operators.dense import random_layers, random_matrix
from headrace.profiles import Json
from headrace.serve import find_rung

_SIZES = (256, 256, 256, 16)
_COLUMNS, _BEST = 128, 10
_BATCH = 64


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    operator_rows.add_options(parser)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of topk's matrix")
    parser.add_argument("--bound", type=duration, default=0.2e-3, help="bound on p99 of mlp")
    parser.add_argument("--scan-bound", type=duration, default=0.1, help="bound on p99 of topk")
    parser.add_argument("--save", type=Path, help="write the results file shipped.<machine>.json")
    return parser.parse_args()


def _network_rows(device: Device, given: argparse.Namespace) -> Iterator[Json]:
    weights, biases = random_layers(_SIZES, 1)
    network = operators.mlp(weights, biases, dtype=given.dtype)
    yield from operator_rows.rate("operators.mlp.qps", network, find_rung(given.rung).plan, given.bound, device, given)

    layers = list(zip(weights, biases, strict=True))
    queries = list(network.sample(1000).view(np.float32))
    by_numpy = shipped_peers.network_by_numpy(layers)
    right = np.allclose(by_numpy(queries[0]), network.answer_on_host(queries[0])[0], rtol=0.02, atol=0.02)
    about = {"verified": bool(right), "dtype": "float32", "on": "processor"}
    yield operator_rows.one_by_one("operators.mlp.numpy.qps", queries, by_numpy, given.samples, about)
    if (torch := shipped_peers.library("torch")) is None:
        return
    where = operator_rows.where(device)
    calls = {"torch": shipped_peers.network_by_torch(torch, layers, where)}
    if where == "cuda":
        calls["graph"] = shipped_peers.network_by_graph(torch, layers)
    for name, call in calls.items():
        right = all(
            np.allclose(call(query), by_numpy(query), rtol=1e-2, atol=1e-2)
            for query in queries[: operator_rows.CHECKED]
        )
        about = {"verified": right, "dtype": "float32", "on": where}
        yield operator_rows.one_by_one(f"operators.mlp.{name}.qps", queries, call, given.samples, about)


def _search_rows(device: Device, given: argparse.Namespace) -> Iterator[Json]:
    matrix = random_matrix((given.rows, _COLUMNS), 1)
    best = operators.topk(matrix, _BEST, dtype=given.dtype)
    batched = find_rung("batched").plan
    batched.batch_max = _BATCH
    rows = []
    for identity, plan in (
        ("operators.topk.qps", find_rung(given.rung).plan),
        ("operators.topk.batch64.qps", batched),
    ):
        rows += list(operator_rows.rate(identity, best, plan, given.scan_bound, device, given))
    yield from rows
    if len(rows) == 2:  # noqa: PLR2004
        single, batches = rows
        about = dict(single["conditions"])
        about["verified"] = about["verified"] and batches["conditions"]["verified"]
        yield results.row("operators.topk.share", [single["value"] / batches["value"]], "fraction", None, about)

    queries = list(best.sample(_BATCH).view(np.float32))
    by_numpy = shipped_peers.search_by_numpy(matrix, _BEST)
    exact = operators.topk(matrix, _BEST, dtype="float32")
    right = np.array_equal(by_numpy(queries[0]), exact.answer_on_host(queries[0])["rows"][0])
    about = {"verified": bool(right), "dtype": "float32", "on": "processor"}
    yield operator_rows.one_by_one(
        "operators.topk.numpy.qps", queries[: operator_rows.CHECKED], by_numpy, given.samples, about
    )
    if (faiss := shipped_peers.library("faiss")) is not None:
        call = shipped_peers.search_by_faiss(faiss, matrix, _BEST)
        right = all(np.array_equal(call(query)[0], by_numpy(query)) for query in queries[: operator_rows.CHECKED])
        about = {"verified": right, "dtype": "float32", "on": "processor", "threads": faiss.omp_get_max_threads()}
        yield operator_rows.one_by_one(
            "operators.topk.faiss.qps", queries[: operator_rows.CHECKED], call, given.samples, about
        )
        batch = np.stack(queries)
        yield operator_rows.one_by_one("operators.topk.faiss.batch64.qps", [batch], call, given.samples, about, _BATCH)
    if (torch := shipped_peers.library("torch")) is None:
        return
    where = operator_rows.where(device)
    call = shipped_peers.search_by_torch(torch, matrix, _BEST, where)
    right = all(np.array_equal(call(query), by_numpy(query)) for query in queries[: operator_rows.CHECKED])
    about = {"verified": right, "dtype": "float32", "on": where}
    yield operator_rows.one_by_one("operators.topk.torch.qps", queries, call, given.samples, about)


def main() -> int:
    """Runs the program."""
    given = _parse()

    def both(device: Device) -> Iterator[Json]:
        yield from _network_rows(device, given)
        yield from _search_rows(device, given)

    return row_by_row.run("shipped", given, both)


if __name__ == "__main__":
    sys.exit(main())
