"""AsyncClient: queries of coroutines, their order, their errors, and the effects of loops, tasks and threads."""

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forking import in_child

import headrace
from headrace import Engine, Errc, Plan, UsageError
from headrace.serve import AsyncClient

PLANS = {
    "blocking": Plan(),
    "few slots": Plan(slots=4),
    "threads": Plan(threads=2),
    "dispatched": Plan(schedule="dispatched", host_memory="mapped", slots=64),
    "persistent": Plan(schedule="persistent", host_memory="mapped"),
}
LIMIT = 20  # seconds after which something counts as lost


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs the coroutine in a new loop, and returns its result."""

    async def limited() -> Any:
        return await asyncio.wait_for(work, LIMIT)

    return asyncio.run(limited())


@pytest.fixture
def operator() -> headrace.Operator:
    return headrace.light(query_bytes=64, steps=8)


@pytest.fixture
def slow() -> headrace.Operator:
    """An operator that takes tens of milliseconds per query."""
    return headrace.operators.reference(steps=100_000)


@pytest.mark.parametrize("plan", PLANS)
def test_every_coroutine_gets_the_answer_of_its_query(operator: headrace.Operator, plan: str):
    queries = operator.sample(3000, first=5)
    expected = operator.answer_on_host(queries)

    async def asks(client: AsyncClient, first: int) -> None:
        for index in range(first, len(queries), 100):
            assert np.array_equal(await client.ask(queries[index]), expected[index])

    async def work() -> None:
        with Engine("cpu", operator, PLANS[plan]) as engine:
            async with engine.connect_async() as client:
                await asyncio.gather(*[asks(client, first) for first in range(100)])
                assert client.in_flight == 0
            assert engine.statistics().answered == 3000

    run(work())


@pytest.mark.parametrize("plan", PLANS)
def test_ask_many_beside_ask(operator: headrace.Operator, plan: str):
    queries = operator.sample(3000)
    expected = operator.answer_on_host(queries)

    async def work() -> None:
        with Engine("cpu", operator, PLANS[plan]) as engine:
            async with engine.connect_async() as client:
                one, many, other, none = await asyncio.gather(
                    client.ask(queries[7]),
                    client.ask_many(queries),
                    client.ask(queries[8]),
                    client.ask_many(queries[:0]),
                )
        assert np.array_equal(one, expected[7])
        assert np.array_equal(many[0], expected)
        assert many[1].shape == (3000,)
        assert not many[1].any()
        assert np.array_equal(other, expected[8])
        assert none[0].shape == (0, 8)

    run(work())


def test_answers_have_the_type_of_the_operator():
    index = headrace.Index.build(["an apple", "an apple pie"])

    async def work() -> None:
        with Engine("cpu", headrace.retrieval(index)) as engine:
            async with engine.connect_async() as client:
                answer = await client.ask(index.compile("apple"))
                answers, _ = await client.ask_many(index.compile_many(["pie", "unicorn"]))
        assert answer["hits"] == 2
        assert answer["ids"][:2].tolist() == [0, 1]
        assert answers["hits"].tolist() == [1, 0]
        assert answer.dtype == answers.dtype == headrace.operators.RETRIEVAL_ANSWER

    run(work())


def test_answers_are_the_callers_own(operator: headrace.Operator):
    queries = operator.sample(200)
    expected = operator.answer_on_host(queries)

    async def work() -> list[Any]:
        with Engine("cpu", operator) as engine:
            async with engine.connect_async() as client:
                answers = await asyncio.gather(*[client.ask(query) for query in queries])
                answers[0][:] = 0  # the array is writable
                await client.ask_many(queries[::-1].copy())
        return answers

    answers = run(work())
    assert np.array_equal(np.stack(answers)[1:], expected[1:])


def test_a_query_that_waits_in_line_may_change_afterwards(operator: headrace.Operator):
    queries = operator.sample(100)
    expected = operator.answer_on_host(queries)

    async def work() -> None:
        with Engine("cpu", operator, Plan(slots=2)) as engine:
            async with engine.connect_async() as client:
                buffer = np.empty(64, np.uint8)
                asked = []
                for query in queries:
                    buffer[:] = query
                    asked.append(client.ask(buffer))
                assert client.waiting == 98
                assert np.array_equal(np.stack(await asyncio.gather(*asked)), expected)
                assert client.waiting == 0

    run(work())


def test_calls_in_line_are_answered_in_order(operator: headrace.Operator):
    queries = operator.sample(50)

    async def work() -> None:
        order: list[int] = []
        with Engine("cpu", operator, Plan(slots=2)) as engine:
            async with engine.connect_async() as client:
                for number, query in enumerate(queries):
                    asked = client.ask(query) if number % 10 else client.ask_many(queries)
                    asked.add_done_callback(lambda _, number=number: order.append(number))
                await client.ask(queries[0])
        assert order[:50] == list(range(50))

    run(work())


def test_the_line_has_an_end(slow: headrace.Operator):
    queries = slow.sample(8)

    async def work() -> None:
        with Engine("cpu", slow, Plan(slots=2)) as engine:
            async with engine.connect_async(waiting_max=3) as client:
                asked = [client.ask(query) for query in queries[:5]]
                for call in (lambda: client.ask(queries[5]), lambda: client.ask_many(queries)):
                    with pytest.raises(headrace.Error, match="all 2 slots are taken and 3 calls wait") as refused:
                        call()
                    assert refused.value.code is Errc.full
                asked[4].cancel()  # no longer waits
                asked.append(client.ask(queries[6]))
                answers = await asyncio.gather(*asked[:4], asked[5])
        assert np.array_equal(np.stack(answers), slow.answer_on_host(queries[[0, 1, 2, 3, 6]]))

    run(work())


def test_a_cancelled_query_gives_its_slot_back():
    slow = headrace.operators.reference(steps=1_000_000)  # hundreds of milliseconds
    queries = slow.sample(4)

    async def work() -> None:
        with Engine("cpu", slow, Plan(slots=2)) as engine:
            async with engine.connect_async() as client:
                tasks = [asyncio.create_task(asyncio.wait_for(client.ask(query), None)) for query in queries[:3]]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                back = await asyncio.gather(*tasks, return_exceptions=True)
                assert [type(one) for one in back] == [asyncio.CancelledError] * 3
                assert np.array_equal(await client.ask(queries[3]), slow.answer_on_host(queries[3])[0])
            assert engine.statistics().answered == 3  # the third one never left the line

    run(work())


def test_a_timeout(slow: headrace.Operator):
    queries = slow.sample(2)

    async def work() -> None:
        with Engine("cpu", slow) as engine:
            async with engine.connect_async() as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await client.ask(queries[0])
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await client.ask_many(queries)
                answers, _ = await client.ask_many(queries)
        assert np.array_equal(answers, slow.answer_on_host(queries))

    run(work())


@pytest.mark.parametrize("plan", ["blocking", "few slots", "dispatched"])
def test_deadlines(plan: str):
    slow = headrace.operators.reference(steps=500_000)  # more than a hundred milliseconds
    queries = slow.sample(6)

    async def work() -> None:
        with Engine("cpu", slow, PLANS[plan]) as engine:
            async with engine.connect_async() as client:
                first = client.ask(queries[0])
                late = [client.ask(query, deadline=0.001 * number) for number, query in enumerate(queries)]
                _, status = await client.ask_many(queries, deadline=0.001)
                errors = await asyncio.gather(*late, return_exceptions=True)
                assert [error.code for error in errors] == [Errc.deadline_exceeded] * 6
                assert {Errc.of_status(one) for one in status} == {Errc.deadline_exceeded}
                assert np.array_equal(await first, slow.answer_on_host(queries[0])[0])
                assert np.array_equal(await client.ask(queries[1]), slow.answer_on_host(queries[1])[0])
                with pytest.raises(UsageError, match="deadline must be"):
                    client.ask(queries[0], deadline=-1)

    run(work())


def test_a_stopped_engine_tells_everyone(slow: headrace.Operator):
    queries = slow.sample(40)

    async def work() -> None:
        with Engine("cpu", slow, Plan(slots=4)) as engine:
            async with engine.connect_async() as client:
                asked = [client.ask(query) for query in queries[:20]]
                many = client.ask_many(queries)
                engine.stop()
                back = await asyncio.gather(*asked, return_exceptions=True)
                codes = {getattr(one, "code", None) for one in back}
                assert codes <= {None, Errc.stopped}
                assert back[-1].code is Errc.stopped
                assert Errc.of_status((await many)[1][-1]) is Errc.stopped
                with pytest.raises(headrace.Error, match="stopped"):
                    await client.ask(queries[0])

    run(work())


def test_a_failed_engine_tells_everyone():
    pytest.importorskip("numba")

    @headrace.operator(query="i8", answer="i8")
    def picky(_group, query, answer):
        if query[0] == 7:
            raise ValueError
        answer[0] = query[0] + 1

    async def work() -> None:
        with Engine("cpu", picky(), Plan(slots=4)) as engine:
            async with engine.connect_async() as client:
                assert await client.ask(np.int64(1)) == 2
                back = await asyncio.gather(
                    *[client.ask(np.int64(number)) for number in range(7, 30)], return_exceptions=True
                )
                assert {error.code for error in back} == {Errc.device_fault}
                with pytest.raises(headrace.DeviceError, match="picky could not answer"):
                    await client.ask(np.int64(1))

    run(work())


def test_what_does_not_fit_disturbs_nobody(operator: headrace.Operator):
    queries = operator.sample(2)

    async def work() -> None:
        with Engine("cpu", operator) as engine:
            async with engine.connect_async() as client:
                asked = client.ask(queries[0])
                with pytest.raises(UsageError, match="takes 64 bytes, not 63"):
                    client.ask(bytes(63))
                with pytest.raises(UsageError, match=r"numpy\.ascontiguousarray"):
                    client.ask_many(queries[:, ::2])
                with pytest.raises(TypeError, match="must be a NumPy array or another buffer"):
                    client.ask("text")  # type: ignore[arg-type]
                assert np.array_equal(await asked, operator.answer_on_host(queries[0])[0])

    run(work())


def test_outside_of_a_loop_the_other_client_is_named(operator: headrace.Operator):
    query = operator.sample(1)
    with Engine("cpu", operator) as engine:
        client = engine.connect_async()
        for call, name in ((client.ask, "ask"), (client.ask_many, "ask_many")):
            with pytest.raises(
                UsageError, match=rf"needs a running event loop: .* Client.{name}\(\) of Engine.connect"
            ):
                call(query)


def test_another_thread_and_another_loop_are_told(slow: headrace.Operator):
    query = slow.sample(1)
    told: list[str] = []

    async def other(client: AsyncClient) -> None:
        for call in (lambda: client.ask(query), client.close):
            with pytest.raises(UsageError, match="belongs to another event loop"):
                await call()
            told.append("told")

    async def work() -> None:
        with Engine("cpu", slow) as engine:
            async with engine.connect_async() as client:
                asked = client.ask(query)
                thread = threading.Thread(target=lambda: asyncio.run(other(client)))
                thread.start()
                thread.join()
                assert np.array_equal(await asked, slow.answer_on_host(query)[0])

    run(work())
    assert told == ["told"] * 2


def test_a_client_goes_on_in_the_next_loop(slow: headrace.Operator):
    queries = slow.sample(4)

    async def leaves(client: AsyncClient) -> None:
        for query in queries:
            client.ask(query)

    async def asks(client: AsyncClient) -> None:
        assert np.array_equal(await client.ask(queries[1]), slow.answer_on_host(queries[1])[0])
        await client.close()

    with Engine("cpu", slow, Plan(slots=2, clients_max=1)) as engine:
        client = engine.connect_async()
        run(leaves(client))  # the loop is closed while queries are in flight and in line
        run(asks(client))
        engine.connect().close()


def test_closing_waits_for_what_was_asked(slow: headrace.Operator):
    queries = slow.sample(3)

    async def work() -> None:
        with Engine("cpu", slow, Plan(slots=2, clients_max=1)) as engine:
            async with engine.connect_async() as client:
                asked = [client.ask(query) for query in queries]
            assert np.array_equal(np.stack([one.result() for one in asked]), slow.answer_on_host(queries))
            await client.close()  # again
            with pytest.raises(UsageError, match="closed"):
                client.ask(queries[0])
            async with engine.connect_async():  # the lane is free again
                pass

    run(work())


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("schedule", ["blocking", "dispatched"])
def test_clients_leave_no_descriptor_and_no_lane(operator: headrace.Operator, schedule: str):
    query = operator.sample(1)
    plan = Plan(schedule=schedule, host_memory="mapped", clients_max=1)

    async def work() -> None:
        with Engine("cpu", operator, plan) as engine:
            before = 0
            for turn in range(300):
                client = engine.connect_async()
                await client.ask(query)
                if turn % 2:
                    await client.close()
                del client  # every second one without close()
                if turn == 0:
                    before = _open_files()
            assert _open_files() <= before

    run(work())


def test_a_client_in_a_circle_with_its_task_is_collected(slow: headrace.Operator):
    query = slow.sample(1)
    gone = []

    class Holder:
        pass

    async def leaves(engine: Engine) -> None:
        holder = Holder()
        gone.append(weakref.ref(holder))
        client = engine.connect_async()

        async def waits() -> None:
            await client.ask(query)
            holder.client = client  # type: ignore[attr-defined]

        holder.task = asyncio.get_running_loop().create_task(waits())  # type: ignore[attr-defined]
        client.ask(query)
        await asyncio.sleep(0)

    with Engine("cpu", slow, Plan(clients_max=1)) as engine:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leaves(engine))
        loop.set_exception_handler(lambda *_: None)  # from the task that is destroyed while it waits
        loop.close()
        del loop
        gc.collect()
        assert gone[0]() is None
        engine.connect().close()


def test_a_forked_child_is_told_and_leaves_the_parent_alone(operator: headrace.Operator):
    query = operator.sample(1)

    async def work() -> None:
        with Engine("cpu", operator) as engine:
            async with engine.connect_async() as client:
                expected = await client.ask(query)

                def child() -> str:
                    try:
                        client.ask(query)
                    except headrace.Error as error:
                        return str(error)
                    return "answered"

                assert "made before fork()" in in_child(child)
                assert np.array_equal(await client.ask(query), expected)

    run(work())


def test_ctrl_c_ends_a_program_that_waits(slow: headrace.Operator):
    query = slow.sample(1)

    async def work(engine: Engine) -> None:
        async with engine.connect_async() as client:
            asked = client.ask(query)
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), 2)
            await asked
            await asyncio.Event().wait()

    with Engine("cpu", slow, Plan(clients_max=1)) as engine:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(work(engine))
        engine.connect().close()
