"""Clients of a server through rings in shared memory (headrace.Client with a URL), in this process and in others."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import Client, Errc, Error, Plan, SystemError, UsageError, _core, wire  # noqa: A004

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from ring_serving import (
    behind_shm,
    descriptors,
    halves_of,
    other_server,
    random_queries,
    rings,
    running,
    stop,
    until,
)
from wire_serving import SECONDS, halve, serving, third


def test_answers_of_records_are_those_of_numpy():
    generator = np.random.default_rng(5)
    with behind_shm(halve(), third()) as (server, url), Client(f"{url}/halve", slots=32) as client:
        for size in (1, 31, 32, 33, 1000):
            queries = random_queries(generator, size)
            answers, status = client.ask_many(queries)
            assert not status.any()
            wanted = halves_of(queries)
            for name in ("y", "n", "large"):
                np.testing.assert_array_equal(answers[name], wanted[name])
        one = random_queries(generator, 1)
        assert client.ask(one)["n"] == -one["n"][0]
        assert client.answer_dtype.names == ("y", "n", "large")
        assert client.query_dtype["x"].shape == (3,)
        assert server.statistics().shm.answered == 1098
        with Client(f"{url}/third") as other:
            np.testing.assert_array_equal(other.ask_many(np.array([9.0, -6.0]))[0], [3.0, -2.0])


def test_submit_poll_wait_and_cancel_are_those_of_an_engines_client():
    with behind_shm(third()) as (_, url), Client(url, slots=4) as client:
        tickets = [client.submit(np.float64(3 * i), tag=10 + i) for i in range(4)]
        assert tickets == [0, 1, 2, 3]
        with pytest.raises(Error) as full:
            client.submit(np.float64(1))  # the server may have answered, but nothing has been polled
        assert full.value.code == Errc.full
        assert client.wait(tickets[-1], timeout=SECONDS)
        done = client.poll()
        assert list(done.tags) == [10, 11, 12, 13]
        assert list(done.answers) == [0, 1, 2, 3]
        assert client.in_flight == 0
        assert client.oldest == 4
        with pytest.raises(UsageError, match="ticket 9"):
            client.wait(9)
        with pytest.raises(UsageError, match="8"):
            client.ask(np.float32(1))


def test_each_process_sees_its_own_ring_alone():
    program = """
import sys, numpy as np, headrace
first = int(sys.argv[2])
with headrace.Client(sys.argv[1], slots=64) as client:
    for turn in range(20):
        queries = np.arange(first, first + 500, dtype=np.float64)
        answers, status = client.ask_many(queries)
        assert not status.any()
        np.testing.assert_array_equal(answers, queries / 3)
maps = [line for line in open("/proc/self/maps") if "headrace-ring" in line]
print("right", flush=True)
"""
    with behind_shm(third(), shm_threads=2) as (server, url):
        clients = [
            subprocess.Popen([sys.executable, "-c", program, url, str(1000 * i)], stdout=subprocess.PIPE, text=True)
            for i in range(4)
        ]
        for client in clients:
            assert client.communicate(timeout=SECONDS)[0] == "right\n"
        assert server.statistics().shm.answered == 4 * 20 * 500
        until(lambda: server.statistics().connections_open == 0)


def test_a_server_that_is_not_there_and_other_mistakes_are_a_line_that_helps():
    with pytest.raises(SystemError, match=r"headrace serve \.\.\. --shm nothing") as missing:
        Client("shm://nothing/light")
    assert missing.value.code == Errc.not_found
    assert "\n" not in str(missing.value)
    for url in ("nothing", "http://here/light", "shm://", "shm://a b", "shm://name/"):
        with pytest.raises(UsageError):
            Client(url)
    with behind_shm(halve(), third(), shm_clients_max=2, shm_slots_max=128) as (server, url):
        with pytest.raises(UsageError, match="choose one of halve, third"):
            Client(url)
        with pytest.raises(UsageError, match="there is no model 'fourth'"):
            Client(f"{url}/fourth")
        with pytest.raises(UsageError, match="power of two"):
            Client(f"{url}/third", slots=5)
        with pytest.raises(UsageError, match="--shm-slots"):
            Client(f"{url}/third", slots=256)
        with Client(f"{url}/third") as client:  # as many as allowed
            assert client.submit_many(np.ones(1000)) == 128
        until(lambda: server.statistics().connections_open == 0)
        with Client(f"{url}/third", slots=8), Client(f"{url}/third", slots=8):
            with pytest.raises(SystemError, match=r"2 clients.*--shm-clients") as full:
                Client(f"{url}/third")
            assert full.value.code == Errc.full
        with pytest.raises(SystemError, match="another process uses this name"), serving(third(), shm=server.shm):
            pass
    with pytest.raises(UsageError, match="letters"), serving(third(), shm="a/b"):
        pass


def test_clients_that_are_killed_give_back_descriptors_and_rings():
    program = """
import sys, numpy as np, headrace
client = headrace.Client(sys.argv[1], slots=64)
queries = np.ones(64)
print("on", flush=True)
while True:
    client.submit_many(queries)
    client.poll()
