# ruff: noqa: RUF001, RUF003 - these tests are about characters that look alike
"""Text in many scripts: Unicode words, compared with SQLite's FTS5, and invalid corpora."""

import gzip
import random
import sqlite3
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import DataError, Index, UsageError
from headrace.corpus import Format, build_index
from headrace.operators import BruteForce, IndexBuilder

WORDS = {
    "latin": ["école", "straße", "naïve", "Łódź", "mañana", "crème", "ålesund", "zażółć", "hello", "world", "2024"],
    "cyrillic": ["привет", "москва", "день", "ёлка", "україна", "ноябрь", "ключ", "вода", "объект"],
    "greek": ["καλημέρα", "αθήνα", "κόσμος", "θάλασσα", "ημέρα", "λόγος", "ψυχή"],
    "armenian": ["բարեւ", "քաղաք", "օր", "ջուր", "գիրք"],
    "arabic": ["مرحبا", "سلام", "كتاب", "مدرسة", "يوم"],
    "hebrew": ["שלום", "עולם", "ספר", "יום", "מים"],
    "hangul": ["안녕", "세계", "하늘", "바다", "학교"],
    "devanagari": ["नमस्ते", "दुनिया", "पानी", "किताब", "दिन"],
}
# Spaces and punctuation between words that belong to none.
BETWEEN = [" ", "\u00a0", " — ", "… ", ", ", " “", "” ", "« ", " »", "\u2028", "\u3000", "! ", " (", ") ", "-", "/"]


def hits(index: Index, query: str) -> list[int]:
    found = index.query(query, device="cpu:0")
    assert found.hits <= 15
    return found.ids


def cased(rng: random.Random, word: str) -> str:
    return rng.choice([str, str.upper, str.capitalize])(word) if word != "straße" else word


def text(rng: random.Random, words: list[str]) -> str:
    parts = []
    for _ in range(rng.randrange(1, 8)):
        parts += [cased(rng, rng.choice(words)), rng.choice(BETWEEN)]
    return "".join(parts)


@pytest.fixture(scope="module", params=[False, True], ids=["accents", "folded"])
def corpus(request):
    """Documents in all scripts, our index of them, and FTS5's."""
    rng = random.Random(7)
    documents = [text(rng, WORDS[rng.choice(list(WORDS))]) for _ in range(3000)]
    connection = sqlite3.connect(":memory:")
    removed = 2 if request.param else 0
    # Signs of Indic scripts belong to words; FTS5 must be told so.
    how = f"unicode61 remove_diacritics {removed} categories ''L* N* Co M*''"
    try:
        connection.execute(f"create virtual table t using fts5(x, tokenize='{how}')")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no FTS5")
    connection.executemany("insert into t(rowid, x) values (?, ?)", enumerate(documents))
    return documents, Index.build(documents, fold_diacritics=request.param), connection, request.param


def fts(connection, query: str) -> list[int]:
    return [row[0] for row in connection.execute("select rowid from t where t match ? order by rowid", (query,))]


def test_every_word_is_found_as_fts5_finds_it(corpus):
    _, index, connection, _ = corpus
    for words in WORDS.values():
        for word in words:
            # Full case folding turns ß into ss and a final ς into σ, which FTS5's simple folding does not.
            if "ß" in word or "ς" in word:
                continue
            theirs = fts(connection, f'"{word}"')
            for asked in (word, word.upper(), word.capitalize(), f"“{word}”", f"{word}…"):
                found = index.query(asked, device="cpu:0")
                assert (found.hits, found.ids) == (len(theirs), theirs[:15]), asked


def test_random_boolean_queries_agree_with_fts5_and_with_brute_force(corpus):
    documents, index, connection, folded = corpus
    brute = BruteForce(documents, fold_diacritics=folded)
    rng = random.Random(11)
    words = [word for script in WORDS.values() for word in script if "ς" not in word and word != "straße"]
    for _ in range(400):
        a, b, c = (rng.choice(words) for _ in range(3))
        ours = rng.choice(["{a} AND {b}", "{a} OR {b}", "({a} OR {b}) AND NOT {c}", "{a} AND ({b} OR {c})"])
        asked = ours.format(a=a, b=b.upper(), c=c)
        theirs = fts(connection, ours.replace("AND NOT", "NOT").format(a=f'"{a}"', b=f'"{b}"', c=f'"{c}"'))
        found = index.query(asked, device="cpu:0")
        assert (found.hits, found.ids) == (len(theirs), theirs[:15]), asked
        assert found == brute.answer(asked)


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("École normale", "école"),
        ("МОСКВА", "москва"),
        ("say “hello” twice", "hello"),
        ("word—word and «День»", "день"),
        ("no\u00a0break", "break"),
        ("\ufeffhello there", "hello"),
        ("cafe\u0301 noir", "café"),
        ("café noir", "cafe\u0301"),
        ("STRASSE", "straße"),
        ("Σίσυφος", "σίσυφοσ"),
        ("ﬁne print", "fine"),
        ("Ｆｕｌｌ width", "full"),
        ("don't panic", "don't"),
        ("state-of-the-art", "state-of-the-art"),
        ("state-of-the-art", "art"),
        ("about 3.14 of it", "3.14"),
        ("1,234.5 in all", "1,234.5"),
        ("this and that", '"and"'),
        ("東京、大阪へ行く", "東京"),
        ("東京、大阪へ行く", "大阪"),
        ("ฉันรักภาษาไทย", "ภาษา"),
        ("soft\u00adware", "software"),
    ],
)
def test_a_word_is_found_however_it_is_written(document, query):
    index = Index.build(["nothing of it", document])
    assert hits(index, query) == [1]


