"""Reads a scene's tables, with errors that name file, key and value."""

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from headrace.errors import UsageError


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as "; did you mean 'permittivity'?", or the list of known words."""
    words = list(known)
    close = difflib.get_close_matches(word, words, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there are {', '.join(words)}" if words else ""


WHOLE_MOST = 1 << 53  # all smaller numbers are distinct as floating point as well
_DIGITS_SHOWN = 20


def _short(value: object) -> str:
    """A value for an error message, without thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**_DIGITS_SHOWN:
        return f"a number of more than {_DIGITS_SHOWN} digits"
    return repr(value)


class Keys:
    """One table of a scene file. Every requested key counts as known; done() refuses the others."""

    def __init__(self, path: Path, where: str, content: dict[str, Any]) -> None:
        self.where = where
        self._path = path
        self._content = content
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        """Whether the file has that key."""
        return key in self._content

    def error(self, what: str, key: str | None = None) -> UsageError:
        """The error for a key, or for the table."""
        place = " ".join(part for part in (self.where, key) if part)
        return UsageError(f"{self._path}: {place}: {what}" if place else f"{self._path}: {what}")

    def _take(self, key: str, default: Any) -> Any:  # noqa: ANN401 - whatever TOML holds
        self._known.append(key)
        if key in self._content:
            return self._content[key]
        if default is None:
            raise self.error("missing" + self._misspelt(key), key)
        return default

    def _misspelt(self, *keys: str) -> str:
        """A hint at a misspelt key in place of the missing one, if there is one."""
        unknown = [name for name in self._content if name not in self._known]
        close = [match for key in keys for match in difflib.get_close_matches(key, unknown, n=1)]
        return f"; is '{close[0]}' a misspelling?" if close else ""

    def either(self, first: str, second: str) -> str:
        """Which of two keys is given; exactly one must be."""
        given = [key for key in (first, second) if key in self]
        if len(given) != 1:
            what = "not both" if given else "but has neither" + self._misspelt(first, second)
            raise self.error(f"needs either {first} or {second}, {what}")
        return given[0]

    def _number(self, value: Any, key: str) -> float:  # noqa: ANN401
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{value!r} is not a number", key)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"{_short(value)} is not a finite number", key)
        return number

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        above: float | None = None,
        least: float | None = None,
        most: float | None = None,
    ) -> float:
        """A finite number; without a default the key is required."""
        value = self._number(self._take(key, default), key)
        if above is not None and value <= above:
            raise self.error(f"{value:g} is not above {above:g}", key)
        if least is not None and value < least:
            raise self.error(f"{value:g} is below {least:g}", key)
        if most is not None and value > most:
            raise self.error(f"{value:g} is above {most:g}", key)
        return value

    def whole(self, key: str, default: int | None = None, *, least: int = 0, most: int = WHOLE_MOST) -> int:
        """A whole number."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{value!r} is not a whole number", key)
        if value < least:
            raise self.error(f"{_short(value)} is below {least}", key)
        if value > most:
            raise self.error(f"{_short(value)} is above {most:,}", key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string."""
        value = self._take(key, default)
        if not isinstance(value, str) or (value == "" and default != ""):
            raise self.error(f"{value!r} is not text", key)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{_short(value)} is not true or false", key)
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the choices."""
        value = self.text(key, default)
        if value not in choices:
            raise self.error(f"there is no '{value}'{nearest(value, choices)}", key)
        return value

    def point(self, key: str, lengths: Sequence[int]) -> tuple[float, ...]:
        """A list of numbers with one of these lengths."""
        value = self._take(key, None)
        if not isinstance(value, list) or len(value) not in lengths:
            wanted = " or ".join(str(length) for length in lengths)
            raise self.error(f"{value!r} is not a list of {wanted} numbers", key)
        return tuple(self._number(number, key) for number in value)

    def per_axis(self, key: str, axes: int, *, above: float) -> tuple[float, ...]:
        """Numbers above a limit: one for all axes, or a list of one for each."""
        found = self.point(key, [axes]) if self.is_list(key) else (self.number(key),) * axes
        if min(found) <= above:
            raise self.error(f"{min(found):g} is not above {above:g}", key)
        return found

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of one or more numbers."""
        value = self._take(key, None)
        if not isinstance(value, list) or not value:
            raise self.error(f"{_short(value)} is not a list of numbers", key)
        return tuple(self._number(number, key) for number in value)

    def words(self, key: str, choices: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
        """A list of distinct words from the choices."""
        value = self._take(key, list(default))
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise self.error(f"{value!r} is not a list of words, such as {list(default)!r}", key)
        for word in value:
            if word not in choices:
                raise self.error(f"there is no '{word}'{nearest(word, choices)}", key)
        if len(set(value)) != len(value):
            raise self.error(f"{value!r} contains a word twice", key)
        return tuple(value)

    def is_list(self, key: str) -> bool:
        """Whether the key holds a list, for keys that also allow other types."""
        return isinstance(self._content.get(key), list)

    def names(self, key: str, count: int | None) -> tuple[str, ...]:
        """A list of `count` words, or of any number of them."""
        value = self._take(key, None)
        words = isinstance(value, list) and value and all(isinstance(word, str) for word in value)
        if not words or count not in (None, len(value)):
            raise self.error(f"{value!r} is not a list of {'one or more' if count is None else count} words", key)
        return tuple(value)

    def pairs(self, key: str, count: int) -> tuple[tuple[int, int], ...]:
        """A list of `count` pairs of whole numbers of 0 or more."""
        value = self._take(key, None)
        if not isinstance(value, list) or len(value) != count:
            raise self.error(f"{value!r} is not a list of {count} pairs", key)
        for pair in value:
            whole = isinstance(pair, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in pair)
            if not whole or len(pair) != 2 or not 0 <= min(pair) <= max(pair) <= WHOLE_MOST:  # noqa: PLR2004
                raise self.error(f"{pair!r} is not a pair of whole numbers of 0 or more", key)
        return tuple((pair[0], pair[1]) for pair in value)

    def is_table(self, key: str) -> bool:
        """Whether the key holds a table, for keys that also allow other types."""
        return isinstance(self._content.get(key), dict)

    def table(self, key: str, *, required: bool = False) -> "Keys":
        """A nested table; an empty one if there is none."""
        value = self._take(key, None if required else {})
        if not isinstance(value, dict):
            raise self.error(f"{value!r} is not a table: write [{key}]", key)
        outer = self.where[1:-1] + "." if re.fullmatch(r"\[[^][]*\]", self.where) else ""
        return Keys(self._path, f"[{outer}{key}]", value)

    def tables(self, key: str) -> list["Keys"]:
        """An array of tables; each is named by its outer table, its number (from 1) and its id."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.error(f"it is not an array of tables: write [[{key}]]", key)
        outer = f"{self.where} " if self.where else ""
        return [Keys(self._path, outer + _called(key, number, entry), entry) for number, entry in enumerate(value, 1)]

    def done(self) -> None:
        """Refuses keys that were not requested.

        Raises:
            UsageError: naming the first unknown key and the nearest known one.
        """
        for key in self._content:
            if key not in self._known:
                raise self.error(f"there is no key '{key}'{nearest(key, self._known)}")


def _called(key: str, number: int, entry: dict[str, Any]) -> str:
    name = entry.get("id")
    return f"[[{key}]] {number} '{name}'" if isinstance(name, str) else f"[[{key}]] {number}"
