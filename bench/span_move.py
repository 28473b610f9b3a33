"""Moves pages between host and device while their span is in use, compared with the link in the same run.

    python bench/span_move.py [--device cuda:0] [--bytes 1GiB] [--page-bytes 32MiB] [--runs 7] [--save F] [--json]

All pages of a span move to the device and back, in runs of pages that are remapped together, using pages that the span
kept from the previous move. A time runs from the call to its return: copied, remapped, rights granted. `span.move` is
the rate over both directions for pages of --page-bytes to which the host has no right while they move,
`span.move.small` that for pages of 2 MiB; `.host_rights` that for pages which the host may read and write whenever they
are there. `.to_device` and `.to_host` are the rates of one direction. The bytes are checked at the end of each. Exit
status: 0; 1 when an error ended it or bytes had changed; 2 for wrong use.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import headrace
from headrace import Device, Error, Placement, Span, results
from headrace.profiles import Json
from headrace.span import PAGE_BYTES, Right
from headrace.tables import figure
from row_by_row import size

_LINK_BYTES = 256 << 20


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument("--bytes", type=size, default=1 << 30, help="bytes of the span, in whole pages")
    parser.add_argument("--page-bytes", type=size, default=32 << 20, help="bytes of a large page")
    parser.add_argument(
        "--runs", type=int, default=7, help="number of moves there and back, after one that allocates the pages"
    )
    parser.add_argument("--save", type=Path, help="write the results file span-move.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    return parser.parse_args()


def _seconds(span: Span, place: Device | str) -> float:
    began = time.perf_counter()
    span.move(place)
    return time.perf_counter() - began


def _times(
    span: Span, device: Device, there: np.ndarray, runs: int, host: Right
) -> tuple[list[tuple[float, float]], bool]:
    """Seconds to the device and back, and whether the bytes are unchanged."""
    span.keep_spare_pages(span.page_count)  # as many as it moves
    span.allow_host(Right.read_write)
    span.array(np.int64)[:] = there
    span.allow_host(host)
    times = [(_seconds(span, device), _seconds(span, "host")) for _ in range(runs + 1)][1:]
    span.allow_host(Right.read)
    return times, bool(np.array_equal(span.array(np.int64), there))


def _measure(device: Device, count: int, page_bytes: int, runs: int) -> list[Json]:
    there = np.random.default_rng(1).integers(0, 1 << 63, count // 8, dtype=np.int64)
    link = sorted(headrace.measure.copy_roofs(device, min(_LINK_BYTES, count)).engine)
    roof = (link[len(link) // 2] / 1e9, "one large copy by the engine")
    rows = []
    for name, of_page, host in [
        ("span.move", page_bytes, Right.none),
        ("span.move.host_rights", page_bytes, Right.read_write),
        ("span.move.small", PAGE_BYTES, Right.none),
        ("span.move.small.host_rights", PAGE_BYTES, Right.read_write),
    ]:
        span = Span(device, count, Placement.all("host"), page_bytes=of_page)
        times, verified = _times(span, device, there, runs, host)
        about = {"bytes": count, "pages": span.page_count, "page_bytes": of_page, "verified": verified}
        span.release()
        each = {
            name: [2 * count / (to + back) / 1e9 for to, back in times],
            f"{name}.to_device": [count / to / 1e9 for to, _ in times],
            f"{name}.to_host": [count / back / 1e9 for _, back in times],
        }
        rows += [results.row(row, rates, "GB/s", roof, about) for row, rates in each.items()]
    return rows


def main() -> int:
    """Runs the program."""
    given = _parse()
    try:
        device = Device.parse(given.device)
        topic = results.topic_of(given.save, device) if given.save else "span-move"
        rows = _measure(device, given.bytes, given.page_bytes, given.runs)
        content = results.document(topic, device, rows)
        if given.save:
            results.save(given.save, content)
    except (Error, ValueError) as error:
        print(f"span_move.py: error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(content))
    else:
        for row in rows:
            print(
                f"{row['id']:<37}  {figure(row['value'])} {row['unit']}  {results.share_of_roof(row):.1%} of the link"
            )
    return 0 if all(row["conditions"]["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
