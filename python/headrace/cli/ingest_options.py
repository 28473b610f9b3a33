"""Options that the commands of `headrace ingest` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import headrace
from headrace import Device, UsageError, ingest
from headrace.cli import options
from headrace.ingest.receiving import default_payload
from headrace.ingest.taking import KEPT_STREAMS, OUT_FILES_MAX


def never_or_duration(text: str) -> float:
    """Parses a duration in seconds; 0 for "never"."""
    return 0.0 if text.strip() == "never" else options.duration(text)


def size(text: str, option: str) -> int:
    """Parses the bytes of an option such as --frame; at least 1."""
    count = headrace.base.parse_bytes(text)
    if count == 0:
        raise UsageError(f"{option} must be at least 1 byte")
    return count


def _faults(text: str) -> ingest.Faults:
    """Parses a list of faults such as "loss=0.01,reordering=0.05"."""
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


@dataclass(frozen=True)
class Frames:
    """Frames."""

    frame: Annotated[
        str | None, typer.Option("--frame", metavar="SIZE", help="Stream bytes per frame. Default: 64MiB.")
    ] = None
    buffers: Annotated[
        int, typer.Option("--buffers", min=2, max=65536, help="Number of frames in memory per stream.")
    ] = 4
    to: Annotated[str, typer.Option("--to", metavar="DEVICE", help="Device for the frames: cpu, cuda:0 or best.")] = (
        "best"
    )
    conversion: Annotated[
        str, typer.Option("--conversion", help="Convert samples while copying, such as int16-to-float.")
    ] = "none"
    way: Annotated[str, typer.Option("--way", help="How to copy payloads; one of headrace.ingest.copy_ways().")] = (
        "automatic"
    )
    ring: Annotated[str, typer.Option("--ring", metavar="SIZE", help="Memory for the ring of packets.")] = "64MiB"
    faults: Annotated[
        ingest.Faults | None,
        typer.Option(
            "--faults",
            parser=_faults,
            metavar="LIST",
            help="Simulate network faults, such as loss=0.01,reordering=0.05.",
        ),
    ] = None

    def frame_bytes(self, default: int = 64 << 20) -> int:
        """Bytes of the stream per frame."""
        return default if self.frame is None else size(self.frame, "--frame")

    def device(self) -> Device:
        """The device of --to."""
        return options.find_device(self.to)

    @property
    def growth(self) -> int:
        """Ratio of a frame's size in memory to the stream bytes in it."""
        return {"int8-to-float": 4}.get(self.conversion, 2 if self.conversion.endswith("to-float") else 1)

    @property
    def item_bytes(self) -> int:
        """Stream bytes per converted float."""
        return 2 if self.conversion.startswith("int16") else 1

    def keywords(self, frame_bytes: int) -> dict[str, Any]:
        """Arguments of headrace.ingest.tcp() and its siblings."""
        return {
            "frame": frame_bytes,
            "buffers": self.buffers,
            "to": self.device(),
            "conversion": self.conversion,
            "way": self.way,
            "ring": size(self.ring, "--ring"),
            "faults": self.faults,
        }

    def check_memory(self, frame_bytes: int, connections: int | None = None, *, at_once: bool = False) -> None:
        """Raises UsageError for frames that exceed the device's memory, before any client connects.

        Args:
            frame_bytes: stream bytes per frame.
            connections: maximum number of open connections, for TCP.
            at_once: whether the frames of all connections are allocated at the start.
        """
        device = self.device()
        memory = device.memory()
        each = "" if connections is None else " of each connection"
        smaller = "a smaller --frame"
        count = 1
        if connections is not None and at_once:
            count = connections
            each = f" of each of {count:,} connections"
            smaller = "a smaller --frame or fewer --connections"
        need = frame_bytes * self.buffers * self.growth * count
        if need > memory.total_bytes:
            raise UsageError(
                f"{self.buffers} frames of {frame_bytes:,} bytes{each} need {need:,} bytes, but {device.name} has "
                f"{memory.total_bytes:,}: use {smaller}"
            )


@dataclass(frozen=True)
class Output:
    """Output and end."""

    sha256: Annotated[bool, typer.Option("--sha256", help="Print the SHA-256 of each stream.")] = False
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            readable=False,
            help="Write the first stream here, and the others to FILE.1, FILE.2, ...",
        ),
    ] = None
    out_files: Annotated[
        int, typer.Option("--out-files", min=1, help="--out: maximum number of files; further streams are reset.")
    ] = OUT_FILES_MAX
    out_bytes: Annotated[
        str | None,
        typer.Option(
            "--out-bytes",
            metavar="SIZE",
            help="--out: maximum size of all files together; streams beyond it are reset.",
        ),
    ] = None
    keep_streams: Annotated[
        int, typer.Option("--keep-streams", min=1, help="Number of ended streams to list; the latest are kept.")
    ] = KEPT_STREAMS
    duration: Annotated[
        float | None, typer.Option("--duration", parser=options.duration, metavar="TIME", help="Stop after this time.")
    ] = None
    frames: Annotated[int | None, typer.Option("--frames", min=1, help="Stop after this many frames.")] = None
    streams: Annotated[int | None, typer.Option("--streams", min=1, help="Stop when this many streams have ended.")] = (
        None
    )
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval", parser=options.duration, metavar="TIME", help="Print a status line at this interval."
        ),
    ] = None
    prometheus: options.PrometheusOption = None
    as_json: options.JsonOption = False


