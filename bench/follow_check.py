"""Compares the TCP streams of captures with those of tshark's "follow" and of tcpflow, and explains differences.

For each capture, `ingest.pcap(..., follow="tcp", trust_checksums=True)` gives the streams by their ends. tshark and
tcpflow, which do not verify checksums either, give theirs. If two differ, the reason is searched among the rules of
docs/ingest-follow.md; a difference without a rule is printed as "unexplained", and the exit status is 1.

    .venv/bin/python bench/follow_check.py --tool tshark capture.pcap more.pcapng
"""

import argparse
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import headrace
from headrace import ingest

Ends = tuple[str, str]
"""The two ends, sender first: "10.0.0.1:40000", "[fe80::1]:80"."""

_MISSING = re.compile(rb"\[(\d+) bytes missing in capture file\]\0?")
_TCPFLOW = re.compile(r"^([0-9a-fA-F.:]+)\.(\d{5})-([0-9a-fA-F.:]+)\.(\d{5})(?:--?\d+)?(?:c\d+)?$")
_MISSING_MOST = 1 << 28
_PADDING_MOST = 6  # bytes that Ethernet adds to a segment without payload
_PADDINGS_LAST = 3  # segments without payload that end a stream
_PADDING = "tcpflow takes the padding of a short Ethernet frame for payload"
_AHEAD = 16  # bytes that must agree after a padding
_LOOPBACK = 0  # the link type
_TSHARK_AT_ONCE = 64
_TSHARK_MORE = 4  # further connections that tshark may see and Headrace does not
_TIMEOUT_SECONDS = 300


@dataclass
class Stream:
    """One direction of a connection."""

    data: bytearray = field(default_factory=bytearray)
    missing: list[tuple[int, int]] = field(default_factory=list)
    end: str = ""

    def covered(self) -> bytes:
        """The received bytes, without the missing ones."""
        made = bytearray()
        at = 0
        for begin, end in self.missing:
            made += self.data[at:begin]
            at = end
        return bytes(made + self.data[at:])


Streams = dict[Ends, list[bytes]]


def _end(address: str, port: str | int) -> str:
    address = address.strip("[]")
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def ours(capture: Path) -> tuple[dict[Ends, list[Stream]], dict[str, int]]:
    """Headrace's streams by their ends, in the order in which they began, and the counters."""
    found: dict[int, Stream] = {}
    ends: dict[int, Ends] = {}
    with ingest.pcap(
        capture, frame="64KiB", buffers=8, to="cpu", follow="tcp", connections=512, trust_checksums=True
    ) as receiver:
        while not receiver.ended:
            delivery = receiver.next(timeout=1.0)
            if isinstance(delivery, ingest.StreamOpened):
                found[delivery.stream] = Stream()
                ends[delivery.stream] = (delivery.peer, delivery.destination)
            elif isinstance(delivery, ingest.Frame):
                found[delivery.stream].data += delivery.to_host().tobytes()
                found[delivery.stream].missing += delivery.missing
                delivery.release()
            elif isinstance(delivery, ingest.StreamEnded):
                found[delivery.stream].end = delivery.reason
            if receiver.counters()["follow"]["missing_bytes"] > _MISSING_MOST:
                raise headrace.DataError(f"{capture}: gaps of more than {_MISSING_MOST:,} bytes are not compared")
        counters = receiver.counters()["follow"]
    by_ends: dict[Ends, list[Stream]] = defaultdict(list)
    for stream in sorted(found):
        by_ends[ends[stream]].append(found[stream])
    return by_ends, counters


class UnreadError(Exception):
    """The other tool cannot read a capture."""


def by_tcpflow(capture: Path) -> Streams:
    """The streams of tcpflow by their ends; streams with the same ends are in the order of its files.

    Raises:
        UnreadError: for a link type, or a mixture of link types, that tcpflow does not support.
    """
    found: Streams = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        command = ["tcpflow", "-r", str(capture), "-o", folder, "-q", "-S", "enable_report=NO"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_SECONDS)
        if re.search(rb"unknown datalink type|an interface has a", done.stderr):
            raise UnreadError
        for path in sorted(
            Path(folder).iterdir(), key=lambda one: (one.name.partition("c")[0], len(one.name), one.name)
        ):
            match = _TCPFLOW.match(path.name)
            if match is None:
                continue
            addresses = [re.sub(r"\b0+(?=\d)", "", part) if ":" not in part else part for part in (match[1], match[3])]
            found[_end(addresses[0], int(match[2])), _end(addresses[1], int(match[4]))].append(path.read_bytes())
    return found