def test_what_is_another_word_is_not_found():
    index = Index.build(["école", "ecole", "東京", "京都"])
    assert hits(index, "ecole") == [1]
    assert hits(index, "東京") == [2]
    folded = Index.build(["école", "ecole", "Ёлка"], fold_diacritics=True)
    assert hits(folded, "ÉCOLE") == [0, 1]
    assert hits(folded, "елка") == [2]


def test_words_that_are_operators_are_found_in_quotes():
    index = Index.build(["salt and pepper", "salt", "to be or not to be"])
    assert hits(index, 'salt "and"') == [0]
    assert hits(index, '"or" AND "not"') == [2]
    assert hits(index, 'NOT "salt and"') == [1, 2]
    assert hits(index, "salt NOT well-known") == [0, 1]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ('"open', "query, position 1: this quote is not closed"),
        ("salt — pepper", "query, position 6: '—' has no letter or digit to search for"),
        ('""', "has no letter or digit to search for"),
        ("\ud800", "query: it has a lone surrogate"),
    ],
)
def test_what_is_no_query_is_one_line(query, says):
    index = Index.build(["salt"])
    with pytest.raises(UsageError, match=says) as caught:
        index.compile(query)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=says):
        index.query(query)


@pytest.mark.parametrize("folded", [False, True])
def test_a_file_keeps_the_rules(tmp_path, folded):
    path = tmp_path / "x.hridx"
    Index.build(["Crème", "creme"], fold_diacritics=folded).save(path)
    loaded = Index.load(path)
    assert (loaded.words, loaded.fold_diacritics) == ("unicode", folded)
    assert hits(loaded, "CRÈME") == ([0, 1] if folded else [0])
    builder = IndexBuilder(fold_diacritics=folded)
    builder.add("Crème")
    assert builder.build().fold_diacritics == folded


def test_a_leftover_of_a_save_blocks_no_other(tmp_path):
    index = Index.build(["one"])
    path = tmp_path / "x.hridx"
    code = f"import os; from headrace import Index; print(os.getpid()); Index.build(['one']).save({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (tmp_path / f"x.hridx.{done.stdout.strip()}.tmp").touch()
    index.save(path)
    index.save(path)
    assert sorted(one.name for one in tmp_path.iterdir() if not one.name.endswith(f"{done.stdout.strip()}.tmp")) == [
        "x.hridx"
    ]


def test_a_corpus_with_a_byte_order_mark_has_its_first_word(tmp_path):
    path = tmp_path / "bom.txt"
    path.write_bytes("\ufeffhello world\nsecond line\n".encode())
    assert hits(build_index(path), "hello") == [0]


def test_lone_surrogates_are_one_line(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"text": "fine"}\n{"text": "\\ud800 lone"}\n')
    with pytest.raises(DataError, match=r"s.jsonl, line or record 2: document 1: it has a lone surrogate"):
        build_index(path)
    with pytest.raises(DataError, match="document 1: it has a lone surrogate"):
        Index.build(["fine", "\ud800"])
    with pytest.raises(DataError, match="document 0: it has a lone surrogate"):
        IndexBuilder().add("\ud800")


def test_deep_json_is_one_line(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"text": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(DataError, match=r"deep.jsonl, line 1:"):
        build_index(path)


def test_two_columns_of_one_name_are_one_line(tmp_path):
    path = tmp_path / "dup.parquet"
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, path)
    with pytest.raises(UsageError, match=r"dup.parquet has 2 fields called 'text'"):
        build_index(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_text_of_parquet_may_be_stored_in_any_way(tmp_path, kind):
    path = tmp_path / "kinds.parquet"
    array = pa.array(["École", "nothing"]).dictionary_encode().cast(kind)
    pq.write_table(pa.table({"text": array}), path)
    assert hits(build_index(path), "école") == [0]


def test_a_compressed_corpus_is_named_so(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(gzip.compress(b'{"text": "x"}\n'))
    with pytest.raises(DataError, match="is compressed with gzip"):
        build_index(path, Format.jsonl)
