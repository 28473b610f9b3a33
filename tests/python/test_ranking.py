"""Pages of matches, and ranking by BM25, compared with NumPy and with SQLite's FTS5."""

import itertools
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import Index, UsageError

WORDS = [f"w{number}" for number in range(30)]


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    """Documents of 0 to 50 words, some of them repeated many times."""
    rng = np.random.default_rng(4)
    shares = 1 / np.arange(1, len(WORDS) + 1)
    return [" ".join(rng.choice(WORDS, size=rng.integers(51), p=shares / shares.sum())) for _ in range(1500)]


@pytest.fixture(scope="module")
def index(corpus: list[str]) -> Index:
    """With frequencies."""
    return Index.build(corpus, frequencies=True)


def weights(corpus: list[str], word: str) -> tuple[float, float]:
    """The weight of a word: here, and in FTS5, which has no 1 in the logarithm."""
    count = sum(word in document.split() for document in corpus)
    odds = (len(corpus) - count + 0.5) / (count + 0.5)
    return float(np.log1p(odds)), max(float(np.log(odds)), 1e-6)


def reference(corpus: list[str], words: list[str], k1: float, b: float) -> np.ndarray:
    """The score of each document."""
    split = [document.split() for document in corpus]
    lengths = np.array([len(document) for document in split])
    scores = np.zeros(len(corpus))
    for word in words:
        frequency = np.array([document.count(word) for document in split])
        norm = k1 * (1 - b + b * lengths / lengths.mean())
        scores += weights(corpus, word)[0] * frequency * (k1 + 1) / np.maximum(frequency + norm, 1e-300)
    return scores


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("w0", ["w0"]),
        ("w1 OR w20 OR w29", ["w1", "w20", "w29"]),
        ("(w3 OR w4) AND NOT w9", ["w3", "w4"]),
        ("(w7 OR w8) AND NOT (w1 AND NOT w2)", ["w7", "w8", "w2"]),
    ],
)
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (2.0, 0.3)])
def test_scores_are_those_of_numpy(corpus: list[str], index: Index, query: str, words: list[str], k1: float, b: float):
    expected = reference(corpus, words, k1, b)
    matching = index.matches(query)
    ranking = index.rank(query, limit=len(corpus), k1=k1, b=b)
    assert ranking.hits == matching.size > 50
    assert sorted(ranking.ids.tolist()) == matching.tolist()
    np.testing.assert_allclose(ranking.scores, expected[ranking.ids], rtol=1e-12)
    order = sorted(matching.tolist(), key=lambda number: (-round(expected[number], 9), number))
    assert [round(score, 9) for score in expected[order]] == [round(score, 9) for score in ranking.scores]
    page = index.rank(query, offset=7, limit=5, k1=k1, b=b)
    assert page.ids.tolist() == ranking.ids[7:12].tolist()
    assert page.scores.tolist() == ranking.scores[7:12].tolist()