def by_tshark(capture: Path, connections: int) -> Streams:
    """The streams of tshark's "follow" by their ends; its notes on missing data are kept."""
    found: Streams = defaultdict(list)
    for start in range(0, connections + _TSHARK_MORE, _TSHARK_AT_ONCE):
        command = ["tshark", "-r", str(capture), "-q"]
        for number in range(start, min(start + _TSHARK_AT_ONCE, connections + _TSHARK_MORE)):
            command += ["-z", f"follow,tcp,raw,{number}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
        for ends, data in _read_follow(done.stdout):
            found[ends].append(data)
    return found


def _read_follow(text: str) -> Iterator[tuple[Ends, bytes]]:
    nodes = ["", ""]
    data = [bytearray(), bytearray()]
    for line in text.splitlines():
        if line.startswith("Node "):
            nodes[int(line[5])] = re.sub(r"^(.*):(\d+)$", lambda m: _end(m[1], m[2]), line.partition(": ")[2])
        elif line.startswith("==="):
            for which in (0, 1):
                if data[which]:
                    yield (nodes[which], nodes[1 - which]), bytes(data[which])
            data = [bytearray(), bytearray()]
        elif line and not line.startswith(("Follow", "Filter")):
            data[line.startswith("\t")] += bytes.fromhex(line.strip())


def _walk(mine: Stream, theirs: bytes) -> tuple[int, int] | None:
    """Walks along tshark's data, whose gaps must be gaps here or contain bytes; None if contents differ.

    Returns the offset at which tshark ends, and the number of bytes here that tshark reports as missing.
    """
    data = bytes(mine.data)
    at, filled = 0, 0
    pieces = _MISSING.split(theirs)
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            if data[at : at + len(piece)] != piece:
                return None
            at += len(piece)
            continue
        length = int(piece)
        if at == 0 and length == 1 and not data.startswith(pieces[number + 1], 1):
            continue  # a keep-alive came first
        missing = sum(max(0, min(end, at + length) - max(begin, at)) for begin, end in mine.missing)
        filled += length - missing
        at += length
    return at, filled


def _explain_tshark(mine: Stream, theirs: bytes) -> str:
    if mine.missing and mine.covered() == theirs:
        return "the snap length cut the payload: tshark does not report it"
    walked = _walk(mine, theirs)
    if walked is None or walked[0] > len(mine.data):
        return "unexplained"
    at, filled = walked
    if at == len(mine.data):
        return "the capture has bytes after their acknowledgement: tshark reports them as missing" if filled else ""
    if not any(begin <= at <= end for begin, end in mine.missing):
        return "unexplained"
    if mine.missing[-1][0] <= at:
        return "the end was acknowledged, but is not in the capture: tshark does not report it"
    return "tshark omits the bytes after a gap that no segment acknowledges"


def _is_padded(data: bytes, theirs: bytes) -> bool:
    """Whether theirs is the data with a few additional bytes in some places."""
    at = 0
    spare = 0
    while spare < len(theirs) and at < len(data):
        same = next((n for n, (a, b) in enumerate(zip(data[at:], theirs[spare:], strict=False)) if a != b), None)
        if same is None:
            break
        at, spare = at + same, spare + same
        # The padding may equal the beginning of the next data, so a few bytes earlier are tried too.
        for back, more in itertools.product(range(min(at, _PADDING_MOST) + 1), range(1, _PADDING_MOST + 1)):
            begin = spare - back + more
            ahead = min(_AHEAD, len(data) - at + back)
            if theirs[begin : begin + ahead] == data[at - back : at - back + ahead]:
                at, spare = at - back, begin
                break
        else:
            return False
    rest = min(len(data) - at, len(theirs) - spare)
    return at + rest == len(data) and len(theirs) - spare - rest <= _PADDINGS_LAST * _PADDING_MOST


def _explain_tcpflow(mine: Stream, theirs: bytes) -> str:
    data = bytes(mine.data)
    if data == theirs:
        return ""
    if _is_padded(data, theirs):
        return _PADDING
    if mine.missing and mine.missing[-1][1] == len(data) and data[: mine.missing[-1][0]] == theirs:
        return "the end was acknowledged, but is not in the capture: tcpflow writes no zeros there"
    if len(data) == len(theirs):
        return "bytes arrived twice with different values: tcpflow takes the last ones"
    if theirs.endswith(data):
        return "segments from before the first one of the capture: tcpflow puts them in front"
    return "unexplained"


def _explain(mine: Stream | None, theirs: bytes | None, tool: str) -> str:
    """The rule that explains the difference of a stream; empty if it does not differ, "unexplained" without a rule."""
    if mine is None:
        assert theirs is not None
        return _PADDING if tool == "tcpflow" and len(theirs) <= 2 * _PADDING_MOST else "unexplained"
    if theirs is None:
        if not mine.covered():
            return "only the length of the stream was captured"
        behind_gap = tool == "tshark" and mine.missing and mine.missing[0][0] == 0
        return "tshark omits the bytes after a gap that no segment acknowledges" if behind_gap else "unexplained"
    return _explain_tshark(mine, theirs) if tool == "tshark" else _explain_tcpflow(mine, theirs)


_TOO_SHORT = '_ws.expert.message contains "exceeds packet length"'
_TRAILERS = "eth.trailer || eth.padding || vlan.trailer || f5ethtrailer"
_CUT_HEADERS = "frame.cap_len < frame.len && !tcp"
_WITHOUT_PORTS = ("frag", "!tcp")
"""Packets found by a filter with one of these have no ports."""

_TCPFLOW_RULES = {
    "tcpflow does not reassemble IP fragments": "ip.flags.mf == 1 || ip.frag_offset > 0 || ipv6.fraghdr",
    "tcpflow reads no packet whose IP length is 0, as segmentation offload leaves it": "ip[2:2] == 00:00",
    "tcpflow takes the data of a reset for payload": "tcp.flags.reset == 1 && tcp.len > 0",
    "tcpflow takes the bytes after the IP packet for payload": _TRAILERS,
    "tcpflow takes a packet that is shorter than its IP length": _TOO_SHORT,
    "tcpflow takes a packet whose TCP header is too short": '_ws.expert.message contains "Bogus TCP header length"',
    "tcpflow takes a packet that was cut within its headers": _CUT_HEADERS,
    "tcpflow takes the payload of a SYN, which was never acknowledged": "tcp.flags.syn == 1 && tcp.len > 0",
}
_TSHARK_RULES = {
    "a tunnel: only tshark reads packets within packets": (
        "vxlan || geneve || gre || gtp || mpls || pppoe || pppoes || llc || ieee8021ah || ayiya || erspan || vntag || "
        "(ip && ipv6) || ip.proto == 4 || ipv6.nxt == 41"
    ),
    "tshark takes the data of a reset for payload": "tcp.flags.reset == 1 && tcp.len > 0",
    "tshark takes a packet that is shorter than its IP length": _TOO_SHORT,
    "tshark takes a SYN that is also a reset for a new connection": "tcp.flags.syn == 1 && tcp.flags.reset == 1",
    "tshark reassembles overlapping IP fragments, which Headrace and Linux drop": "ip.fragment.overlap",
    "tshark reads no TCP after IP options that it does not know": "ip.hdr_len > 20 && ip.proto == 6 && !tcp",
}
"""How a tool treats packets between two ends, with the tshark filter that finds them."""


def _filter(ends: Ends, *, has_ports: bool = True) -> str:
    """Tshark's filter of the packets of one end."""
    address, _, port = ends[0].rpartition(":")
    kind = "ipv6" if address.startswith("[") else "ip"
    return f"{kind}.addr == {address.strip('[]')}" + (f" && tcp.port == {port}" if has_ports else "")


def _has(capture: Path, ends: Ends, packets: str) -> bool:
    has_ports = not any(mark in packets for mark in _WITHOUT_PORTS)
    command = ["tshark", "-r", str(capture), "-Y", f"{_filter(ends, has_ports=has_ports)} && ({packets})"]
    return bool(subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_SECONDS).stdout)


