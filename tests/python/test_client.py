"""Engines and clients: single and multiple queries, arrays of every kind, and invalid ones."""

import asyncio
import threading

import numpy as np
import pytest
from wire_serving import waits

import headrace
from headrace import Engine, Errc, Plan, UsageError


@pytest.fixture
def operator() -> headrace.Operator:
    return headrace.light(query_bytes=64, steps=8)


def test_one_query(operator: headrace.Operator):
    query = operator.sample(1)[0]
    with Engine("cpu", operator) as engine, engine.connect() as client:
        assert np.array_equal(client.ask(query), operator.answer_on_host(query)[0])
    assert engine.statistics().answered == 1


@pytest.mark.parametrize("choices", [{}, {"threads": 2, "slots": 4}, {"streams": "shared", "allocator": "per-query"}])
def test_many_queries_are_answered_in_order(operator: headrace.Operator, choices: dict[str, object]):
    queries = operator.sample(5000, first=7)
    with Engine("cpu", operator, Plan(**choices)) as engine, engine.connect() as client:
        answers, status = client.ask_many(queries)
    assert answers.shape == (5000, 8)
    assert not status.any()
    assert np.array_equal(answers, operator.answer_on_host(queries))


def test_any_buffer_will_do(operator: headrace.Operator):
    queries = operator.sample(10)
    expected = operator.answer_on_host(queries)
    words = queries.view("<u4")
    records = queries.view(np.dtype([("head", "<u8"), ("tail", "u1", 56)]))
    with Engine("cpu", operator) as engine, engine.connect() as client:
        for buffer in (words, records, queries.tobytes(), bytearray(queries), memoryview(queries), queries.reshape(-1)):
            answers, status = client.ask_many(buffer)
            assert not status.any()
            assert np.array_equal(answers, expected)


def test_no_queries(operator: headrace.Operator):
    with Engine("cpu", operator) as engine, engine.connect() as client:
        answers, status = client.ask_many(np.empty((0, 64), np.uint8))
    assert answers.shape == (0, 8)
    assert answers.dtype == np.uint64
    assert status.shape == (0,)


@pytest.mark.parametrize(
    ("queries", "says"),
    [
        (np.zeros(100, np.uint8), "100 bytes are not a whole number of items of 64 bytes"),
        (np.zeros((4, 128), np.uint8)[:, ::2], "numpy.ascontiguousarray"),
        (np.zeros((128, 4), np.uint8).T, "numpy.ascontiguousarray"),
    ],
)
def test_what_does_not_fit_is_named_and_not_copied(operator: headrace.Operator, queries: np.ndarray, says: str):
    with Engine("cpu", operator) as engine, engine.connect() as client:
        with pytest.raises(UsageError, match=says):
            client.ask_many(queries)
        with pytest.raises(UsageError, match=says):
            client.submit_many(queries)
    assert engine.statistics().submitted == 0


def test_one_query_of_another_size(operator: headrace.Operator):
    with Engine("cpu", operator) as engine, engine.connect() as client:
        for call in (client.ask, client.submit):
            with pytest.raises(UsageError, match="takes 64 bytes, not 63"):
                call(bytes(63))
        with pytest.raises(TypeError, match="must be a NumPy array or another buffer"):
            client.ask("text")  # type: ignore[arg-type]


def test_submit_and_poll(operator: headrace.Operator):
    queries = operator.sample(8)
    with Engine("cpu", operator, Plan(slots=4)) as engine, engine.connect() as client:
        assert client.submit_many(queries, tag=100) == 4
        with pytest.raises(headrace.Error, match="full") as refused:
            client.submit(queries[4])
        assert refused.value.code is Errc.full
        assert client.wait(client.oldest + 3)
        done = client.poll()
        assert len(done) == 4
        assert done.tags.tolist() == [100, 101, 102, 103]
        assert np.diff(done.tickets).tolist() == [1, 1, 1]
        assert np.array_equal(done.answers, operator.answer_on_host(queries[:4]))
        assert client.in_flight == 0
        assert len(client.poll()) == 0
    assert engine.statistics().refused >= 1


def test_ask_needs_an_idle_client(operator: headrace.Operator):
    query = operator.sample(1)
    with Engine("cpu", operator) as engine, engine.connect() as client:
        client.submit(query)
        with pytest.raises(UsageError, match="1 queries of this client are in flight"):
            client.ask(query)


def test_a_deadline_that_has_passed(operator: headrace.Operator):
    queries = operator.sample(3)
    with Engine("cpu", operator) as engine, engine.connect() as client:
        answers, status = client.ask_many(queries, deadline=0)
        assert {Errc.of_status(entry) for entry in status} == {Errc.deadline_exceeded}
        assert not answers.any()
        with pytest.raises(headrace.Error, match="deadline exceeded"):
            client.ask(queries[0], deadline=0)
    assert engine.statistics().expired == 4


