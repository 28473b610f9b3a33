"""lookup compared with NumPy: pooled rows, placements, and refused arguments."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import UsageError, operators
from headrace.dtypes import read_dtype
from headrace.operators import check as check_module
from headrace.operators.dense import reference_of
from headrace.span import PAGE_BYTES, Placement, Span


def queries_for(operator: headrace.Operator, asked: list[list[int]]) -> Any:
    queries = np.zeros(len(asked), read_dtype(operator.query_type))
    for query, rows in zip(queries, asked, strict=True):
        query["count"] = len(rows)
        query["rows"][: len(rows)] = rows
    return queries


def sampled(operator: headrace.Operator, count: int) -> Any:
    return operator.sample(count).view(read_dtype(operator.query_type)).reshape(-1)


@pytest.mark.parametrize("dtype", ["float16", "float32", np.float16])
@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_whole_numbers_are_exactly_what_numpy_says(dtype: object, pooling: str) -> None:
    random = np.random.default_rng(3)
    table = random.integers(-100, 101, (500, 33)).astype(np.float32)
    pooled = operators.lookup(table, 20, pooling=pooling, dtype=dtype)
    asked = [random.integers(0, 500, count).tolist() for count in range(21)]
    queries = queries_for(pooled, asked)
    of = {"sum": np.sum, "mean": np.mean, "max": np.max}[pooling]
    expected = [of(table[rows], axis=0) if rows else np.zeros(33) for rows in asked]
    np.testing.assert_array_equal(pooled.answer_on_host(queries), np.array(expected, np.float32))
    with headrace.Engine("cpu", pooled) as engine, engine.connect() as client:
        answers, status = client.ask_many(queries)
    assert not status.any()
    np.testing.assert_array_equal(answers, np.array(expected, np.float32))


def test_weights_scale_their_rows() -> None:
    pooled = operators.lookup([[1, 10], [2, 20]], 3, weighted=True)
    queries = queries_for(pooled, [[0, 1], [1]])
    queries["weights"][0] = [0.5, -1, np.nan]  # the last row is not requested
    queries["weights"][1] = [4, np.nan, np.nan]
    np.testing.assert_array_equal(pooled.answer_on_host(queries), [[-1.5, -15], [8, 80]])


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of a check with a long hang limit, because the machine may be busy."""
    made = check_module._plans

    def plans(*, inline: bool) -> Iterator[tuple[headrace.Plan, str]]:
        for plan, name in made(inline=inline):
            plan.hang_after = 3600.0
            yield plan, name

    monkeypatch.setattr(check_module, "_plans", plans)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"weighted": True, "dtype": "float32", "most": 100},
        {"pooling": "mean", "device_bytes": 0, "counts": np.arange(3000)},
        {"pooling": "max", "exponent": 0.0},
    ],
    ids=["default", "weighted", "mean by counts", "max"],
)
def test_every_plan_answers_as_numpy_does_within_the_bound(given: dict[str, Any]) -> None:
    found = list(check_module.check(operators.lookup(shape=(3000, 37), **given), "cpu", 30))
    assert len(found) > 14
    assert [one for one in found if one.difference is not None] == []


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_a_wrong_answer_is_found(pooling: str) -> None:
    pooled = operators.lookup(shape=(400, 10), pooling=pooling)
    reference = reference_of(pooled)
    assert reference is not None
    queries = sampled(pooled, 10)
    answers = pooled.answer_on_host(queries)
    assert reference.differs(queries, answers) is None
    right = answers[7, 2]
    answers[7, 2] += np.float32(1e-3)
    assert reference.differs(queries, answers) == 7
    answers[7, 2] = np.nan
    assert reference.differs(queries, answers) == 7
    answers[7, 2] = right
    queries["rows"][4, 0] += 1
    assert reference.differs(queries, answers) == 4