def _takes_what_follows_a_reset(capture: Path, ends: Ends) -> bool:
    """Whether a segment with payload follows a reset between the same ends."""
    fields = ["-T", "fields", "-e", "tcp.flags.reset", "-e", "tcp.len", "-e", "tcp.flags.syn"]
    command = ["tshark", "-r", str(capture), "-Y", _filter(ends), *fields]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
    is_reset = False
    for line in done.stdout.splitlines():
        reset, length, syn = line.split("\t")
        if syn in ("1", "True"):
            is_reset = False
        elif is_reset and length not in ("", "0"):
            return True
        is_reset = is_reset or reset in ("1", "True")
    return False


def _explain_by_packets(capture: Path, here: list[Stream], there: list[bytes], ends: Ends, tool: str) -> str:
    """A rule for all streams between two ends, derived from the packets between them; empty if there is none."""
    if not here and _takes_what_follows_a_reset(capture, ends):
        return f"data after a reset belongs to no connection: {tool} takes it"
    if tool == "tcpflow" and here and any(_is_padded(bytes(here[0].data), again) for again in there[1:]):
        return "data is retransmitted after the end: tcpflow takes it for another connection"
    for rule, packets in (_TSHARK_RULES if tool == "tshark" else _TCPFLOW_RULES).items():
        if _has(capture, ends, packets):
            return rule
    if tool == "tcpflow" and not there and _link_type(capture) == _LOOPBACK and ends[0].startswith("["):
        return "tcpflow reads no IPv6 after the header of a loopback device"
    together = b"".join(bytes(one.data) for one in here)
    theirs = b"".join(there)
    if len(here) > 1 and (together == theirs or (tool == "tcpflow" and _is_padded(together, theirs))):
        return "one pair of ends has several connections, which are divided at other places"
    return ""


