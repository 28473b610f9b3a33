"""Measures CopyBatch against the link: every route, size and layout, with the roofs of the same run.

    python bench/copy_batch.py [--device cuda:0] [--only link.batch1k] [--routes automatic,gather] [--save F]

The headline figures come first (link.pinned, link.pageable, link.batch64.us), then a grid of sizes, layouts, alignments
and routes, with link.batch1k, link.batch4k and link.batch.contiguous as three of its cells. Times run from the first
add to the end of the wait; every run is verified. Takes about two minutes on a GPU. Cases that a device does not
support are left out. Exit status: 0; 1 when an error ended it, or no row could be measured or some row was not
verified; 2 for wrong use; 130 after Ctrl-C, with the rows so far.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from copy_cases import KIB, MIB, ROUTES, Bench
from headrace import Device
from headrace.profiles import Json
from row_by_row import run, say


def _sizes(text: str) -> list[int]:
    sizes = [int(word) for word in text.split(",") if word]
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"sizes are bytes above 0, not '{text}'")
    return sizes


def _routes(text: str) -> list[str]:
    routes = [word for word in text.split(",") if word]
    for route in routes:
        if route not in ROUTES:
            raise argparse.ArgumentTypeError(f"'{route}' is not a route: {', '.join(ROUTES)}")
    return routes


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument(
        "--sizes", type=_sizes, default=[KIB << i for i in range(7)], metavar="N,N", help="sizes of a copy in bytes"
    )
    parser.add_argument("--routes", type=_routes, default=list(ROUTES), metavar="R,R", help="routes of the grid")
    parser.add_argument("--total", type=int, default=256, metavar="MIB", help="MiB that a run moves")
    parser.add_argument("--runs", type=int, default=7, help="number of runs per case")
    parser.add_argument(
        "--latency-runs", type=int, default=2000, help="number of runs of a case whose figure is a time"
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="threads that stage pageable sources; 0 chooses by the machine"
    )
    parser.add_argument("--slot-bytes", type=int, default=512 * KIB, help="bytes per staging slot")
    parser.add_argument(
        "--stores", default="cached", choices=("cached", "streaming"), help="kind of stores into staging slots"
    )
    parser.add_argument("--save", type=Path, help="write the results file link.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    for name, least in (("total", 1), ("runs", 1), ("latency_runs", 1), ("threads", 0)):
        if getattr(given, name) < least:
            parser.error(f"--{name.replace('_', '-')} must be {least} or more")
    return given


def _wanted(identity: str, only: list[str]) -> bool:
    return not only or any(identity.startswith(word) for word in only)


def _rows(bench: Bench, only: list[str]) -> Iterator[Json]:
    yield from (row for row in bench.roof_rows() if _wanted(row["id"], only))
    for case in bench.cases():
        if not any(_wanted(identity, only) for identity in case.ids):
            continue
        began = time.monotonic()
        made = [row for row in bench.rows(case) if _wanted(row["id"], only)]
        took = f"{time.monotonic() - began:.1f} s" if made else "left out: this device does not support it"
        yield from made
        say(f"{case.ids[0]}: {took}")


def main() -> int:
    """Runs the program."""
    given = _parse()

    def measure(device: Device) -> Iterator[Json]:
        bench = Bench(
            device,
            given.total * MIB,
            given.runs,
            given.latency_runs,
            given.sizes,
            given.routes,
            given.threads,
            given.slot_bytes,
            given.stores,
        )
        return _rows(bench, given.only)

    return run("link", given, measure)


if __name__ == "__main__":
    sys.exit(main())
