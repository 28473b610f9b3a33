"""Where `headrace ingest` takes packets from, and which of its options are for what."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import headrace
from headrace import Device, UsageError, ingest
from headrace.ingest.receiving import frame_bytes

_NUMBER_BYTES = 8
_UDP_PAYLOAD = 1472
_CONNECTIONS = 64
_FRAME_BYTES = 64 << 20

_NUMBER = {
    "number_offset": "sequence-offset",
    "number_width": "sequence-bytes",
    "timeout": "frame-timeout",
    "raw_offset": "raw-offset",
    "header_bytes": "header-bytes",
    "window_frames": "window-frames",
    "forward_packets": "forward-packets",
    "backward_packets": "backward-packets",
    "part_offset": "part-offset",
    "part_width": "part-bytes",
    "group_bytes": "group-bytes",
    "from_senders": "from",
    "senders": "senders",
    "idle_seconds": "idle",
    "trust_checksums": "trust-checksums",
}

Given = Mapping[str, Any]
"""Options by their name without dashes in front; None where not given."""


@dataclass(frozen=True)
class Common:
    """What every source is told."""

    frame: int
    frames: int
    to: Device
    how: dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One of --tcp, --udp, --pcap and --synthetic."""

    option: str
    takes: tuple[str, ...]
    """Options that are for it, besides those that are for all."""
    open: Callable[[Any, Given, Common], ingest.Receiver]


def check_memory(common: Common, kind: str, given: Given) -> None:
    """Raises UsageError for frames that the device has no memory for: known before anyone connects."""
    memory = common.to.memory()
    each = " of each connection" if kind == "tcp" else ""
    smaller = "a smaller --frame"
    count = 1
    if given["control"] == "resident":  # which takes all of them at once
        count = given["connections"] or _CONNECTIONS
        each = f" of each of {count:,} connections"
        smaller = "a smaller --frame or fewer --connections"
    need = common.frame * common.frames * growth(common.how["conversion"]) * count
    if need > memory.total_bytes:
        raise UsageError(
            f"{common.frames} frames of {common.frame:,} bytes{each} are {need:,} bytes, and {common.to.name} has "
            f"{memory.total_bytes:,}: take {smaller}"
        )


ANSWERS: dict[str, type[ingest.Answering]] = {"iperf3": ingest.Iperf3Server, "http": ingest.HttpUploads}


def check_answer(given: Given, conversion: str) -> None:
    """Raises UsageError for a protocol that is not known, or cannot be spoken."""
    answer = given["answer"]
    if answer is None:
        return
    if answer not in ANSWERS:
        raise UsageError(f"'{answer}' is not a protocol to answer; there are {', '.join(ANSWERS)}")
    if given["control"] == "resident":
        raise UsageError("--answer needs --control host: resident control answers nothing")
    if conversion != "none":
        raise UsageError("--answer reads what comes: it goes with --conversion none")


def _known(given: Given, **names: str) -> dict[str, Any]:
    """Keyword arguments for those options that were given: keyword=option."""
    return {keyword: given[option] for keyword, option in names.items() if given[option] is not None}


def item_bytes(conversion: str) -> int:
    """Bytes of the stream that become one float."""
    return 2 if conversion.startswith("int16") else 1


def growth(conversion: str) -> int:
    """How many times as large as the stream its frames are."""
    return {"int8-to-float": 4}.get(conversion, 2 if conversion.endswith("to-float") else 1)


def packet_bytes(kind: str, target: str, given: Given) -> int:
    """Bytes of the stream in a datagram; 0 for TCP."""
    if kind == "tcp" or given["follow"] is not None:
        return 0
    return _synthetic_bytes(target) if kind == "synthetic" else _payload_bytes(given)


def _synthetic_bytes(size: str) -> int:
    payload = headrace.parse_bytes(size)
    if payload <= _NUMBER_BYTES:
        raise UsageError(f"a synthetic packet has more payload than its number of {_NUMBER_BYTES} bytes, not {payload}")
    return payload - _NUMBER_BYTES


def _payload_bytes(given: Given) -> int:
    payload = given["payload"] if given["payload"] is not None else _UDP_PAYLOAD
    end = (given["sequence-offset"] or 0) + (given["sequence-bytes"] or _NUMBER_BYTES)
    if given["part-bytes"] is not None:
        end = max(end, (given["part-offset"] or 0) + given["part-bytes"])
    header = end if given["header-bytes"] is None else given["header-bytes"]
    if payload <= end:
        raise UsageError(f"a payload of {payload} bytes has no room behind its number, which ends at byte {end}")
    if payload <= header:
        raise UsageError(f"--payload {payload} has no room behind --header-bytes {header}")
    return int(payload - header)