"""
    with behind_shm(third()) as (server, url), Client(url) as honest:
        np.testing.assert_array_equal(honest.ask_many(np.arange(100.0))[0], np.arange(100.0) / 3)
        before = descriptors(), rings()
        for _ in range(10):  # five at a time
            with (
                running(program, url) as a,
                running(program, url) as b,
                running(program, url) as c,
                running(program, url) as d,
                running(program, url) as e,
            ):
                for one in (a, b, c, d, e):
                    assert one.stdout is not None
                    assert one.stdout.readline() == "on\n"
                np.testing.assert_array_equal(honest.ask_many(np.arange(100.0))[0], np.arange(100.0) / 3)
                for one in (a, b, c, d, e):
                    one.send_signal(signal.SIGKILL)
        until(lambda: server.statistics().connections_open == 1)
        assert server.statistics().connections == 51
        assert (descriptors(), rings()) == before
        until(lambda: server.model_statistics()[0].queries_in_flight == 0)
        np.testing.assert_array_equal(honest.ask_many(np.arange(100.0))[0], np.arange(100.0) / 3)


def test_a_server_that_is_killed_ends_what_waits():
    with other_server() as (process, url), Client(url) as client:
        assert client.ask(np.float64(6)) == 2
        found: list[Any] = []

        def ask() -> None:
            answered = 0
            try:
                while True:
                    _, status = client.ask_many(np.ones(1000))
                    answered += 1
                    if status.any():
                        found.append(status)
                        return
            except Error as error:
                found.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.05)
        process.kill()
        asking.join(SECONDS)
        assert not asking.is_alive()
        if isinstance(found[0], Error):
            assert found[0].code == Errc.stopped
        else:
            assert {Errc.of_status(int(one)) for one in found[0] if one} == {Errc.stopped}
        with pytest.raises(Error, match="the server has ended") as ended:
            client.ask(np.float64(6))
        assert ended.value.code == Errc.stopped


def test_a_server_that_stands_still_does_not_hold_up_deadlines_and_timeouts():
    with other_server() as (process, url), Client(url) as client:
        assert client.ask(np.float64(6)) == 2
        stop(process)
        began = time.monotonic()
        with pytest.raises(Error) as late:
            client.ask(np.float64(6), deadline=0.1)
        assert late.value.code == Errc.deadline_exceeded
        ticket = client.submit(np.float64(3))
        assert not client.wait(ticket, timeout=0.1)
        assert 0.2 <= time.monotonic() - began < SECONDS
        process.send_signal(signal.SIGCONT)
        assert client.wait(ticket, timeout=SECONDS)
        assert list(client.poll().answers) == [1]
        assert client.ask(np.float64(6)) == 2


def test_a_server_that_drains_tells_its_clients():
    with other_server() as (process, url), Client(url) as client:
        assert client.ask(np.float64(6)) == 2
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "True\n"
        with pytest.raises(Error, match="the server is about to stop"):
            client.ask(np.float64(6))


def test_a_model_that_is_loaded_anew_tells_its_clients():
    with behind_shm(third()) as (server, url), Client(url) as client:
        assert client.ask(np.float64(6)) == 2
        with headrace.Engine("cpu", third()) as engine:
            server.load(wire.model(engine))
            with pytest.raises(Error, match="has been reloaded; connect again") as ended:
                client.ask(np.float64(6))
            assert ended.value.code == Errc.stopped
            with Client(url) as again:
                assert again.ask(np.float64(6)) == 2
            server.unload("third")
            with pytest.raises(UsageError, match="not loaded"):
                Client(f"{url}/third")
            server.stop()


def test_a_late_query_is_refused_while_it_waits():
    with behind_shm(headrace.operators.light(), plan=Plan(slots=1)) as (server, url), Client(url) as client:
        queries = headrace.operators.light().sample(256)
        _, status = client.ask_many(queries, deadline=0.0)
        assert {Errc.of_status(int(one)) for one in status} == {Errc.deadline_exceeded}
        until(lambda: server.statistics().shm.late + server.statistics().shm.refused > 0)
        assert client.ask_many(queries)[1].max() == 0


def test_two_threads_are_told_apart():
    with behind_shm(third()) as (_, url), Client(url) as client:
        refused = []
        stop = threading.Event()

        def ask() -> None:
            while not stop.is_set():
                try:
                    client.ask_many(np.ones(500))
                except UsageError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for one in threads:
            one.start()
        until(lambda: bool(refused))
        stop.set()
        for one in threads:
            one.join()
        assert all("in use by another thread" in text for text in refused)


def test_a_forked_child_is_refused():
    with behind_shm(third()) as (_, url), Client(url) as client:
        assert client.ask(np.float64(6)) == 2
        child = os.fork()
        if child == 0:
            try:
                client.ask(np.float64(6))
            except Error as error:
                os._exit(0 if error.code == Errc.stopped and "fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert client.ask(np.float64(9)) == 3


def test_ctrl_c_ends_a_wait():
    program = """
import sys, numpy as np, headrace
client = headrace.Client(sys.argv[1])
client.ask(np.float64(6))
print("on", flush=True)
sys.stdin.readline()
try:
    client.ask(np.float64(6))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with other_server() as (server, url), running(program, url) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        stop(server)
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        server.send_signal(signal.SIGCONT)  # ask() first collects what is in flight
        assert process.stdout.readline() == "interrupted\n"


def test_memory_stays_as_it_is():
    with behind_shm(third()) as (_, url):
        page = os.sysconf("SC_PAGE_SIZE")

        def resident() -> int:
            return int(Path("/proc/self/statm").read_text().split()[1]) * page

        def use() -> None:
            with Client(url) as client:
                client.ask_many(np.ones(2000))

        for _ in range(50):
            use()
        before = resident()
        for _ in range(300):
            use()
        assert resident() - before < 8 << 20


def test_a_closed_client_says_so():
    with behind_shm(third()) as (server, url):
        client = Client(url)
        client.submit(np.float64(3))
        client.close()
        client.close()
        with pytest.raises(UsageError, match="closed"):
            client.ask(np.float64(3))
        until(lambda: server.statistics().connections_open == 0)
