"""Compares the first rows of an order with DuckDB: fetch.first_rows.vs_duckdb and fetch.first_rows.vs_all.

    python bench/first_rows.py --rows 10000000 --save docs/results/first-rows.<machine>.json

Ten million amounts are on the device, and in a table in DuckDB's memory; the ten largest are queried in turn. The first
figure is DuckDB's time divided by ours, the second the time to order all rows divided by ours. Processor time is
reported too, which says more on a busy machine.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import headrace
from headrace import results
from headrace.fetch.table import Table

Json = dict[str, Any]

SEED = 20261125


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Elapsed seconds, and seconds of processor time."""
    started = (time.perf_counter(), time.process_time())
    work()
    return time.perf_counter() - started[0], time.process_time() - started[1]


def compare(device: "headrace.Device", rows: int, limit: int, samples: int, threads: int) -> list[Json]:
    """Both rows: ratios of consecutive runs."""
    rng = np.random.default_rng(SEED)
    amounts = pa.table({"a": rng.integers(0, 1 << 40, rows), "b": rng.random(rows)})
    connection = duckdb.connect()
    connection.execute(f"set threads={threads}")
    connection.register("amounts", amounts)
    connection.execute("create table t as select * from amounts")
    sql = f"select a, b from t order by a desc limit {limit}"
    taken: dict[str, list[tuple[float, float]]] = {"first": [], "all": [], "duckdb": []}
    with Table.from_arrow(amounts, device) as table:
        ordered = table.select("a", "b").order_by(("a", "descending"))
        first = ordered.limit(limit)
        whole = ordered.limit(rows // 4)  # beyond an eighth of the rows, all rows are ordered
        right = first.to_arrow()["a"].to_pylist() == [row[0] for row in connection.execute(sql).fetchall()]
        whole.run()
        for _ in range(samples):
            taken["first"].append(_timed(first.run))
            taken["duckdb"].append(_timed(lambda: connection.execute(sql).fetchall()))
            taken["all"].append(_timed(whole.run))
    times = {f"{name}_ms": median(wall for wall, _ in runs) * 1e3 for name, runs in taken.items()}
    processor = {f"{name}_processor_ms": median(cpu for _, cpu in runs) * 1e3 for name, runs in taken.items()}
    conditions = {"rows": rows, "limit": limit, "duckdb": duckdb.__version__, "duckdb_threads": threads}
    conditions |= times | processor
    conditions["verified"] = right
    return [
        results.row(f"fetch.first_rows.vs_{name}", ratios, "ratio", None, conditions)
        for name in ("duckdb", "all")
        for ratios in [[one[0] / ours[0] for one, ours in zip(taken[name], taken["first"], strict=True)]]
    ]


def main() -> None:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="number of DuckDB threads")
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args()
    device = headrace.Device.parse(chosen.device)
    topic = results.topic_of(chosen.save, device) if chosen.save else "first-rows"
    content = results.document(
        topic, device, compare(device, chosen.rows, chosen.limit, chosen.samples, chosen.threads)
    )
    if chosen.save:
        results.save(chosen.save, content)
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
