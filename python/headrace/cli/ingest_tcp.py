"""`headrace ingest tcp`: receives connections to an address of the receiver's own."""

from typing import Annotated

import typer

from headrace import UsageError, ingest
from headrace.cli.grouped import grouped
from headrace.cli.ingest_options import Frames, Output, never_or_duration, size
from headrace.cli.ingest_run import Run, Source

_ANSWERS: dict[str, type[ingest.Answering]] = {"iperf3": ingest.Iperf3Server, "http": ingest.HttpUploads}


def _answering(answer: str | None, control: str, conversion: str) -> type[ingest.Answering] | None:
    """Parses the protocol of --answer."""
    if answer is None:
        return None
    if answer not in _ANSWERS:
        raise UsageError(f"'{answer}' is not a protocol to answer; there are {', '.join(_ANSWERS)}")
    if control == "resident":
        raise UsageError("--answer needs --control host: resident control cannot answer")
    if conversion != "none":
        raise UsageError("--answer reads the received bytes: it needs --conversion none")
    return _ANSWERS[answer]


@grouped
def tcp(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS:PORT",
            help="Address to listen on; :9000 chooses an IPv4 address, [::]:9000 an IPv6 address.",
        ),
    ],
    connections: Annotated[
        int, typer.Option("--connections", min=1, max=65536, help="Maximum number of concurrent streams.")
    ] = 64,
    backlog: Annotated[
        int, typer.Option("--backlog", min=1, max=1048576, help="Maximum number of connections that wait for a stream.")
    ] = 4096,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Limit for the frames of all streams. Default: the device's memory."
        ),
    ] = None,
    mtu: Annotated[int, typer.Option("--mtu", min=576, max=65535, help="MTU of the TUN device.")] = 1500,
    offloads: Annotated[
        bool, typer.Option("--offloads/--no-offloads", help="Accept segments merged by the kernel.")
    ] = True,
    window: Annotated[str, typer.Option("--window", metavar="SIZE", help="Maximum receive window.")] = "16MiB",
    idle: Annotated[
        float,
        typer.Option(
            "--idle",
            parser=never_or_duration,
            metavar="TIME",
            help="Reset streams that are silent for this long, or never.",
        ),
    ] = "5min",  # type: ignore[assignment]
    first_byte: Annotated[
        float | None,
        typer.Option(
            "--first-byte",
            parser=never_or_duration,
            metavar="TIME",
            help="Reset connections that send no byte for this long, or never. Default: 30s, or --idle if shorter.",
        ),
    ] = None,
    control: Annotated[
        str, typer.Option("--control", help="Where TCP control runs: host, or resident (a kernel on the device).")
    ] = "host",
    answer: Annotated[
        str | None,
        typer.Option("--answer", help="Answer senders that expect replies, by this protocol: iperf3 or http."),
    ] = None,
    interface: Annotated[
        str, typer.Option("--interface", help="Receive through AF_XDP on this interface instead of a TUN device.")
    ] = "",
    trust_checksums: Annotated[
        bool, typer.Option("--trust-checksums", help="Do not verify checksums, for AF_XDP on a veth.")
    ] = False,
    *,
    frames: Frames,
    output: Output,
) -> None:
    """Receive TCP connections into frames on a device, and show the rate.

    The command stops after --duration, --frames or --streams, or on Ctrl-C.

    It needs CAP_NET_ADMIN for the network device that it creates while it runs.

    Example: headrace ingest tcp 10.0.0.2:9000 --frame 64MiB --to cuda:0
    """
    frame_bytes = frames.frame_bytes()
    frames.check_memory(frame_bytes, connections, at_once=control == "resident")
    answering = _answering(answer, control, frames.conversion)
    notes = (["control resident there"] if control == "resident" else []) + ([f"answering {answer}"] if answer else [])

    def open_receiver() -> ingest.Receiver:
        return ingest.tcp(
            address,
            connections=connections,
            backlog=backlog,
            memory=0 if memory is None else size(memory, "--memory"),
            mtu=mtu,
            offloads=offloads,
            window=size(window, "--window"),
            idle_seconds=idle,
            first_byte_seconds=first_byte,
            control=control,
            interface=interface,
            trust_checksums=trust_checksums,
            **frames.keywords(frame_bytes),
        )

    source = Source(
        "tcp", "Listening on", open_receiver, frame_bytes, notes=tuple(notes), control=control, answering=answering
    )
    Run(source, frames, output).receive()
