"""The rate of lookup with a table twice as large as its device memory, compared with zero-copy and PyTorch.

    python bench/lookup.py [--device cuda:0] [--rows 16777216] [--save docs/results/lookup.<machine>.json]

Rows of --rows x --columns are drawn by Zipf's law with exponent 1.05; popular ones are scattered over the table. A
query sums --most rows (every eighth asks for fewer). The budget is half of the table.

- operators.lookup.qps: rows placed by counts of --history earlier queries; highest rate with p99 within --bound.
- operators.lookup.unordered.qps: the same budget without counts: the first half of the table is on the device.
- operators.lookup.zero_copy.qps: nothing on the device; operators.lookup.gain is the first over this one.
- operators.lookup.device.qps: all rows on the device.
- operators.lookup.numpy.qps, .torch.qps, .torch.batch64.qps: NumPy, and PyTorch's embedding_bag with the whole table on
  the device, single queries and 64 at once, one after the other; on a GPU .torch_cpu.qps and .torch_cpu.batch64.qps as
  well, with the table in the host's memory.

A CPU device has one memory, so the first four differ only by noise and by the order of rows there. Arrivals are a
Poisson process that does not wait for answers. Engines' answers are verified against the host's, and the host's first
ones against NumPy in float64. The roof of a row is the lowest of link, arithmetic and generator as measured by headrace
roof, with rows in their places; conditions have `memory_qps`, the rate that random reads from each place allow for the
bytes of rows. Caches hold popular rows, so both compute and the rate may exceed it.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import operator_rows
import row_by_row
import shipped_peers
from headrace import Device, Operator, measure, operators, results
from headrace.cli.options import duration
from headrace.profiles import Json
from headrace.serve import find_rung
from headrace.span import PAGE_BYTES

_EXPONENT = 1.05
_BATCH = 64
_BLOCK_ROWS = 65536
_HISTORY_BEGINS = 1 << 40  # far from the queries of loads
_HISTORY_AT_ONCE = 4096
_MEASURED = 4096  # number of queries whose rows are counted by place
_PEER_QUERIES = 500
_TOLERANCE = 0.02


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    operator_rows.add_options(parser)
    parser.add_argument("--rows", type=int, default=1 << 24, help="rows of the table")
    parser.add_argument("--columns", type=int, default=128, help="columns of the table")
    parser.add_argument("--most", type=int, default=128, help="maximum number of rows per query")
    parser.add_argument(
        "--history",
        type=int,
        help="number of earlier queries to count; default: enough to read each row 8 times on average",
    )
    parser.add_argument("--bound", type=duration, default=0.5e-3, help="bound on p99, such as 500us")
    parser.add_argument("--save", type=Path, help="write the results file lookup.<machine>.json")
    return parser.parse_args()


def make_table(rows: int, columns: int, dtype: str) -> NDArray[Any]:
    """A random table in which nearby rows differ. Drawing every row would take minutes."""
    random = np.random.default_rng(1)
    block = random.standard_normal((min(rows, _BLOCK_ROWS), columns), np.float32).astype(dtype)
    table = np.resize(block, (rows, columns))
    table[:, 0] = (np.arange(rows) // _BLOCK_ROWS % 1000) / 16  # makes repeated rows distinct
    return table


def count_history(operator: Operator, rows: int, queries: int) -> NDArray[np.int64]:
    """Access count of each row in this many earlier queries."""
    counts = np.zeros(rows, np.int64)
    for first in range(0, queries, _HISTORY_AT_ONCE):
        asked = operator_rows.samples_of(operator, min(_HISTORY_AT_ONCE, queries - first), _HISTORY_BEGINS + first)
        counts += np.bincount(_rows_of(asked), minlength=rows)
    return counts


def _rows_of(queries: Any) -> NDArray[np.uint32]:  # noqa: ANN401 (records)
    used = np.arange(queries["rows"].shape[1]) < queries["count"][:, np.newaxis]
    found: NDArray[np.uint32] = queries["rows"][used]
    return found


class _Cases:
    """The placements of one table, and the bytes that a query reads from each place."""

    def __init__(self, device: Device, given: argparse.Namespace) -> None:
        self._given = given
        self.table = make_table(given.rows, given.columns, given.dtype)
        self._row_bytes = -(-given.columns // 8) * 8 * self.table.dtype.itemsize
        self._budget = given.rows * self._row_bytes // 2
        self.whole = self._make()
        history = given.history if given.history is not None else max(1, 8 * given.rows // given.most)
        row_by_row.say(f"counting the rows of {history:,} earlier queries ...")
        self._counts = count_history(self.whole, given.rows, history)
        self._asked = _rows_of(operator_rows.samples_of(self.whole, _MEASURED))
        self._about = {"rows": given.rows, "columns": given.columns, "most": given.most, "exponent": _EXPONENT}
        self._about |= {"device_bytes": self._budget, "history": history}
        self._rates = measure.memory_rates(device)

    def _make(self, **options: Any) -> Operator:  # noqa: ANN401
        given = self._given
        return operators.lookup(self.table, given.most, dtype=given.dtype, exponent=_EXPONENT, **options)

    def make(self, name: str) -> tuple[Operator, Json]:
        """The operator of a row, and its conditions."""
        on_device = self._budget // PAGE_BYTES * PAGE_BYTES // self._row_bytes
        places = np.arange(self._given.rows)
        if name == "counted":
            operator = self._make(device_bytes=self._budget, counts=self._counts)
            places[np.argsort(-self._counts, kind="stable")] = np.arange(len(places))
        elif name == "unordered":
            operator = self._make(device_bytes=self._budget)
        elif name == "zero_copy":
            operator, on_device = self._make(device_bytes=0), 0
        else:
            operator, on_device = self.whole, len(places)
        near = int((places[self._asked] < on_device).sum())
        return operator, self._about | self._by_place(near / _MEASURED, (len(self._asked) - near) / _MEASURED)

    def _by_place(self, near: float, far: float) -> Json:
        """Average bytes that a query reads from each place, and the rate that these allow."""
        of_device, of_host = near * self._row_bytes, far * self._row_bytes
        rates = self._rates
        seconds = max(of_device / rates.device_random.read, of_host / rates.link_random.read)
        row_by_row.say(
            f"  a query reads {of_device:,.0f} B on the device, {of_host:,.0f} B on the host: {1 / seconds:,.0f} "
            "queries/s at the rates of random reads"
        )
        return {"device_bytes_a_query": of_device, "host_bytes_a_query": of_host, "memory_qps": 1 / seconds}


def _own_rows(cases: _Cases, device: Device, given: argparse.Namespace) -> Iterator[Json]:
    plan = find_rung(given.rung).plan
    found: dict[str, Json] = {}
    for name, identity in (
        ("counted", "operators.lookup.qps"),
        ("zero_copy", "operators.lookup.zero_copy.qps"),
        ("unordered", "operators.lookup.unordered.qps"),
        ("device", "operators.lookup.device.qps"),
    ):
        operator, about = cases.make(name)
        for row in operator_rows.rate(identity, operator, plan, given.bound, device, given, about):
            found[name] = row
            yield row
        if name == "zero_copy" and {"counted", "zero_copy"} <= found.keys():
            ours, theirs = found["counted"], found["zero_copy"]
            conditions = dict(ours["conditions"])
            conditions["verified"] = conditions["verified"] and theirs["conditions"]["verified"]
            yield results.row("operators.lookup.gain", [ours["value"] / theirs["value"]], "ratio", None, conditions)


def _peer_rows(cases: _Cases, device: Device, given: argparse.Namespace) -> Iterator[Json]:
    queries = operator_rows.samples_of(cases.whole, _PEER_QUERIES + _BATCH)
    full = [rows.astype(np.int64) for rows in queries["rows"][queries["count"] == given.most]]
    batch = np.stack(full[:_BATCH])
    by_numpy = shipped_peers.pooled_by_numpy(cases.table)
    answers = cases.whole.answer_on_host(queries[queries["count"] == given.most][: operator_rows.CHECKED])
    right = operator_rows.close(by_numpy(np.stack(full[: operator_rows.CHECKED])), answers, _TOLERANCE)
    about = {"verified": right, "dtype": given.dtype, "on": "processor", "most": given.most}
    yield operator_rows.one_by_one("operators.lookup.numpy.qps", full, by_numpy, given.samples, about)
    if (torch := shipped_peers.library("torch")) is None:
        return
    where = operator_rows.where(device)
    for name, place in (("torch", where), *((("torch_cpu", "cpu"),) if where != "cpu" else ())):
        call = shipped_peers.pooled_by_torch(torch, cases.table, place)
        for identity, asked, at_once in (
            (f"operators.lookup.{name}.qps", full, 1),
            (f"operators.lookup.{name}.batch64.qps", [batch], _BATCH),
        ):
            right = all(operator_rows.close(call(query), by_numpy(query), _TOLERANCE) for query in asked[:_BATCH])
            about = {"verified": right, "dtype": given.dtype, "on": place, "most": given.most}
            yield operator_rows.one_by_one(identity, asked, call, given.samples, about, at_once)


def main() -> int:
    """Runs the program."""
    given = _parse()

    def both(device: Device) -> Iterator[Json]:
        cases = _Cases(device, given)
        yield from _own_rows(cases, device, given)
        yield from _peer_rows(cases, device, given)

    return row_by_row.run("lookup", given, both)


if __name__ == "__main__":
    sys.exit(main())
