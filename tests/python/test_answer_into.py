"""Queries and answers in arrays that lie on the engine's device: headrace.serve.answer_into()."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import UsageError
from headrace.serve import answer_into
from headrace.serve_arrays import _handle

QUERY = [("point", "f4", 3), ("scale", "f4")]
TWICE = "void twice(Group, const Query& query, Answer& answer) { answer = 2 * query; }"


@headrace.operator(query=QUERY, answer="f4")
def stretched(_group: Any, query: Any, answer: Any) -> None:
    total = 0.0
    for i in range(3):
        total += query.point[i]
    answer[0] = query.scale * total


@headrace.operator(query="i8", answer="i8")
def picky(_group: Any, query: Any, answer: Any) -> None:
    if query[0] == 7:
        raise ValueError("seven")
    answer[0] = query[0]


def queries(count: int) -> np.ndarray:
    random = np.random.default_rng(2)
    made = np.zeros(count, QUERY)
    made["point"], made["scale"] = random.random((count, 3)), random.random(count)
    return made


@pytest.mark.parametrize("rung", ["single", "page-locked", "pipelined", "async", "graph", "batched", "caller"])
def test_answers_are_those_that_clients_get(rung: str):
    given = queries(200)
    with headrace.Engine("cpu", stretched(), headrace.serve.find_rung(rung).plan) as engine:
        told = np.empty(200, "f4")
        answer_into(engine, given, told)
        with engine.connect() as client:
            asked, status = client.ask_many(given)
    assert not status.any()
    np.testing.assert_array_equal(told, asked)


def test_rows_of_any_type_with_as_many_bytes_will_do():
    given = queries(20)
    with headrace.Engine("cpu", stretched()) as engine:
        plain, told = np.empty(20, "f4"), np.empty((20, 4), np.uint8)
        answer_into(engine, given, plain)
        answer_into(engine, given.view("f4").reshape(20, 4), told)
        answer_into(engine, given[:0], told[:0])
    np.testing.assert_array_equal(told.view("f4")[:, 0], plain)


def test_a_query_that_cannot_be_answered_fails_the_engine():
    with headrace.Engine("cpu", picky()) as engine:
        told = np.zeros(2, "i8")
        answer_into(engine, np.array([7, 8]), told)
        with pytest.raises(headrace.DeviceError) as caught:
            answer_into(engine, np.array([8, 8]), told)
        assert caught.value.code == headrace.Errc.device_fault


def test_a_stopped_engine_says_so():
    engine = headrace.Engine("cpu", stretched())
    engine.stop()
    with pytest.raises(headrace.Error) as caught:
        answer_into(engine, queries(1), np.empty(1, "f4"))
    assert caught.value.code == headrace.Errc.stopped


def read_only() -> np.ndarray:
    made = np.empty(4, "f4")
    made.flags.writeable = False
    return made


@pytest.mark.parametrize(
    ("given", "told", "stream", "why"),
    [
        ([1, 2], np.empty(4, "f4"), None, "queries are no NumPy array, but list"),
        (queries(4), np.empty(3, "f4"), None, "4 queries cannot have 3 answers"),
        (queries(4), np.empty(4, "f8"), None, "each answer has 4 bytes, but 4 rows have 32 bytes in all"),
        (np.empty((4, 3), "f4"), np.empty(4, "f4"), None, "each query has 16 bytes, but 4 rows have 48 bytes in all"),
        (queries(8)[::2], np.empty(4, "f4"), None, "must be a contiguous array"),
        (queries(4)[0], np.empty(4, "f4"), None, "no NumPy array"),
        (queries(4), read_only(), None, "answers are read-only"),
        (queries(4), np.empty(4, "f4"), 5, "has no streams"),
    ],
)
def test_what_does_not_fit_is_refused(given: Any, told: Any, stream: Any, why: str):
    with headrace.Engine("cpu", stretched()) as engine, pytest.raises(UsageError, match=why) as caught:
        answer_into(engine, given, told, stream=stream)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rung", ["dispatched", "persistent"])
def test_resident_kernels_leave_no_room(rung: str):
    with (
        headrace.Engine("cpu", stretched(), headrace.serve.find_rung(rung).plan) as engine,
        pytest.raises(UsageError, match="resident kernels"),
    ):
        answer_into(engine, queries(1), np.empty(1, "f4"))


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (7, 7),
        (SimpleNamespace(cuda_stream=8), 8),  # PyTorch
        (SimpleNamespace(ptr=9), 9),  # CuPy
        (SimpleNamespace(handle=SimpleNamespace(value=10)), 10),  # Numba
        (SimpleNamespace(handle=SimpleNamespace(value=None)), 0),  # its default stream
        (SimpleNamespace(__cuda_stream__=lambda: (0, 11)), 11),
    ],
)
def test_streams_of_every_library_are_known(stream: Any, handle: int):
    assert _handle(stream) == handle
    with pytest.raises(UsageError, match="of type str is not known"):
        _handle("seven")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("no GPU")
    return found


@pytest.mark.parametrize("own", [False, True])
def test_tensors_are_answered_in_the_order_of_their_stream(torch: Any, own: bool):
    given = queries(3000)
    stream = torch.cuda.Stream() if own else torch.cuda.current_stream()
    with headrace.Engine("cuda:0", stretched()) as engine, torch.cuda.stream(stream):
        for _ in range(20):
            told = torch.full((3000,), -1.0, device="cuda")
            rows = torch.from_numpy(given.view("f4").reshape(3000, 4)).pin_memory().to("cuda", non_blocking=True)
            answer_into(engine, rows, told, stream=stream)
            doubled = (2 * told).cpu().numpy()
        with engine.connect() as client:
            asked, status = client.ask_many(given)
    assert not status.any()
    np.testing.assert_array_equal(doubled, 2 * asked)


def test_arrays_of_another_place_are_refused_on_a_gpu(torch: Any):
    with headrace.Engine("cuda:0", stretched()) as engine:
        told = torch.empty(4, device="cuda")
        with pytest.raises(UsageError, match="queries are no array of a GPU"):
            answer_into(engine, queries(4), told)
        with pytest.raises(UsageError, match="contiguous"):
            answer_into(engine, torch.empty((4, 8), device="cuda")[:, ::2], told)
