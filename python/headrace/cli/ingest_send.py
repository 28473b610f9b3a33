"""`headrace ingest send`: a client over the kernel's sockets, for trying and measuring a receiver."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import headrace
from headrace import UsageError, ingest, tables
from headrace.cli import options, show
from headrace.ingest import SendReport

Json = dict[str, Any]

_GIGABIT = 1e9 / 8


def send(
    tcp: Annotated[str | None, typer.Option("--tcp", metavar="HOST:PORT", help="Send over a TCP connection.")] = None,
    udp: Annotated[str | None, typer.Option("--udp", metavar="HOST:PORT", help="Send numbered datagrams.")] = None,
    size: Annotated[
        str, typer.Option("--bytes", metavar="SIZE", help="Bytes to send; with --chunk, for each chunk size.")
    ] = "1GiB",
    chunk: Annotated[
        str,
        typer.Option("--chunk", metavar="SIZES", help="tcp: bytes to send between two waits; 2MiB,16MiB tries both."),
    ] = "1MiB",
    wait: Annotated[bool, typer.Option(help="tcp: send a chunk when the one before has been acknowledged.")] = True,
    mss: Annotated[int, typer.Option("--mss", min=0, help="tcp: largest segment payload; 0 uses the path's.")] = 0,
    payload: Annotated[
        int, typer.Option("--payload", min=1, help="udp: bytes of a datagram, including its number.")
    ] = 1472,
    rate: Annotated[
        float | None, typer.Option("--rate", parser=options.rate, metavar="RATE", help="udp: datagrams per second.")
    ] = None,
    sequence_offset: Annotated[
        int, typer.Option("--sequence-offset", min=0, help="udp: offset of the number in a datagram.")
    ] = 0,
    sequence_bytes: Annotated[
        int, typer.Option("--sequence-bytes", help="udp: width of the number, 4 or 8 bytes.")
    ] = 8,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bytes.")] = 1,
    sha256: Annotated[bool, typer.Option("--sha256", help="Print the SHA-256 of what was sent.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Send pseudo-random bytes over the kernel's TCP or UDP, and show the rate.

    Over TCP, each chunk waits until the receiver has acknowledged the one before.

    Example: headrace ingest send --tcp 10.0.0.2:9000 --bytes 10GiB --chunk 2MiB,16MiB,128MiB
    """
    if (tcp is None) == (udp is None):
        raise UsageError("give either --tcp or --udp")
    count = headrace.parse_bytes(size)
    content: Json = {"to": tcp or udp, "protocol": "tcp" if tcp else "udp", "seed": seed, "rows": []}
    rows: list[Json] = content["rows"]
    interrupted = False
    try:
        if tcp is not None:
            _send_tcp(
                rows, ingest.TcpSender(*ingest.resolve(tcp), seed=seed, segment_bytes=mss), count, chunk, wait=wait
            )
        elif udp is not None:
            if payload <= sequence_offset + sequence_bytes:
                raise UsageError(f"a payload of {payload} bytes has no room behind its number")
            sender = ingest.UdpSender(
                *ingest.resolve(udp),
                -(-count // (payload - sequence_offset - sequence_bytes)),
                seed=seed,
                payload_bytes=payload,
                packets_per_second=rate or 0.0,
                sequence_offset=sequence_offset,
                sequence_bytes=sequence_bytes,
            )
            _send_udp(rows, sender, count, payload)
    except KeyboardInterrupt:
        interrupted = True
    content["interrupted"] = interrupted
    if sha256 and not interrupted:
        content["sha256"] = ingest.digest(seed, sum(row["bytes"] for row in rows))
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(content)
    if interrupted:
        raise KeyboardInterrupt


def _send_tcp(rows: list[Json], sender: ingest.TcpSender, count: int, chunks: str, *, wait: bool) -> None:
    sizes = [headrace.parse_bytes(word) for word in chunks.split(",")]
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
    with _bar(f"Datagrams of {payload:,} bytes", count) as progress:
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
    """A bar that says beside itself how fast bytes go."""
    with show.progress_bar(what) as bar:

        def move(report: SendReport) -> None:
            bar(min(1.0, report.bytes / count))
            bar.describe(f"{what}: {_gigabits(report):.2f} Gb/s")

        yield move


def _gigabits(report: SendReport) -> float:
    return report.bytes / report.seconds / _GIGABIT if report.seconds > 0 else 0.0


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