def test_a_late_query_does_not_wait_for_a_long_one():
    long = headrace.operators.reference(steps=1_000_000)  # hundreds of milliseconds
    query = long.sample(1)[0]
    with Engine("cpu", long, Plan(threads=1)) as engine, engine.connect() as client:
        client.submit(query, tag=1)
        late = client.submit(query, tag=2, deadline=0.01)
        assert client.wait(late)
        back = []
        while client.in_flight > 0:
            done = client.poll()
            back += zip(done.tags.tolist(), done.status.tolist(), strict=True)
    assert [tag for tag, _ in back] == [2, 1]
    assert Errc.of_status(back[0][1]) == Errc.deadline_exceeded
    assert back[1][1] == 0


@pytest.mark.parametrize("slots", [2, 16])
def test_many_queries_of_which_most_are_late(slots: int):
    long = headrace.operators.reference(steps=100_000)
    queries = long.sample(12)
    expected = long.answer_on_host(queries)
    with Engine("cpu", long, Plan(threads=1, slots=slots)) as engine, engine.connect() as client:
        for deadline in (0.0, 0.01, 0.08):
            answers, status = client.ask_many(queries, deadline=deadline)
            assert {Errc.of_status(entry) for entry in status} <= {None, Errc.deadline_exceeded}
            assert Errc.of_status(status[-1]) == Errc.deadline_exceeded
            for index, entry in enumerate(status):
                assert np.array_equal(answers[index], expected[index] if entry == 0 else np.zeros_like(answers[index]))
        answers, status = client.ask_many(queries)  # waits for slots taken by late queries
        assert not status.any()
        assert np.array_equal(answers, expected)


def test_a_negative_deadline(operator: headrace.Operator):
    with (
        Engine("cpu", operator) as engine,
        engine.connect() as client,
        pytest.raises(UsageError, match="deadline must be"),
    ):
        client.ask(operator.sample(1), deadline=-1)


def test_after_stop(operator: headrace.Operator):
    engine = Engine("cpu", operator)
    client = engine.connect()
    engine.stop()
    _, status = client.ask_many(operator.sample(3))
    assert {Errc.of_status(entry) for entry in status} == {Errc.stopped}
    with pytest.raises(headrace.Error) as stopped:
        client.submit(operator.sample(1))
    assert stopped.value.code is Errc.stopped


def test_after_close(operator: headrace.Operator):
    with Engine("cpu", operator, Plan(clients_max=1)) as engine:
        client = engine.connect()
        with pytest.raises(UsageError):
            engine.connect()
        client.close()
        client.close()
        with pytest.raises(UsageError, match="closed"):
            client.ask(operator.sample(1))
        engine.connect().close()


def test_clients_in_threads(operator: headrace.Operator):
    queries = operator.sample(2000)
    expected = operator.answer_on_host(queries)
    right = []

    def ask(engine: Engine) -> None:
        with engine.connect() as client:
            answers, _ = client.ask_many(queries)
            right.append(np.array_equal(answers, expected))

    with Engine("cpu", operator, Plan(threads=2)) as engine:
        threads = [threading.Thread(target=ask, args=(engine,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert right == [True] * 4


def test_two_threads_on_one_client_are_told():
    slow = headrace.operators.reference(steps=200000)
    entered = threading.Event()
    with Engine("cpu", slow) as engine, engine.connect() as client:
        ticket = client.submit(slow.sample(1))

        def wait() -> None:
            entered.set()
            client.wait(ticket)

        thread = threading.Thread(target=wait)
        thread.start()
        entered.wait()
        told = False
        # The other thread is in wait() until the query is back, which takes far longer than entering it.
        while thread.is_alive() and not told:
            try:
                client.poll(0)
            except UsageError as error:
                told = "another thread" in str(error)
        thread.join()
    assert told


def test_the_last_reference_may_go_in_any_order(operator: headrace.Operator):
    engine = Engine("cpu", operator)
    client = engine.connect()
    client.submit_many(operator.sample(100))
    del engine
    assert client.wait(client.oldest + 99)
    del client


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("schedule", "fast", "'fast' is not a schedule: blocking"),
        ("allocator", "malloc", "per-query"),
        ("host_memory", "tape", "pageable"),
        ("streams", "many", "per-thread"),
        ("binding", "glue", "cores"),
        ("spin", -1, "spin must be"),
    ],
)
def test_plan_choices_are_checked_when_set(field: str, value: object, says: str):
    with pytest.raises(UsageError, match=says):
        Plan(**{field: value})
    plan = Plan()
    with pytest.raises(UsageError, match=says):
        setattr(plan, field, value)


@pytest.mark.parametrize("field", ["threads", "slots", "clients_max"])
def test_plans_that_cannot_work_are_refused(operator: headrace.Operator, field: str):
    with pytest.raises(UsageError, match=f"{field} must be"):
        Engine("cpu", operator, Plan(**{field: 0}))


def test_plan_fields_and_copies():
    plan = Plan(name="mine", threads=3, streams="shared", spin=1e-5)
    other = plan.copy()
    other.threads = 4
    assert (plan.threads, other.threads) == (3, 4)
    assert (plan.name, plan.streams, plan.spin, plan.parallelism) == ("mine", "shared", 1e-5, 1)
    with pytest.raises(TypeError):
        Plan(colour="red")  # type: ignore[call-arg]
    assert Plan().threads == 1, "the default is not shared"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: headrace.light(query_bytes=3), "query_bytes must be a multiple of 4"),
        (lambda: headrace.light(threads=0), "threads"),
        (lambda: headrace.operators.reference(blocks=0), "blocks"),
        (lambda: headrace.serve.find_rung("moon"), "no rung 'moon'.*1 single"),
        (lambda: Engine("toaster", headrace.light()), "toaster"),
    ],
)
def test_bad_arguments_are_named(make: object, says: str):
    with pytest.raises(UsageError, match=says):
        make()  # type: ignore[operator]


