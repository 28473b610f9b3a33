"""Notes of `headrace ingest --follow` on a capture, besides its streams."""

from collections.abc import Mapping


def follow_notes(follow: Mapping[str, int]) -> list[str]:
    """A sentence for each remarkable counter in Receiver.counters()["follow"]."""
    told = (
        (follow["connections"], "{:,} TCP connections" + _under_way(follow["under_way"])),
        (follow["missing_bytes"], "{:,} bytes are missing from the capture and were replaced by zeros"),
        (follow["cut_bytes"], "{:,} bytes of TCP payload were cut off when the capture was made (its snap length)"),
        (
            follow["bad_checksums"],
            "{:,} packets with wrong checksums were refused: if a card was to fill them in, use --trust-checksums",
        ),
        (follow["malformed"], "{:,} packets have truncated or contradictory headers"),
        (follow["other"] + follow["unsupported"], "{:,} packets are not TCP or have another port"),
        (follow["late_bytes"], "{:,} bytes arrived after their gap was given up or their connection had ended"),
        (
            follow["unproven_bytes"],
            "{:,} bytes were dropped: they follow a gap of more than 16 MiB that was never acknowledged",
        ),
        (follow["given_up"], "{:,} gaps were given up for lack of memory: raise --hold to wait longer"),
        (follow["forgotten"], "{:,} connections were ended early: too many were open at once"),
    )
    return [text.format(count) for count, text in told if count]


def fragment_notes(fragments: Mapping[str, int]) -> list[str]:
    """The same for IP fragments, from Receiver.counters()["fragments"]."""
    told = (
        (fragments["overlapping"], "{:,} datagrams were refused because their IP fragments overlap"),
        (fragments["timed_out"] + fragments["incomplete"], "{:,} datagrams lack IP fragments"),
        (fragments["no_memory"], "{:,} datagrams were given up: too many waited for IP fragments"),
        (fragments["malformed"], "{:,} IP fragments are damaged or truncated"),
    )
    return [text.format(count) for count, text in told if count]


def _under_way(count: int) -> str:
    return f", {count:,} of them already open when the capture began" if count else ""
