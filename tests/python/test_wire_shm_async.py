"""AsyncClient with a URL: coroutines that ask a server through rings in shared memory."""

import asyncio
import signal
import time
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import Client, Errc, Error, SystemError, UsageError, _core  # noqa: A004
from headrace.serve import AsyncClient

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from forking import in_child
from ring_serving import behind_shm, descriptors, fresh, halves_of, other_server, random_queries, rings, stop, until
from wire_serving import SECONDS, halve, third


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs the coroutine in a new loop, and returns its result."""

    async def limited() -> Any:
        return await asyncio.wait_for(work, SECONDS)

    return asyncio.run(limited())


def test_every_coroutine_gets_the_answer_of_its_query():
    queries = random_queries(np.random.default_rng(3), 2000)
    wanted = halves_of(queries)

    async def asks(client: AsyncClient, first: int) -> None:
        for index in range(first, len(queries), 50):
            answer = await client.ask(queries[index : index + 1])
            for name in ("y", "n", "large"):
                np.testing.assert_array_equal(answer[name], wanted[index][name])

    async def work(url: str) -> None:
        async with AsyncClient(url, slots=16) as client:
            assert client.answer_dtype.names == ("y", "n", "large")
            assert client.query_dtype["x"].shape == (3,)
            await asyncio.gather(*[asks(client, first) for first in range(50)])
            answers, status = await client.ask_many(queries)
            assert not status.any()
            np.testing.assert_array_equal(answers["n"], wanted["n"])
            assert client.in_flight == client.waiting == 0

    with behind_shm(halve()) as (server, url):
        run(work(url))
        assert server.statistics().shm.answered == 4000


def test_a_single_query_after_a_pause_is_answered():
    """Both sides sleep before each query."""

    async def work(url: str) -> None:
        async with AsyncClient(url) as client:
            for number in range(20):
                await asyncio.sleep(0.01)
                assert await client.ask(np.float64(3 * number)) == number

    with behind_shm(third()) as (_, url):
        run(work(url))


def test_the_line_has_an_end_and_a_cancelled_call_leaves_it():
    async def work(url: str) -> None:
        async with AsyncClient(url, slots=1, waiting_max=2) as client:
            asked = [client.ask(np.float64(number)) for number in range(3)]
            assert client.waiting == 2
            with pytest.raises(Error, match="all 1 slots are taken and 2 calls wait") as full:
                client.ask(np.float64(9))
            assert full.value.code == Errc.full
            asked[1].cancel()
            asked.append(client.ask(np.float64(9)))  # the cancelled one makes room
            assert [await one for one in asked if not one.cancelled()] == [0.0, 2 / 3, 3.0]

    with behind_shm(third()) as (_, url):
        run(work(url))


def test_deadlines_hold_while_the_server_stands_still():
    async def work(url: str, process: Any) -> None:
        async with AsyncClient(url, slots=2) as client:
            assert await client.ask(np.float64(3)) == 1
            stop(process)
            began = time.monotonic()
            with pytest.raises(Error) as late:
                await client.ask(np.float64(6), deadline=0.05)
            assert late.value.code == Errc.deadline_exceeded
            _, status = await client.ask_many(np.ones(5), deadline=0.05)  # three of them in line
            assert {Errc.of_status(int(one)) for one in status} == {Errc.deadline_exceeded}
            assert time.monotonic() - began < SECONDS / 2
            process.send_signal(signal.SIGCONT)
            assert await client.ask(np.float64(6)) == 2

    with other_server() as (process, url):
        run(work(url, process))


def test_a_killed_server_is_told_to_all_who_wait_and_costs_nothing_afterwards():
    async def work(url: str, process: Any) -> None:
        client = AsyncClient(url, slots=4)
        assert await client.ask(np.float64(3)) == 1
        stop(process)
        asked = [asyncio.ensure_future(client.ask(np.float64(number))) for number in range(10)]
        await asyncio.sleep(0.05)
        process.kill()
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in done] == [Error] * 10
        assert {one.code for one in done} == {Errc.stopped}
        with pytest.raises(Error, match="the server has ended") as ended:
            await client.ask(np.float64(6))
        assert ended.value.code == Errc.stopped
        before = time.process_time()
        await asyncio.sleep(0.5)
        assert time.process_time() - before < 0.25  # a descriptor that stays readable would keep the loop busy
        await client.close()

    with other_server() as (process, url):
        run(work(url, process))


def test_a_server_that_ends_while_nothing_is_asked_is_noticed():
    async def work() -> None:
        with behind_shm(third()) as (_, url):
            client = AsyncClient(url)
            assert await client.ask(np.float64(3)) == 1
        with pytest.raises(Error, match=r"the server (is about to stop|has ended)") as ended:
            await client.ask(np.float64(3))
        assert ended.value.code == Errc.stopped
        await client.close()

    run(work())


def test_a_drain_answers_what_was_asked():
    async def work() -> None:
        with behind_shm(third()) as (server, url):
            client = AsyncClient(url, slots=64)
            asked = [client.ask(np.float64(number)) for number in range(64)]
            await asyncio.to_thread(server.drain, SECONDS)
            assert await asyncio.gather(*asked) == [number / 3 for number in range(64)]
            with pytest.raises(Error, match="the server is about to stop"):
                await client.ask(np.float64(3))
            await client.close()

    run(work())


def test_clients_leave_nothing_behind():
    async def work(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.ask_many(np.ones(100))
        with pytest.raises(UsageError, match="has been closed"):
            client.ask(np.float64(1))
        AsyncClient(url).ask(np.float64(1)).cancel()  # dropped without being closed

    with behind_shm(third()) as (server, url):
        run(work(url))
        until(lambda: server.statistics().connections_open == 0)
        before = descriptors(), rings()
        for _ in range(20):
            run(work(url))
        until(lambda: server.statistics().connections_open == 0)
        until(lambda: (descriptors(), rings()) == before)


def test_a_client_goes_on_in_the_next_loop():
    with behind_shm(third()) as (_, url):
        client = AsyncClient(url)

        async def asks(number: int) -> float:
            return float(await client.ask(np.float64(number)))

        assert [run(asks(number)) for number in range(3)] == [0, 1 / 3, 2 / 3]

        async def closes() -> None:
            await client.close()

        run(closes())


def test_a_forked_child_is_told_and_leaves_the_parent_alone():
    async def work(url: str) -> None:
        async with AsyncClient(url) as client:
            assert await client.ask(np.float64(3)) == 1

            def child() -> None:
                with pytest.raises(Error, match="fork"):
                    client.ask(np.float64(3))

            in_child(child)
            assert await client.ask(np.float64(6)) == 2

    with behind_shm(third()) as (_, url):
        run(work(url))


def test_what_is_no_server_is_one_line():
    with pytest.raises(UsageError, match="is not of the form shm://NAME"):
        AsyncClient("http://127.0.0.1:8000")
    with pytest.raises(SystemError, match="headrace serve"):
        AsyncClient(f"shm://{fresh()}")
    with behind_shm(third()) as (_, url):
        with pytest.raises(UsageError, match="there is no model 'fourth'"):
            AsyncClient(f"{url}/fourth")
        with pytest.raises(UsageError, match="slots must be a power of two"):
            AsyncClient(url, slots=3)
        with Client(url) as client:
            assert client.ask(np.float64(3)) == 1


def test_it_is_the_class_of_an_engines_client():
    with headrace.Engine("cpu", third()) as engine:
        assert type(engine.connect_async()) is AsyncClient
        assert engine.connect_async().answer_dtype == np.dtype("f8")