@dataclass(frozen=True)
class Datagrams:
    """Datagrams."""

    payload: Annotated[
        int | None,
        typer.Option(
            "--payload", min=1, help="Maximum payload of a datagram in bytes. Default: 1472 minus the header."
        ),
    ] = None
    number_offset: Annotated[
        int | None,
        typer.Option(
            "--number-offset", min=0, help="Offset of the sequence number in a datagram, in bytes. Default: 0."
        ),
    ] = None
    number_width: Annotated[
        int | None,
        typer.Option("--number-width", min=1, max=8, help="Width of the sequence number, 1 to 8 bytes. Default: 8."),
    ] = None
    little_endian: Annotated[bool, typer.Option("--little-endian", help="The sequence number is little-endian.")] = (
        False
    )
    header_bytes: Annotated[
        int | None,
        typer.Option(
            "--header-bytes",
            min=1,
            help="Header bytes at the start of a datagram to skip. Default: through the end of the sequence number.",
        ),
    ] = None
    raw_offset: Annotated[
        int | None,
        typer.Option("--raw-offset", min=0, help="Packets are not UDP: datagrams start at this byte of a packet."),
    ] = None
    part_offset: Annotated[
        int | None,
        typer.Option(
            "--part-offset",
            min=0,
            help="Offset of the field with a datagram's position in its group, in bytes. Default: 0.",
        ),
    ] = None
    part_width: Annotated[
        int | None,
        typer.Option("--part-width", min=1, max=8, help="Width of the field at --part-offset, 1 to 8 bytes."),
    ] = None
    group_bytes: Annotated[
        str | None,
        typer.Option(
            "--group-bytes",
            metavar="SIZE",
            help="Size of the group that shares a sequence number, such as a video frame or a SPEAD heap.",
        ),
    ] = None
    window_frames: Annotated[
        int | None,
        typer.Option("--window-frames", min=1, help="Number of frames kept open for late datagrams. Default: 2."),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            parser=options.duration,
            metavar="TIME",
            help="Deliver a frame at this age even if datagrams are missing. Default: 1s.",
        ),
    ] = None
    forward_packets: Annotated[
        int | None,
        typer.Option(
            "--forward-packets",
            min=1,
            help="Start a new stream if the sequence number jumps forward by more than this.",
        ),
    ] = None
    backward_packets: Annotated[
        int | None,
        typer.Option(
            "--backward-packets",
            min=1,
            help="Start a new stream if the sequence number steps back by more than this. Default: 100.",
        ),
    ] = None
    from_senders: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="ADDRESS[:PORT]", help="Accept only this sender. May be repeated."),
    ] = None
    senders: Annotated[
        int | None,
        typer.Option(
            "--senders", min=1, max=65534, help="Maximum number of concurrent senders, one stream each. Default: 64."
        ),
    ] = None
    idle: Annotated[
        float | None,
        typer.Option(
            "--idle",
            parser=never_or_duration,
            metavar="TIME",
            help="Silence after which another sender may replace a sender, or never. Default: 10s.",
        ),
    ] = None

    def given(self) -> list[str]:
        """The options that differ from their defaults, in their command-line form."""
        names = {"from_senders": "--from"}
        return [
            names.get(name, "--" + name.replace("_", "-"))
            for name, value in vars(self).items()
            if value not in (None, False)
        ]

    def keywords(self) -> ingest.Numbering:
        """Arguments of headrace.ingest.udp() and pcap()."""
        if (self.part_width is None) != (self.group_bytes is None):
            raise UsageError("--part-width and --group-bytes go together: give both")
        if self.part_offset is not None and self.part_width is None:
            raise UsageError("--part-offset needs --part-width and --group-bytes")
        found: dict[str, Any] = {
            name: getattr(self, name)
            for name in ingest.Numbering.__annotations__
            if getattr(self, name, None) is not None
        }
        if self.group_bytes is not None:
            found["group_bytes"] = size(self.group_bytes, "--group-bytes")
        if self.idle is not None:
            found["idle_seconds"] = self.idle
        if self.little_endian:
            found["big_endian"] = False
        return found  # type: ignore[return-value]

    def payload_bytes(self) -> int:
        """Maximum stream bytes per datagram."""
        return default_payload(self.keywords()) if self.payload is None else self.payload
