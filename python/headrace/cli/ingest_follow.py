"""What `headrace ingest --follow` says about a capture, besides its streams."""

from collections.abc import Mapping


def follow_notes(follow: Mapping[str, int]) -> list[str]:
    """One sentence for each thing that a user has to know, from the counters of Receiver.counters()["follow"]."""
    told = (
        (follow["connections"], "{:,} TCP connections" + _under_way(follow["under_way"])),
        (follow["missing_bytes"], "{:,} bytes are not in the capture: zeros stand for them"),
        (follow["cut_bytes"], "{:,} bytes of TCP payload were cut off when the capture was made (its snap length)"),
        (
            follow["bad_checksums"],
            "{:,} packets were refused for wrong checksums: if a card was to fill them in, use --trust-checksums",
        ),
        (follow["malformed"], "{:,} packets end before their headers do, or contradict themselves"),
        (follow["other"] + follow["unsupported"], "{:,} packets are not TCP, or of another port"),
        (follow["late_bytes"], "{:,} bytes came after their gap was given up, or after their connection had ended"),
        (
            follow["unproven_bytes"],
            "{:,} bytes were left out: behind a gap of more than 16 MiB that nobody acknowledged",
        ),
        (follow["given_up"], "{:,} gaps were given up for want of memory: a larger --hold waits longer"),
        (follow["forgotten"], "{:,} connections were ended early: too many were open at once"),
    )
    return [text.format(count) for count, text in told if count]


def fragment_notes(fragments: Mapping[str, int]) -> list[str]:
    """The same of IP fragments, from Receiver.counters()["fragments"]."""
    told = (
        (fragments["overlapping"], "{:,} datagrams were refused because their IP fragments overlap"),
        (fragments["timed_out"] + fragments["incomplete"], "{:,} datagrams lack IP fragments"),
        (fragments["no_memory"], "{:,} datagrams were given up: too many waited for IP fragments"),
        (fragments["malformed"], "{:,} IP fragments are damaged, or were captured in part"),
    )
    return [text.format(count) for count, text in told if count]


def _under_way(count: int) -> str:
    return f", {count:,} of them under way when the capture began" if count else ""
