"""`headrace roof`: how many queries of an operator a device holds, and the limits of the hardware."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

import headrace
from headrace import Device, Operator, UsageError, quiet
from headrace.cli import options, show, stopping
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.cli.grouped import grouped
from headrace.device import GpuLimits
from headrace.measure import Roofs
from headrace.profiles import roofs_as_dict

Json = dict[str, Any]

_REFERENCE_BLOCKS = 32
_BLOCK_THREADS = 128
_PER_QUERY = {
    options.OperatorName.light: 1,
    options.OperatorName.reference: _REFERENCE_BLOCKS,
    options.OperatorName.retrieval: 1,
    options.OperatorName.mlp: 1,
    options.OperatorName.topk: 1,
    options.OperatorName.lookup: 1,
}


def _parallelism(blocks_per_multiprocessor: int, gpu: GpuLimits, blocks: int, threads_max: int) -> Json:
    """Resident queries and their combinations, from the number of blocks per multiprocessor."""
    resident = headrace.device.resident_queries(gpu.multiprocessors, blocks_per_multiprocessor, blocks)
    return {
        "blocks_per_multiprocessor": blocks_per_multiprocessor,
        "resident_blocks": gpu.multiprocessors * blocks_per_multiprocessor,
        "resident_queries": resident,
        "combinations": [
            {"threads": threads, "streams_per_thread": streams}
            for threads, streams in headrace.device.combinations(resident, threads_max)
        ],
    }


def _by_rules(gpu: GpuLimits, registers: int, shared_bytes: int, block_threads: int) -> tuple[int, Json]:
    """Blocks per multiprocessor by the rules of occupancy, and what limits them."""
    found = headrace.device.occupancy(gpu, registers, shared_bytes, block_threads)
    return found.blocks, {
        "registers": registers,
        "shared_bytes": shared_bytes,
        "limited_by": found.limited_by,
        "limits": {
            "threads": found.by_threads,
            "blocks": found.by_blocks,
            "registers": found.by_registers,
            "shared memory": found.by_shared,
        },
    }


def _of_device(device: Device, op: Operator, gpu: GpuLimits, block_threads: int) -> tuple[int, Json]:
    """The same for the operator's kernel on this device, next to the number that the device reports."""
    taken = headrace.device.kernel_resources(device, op)
    if taken.threads_max == 0:
        raise UsageError(f"operator {op.name} was compiled without nvcc: give --registers or a number of blocks")
    blocks, why = _by_rules(gpu, taken.registers, taken.shared_bytes, block_threads)
    said = headrace.device.resident_blocks_max(device, op, block_threads) // gpu.multiprocessors
    return said, why | {"local_bytes": taken.local_bytes, "by_rules": blocks}


def _kind(
    name: str, asked: int | None, registers: int | None, shared: int, gpu: GpuLimits, threads: int
) -> tuple[int, Json] | None:
    """The numbers that the options give for one kind of kernel, or None."""
    if asked is not None and registers is not None:
        raise UsageError(f"{name}: give registers or blocks per multiprocessor, not both")
    if asked is not None:
        return asked, {}
    return _by_rules(gpu, registers, shared, threads) if registers is not None else None


def _lines(kinds: Json, gpu: GpuLimits, blocks: int) -> list[str]:
    lines = []
    for name, found in kinds.items():
        per = found["blocks_per_multiprocessor"]
        text = f"{name}: {gpu.multiprocessors} multiprocessors x {per} blocks / {blocks} per query"
        limited = f", limited by {found['limited_by']}" if "limited_by" in found else ""
        lines.append(f"{text} = {found['resident_queries']} resident queries{limited}")
        pairs = ", ".join(f"{pair['threads']}x{pair['streams_per_thread']}" for pair in found["combinations"])
        lines.append(f"  threads x streams: {pairs or 'none: a query does not fit'}")
    return lines


def _print(content: Json, kinds: Json, gpu: GpuLimits | None, roofs: Roofs | None) -> None:
    console: Console = show.stdout()
    lines = _lines(kinds, gpu, content["blocks"]) if gpu else []
    if gpu is None:
        lines.append(f"{content['device']}: a CPU device runs one query per thread and keeps no blocks resident.")
    lines += ["", *show.roof_lines(roofs)] if roofs else []
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _roofs(
    device: Device | None, op: Operator | None, generators: int, watch: quiet.Watch
) -> tuple[Roofs | None, bool]:
    """Measures the roofs twice, to tell whether they can be trusted; returns them, and whether Ctrl-C came.

    A device that is not installed has no roofs.
    """
    if device is None or op is None:
        return None, False
    found: list[Roofs] = []

    def measure() -> None:
        for _ in range(2):
            found.append(headrace.measure.roofs(device, op, generators))  # noqa: PERF401 - seen while it grows

    if stopping.stopped(measure):
        watch.add("Ctrl-C came before the roofs had been measured twice")
        return (found[0] if found else None), True
    first, second = found
    for name in ("link_in", "link_out", "compute", "generator"):
        watch.roofs(name.replace("_", " "), (getattr(first, name), getattr(second, name)))
    return max(first, second, key=lambda roofs: roofs.lowest), False


