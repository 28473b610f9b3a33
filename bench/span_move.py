"""Pages moved between host and device while their span lives, beside the link of the same run.

    python bench/span_move.py [--device cuda:0] [--bytes 1GiB] [--runs 7] [--save F] [--json]

All pages of a span move to the device and back, in runs of pages remapped together, with pages that the span has kept
from the move before. A time runs from the call to its return: copied, remapped, rights given. `span.move` is the rate
over both ways; `span.move.to_device` and `span.move.to_host` are those of one. The bytes are checked at the end.
Exit status: 0; 1 when an error ended it or bytes were not what they were; 2 for wrong use.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import headrace
from headrace import Device, Error, Placement, Right, Span, results
from headrace.profiles import Json
from headrace.tables import figure
from row_by_row import size

_LINK_BYTES = 256 << 20


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="cpu, cuda:0, ...")
    parser.add_argument("--bytes", type=size, default=1 << 30, help="of the span, whole pages of 2 MiB")
    parser.add_argument("--runs", type=int, default=7, help="there and back, after one that takes the pages")
    parser.add_argument("--save", type=Path, help="write the results file span-move.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    return parser.parse_args()


def _seconds(span: Span, place: Device | str) -> float:
    began = time.perf_counter()
    span.move(place)
    return time.perf_counter() - began


def _measure(device: Device, count: int, runs: int) -> list[Json]:
    span = Span(device, count, Placement.all("host"))
    span.keep_spare_pages(span.page_count)  # all that it moves
    span.allow_host(Right.read_write)
    there = np.random.default_rng(1).integers(0, 1 << 63, span.bytes // 8, dtype=np.int64)
    span.array(np.int64)[:] = there
    times = [(_seconds(span, device), _seconds(span, "host")) for _ in range(runs + 1)][1:]
    verified = bool(np.array_equal(span.array(np.int64), there))
    link = sorted(headrace.measure_copy_roofs(device, min(_LINK_BYTES, span.bytes)).engine)
    roof = (link[len(link) // 2] / 1e9, "one large copy by the engine")
    about = {"bytes": span.bytes, "pages": span.page_count, "verified": verified}
    each = {"to_device": [to for to, _ in times], "to_host": [back for _, back in times]}
    rows = [
        results.row(f"span.move.{way}", [span.bytes / one / 1e9 for one in seconds], "GB/s", roof, about)
        for way, seconds in each.items()
    ]
    both = [2 * span.bytes / (to + back) / 1e9 for to, back in times]
    return [results.row("span.move", both, "GB/s", roof, about), *rows]


def main() -> int:
    """Runs the program."""
    given = _parse()
    try:
        device = Device.parse(given.device)
        topic = results.topic_of(given.save, device) if given.save else "span-move"
        rows = _measure(device, given.bytes, given.runs)
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
                f"{row['id']:<20}  {figure(row['value'])} {row['unit']}  {results.share_of_roof(row):.1%} of the link"
            )
    return 0 if all(row["conditions"]["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
