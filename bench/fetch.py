"""Measures the cost of fetching columns: the figures fetch.*, and a study of the ways to the device.

    python bench/fetch.py --device cuda:0 --rows 20000000 --save docs/results/fetch.<machine>.json
    python bench/fetch.py --only fetch.ipc --rows 100000000
    python bench/fetch.py --study

A table of numbers is written twice, as Arrow IPC and as Parquet with Snappy, in 256 row groups, and fetched from the
page cache. Every fetch is verified against the written values. Roofs: one large copy from pinned memory, and copies on
the host by the same number of threads.
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
from pyarrow import ipc

import headrace
from headrace import results
from headrace.fetch.fetched import FetchedTable
from headrace.fetch.measure import rate
from headrace.fetch.table import Table
from host_copy import copy_rates
from row_by_row import size

Json = dict[str, Any]

FRAGMENTS = 256
SEED = 20261122
_HOST_SAMPLES = 7
_HOST_BYTES = 256 << 20


def make_table(rows: int) -> pa.Table:
    """Eight columns of numbers as in a query engine: some compress well, some do not."""
    rng = np.random.default_rng(SEED)
    return pa.table(
        {
            "kind": pa.array(rng.integers(0, 4, rows, np.int8)),
            "passengers": pa.array(rng.integers(0, 9, rows, np.int8)),
            "zone": pa.array(rng.integers(0, 263, rows, np.int16)),
            "number": pa.array(rng.integers(0, 1 << 30, rows, np.int32)),
            "when": pa.array(np.cumsum(rng.integers(0, 10**6, rows)), pa.timestamp("us")),
            "distance": pa.array(rng.gamma(2, 2, rows)),
            "amount": pa.array(np.round(rng.gamma(3, 6, rows), 2)),
            "tip": pa.array(rng.random(rows, np.float32)),
        }
    )


def _fragment_rows(table: pa.Table) -> int:
    return max(1, -(-table.num_rows // FRAGMENTS))


def write_arrow(table: pa.Table, folder: Path) -> Path:
    """The table as Arrow IPC, in the page cache."""
    path = folder / "table.arrow"
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=_fragment_rows(table))
    return into_page_cache(path)


def write_parquet(table: pa.Table, folder: Path) -> Path:
    """The table as Parquet, in the page cache."""
    path = folder / "table.parquet"
    pq.write_table(table, path, row_group_size=_fragment_rows(table), compression="snappy")
    return into_page_cache(path)


def into_page_cache(path: Path) -> Path:
    """Reads the file once."""
    with path.open("rb", buffering=0) as file:
        part = bytearray(16 << 20)
        while file.readinto(part):
            pass
    return path


def verified(fetched: FetchedTable, table: pa.Table) -> bool:
    """Whether the data on the device equals what was written."""
    back = fetched.to_arrow()
    return all(back[name].combine_chunks().equals(table[name].combine_chunks()) for name in table.column_names)


class Bench:
    """Measurements of one table on one device."""

    def __init__(self, table: pa.Table, device: str, samples: int) -> None:
        """Allocates no device memory yet."""
        self._table = table
        self._device = device
        self._samples = samples
        self._bytes = sum(column.nbytes for column in table.columns)

    def fetch(self, path: Path, *, host: str, threads: int) -> tuple[list[float], bool]:
        """Seconds per fetch of all columns from the page cache, with empty CPU and device levels."""
        budget = 2 * self._bytes + (64 << 20)
        levels = headrace.fetch.Levels(self._device, cpu_bytes=budget, device_bytes=budget, host=host)
        seconds = []
        right = True
        options = headrace.fetch.FetchOptions(threads=threads)
        with Table.open(path, levels=levels, options=options) as table:
            for sample in range(self._samples + 1):  # the first run allocates memory from the driver
                levels.clear("device")
                levels.clear("cpu")
                fetched = table.fetch()
                progress = fetched.progress
                if sample > 0 and progress is not None:
                    seconds.append(progress.elapsed)
                if sample == self._samples:
                    right = verified(fetched, self._table)
                del fetched
        return seconds, right

    def decode(self, path: Path, threads: int) -> float:
        """Seconds that Arrow itself takes to decode the Parquet file with this many threads: the best sample."""
        pa.set_cpu_count(threads)
        seconds = []
        for _ in range(self._samples + 1):
            started = time.perf_counter()
            pq.read_table(path, use_threads=True, memory_map=True)
            seconds.append(time.perf_counter() - started)
        return min(seconds)

    @property
    def bytes(self) -> int:
        """Bytes of all columns."""
        return self._bytes

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self._table.num_rows


def link_roof(device: str) -> float:
    """Rate in GB/s of one large copy from pinned memory."""
    return median(headrace.measure.copy_roofs(device).engine) / 1e9


def fastest(bench: Bench, path: Path, threads: int) -> tuple[list[float], bool, str]:
    """A fetch of the whole table with the faster kind of CPU level: seconds, whether it is right, the kind."""
    found = [(*bench.fetch(path, host=host, threads=threads), host) for host in ("pageable", "pinned")]
    return min(found, key=lambda one: median(one[0]))


def ipc_row(bench: Bench, arrow: Path, device: str, threads: int) -> Json:
    """The row fetch.ipc."""
    link = link_roof(device)
    copies = median(copy_rates(threads, _HOST_SAMPLES, _HOST_BYTES))
    seconds, right, host = fastest(bench, arrow, threads)
    roof = min((link, "pinned link"), (copies, "threads that copy on the host"))
    speeds = {"link_gb_per_second": link, "host_copies_gb_per_second": copies}
    conditions = {"rows": bench.rows, "threads": threads, "host": host, **speeds, "verified": right}
    return results.row("fetch.ipc", [rate(bench.bytes, one) for one in seconds], "GB/s", roof, conditions)


def parquet_row(bench: Bench, parquet: Path, device: str, threads: int) -> Json:
    """The row fetch.parquet."""
    link = link_roof(device)
    decode = rate(bench.bytes, bench.decode(parquet, threads))
    slower = min((decode, "Arrow's own decode"), (link, "pinned link"))
    seconds, right, host = fastest(bench, parquet, threads)
    shares = [rate(bench.bytes, one) / slower[0] for one in seconds]
    speeds = {"decode_gb_per_second": decode, "link_gb_per_second": link}
    conditions = {"rows": bench.rows, "threads": threads, "host": host, **speeds, "verified": right}
    return results.row("fetch.parquet", shares, "fraction", (1.0, slower[1]), conditions)


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ways(device: str, count: int, passes: int) -> list[Json]:
    """The one-time cost, and the cost per pass, of each way from ordinary host memory to the device."""
    found: list[Json] = []
    gib = count / 2**30
    costs = [cost for cost in headrace.measure.host_ways(device, bytes=count, passes=passes) if cost.supported]
    plain = next(median(cost.transfer) for cost in costs if cost.way == "pageable")
    for cost in costs:
        each = median(cost.transfer) + (median(cost.fill) if cost.fill else 0.0)
        once = cost.once + cost.back
        found.append(
            {
                "way": cost.way,
                "once_ms_per_gib": cost.once * 1e3 / gib,
                "back_ms_per_gib": cost.back * 1e3 / gib,
                "fill_gb_per_second": rate(cost.bytes, median(cost.fill)) if cost.fill else None,
                "transfer_gb_per_second": rate(cost.bytes, median(cost.transfer)),
                "pass_gb_per_second": rate(cost.bytes, each),
                # Number of passes after which it has cost less than pageable copies; None if it never does.
                "pays_after_passes": once / (plain - each) if plain > each else None,
                "verified": cost.verified,
            }
        )
    return found


def levels_of(bench: Bench, arrow: Path, device: str, threads: int) -> list[Json]:
    """The same for a whole table, by kind of CPU level: the first fetch, and later ones after evictions."""
    found: list[Json] = []
    budget = 2 * bench.bytes + (64 << 20)
    for host in ("pinned", "pageable"):
        levels = headrace.fetch.Levels(device, cpu_bytes=budget, device_bytes=budget, host=host)
        with Table.open(arrow, levels=levels, options=headrace.fetch.FetchOptions(threads=threads)) as table:
            first = _timed(table.fetch)
            again = []
            for _ in range(3):
                levels.clear("device")
                again.append(_timed(table.fetch))
        found.append({"cpu_level": host, "first_seconds": first, "again_seconds": median(again)})
    return found


def print_ways(found: list[Json]) -> None:
    """The table of docs/fetch.md."""

    def text(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:,.{digits}f}"

    print("| way | once, ms a GiB | back, ms a GiB | filling, GB/s | transfer, GB/s | a pass, GB/s | pays after |")
    print("|---|---|---|---|---|---|---|")
    for one in found:
        numbers = [text(one[f"{what}_ms_per_gib"], 1) for what in ("once", "back")]
        numbers += [text(one[f"{what}_gb_per_second"], 1) for what in ("fill", "transfer", "pass")]
        pays = "never" if one["pays_after_passes"] is None else f"{one['pays_after_passes']:,.1f} passes"
        print(f"| {one['way']} | {' | '.join(numbers)} | {pays} |")


def main() -> None:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--only", action="append", choices=["fetch.ipc", "fetch.parquet"], help="may be repeated")
    parser.add_argument("--study", action="store_true", help="measure the cost of each way of host memory")
    parser.add_argument("--study-bytes", type=size, default=1 << 30, help="bytes of each way; default: 1GiB")
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args()
    device = headrace.Device.parse(chosen.device)
    topic = results.topic_of(chosen.save, device) if chosen.save else "fetch"
    table = make_table(chosen.rows)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(table, device.name, chosen.samples)
        wanted = chosen.only or ["fetch.ipc", "fetch.parquet"]
        arrow = write_arrow(table, Path(folder))
        rows: list[Json] = []
        if "fetch.ipc" in wanted:
            rows.append(ipc_row(bench, arrow, device.name, chosen.threads))
        if "fetch.parquet" in wanted:
            parquet = write_parquet(table, Path(folder))
            rows.append(parquet_row(bench, parquet, device.name, chosen.threads))
        more: Json = {}
        if chosen.study:
            more["ways"] = ways(device.name, chosen.study_bytes, chosen.samples)
            more["cpu_levels"] = levels_of(bench, arrow, device.name, chosen.threads)
    content = results.document(topic, device, rows, **more)
    if chosen.save:
        results.save(chosen.save, content)
    print(json.dumps(content, indent=2))
    if chosen.study:
        print_ways(more["ways"])


if __name__ == "__main__":
    main()
