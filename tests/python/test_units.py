"""Formatting of byte counts: like format_bytes(), whose test tests/unit/base_test.cpp has the same texts."""

import pytest

from headrace.units import GIB, KIB, MIB, bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (64 * KIB, "64 KiB"),
        (3 * GIB // 2, "1.5 GiB"),
        (1_256_277_934, "1.17 GiB"),
        (1000 * MIB, "1000 MiB"),
        (GIB - 1, "1024 MiB"),
        (5000 * GIB, "4.88 TiB"),
    ],
)
def test_bytes(count: int, text: str):
    assert bytes_text(count) == text
