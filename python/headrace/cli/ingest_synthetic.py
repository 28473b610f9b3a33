"""`headrace ingest synthetic`: receives numbered datagrams generated in memory."""

from typing import Annotated

import typer

from headrace import ingest
from headrace.cli import options
from headrace.cli.grouped import grouped
from headrace.cli.ingest_options import Frames, Output, size
from headrace.cli.ingest_run import Run, Source


@grouped
def synthetic(
    payload: Annotated[
        str, typer.Argument(metavar="SIZE", help="Stream bytes per datagram, after an 8-byte sequence number.")
    ] = "8992B",
    packets: Annotated[int, typer.Option("--packets", min=0, help="Stop after this many packets; 0 means never.")] = 0,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            parser=options.rate,
            metavar="RATE",
            help="Packets per second. Default: as fast as the receiver takes them.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bytes.")] = 1,
    payloads_once: Annotated[
        bool, typer.Option("--payloads-once", help="Write payloads only once, to measure the receiver alone.")
    ] = False,
    *,
    frames: Frames,
    output: Output,
) -> None:
    """Generate numbered datagrams in memory, receive them into frames on a device, and show the rate.

    The command stops after --packets, --duration, --frames or --streams, or on Ctrl-C.

    Example: headrace ingest synthetic 8992B --packets 100000 --sha256
    """
    payload_bytes, frame_bytes = size(payload, "SIZE"), frames.frame_bytes()
    frames.check_memory(frame_bytes)
    Run(
        Source(
            "synthetic",
            "Making",
            lambda: ingest.synthetic(
                payload_bytes,
                packets=packets,
                packets_per_second=rate or 0.0,
                seed=seed,
                payloads_once=payloads_once,
                **frames.keywords(frame_bytes),
            ),
            frame_bytes,
            payload_bytes,
            target=f"packets of {payload_bytes:,} bytes",
        ),
        frames,
        output,
    ).receive()