def test_invalid_queries_are_nan_and_others_are_answered() -> None:
    pooled = operators.lookup(np.ones((10, 5)), 4)
    queries = queries_for(pooled, [[1, 10], [9], [2, 3], [1, 2, 3, 4]])
    queries["count"][2] = 5
    answers = pooled.answer_on_host(queries)
    assert np.isnan(answers[[0, 2]]).all()
    np.testing.assert_array_equal(answers[[1, 3]], [[1] * 5, [4] * 5])
    reference = reference_of(pooled)
    assert reference is not None
    assert reference.differs(queries, answers) is None
    answers[0] = 1
    assert reference.differs(queries, answers) == 0


def test_placement_and_counts_do_not_change_a_bit() -> None:
    table = np.random.default_rng(5).standard_normal((50_000, 64)).astype(np.float32)
    whole = operators.lookup(table, exponent=1.05)
    counts = np.bincount(sampled(whole, 500)["rows"].reshape(-1), minlength=len(table))
    queries = sampled(whole, 300)
    expected = whole.answer_on_host(queries).tobytes()
    for given in ({"device_bytes": 0}, {"device_bytes": PAGE_BYTES}, {"device_bytes": PAGE_BYTES, "counts": counts}):
        split = operators.lookup(table, exponent=1.05, **given)
        assert split.sample(300).tobytes() == queries.tobytes()
        assert split.answer_on_host(queries).tobytes() == expected
        with headrace.Engine("cpu", split) as engine, engine.connect() as client:
            answers, status = client.ask_many(queries)
        assert not status.any()
        assert answers.tobytes() == expected


