"""Text from outside: read from files, and as it may be shown on a terminal."""

import json
import re
from pathlib import Path
from typing import Any, BinaryIO

from headrace.errors import DataError, reading

# Controls but for the tab, separators of lines, overrides of direction, lone surrogates.
_HARMFUL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]")


# Far beyond any scene, list of inputs, results file, or line of a corpus; /dev/zero and pipes may have no end.
READ_BYTES_MAX = 256 << 20
_PIECE_BYTES = 1 << 20


def too_long(name: object, what: str = "it has") -> DataError:
    """The exception for a file, or a line, that goes on beyond READ_BYTES_MAX."""
    return DataError(f"{name}: {what} more than {READ_BYTES_MAX >> 20} MiB, which is the limit")


def read_whole(file: BinaryIO, name: object) -> bytes:
    """All bytes that are left in a file.

    Raises:
        DataError: when they are more than READ_BYTES_MAX.
    """
    content = bytearray()
    while piece := file.read(_PIECE_BYTES):  # a read of the whole limit would take its memory at once
        content += piece
        if len(content) > READ_BYTES_MAX:
            raise too_long(name)
    return bytes(content)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that is read at once.

    Raises:
        DataError: when they are more than READ_BYTES_MAX.
        SystemError: when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return read_whole(file, path)
    except OSError as error:
        raise reading(path, error) from None


def read_utf8(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: when it is not UTF-8, or too long, as read_bytes() has it.
        SystemError: when it cannot be read.
    """
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")  # as files that are opened as text have it


def parse_json(text: str | bytes, name: object) -> Any:  # noqa: ANN401 - whatever it holds
    """The value that JSON text stands for; errors begin with `name`.

    Raises:
        DataError: when it is not JSON or not UTF-8, is nested too deeply, or has a number of thousands of digits.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise DataError(f"{name}: not JSON: {error.msg} at {place}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise DataError(f"{name}: not JSON that can be read: it is nested too deeply") from None
    except ValueError:  # the standard library's, for a number of thousands of digits
        raise DataError(f"{name}: not JSON that can be read: a number has too many digits") from None


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever it holds
    """The content of a JSON file.

    Raises:
        DataError: as parse_json() does.
        SystemError: when it cannot be read.
    """
    return parse_json(read_utf8(path), path)


def printable(text: str) -> str:
    """The text as it can be shown: what is not UTF-8, or would move the cursor, is replaced."""
    decoded = text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "replace").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in decoded.expandtabs())


def harmless(text: str) -> str:
    """Text of any language with what would move the cursor or turn the direction around replaced.

    Unlike printable() it keeps joiners and spaces of every kind, which languages need.
    """
    return _HARMFUL.sub("\ufffd", text)


def shortened(text: str, most: int = 40) -> str:
    """At most so many characters of a text, for a message."""
    return text if len(text) <= most else f"{text[:most]}..."


def _is_escaped(text: str) -> bool:
    """Whether every surrogate stands for a byte, as in names of files."""
    return all(not 0xD800 <= ord(letter) <= 0xDFFF or 0xDC80 <= ord(letter) <= 0xDCFF for letter in text)  # noqa: PLR2004
