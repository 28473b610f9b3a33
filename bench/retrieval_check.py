"""Compares random Boolean queries on text in ten scripts with SQLite's FTS5 (`unicode61`) and with tantivy.

Documents are drawn from the names of countries, regions and languages that Debian's package iso-codes translates. Each
query combines words of the documents with AND, OR, NOT and parentheses. Every document that one tool finds and another
does not is traced to a word, and the difference to one of the rules of docs/operators.md; a difference without a rule
is printed as "unexplained", and the exit status is 1.

The queries are timed too: retrieval.over_fts5.<script> and retrieval.over_tantivy.<script> are the time of a query
there over its time in Headrace, in turns. A client of Headrace compiles and submits its queries in batches, and the
peers take one at a time, as their interfaces allow. Every tool finds the number of matches and 15 of them.

    apt install iso-codes; pip install tantivy
    .venv/bin/python bench/retrieval_check.py [--queries 10000] [--save docs/results/retrieval.<machine>.json]
"""

import argparse
import gettext
import itertools
import random
import re
import shutil
import sqlite3
import statistics
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace
import row_by_row
from headrace import results
from headrace.profiles import Json

LANGUAGES = {
    "vi": "Latin",
    "ru": "Cyrillic",
    "el": "Greek",
    "ar": "Arabic",
    "he": "Hebrew",
    "hi": "Devanagari",
    "ko": "Hangul",
    "th": "Thai",
    "ja": "Japanese",
    "zh_CN": "Han",
}
_DOMAINS = ("iso_639-3", "iso_639-2", "iso_3166-1", "iso_3166-2")
_NAMES_PER_DOCUMENT = (1, 12)
_BATCH = 4096
_TANTIVY_BYTES = 40

Ids = frozenset[int]


def names_of(locale: Path, language: str) -> list[str]:
    """The translated names of a language."""
    names: set[str] = set()
    for domain in _DOMAINS:
        path = locale / language / "LC_MESSAGES" / f"{domain}.mo"
        if path.exists():
            with path.open("rb") as file:
                catalog: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
            names |= {text for key, text in catalog.items() if key and text}
    if not names:
        raise SystemExit(f"{locale} has no names in {language}: install iso-codes, or give its folder with --locale")
    return sorted(names)


