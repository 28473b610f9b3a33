"""Operators that are Python functions: compiled by Numba, served under every schedule, compared with NumPy."""

import gc
import json
import math
import re
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from typer.testing import CliRunner

import headrace
from headrace import UsageError, operator
from headrace._core import function_operator
from headrace.cli import app
from headrace.operators.check import check
from headrace.operators.compile import compile_answer
from headrace.operators.files import load_operator

RANDOM = np.random.default_rng(7)
SERVING = [rung for rung in headrace.serve.rungs() if rung.plan.schedule != "none"]
TABLE = RANDOM.random((40, 16), np.float32)


@operator(
    query=("f4", 16),
    answer=[("row", "i4"), ("score", "f4")],
    sample=lambda index: np.random.default_rng(index).random(16, np.float32),
)
def nearest(group, query, answer, rows):
    """The row with the largest product."""
    best, score = -1, np.float32(-np.inf)
    for i in range(group.thread, len(rows), group.thread_count):
        found = np.float32(0)
        for k in range(len(query)):
            found += rows[i, k] * query[k]
        if found > score:
            best, score = i, found
    answer.row, answer.score = best, score


@operator(query="i8", answer="i8", sample=lambda index: index)
def picky(_group, query, answer):
    """Twice the query, except for 7."""
    if query[0] == 7:
        raise ValueError("seven")
    answer[0] = 2 * query[0]


def test_an_engine_has_the_operator_that_it_was_made_with():
    made = nearest(rows=TABLE)
    with headrace.Engine("cpu", made) as engine:
        assert engine.operator is made


def test_answers_are_those_of_numpy_and_have_their_type():
    queries = RANDOM.random((100, 16), np.float32)
    scores = queries @ TABLE.T
    with headrace.Engine("cpu", nearest(rows=TABLE)) as engine, engine.connect() as client:
        answers, status = client.ask_many(queries)
        one = client.ask(queries[3])
    assert not status.any()
    assert answers.dtype == nearest.answer
    assert answers["row"].tolist() == scores.argmax(axis=1).tolist()
    assert answers["score"] == pytest.approx(scores.max(axis=1), rel=1e-6)
    assert (one["row"], one["score"]) == (answers["row"][3], answers["score"][3])
    assert headrace.operators.answer_dtype(engine.operator) == nearest.answer


def test_every_schedule_answers_alike():
    found = list(check(nearest(rows=TABLE), "cpu", 70))
    assert {one.plan for one in found if one.difference is not None} == set()
    assert {one.queries for one in found} == {70}
    assert len(found) > len(SERVING)
    assert any(one.plan.endswith(", inline") for one in found)


@pytest.mark.parametrize(
    ("kind", "query", "expected"),
    [
        ("?", True, True),
        ("u1", 200, 200),
        ("i2", -5, -5),
        ("u8", 2**64 - 1, 2**64 - 1),
        ("f8", -0.0, -0.0),
        ("c16", 1 + 2j, 1 + 2j),
        (("i4", (2, 3)), np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)),
    ],
)
def test_types_come_through(kind, query, expected):
    @operator(query=kind, answer=kind)
    def same(_group, query, answer):
        answer[:] = query[:]

    with headrace.Engine("cpu", same()) as engine, engine.connect() as client:
        got = client.ask(np.array(query, np.dtype(kind).base))
    assert np.array_equal(got, np.array(expected, np.dtype(kind).base))
    assert np.asarray(got).dtype == np.dtype(kind).base


def test_records_numbers_and_arrays_of_each_shape_are_seen():
    query = np.dtype([("x", "f4", (4,)), ("n", "u1"), ("scale", "f8")])  # not aligned

    @operator(query=query, answer=("f8", 2))
    def mixed(group, query, answer, table, bias, points):
        kept = group.shared(4, np.float64)
        for i in range(4):
            kept[i] = query.x[i] * table[query.n, i]
        group.sync()
        answer[0] = group.sum(kept.sum()) * query.scale + bias
        answer[1] = points[query.n].a if group.any(True) else group.broadcast(0.0)

    table = np.arange(12.0).reshape(3, 4)[::-1]  # not contiguous
    points = np.array([(1.5, 2), (2.5, 3), (3.5, 4)], [("a", "f4"), ("b", "i4")])
    queries = np.zeros(3, query)
    queries["x"], queries["n"], queries["scale"] = RANDOM.random((3, 4)), [0, 1, 2], [1, -1, 0.5]
    wanted = (queries["x"].astype(float) * table[queries["n"]]).sum(axis=1) * queries["scale"] + 0.25
    state = {"table": table, "bias": 0.25, "points": points}
    with headrace.Engine("cpu", mixed(**state)) as engine, engine.connect() as client:
        answers, _ = client.ask_many(queries)
    assert answers.shape == (3, 2)
    assert answers[:, 0] == pytest.approx(wanted, rel=1e-12)
    assert answers[:, 1].tolist() == [1.5, 2.5, 3.5]
    assert mixed.answer_in_python(queries, **state) == pytest.approx(answers, rel=1e-12)


