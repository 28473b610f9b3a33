"""Sizes of units, and formatting of byte counts."""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30  # bytes; units of memory and file sizes

GIGA = 1e9  # unit of rates: 1 GB/s is GIGA bytes per second
GIGABIT = GIGA / 8  # bytes per Gb

NANO = 1e-9  # seconds
MICROSECONDS = 1e6  # per second


def bytes_text(count: float) -> str:
    """Text such as "1023 B", "64 KiB" or "1.17 GiB": three digits, as by format_bytes() in C++."""
    if count < KIB:
        return f"{count:.0f} B"
    value, unit = float(count), ""
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        value, unit = value / KIB, larger
        if value < KIB:
            break
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"  # noqa: PLR2004 - else 1e+03