def documents_of(names: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Documents with a few names each."""
    return [", ".join(rng.choices(names, k=rng.randint(*_NAMES_PER_DOCUMENT))) for _ in range(count)]


def words_of(documents: Sequence[str]) -> list[str]:
    """What a user regards as words: text between spaces, without surrounding punctuation."""
    words = set()
    for document in documents:
        for part in document.split():
            word = part.strip("".join(c for c in part if not unicodedata.category(c).startswith(("L", "N", "M"))))
            if word and any(unicodedata.category(c)[0] in "LN" for c in word):
                words.add(word)
    return sorted(words)


@dataclass(frozen=True)
class Ask:
    """A Boolean query: a shape such as "({} OR {}) AND NOT {}", and its words."""

    shape: str
    words: tuple[str, ...]

    def text(self, quote: Callable[[str], str]) -> str:
        """The query, with each word formatted by `quote`."""
        return self.shape.format(*map(quote, self.words))


_SHAPES = (
    "{}",
    "{} AND {}",
    "{} OR {}",
    "{} AND NOT {}",
    "({} OR {}) AND {}",
    "({} OR {}) AND NOT {}",
    "({} AND {}) OR ({} AND {})",
    "({} OR {} OR {}) AND ({} OR {})",
)


def asks_of(words: Sequence[str], count: int, rng: random.Random) -> list[Ask]:
    """Random queries of random words."""
    asks = []
    for _ in range(count):
        shape = rng.choice(_SHAPES)
        asks.append(Ask(shape, tuple(rng.choice(words) for _ in range(shape.count("{}")))))
    return asks


def _quoted(word: str) -> str:
    return f'"{word}"'


class Headrace:
    """All ids from the host, for comparison, and answers (a count and 15 ids) from an engine, for timing."""

    def __init__(self, documents: Sequence[str], plan: headrace.Plan) -> None:
        self._index = headrace.Index.build(documents)
        self._engine = headrace.Engine("cpu:0", headrace.retrieval(self._index), plan)
        self._client = self._engine.connect()

    def close(self) -> None:
        """Ends the engine."""
        self._engine.stop()

    def takes(self, ask: Ask) -> bool:
        """Whether a query is within the limit of terms: long words of scripts without spaces have many."""
        try:
            self._index.compile(ask.text(_quoted))
        except headrace.UsageError:
            return False
        return True

    def ids(self, ask: Ask) -> Ids:
        """All documents that match."""
        return frozenset(self._index.matches(ask.text(_quoted)).tolist())

    def batched(self, asks: Sequence[Ask]) -> tuple[float, float]:
        """Seconds per query: to compile it, and to get its answer."""
        texts = [ask.text(_quoted) for ask in asks]
        compiled = answered = 0.0
        for start in range(0, len(texts), _BATCH):
            began = time.perf_counter()
            queries = self._index.compile_many(texts[start : start + _BATCH])
            compiled += time.perf_counter() - began
            began = time.perf_counter()
            self._client.ask_many(queries)
            answered += time.perf_counter() - began
        return compiled / len(texts), answered / len(texts)


class Fts5:
    """SQLite's index in memory, with the default tokenizer unicode61, except that diacritics count."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._base = sqlite3.connect(":memory:")
        how = "unicode61 remove_diacritics 0"
        self._base.execute(f"CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize='{how}')")
        self._base.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", enumerate(documents))

    def ids(self, ask: Ask) -> Ids:
        """All documents that match."""
        text = ask.text(_quoted).replace("AND NOT", "NOT")
        return frozenset(row for (row,) in self._base.execute("SELECT rowid FROM t WHERE t MATCH ?", (text,)))

    def one_by_one(self, asks: Sequence[Ask]) -> float:
        """Seconds per query: the count of all matches, and 15 of them."""
        texts = [ask.text(_quoted).replace("AND NOT", "NOT") for ask in asks]
        began = time.perf_counter()
        for text in texts:
            self._base.execute("SELECT count(*) FROM t WHERE t MATCH ?", (text,)).fetchall()
            self._base.execute("SELECT rowid FROM t WHERE t MATCH ? LIMIT 15", (text,)).fetchall()
        return (time.perf_counter() - began) / len(texts)


class Tantivy:
    """tantivy's index in memory, with its default tokenizer (words of letters and digits, in lower case)."""

    def __init__(self, documents: Sequence[str]) -> None:
        import tantivy  # noqa: PLC0415 - a peer, which is not among what the project needs

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("x", stored=False)
        builder.add_unsigned_field("id", stored=True, fast=True)
        self._folder = tempfile.mkdtemp()
        self._index = tantivy.Index(builder.build(), path=self._folder)
        writer = self._index.writer(heap_size=200 << 20, num_threads=1)
        for number, document in enumerate(documents):
            entry = tantivy.Document(x=document)
            entry.add_unsigned("id", number)
            writer.add_document(entry)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()
        self._all = len(documents)

    def close(self) -> None:
        """Removes the index."""
        shutil.rmtree(self._folder)

    def _parse(self, ask: Ask) -> Any:  # noqa: ANN401 - of tantivy, which has no types
        """The query; None if all its words are too long for tantivy."""
        wanted, *unwanted = ask.text(_quoted).split(" AND NOT ")  # its parser treats this differently
        try:
            return self._index.parse_query(f"+({wanted})" + "".join(f" -{one}" for one in unwanted), ["x"])
        except ValueError:
            return None

    def ids(self, ask: Ask) -> Ids:
        """All documents that match."""
        query = self._parse(ask)
        if query is None:
            return frozenset()
        found = self._searcher.search(query, limit=self._all, count=False, order_by_field="id")
        return frozenset(value for value, _ in found.hits)

    def one_by_one(self, asks: Sequence[Ask]) -> float:
        """Seconds per query: the count of all matches, and 15 of them."""
        began = time.perf_counter()
        for ask in asks:
            query = self._parse(ask)
            if query is not None:
                self._searcher.search(query, limit=15, count=True)
        return (time.perf_counter() - began) / len(asks)


_JOINS = "".join(
    chr(c) for c in (0x27, 0x2019, 0x2018, 0x2E, 0x2024, 0xB7, 0x387, 0x3A, 0x2C, 0x5F, 0x5F4, 0x5F3, 0x22)
)
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f々〆ー]"
)


def _folds(text: str) -> bool:
    """Whether full case folding and NFKC change more than lower case does."""
    return unicodedata.normalize("NFKC", text).casefold() != text.lower()


def _has(categories: str) -> Callable[[str], bool]:
    """Whether a text has a character of a general category, or of a group of categories."""
    return lambda text: any(unicodedata.category(c).startswith(categories) for c in text)


_RULES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("pairs of characters in scripts without spaces", lambda text: _NO_SPACES.search(text) is not None),
    ("ignorable characters are dropped", _has("Cf")),
    ("marks belong to words", _has("M")),
    ("a geresh belongs to its word (UAX #29)", lambda text: re.search("\u05f3|[\u05d0-\u05ea]'", text) is not None),
    ("apostrophes, dots and the like within words (UAX #29)", lambda text: any(c in _JOINS for c in text[1:-1])),
    ("digits and Hangul are words of their own (ICU)", lambda text: re.search("[0-9][가-힣]", text) is not None),
    ("full case folding and compatibility forms", _folds),
)
"""The rules, and where each may apply: to a word of the query, or to its surroundings in a document."""


_LONG = "tantivy drops words of 40 bytes and more"


def _is_alphabetic(character: str) -> bool:
    """The characters of tantivy's words: Thai vowels belong to them, Thai tone marks do not."""
    return unicodedata.category(character)[0] in "LNM" and not "\u0e47" <= character <= "\u0e4c"


