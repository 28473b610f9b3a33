"""Receives packets from a network device, a socket, a file or memory as frames on a device."""

import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from headrace import _core
from headrace._core import DatagramLayout, Device, Faults, FrameTarget, Receiver
from headrace.errors import UsageError

_FRAME_PACKETS_MOST = (1 << 32) - 1
_DATAGRAM_BYTES = 1472
"""Payload of the largest datagram in an Ethernet packet."""


class Building(TypedDict, total=False):
    """How frames are built: as for FrameTarget, and `ring`, the bytes in which packets wait."""

    conversion: str
    way: str
    ring_access: str
    prompt_count: int
    ring: int | str
    burst_packets: int
    faults: Faults | None


class Numbering(Building, total=False):
    """Where datagrams have their numbers, the size of a frame, and which senders are accepted: as for DatagramLayout.

    `from_senders`: addresses to receive from, each with or without a port ("10.0.0.1", "[fd00::1]:1000"); empty: all.
    `senders`: maximum number of concurrent senders, each with its own frames. `idle_seconds`: a sender that has been
    silent this long gives way to another one.
    """

    raw_offset: int | None
    number_offset: int
    number_width: int
    big_endian: bool
    header_bytes: int | None
    window_frames: int
    timeout: float
    forward_packets: int
    backward_packets: int
    part_offset: int
    part_width: int
    group_bytes: int
    from_senders: Sequence[str]
    senders: int
    idle_seconds: float


_SENDERS = frozenset(("from_senders", "senders", "idle_seconds"))
_NUMBERING = Numbering.__annotations__.keys() - Building.__annotations__.keys()
_FRAME_BYTES = 64 << 20
_FOLLOW_FRAME = _FRAME_BYTES


def _bytes(size: int | str) -> int:
    return _core.parse_bytes(size) if isinstance(size, str) else size


def _target(frame: int | str, buffers: int, to: str | Device, how: Building) -> FrameTarget:
    options: dict[str, Any] = {key: value for key, value in how.items() if key not in _NUMBERING}
    if "ring" in options:
        options["ring_bytes"] = _bytes(options.pop("ring"))
    return FrameTarget(to, frame_bytes=_bytes(frame), frame_count=buffers, **options)


def _split(target: str, port_least: int = 1) -> tuple[str, int]:
    """Address and port of "10.0.0.2:9000", "[::1]:9000", or ":9000", whose address is empty."""
    found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:\[\]]*)):([0-9]{1,5})", target)
    if found is None or not port_least <= int(found[3]) < 1 << 16:
        raise UsageError(f"'{target}' is not an address with a port, such as 10.0.0.2:9000, [fd00::2]:9000 or :9000")
    return found[1] or found[2], int(found[3])


