"""The grid's figures in one run: cells per second and efficiency over devices, compared with memory bandwidth.

    python bench/grid.py [--device cuda:0 --device cuda:1] [--only grid.fdtd2d] [--steps 50] [--save F] [--json]

Figures of one device are for the first one named; those of two devices for the first two, with the fastest redundant
layers and push, or the given ones. Before a figure is timed, the same settings compute a small domain, which must equal
plain NumPy and one CPU device to the last bit. The roof is the rate of copies of the same number of bytes by the same
devices in the same run, divided by the bytes that the scheme moves per cell. The default sizes are those of the
published figures on GPUs, and small ones on CPU devices. A figure that cannot be measured is left out, and the reason
printed. Exit status: 0; 1 when an error ended it, a field was wrong or no row could be measured; 2 for wrong use.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import grid_rows
from grid_rows import Bench, Scale
from grid_run import NoFigureError, Settings, Shape
from headrace import Device, Error, UsageError, results
from headrace.profiles import Json
from headrace.tables import short_rate

_PUSHES = ("automatic", "store", "copy", "host")


def _shape(text: str, axes: int) -> Shape:
    words = text.split("x")
    if len(words) != axes or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape like {'x'.join(['512'] * axes)}")
    return tuple(map(int, words))


def _cut(text: str) -> str | Shape:
    return text if text == "best" else _shape(text, text.count("x") + 1)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    plane, space = partial(_shape, axes=2), partial(_shape, axes=3)
    parser.add_argument(
        "--device", action="append", default=[], help="device; default: every GPU, else cpu:0 and cpu:1"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument("--plane", type=plane, metavar="NXxNY", help="domain of grid.fdtd2d.cells")
    parser.add_argument(
        "--split", type=plane, action="append", metavar="NXxNY", help="domain of grid.fdtd2d.efficiency"
    )
    parser.add_argument("--small", type=plane, metavar="NXxNY", help="domain of grid.small and grid.cpu")
    parser.add_argument("--space", type=space, metavar="NXxNYxNZ", help="domain of grid.fdtd3d")
    parser.add_argument("--jacobi", type=plane, metavar="NXxNY", help="domain of grid.jacobi")
    parser.add_argument("--steps", type=_number, help="steps per sample")
    parser.add_argument("--small-steps", type=_number, default=1400, help="steps per sample of grid.small")
    parser.add_argument("--samples", type=_number, default=5)
    parser.add_argument("--layers", type=int, default=10, help="absorbing cells at each wall, in three dimensions")
    parser.add_argument("--cut", type=_cut, default="best", help="parts along each axis, such as 1x2")
    parser.add_argument(
        "--redundant",
        type=_number,
        action="append",
        help="number of steps between exchanges to choose from; may be repeated",
    )
    parser.add_argument("--push", choices=_PUSHES, action="append", help="push to choose from; may be repeated")
    parser.add_argument("--precision", choices=["single", "double"], default="single")
    parser.add_argument("--save", type=Path, help="write the results file grid.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    if given.layers < 0:
        parser.error("--layers must be 0 or more")
    return given


def _devices(names: list[str]) -> list[Device]:
    gpus = [device.name for device in Device.list() if device.kind.name == "cuda"]
    return [Device.parse(name) for name in names or gpus or ["cpu:0", "cpu:1"]]


def _bench(given: argparse.Namespace, devices: list[Device]) -> Bench:
    scale = Scale.of(on_gpu=devices[0].kind.name == "cuda").but(
        plane=given.plane,
        splits=given.split and tuple(given.split),
        small=given.small,
        space=given.space,
        spaces=given.space and (given.space,),
        jacobi=given.jacobi,
        steps=given.steps,
        small_steps=given.small_steps,
        samples=given.samples,
        layers=given.layers,
        redundants=given.redundant and tuple(given.redundant),
        pushes=given.push and tuple(given.push),
    )
    settings = Settings(tuple(devices), given.cut, precision=given.precision)
    return Bench(settings, scale, lambda text: print(text, file=sys.stderr, flush=True))


def _measure(bench: Bench, only: list[str], keep: Callable[[list[Json]], None]) -> list[Json]:
    """The requested rows; those made so far go to `keep` after each, so that a killed run loses at most one."""
    made: list[Json] = []
    for identity, make in bench.figures():
        if only and not any(identity.startswith(word) for word in only):
            continue
        began = time.monotonic()
        bench.say(f"{identity} ...")
        try:
            made.append(make())
        except NoFigureError as reason:
            bench.say(f"  left out: {reason}")
            continue
        keep(made)
        bench.say(f"  {time.monotonic() - began:.1f} s")
    return made


def _print_table(rows: list[Json]) -> None:
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        value = short_rate(row["value"]) + (" " if row["value"] < grid_rows.KILO else "") + row["unit"]
        share = (
            f", {results.share_of_roof(row):.1%} of {short_rate(row['roof'])} ({row['roof_is']})"
            if "roof" in row
            else ""
        )
        wrong = "" if row["conditions"]["verified"] else "  NOT VERIFIED"
        print(f"{row['id']:<{width}}  {value}{share}{wrong}")
        print(f"{'':<{width}}  {results.describe(row['conditions'])}")


def main() -> int:
    """Runs the program."""
    given = _parse()
    began = time.monotonic()
    try:
        devices = _devices(given.device)
        topic = results.topic_of(given.save, devices[0]) if given.save else "grid"

        def content_of(rows: list[Json]) -> Json:
            seconds = round(time.monotonic() - began, 1)
            return results.document(topic, devices[0], rows, seconds=seconds)

        def keep(rows: list[Json]) -> None:
            if given.save:
                results.save(given.save, content_of(rows))

        rows = _measure(_bench(given, devices), given.only, keep)
        if not rows:
            print("grid.py: no figure could be measured", file=sys.stderr)
            return 1
        if given.json:
            print(json.dumps(content_of(rows), indent=2))
        else:
            _print_table(rows)
    except Error as error:
        print(f"grid.py: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0 if all(row["conditions"]["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
