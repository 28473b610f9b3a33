"""`headrace ingest send`: a client over the kernel's sockets, to try and measure a receiver."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

import headrace
from headrace import ingest, tables
from headrace.cli import options, show
from headrace.cli.grouped import grouped
from headrace.ingest import SendReport
from headrace.ingest.receiving import default_payload
from headrace.units import GIGABIT

Json = dict[str, Any]


app = typer.Typer()


@dataclass(frozen=True)
class _Stream:
    """The bytes to send."""

    size: Annotated[str, typer.Option("--bytes", metavar="SIZE", help="Bytes to send; tcp: for each chunk size.")] = (
        "1GiB"
    )
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bytes.")] = 1
    sha256: Annotated[bool, typer.Option("--sha256", help="Print the SHA-256 of what was sent.")] = False
    as_json: options.JsonOption = False


@app.command("tcp")
@grouped
def send_tcp(
    target: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Destination.")],
    chunk: Annotated[
        str, typer.Option("--chunk", metavar="SIZES", help="Bytes per chunk; 2MiB,16MiB tries both.")
    ] = "1MiB",
    wait: Annotated[bool, typer.Option(help="Wait until a chunk is acknowledged before sending the next.")] = True,
    mss: Annotated[int, typer.Option("--mss", min=0, help="Maximum segment payload in bytes; 0 uses the path's.")] = 0,
    *,
    stream: _Stream,
) -> None:
    """Send pseudo-random bytes over a TCP connection of the kernel and show the rate.

    Each chunk waits until the receiver has acknowledged the previous one.

    Example: headrace ingest send tcp 10.0.0.2:9000 --bytes 10GiB --chunk 2MiB,16MiB,128MiB
    """
    count = headrace.base.parse_bytes(stream.size)
    sender = ingest.TcpSender(*ingest.resolve(target), seed=stream.seed, segment_bytes=mss)
    _report("tcp", target, stream, lambda rows: _send_tcp(rows, sender, count, chunk, wait=wait))


@app.command("udp")
@grouped
def send_udp(
    target: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Destination.")],
    payload: Annotated[
        int | None,
        typer.Option(
            "--payload", min=1, help="Bytes of a datagram after its sequence number. Default: 1472 minus the header."
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", parser=options.rate, metavar="RATE", help="Datagrams per second.")
    ] = None,
    number_offset: Annotated[
        int, typer.Option("--number-offset", min=0, help="Offset of the sequence number in a datagram, in bytes.")
    ] = 0,
    number_width: Annotated[
        int, typer.Option("--number-width", min=1, max=8, help="Width of the sequence number, 4 or 8 bytes.")
    ] = 8,
    *,
    stream: _Stream,
) -> None:
    """Send pseudo-random bytes as numbered datagrams through the kernel and show the rate.

    Example: headrace ingest send udp 10.0.0.2:9000 --bytes 1GiB --payload 8964 --rate 100K
    """
    count = headrace.base.parse_bytes(stream.size)
    if payload is None:
        payload = default_payload({"number_offset": number_offset, "number_width": number_width})
    sender = ingest.UdpSender(
        *ingest.resolve(target),
        -(-count // payload),
        seed=stream.seed,
        payload_bytes=payload,
        packets_per_second=rate or 0.0,
        number_offset=number_offset,
        number_width=number_width,
    )
    _report("udp", target, stream, lambda rows: _send_udp(rows, sender, count, payload))


def _report(protocol: str, target: str, stream: _Stream, send: Callable[[list[Json]], None]) -> None:
    """Sends, and prints what was sent however it ends."""
    rows: list[Json] = []
    content: Json = {"to": target, "protocol": protocol, "seed": stream.seed, "rows": rows}
    interrupted = False
    try:
        send(rows)
    except KeyboardInterrupt:
        interrupted = True
    content["interrupted"] = interrupted
    if stream.sha256 and not interrupted:
        content["sha256"] = ingest.digest(stream.seed, sum(row["bytes"] for row in rows))
    if stream.as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(content)
    if interrupted:
        raise KeyboardInterrupt


def _send_tcp(rows: list[Json], sender: ingest.TcpSender, count: int, chunks: str, *, wait: bool) -> None:
    sizes = [headrace.base.parse_bytes(word) for word in chunks.split(",")]
    for chunk in sizes:
        with _bar(f"Chunks of {chunk:,} bytes", count) as progress:
            try:
                ingest.send(sender, count, chunk_bytes=chunk, wait=wait, progress=progress)
            finally:
                report = sender.report()
                trips = report.round_trips
                rows.append(
                    _row(report)
                    | {
                        "chunk_bytes": chunk,
                        "wait": wait,
                        "round_trip": {name: getattr(trips, name) for name in ("mean", "p50", "p99", "max")},
                        "kernel_round_trip": report.kernel_round_trip,
                        "retransmitted": report.retransmitted,
                    }
                )
    sender.finish()


def _send_udp(rows: list[Json], sender: ingest.UdpSender, count: int, payload: int) -> None:
    with _bar(f"Datagrams with {payload:,} bytes of payload", count) as progress:
        try:
            ingest.send_datagrams(sender, progress=progress)
        finally:
            report = sender.report()
            rate = report.units / report.seconds if report.seconds > 0 else 0.0
            rows.append(
                _row(report) | {"payload_bytes": payload, "packets_per_second": rate, "refused": report.refused}
            )


@contextmanager
def _bar(what: str, count: int) -> Iterator[ingest.Progress]:
    """A progress bar that also shows the rate."""
    with show.progress_bar(what) as bar:

        def move(report: SendReport) -> None:
            bar(min(1.0, report.bytes / count))
            bar.describe(f"{what}: {_gigabits(report):.2f} Gb/s")

        yield move


def _gigabits(report: SendReport) -> float:
    return report.bytes / report.seconds / GIGABIT if report.seconds > 0 else 0.0


def _row(report: SendReport) -> Json:
    return {
        "bytes": report.bytes,
        "units": report.units,
        "seconds": report.seconds,
        "gigabits_per_second": _gigabits(report),
    }


def _print(content: Json) -> None:
    console = show.stdout()
    console.print(f"Sent to {content['to']} over {content['protocol'].upper()}:", markup=False, soft_wrap=True)
    table = show.plain_table()
    rows = content["rows"]
    if content["protocol"] == "tcp":
        headings = ["chunk", "bytes", "seconds", "Gb/s", "round trip, mean", "p99", "retransmitted"]
        cells = [_tcp_cells(row) for row in rows]
    else:
        headings = ["payload", "bytes", "seconds", "Gb/s", "datagrams/s", "refused"]
        cells = [_udp_cells(row) for row in rows]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    console.print(table)
    if "sha256" in content:
        console.print(f"SHA-256 {content['sha256']}", markup=False)


def _common_cells(row: Json) -> list[str]:
    return [f"{row['bytes']:,}", f"{row['seconds']:.3f}", f"{row['gigabits_per_second']:.2f}"]


def _tcp_cells(row: Json) -> list[str]:
    trips = [tables.latency(row["round_trip"][name]) if row["wait"] else "-" for name in ("mean", "p99")]
    return [f"{row['chunk_bytes']:,}", *_common_cells(row), *trips, f"{row['retransmitted']:,}"]


def _udp_cells(row: Json) -> list[str]:
    return [
        f"{row['payload_bytes']:,}",
        *_common_cells(row),
        tables.rate(row["packets_per_second"]),
        f"{row['refused']:,}",
    ]