def _is_own(address: str) -> bool:
    """Whether the address belongs to the kernel."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def default_payload(how: Numbering) -> int:
    """Maximum bytes after the header in a datagram of 1,472 bytes, the largest in an Ethernet packet.

    Raises:
        UsageError: for a header that fills such a datagram.
    """
    number_end = how.get("number_offset", 0) + how.get("number_width", 8)
    part_end = how.get("part_offset", 0) + how.get("part_width", 0) if how.get("part_width") else 0
    header = how.get("header_bytes")
    header = max(number_end, part_end) if header is None else header
    if header >= _DATAGRAM_BYTES:
        raise UsageError(
            f"a header of {header:,} bytes fills a datagram of {_DATAGRAM_BYTES:,}: give the payload length"
        )
    return _DATAGRAM_BYTES - header


def frame_bytes(payload_bytes: int, how: Numbering) -> int:
    """Default size of a frame: 64 MiB, or as much as narrow numbers can tell apart.

    If numbers count groups, a frame is a group.
    """
    if how.get("part_width") and payload_bytes > 0:
        group = -(-how.get("group_bytes", 0) // payload_bytes) * payload_bytes
        return min(_FRAME_BYTES, max(payload_bytes, group))
    width = min(max(how.get("number_width", 8), 1), 8)
    packets = (1 << (8 * width - 1)) // max(1, how.get("window_frames", 2))
    return max(1, min(_FRAME_BYTES, packets * payload_bytes))


def _senders(how: Numbering) -> dict[str, Any]:
    given: dict[str, Any] = {key: value for key, value in how.items() if key in _SENDERS}
    if "from_senders" in given:
        given["from_senders"] = list(given["from_senders"])
    return given


def _layout(port: int, payload_bytes: int, frame: int | str, how: Numbering) -> DatagramLayout:
    frame_packets = max(1, _bytes(frame) // max(1, payload_bytes))
    if frame_packets > _FRAME_PACKETS_MOST:
        raise UsageError(f"a frame of {_bytes(frame):,} bytes holds more than {_FRAME_PACKETS_MOST:,} payloads")
    options: dict[str, Any] = {key: value for key, value in how.items() if key in _NUMBERING - _SENDERS}
    return DatagramLayout(payload_bytes, frame_packets, port=port, **options)


_FIRST_BYTE_SECONDS = 30.0


def tcp(
    address: str,
    *,
    frame: int | str = "64MiB",
    buffers: int = 4,
    to: str | Device = "best",
    connections: int = 64,
    mtu: int = 1500,
    offloads: bool = True,
    interface: str = "",
    name: str = "headrace%d",
    window: int | str = "16MiB",
    idle_seconds: float = 300.0,
    first_byte_seconds: float | None = None,
    open_at_first_byte: bool = True,
    backlog: int = 4096,
    memory: int | str = 0,
    control: str = "host",
    close_when_finished: bool = True,
    trust_checksums: bool = False,
    **how: Unpack[Building],
) -> Receiver:
    """Receives TCP connections at "10.0.0.2:9000" or "[fd00::2]:9000", or at an address that clashes with no route.

    ":9000" chooses an IPv4 address, "[::]:9000" an IPv6 address. The address belongs to a TUN device that is created
    for it and removed with the receiver; with `interface`, it is an IPv4 address that the kernel does not have, on that
    interface, by AF_XDP. Each connection has `buffers` frames of `frame` bytes on `to`. A connection becomes a stream
    with its first byte; if `open_at_first_byte` is off, with its handshake, for protocols in which this side speaks
    first. `connections`: maximum number of concurrent streams. Further connections wait, at most `backlog` of them, and
    nothing that they send is acknowledged; beyond that, senders get no answer and try again. `memory`: limit for the
    frames of all streams together, beyond which connections wait; 0: all memory of the device. `idle_seconds`: time
    after which a silent stream is reset, not counting time with a closed window; 0: never. `first_byte_seconds`: the
    same for a connection that may send its first byte; 0: never; None: 30, or `idle_seconds` if that is less. `how`:
    Building. `control`: host; or resident, in a kernel that stays on `to`, which allocates the frames of all
    connections first and converts nothing (docs/ingest-resident.md). `close_when_finished`: when a sender has finished,
    its connection is closed at once; otherwise Receiver.close() closes it, and answers are possible until then.
    `trust_checksums`: with `interface`, for a veth whose other end leaves checksums out.

    Raises:
        SystemError: without CAP_NET_ADMIN; the error names it.
        UsageError: for an address that overlaps a route, and for invalid options.
        DeviceError: for frames that exceed memory.
    """
    host, port = _split(address)
    if trust_checksums and not interface:
        raise UsageError("trust_checksums needs an interface: on a TUN device the kernel reports verified checksums")
    if interface and _is_own(host):
        raise UsageError(f"TCP on an interface needs an address that is not the kernel's, not '{host}'")
    if first_byte_seconds is None:
        first_byte_seconds = min(_FIRST_BYTE_SECONDS, idle_seconds or _FIRST_BYTE_SECONDS)
    return _core.receive_tcp(
        _target(frame, buffers, to, how),
        host,
        port,
        connections=connections,
        mtu=mtu,
        offloads=offloads,
        name=name,
        window_bytes=_bytes(window),
        idle_seconds=idle_seconds,
        first_byte_seconds=first_byte_seconds,
        open_at_first_byte=open_at_first_byte,
        backlog=backlog,
        memory_bytes=_bytes(memory),
        interface=interface,
        control=control,
        close_when_finished=close_when_finished,
        trust_checksums=trust_checksums,
    )


def udp(
    address: str,
    *,
    frame: int | str | None = None,
    buffers: int = 4,
    to: str | Device = "best",
    payload_bytes: int | None = None,
    interface: str = "",
    via: str = "socket",
    multicast_group: str = "",
    kernel_buffer: int | str = "8MiB",
    promiscuous: bool = False,
    trust_checksums: bool = False,
    **how: Unpack[Numbering],
) -> Receiver:
    """Receives numbered datagrams at "10.0.0.2:9000", or ":9000" for any address, one stream per sender; port 0: any.

    `payload_bytes`: maximum bytes of a datagram after its header; None: what is left of 1,472, the largest datagram in
    an Ethernet packet. `via`: socket; or packet (AF_PACKET) or xdp (AF_XDP), on `interface`. A frame has as many
    payloads as fit into `frame`: 64 MiB, or fewer if numbers are narrow. `how` says where the numbers are (Numbering):
    by default big-endian in the first 8 bytes. A sender that restarts its numbering begins another stream.
    `promiscuous`: for packet, also receive packets sent to other addresses. `trust_checksums`: for xdp, on a veth whose
    other end leaves checksums out.

    Raises:
        SystemError: without CAP_NET_RAW (packet), or CAP_NET_ADMIN and CAP_BPF as well (xdp); the error names it.
        UsageError: for an interface that does not exist, and for invalid options.
    """
    host, port = _split(address, port_least=0)
    if via in ("packet", "xdp") and not interface:
        raise UsageError(f"via='{via}' needs an interface")
    for option, given, way in (("promiscuous", promiscuous, "packet"), ("trust_checksums", trust_checksums, "xdp")):
        if given and via != way:
            raise UsageError(f"{option} is for via='{way}', not for '{via}'")
    payload_bytes = default_payload(how) if payload_bytes is None else payload_bytes
    frame = frame_bytes(payload_bytes, how) if frame is None else frame
    layout = _layout(port, payload_bytes, frame, how)
    target = _target(frame, buffers, to, how)
    if via == "socket":
        return _core.receive_udp(
            target,
            layout,
            host or "0.0.0.0",
            multicast_group=multicast_group,
            interface=interface,
            kernel_buffer_bytes=_bytes(kernel_buffer),
            **_senders(how),
        )
    return _core.receive_packets(
        target,
        layout,
        interface,
        via=via,
        address=host if via == "xdp" else "",
        promiscuous=promiscuous,
        trust_checksums=trust_checksums,
        **_senders(how),
    )


def pcap(
    path: str | Path,
    *,
    frame: int | str | None = None,
    buffers: int = 4,
    to: str | Device = "best",
    port: int = 0,
    payload_bytes: int | None = None,
    speed: float = 0.0,
    follow: str = "",
    connections: int = 64,
    hold: int | str = "256MiB",
    trust_checksums: bool = False,
    **how: Unpack[Numbering],
) -> Receiver:
    """Replays the numbered datagrams of a pcap or pcapng file, or its TCP connections; `port` 0: of all ports.

    Each sender of datagrams is a stream; `payload_bytes` as for udp(). `speed` 0: as fast as frames are taken, without
    loss and with the same frames each time; 1: with the gaps of the capture.

    `follow` "tcp": each direction of a TCP connection is a stream, reassembled as by tshark's "follow" and tcpflow
    (docs/ingest-follow.md). Bytes missing from the capture are zeros: Frame.missing says where. `connections`: number
    of streams that have frames at the same time; if more are open, frames become shorter. `hold`: memory for
    out-of-order segments. The numbering of datagrams is then irrelevant. `trust_checksums`: for captures made on the
    sending machine, before its network card filled in checksums.

    Raises:
        UsageError: for a missing file, and for invalid options.
        DataError: for a file that is not a capture, and for damage in one, after everything before it.
    """
    if follow:
        if follow != "tcp":
            raise UsageError(f"'{follow}' is not a protocol to follow: only tcp is")
        return _core.follow_capture(
            _target(_FOLLOW_FRAME if frame is None else frame, buffers, to, how),
            str(path),
            speed=speed,
            port=port,
            connections=connections,
            hold_bytes=_bytes(hold),
            trust_checksums=trust_checksums,
        )
    payload_bytes = default_payload(how) if payload_bytes is None else payload_bytes
    frame = frame_bytes(payload_bytes, how) if frame is None else frame
    layout = _layout(port, payload_bytes, frame, how)
    return _core.receive_capture(
        _target(frame, buffers, to, how),
        layout,
        str(path),
        speed=speed,
        trust_checksums=trust_checksums,
        **_senders(how),
    )


def synthetic(
    payload_bytes: int = 8992,
    *,
    frame: int | str = "64MiB",
    buffers: int = 4,
    to: str | Device = "best",
    packets: int = 0,
    packets_per_second: float = 0.0,
    seed: int = 1,
    payloads_once: bool = False,
    **how: Unpack[Building],
) -> Receiver:
    """Numbered datagrams generated in memory: a number of 8 bytes, then `payload_bytes` of stream_bytes(seed).

    `packets` 0: without end. `packets_per_second` 0: as fast as frames are taken. `payloads_once`: payloads are written
    only once, so that packets cost next to nothing.
    """
    layout = _layout(9000, payload_bytes, frame, {})
    return _core.receive_synthetic(
        _target(frame, buffers, to, how),
        layout,
        packets=packets,
        packets_per_second=packets_per_second,
        seed=seed,
        payloads_once=payloads_once,
    )
