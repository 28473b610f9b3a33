"""`headrace ingest pcap`: replays the datagrams or TCP connections of a capture."""

from typing import Annotated, Any

import typer

from headrace import UsageError, ingest
from headrace.cli.grouped import grouped
from headrace.cli.ingest_options import Datagrams, Frames, Output, size
from headrace.cli.ingest_run import Run, Source
from headrace.ingest.receiving import frame_bytes as frame_bytes_of


@grouped
def pcap(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Capture file, pcap or pcapng; - reads standard input.")],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Destination port of the packets; 0 means any.")
    ] = 0,
    speed: Annotated[
        float, typer.Option("--speed", min=0, help="Replay speed: 1 as captured, 2 twice as fast, 0 without pauses.")
    ] = 0.0,
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow", metavar="tcp", help="Reassemble TCP connections; each direction is a stream, as in tcpflow."
        ),
    ] = None,
    connections: Annotated[
        int | None,
        typer.Option(
            "--connections", min=1, max=65536, help="--follow: maximum number of concurrent streams. Default: 64."
        ),
    ] = None,
    hold: Annotated[
        str | None,
        typer.Option("--hold", metavar="SIZE", help="--follow: memory for out-of-order segments. Default: 256MiB."),
    ] = None,
    trust_checksums: Annotated[
        bool,
        typer.Option("--trust-checksums", help="Do not verify checksums, for captures made on the sending machine."),
    ] = False,
    *,
    datagrams: Datagrams,
    frames: Frames,
    output: Output,
) -> None:
    """Replay a capture's numbered datagrams into frames on a device, or its TCP connections.

    The command stops at the end of the capture, after --duration, --frames or --streams, or on Ctrl-C.

    Example: headrace ingest pcap traffic.pcapng --follow tcp --sha256 --out streams
    """
    common: dict[str, Any] = {"port": port, "speed": speed, "trust_checksums": trust_checksums}
    if follow is not None:
        if given := datagrams.given():
            raise UsageError(f"{given[0]} is for datagrams, not for --follow {follow}")
        how: ingest.Numbering = {}
        payload_bytes = 0
        frame_bytes = frames.frame_bytes()
        common["follow"] = follow
        if connections is not None:
            common["connections"] = connections
        if hold is not None:
            common["hold"] = size(hold, "--hold")
    else:
        for option, value in (("--connections", connections), ("--hold", hold)):
            if value is not None:
                raise UsageError(f"{option} needs --follow tcp")
        how, payload_bytes = datagrams.keywords(), datagrams.payload_bytes()
        frame_bytes = frames.frame_bytes(frame_bytes_of(payload_bytes, how))
        common["payload_bytes"] = payload_bytes
    frames.check_memory(frame_bytes)
    Run(
        Source(
            "pcap",
            "Replaying",
            lambda: ingest.pcap(file, **common, **how, **frames.keywords(frame_bytes)),
            frame_bytes,
            payload_bytes,
            notes=("following TCP",) if follow else (),
            follow=follow is not None,
        ),
        frames,
        output,
    ).receive()
