# ruff: noqa: RUF001 - these tests are about the typographic apostrophe
"""Stemmed words, compared with the stemmer of SQLite's FTS5, and through the file and the command line."""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from conftest import Run

from headrace import Index, UsageError
from headrace.corpus import documents, locate
from headrace.operators import BruteForce, IndexBuilder

pytestmark = pytest.mark.skipif(not Index.stem_languages(), reason="built without libstemmer")

# FTS5 has changes that Porter made to his algorithm after he published it (-logi and -bli are suffixes, words of two
# letters stay as they are), and Snowball's "porter" undoes doubled consonants from a list that has no kk.
DIFFERENT = re.compile(r"^..?$|(log|bl)(y|ies|i)$|kk(ed|ing)$")


@pytest.fixture(scope="module")
def words() -> list[str]:
    """All words of WordNet's glosses and more, each a document."""
    text = " ".join(one.decode() if isinstance(one, bytes) else one for one in documents(locate("wordnet")))
    return sorted({word for word in re.findall("[a-z]+", text.lower()) if not DIFFERENT.search(word)})


@pytest.fixture(scope="module")
def porter(words: list[str]) -> Index:
    return Index.build(words, stem="porter")


@pytest.fixture(scope="module")
def fts5(words: list[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("create virtual table t using fts5(x, tokenize='porter unicode61')")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no FTS5")
    connection.executemany("insert into t(rowid, x) values (?, ?)", enumerate(words))
    connection.execute("create virtual table v using fts5vocab(t, 'instance')")
    return connection


def test_every_word_of_wordnet_has_the_stem_that_fts5_gives_it(
    words: list[str], porter: Index, fts5: sqlite3.Connection
):
    assert len(words) > 50_000
    stems: dict[str, list[int]] = {}
    for stem, document in fts5.execute("select term, doc from v order by doc"):
        stems.setdefault(stem, []).append(document)
    assert porter.term_count == len(stems) < 0.8 * len(words)
    wrong = {stem: found for stem, found in stems.items() if porter.postings(stem).tolist() != found}
    assert not wrong


def test_words_of_queries_are_stemmed_as_fts5_stems_them(words: list[str], porter: Index, fts5: sqlite3.Connection):
    brute = BruteForce(words, stem="porter")
    for number, word in enumerate(words[::400]):
        theirs = [row[0] for row in fts5.execute("select rowid from t where t match ? order by rowid", (word,))]
        assert porter.matches(word.upper() if number % 2 else word).tolist() == theirs, word
        assert brute.answer(word).hits == len(theirs)


@pytest.mark.parametrize(
    ("language", "document", "query"),
    [
        ("english", "The cats were running", "cat AND run"),
        ("english", "the cat’s whiskers", "cats"),
        ("german", "viele Häuser", "HAUS"),
        ("french", "des continuellement continuelles", "continuel"),
        ("russian", "важнейшими", "важный OR важнейший"),
        ("swedish", "flickornas", "flickor"),
    ],
)
def test_a_word_finds_its_other_forms(language: str, document: str, query: str):
    assert Index.build(["nothing of it", document], stem=language).matches(query).tolist() == [1]
    assert Index.build(["nothing of it", document]).matches(query).tolist() == []


def test_accents_are_taken_off_before_words_are_stemmed():
    texts = ["répétées", "repetees", "répété"]
    assert Index.build(texts, stem="french").matches("répétée").tolist() == [0, 2]
    folded = Index.build(texts, stem="french", fold_diacritics=True)
    assert folded.matches("répétées").tolist() == folded.matches("repetees").tolist() == [0, 1]


def test_scripts_without_spaces_keep_their_pairs():
    index = Index.build(["東京都", "京都"], stem="english")
    assert index.matches("東京").tolist() == [0]
    assert index.matches("京都").tolist() == [0, 1]


def test_a_file_keeps_the_language(tmp_path: Path):
    path = tmp_path / "x.hridx"
    Index.build(["running dogs"], stem="english", frequencies=True).save(path)
    loaded = Index.load(path)
    assert loaded.stem == "english"
    assert loaded.query("dog runs", device="cpu:0").ids == loaded.rank("dog runs").ids.tolist() == [0]
    builder = IndexBuilder(stem="porter")
    builder.add("dogs")
    assert builder.build().stem == "porter"
    assert builder.add("cats") == 0
    assert builder.build().stem == "porter"
    assert Index.build(["dogs"]).stem is None


def test_files_without_stems_are_of_the_version_that_older_libraries_read(tmp_path: Path):
    versions = []
    for stem in (None, "english"):
        Index.build(["dogs"], stem=stem).save(tmp_path / "x.hridx")
        versions.append(int.from_bytes((tmp_path / "x.hridx").read_bytes()[8:12], "little"))
    assert versions == [3, 4]


@pytest.mark.parametrize("language", ["klingon", "English", "en", "", "english\0"])
def test_an_unknown_language_is_one_line(language: str):
    with pytest.raises(UsageError, match="stemming: ") as caught:
        Index.build(["dogs"], stem=language)
    assert "\n" not in str(caught.value)
    if language.isalpha():
        assert "the languages are arabic, " in str(caught.value)
    with pytest.raises(UsageError, match="stemming: "):
        IndexBuilder(stem=language)
    with pytest.raises(UsageError, match="stemming: "):
        BruteForce(["dogs"], stem=language)


def test_the_command_line_stems(run: Run, tmp_path: Path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The dog is running\nA cat sleeps\nDogs sleep\n")
    made = tmp_path / "stems.hridx"
    done = run("index", "build", corpus, made, "--stem", "english")
    assert done.returncode == 0, done.stderr
    done = run("query", made, "dogs OR runs", "--corpus", corpus, "--json")
    assert json.loads(done.stdout)["ids"] == [0, 2], done.stderr
    done = run("query", made, "SLEEPING", "--corpus", corpus)
    assert "Dogs sleep" in done.stdout
    assert "A cat sleeps" in done.stdout


def test_the_command_line_lists_the_languages(run: Run, tmp_path: Path):
    (tmp_path / "corpus.txt").write_text("dogs\n")
    done = run("index", "build", tmp_path / "corpus.txt", tmp_path / "x.hridx", "--stem", "klingon")
    assert done.returncode == 2
    assert "klingon" in done.stderr
    assert "english" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.hridx").exists()
