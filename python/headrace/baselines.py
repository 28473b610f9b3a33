"""Alternatives to Headrace for comparison: a loop in Python, and SQLite's full-text index."""

import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.errors import Error

_WORD = re.compile(r"\w+(?:['\u2019.]\w+)*")
"""Splits words as the index does for most English text: an apostrophe or a dot between letters does not end a word."""
_TOKEN = re.compile(r"[()]|[^\s()]+")
_OPERATORS = {"AND", "OR", "NOT", "(", ")"}


@dataclass(frozen=True)
class Answered:
    """The rate at which queries were answered one after the other, and the number of hits of each."""

    per_second: float
    hits: list[int]


def python_condition(text: str) -> Callable[[frozenset[str]], bool]:
    """A query as a condition that a Python loop tests on the words of each document."""
    words = [
        token.lower() if token in {"AND", "OR", "NOT"} else token if token in "()" else f"{token.lower()!r} in words"
        for token in _TOKEN.findall(text)
    ]
    condition: Callable[[frozenset[str]], bool] = eval(f"lambda words: {' '.join(words)}", {"__builtins__": {}})
    return condition


def fts5_query(text: str) -> str:
    """A query in the syntax of SQLite's FTS5, whose NOT is a binary operator."""
    tokens = [token if token in _OPERATORS else f'"{token}"' for token in _TOKEN.findall(text)]
    return " ".join(tokens).replace("AND NOT", "NOT")


class PythonLoop:
    """Scans the words of every document for every query."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._words = [frozenset(_WORD.findall(document.lower())) for document in documents]

    def answer(self, text: str) -> int:
        """The number of documents that match."""
        condition = python_condition(text)
        return sum(1 for words in self._words if condition(words))


class Fts5:
    """SQLite's own full-text index, in memory.

    Raises:
        Error: when this Python's SQLite was built without FTS5.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._base = sqlite3.connect(":memory:")
        try:
            self._base.execute("CREATE VIRTUAL TABLE documents USING fts5(text, content='')")
        except sqlite3.OperationalError as error:
            raise Error(f"this Python's SQLite has no FTS5: {error}") from None
        rows = ((number, document) for number, document in enumerate(documents))
        self._base.executemany("INSERT INTO documents(rowid, text) VALUES (?, ?)", rows)

    def answer(self, text: str) -> int:
        """The number of documents that match."""
        found = self._base.execute("SELECT rowid FROM documents WHERE documents MATCH ?", (fts5_query(text),))
        return len(found.fetchall())


def timed(answer: Callable[[str], int], texts: Sequence[str], seconds: float) -> Answered:
    """Answers queries in order, one at a time, until all are answered or the time is up."""
    hits: list[int] = []
    began = time.perf_counter()
    for text in texts:
        hits.append(answer(text))
        if time.perf_counter() - began >= seconds:
            break
    return Answered(len(hits) / (time.perf_counter() - began), hits)