def default_frame(kind: str, given: Given) -> int:
    """Bytes of a frame where --frame is not given."""
    if kind not in ("udp", "pcap") or given["follow"] is not None:
        return _FRAME_BYTES
    how: ingest.Numbering = {}
    if given["sequence-bytes"] is not None:
        how["number_width"] = given["sequence-bytes"]
    if given["window-frames"] is not None:
        how["window_frames"] = given["window-frames"]
    if given["part-bytes"] is not None:
        how["part_width"] = given["part-bytes"]
        how["group_bytes"] = given["group-bytes"] or 0
    return frame_bytes(_payload_bytes(given), how)


def _numbering(given: Given) -> dict[str, Any]:
    """What is told of datagrams, for --udp and --pcap alike."""
    if (given["part-bytes"] is None) != (given["group-bytes"] is None):
        raise UsageError("--part-bytes and --group-bytes are given together: where a part lies, and of what")
    if given["part-offset"] is not None and given["part-bytes"] is None:
        raise UsageError("--part-offset needs --part-bytes and --group-bytes")
    how = _known(given, **_NUMBER)
    if given["little-endian"]:
        how["big_endian"] = False
    return how


def _tcp(address: str, given: Given, common: Common) -> ingest.Receiver:
    more = _known(
        given,
        connections="connections",
        mtu="mtu",
        offloads="offloads",
        window="window",
        interface="interface",
        idle_seconds="idle",
        first_byte_seconds="first-byte",
        backlog="backlog",
        memory="memory",
        control="control",
        trust_checksums="trust-checksums",
    )
    return ingest.tcp(address, frame=common.frame, frames=common.frames, to=common.to, **more, **common.how)


def _udp(address: str, given: Given, common: Common) -> ingest.Receiver:
    more = _known(given, interface="interface", via="via", multicast_group="group", promiscuous="promiscuous")
    return ingest.udp(
        address,
        frame=common.frame,
        frames=common.frames,
        to=common.to,
        payload_bytes=_payload_bytes(given),
        **_numbering(given),
        **more,
        **common.how,
    )


def _follow(path: str, given: Given, common: Common) -> ingest.Receiver:
    """The TCP connections of a capture."""
    for option in _DATAGRAMS:
        if given[option] is not None and option != "trust-checksums":
            raise UsageError(f"--{option} is for datagrams, not for --follow {given['follow']}")
    more = _known(
        given,
        port="port",
        speed="speed",
        follow="follow",
        connections="connections",
        hold="hold",
        trust_checksums="trust-checksums",
    )
    return ingest.pcap(path, frame=common.frame, frames=common.frames, to=common.to, **more, **common.how)


def _pcap(path: str, given: Given, common: Common) -> ingest.Receiver:
    if given["follow"] is not None:
        return _follow(path, given, common)
    for option in ("connections", "hold"):
        if given[option] is not None:
            raise UsageError(f"--{option} of --pcap needs --follow tcp")
    return ingest.pcap(
        path,
        frame=common.frame,
        frames=common.frames,
        to=common.to,
        payload_bytes=_payload_bytes(given),
        **_numbering(given),
        **_known(given, port="port", speed="speed"),
        **common.how,
    )


def _synthetic(size: str, given: Given, common: Common) -> ingest.Receiver:
    return ingest.synthetic(
        _synthetic_bytes(size),
        frame=common.frame,
        frames=common.frames,
        to=common.to,
        **_known(given, packets="packets", packets_per_second="rate", seed="seed", payloads_once="payloads-once"),
        **common.how,
    )


_DATAGRAMS = ("payload", "little-endian", *_NUMBER.values())
_CONNECTIONS_ALONE = (
    "connections",
    "backlog",
    "memory",
    "mtu",
    "offloads",
    "window",
    "idle",
    "first-byte",
    "control",
    "answer",
)

KINDS = (
    Kind("tcp", (*_CONNECTIONS_ALONE, "interface", "trust-checksums"), _tcp),
    Kind("udp", (*_DATAGRAMS, "via", "interface", "group", "promiscuous"), _udp),
    Kind("pcap", (*_DATAGRAMS, "port", "speed", "follow", "connections", "hold"), _pcap),
    Kind("synthetic", ("packets", "rate", "seed", "payloads-once"), _synthetic),
)


def choose(sources: Given, given: Given) -> tuple[Kind, str]:
    """The one source that was named, and what it was given.

    Raises:
        UsageError: for none or several, and for options that are for another.
    """
    named = [kind for kind in KINDS if sources[kind.option] is not None]
    if len(named) != 1:
        names = [f"--{kind.option}" for kind in KINDS]
        raise UsageError(f"give one of {', '.join(names[:-1])} and {names[-1]}: where packets come from")
    kind = named[0]
    for option, value in given.items():
        if value is None or option in kind.takes:
            continue
        others = " and ".join(f"--{other.option}" for other in KINDS if option in other.takes)
        raise UsageError(f"--{option} is for {others}, not for --{kind.option}")
    return kind, str(sources[kind.option])
