"""Makes almost valid inputs from valid ones, for tests of code that reads hostile input.

Each test tries a fixed number of inputs, the same in every run. HEADRACE_FUZZ_SECONDS in the environment makes it
continue with others for that time; scripts/fuzz.sh sets it. HEADRACE_FUZZ_FIRST is the number of the first case, so
that a long run does not repeat those of the one before.
"""

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

SECONDS = float(os.environ.get("HEADRACE_FUZZ_SECONDS", "0"))
FIRST = int(os.environ.get("HEADRACE_FUZZ_FIRST", "0"))

_NUMBERS = (
    *("0", "-1", "1", "+3", "1e400", "-1e400", "1e-400", "nan", "inf", "-inf", "NaN", "Infinity", "1_0", "0x10", ".5"),
    *("2147483648", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *("9" * 26, "9" * 5000, "1e22", "1e-30", "5e-324", "1.7976931348623157e308"),
)
_TOKENS = (
    *("[", "]", "{", "}", '"', "'", ":", ",", "=", "#", "\\", "\r", "\n", "\r\n", "\0", "\x1b[2J", " ", "\t", "\ufeff"),
    *("\N{NO-BREAK SPACE}", "\x85", "\u2028", "true", "false", "null", "[" * 2000, "{" * 2000, "a" * 5000, "../../x"),
)


def cases(rounds: int, seed: int = 1) -> Iterator[tuple[int, random.Random]]:
    """Yields numbers, each with a generator that depends only on it; more of them with HEADRACE_FUZZ_SECONDS.

    A failing test prints the number; `case(number, seed)` repeats it.
    """
    until = time.monotonic() + SECONDS
    number = FIRST
    while number < FIRST + rounds or time.monotonic() < until:
        yield number, case(number, seed)
        number += 1


def case(number: int, seed: int = 1) -> random.Random:
    """The generator of one case."""
    return random.Random(f"{seed} {number}")


class Mutator:
    """Changes texts in a few places.

    Args:
        texts: valid texts.
        tokens: inserted besides numbers and punctuation.
    """

    def __init__(self, texts: Sequence[bytes], tokens: Sequence[str] = ()) -> None:
        self._texts = texts
        self._tokens = [token.encode() for token in (*_TOKENS, *_NUMBERS, *tokens)]

    def make(self, choose: random.Random, most: int = 6) -> bytes:
        """One of the texts with some changes."""
        text = bytearray(choose.choice(self._texts))
        for _ in range(choose.randint(1, most)):
            self._change(text, choose)
        return bytes(text)

    def _change(self, text: bytearray, choose: random.Random) -> None:
        at = choose.randint(0, len(text))
        end = min(len(text), at + choose.choice((1, 1, 2, 4, 16, 64)))
        match choose.randrange(8):
            case 0 if text:
                text[min(at, len(text) - 1)] ^= 1 << choose.randrange(8)
            case 1:
                del text[at:end]
            case 2:
                text[at:at] = text[at:end] * choose.choice((1, 2, 100))
            case 3:
                text[at:at] = choose.choice(self._tokens)
            case 4:
                text[at:end] = choose.choice(self._tokens)
            case 5:
                self._replace_number(text, at, choose)
            case 6:
                self._move_line(text, choose)
            case _:
                other = choose.choice(self._texts)
                cut = choose.randint(0, len(other))
                text[at:end] = other[cut : cut + choose.randint(0, 40)]

    @staticmethod
    def _replace_number(text: bytearray, at: int, choose: random.Random) -> None:
        """Replaces the first number after a place."""
        begin = next((i for i in range(at, len(text)) if chr(text[i]).isdigit()), None)
        if begin is None:
            return
        end = next((i for i in range(begin, len(text)) if chr(text[i]) not in "0123456789.e+-"), len(text))
        text[begin:end] = choose.choice(_NUMBERS).encode()

    @staticmethod
    def _move_line(text: bytearray, choose: random.Random) -> None:
        lines = bytes(text).splitlines(keepends=True)
        if len(lines) < 2:
            return
        line = lines.pop(choose.randrange(len(lines)))
        for _ in range(choose.choice((0, 1, 1, 2))):
            lines.insert(choose.randint(0, len(lines)), line)
        text[:] = b"".join(lines)


def pieces(data: bytes, choose: random.Random) -> list[bytes]:
    """The same bytes in arbitrary pieces, often byte by byte or all at once."""
    longest = choose.choice((1, 3, 20, 500, len(data) + 1))
    found, at = [], 0
    while at < len(data):
        count = choose.randint(1, longest)
        found.append(data[at : at + count])
        at += count
    return found


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the main thread if the block takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
