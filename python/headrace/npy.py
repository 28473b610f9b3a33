"""Files of NumPy's arrays that may be damaged."""

import lzma
import struct
import zlib
from tokenize import TokenError
from zipfile import BadZipFile

BROKEN = (
    *(OSError, MemoryError, ValueError, TypeError, KeyError, EOFError, OverflowError, RuntimeError),
    *(SyntaxError, TokenError, BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
"""What np.load() and its archives raise for content that is none: also what parses headers, and unpacks. RuntimeErrors
are encryption, ways to compress that are not known, and headers that are nested too deeply."""