def test_division_by_zero_is_what_it_is_on_a_gpu():
    @operator(query="f8", answer="f8")
    def inverse(_group, query, answer):
        answer[0] = 1 / query[0]

    with headrace.Engine("cpu", inverse()) as engine, engine.connect() as client:
        assert client.ask(np.zeros(1)) == np.inf


@pytest.mark.parametrize(
    "rung", [rung for rung in headrace.serve.rungs() if rung.plan.schedule != "none"], ids=lambda r: r.id
)
def test_what_raised_is_never_an_answer(rung):
    with headrace.Engine("cpu", picky(), rung.plan) as engine, engine.connect() as client:
        assert client.ask(np.array([21])) == 42
        with pytest.raises(headrace.DeviceError, match="operator picky could not answer this query"):
            client.ask(np.array([7]))
        answers, status = client.ask_many(np.arange(3))
        assert {str(headrace.Errc.of_status(int(one))) for one in status} == {"device fault"}
        assert not answers.any()
    with pytest.raises(ValueError, match="seven"):
        picky.answer_in_python([7])
    with pytest.raises(headrace.DeviceError, match="operator picky could not answer query 1"):
        picky().answer_on_host(np.array([1, 7]))


def test_an_operator_of_several_blocks_is_checked_where_one_block_need_not_answer():
    @headrace.operator(query="i8", answer="i8", sample=lambda i: i, blocks=2)
    def negative(_group, query, answer):
        answer[0] = -query[0]

    found = list(check(negative(), "cpu", 20))
    assert [one for one in found if one.difference is not None] == []
    assert not any("inline" in one.plan for one in found)


def test_load_is_made_of_samples_and_checked():
    done = headrace.load("cpu", nearest(rows=TABLE), headrace.Plan(), rate=500, window=0.1, windows_max=3)
    assert (done.load.wrong, done.load.failed) == (0, 0)
    assert done.load.answered > 0