def _is_long(word: str) -> bool:
    """Whether tantivy drops the word, and with it that part of a compound query."""
    parts = "".join(c if _is_alphabetic(c) else " " for c in word).split()
    return any(len(part.encode()) >= _TANTIVY_BYTES for part in parts)


def explain(word: str, document: str, tool: str) -> str:
    """The rule of docs/operators.md by which one tool finds a word in a document and another does not."""
    if tool == "tantivy" and _is_long(word):
        return _LONG
    around = re.compile(f"[^\\s]*{re.escape(word)}[^\\s]*", re.IGNORECASE)
    places = [word, *around.findall(document)]
    for rule, applies in _RULES:
        if any(map(applies, places)):
            return rule
    if any(unicodedata.category(c)[0] not in "LN" for c in word):
        return "a word in quotes asks for its parts, not for their order"
    return "unexplained"


def compare(
    ours: Headrace, theirs: Fts5 | Tantivy, asks: Sequence[Ask], documents: Sequence[str]
) -> tuple[Counter[str], list[str]]:
    """How often each rule explains a query whose ids differ, and differences without a rule."""
    tally: Counter[str] = Counter()
    lines = []
    tool = "tantivy" if isinstance(theirs, Tantivy) else "fts5"
    known: dict[str, tuple[Ids, Ids]] = {}

    def both(word: str) -> tuple[Ids, Ids]:
        if word not in known:
            one = Ask("{}", (word,))
            known[word] = (ours.ids(one), theirs.ids(one))
        return known[word]

    for ask in asks:
        differ = ours.ids(ask) ^ theirs.ids(ask)
        if not differ:
            tally["equal"] += 1
            continue
        reasons = set()
        otherwise = _LONG if tool == "tantivy" and any(map(_is_long, ask.words)) else "unexplained"
        for number in itertools.islice(sorted(differ), 20):
            here = {explain(w, documents[number], tool) for w in ask.words if number in both(w)[0] ^ both(w)[1]}
            reasons |= here or {otherwise}
        reason = "unexplained" if "unexplained" in reasons else min(reasons)
        tally[reason] += 1
        if reason == "unexplained":
            lines.append(f"{ask.text(_quoted)}: {sorted(differ)[:3]} {documents[min(differ)]!r}")
    return tally, lines


def _timed(ours: Headrace, fts5: Fts5, tantivy: Tantivy, asks: Sequence[Ask], samples: int) -> dict[str, list[float]]:
    """Microseconds per query of each tool and part, measured in turns."""
    took: dict[str, list[float]] = {"compile": [], "answer": [], "fts5": [], "tantivy": []}
    for _ in range(samples):
        seconds = *ours.batched(asks), fts5.one_by_one(asks), tantivy.one_by_one(asks)
        for times, one in zip(took.values(), seconds, strict=True):
            times.append(one * 1e6)
    return took


def _rows(given: argparse.Namespace) -> Iterator[Json]:
    rng = random.Random(given.seed)
    plan = headrace.serve.find_rung(given.plan).plan
    for language, script in LANGUAGES.items():
        documents = documents_of(names_of(given.locale, language), given.documents, rng)
        asks = asks_of(words_of(documents), given.queries // len(LANGUAGES), rng)
        ours, fts5, tantivy = Headrace(documents, plan), Fts5(documents), Tantivy(documents)
        drawn = len(asks)
        asks = [ask for ask in asks if ours.takes(ask)]
        took = _timed(ours, fts5, tantivy, asks, given.samples)
        about: Json = {
            "documents": len(documents),
            "queries": len(asks),
            "refused_too_many_terms": drawn - len(asks),
            "plan": given.plan,
            "us": {part: round(statistics.median(times), 3) for part, times in took.items()},
        }
        for name, tool in (("fts5", fts5), ("tantivy", tantivy)):
            tally, lines = compare(ours, tool, asks, documents)
            for line in lines:
                row_by_row.say(f"{script}, {name}: {line}")
            times = zip(took[name], took["compile"], took["answer"], strict=True)
            ratios = [theirs / (compiled + answered) for theirs, compiled, answered in times]
            agreed = {"explained": dict(tally), "verified": tally["unexplained"] == 0}
            yield results.row(f"retrieval.over_{name}.{script.lower()}", ratios, "ratio", None, about | agreed)
        tantivy.close()
        ours.close()


def main() -> int:
    """Exit status 1 if a difference has no explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locale", type=Path, default=Path("/usr/share/locale"))
    parser.add_argument("--queries", type=int, default=10_000, help="total number of queries")
    parser.add_argument("--documents", type=int, default=20_000, help="number of documents of each script")
    parser.add_argument("--samples", type=int, default=7, help="number of times that each tool is asked everything")
    parser.add_argument("--plan", default="caller", help="technique of the engine, by the id of its rung")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    given.device = "cpu:0"
    return row_by_row.run("retrieval", given, lambda _: _rows(given))


if __name__ == "__main__":
    raise SystemExit(main())
