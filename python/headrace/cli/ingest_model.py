"""`headrace ingest model`: how fast packets can be placed into frames, and which GPUs are fast enough."""

import json
import re
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

import headrace
from headrace import UsageError, ingest_model
from headrace.cli import options, show
from headrace.ingest_model import Fit, Model
from headrace.profiles import Json
from headrace.tables import figure
from headrace.units import bytes_text

_MOST = 1e15  # limit on every number, so that products of several are still finite
_RATE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def bit_rate(text: str) -> float:
    """Parses bits per second such as "100G", "92Gb/s" or "1.5T"; above 0."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(?:b/s|bit/s|bps)?", text.strip())
    if match is None or not 0 < float(match[1]) < _MOST:
        raise typer.BadParameter(f"'{text}' is not a rate in bits/s above 0, such as 100G, 92Gb/s or 1.5T")
    return float(match[1]) * _RATE[match[2].lower()]


def _numbers(text: str, what: str) -> list[int]:
    words = text.split(",")
    if not all(re.fullmatch(r"[0-9]{1,15}", word.strip()) and int(word) > 0 for word in words):
        raise UsageError(f"{what} takes whole numbers above 0, separated by commas, not '{text}'")
    return [int(word) for word in words]


def _gigabits(bits_per_second: float | None) -> str:
    if bits_per_second is None or bits_per_second == float("inf"):
        return "no limit"
    return figure(bits_per_second / 1e9)


def _targets(model: Model, merges: list[int], target: float) -> list[Json]:
    rows: list[Json] = []
    for merge in merges:
        packets = replace(model, merge=merge).packets_for(target)
        limit = replace(model, merge=merge).limit()
        rows.append(
            {
                "merge": merge,
                "packets": packets,
                "limit_bits_per_second": limit if limit != float("inf") else None,
                "buffer_bytes": None if packets is None else packets * model.payload_bytes,
            }
        )
    return rows


def _fit_lines(found: Fit) -> list[str]:
    lines = ["packets   measured us   model us   error"]
    for packets, seconds in zip(found.packets, found.seconds, strict=True):
        modelled = found.model.seconds(packets)
        lines.append(f"{packets:7,}   {seconds * 1e6:11,.1f}   {modelled * 1e6:8,.1f}   {modelled / seconds - 1:+6.1%}")
    lines.append(f"error: median {found.error_median:.1%}, worst {found.error_worst:.1%}")
    return lines


def _print(content: Json, found: Fit | None, model: Model) -> None:
    console: Console = show.stdout()
    lines = [
        f"{content['constants']}: {model.cycles:,.4g} cycles per copy, {model.offset:,.4g} more per iteration, "
        f"at {model.clock_mhz:,.0f} MHz, payloads of {model.payload_bytes:,} bytes",
    ]
    if found is not None:
        lines += ["", *_fit_lines(found)]
    merges = content["table"][0]["merges"]
    lines += ["", "Maximum rate of the copies, Gb/s (of 1,024 Mb/s, truncated, as in Ito 2024)"]
    lines.append("clock MHz" + "".join(f"{f'{merge} per copy':>14}" for merge in merges))
    for row in content["table"]:
        cells = ("no limit" if cell is None else f"{cell:,}" for cell in row["gbps"])
        lines.append(f"{row['clock_mhz']:9,}" + "".join(f"{cell:>14}" for cell in cells))
    lines += ["", f"Packets per iteration needed for {_gigabits(content['target_bits_per_second'])} Gb/s"]
    for row in content["targets"]:
        packets = row["packets"]
        need = (
            f"{packets:,.0f} ({bytes_text(row['buffer_bytes'])} of payload)"
            if packets is not None
            else f"out of reach: {_gigabits(row['limit_bits_per_second'])} Gb/s at most"
        )
        lines.append(f"{row['merge']:3} per copy: {need}")
    heads = (*(f"{merge} per copy" for merge in merges), "gather", "link")
    lines += ["", "Which GPU is fast enough, Gb/s", f"{'':14}" + "".join(f"{head:>12}" for head in heads) + "  enough"]
    for row in content["gpus"]:
        ceilings = (*(row["copies"][str(merge)] for merge in merges), row["gather"], row["link"])
        verdict = ", ".join(row["enough"]) or ("no" if row["link_is_enough"] else "no: its link")
        direct = "" if row["peer_dma"] else " (no GPUDirect)"
        lines.append(
            f"{row['gpu']:<14}" + "".join(f"{_gigabits(ceiling):>12}" for ceiling in ceilings) + f"  {verdict}{direct}"
        )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def model(
    payload: Annotated[str, typer.Option("--payload", help="Payload per packet, such as 8000B or 1460.")] = "8000",
    target: Annotated[
        float, typer.Option("--target", parser=bit_rate, metavar="RATE", help="Rate to reach in bits/s, such as 100G.")
    ] = "100G",  # type: ignore[assignment]
    merge: Annotated[str, typer.Option("--merge", help="Number of packets per copy.")] = "1,2,32",
    clocks: Annotated[
        str, typer.Option("--clocks", metavar="MHZ,MHZ", help="Clock rates to list in the table.")
    ] = ",".join(map(str, ingest_model.DOCUMENT_CLOCKS_MHZ)),
    measured: Annotated[
        bool,
        typer.Option(
            "--measure/--published",
            help="Fit the costs to measurements on --device, or use those published by Ito 2024.",
        ),
    ] = False,
    device: options.DeviceOption = "best",
    way: Annotated[
        str, typer.Option("--way", help="Way to copy to measure; one of headrace.ingest.copy_ways().")
    ] = "automatic",
    cycles: Annotated[float | None, typer.Option("--cycles", min=0, help="Cycles to start a copy.")] = None,
    offset: Annotated[
        float | None, typer.Option("--offset", min=0, help="Cycles per iteration in addition to those of the copies.")
    ] = None,
    clock: Annotated[
        float | None, typer.Option("--clock", min=1, help="Clock of the device in MHz, for everything but the table.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show how fast packets can be placed into frames, and which GPU is fast enough.

    Example: headrace ingest model --payload 1460 --target 100G
    """
    payload_bytes = headrace.base.parse_bytes(payload)
    if payload_bytes == 0:
        raise UsageError("--payload must be at least 1 byte")
    merges = _numbers(merge, "--merge")
    clocks_mhz = _numbers(clocks, "--clocks")
    if measured and (cycles is not None or offset is not None):
        raise UsageError("--measure determines --cycles and --offset: leave out either it or them")
    found: Fit | None = None
    if measured:
        here = options.find_device(device)
        found = ingest_model.fit_device(here, way, payload_bytes, clock)
        constants, costs = f"measured on {here.name}, way {way}", found.model
    else:
        given = cycles is not None or offset is not None
        constants = "as given" if given else "Ito 2024"
        costs = Model(
            ingest_model.DOCUMENT_CYCLES if cycles is None else cycles,
            ingest_model.DOCUMENT_OFFSET if offset is None else offset,
            clock or clocks_mhz[0],
            payload_bytes,
        )
    content: Json = {
        "constants": constants,
        "model": ingest_model.as_dict(costs),
        "fit": None
        if found is None
        else {
            "packets": found.packets,
            "seconds": found.seconds,
            "model_seconds": [found.model.seconds(packets) for packets in found.packets],
            "error_median": found.error_median,
            "error_worst": found.error_worst,
        },
        "table": ingest_model.throughput_table(costs, clocks_mhz, merges),
        "target_bits_per_second": target,
        "targets": _targets(costs, merges, target),
        "gpus": ingest_model.which_gpus(target, costs.cycles, payload_bytes, merges),
    }
    if as_json:
        typer.echo(json.dumps(_finite(content), indent=2))
    else:
        _print(content, found, costs)


def _finite(value: object) -> object:
    """Replaces infinity, which JSON lacks: None means no limit."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if value == float("inf") else value