def test_status_names():
    assert Errc.of_status(0) is None
    assert [Errc.of_status(1 + number) for number in range(len(Errc))] == list(Errc)


def test_waiting_for_a_ticket_that_never_was_names_it(operator: headrace.Operator):
    with (
        Engine("cpu", operator) as engine,
        engine.connect() as client,
        pytest.raises(headrace.UsageError, match="ticket 12345 does not belong to a query"),
    ):
        client.wait(12345)


def test_a_share_changes_while_queries_are_in_flight(operator: headrace.Operator):
    plan = Plan(schedule="dispatched", host_memory="mapped", share=0.5, slots=64)
    queries = operator.sample(20_000)
    with Engine("cpu", operator, plan) as engine, engine.connect() as client:
        assert engine.plan == plan
        changes, asked = 0, []
        asking = threading.Thread(target=lambda: asked.append(client.ask_many(queries)))
        asking.start()
        while asking.is_alive():
            share = (0.25, 1.0)[changes % 2]
            engine.change(share=share)
            assert engine.plan.share == share
            changes += 1
        asking.join()
        ((answers, status),) = asked
        assert changes > 1
        assert not status.any()
        assert np.array_equal(answers, operator.answer_on_host(queries))
        for wrong in (0.0, -1.0, 2.0, float("nan")):
            with pytest.raises(UsageError, match="share must be above 0 and at most 1"):
                engine.change(share=wrong)
    with pytest.raises(headrace.Error) as stopped:
        engine.change(share=0.5)
    assert stopped.value.code == Errc.stopped
    with (
        Engine("cpu", operator) as engine,
        pytest.raises(UsageError, match="share is available with schedule 'dispatched'"),
    ):
        engine.change(share=0.5)


def test_bounds_change_while_queries_are_in_flight(operator: headrace.Operator):
    queries = operator.sample(20_000)
    with Engine("cpu", operator, Plan(slots=64, latency_max=600)) as engine, engine.connect() as client:
        assert engine.plan.latency_max == 600
        changes, asked = 0, []
        asking = threading.Thread(target=lambda: asked.append(client.ask_many(queries)))
        asking.start()
        while asking.is_alive():
            engine.change(in_flight_max=changes % 65, latency_max=(600, 0)[changes % 2])
            assert engine.plan.in_flight_max == changes % 65
            changes += 1
        asking.join()
        ((answers, status),) = asked
        assert changes > 1
        assert not status.any()
        assert np.array_equal(answers, operator.answer_on_host(queries))
        before = engine.plan
        for wrong, says in (
            ({"in_flight_max": 65}, "at most the 64 slots"),
            ({"latency_max": -1.0}, "latency_max must be 0 to"),
            ({"latency_max": float("nan")}, "latency_max must be 0 to"),
            ({"latency_max": 3601.0}, "latency_max must be 0 to 3600 seconds"),
        ):
            with pytest.raises(UsageError, match=says):
                engine.change(**wrong)
        for wrong in ({"in_flight_max": -1}, {"in_flight_max": 1.5}, {"share": "half"}, {"slots": 32}):
            with pytest.raises(TypeError):
                engine.change(**wrong)
        assert engine.plan == before


def test_the_time_in_line_of_a_coroutine_counts_towards_the_bound():
    async def ask() -> list[object]:
        plan = Plan(slots=1, latency_max=0.2)
        with Engine("cpu", waits(), plan) as engine:
            async with engine.connect_async() as client:
                engine.change(latency_max=0)
                first = client.ask(np.int64(600_000))
                engine.change(latency_max=0.2)
                return await asyncio.gather(first, client.ask(np.int64(1)), return_exceptions=True)

    first, late = asyncio.run(ask())
    assert first == 600_000
    assert isinstance(late, headrace.Error)
    assert late.code == Errc.deadline_exceeded
