"""Text from outside: reading it from files, and showing it safely on a terminal."""

import json
import re
from pathlib import Path
from typing import Any, BinaryIO

from headrace.errors import DataError, reading

# Control characters except tab, line separators, direction overrides, lone surrogates.
_HARMFUL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]")


# Far beyond any scene, list of inputs, results file or corpus line; /dev/zero and pipes may never end.
READ_BYTES_MAX = 256 << 20
_PIECE_BYTES = 1 << 20


def too_long(name: object, what: str = "it has") -> DataError:
    """The exception for a file, or a line, that exceeds READ_BYTES_MAX."""
    return DataError(f"{name}: {what} more than {READ_BYTES_MAX >> 20} MiB, which is the limit")


def read_whole(file: BinaryIO, name: object) -> bytes:
    """Reads the remaining bytes of a file.

    Raises:
        DataError: when there are more than READ_BYTES_MAX.
    """
    content = bytearray()
    while piece := file.read(_PIECE_BYTES):  # a single read of the whole limit would allocate all of it at once
        content += piece
        if len(content) > READ_BYTES_MAX:
            raise too_long(name)
    return bytes(content)


def read_bytes(path: Path) -> bytes:
    """Reads all bytes of a file.

    Raises:
        DataError: when there are more than READ_BYTES_MAX.
        SystemError: when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return read_whole(file, path)
    except OSError as error:
        raise reading(path, error) from None


def read_utf8(path: Path) -> str:
    """Reads the text of a file.

    Raises:
        DataError: when it is not UTF-8, or too long, as read_bytes() has it.
        SystemError: when it cannot be read.
    """
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")  # newlines as in files opened in text mode


def parse_json(text: str | bytes, name: object) -> Any:  # noqa: ANN401 - whatever it holds
    """Parses JSON text; errors begin with `name`.

    Raises:
        DataError: when it is not JSON or not UTF-8, is nested too deeply, or has a number with thousands of digits.
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
    except ValueError:  # raised by the standard library for a number with thousands of digits
        raise DataError(f"{name}: not JSON that can be read: a number has too many digits") from None


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever it holds
    """Reads a JSON file.

    Raises:
        DataError: as parse_json() does.
        SystemError: when it cannot be read.
    """
    return parse_json(read_utf8(path), path)


def printable(text: str) -> str:
    """The text in printable form: anything that is not UTF-8 or would move the cursor is replaced."""
    decoded = text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "replace").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in decoded.expandtabs())


def harmless(text: str) -> str:
    """Text of any language, with anything replaced that would move the cursor or change the direction.

    Unlike printable(), it keeps joiners and all kinds of spaces, which languages need.
    """
    return _HARMFUL.sub("\ufffd", text)


def shortened(text: str, most: int = 40) -> str:
    """A text cut to at most `most` characters, for a message."""
    return text if len(text) <= most else f"{text[:most]}..."


def _is_escaped(text: str) -> bool:
    """Whether every surrogate stands for a byte, as in file names."""
    return all(not 0xD800 <= ord(letter) <= 0xDFFF or 0xDC80 <= ord(letter) <= 0xDCFF for letter in text)  # noqa: PLR2004
