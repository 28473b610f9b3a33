"""Text from outside: read from files, and as it may be shown on a terminal."""

from pathlib import Path

from headrace.errors import DataError, reading


def read_utf8(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: when it is not UTF-8.
        SystemError: when it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise reading(path, error) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8: {error}") from None


def printable(text: str) -> str:
    """The text as it can be shown: what is not UTF-8, or would move the cursor, is replaced."""
    decoded = text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "replace").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in decoded.expandtabs())


def _is_escaped(text: str) -> bool:
    """Whether every surrogate stands for a byte, as in names of files."""
    return all(not 0xD800 <= ord(letter) <= 0xDFFF or 0xDC80 <= ord(letter) <= 0xDCFF for letter in text)  # noqa: PLR2004