@grouped
def roof(
    operator: options.ShippedOption = options.OperatorName.reference,
    index: options.IndexOption = None,
    device: options.DeviceOption = "best",
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="GPU that is not installed, such as L40: show occupancy only, no roofs.")
    ] = None,
    registers: Annotated[
        int | None, typer.Option("--registers", min=0, help="For --gpu: registers per thread.")
    ] = None,
    shared_bytes: Annotated[int, typer.Option("--shared-bytes", min=0, help="For --gpu: shared memory per block.")] = 0,
    persistent_registers: Annotated[
        int | None, typer.Option("--persistent-registers", min=0, help="Registers per thread of the resident kernel.")
    ] = None,
    persistent_shared_bytes: Annotated[
        int, typer.Option("--persistent-shared-bytes", min=0, help="Shared memory per block of the resident kernel.")
    ] = 0,
    per_multiprocessor: Annotated[
        int | None,
        typer.Option(
            "--blocks-per-multiprocessor", min=1, help="Blocks per multiprocessor, instead of the computed number."
        ),
    ] = None,
    persistent_per_multiprocessor: Annotated[
        int | None,
        typer.Option(
            "--persistent-blocks-per-multiprocessor",
            min=1,
            help="Blocks per multiprocessor of the resident kernel, instead of the computed number.",
        ),
    ] = None,
    blocks: Annotated[int | None, typer.Option("--blocks", min=1, help="Blocks per query.")] = None,
    block_threads: Annotated[
        int, typer.Option("--threads", "--block-threads", min=1, max=1024, help="Threads per block.")
    ] = _BLOCK_THREADS,
    host_threads: Annotated[
        int, typer.Option("--host-threads", min=1, max=1024, help="Maximum number of host threads in the combinations.")
    ] = 10,
    generators: options.GeneratorsOption = 1,
    *,
    dense: Dense,
    as_json: options.JsonOption = False,
) -> None:
    """Show how many queries a device holds at once, with which threads and streams, and its roofs.

    Example: headrace roof --gpu L40 --blocks 32 --blocks-per-multiprocessor 10
    """
    own_blocks = {"blocks": blocks} if operator is options.OperatorName.reference else {}
    each = blocks or _PER_QUERY[operator]
    here = options.find_device(device) if gpu is None else None
    op = None
    if here is not None:
        op = options.make_operator(operator, index, block_threads=block_threads, **own_blocks, dense=dense)
    limits: GpuLimits | None
    if gpu is not None:
        limits = headrace.device.find_gpu(gpu)
    else:
        limits = headrace.device.gpu_limits(here) if here is not None and here.kind.name == "cuda" else None
    kinds: Json = {}
    if limits is not None:
        ordinary = _kind("ordinary", per_multiprocessor, registers, shared_bytes, limits, block_threads)
        if ordinary is None and here is not None and op is not None:
            ordinary = _of_device(here, op, limits, block_threads)
        persistent = _kind(
            "persistent",
            persistent_per_multiprocessor,
            persistent_registers,
            persistent_shared_bytes,
            limits,
            block_threads,
        )
        for name, found in (("ordinary", ordinary), ("persistent", persistent)):
            if found is not None:
                kinds[name] = _parallelism(found[0], limits, each, host_threads) | found[1]
        if not kinds:
            raise UsageError("--gpu needs --registers or --blocks-per-multiprocessor for a GPU that is not installed")
    watch = quiet.Watch()
    roofs, interrupted = _roofs(here, op, generators, watch)
    content: Json = {
        "operator": str(operator),
        "device": here.name if here is not None else None,
        "gpu": limits.name if limits else None,
        "multiprocessors": limits.multiprocessors if limits else None,
        "blocks": each,
        "block_threads": block_threads,
        **kinds,
        "roofs": roofs_as_dict(roofs) if roofs else None,
        "quiet": watch.as_dict() if roofs else None,
    }
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(content, kinds, limits, roofs)
        if roofs:
            show.print_quiet(show.stdout(), watch.stop())
    if interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
