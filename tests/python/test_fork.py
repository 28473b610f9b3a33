"""A forked child can use its own objects, and fails at once with those of its parent: it never hangs."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from forking import in_child

import headrace
from headrace import Errc, Placement, Span, Table, col, ingest
from headrace.grid import Fdtd, Jacobi

PAGE = headrace.span.PAGE_BYTES


def ask(device: str = "cpu:30") -> list[int]:
    index = headrace.Index.build(["an apple", "an apple pie"])
    with headrace.Engine(device, headrace.retrieval(index)) as engine, engine.connect() as client:
        answers, status = client.ask_many(index.compile_many(["apple", "pie"]))
        assert not status.any()
        return [int(answer["hits"]) for answer in answers]


def add_up(rows: int = 1000) -> Any:
    table = pa.table({"a": list(range(rows))})
    found = Table.from_arrow(table, device="cpu:30", fragment_rows=100).agg(total=col("a").sum()).to_arrow()
    return found.column("total").to_pylist()[0]


def move() -> int:
    span = Span("cpu:30", 3 * PAGE, Placement.all("host"))
    span.numpy()[:] = 5
    span.move("cpu:31")
    return int(span.numpy()[::4096].sum())


def iterate() -> float:
    jacobi = Jacobi((16, 12), devices=["cpu:30", "cpu:31"])
    jacobi.set_source(np.ones((16, 12)))
    jacobi.step(3)
    return float(jacobi.solution().sum())


def receive() -> int:
    return sum(len(frame) for frame in ingest.synthetic(1000, frame="50KB", to="cpu:30", packets=200))


def multiply() -> list[float]:
    starts, columns, values = np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), np.array([2.0, 3.0, 4.0])
    matrix = headrace.operators.CsrMatrix(["cpu:30", "cpu:31"], starts, columns, values, (2, 2))
    return [float(value) for value in matrix @ np.array([1.0, 1.0])]


@pytest.mark.parametrize("work", [ask, add_up, move, iterate, receive, multiply])
def test_what_a_child_makes_works_though_its_parent_has_used_the_device(work: Callable[[], Any]) -> None:
    here = work()
    assert in_child(work) == here
    assert work() == here  # and the parent continues


def test_children_of_children_make_theirs() -> None:
    ask()
    assert in_child(lambda: in_child(ask)) == [2, 1]


def raises_made_before_fork(call: Callable[[], object]) -> None:
    with pytest.raises(headrace.Error, match="made before fork") as error:
        in_child(call)
    assert error.value.code == Errc.stopped


@pytest.mark.parametrize("schedule", ["blocking", "pipelined", "async", "graph", "persistent", "dispatched", "none"])
def test_an_inherited_engine_raises_at_once(schedule: str) -> None:
    plan = headrace.Plan(schedule=schedule, workers=1, host_memory="mapped" if schedule == "dispatched" else "pinned")
    operator = headrace.light()
    with headrace.Engine("cpu:30", operator, plan) as engine, engine.connect() as client:
        query = operator.sample(1)
        client.ask(query)
        calls: list[Callable[[], object]] = [
            lambda: client.ask(query),
            lambda: client.ask(query, deadline=1.0),
            lambda: client.ask_many(query.reshape(1, -1)),
            lambda: client.submit(query),
            client.poll,
            engine.connect,
            lambda: engine.drain(1.0),
            engine.statistics,
        ]
        for call in calls:
            raises_made_before_fork(call)
        assert in_child(client.close) is None  # which releases it
        assert in_child(engine.stop) is None
        client.ask(query)


def test_an_inherited_table_raises_at_once() -> None:
    table = Table.from_arrow(pa.table({"a": [1, 2, 3]}), device="cpu:30")
    query = table.agg(total=col("a").sum())
    assert query.to_arrow().column(0).to_pylist() == [6]
    fetched = table.fetch()
    column = fetched["a"]
    for call in (query.to_arrow, query.explain, table.fetch, lambda: fetched["a"]):
        raises_made_before_fork(call)
    assert in_child(lambda: column.to_arrow().to_pylist()) == [1, 2, 3]  # from memory that remains, without its threads
    assert in_child(table.close) is None
    assert query.to_arrow().column(0).to_pylist() == [6]


def test_an_inherited_span_is_shared_memory_that_cannot_be_moved() -> None:
    span = Span("cpu:30", 4 * PAGE, Placement.all("cpu:30"))
    span.numpy()[:] = 1
    span.move("host")
    raises_made_before_fork(lambda: span.move("cpu:30"))

    def write_and_let_go() -> int:
        span.numpy()[0] = 9
        span.release()
        other = Span("cpu:30", 4 * PAGE, Placement.all("host"))  # takes none of the parent's pages
        other.numpy()[:] = 7
        return int(other.numpy()[PAGE])

    assert in_child(write_and_let_go) == 7
    assert span.numpy()[0] == 9
    assert (span.numpy()[1:] == 1).all()
    span.move("cpu:30")
    assert (span.numpy()[1:] == 1).all()


def test_inherited_grids_raise_at_once() -> None:
    jacobi = Jacobi((16, 12), devices=["cpu:30", "cpu:31"])
    jacobi.step(1)
    raises_made_before_fork(lambda: jacobi.step(1))
    raises_made_before_fork(jacobi.solution)
    fdtd = Fdtd((24, 20), spacing=1e-3, cpml=3, devices=["cpu:30", "cpu:31"])
    fdtd.step(1)
    raises_made_before_fork(lambda: fdtd.step(1))
    jacobi.step(1)
    fdtd.step(1)


def test_an_inherited_load_raises_at_once() -> None:
    session = headrace.serve.LoadSession("cpu:30", headrace.light(), generators=1)
    raises_made_before_fork(lambda: session.run(rate=1000, window=0.05, windows_max=3))
    session.stop()


#: Each keeps an object with threads, forks, and lets the child end like a program, by its destructors.
MAKERS = {
    "engine": "kept = headrace.Engine('cpu:30', headrace.light()); client = kept.connect()",
    "dispatched engine": "kept = headrace.Engine('cpu:30', headrace.light(), "
    "headrace.Plan(schedule='dispatched', workers=1, host_memory='mapped'))",
    "table": "kept = Table.from_arrow(pa.table({'a': [1, 2]}), device='cpu:30'); held = kept.fetch()['a']",
    "span": "kept = headrace.Span('cpu:30', 1 << 22, headrace.Placement.all('host')); kept.move('cpu:31')",
    "grid": "kept = Jacobi((16, 12), devices=['cpu:30', 'cpu:31']); kept.step(2)",
    "fdtd": "kept = Fdtd((24, 20), spacing=1e-3, cpml=3, devices=['cpu:30', 'cpu:31']); kept.step(2)",
    "receiver": "kept = ingest.synthetic(1000, frame='50KB', to='cpu:30'); frames = iter(kept); frame = next(frames)",
    "load": "kept = headrace.serve.LoadSession('cpu:30', headrace.light(), generators=2); "
    "kept.run(rate=1000, window=0.05, windows_max=3)",
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_child_that_merely_ends_ends(kind: str) -> None:
    program = textwrap.dedent(f"""
        import os, signal, sys
        import pyarrow as pa
        import headrace
        from headrace import Table, ingest
        from headrace.grid import Fdtd, Jacobi
        {MAKERS[kind]}
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        os._exit(0)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr
