"""`headrace ingest`: what it is told."""

from pathlib import Path
from typing import Annotated

import typer

import headrace
from headrace import UsageError, ingest
from headrace.cli import ingest_kinds, options
from headrace.cli.ingest_run import Run
from headrace.ingest.taking import KEPT_STREAMS, OUT_FILES_MAX


def _faults(text: str) -> ingest.Faults:
    """What "loss=0.01,reordering=0.05" stands for."""
    known = ("loss", "duplication", "corruption", "reordering", "loss_sent", "seed", "reorder_distance")
    values: dict[str, float] = {}
    for word in text.split(","):
        name, _, value = word.strip().replace("-", "_").partition("=")
        try:
            values[name] = int(value) if name in known[-2:] else float(value)
        except ValueError:
            raise typer.BadParameter(f"'{word}' is not a fault with its probability, such as loss=0.01") from None
        if name not in known:
            raise typer.BadParameter(f"'{name}' is not a fault; there are {', '.join(known[:-2])}")
    return ingest.Faults(**values)  # type: ignore[arg-type]


def _limit(text: str) -> float:
    """Seconds; 0 for "never"."""
    return 0.0 if text.strip() == "never" else options.duration(text)


def _bytes_option(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    count = headrace.parse_bytes(text)
    if count == 0:
        raise UsageError(f"{option} must be 1 byte at least")
    return count


def receive(
    ctx: typer.Context,
    tcp: Annotated[
        str | None,
        typer.Option(
            "--tcp", metavar="ADDRESS:PORT", help="Receive TCP connections to this address; :9000 chooses the address."
        ),
    ] = None,
    udp: Annotated[
        str | None,
        typer.Option("--udp", metavar="ADDRESS:PORT", help="Receive numbered datagrams; :9000 listens on any address."),
    ] = None,
    pcap: Annotated[
        str | None,
        typer.Option(
            "--pcap",
            metavar="FILE",
            help="Replay the numbered datagrams of a capture, or its TCP connections with --follow.",
        ),
    ] = None,
    synthetic: Annotated[
        str | None, typer.Option("--synthetic", metavar="SIZE", help="Generate datagrams with this payload in memory.")
    ] = None,
    frame: Annotated[
        str | None, typer.Option("--frame", metavar="SIZE", help="Bytes of the stream per frame. Default: 64MiB.")
    ] = None,
    buffers: Annotated[
        int, typer.Option("--buffers", min=2, max=65536, help="Number of frames in memory for each stream.")
    ] = 4,
    to: Annotated[
        str, typer.Option("--to", metavar="DEVICE", help="Device for the frames: cpu, cuda:0 or best.")
    ] = "best",
    sha256: Annotated[bool, typer.Option("--sha256", help="Print the SHA-256 of each stream.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            readable=False,
            help="Write the first stream here, and the others to FILE.1, FILE.2, ...",
        ),
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", parser=options.duration, metavar="TIME", help="End after this time.")
    ] = None,
    frames: Annotated[int | None, typer.Option("--frames", min=1, help="End after this many frames.")] = None,
    streams: Annotated[
        int | None, typer.Option("--streams", min=1, help="End when this many streams have ended.")
    ] = None,
    out_files: Annotated[
        int, typer.Option("--out-files", min=1, help="--out: most files to write; further streams are reset.")
    ] = OUT_FILES_MAX,
    out_bytes: Annotated[
        str | None,
        typer.Option(
            "--out-bytes",
            metavar="SIZE",
            help="--out: most bytes to write in all files; streams beyond that are reset.",
        ),
    ] = None,
    keep_streams: Annotated[
        int, typer.Option("--keep-streams", min=1, help="How many of the ended streams to list, the latest ones.")
    ] = KEPT_STREAMS,
    interval: Annotated[
        float | None,
        typer.Option("--interval", parser=options.duration, metavar="TIME", help="Print a line at this interval."),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            "--prometheus",
            metavar="PORT|FILE",
            help="Export metrics: a port such as 9100, 0.0.0.0:9100, or a file x.prom.",
        ),
    ] = None,
    conversion: Annotated[
        str, typer.Option("--conversion", help="Convert samples while copying, such as int16-to-float.")
    ] = "none",
    way: Annotated[str, typer.Option("--way", help="How to copy payloads; one of headrace.copy_ways().")] = "automatic",
    ring: Annotated[str, typer.Option("--ring", metavar="SIZE", help="Memory for packets.")] = "64MiB",
    connections: Annotated[
        int | None,
        typer.Option("--connections", min=1, max=65536, help="tcp, --follow: most streams at a time. Default: 64."),
    ] = None,
    backlog: Annotated[
        int | None,
        typer.Option(
            "--backlog", min=1, max=1048576, help="tcp: most connections that have no stream yet. Default: 4096."
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="tcp: limit for the frames of all streams. Default: the device's memory."
        ),
    ] = None,
    mtu: Annotated[
        int | None, typer.Option("--mtu", min=576, max=65535, help="tcp: MTU of the device. Default: 1500.")
    ] = None,
    offloads: Annotated[
        bool | None,
        typer.Option("--offloads/--no-offloads", help="tcp: accept segments that the kernel has merged. Default: on."),
    ] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="SIZE", help="tcp: largest receive window. Default: 16MiB.")
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            "--idle",
            parser=_limit,
            metavar="TIME",
            help=(
                "tcp: reset streams that are silent for this long (5min), or never. udp, pcap: a sender "
                "silent for this long gives way to another (10s)."
            ),
        ),
    ] = None,
    first_byte: Annotated[
        float | None,
        typer.Option(
            "--first-byte",
            parser=_limit,
            metavar="TIME",
            help="tcp: time until the first byte, or never. Default: 30s.",
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            "--control", help="tcp: where the control runs: host, or resident, a kernel on the device. Default: host."
        ),
    ] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", help="tcp: answer senders whose protocol expects it: iperf3, http.")
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option("--interface", help="Interface. tcp: receive by AF_XDP instead of TUN. udp: see --via."),
    ] = None,
    via: Annotated[str | None, typer.Option("--via", help="udp: receive through socket, packet or xdp.")] = None,
    promiscuous: Annotated[
        bool | None, typer.Option("--promiscuous", help="udp, --via packet: receive packets for other hosts as well.")
    ] = None,
    trust_checksums: Annotated[
        bool | None,
        typer.Option(
            "--trust-checksums",
            help=("Do not verify checksums: for AF_XDP on a veth, and for captures made on the sending machine."),
        ),
    ] = None,
    raw_offset: Annotated[
        int | None,
        typer.Option(
            "--raw-offset", min=0, help="udp, pcap: packets are not UDP; their datagrams begin at this offset."
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="ADDRESS", help="udp: multicast group to join.")
    ] = None,
    payload: Annotated[
        int | None,
        typer.Option("--payload", min=1, help="udp, pcap: bytes of a datagram, including its number. Default: 1472."),
    ] = None,
    sequence_offset: Annotated[
        int | None,
        typer.Option("--sequence-offset", min=0, help="udp, pcap: offset of the number in a datagram. Default: 0."),
    ] = None,
    sequence_bytes: Annotated[
        int | None,
        typer.Option(
            "--sequence-bytes", min=1, max=8, help="udp, pcap: width of the number, 1 to 8 bytes. Default: 8."
        ),
    ] = None,
    little_endian: Annotated[
        bool | None, typer.Option("--little-endian", help="udp, pcap: the number is little-endian.")
    ] = None,
    header_bytes: Annotated[
        int | None,
        typer.Option(
            "--header-bytes",
            min=1,
            help=("udp, pcap: bytes at the start of a datagram to leave out. Default: up to the end of the number."),
        ),
    ] = None,
    window_frames: Annotated[
        int | None,
        typer.Option("--window-frames", min=1, help="udp, pcap: frames kept open for late datagrams. Default: 2."),
    ] = None,
    forward_packets: Annotated[
        int | None,
        typer.Option(
            "--forward-packets", min=1, help="udp, pcap: a jump of the number by more than this begins a new stream."
        ),
    ] = None,
    backward_packets: Annotated[
        int | None,
        typer.Option(
            "--backward-packets",
            min=1,
            help="udp, pcap: a step back by more than this begins a new stream. Default: 100.",
        ),
    ] = None,
    part_offset: Annotated[
        int | None,
        typer.Option(
            "--part-offset",
            min=0,
            help="udp, pcap: offset of the field that gives a datagram's place in its group. Default: 0.",
        ),
    ] = None,
    part_bytes: Annotated[
        int | None,
        typer.Option("--part-bytes", min=1, max=8, help="udp, pcap: width of that field in bytes."),
    ] = None,
    group_bytes: Annotated[
        str | None,
        typer.Option(
            "--group-bytes",
            metavar="SIZE",
            help="udp, pcap: size of the group that a number counts: a video frame, a SPEAD heap.",
        ),
    ] = None,
    from_senders: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="ADDRESS[:PORT]", help="udp, pcap: accept only this sender. May be repeated."),
    ] = None,
    senders: Annotated[
        int | None,
        typer.Option(
            "--senders", min=1, max=65534, help="udp, pcap: most senders at a time, each with a stream. Default: 64."
        ),
    ] = None,
    frame_timeout: Annotated[
        float | None,
        typer.Option(
            "--frame-timeout",
            parser=options.duration,
            metavar="TIME",
            help="udp, pcap: deliver a frame when it is this old. Default: 1s.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="pcap: destination port of the datagrams. Default: any."),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option("--speed", min=0, help="pcap: 1 replays at the captured speed, 2 twice as fast, 0 without gaps."),
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow",
            metavar="tcp",
            help="pcap: reassemble TCP connections; each direction is a stream, as in tcpflow.",
        ),
    ] = None,
    hold: Annotated[
        str | None,
        typer.Option(
            "--hold", metavar="SIZE", help="--follow: memory for segments that wait for earlier ones. Default: 256MiB."
        ),
    ] = None,
    packets: Annotated[
        int | None, typer.Option("--packets", min=1, help="synthetic: end after this many packets.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", parser=options.rate, metavar="RATE", help="synthetic: packets per second.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="synthetic: seed of the bytes. Default: 1.")] = None,
    payloads_once: Annotated[
        bool | None,
        typer.Option("--payloads-once", help="synthetic: write payloads only once, to measure the receiver alone."),
    ] = None,
    faults: Annotated[
        ingest.Faults | None,
        typer.Option(
            "--faults", parser=_faults, metavar="LIST", help="Simulate a bad network: loss=0.01,reordering=0.05."
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Receive packets into frames on a device, and show the rate.

    It ends after --duration, --frames or --streams, with the source, or on Ctrl-C.

    --tcp creates a network device for as long as it runs, which needs CAP_NET_ADMIN.

    Example: headrace ingest --tcp 10.0.0.2:9000 --frame 64MiB --to cuda:0
    """
    sources = {"tcp": tcp, "udp": udp, "pcap": pcap, "synthetic": synthetic}
    if ctx.invoked_subcommand is not None:
        if any(sources.values()):
            raise UsageError(f"headrace ingest {ctx.invoked_subcommand} takes its options behind its name")
        return
    given = {
        "connections": connections,
        "backlog": backlog,
        "memory": _bytes_option(memory, "--memory"),
        "mtu": mtu,
        "offloads": offloads,
        "window": _bytes_option(window, "--window"),
        "idle": idle,
        "first-byte": first_byte,
        "control": control,
        "answer": answer,
        "interface": interface,
        "via": via,
        "promiscuous": promiscuous,
        "trust-checksums": trust_checksums,
        "raw-offset": raw_offset,
        "group": group,
        "payload": payload,
        "sequence-offset": sequence_offset,
        "sequence-bytes": sequence_bytes,
        "frame-timeout": frame_timeout,
        "little-endian": little_endian or None,
        "header-bytes": header_bytes,
        "window-frames": window_frames,
        "forward-packets": forward_packets,
        "backward-packets": backward_packets,
        "part-offset": part_offset,
        "part-bytes": part_bytes,
        "group-bytes": _bytes_option(group_bytes, "--group-bytes"),
        "from": from_senders or None,
        "senders": senders,
        "port": port,
        "speed": speed,
        "follow": follow,
        "hold": _bytes_option(hold, "--hold"),
        "packets": packets,
        "rate": rate,
        "seed": seed,
        "payloads-once": payloads_once,
    }
    kind, target = ingest_kinds.choose(sources, given)
    device = options.find_device(to)
    frame_bytes = _bytes_option(frame, "--frame") or ingest_kinds.default_frame(kind.option, given)
    common = ingest_kinds.Common(
        frame_bytes,
        buffers,
        device,
        {"conversion": conversion, "way": way, "ring": _bytes_option(ring, "--ring") or 0, "faults": faults},
    )
    ingest_kinds.check_memory(common, kind.option, given)
    ingest_kinds.check_answer(given, conversion)
    Run(
        kind,
        target,
        common,
        ends={"duration": duration, "frames": frames, "streams": streams},
        sha256=sha256,
        out=out,
        keep_streams=keep_streams,
        out_files=out_files,
        out_bytes=_bytes_option(out_bytes, "--out-bytes"),
        packet_bytes=ingest_kinds.packet_bytes(kind.option, target, given) * ingest_kinds.growth(conversion),
        growth=ingest_kinds.growth(conversion),
        item=ingest_kinds.item_bytes(conversion),
        control=control or "host",
        answer=answer,
        via=via,
        follow=follow,
        interval=interval,
        prometheus=prometheus,
        as_json=as_json,
    ).receive(given)
