"""Notes for the user of `headrace ingest` on a receiver's counters."""

from headrace.ingest.figures import Counters

_REFUSED = {
    "truncated": "were shorter than their headers or lengths require",
    "snapped": "were captured or received only in part (raise the snaplen)",
    "malformed": "had lengths that contradict each other",
    "arp": "were ARP",
    "not_ip": "were not IP",
    "vlan_depth": "had more than three VLAN tags",
    "extension": "had an IPv6 extension header that cannot be skipped",
    "routing": "had an IPv6 routing header with segments left",
    "protocol": "were neither UDP nor TCP",
    "fragment": "were IP fragments",
    "ip_checksum": "had a wrong IP checksum",
    "tcp_checksum": "had a wrong TCP checksum",
    "udp_checksum": "had a wrong UDP checksum",
    "not_udp": "were TCP",
    "other_port": "went to another port",
    "other_sender": "came from senders other than --from",
    "no_number": "were too short for their sequence number and header",
    "too_long": "had more payload than --payload",
    "no_place": "had a part that is not a multiple of the payload or lies beyond --group-bytes",
    "too_many": "came from more senders than allowed: see --senders and --from",
}
"""Describes the packets for each reason of counters()["refused"]."""

_CHECKSUMS = ("ip_checksum", "tcp_checksum", "udp_checksum")


def notes(counters: Counters, kind: str, via: str | None) -> list[str]:
    """One line per note."""
    found = _of_tcp(counters) if kind == "tcp" else _of_datagrams(counters, kind, via)
    source = counters["source"]
    if source["left_out"]:
        found.append(f"{source['left_out']:,} packets of the capture were skipped: they are not IP")
    if source["truncated"] and kind == "tcp":
        found.append(f"{source['truncated']:,} packets were longer than a slot or captured only in part")
    return found


def _of_tcp(counters: Counters) -> list[str]:
    found = []
    tcp = counters["tcp"]
    told = (
        (tcp["waited"], "connections waited for a free stream: raise --connections or speed up the consumer"),
        (tcp["connections_waiting"], "connections were still waiting at the end; none of their data was acknowledged"),
        (
            counters["streams"]["memory_failures"],
            "times a connection waited because memory for its frames was short: lower --frame",
        ),
        (tcp["syns_unanswered"], "requests to connect were not answered: the --backlog was full"),
        (tcp["silent_timed_out"], "connections were reset because they sent nothing: see --first-byte"),
        (tcp["refused"], "requests to connect to another port were refused"),
    )
    found += [f"{count:,} {what}" for count, what in told if count]
    if tcp["bad_checksums"] and not tcp["opened"]:
        found.append(
            "every packet has a wrong checksum: the other end of a veth leaves checksums out; see --trust-checksums"
        )
    return found


def _of_datagrams(counters: Counters, kind: str, via: str | None) -> list[str]:
    datagrams, refused = counters["datagrams"], counters["refused"]
    found = []
    reasons = sorted(((count, reason) for reason, count in refused.items() if count), reverse=True)
    if reasons:
        total = sum(count for count, _ in reasons)
        said = ", ".join(f"{count:,} {_REFUSED.get(reason, reason)}" for count, reason in reasons)
        found.append(f"{total:,} packets were refused: {said}")
    if kind == "pcap" and refused["not_udp"]:
        found.append("--follow tcp reassembles TCP connections")
    by_card = any(refused[reason] for reason in _CHECKSUMS) or (kind == "pcap" and refused["malformed"])
    if by_card and (kind == "pcap" or via == "xdp"):
        found.append(
            "a sender's card fills in checksums and lengths only after a capture or a veth: see --trust-checksums"
        )
    if datagrams["short_payloads"]:
        found.append(
            f"{datagrams['short_payloads']:,} datagrams were shorter than --payload and were padded with zeros"
        )
    if datagrams["restarts"]:
        found.append(f"{datagrams['restarts']:,} times a sender restarted its numbering, which began a new stream")
    if datagrams["late"]:
        found.append(
            f"{datagrams['late']:,} datagrams arrived after their frame was closed: raise --timeout or "
            "--window-frames to keep it open longer"
        )
    if datagrams["far"]:
        found.append(f"{datagrams['far']:,} datagrams had an isolated sequence number far beyond --forward-packets")
    if datagrams["no_space"]:
        found.append(f"{datagrams['no_space']:,} datagrams were dropped: the consumer was slower than the sender")
    return found
