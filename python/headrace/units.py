"""The sizes of units, and how counts of bytes are printed."""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30  # bytes; sizes of memory and of files count in these

GIGA = 1e9  # rates count in these: a GB/s is GIGA bytes in a second
GIGABIT = GIGA / 8  # bytes of a Gb

NANO = 1e-9  # s
MICROSECONDS = 1e6  # of a second


def bytes_text(count: float) -> str:
    """Such as "1023 B", "64 KiB" or "1.17 GiB": three digits, as format_bytes() of C++ writes them."""
    if count < KIB:
        return f"{count:.0f} B"
    value, unit = float(count), ""
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        value, unit = value / KIB, larger
        if value < KIB:
            break
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"  # noqa: PLR2004 - else 1e+03
