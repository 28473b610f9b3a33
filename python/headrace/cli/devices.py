"""`headrace devices`: the available devices."""

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from headrace import Device
from headrace.cli import cores
from headrace.device import DeviceProperties
from headrace.units import GIB

_FIELDS = sorted(name for name in vars(DeviceProperties) if not name.startswith("_"))


def as_dict(device: Device) -> dict[str, Any]:
    """All known facts of a device, for JSON. `name` is what --device takes, `model` the vendor's name."""
    properties = {name: getattr(device.properties, name) for name in _FIELDS}
    properties["model"] = properties.pop("name")
    memory = device.memory()
    return {
        "name": device.name,
        "kind": device.kind.name,
        "free_bytes": memory.free_bytes,
        "total_bytes": memory.total_bytes,
        **properties,
    }


def _link(properties: DeviceProperties) -> str:
    if properties.link_generation is None or properties.link_width is None:
        return "-"
    return f"PCIe {properties.link_generation} x{properties.link_width}"


def _table(devices: list[Device]) -> Table:
    table = Table(title="Devices, best first")
    for heading in ("device", "model", "driver"):
        table.add_column(heading, overflow="fold")
    for heading in ("cores or SMs", "clock MHz", "free GiB", "total GiB", "link", "NUMA"):
        table.add_column(heading, justify="right")
    for device in devices:
        properties = device.properties
        memory = device.memory()
        table.add_row(
            device.name,
            properties.name,
            properties.driver or "-",
            str(properties.multiprocessor_count),
            "-" if properties.clock_mhz is None else str(properties.clock_mhz),
            f"{memory.free_bytes / GIB:.1f}",
            f"{memory.total_bytes / GIB:.1f}",
            _link(properties),
            "-" if properties.numa_node is None else str(properties.numa_node),
        )
    return table


def devices(
    as_json: bool = typer.Option(
        False, "--json", help="Print JSON: {devices: [...], cuda_absence: the reason, or empty}."
    ),
    topology: bool = typer.Option(
        False, "--topology", help="Show the processors instead: caches, binding order and round-trip times by distance."
    ),
) -> None:
    """List the devices and their properties, best first.

    Example: headrace devices --json
    """
    if topology:
        cores.show_cores(as_json)
        return
    present = Device.list()
    absence = Device.cuda_absence()
    if as_json:
        typer.echo(json.dumps({"devices": [as_dict(device) for device in present], "cuda_absence": absence}, indent=2))
        return
    console = Console()
    console.print(_table(present))
    if absence:
        console.print(f"No CUDA device: {absence}", markup=False, highlight=False)
