"""Makes capture files for tests."""

import struct
from pathlib import Path

from headrace import ingest

NUMBERED = 1464
"""Payload after the 8-byte number."""


def capture(path: Path, numbers: list[int], *, link: int = 101, port: int = 9000, cut: int = 0) -> None:
    """Writes a pcap file of numbered datagrams of stream 3, without its last `cut` bytes."""
    payloads = [bytes(ingest.stream_bytes(3, number * NUMBERED, NUMBERED)) for number in numbers]
    made = [number.to_bytes(8, "big") + payload for number, payload in zip(numbers, payloads, strict=True)]
    write_datagrams(path, made, link=link, port=port, cut=cut)


def write_datagrams(path: Path, datagrams: list[bytes], *, link: int = 101, port: int = 9000, cut: int = 0) -> None:
    """Writes a pcap file of datagrams from one sender, without its last `cut` bytes."""
    packets = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
    for number, payload in enumerate(datagrams):
        udp = struct.pack(">HHHH", 5000, port, 8 + len(payload), 0) + payload
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
        total = sum(struct.unpack(">10H", head))
        total = (total & 0xFFFF) + (total >> 16)
        head = head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
        packet = head + udp
        packets += struct.pack("<IIII", 1, number, len(packet), len(packet)) + packet
    path.write_bytes(packets[: len(packets) - cut])
