"""Operators that are C++ source: compiled by the system's compiler, served under every schedule."""

import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headrace
from headrace import MissingFileError, UsageError
from headrace.cli import app
from headrace.operators import code_cache, compile_source, from_source
from headrace.operators.check import check
from headrace.operators.files import find_operators, load_operator

RANDOM = np.random.default_rng(7)
TABLE = RANDOM.random((40, 16), np.float32)
NEAREST = """
void nearest(Group group, const Query& query, Answer& answer, Array<float, 2> rows) {
  int32_t best = -1;
  float score = -INFINITY;
  for (uint64_t i = group.thread(); i < rows.shape(0); i += group.thread_count()) {
    float found = 0;
    for (uint64_t k = 0; k < rows.shape(1); ++k) found += rows(i, k) * query[k];
    if (found > score) {
      best = static_cast<int32_t>(i);
      score = found;
    }
  }
  answer = {best, score};
}
"""
TWICE = "void twice(Group, const Query& query, Answer& answer) { answer = 2 * query; }"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate cache for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_source, "_loaded", {})
    return tmp_path / "cache"


def nearest():
    return from_source(
        NEAREST,
        "nearest",
        query=("f4", 16),
        answer=[("row", "i4"), ("score", "f4")],
        state=["rows"],
        sample=lambda index: np.random.default_rng(index).random(16, np.float32),
    )


def answers_of(made, queries):
    with headrace.Engine("cpu", made) as engine, engine.connect() as client:
        answers, status = client.ask_many(queries)
    assert not status.any()
    return answers


def test_answers_are_those_of_numpy_and_have_their_type():
    queries = RANDOM.random((100, 16), np.float32)
    scores = queries @ TABLE.T
    answers = answers_of(nearest()(rows=TABLE), queries)
    assert answers.dtype == np.dtype([("row", "i4"), ("score", "f4")])
    assert answers["row"].tolist() == scores.argmax(axis=1).tolist()
    assert answers["score"] == pytest.approx(scores.max(axis=1), rel=1e-6)


def test_every_schedule_answers_alike():
    found = list(check(nearest()(rows=TABLE), "cpu", 70))
    assert [one.plan for one in found if one.difference is not None] == []
    assert len(found) > len([rung for rung in headrace.serve.rungs() if rung.plan.schedule != "none"])


def test_a_reference_is_what_answers_are_compared_with():
    made = from_source(
        TWICE,
        "twice",
        query="i8",
        answer="i8",
        sample=lambda i: i,
        reference=lambda query: 2 * query + (query == 5),
    )
    first, *others = check(made(), "cpu", 20)
    assert (first.difference.number, first.difference.expected, first.difference.answered) == (5, 11, 10)
    assert all(one.difference is None for one in others)


INNER = np.dtype([("tag", "S3"), ("half", "u2")], align=True)
RECORD = np.dtype(
    [("flag", "?"), ("x", "f8", 3), ("m", "i2", (2, 2)), ("inner", INNER), ("many", INNER, 2)], align=True
)


def test_records_arrays_numbers_and_bytes_are_seen():
    source = """
    struct Local { int64_t of[4]; };
    void seen(Group group, const Query& query, Answer& answer, Array<records_element, 1> records, double scale,
              Array<uint8_t, 3> cube, bool on) {
      auto& kept = group.shared<Local>();
      kept.of[0] = query.m[0][1] * 10 + query.m[1][0];
      group.sync();
      answer[0] = query.flag ? query.x[2] * scale : -1;
      answer[1] = static_cast<double>(kept.of[0]);
      answer[2] = query.inner.tag[1] + query.inner.half + query.many[1].half;
      answer[3] = records[1].y + static_cast<double>(records.size());
      answer[4] = cube(1, 2, 3) + (on ? 0.5 : 0);
    }
    """
    made = from_source(source, "seen", query=RECORD, answer=("f8", 5), state=("records", "scale", "cube", "on"))
    query = np.zeros(1, RECORD)
    query["flag"], query["x"], query["m"] = True, (1, 2, 3), ((1, 2), (3, 4))
    query["inner"]["tag"], query["inner"]["half"], query["many"]["half"][0] = b"abc", 1000, (7, 60000)
    records = np.array([(1, 2.5), (3, 4.5)], np.dtype([("k", "i4"), ("y", "f8")], align=True))
    cube = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    answers = answers_of(made(records=records, scale=2.0, cube=cube, on=np.True_), query)
    assert answers[0].tolist() == [6, 23, ord("b") + 61000, 6.5, 23.5]