def test_a_sample_that_raises_ends_the_load_with_its_exception():
    @operator(query="i8", answer="i8", sample=lambda index: 1 // (3 - index))
    def some(_group, query, answer):
        answer[0] = query[0]

    with pytest.raises(ZeroDivisionError):
        some().sample(5)


def test_arrays_live_as_long_as_an_engine_needs_them_and_no_longer():
    rows = TABLE.copy()
    watched = weakref.ref(rows)
    engine = headrace.Engine("cpu", nearest(rows=rows))
    del rows
    gc.collect()
    assert watched() is not None
    with engine.connect() as client:
        assert client.ask(TABLE[0])["row"] == (TABLE[0] @ TABLE.T).argmax()
    engine.stop()
    del engine, client
    gc.collect()
    assert watched() is None


def test_one_function_is_compiled_once_for_arrays_of_the_same_types(monkeypatch):
    compiled = []

    def count(*arguments, **more):
        compiled.append(arguments)
        return compile_answer(*arguments, **more)

    monkeypatch.setattr("headrace.operators.compile.compile_answer", count)

    @operator(query="i8", answer="i8")
    def add(_group, query, answer, amount):
        answer[0] = query[0] + amount

    made = [add(amount=1), add(amount=2), add(amount=2.0)]
    assert [one.answer_on_host(np.array([10]))[0] for one in made] == [11, 12, 12]
    assert len(compiled) == 2


def wrong(function, query="i8", answer="i8", **state):
    with pytest.raises(UsageError) as caught:
        operator(query=query, answer=answer)(function)(**state)
    return str(caught.value)


def test_errors_name_the_file_and_the_line():
    def unknown(_group, query, answer):
        answer[0] = query[0]
        answer[0] = nowhere + query[0]  # noqa: F821

    said = wrong(unknown)
    line = unknown.__code__.co_firstlineno + 2
    assert said.startswith(f"{__file__}:{line}: operator unknown cannot be compiled: ")
    assert "nowhere" in said
    assert "\n" not in said


def test_where_there_is_a_gpu_an_engine_finds_mistakes(monkeypatch):
    monkeypatch.setattr("headrace.operators.compiled_operator._has_gpu", lambda: True)

    @operator(query="i8", answer="i8")
    def unknown(_group, query, answer):
        answer[0] = nowhere + query[0]  # noqa: F821

    made = unknown()
    place = re.escape(f"{__file__}:{unknown.function.__code__.co_firstlineno + 2}")
    with pytest.raises(UsageError, match=f"{place}: operator unknown cannot be compiled: .*nowhere"):
        headrace.Engine("cpu", made)


def test_a_function_that_a_module_does_not_have_is_an_error_of_its_line():
    def of_math(_group, query, answer):
        answer[0] = 1
        answer[0] = math.arcsin(query[0])

    def of_numpy(_group, query, answer):
        answer[0] = np.no_such_function(query[0])

    for function, line, name in ((of_math, 2, "arcsin"), (of_numpy, 1, "no_such_function")):
        said = wrong(function, "f8", "f8")
        place = f"{__file__}:{function.__code__.co_firstlineno + line}"
        assert said.startswith(f"{place}: operator {function.__name__} cannot be compiled: ")
        assert f"'{name}'" in said


def test_what_cannot_be_passed_is_named():
    def function(_group, query, answer, rows):
        answer[0] = query[0] + rows[0]

    assert wrong(function) == "operator function takes rows: rows missing"
    assert wrong(function, rows=[1], row=2) == "operator function takes rows: row unknown"
    assert "rows has type object" in wrong(function, rows=np.array(["a", None], object))
    assert "a query of type object has no fixed size in bytes" in wrong(function, query="O")
    assert "an answer of type >i8 does not have this machine's byte order" in wrong(function, answer=">i8").replace(
        "a answer", "an answer"
    )
    assert "its parameters are group, query, answer" in wrong(lambda _group, _query: None)
    assert "its parameters are group, query, answer" in wrong(lambda _group, _query, _answer, _more=1: None)


def test_a_missing_function_is_refused():
    with pytest.raises(UsageError, match="operator none has no function"):
        function_operator("none", 1, 1, None, 0, (), None, "")


def test_without_numba_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(UsageError, match=r"Numba, which is not installed: .*pip install numba"):
        compile_answer(lambda group, query, answer: None, np.dtype("i8"), np.dtype("i8"), [])  # noqa: ARG005


FILE = """
import numpy as np
from headrace import operator

@operator(query="i8", answer="i8", sample=lambda i: i, reference=lambda query, factor: {reference})
def times(group, query, answer, factor):
    answer[0] = query[0] * factor

served = times(factor=3)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(reference="query * factor"))
    return path


def test_a_file_is_checked_and_loaded_from_the_command_line(file):
    runner = CliRunner()
    done = runner.invoke(app, ["check", str(file), "--queries", "20"])
    assert done.exit_code == 0, done.output
    assert "differs" not in done.output
    done = runner.invoke(
        app, ["load", "--operator", f"{file}:served", "--rate", "500", "--duration", "300ms", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["operator"] == "times"


def test_the_first_query_that_differs_is_shown(file):
    file.write_text(FILE.format(reference="query * factor + (query == 5)"))
    done = CliRunner().invoke(app, ["check", str(file), "--queries", "20", "--json"])
    assert done.exit_code == 1
    plans = json.loads(done.stdout)["plans"]
    assert plans[0]["difference"] == {"query": 5, "expected": "16", "answered": "15"}
    assert all(one["difference"] is None for one in plans[1:])


@pytest.mark.parametrize("text", ["/tmp", "mine", "mine.txt:served", "", ":", "mine.py:"])
def test_other_names_of_operators_are_refused_in_one_line(text, run: Run):
    done = run("check", text)
    assert done.returncode in {1, 2}
    assert done.stderr.startswith("headrace: error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no operator: decorate a function with @headrace.operator"),
        ("1 / 0", ":1: ZeroDivisionError: division by zero"),
        (FILE.format(reference="0").replace("served =", "a = times(factor=1); b ="), "several operators: give one of"),
        (FILE.format(reference="0").replace("served = times(factor=3)", ""), "write served = times(factor=...)"),
    ],
)
def test_files_without_an_operator_say_so(file, text, said):
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_operator(str(file))
    assert said in str(caught.value)
    file.write_text(FILE.format(reference="0"))
    with pytest.raises(UsageError, match="has no operator nothing"):
        load_operator(f"{file}:nothing")
    with pytest.raises(headrace.MissingFileError):
        load_operator(str(file.with_name("absent.py")))


def test_a_program_may_end_while_its_engine_runs(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
            import numpy as np, headrace
            from headrace import operator

            @operator(query="i8", answer="i8")
            def twice(group, query, answer):
                answer[0] = 2 * query[0]

            engine = headrace.Engine("cpu", twice(), headrace.serve.find_rung("dispatched").plan)
            client = engine.connect()
            print(client.ask(np.array([4])))
        """)
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "8\n", "")
