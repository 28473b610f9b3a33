"""`headrace serve` as a process: what it serves where, how it ends, and its messages for mistakes."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from operator_files import operator_folder
from wire_serving import SECONDS, connect, serving, third

PORTS = ("--http", "0", "--grpc", "0" if _core.built_with_grpc else "none")


@contextlib.contextmanager
def command(*arguments: object, files: int = 0) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """The process, and its description of what it serves.

    Args:
        files: maximum number of descriptors; 0 keeps the limit.
    """
    limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
    process = subprocess.Popen(
        [*limit, sys.executable, "-m", "headrace", "serve", *map(str, arguments), *PORTS, "--json", "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return operator_folder(tmp_path)


def get(url: str, seconds: float = SECONDS) -> Any:
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return json.loads(answer.read() or "null")


def infer(url: str, name: str, **inputs: tuple[str, list[Any]]) -> list[Any]:
    tensors = [
        {"name": key, "datatype": kind, "shape": list(np.shape(values)), "data": values}
        for key, (kind, values) in inputs.items()
    ]
    request = urllib.request.Request(f"{url}/v2/models/{name}/infer", json.dumps({"inputs": tensors}).encode())
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return [one["data"] for one in json.load(answer)["outputs"]]


def test_every_operator_of_a_folder_is_served_until_a_signal(folder: Path):
    with command(folder, "light", "--threads", 2) as (process, said):
        url = said["url"]
        assert [one["name"] for one in said["models"]] == ["double", "by_three", "negate", "light"]
        assert said["models"][1]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": []}]
        assert said["models"][3]["from"] == "light"
        assert [one["name"] for one in get(f"{url}/v2/models/light")["inputs"]] == ["query"]
        assert said["grpc"] is None or said["grpc"].startswith("127.0.0.1:")
        assert infer(url, "double", query=("INT64", [1, 2])) == [[2, 4]]
        assert infer(url, "by_three", x=("FP32", [1.5])) == [[4.5]]
        assert infer(url, "negate", query=("INT64", [7])) == [[-7]]
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=SECONDS)
    totals = json.loads(out)
    assert process.returncode == 0
    assert totals["drained"]
    assert (totals["requests"], totals["failed"], totals["refused"]) == (4, 0, 0)


@pytest.mark.parametrize(
    "options", [("--plan", "caller"), ("--plan", "dispatched"), ("--plan", "dispatched", "--share", "0.3")]
)
def test_plans_without_engine_threads_answer_and_drain(folder: Path, options: tuple[str, ...]):
    with command(folder, *options) as (process, said):
        assert said["plan"]["schedule"] == options[1]
        parts = {("--plan", "caller"): 1, ("--plan", "dispatched"): pytest.approx(1 / 3)}
        assert said["plan"]["share"] == parts.get(options, 0.3)
        for number in range(20):
            assert infer(said["url"], "double", query=("INT64", [number, 2])) == [[2 * number, 4]]
            assert infer(said["url"], "by_three", x=("FP32", [number])) == [[3.0 * number]]
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=SECONDS)
    totals = json.loads(out)
    assert (process.returncode, totals["drained"], totals["requests"], totals["failed"]) == (0, True, 40, 0)


def test_a_share_is_of_blocks_that_stay(folder: Path):
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "serve", str(folder), *PORTS, "--share", "0.5"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert "--share is for plans whose blocks stay on the device (dispatched), not blocking" in done.stderr


def test_ctrl_c_ends_it_with_totals_for_people(folder: Path):
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "serve", f"{folder / 'double.py'}:by_three", *PORTS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100", "HEADRACE_DEVICES": "cpu"},
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    url = first.split(",")[0].removeprefix("Serving on ").split(" and ")[0]
    assert infer(url, "by_three", x=("FP32", [1.0])) == [[3.0]]
    process.send_signal(signal.SIGINT)
    out = process.stdout.read()  # communicate() would miss what readline() has buffered
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "by_three" in out
    assert "x FP32" in out
    assert "y FP32" in out
    assert "1 requests in " in out


def test_shared_memory_is_turned_on_and_bounded(folder: Path):
    memory = shared_memory.SharedMemory(create=True, size=2048)

    def register(url: str, size: int) -> int:
        body = json.dumps({"key": memory.name, "byte_size": size}).encode()
        content = urllib.request.Request(f"{url}/v2/systemsharedmemory/region/a/register", body)
        try:
            with urllib.request.urlopen(content, timeout=SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    try:
        with command(folder, "--shared-memory", "--shared-memory-max", "1KiB") as (_, said):
            assert "system_shared_memory" in get(f"{said['url']}/v2")["extensions"]
            assert register(said["url"], 1025) == 429
            assert register(said["url"], 1024) == 200
            listed = get(f"{said['url']}/v2/systemsharedmemory/status")
            assert listed == [{"name": "a", "key": memory.name, "offset": 0, "byte_size": 1024}]
        with command(folder) as (_, said):
            assert "system_shared_memory" not in get(f"{said['url']}/v2")["extensions"]
            assert register(said["url"], 1024) == 501
    finally:
        memory.close()
        memory.unlink()


def test_a_second_signal_ends_it_at_once():
    with command("light", "--drain", "10min", "--request-time", "10min") as (process, said):
        port = int(said["url"].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as peer:
            peer.sendall(
                b"POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            )
            assert peer.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"  # a request has begun, and does not end
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Finishing requests in progress")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert not json.loads(out)["drained"]


def test_a_port_that_is_taken_is_one_line(run: Run):
    with serving(third()) as (server, _):
        done = run("serve", "light", "--device", "cpu", "--grpc", "none", "--http", server.http_port)
        with connect(server):
            pass
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert str(server.http_port) in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("heavy",), "no operator 'heavy'"),
        (("retrieval",), "needs an index"),
        (("light", "light"), "both have an operator light"),
        (("light", "--http", "70000"), "--http"),
        (("light", "--grpc", "70000"), "--grpc"),
        (("light", "--grpc", "any"), "none"),
        (("light", "--address", "nowhere"), "nowhere"),
        (("light", "--body", "0B"), "--body"),
        (("light", "--shared-memory-max", "1GiB"), "needs --shared-memory"),
        (("light", "--shared-memory", "--shared-memory-max", "0B"), "--shared-memory-max"),
        (("light", "--slots", "3"), "power of two"),
        (("light", "--schedule", "none"), "none"),
        (("light", "--plan", "99"), "99"),
        ((), "OPERATOR"),
    ],
)
def test_mistakes_are_one_line(run: Run, arguments: tuple[str, ...], says: str):
    done = run("serve", *arguments, "--device", "cpu")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert done.stdout == ""


def test_a_file_of_a_folder_that_fails_is_named(run: Run, folder: Path):
    (folder / "fails.py").write_text("import headrace\n\nraise ValueError('on purpose')\n")
    done = run("serve", folder, "--device", "cpu")
    assert done.returncode == 2
    assert f"{folder / 'fails.py'}:3: ValueError: on purpose" in done.stderr
    assert done.stderr.count("\n") == 1


def test_requests_for_which_there_is_no_memory_end_alone():
    """The address space is exhausted while the server runs: clients are refused or cut, and later ones are served."""
    with command("light") as (process, said):
        port = int(said["url"].rsplit(":", 1)[1])
        used = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(process.pid, resource.RLIMIT_AS, (used, resource.RLIM_INFINITY))
        head = b"POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n"
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                with contextlib.suppress(OSError):
                    peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=1))
                    peer.sendall(head + b" " * 3_900_000)
            assert process.poll() is None
        resource.prlimit(process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        end = time.monotonic() + SECONDS
        while True:
            try:
                assert get(f"{said['url']}/v2/health/live") is None
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="there is no prlimit here")
def test_silent_connections_beyond_the_limit_of_descriptors_keep_nobody_out():
    """The limit on descriptors is below that on connections: the longest silent ones give way, long before --idle."""
    with command("light", files=64) as (_, said), contextlib.ExitStack() as stack:
        port = int(said["url"].rsplit(":", 1)[1])
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
        began = time.monotonic()
        for _ in range(20):
            assert get(f"{said['url']}/v2/health/live", seconds=10) is None
        assert time.monotonic() - began < 10
