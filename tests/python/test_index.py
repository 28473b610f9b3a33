"""Retrieval in Python, compared with sets of words, and over files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from headrace import DataError, Index, UsageError
from headrace.operators import BruteForce, IndexBuilder

WORDS = ["apple", "pie", "sky", "bread", "salt"]

documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=200)


def expressions() -> st.SearchStrategy[tuple[str, object]]:
    """Queries paired with functions that tell whether a set of words matches."""
    leaf = st.sampled_from([*WORDS, "unknown"]).map(lambda word: (word, lambda words: word in words))

    def extend(inner: st.SearchStrategy) -> st.SearchStrategy:
        return st.one_of(
            inner.map(lambda a: (f"NOT ({a[0]})", lambda words: not a[1](words))),
            st.tuples(inner, inner).map(
                lambda p: (f"({p[0][0]}) AND ({p[1][0]})", lambda w: p[0][1](w) and p[1][1](w))
            ),
            st.tuples(inner, inner).map(lambda p: (f"({p[0][0]}) or ({p[1][0]})", lambda w: p[0][1](w) or p[1][1](w))),
        )

    return st.recursive(leaf, extend, max_leaves=8)


@settings(deadline=None, max_examples=60)
@given(corpus=documents, query=expressions())
def test_queries_against_sets(corpus: list[str], query: tuple[str, object]):
    text, matches = query
    expected = [number for number, document in enumerate(corpus) if matches(set(document.split()))]  # type: ignore[operator]
    hits = Index.build(corpus).query(text)
    assert hits.hits == len(expected)
    assert hits.ids == expected[:15]
    assert BruteForce(corpus).answer(text) == hits


@settings(deadline=None, max_examples=40)
@given(text=st.text(max_size=40))
def test_any_text_compiles_or_is_a_usage_error(text: str):
    index = Index.build(["an apple"])
    try:
        query = index.compile(text)
    except UsageError:
        pass
    else:
        assert query.shape == (240,)


def test_the_basics(small_index: Index):
    assert (small_index.document_count, small_index.posting_count) == (5, 12)
    assert small_index.query("apple AND NOT pie").ids == [0]
    assert small_index.query("APPLE or banana").ids == [0, 1, 4]
    assert small_index.query("unicorn").hits == 0
    assert small_index.postings("pie").tolist() == [1, 2]
    assert small_index.postings("unicorn").size == 0


def test_many_through_an_engine(small_index: Index):
    operator = headrace.retrieval(small_index)
    texts = ["pie", "NOT pie", "apple pie"]
    with headrace.Engine("cpu", operator) as engine, engine.connect() as client:
        answers, status = client.ask_many(small_index.compile_many(texts))
    assert answers.dtype == headrace.operators.RETRIEVAL_ANSWER
    assert not status.any()
    assert answers["hits"].tolist() == [2, 3, 1]
    assert answers["ids"][1][:4].tolist() == [0, 3, 4, 0xFFFFFFFF]


def test_bytes_of_answers_are_typed_by_the_operator(small_index: Index):
    operator = headrace.retrieval(small_index)
    answers = operator.answer_on_host(small_index.compile_many(["pie", "NOT pie"]))
    assert answers.dtype == headrace.operators.RETRIEVAL_ANSWER
    raw = answers.view(np.uint8).reshape(2, -1)
    typed = headrace.typed_answers(operator, raw)
    assert np.array_equal(typed, answers)
    assert np.shares_memory(typed, raw)
    assert headrace.typed_answers(operator, answers) is answers


def test_samples_compile(small_index: Index):
    sampler = headrace.operators.RetrievalSampler(small_index)
    assert sampler.text(3) == sampler.text(3)
    operator = headrace.retrieval(small_index)
    assert operator.sample(4).shape == (4, 240)
    with pytest.raises(UsageError, match="no sample queries"):
        headrace.retrieval(small_index, sample=False).sample(1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("apple AND (pie", r"position 15.*'\)'"),
        ("apple )", "position 7"),
        ("AND", "position 1"),
        (" ".join(f"w{number}" for number in range(70)), "with 'w32' the query has more than 32 terms"),
        ("(" * 100 + "a" + ")" * 100, "parentheses"),
    ],
)
def test_bad_queries(small_index: Index, text: str, says: str):
    with pytest.raises(UsageError, match=says):
        small_index.compile(text)


def test_save_and_load(small_index: Index, tmp_path: Path):
    path = tmp_path / "a.hridx"
    small_index.save(path)
    small_index.save(str(path))
    assert list(tmp_path.iterdir()) == [path]
    assert Index.load(path).query("pie") == small_index.query("pie")


def test_bad_files(index_file: Path, tmp_path: Path):
    whole = index_file.read_bytes()
    bad = tmp_path / "bad.hridx"
    for content in (b"", b"hello", whole[:-1], whole[:100], whole[:-3] + b"abc", whole + b"x"):
        bad.write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.hridx"):
            Index.load(bad)
    with pytest.raises(headrace.SystemError, match="No such file"):
        Index.load(tmp_path / "missing")
    with pytest.raises(headrace.SystemError):
        Index.load(tmp_path)


def test_builder():
    builder = IndexBuilder()
    assert [builder.add("one"), builder.add(b"two")] == [0, 1]
    with pytest.raises(DataError, match="document 2 is not UTF-8"):
        builder.add(b"\xff")
    assert builder.document_count == 2
    assert builder.build().document_count == 2
    with pytest.raises(DataError, match="empty"):
        builder.build()
    with pytest.raises(DataError, match="empty"):
        Index.build([])
    with pytest.raises(TypeError, match="str or bytes, not"):
        Index.build([3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("script", "letters"),
    [("Thai", range(0x0E01, 0x0E2F)), ("Hiragana", range(0x3042, 0x3094)), ("Han", range(0x4E00, 0x4E60))],
)
def test_long_words_without_spaces(script: str, letters: range):
    """A word of up to 32 pairs finds the documents that contain all of its pairs."""
    rng = np.random.default_rng(letters.start)
    text = "".join(chr(letters[int(i)]) for i in rng.integers(len(letters), size=3000))
    documents = [text[begin : begin + 120] for begin in range(0, len(text), 7)]
    index = Index.build(documents)
    for length in (18, 25, 33):
        for begin in (0, 500, 2100):
            word = text[begin : begin + length]
            pairs = {word[i : i + 2] for i in range(length - 1)}
            expected = [number for number, document in enumerate(documents) if all(pair in document for pair in pairs)]
            assert expected, script
            assert index.query(word).ids == expected[:15]
            assert index.matches(f"NOT {word}").size == len(documents) - len(expected)
    too_long = "".join(chr(0x4E00 + i) for i in range(66))
    with pytest.raises(
        UsageError, match=r"position 1: with '\S{40}\.\.\.', which is split into 65 terms, the query has more than 32"
    ):
        index.query(too_long)


def test_negations_inside_each_other(small_index: Index):
    """Each of 32 words follows 65 negations, which once overran the memory of the compiler."""
    text = " ".join("NOT (" * 64 + f"NOT w{number}" + ")" * 64 for number in range(32))
    assert small_index.query(text).hits == small_index.document_count
