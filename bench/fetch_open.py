"""Compares opening Parquet files with pyarrow: fetch.open5000.vs_pyarrow and fetch.open_groups.vs_pyarrow.

    python bench/fetch_open.py --save docs/results/fetch-open.<machine>.json

Two files are opened in turn by Table.open() and by pyarrow.parquet.ParquetFile, which also reads the Arrow schema: one
with many columns in one row group, and one with a single column in many small row groups. A figure is our time divided
by pyarrow's, for each pair of consecutive runs.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headrace
from headrace import results
from headrace.fetch.table import Table

Json = dict[str, Any]

_GROUP_ROWS = 64


def write_columns(path: Path, columns: int) -> None:
    """Writes a file of this many columns with ten rows."""
    values = np.zeros(10, np.float32)
    pq.write_table(pa.table({f"column_{number}": values for number in range(columns)}), path)


def write_groups(path: Path, groups: int) -> None:
    """Writes a file of one column in this many row groups."""
    pq.write_table(pa.table({"column": np.zeros(groups * _GROUP_ROWS, np.float32)}), path, row_group_size=_GROUP_ROWS)


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(identity: str, path: Path, samples: int, conditions: Json) -> Json:
    """A row of ratios of pairs of runs."""
    ours, theirs = [], []
    for sample in range(samples + 1):  # the first sample warms up
        pair = (
            _timed(lambda: Table.open(path, device="cpu:0")),
            _timed(lambda: pq.ParquetFile(path).schema_arrow),
        )
        if sample > 0:
            ours.append(pair[0])
            theirs.append(pair[1])
    with Table.open(path, device="cpu:0") as table:
        right = table.schema.equals(pq.read_schema(path))
    times = {"ours_ms": median(ours) * 1e3, "pyarrow_ms": median(theirs) * 1e3, "pyarrow": pa.__version__}
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return results.row(identity, ratios, "ratio", None, {**conditions, **times, "verified": right})


def main() -> None:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=5000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args()
    device = headrace.Device.parse("cpu:0")
    topic = results.topic_of(chosen.save, device) if chosen.save else "fetch-open"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_columns(path, chosen.columns)
        rows = [compare("fetch.open5000.vs_pyarrow", path, chosen.samples, {"columns": chosen.columns})]
        write_groups(path, chosen.groups)
        rows.append(compare("fetch.open_groups.vs_pyarrow", path, chosen.samples, {"row_groups": chosen.groups}))
    content = results.document(topic, device, rows)
    if chosen.save:
        results.save(chosen.save, content)
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
