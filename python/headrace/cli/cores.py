"""`headrace devices --topology`: the processors by cache distance, and the cost of distance."""

import json
from typing import Any

import typer
from rich import box
from rich.table import Table

from headrace import measure
from headrace.cli import show
from headrace.device import Topology

_PAIRS_EACH = 4


def as_dict(machine: Topology) -> dict[str, Any]:
    """Binding order, caches and round trips, for JSON."""
    return {
        "reordering": machine.reordering(),
        "caches": machine.describe().splitlines(),
        "cores": machine.core_count,
        "order": [
            {
                "processor": one.os_index,
                "core": one.core,
                "last_level_cache": one.last_level_cache,
                "numa_node": one.numa_node,
            }
            for one in machine.by_cache_distance()
        ],
        "round_trips": [
            {
                "from": one.a.os_index,
                "to": one.b.os_index,
                "distance": one.distance,
                "round_trip_ns": one.round_trip * 1e9,
            }
            for one in measure.core_round_trips(_PAIRS_EACH)
        ],
    }


def _table(content: dict[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("distance")
    table.add_column("processors", justify="right")
    table.add_column("round trip", justify="right")
    for one in content["round_trips"]:
        table.add_row(one["distance"], f"{one['from']} - {one['to']}", f"{one['round_trip_ns']:.0f} ns")
    return table


def show_cores(as_json: bool) -> None:
    """Prints the processors."""
    content = as_dict(Topology.machine())
    if as_json:
        typer.echo(json.dumps(content, indent=2))
        return
    console = show.stdout()
    order = ", ".join(str(one["processor"]) for one in content["order"])
    for line in [*content["caches"], f"Threads are bound in this order: {order}", content["reordering"].capitalize()]:
        console.print(line, markup=False, soft_wrap=True)
    if content["round_trips"]:
        console.print(_table(content))
