"""The interpreter exits silently while daemon threads are in Headrace, and forked processes fail at once."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LOOPS = {
    "ask_many": "client.ask_many(queries)",
    "ask": "client.ask(queries[0])",
    "wait": "client.wait(client.submit(queries[0]), timeout=0.01); client.poll()",
    "Index.query": "index.query('a AND b', device='cpu:0')",
    "Table": "table.agg(total=col('a').sum()).to_arrow()",
    "Jacobi": "jacobi.step(5)",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_daemon_thread_does_not_disturb_the_end_of_the_program(loop: str) -> None:
    program = textwrap.dedent(f"""
        import threading, time
        import pyarrow as pa
        import headrace
        from headrace import Table, col
        from headrace.grid import Jacobi
        index = headrace.Index.build(["a b"] * 1000)
        engine = headrace.Engine("cpu:0", headrace.retrieval(index))
        client = engine.connect()
        queries = index.compile_many(["a AND b"] * 100)
        table = Table.from_arrow(pa.table({{"a": list(range(1000))}}), device="cpu:0")
        jacobi = Jacobi((32, 32), devices=["cpu:0", "cpu:1"])
        begun = threading.Event()
        def serve():
            while True:
                {LOOPS[loop]}
                begun.set()
        threading.Thread(target=serve, daemon=True).start()
        assert begun.wait(20)
        time.sleep(0.02)
    """)
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_object_that_outlives_python_is_not_told_of() -> None:
    program = textwrap.dedent("""
        import ctypes
        import headrace
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(headrace.Index.build(["a"])))
        print("end")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_bindings_take_the_gil_by_what_knows_of_the_end() -> None:
    folder = Path(__file__).parents[2] / "python" / "bindings"
    for file in folder.glob("*.[ch]pp"):
        if file.name != "gil.hpp":
            assert not re.search("gil_scoped_(acquire|release)", file.read_text()), f"{file.name}: see gil.hpp"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become a user that has no processes")
@pytest.mark.parametrize(
    ("make", "call", "what"),
    [
        (
            "load = headrace.serve.LoadSession('cpu', headrace.light(), headrace.Plan(clients_max=32), generators=32)",
            "load.run(rate=1000, window=0.2, windows_max=3)",
            "of 32 generator threads could start",
        ),
        ("pass", "headrace.Engine('cpu:0', headrace.light(), headrace.Plan(threads=64))", "of 64 threads of an engine"),
        (
            "from headrace.grid import Jacobi",
            "Jacobi((640, 8), devices=[f'cpu:{i}' for i in range(32)]).step(1)",
            "could start",
        ),
    ],
)
def test_a_process_that_gets_no_threads_says_so_at_once(make: str, call: str, what: str) -> None:
    program = textwrap.dedent(f"""
        import os, resource, signal
        import headrace
        headrace.Index.build(["a"]).query("a", device="cpu:0")
        {make}
        os.setgid(54321); os.setuid(54321)
        resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))
        signal.alarm(30)
        try:
            {call}
        except headrace.Error as error:
            print(type(error).__name__, error)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("SystemError "), done.stdout + done.stderr
    assert what in done.stdout
    assert "ulimit -u, 20 here" in done.stdout
