"""Grids larger than their share of device memory, compared with device memory and with the link.

    python bench/grid_larger.py [--device cuda:0] [--domain 64GiB] [--device-memory 8GiB] [--dimensions 2] [--layers 10]
        [--visit-steps N] [--visits 4] [--samples 3] [--save F] [--json]

FDTD with absorbing layers in a domain whose components take --domain bytes, computed slab by slab. `grid.larger.2d` and
`.3d` are its cells per second. Each is compared with the speed of single steps in device memory, in a domain that fits
there, and with what the link allows, from copies both ways at once in the same run over the bytes of a visit. Before a
figure is timed, slabs of a small domain must equal a run in device memory to the last bit, in all fields and traces.
The host needs memory for the domain. Exit status: 0; 1 when an error ended it or a field was wrong; 2 for wrong use.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import headrace
from headrace import Device, Error, results
from headrace.grid import Fdtd
from headrace.profiles import Json
from headrace.tables import short_rate
from row_by_row import say, size

_SPACING = 1e-3
_COMPONENT_BYTES = {2: 3 * 4, 3: 6 * 4}
_GRAIN = {2: 128, 3: 32}  # each long side is a multiple of this many cells
_LINK_BYTES = 256 << 20
_CHECK_STEPS = 60
_CHECKED = {2: (400, 900), 3: (56, 60, 120)}
_IN_CORE = {True: {2: (16000, 16000), 3: (768, 768, 768)}, False: {2: (1000, 1000), 3: (96, 96, 96)}}

Shape = tuple[int, ...]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best", help="device: cuda:0, cpu, ...")
    parser.add_argument("--domain", type=size, default=64 << 30, help="bytes of the components of the domain")
    parser.add_argument("--device-memory", type=size, default=8 << 30, help="device memory that the fields may take")
    parser.add_argument(
        "--dimensions", type=int, choices=[2, 3], action="append", help="number of dimensions; default: both"
    )
    parser.add_argument("--layers", type=int, default=10, help="absorbing cells at each wall")
    parser.add_argument("--visit-steps", type=int, default=0, help="steps per visit; default: the library's choice")
    parser.add_argument("--visits", type=int, default=4, help="visits of all slabs in a sample")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument(
        "--media", action="store_true", help="use a different material in each cell, so that all fields are copied"
    )
    parser.add_argument("--save", type=Path, help="write the results file grid-larger.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    return parser.parse_args()


def _shape(dimensions: int, count: int) -> Shape:
    """The largest square or cube whose components take at most this many bytes."""
    side = int((count / _COMPONENT_BYTES[dimensions]) ** (1 / dimensions))
    grain = _GRAIN[dimensions]
    return (side // grain * grain if side > grain else side,) * dimensions


def _make(shape: Shape, device: Device, layers: int, **more: Any) -> Fdtd:  # noqa: ANN401 - options of an Fdtd
    """A domain with a source and a receiver near its middle, on both sides of where slabs are likely to meet."""
    run = Fdtd(shape, _SPACING, devices=[device], cpml=layers, **more)
    middle = tuple(side // 2 for side in shape)
    run.add_source("ez", middle, np.sin(np.arange(40) / 3))
    run.add_receiver("ez", (*middle[:-1], middle[-1] + 3))
    return run


def _give_media(run: Fdtd, shape: Shape) -> None:
    numbers = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.float64).reshape(shape, order="F")
    run.set_materials(permittivity=2 + numbers % 5, conductivity=0.01 * (numbers % 7 == 0))


def _is_right(dimensions: int, device: Device, layers: int, visit_steps: int) -> bool:
    """Whether slabs of a small domain give the results of device memory, with and without varied materials."""
    shape = _CHECKED[dimensions]
    for media in (True, False):
        for part in (2, 5):
            bytes_in_core = int(np.prod(shape)) * 4 * {2: 10, 3: 20}[dimensions]
            whole = _make(shape, device, layers)
            cut = _make(shape, device, layers, device_memory=bytes_in_core // part, visit_steps=visit_steps // part)
            for run in (whole, cut):
                if media:
                    _give_media(run, shape)
                run.step(_CHECK_STEPS // 3)
                run.step(_CHECK_STEPS - _CHECK_STEPS // 3)
            if cut.slabs is None or cut.slabs.count < part:
                return False
            some, others = whole.state(), cut.state()
            if any(not np.array_equal(some[name], others[name]) for name in some):
                return False
    return True


def _seconds(advance: Callable[[int], None], steps: int, samples: int) -> list[float]:
    advance(steps)
    taken = []
    for _ in range(samples):
        began = time.perf_counter()
        advance(steps)
        taken.append(time.perf_counter() - began)
    return taken


def _in_core(dimensions: int, device: Device, layers: int) -> float:
    """Cells per second of single steps, in phases or in passes of one step, whichever is faster."""
    on_gpu = device.kind.name == "cuda"
    shape = _IN_CORE[on_gpu][dimensions]
    best = 0.0
    for passes in ("never", "always"):
        run = Fdtd(shape, _SPACING, devices=[device], cpml=layers, passes=passes, pass_steps=1)
        steps = 100 if on_gpu else 10
        taken = median(_seconds(run.step, steps, 3))
        best = max(best, float(np.prod(shape, dtype=np.int64)) * steps / taken)
    return best


def _link(device: Device) -> float:
    """Bytes per second in each direction, for simultaneous copies both ways between page-locked and device memory."""
    for route in headrace.measure.link_routes(device):
        if (route.path, route.memory, route.means) == ("both ways", "pinned", "engine"):
            return headrace.measure.link(route, [_LINK_BYTES]).points[-1].rate / 2
    raise headrace.UsageError(f"{device.name} has no simultaneous copies both ways to measure")


def _row(dimensions: int, device: Device, given: argparse.Namespace) -> Json:
    say(f"{dimensions}D: checking a small domain")
    if not _is_right(dimensions, device, given.layers, given.visit_steps):
        raise headrace.DataError(f"slabs in {dimensions} dimensions are not equal to device memory")
    say(f"{dimensions}D: one step at a time in device memory")
    in_core = _in_core(dimensions, device, given.layers)
    shape = _shape(dimensions, given.domain)
    say(f"{dimensions}D: {'x'.join(map(str, shape))} in slabs")
    run = _make(shape, device, given.layers, device_memory=given.device_memory, visit_steps=given.visit_steps)
    if given.media:
        _give_media(run, shape)
    if run.slabs is None:
        raise headrace.UsageError("the domain fits in device memory: make it larger, or give less device memory")
    run.step(1)  # allocates host memory
    slabs = run.slabs
    cells = int(np.prod(shape, dtype=np.int64))
    steps = slabs.steps * given.visits
    taken = _seconds(run.step, steps, given.samples)
    slabs = run.slabs
    link = _link(device)
    roof = link * slabs.steps * cells / max(slabs.bytes_in, slabs.bytes_out)
    rates = [cells * steps / seconds for seconds in taken]
    about = {
        "shape": "x".join(map(str, shape)),
        "layers": given.layers,
        "media": given.media,
        "domain_bytes": given.domain,
        "device_bytes": slabs.device_bytes,
        "host_bytes": slabs.host_bytes,
        "slabs": slabs.count,
        "slab_rows": slabs.rows,
        "visit_steps": slabs.steps,
        "bytes_in": slabs.bytes_in,
        "bytes_out": slabs.bytes_out,
        "link_gb_per_s": link / 1e9,
        "in_core_cells_per_second": in_core,
        "share_of_in_core": median(rates) / in_core,
        "verified": True,
    }
    return results.row(f"grid.larger.{dimensions}d", rates, "cells/s", (roof, "copies both ways at once"), about)


def main() -> int:
    """Runs the program."""
    given = _parse()
    try:
        device = Device.parse(given.device)
        topic = results.topic_of(given.save, device) if given.save else "grid-larger"
        rows: list[Json] = []
        for dimensions in given.dimensions or (2, 3):
            rows.append(_row(dimensions, device, given))
            if given.save:  # saved at once, so that a later failure cannot lose it
                results.save(given.save, results.document(topic, device, rows))
        content = results.document(topic, device, rows)
    except (Error, ValueError) as error:
        print(f"grid_larger.py: error: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(content))
        return 0
    for row in rows:
        its = row["conditions"]
        print(
            f"{row['id']:<16} {short_rate(row['value'])}cells/s: {its['share_of_in_core']:.0%} of one step at a time "
            f"in device memory ({short_rate(its['in_core_cells_per_second'])}cells/s), "
            f"{results.share_of_roof(row):.0%} of the link ({its['link_gb_per_s']:.1f} GB/s each way); "
            f"{its['slabs']} slabs of {its['slab_rows']} rows, {its['visit_steps']} steps a visit"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