def _link_type(capture: Path) -> int:
    """The link type of a plain capture file; -1 for other files."""
    head = capture.read_bytes()[:24]
    if head[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        return int.from_bytes(head[20:24], "little")
    return int.from_bytes(head[20:24], "big") if head[:4] == b"\xa1\xb2\xc3\xd4" else -1


def compare(capture: Path, tool: str) -> tuple[Counter[str], list[str]]:
    """Counts streams that agree, or differ by each rule, and returns a line for each difference."""
    mine, counters = ours(capture)
    theirs = by_tshark(capture, counters["connections"]) if tool == "tshark" else by_tcpflow(capture)
    tally: Counter[str] = Counter()
    lines = []
    for ends in sorted({*mine, *theirs}):
        here, there = mine.get(ends, []), theirs.get(ends, [])
        for which in range(max(len(here), len(there))):
            one = here[which] if which < len(here) else None
            other = there[which] if which < len(there) else None
            why = _explain(one, other, tool)
            if why == "unexplained":
                why = _explain_by_packets(capture, here, there, ends, tool) or why
            tally[why or "equal"] += 1
            if why:
                sizes = (len(one.data) if one else None, len(other) if other is not None else None)
                lines.append(f"{capture}: {ends[0]} > {ends[1]} {which}: {why} {sizes} {one.end if one else ''}")
    return tally, lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a difference has no explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--tool", choices=("tshark", "tcpflow"), action="append")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    total: dict[str, Counter[str]] = {}
    for tool in given.tool or ["tshark", "tcpflow"]:
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is not installed")
        total[tool] = Counter()
        for capture in given.captures:
            try:
                tally, lines = compare(capture, tool)
            except UnreadError:
                total[tool][f"not read by {tool}"] += 1
                continue
            except headrace.Error as error:
                total[tool]["not read by Headrace"] += 1
                print(f"{capture}: {error}", file=sys.stderr)
                continue
            total[tool] += tally
            for line in lines:
                print(f"{tool}: {line}", file=sys.stderr)
    print(json.dumps(total, indent=2) if given.json else "\n".join(f"{t}: {dict(c)}" for t, c in total.items()))
    return 1 if any(counts["unexplained"] for counts in total.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
