"""Helpers for NumPy files that may be damaged."""

import lzma
import struct
import zlib
from tokenize import TokenError
from zipfile import BadZipFile

BROKEN = (
    *(OSError, MemoryError, ValueError, TypeError, KeyError, EOFError, OverflowError, RuntimeError),
    *(SyntaxError, TokenError, BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
"""Exceptions of np.load() and its archives for invalid content, including header parsing and decompression.
RuntimeError covers encryption, unknown compression and headers that are nested too deeply."""
