"""Compares reading captures with tcpdump: `ingest.capture.vs_tcpdump` is tcpdump's time divided by ours.

A capture of numbered datagrams is written to a temporary folder. In turns, `tcpdump -r FILE -w /dev/null` reads it,
from the start of its process to its end, and `ingest.pcap` does, from opening to the last frame: it verifies checksums,
puts payloads into frames of the default size, and gives each to a consumer that releases it. The file is in the page
cache. Every datagram is counted, and the bytes of one run are hashed.

    .venv/bin/python bench/ingest_capture.py --packets 400000 --save docs/results/ingest-capture.cpu-2.json
"""

import argparse
import hashlib
import os
import resource
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import headrace
from headrace import ingest, results

_FLUSH = 4096
_NUMBER_BYTES = 8


def _checksum(data: bytes) -> int:
    total = int(np.frombuffer(data + b"\0" * (len(data) % 2), ">u2").sum())
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def write_capture(path: Path, packets: int, payload: int) -> str:
    """Writes datagrams, each with a number and `payload` bytes of stream 1; returns the digest of the stream."""
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    length = 8 + _NUMBER_BYTES + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0, 64, 17, 0) + ends
    ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
    head = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip
    pseudo = ends + struct.pack("!BBH", 0, 17, length)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for first in range(0, packets, _FLUSH):
            count = min(_FLUSH, packets - first)
            data = bytes(ingest.stream_bytes(1, first * payload, count * payload))
            digest.update(data)
            for index in range(count):
                number = first + index
                body = number.to_bytes(_NUMBER_BYTES, "big") + data[index * payload : (index + 1) * payload]
                udp = struct.pack("!HHH", 4000, 9000, length)
                checksum = _checksum(pseudo + udp + b"\0\0" + body) or 0xFFFF
                packet = head + udp + struct.pack("!H", checksum) + body
                stamp = struct.pack("<IIII", 1 + number // 10**6, number % 10**6, len(packet), len(packet))
                file.write(stamp + packet)
    return digest.hexdigest()


def _processor(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def read_by_tcpdump(path: Path) -> tuple[float, float]:
    """Elapsed seconds, and seconds of processor time."""
    began, processor = time.perf_counter(), _processor(resource.RUSAGE_CHILDREN)
    subprocess.run(["tcpdump", "-r", str(path), "-w", "/dev/null"], capture_output=True, check=True)
    return time.perf_counter() - began, _processor(resource.RUSAGE_CHILDREN) - processor


def read_by_headrace(path: Path, packets: int, payload: int, digest: str | None = None) -> tuple[float, float]:
    """The same for a receiver on the CPU device. Raises DataError if anything is missing."""
    whole = hashlib.sha256()
    began, processor = time.perf_counter(), _processor(resource.RUSAGE_SELF)
    with ingest.pcap(path, to="cpu", payload_bytes=payload) as receiver:
        for frame in receiver:
            if digest is not None:
                whole.update(frame.numpy())
            frame.release()
        came = receiver.counters()["datagrams"]["accepted"]
    taken = time.perf_counter() - began, _processor(resource.RUSAGE_SELF) - processor
    if came != packets or (digest is not None and whole.hexdigest() != digest):
        raise headrace.DataError(f"{came:,} of {packets:,} datagrams arrived, or their bytes differ")
    return taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and saves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=400_000, help="number of packets in the capture")
    parser.add_argument("--payload", type=int, default=1464, help="bytes after the number of each packet")
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args(arguments)
    if shutil.which("tcpdump") is None:
        raise SystemExit("tcpdump is not installed")
    packets = chosen.packets
    ratios, processors = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "datagrams.pcap"
        digest = write_capture(path, packets, chosen.payload)
        read_by_headrace(path, packets, chosen.payload, digest)
        for _ in range(chosen.samples):
            theirs = read_by_tcpdump(path)
            ours = read_by_headrace(path, packets, chosen.payload)
            ratios.append(theirs[0] / ours[0])
            processors.append(theirs[1] / ours[1])
            print(f"tcpdump {theirs[0]:.3f} s, Headrace {ours[0]:.3f} s", flush=True)
    about = {
        "packets": packets,
        "payload_bytes": chosen.payload,
        "processor_ratio": round(sorted(processors)[len(processors) // 2], 3),
        "load": round(os.getloadavg()[0], 1),
        "verified": True,
    }
    row = results.row("ingest.capture.vs_tcpdump", ratios, "ratio", None, about)
    print(results.dumps(row))
    if chosen.save is not None:
        device = headrace.Device.parse("cpu:0")
        topic = results.topic_of(chosen.save, device)
        results.save(chosen.save, results.document(topic, device, [row]))


if __name__ == "__main__":
    main()
