"""The special figures of the ladder in one run: the highest rates, the idle latency, and their bounds.

    python bench/ladder_floor.py [--device cuda:0] [--only ladder.light] [--wordnet F.hridx] [--zipf F.hridx] [--save F]

Every figure is for a plan chosen from a few candidates, and is then confirmed several times; answers are verified, and
a claim never exceeds the ceiling of its own load generator divided by 1.2. Takes six to eight minutes on a GPU with 16
cores; it also runs on the CPU device, with smaller rates. A figure that cannot be measured is left out, and the reason
printed. Exit status: 0; 1 when an error ended it or no row could be measured; 2 for wrong use.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import floor_rows
from floor_measure import Bench, Scale
from headrace import Device, Error, results
from headrace.cli.options import duration
from headrace.cli.options import rate as rate_of
from headrace.profiles import Json
from headrace.tables import figure


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cpu, cuda:0, ...")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument("--wordnet", type=Path, help="index for ladder.retrieval.wordnet.qps")
    parser.add_argument("--zipf", type=Path, help="index for ladder.retrieval.zipf10m.qps")
    parser.add_argument(
        "--plan",
        action="append",
        default=[],
        metavar="RUNG",
        help="rung to choose from, such as dispatched; may be repeated",
    )
    parser.add_argument("--generators", default="", metavar="N,N", help="numbers of generator threads to choose from")
    parser.add_argument("--samples", type=int, default=3, help="number of confirmations of a figure")
    parser.add_argument(
        "--tries", type=int, default=8, help="number of loads per confirmation, of which one must keep the bound"
    )
    parser.add_argument(
        "--resolution",
        type=float,
        default=0.01,
        help="share by which a rate that keeps the bound and one that does not differ",
    )
    parser.add_argument("--window", type=duration, default=0.1, help="minimum length of a window, such as 100ms")
    parser.add_argument("--tolerance", type=float, default=0.002, help="precision of p99, as an error of its rank")
    parser.add_argument("--bound", type=duration, default=0.5e-3, help="bound on p99 of figures without their own")
    parser.add_argument("--tight-bound", type=duration, default=0.1e-3, help="tight bound on p99 of light")
    parser.add_argument("--idle-rate", type=rate_of, default=10e3, help="rate of ladder.light.idle in queries/s")
    parser.add_argument("--high-rate", type=rate_of, default=25e6, help="rate of ladder.light.at25m in queries/s")
    parser.add_argument(
        "--reference-steps", type=int, default=2000, help="multiply-adds per chain; give fewer in a test"
    )
    parser.add_argument("--save", type=Path, help="write the results file floors.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    return parser.parse_args()


def _print_table(rows: list[Json]) -> None:
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        share = (
            f", {results.share_of_roof(row):.1%} of {figure(row['roof'])} ({row['roof_is']})" if row.get("roof") else ""
        )
        print(f"{row['id']:<{width}}  {figure(row['value'])} {row['unit']}{share}")
        print(f"{'':<{width}}  {results.describe(row['conditions'])}")


def _measure(bench: Bench, given: argparse.Namespace, keep: Callable[[list[Json]], None]) -> list[Json]:
    """The requested rows; those made so far go to `keep` after each, so that a killed run loses at most one."""
    made: list[Json] = []
    for ids, make in floor_rows.figures(given.wordnet, given.zipf):
        if given.only and not any(identity.startswith(word) for identity in ids for word in given.only):
            continue
        began = time.monotonic()
        bench.say(f"{', '.join(ids)} ...")
        try:
            found = make(bench)
        except floor_rows.NoFigureError as reason:
            bench.say(f"  left out: {reason}")
            continue
        made += [row for row in found if not given.only or any(row["id"].startswith(word) for word in given.only)]
        keep(made)
        said = "; ".join(f"{figure(row['value'])} {row['unit']}" for row in found)
        bench.say(f"  {said}; took {time.monotonic() - began:.1f} s")
    return made


def main() -> int:
    """Runs the program."""
    given = _parse()
    began = time.monotonic()
    try:
        device = Device.parse(given.device)
        topic = results.topic_of(given.save, device) if given.save else "floors"
        scale = Scale(
            bound=given.bound,
            tight_bound=given.tight_bound,
            window=given.window,
            tolerance=given.tolerance,
            confirmations=given.samples,
            tries=given.tries,
            resolution=given.resolution,
            idle_rate=given.idle_rate,
            high_rate=given.high_rate,
            reference_steps=given.reference_steps,
        )
        generators = [int(word) for word in given.generators.split(",") if word]
        bench = Bench(device, scale, given.plan, generators, lambda text: print(text, file=sys.stderr, flush=True))

        def content_of(rows: list[Json]) -> Json:
            return results.document(topic, device, rows, seconds=round(time.monotonic() - began, 1))

        def keep(rows: list[Json]) -> None:
            if given.save and rows:
                results.save(given.save, content_of(rows))

        rows = _measure(bench, given, keep)
        if not rows:
            print("ladder_floor.py: no figure could be measured", file=sys.stderr)
            return 1
        content = content_of(rows)
    except (Error, ValueError) as error:
        print(f"ladder_floor.py: error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(content))
    else:
        _print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