def test_rows_of_a_span_are_read_in_place_and_keep_it() -> None:
    table = np.random.default_rng(6).standard_normal((2 * PAGE_BYTES // 64, 16)).astype(np.float32)
    span = Span("cpu", table.nbytes, Placement.map(["cpu", "host"]))
    view = span.numpy().view(np.float32).reshape(table.shape)
    view[:] = table
    del view
    in_place = operators.lookup(span, 10, shape=table.shape, dtype="float32")
    copied = operators.lookup(table, 10, dtype="float32")
    queries = sampled(copied, 100)
    assert in_place.sample(100).tobytes() == queries.tobytes()
    assert in_place.answer_on_host(queries).tobytes() == copied.answer_on_host(queries).tobytes()
    span.numpy().view(np.float32)[:16] = 7
    np.testing.assert_array_equal(in_place.answer_on_host(queries_for(in_place, [[0, 0]])), [[14] * 16])
    with pytest.raises(UsageError, match="1 arrays or operators use the span"):
        span.release()
    engine = headrace.Engine("cpu", in_place)
    del in_place
    with pytest.raises(UsageError, match="1 arrays or operators use the span"):
        span.release()
    engine.stop()
    del engine
    span.release()


def test_a_table_is_copied() -> None:
    table = np.array([[1.0], [2.0]], np.float32)
    pooled = operators.lookup(table)
    table[:] = -9
    np.testing.assert_array_equal(pooled.answer_on_host(queries_for(pooled, [[1]])), [[2]])


def test_samples_follow_counts_unless_an_exponent_is_given() -> None:
    counts = np.zeros(1000, np.int64)
    counts[[3, 700]] = [1, 9]
    table = np.ones((1000, 8))
    rows = sampled(operators.lookup(table, counts=counts), 200)["rows"]
    assert set(np.unique(rows)) == {3, 700}
    assert (rows == 700).mean() == pytest.approx(0.9, abs=0.02)
    drawn = np.bincount(sampled(operators.lookup(table, exponent=2), 2000)["rows"].reshape(-1), minlength=1000)
    popular = np.argsort(-drawn)[:4]
    np.testing.assert_allclose(drawn[popular] / drawn[popular[0]], [1, 1 / 4, 1 / 9, 1 / 16], rtol=0.1)
    assert np.diff(np.sort(popular)).min() > 50, "popular rows are scattered"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"table": np.zeros((0, 3))}, "lookup: rows of the table must be 1 to 4294967295, not 0"),
        ({"table": np.zeros((1, 5000))}, "lookup: columns of the table must be 1 to 4096, not 5000"),
        ({"table": [1, 2]}, "lookup: elements of the table have 1 dimensions, not 2"),
        ({"table": [[np.nan]]}, "lookup: element (0, 0) of the table is nan, which is not finite as float16"),
        ({"table": [[1, 1e6]]}, "lookup: element (0, 1) of the table is 1000000, which is not finite as float16"),
        ({"table": [[1]], "shape": (1, 1)}, "lookup: shape is for a random table or a span: leave it out"),
        ({"shape": (0, 1)}, "lookup: shape must be rows and columns, 1 or more of each, not (0, 1)"),
        ({"most": 0}, "lookup: most must be 1 to 1024, not 0"),
        ({"most": 1025}, "lookup: most must be 1 to 1024, not 1025"),
        ({"pooling": "median"}, "a pooling must be sum, mean or max, not 'median'"),
        ({"pooling": "mean", "weighted": True}, "lookup: weights are possible only with sum pooling"),
        ({"dtype": "int8"}, "lookup: dtype must be float16 or float32, not int8"),
        ({"threads": 2000}, "lookup: threads must be 1 to 1024, not 2000"),
        ({"exponent": -1.0}, "lookup: the exponent of Zipf's law must be finite and 0 or more, not -1"),
        ({"counts": [1, 2, 3]}, "lookup: there are 3 counts, but the table has 2 rows"),
        ({"counts": [1, -2]}, "lookup: counts must be 0 or more, not -2"),
        ({"counts": [0, 0]}, "lookup: counts are all 0"),
        ({"counts": [0.5, 1]}, "lookup: counts must be whole numbers, one per row, not 1 dimensions of float64"),
        ({"counts": [[1, 2]]}, "lookup: counts must be whole numbers, one per row, not 2 dimensions of int64"),
    ],
)
def test_what_a_table_cannot_be(given: dict[str, Any], message: str) -> None:
    if "table" not in given and "shape" not in given:
        given = {"table": [[1], [2]], **given}
    with pytest.raises(UsageError) as raised:
        operators.lookup(**given)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "lookup: a span needs shape: its rows and columns, 1 or more of each, not None"),
        ({"shape": (0, 8)}, "lookup: a span needs shape: its rows and columns, 1 or more of each, not (0, 8)"),
        ({"shape": (1, 12)}, "lookup: rows of a span must have a multiple of 8 columns, not 12"),
        ({"shape": (131073, 8)}, "lookup: 131073 rows of 8 columns as float16 take 2097168 bytes, but the span has"),
        ({"shape": (2**32 - 1, 4096)}, "lookup: 4294967295 rows of 4096 columns as float16 take 35184372080640 bytes"),
        ({"shape": (2**32, 8)}, "lookup: rows of the table must be 1 to 4294967295, not 4294967296"),
        ({"shape": (1, 8), "device_bytes": 0}, "lookup: the rows of a span are already placed: leave out device_bytes"),
        ({"shape": (1, 8), "counts": [1]}, "lookup: the rows of a span are already placed: leave out device_bytes"),
    ],
)
def test_what_a_span_cannot_hold(given: dict[str, Any], message: str) -> None:
    span = Span("cpu", PAGE_BYTES, Placement.all("host"))
    with pytest.raises(UsageError) as raised:
        operators.lookup(span, **given)
    assert str(raised.value).startswith(message)
    span.release()  # no operator uses it any more


def test_a_table_too_large_for_the_host_says_how_many_bytes_it_takes() -> None:
    program = """
import resource, numpy as np
from pathlib import Path
from headrace import operators
table = np.ones((1_000_000, 64), np.float16)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
try:
    operators.lookup(table, dtype="float32")
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "SystemError lookup: 1000000 rows of 64 columns as float32 take 256000000 bytes of host memory, "
        "which is not available\n"
    )
