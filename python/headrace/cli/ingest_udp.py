"""`headrace ingest udp`: receives numbered datagrams from a socket or an interface."""

from typing import Annotated

import typer

from headrace import ingest
from headrace.cli.grouped import grouped
from headrace.cli.ingest_options import Datagrams, Frames, Output
from headrace.cli.ingest_run import Run, Source
from headrace.ingest.receiving import frame_bytes as frame_bytes_of


@grouped
def udp(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS:PORT", help="Address to listen on; :9000 listens on any address.")
    ],
    via: Annotated[
        str, typer.Option("--via", help="Receive through this kernel interface: socket, packet or xdp.")
    ] = "socket",
    interface: Annotated[
        str,
        typer.Option("--interface", help="Network interface, for --via packet, --via xdp or a multicast group."),
    ] = "",
    multicast_group: Annotated[
        str, typer.Option("--multicast-group", metavar="ADDRESS", help="Multicast group to join.")
    ] = "",
    kernel_buffer: Annotated[
        str, typer.Option("--kernel-buffer", metavar="SIZE", help="--via socket: size of the kernel's receive buffer.")
    ] = "8MiB",
    promiscuous: Annotated[
        bool, typer.Option("--promiscuous", help="--via packet: also receive packets for other hosts.")
    ] = False,
    trust_checksums: Annotated[
        bool, typer.Option("--trust-checksums", help="--via xdp: do not verify checksums, as on a veth.")
    ] = False,
    *,
    datagrams: Datagrams,
    frames: Frames,
    output: Output,
) -> None:
    """Receive numbered datagrams into frames on a device, and show the rate.

    The command stops after --duration, --frames or --streams, or on Ctrl-C.

    Example: headrace ingest udp :9000 --number-offset 2 --number-width 2 --header-bytes 12
    """
    how, payload_bytes = datagrams.keywords(), datagrams.payload_bytes()
    frame_bytes = frames.frame_bytes(frame_bytes_of(payload_bytes, how))
    frames.check_memory(frame_bytes)

    def open_receiver() -> ingest.Receiver:
        return ingest.udp(
            address,
            payload_bytes=payload_bytes,
            via=via,
            interface=interface,
            multicast_group=multicast_group,
            kernel_buffer=kernel_buffer,
            promiscuous=promiscuous,
            trust_checksums=trust_checksums,
            **how,
            **frames.keywords(frame_bytes),
        )

    Run(Source("udp", "Listening on", open_receiver, frame_bytes, payload_bytes, via=via), frames, output).receive()