@pytest.mark.parametrize("refusal", ["return false;", "throw 7;"])
def test_what_could_not_answer_is_never_an_answer(refusal):
    source = (
        "bool picky(Group, const Query& query, Answer& answer) { if (query == 7) REFUSE answer = query; return true; }"
    )
    made = from_source(source.replace("REFUSE", refusal), "picky", query="i8", answer="i8")
    with headrace.Engine("cpu", made()) as engine, engine.connect() as client:
        assert client.ask(np.int64(3)) == 3
        with pytest.raises(headrace.DeviceError, match="operator picky could not answer this query"):
            client.ask(np.int64(7))
        with pytest.raises(headrace.DeviceError, match="operator picky could not answer this query"):
            client.ask(np.int64(3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\nvoid twice(Group, const Query& query, Answer& answer) { answer = thrice * query; }",
         r"{file}:3: operator twice cannot be compiled: 'thrice' was not declared"),
        ("#include <no_such_header>\n" + TWICE, r"{file}:1: operator twice cannot be compiled: no_such_header"),
        ("void thrice(Group, const Query& query, Answer& answer) {}",
         r"it has no function twice\(Group, const Query&, Answer&\)$"),
        ("void twice(Group, Array<float, 1>, Answer& answer) {}",
         r"it has no function twice\(Group, const Query&, Answer&\)$"),
        ("int twice(Group, const Query&, Answer&) { return 0; }",
         r"twice returns nothing, or as a bool whether it could answer$"),
        ("int elsewhere(int);" + TWICE.replace("2 *", "elsewhere(2) *"), r"twice cannot be loaded: .*elsewhere"),
        ("#error \x1b[31mred", r"{file}:1: operator twice cannot be compiled: #error"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_the_file_and_the_line(text, said, tmp_path: Path):
    file = tmp_path / "twice.cu"
    file.write_text(text)
    with pytest.raises(UsageError, match=said.replace("{file}", str(file))) as caught:
        from_source(file, "twice", query="i8", answer="i8")()
    assert "\n" not in str(caught.value)
    assert "operator twice" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": "f2"}, "query has type float16, which C\\+\\+ source cannot take"),
        ({"query": [("when", "M8[s]")]}, "query: field when has type datetime64"),
        ({"query": "c8"}, "query has type complex64"),
        ({"answer": ">i4"}, "does not have this machine's byte order"),
        ({"answer": [("a", "i1"), ("b", "f8")]}, "field b lies at byte 1, but elsewhere in C\\+\\+: .*align=True"),
        ({"answer": np.dtype({"names": ["a"], "formats": ["i4"], "itemsize": 12})}, "has 12 bytes, but another size"),
        ({"answer": [("größe", "i4")]}, "field größe does not have a valid C\\+\\+ name"),
        ({"name": "two words"}, "'two words' is not a valid C"),
        ({"state": ["a-b"]}, "'a-b' is not a valid C"),
    ],
)
def test_what_cxx_cannot_be_given_is_named_at_once(options, said):
    with pytest.raises(UsageError, match=said):
        from_source(**{"source": TWICE, "name": "twice", "query": "i8", "answer": "i8"} | options)


def test_a_missing_file_and_a_file_that_is_no_text_are_one_line(tmp_path: Path):
    with pytest.raises(MissingFileError, match=r"there is no file .*absent\.cu"):
        from_source(tmp_path / "absent.cu", "twice", query="i8", answer="i8")
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.cu cannot be read as source"):
        from_source(tmp_path / "binary.cu", "twice", query="i8", answer="i8")


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("CXX", "/nowhere/c++")
    made = from_source(TWICE, "twice", query="i8", answer="i8")()  # for a GPU, although there is none
    with pytest.raises(UsageError, match="CXX names none: /nowhere/c\\+\\+"):
        headrace.Engine("cpu", made)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="none was found: install one"):
        made.answer_on_host(np.array([1]))


def test_code_is_kept_and_made_anew_where_it_is_damaged_or_another(cache: Path, tmp_path: Path, monkeypatch):
    compiled = []
    original = compile_source._shared_object
    monkeypatch.setattr(compile_source, "_shared_object", lambda *given: compiled.append(1) or original(*given))
    (tmp_path / "factor.hpp").write_text("constexpr int kFactor = 2;\n")
    file = tmp_path / "times.cu"
    file.write_text('#include "factor.hpp"\nvoid times(Group, const Query& q, Answer& a) { a = kFactor * q; }\n')

    def ask():
        monkeypatch.setattr(compile_source, "_loaded", {})
        return int(answers_of(from_source(file, "times", query="i8", answer="i8")(), np.array([21]))[0]), len(compiled)

    assert ask() == (42, 1)
    assert ask() == (42, 1)
    (kept,) = code_cache.folder().glob("*.so")
    assert kept.is_relative_to(cache)
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    assert ask() == (42, 2)
    (tmp_path / "factor.hpp").write_text("constexpr int kFactor = 3;\n")
    assert ask() == (63, 3)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")  # nothing can be kept there
    assert ask() == (63, 4)


def test_threads_may_make_operators_at_the_same_time():
    made = [from_source(TWICE, "twice", query="i8", answer="i8") for _ in range(8)]
    served: list[headrace.Operator] = []
    threads = [threading.Thread(target=lambda one=one: served.append(one())) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(answers_of(one, np.array([4]))[0]) for one in served] == [8] * 8


FILE = """
from headrace.operators import from_source

twice = from_source({text!r}, "twice", query="i8", answer="i8", sample=lambda i: i, reference=lambda query: 2 * query)
"""


def test_a_file_with_source_is_checked_served_and_imported_as_one_with_a_function(tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(text=TWICE))
    done = CliRunner().invoke(app, ["check", str(file), "--queries", "20"])
    assert done.exit_code == 0, done.output
    assert load_operator(str(file)).name == "twice"
    (tmp_path / "other.py").write_text("from mine import twice\n")
    assert list(find_operators(str(tmp_path))) == ["twice"]
    file.write_text(FILE.format(text=TWICE).replace("2 * query)", "3 * query)"))
    assert CliRunner().invoke(app, ["check", str(file), "--queries", "20"]).exit_code == 1


def test_every_type_of_number_comes_through():
    """Each is a different shared object: if one were mistaken for another, its answers would differ."""
    for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"):
        source = "void same(Group group, const Query& q, Answer& a, q_type add) { a = group.sum(group.broadcast(q)); }"
        dtype = np.dtype(kind)
        largest = True if kind == "?" else (np.finfo if dtype.kind == "f" else np.iinfo)(dtype).max
        made = from_source(source.replace("q_type", "Query"), "same", query=kind, answer=kind, state=["add"])
        assert answers_of(made(add=np.zeros((), dtype)), np.array([largest], dtype))[0] == largest