def test_scores_are_those_of_fts5(corpus: list[str], index: Index):
    """The same sum as bm25() of SQLite, with its weights of words."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    base.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", enumerate(corpus))
    words = ["w2", "w11", "w25"]
    theirs = np.zeros(len(corpus))
    for word in words:
        ours, fts5 = weights(corpus, word)
        for number, score in base.execute("SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", (word,)):
            theirs[number] -= score * ours / fts5
    ranking = index.rank(" OR ".join(words), limit=len(corpus))
    assert ranking.hits == np.count_nonzero(theirs)
    np.testing.assert_allclose(ranking.scores, theirs[ranking.ids], rtol=1e-12)


def test_what_ranking_refuses(corpus: list[str], index: Index):
    assert index.frequencies
    plain = Index.build(corpus)
    assert not plain.frequencies
    with pytest.raises(UsageError, match="--frequencies"):
        plain.rank("w1")
    for wrong in ({"k1": -1}, {"k1": float("nan")}, {"b": 1.5}):
        with pytest.raises(UsageError, match="ranking: "):
            index.rank("w1", **wrong)


def test_frequencies_are_kept_in_the_file(index: Index, tmp_path: Path):
    index.save(tmp_path / "a.hridx")
    again = Index.load(tmp_path / "a.hridx")
    assert again.frequencies
    assert again.rank("w1 OR w5").scores.tolist() == index.rank("w1 OR w5").scores.tolist()


def test_answers_are_shown_as_text(index: Index):
    page = index.query("w0", limit=2, offset=1)
    assert repr(page) == f"Hits(hits={page.hits}, ids={page.ids}, offset=1)"
    found = index.rank("w0", limit=3)
    assert repr(found) == f"<headrace.operators.Ranking: 3 documents of {page.hits}>"


def test_pages_together_are_all_matches(index: Index):
    query = "w1 OR NOT w2"
    everything = index.matches(query).tolist()
    assert len(everything) > 100
    for limit in (1, 15, 16, 400):
        found: list[int] = []
        for offset in itertools.count(0, limit):
            page = index.query(query, device="cpu:0", offset=offset, limit=limit)
            assert (page.hits, page.offset) == (len(everything), offset)
            found += page.ids
            if offset + limit >= page.hits or offset > 50 * limit:
                break
        assert found == everything[: len(found)]
    assert index.query(query, device="cpu:0", limit=0).ids == []
    assert index.query(query, device="cpu:0", limit=3) == index.query(query, device="cpu:0", limit=3)
    assert index.query(query, device="cpu:0", offset=len(everything)).ids == []
    with pytest.raises(headrace.Error):
        index.query(query, device="cuda:99", offset=3)


@pytest.fixture(scope="module")
def files(corpus: list[str], run: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus and its index, built by the command."""
    folder = tmp_path_factory.mktemp("ranked")
    (folder / "corpus.txt").write_text("".join(f"{document}\n" for document in corpus))
    run("index", "build", folder / "corpus.txt", folder / "ranked.hridx", "--frequencies")
    return folder / "corpus.txt", folder / "ranked.hridx"


def test_the_command_pages(run: Run, files: tuple[Path, Path], index: Index):
    corpus, file = files
    everything = index.matches("w1 AND w2").tolist()
    page = json.loads(run("query", file, "w1 AND w2", "--offset", "20", "--limit", "30", "--json").stdout)
    assert page == {"query": "w1 AND w2", "hits": len(everything), "offset": 20, "ids": everything[20:50]}
    text = run("query", file, "w1 AND w2", "--offset", "20", "--limit", "30", "--corpus", corpus).stdout.splitlines()
    assert len(text) == 32
    assert text[-1].strip().startswith(f"... and {len(everything) - 50:,} more (continue with --offset 50")
    behind = run("query", file, "w1 AND w2", "--offset", "100000").stdout
    assert "no matches from --offset 100000 on" in behind


def test_the_command_ranks(run: Run, files: tuple[Path, Path], index: Index):
    corpus, file = files
    ranking = index.rank("w1 OR w20", limit=4, k1=2)
    found = json.loads(run("query", file, "w1 OR w20", "--rank", "--k1", "2", "--limit", "4", "--json").stdout)
    assert found["ids"] == ranking.ids.tolist()
    assert found["scores"] == ranking.scores.tolist()
    shown = run("query", file, "w1 OR w20", "--rank", "--corpus", corpus).stdout.splitlines()
    assert f"{index.rank('w1 OR w20').scores[0]:.3f}" in shown[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--all", "--limit", "3"), "--all"),
        (("--all", "--offset", "3"), "--all"),
        (("--k1", "1"), "--rank"),
        (("--rank", "--b", "7"), "b must be 0 to 1"),
        (("--offset", "-1"), "--offset"),
    ],
)
def test_options_that_the_command_refuses(run: Run, files: tuple[Path, Path], arguments: tuple[str, ...], says: str):
    failed = run("query", files[1], "w1", *arguments)
    assert failed.returncode == 2
    assert says in failed.stderr
