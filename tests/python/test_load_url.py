"""`headrace load --url` against servers with known answers: its counts, and its definition of latency."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

import grpc
from load_peers import grpc_peer, http_peer
from test_wire_command import command, get
from wire_serving import SECONDS, halve, serving

OK = grpc.StatusCode.OK


def loaded(run: Run, url: str, *arguments: object, status: int = 0) -> dict[str, Any]:
    """The JSON output of a load."""
    done = run("load", "--url", url, "--json", *arguments)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def ended(said: dict[str, Any]) -> dict[str, int]:
    """The outcomes that are not 0."""
    return {name: count for name, count in said["requests"].items() if count}


@contextmanager
def loading(url: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """A running load that a test interferes with."""
    words = [sys.executable, "-m", "headrace", "load", "--url", url, "--json", *map(str, arguments)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
@pytest.mark.parametrize("queries", [1, 3])
def test_counts_are_those_of_the_server(run: Run, scheme: str, queries: int):
    with serving(halve(), grpc_port=0) as (server, _):
        port = server.grpc_port if scheme == "grpc" else server.http_port
        words = ("--rate", 1000 * queries, "--duration", "300ms", "--queries-per-request", queries)
        said = loaded(run, f"{scheme}://127.0.0.1:{port}/halve", *words)
        counted = getattr(server.model_statistics()[0], scheme)
    assert set(ended(said)) <= {"answered", "unsent"}  # every stream may be taken at the end
    assert said["requests"]["answered"] == counted.requests.answered > 100
    assert counted.queries.answered == queries * counted.requests.answered
    assert (counted.requests.invalid, counted.requests.cancelled) == (0, 0)
    assert said["load"]["incoming_per_second"] == pytest.approx(1000, rel=0.25)
    assert said["queries_per_request"] == queries
    assert said["load"]["latency_us"]["count"] <= said["requests"]["answered"]


def test_several_generators_share_the_rate_and_the_connections(run: Run):
    with serving(halve(), grpc_port=0) as (server, _):
        url = f"grpc://127.0.0.1:{server.grpc_port}/halve"
        said = loaded(run, url, "--rate", "2K", "--duration", "300ms", "--generators", 2, "--connections", 3)
        assert server.statistics().connections == 3 + 1  # and the one that requests the description
        assert said["requests"]["answered"] == server.model_statistics()[0].grpc.requests.answered
    assert said["load"]["incoming_per_second"] == pytest.approx(2000, rel=0.25)


def test_outcomes_over_grpc_are_told_apart(run: Run):
    codes = [OK, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED]
    codes += [grpc.StatusCode.INTERNAL, OK]
    with grpc_peer(lambda i, _request, _context: codes[i % 6]) as peer:
        said = loaded(run, peer.url, "--rate", 300, "--duration", "500ms")
        asked = peer.asked
    want = [sum(i % 6 in places for i in range(asked)) for places in ((0, 5), (1, 2), (3,), (4,))]
    assert list(ended(said).values()) == want
    assert list(ended(said)) == ["answered", "refused", "late", "failed"]
    assert said["failure"] == "INTERNAL: as the test says: 100% INTERNAL"
    assert said["refusal"] == "RESOURCE_EXHAUSTED: as the test says: 100% RESOURCE_EXHAUSTED"
    assert said["load"]["latency_is_of"] == "answered requests"
    assert said["load"]["p99_offered_us"] is None  # more than one in a hundred was not answered
    assert not said["load"]["stable"]


def test_outcomes_over_http_are_told_apart(run: Run):
    codes = [200, 429, 503, 504, 500, None]
    with http_peer(lambda i, _head, _tensors: codes[i % 6]) as peer:
        said = loaded(run, peer.url, "--rate", 200, "--duration", "500ms", "--connections", 8)
        asked = peer.asked
    want = [sum(i % 6 in places for i in range(asked)) for places in ((0,), (1, 2), (3,), (4,), (5,))]
    assert [said["requests"][name] for name in ("answered", "refused", "late", "failed", "lost")] == want
    assert said["connections_lost"] == want[-1]
    assert said["failure"].startswith('HTTP 500 {"error": "as the test says')


def test_refusals_are_said_beside_the_percentiles(run: Run):
    with http_peer(lambda i, _head, _tensors: 429 if i % 2 else 200) as peer:
        done = run("load", "--url", peer.url, "--rate", 200, "--duration", "300ms")
    assert done.returncode == 0, done.stderr
    assert "p99 covers admitted ones only" in done.stdout
    assert "latency, p99, unanswered as slowest" in done.stdout
    assert "latency, p99 of those answered" in done.stdout
    for name in ("connections", "streams per connection", "queries per request", "refused", "late", "lost"):
        assert name in done.stdout


@pytest.mark.whole_machine
def test_refusals_have_latencies_of_their_own(run: Run):
    def answer(number: int, *_: object) -> int:
        if number % 2:
            time.sleep(0.03)
            return 429
        return 200

    with http_peer(answer) as peer:
        said = loaded(run, peer.url, "--rate", 50, "--arrivals", "constant", "--duration", "1s")
        done = run("load", "--url", peer.url, "--rate", 50, "--duration", "300ms")
    refused, answered = said["load"]["refusal_us"], said["load"]["latency_us"]
    assert refused["count"] == said["requests"]["refused"] > 10
    assert 30e3 <= refused["p50"] <= refused["p99"] < 60e3
    assert answered["p50"] < 15e3
    assert "refused after, p99" in done.stdout


@pytest.mark.whole_machine
def test_latency_is_the_service_time_of_a_server_that_keeps_up(run: Run):
    with http_peer(lambda *_: time.sleep(0.03) or 200) as peer:
        said = loaded(run, peer.url, "--rate", 50, "--arrivals", "constant", "--duration", "1s")
    late = said["load"]["latency_us"]
    assert 30_000 <= late["p50"] < 45_000
    assert late["mean"] >= 30_000


@pytest.mark.whole_machine
def test_latency_counts_from_the_schedule_where_the_server_does_not_keep_up(run: Run):
    """One connection and 20 ms a request serve 50/s of 100/s: query k waits for k * 10 ms, and is served for 20 ms."""
    with http_peer(lambda *_: time.sleep(0.02) or 200) as peer:
        words = ("--rate", 100, "--arrivals", "constant", "--duration", "1s", "--connections", 1)
        said = loaded(run, peer.url, *words)
        asked = peer.asked
    load, late = said["load"], said["load"]["latency_us"]
    assert load["incoming_per_second"] == pytest.approx(100, rel=0.05)
    assert load["measured_per_second"] == pytest.approx(50, rel=0.15)
    assert late["p50"] == pytest.approx(0.57e6, rel=0.25)  # a closed loop would give 0.02e6
    assert late["max"] == pytest.approx(1.07e6, rel=0.25)
    assert said["requests"]["answered"] == asked
    assert said["requests"]["unsent"] > 10  # the schedule continues until the last window's requests have been answered
    assert load["complete"]


@pytest.mark.whole_machine
def test_a_server_that_stands_still_is_in_the_percentiles(run: Run):
    """Half a second of three: the slowest hundredth of all requests waited for at least 0.47 s."""
    del run
    with command("light") as (server, said):
        url = f"grpc://{said['grpc']}/light"
        few = ("--connections", 1, "--streams-per-connection", 5)  # in a closed loop, five of 600 requests would wait
        with loading(url, "--rate", 200, "--arrivals", "constant", "--duration", "3s", *few) as load:
            until = time.monotonic() + SECONDS
            while count(said["url"]) < 100:
                assert time.monotonic() < until
                time.sleep(0.02)
            server.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            server.send_signal(signal.SIGCONT)
            out, error = load.communicate(timeout=SECONDS)
        assert load.returncode == 0, error
        served = count(said["url"])
    found = json.loads(out)
    late = found["load"]["latency_us"]
    assert set(ended(found)) <= {"answered", "unsent"}
    assert found["requests"]["answered"] == served
    assert late["count"] == 600
    assert 0.42e6 < late["p99"] < 0.8e6
    assert 0.47e6 < late["max"] < 0.9e6
    assert late["p50"] < 0.1e6


def count(url: str) -> int:
    """Number of queries that a server of `light` has answered."""
    return int(get(f"{url}/v2/models/light/stats")["model_stats"][0]["inference_count"])


def test_rows_of_a_file_are_what_the_server_gets(run: Run, tmp_path: Path):
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(tmp_path / "x.npy", rows)
    seen = []
    inputs = [
        {"name": "x", "datatype": "FP32", "shape": [-1, 2]},
        {"name": "n", "datatype": "INT64", "shape": [-1]},
        {"name": "text", "datatype": "BYTES", "shape": [-1, 1]},
    ]
    with http_peer(lambda _i, head, tensors: seen.append((head, tensors)) or 200, inputs) as peer:
        words = ("--rate", 100, "--duration", "200ms", "--connections", 1, "--deadline", "1500us")
        loaded(run, peer.url, *words, "--input", f"x={tmp_path / 'x.npy'}", "--queries-per-request", 2, "--seed", 5)
    first, second = seen[:2]
    assert first[0]["parameters"] == {"binary_data_output": True, "timeout": 1500}
    assert [(one["name"], one["datatype"], one["shape"]) for one in first[0]["inputs"]] == [
        ("x", "FP32", [2, 2]),
        ("n", "INT64", [2]),
        ("text", "BYTES", [2, 1]),
    ]
    assert first[1][:16] == rows[:2].tobytes()
    assert second[1][:16] == rows[[2, 0]].tobytes()
    assert len(first[1]) == 16 + 16 + 2 * (4 + 8)
    assert first[1][32:36] == b"\x08\0\0\0"
    assert first[1][16:] != second[1][16:]
    assert seen[2] == first


def test_a_deadline_is_told_over_grpc(run: Run):
    left = []
    with grpc_peer(lambda _i, _request, context: left.append(context.time_remaining()) or OK) as peer:
        loaded(run, peer.url, "--rate", 100, "--duration", "200ms", "--deadline", "20s")
    assert all(18 < seconds <= 20 for seconds in left)


def one_line(done: "subprocess.CompletedProcess[str]", status: int, *says: str) -> None:
    assert done.returncode == status, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    for one in says:
        assert one in done.stderr


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_no_server_and_no_model_are_one_line(run: Run, scheme: str, free_port: int):
    done = run("load", "--url", f"{scheme}://127.0.0.1:{free_port}/light", "--rate", 100)
    one_line(done, 1, f"127.0.0.1:{free_port}", "Connection refused")
    with serving(halve(), grpc_port=0) as (server, _):
        port = server.grpc_port if scheme == "grpc" else server.http_port
        done = run("load", "--url", f"{scheme}://127.0.0.1:{port}/heavy", "--rate", 100)
        one_line(done, 2, "heavy")
        other = server.http_port if scheme == "grpc" else server.grpc_port
        done = run("load", "--url", f"{scheme}://127.0.0.1:{other}/halve", "--rate", 100, "--patience", "2s")
        one_line(done, 1, f"127.0.0.1:{other}")


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_server_that_says_nothing_is_given_up(run: Run, scheme: str):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/light"
        done = run("load", "--url", url, "--rate", 100, "--patience", "700ms")
    one_line(done, 1, "0.7 s")
    assert time.monotonic() - began < 30


@contextmanager
def raw_peer(reply: bytes) -> Iterator[int]:
    """The port of a server that sends this reply to every client, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def say() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    with peer:
                        peer.recv(1 << 16)
                        peer.sendall(reply)

        thread = threading.Thread(target=say)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


@pytest.mark.parametrize(
    ("scheme", "reply"),
    [
        ("http", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno json {"),
        ("http", b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"inputs": [17]}'[:-1]),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n" + b"[" * 5_000_000),
        ("http", b"HTTP/1.1 200 OK\r\nA: " + b"a" * 200_000),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"),
        ("http", b""),
        ("grpc", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("grpc", b""),
        ("grpc", SETTINGS),
        ("grpc", SETTINGS + b"\xff" * 64),
        ("grpc", SETTINGS + b"\0\0\1\1\4\0\0\0\1\xff"),
    ],
)
def test_replies_that_are_none_are_one_line(run: Run, scheme: str, reply: bytes):
    with raw_peer(reply) as port:
        done = run("load", "--url", f"{scheme}://127.0.0.1:{port}/light", "--rate", 100, "--patience", "2s")
    one_line(done, 1, f"127.0.0.1:{port}")


def test_a_server_that_stops_answering_is_given_up(run: Run):
    end = threading.Event()
    with http_peer(lambda i, *_: 200 if i < 20 else (end.wait() and None) or None) as peer:
        done = run("load", "--url", peer.url, "--rate", 100, "--duration", "3s", "--patience", "700ms")
        end.set()
    one_line(done, 1, "has sent nothing for 0.7 s")


def serve(grpc_port: int) -> tuple["subprocess.Popen[str]", str]:
    """A server of `light`, and its HTTP address."""
    words = [sys.executable, "-m", "headrace", "serve", "light", "--device", "cpu", "--http", "0", "--json"]
    process = subprocess.Popen([*words, "--grpc", str(grpc_port)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as said:
        return process, str(json.loads(said.readline())["url"])


@pytest.mark.whole_machine
@pytest.mark.parametrize("comes_back", [True, False])
def test_a_server_that_is_killed(free_port: int, comes_back: bool):
    server, address = serve(free_port)
    try:
        words = ("--rate", 200, "--duration", "10s" if comes_back else "60s")
        url = f"grpc://127.0.0.1:{free_port}/light"
        with loading(url, *words, "--patience", "25s" if comes_back else "3s") as load:
            until = time.monotonic() + SECONDS
            while count(address) < 100:
                assert time.monotonic() < until
                time.sleep(0.02)
            server.kill()
            server.wait()
            if comes_back:
                server, _ = serve(free_port)
            out, error = load.communicate(timeout=SECONDS)
    finally:
        server.kill()
        server.wait()
    if not comes_back:
        assert load.returncode == 1
        assert error.count("\n") == 1
        assert "went away and has not come back for 3 s: Connection refused" in error
        return
    assert load.returncode == 0, error
    said = json.loads(out)
    assert said["connections_lost"] == 4
    assert set(ended(said)) <= {"answered", "lost", "unsent"}
    assert said["load"]["latency_us"]["max"] > 0.1e6  # queries that arrived meanwhile have waited
    assert said["load"]["latency_us"]["count"] + said["requests"]["lost"] >= 1800


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_load_with_what_it_has(number: signal.Signals, status: int):
    asked = threading.Event()
    with http_peer(lambda i, *_: (asked.set() if i == 600 else None) or 200) as peer:
        with loading(peer.url, "--rate", 200, "--duration", "20s") as load:
            assert asked.wait(SECONDS)
            load.send_signal(number)
            out, error = load.communicate(timeout=SECONDS)
        got = peer.asked
    assert load.returncode == status, error
    said = json.loads(out)
    assert said["load"]["interrupted"]
    assert said["requests"]["answered"] == got
    assert said["load"]["latency_us"]["count"] > 0


def test_a_signal_ends_the_wait_for_a_silent_server():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"grpc://127.0.0.1:{silent.getsockname()[1]}/light"
        with loading(url, "--rate", 100, "--patience", "25s") as load:
            silent.settimeout(SECONDS)
            peer, _ = silent.accept()
            with peer:
                load.send_signal(signal.SIGINT)
                out, error = load.communicate(timeout=20)
    assert (load.returncode, out, error) == (130, "", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--url", "shm:///light", "--rate", "1K"), "a server's name must have"),
        (("--url", "ftp://127.0.0.1:1/light", "--rate", "1K"), "grpcs:// and https:// for TLS"),
        (("--url", "127.0.0.1:8001/light", "--rate", "1K"), "grpc://HOST:PORT/MODEL"),
        (("--url", "grpc://127.0.0.1:8001", "--rate", "1K"), "names no model"),
        (("--url", "grpc://127.0.0.1:8001/a/b", "--rate", "1K"), "names no model"),
        (("--url", "grpc://127.0.0.1/light", "--rate", "1K"), "grpc://HOST:PORT/MODEL"),
        (("--url", "grpc://127.0.0.1:99999/light", "--rate", "1K"), "99999"),
        (("--url", "http://127.0.0.1:1/a b", "--rate", "1K"), "names no model"),
        (("--url", "grpc://127.0.0.1:1/light"), "--rate"),
        (("--url", "grpc://127.0.0.1:1/light", "--rate", "1K", "--plan", "7"), "--plan"),
        (("--url", "grpc://127.0.0.1:1/light", "--rate", "1K", "--device", "cpu"), "--device"),
        (("--url", "grpc://127.0.0.1:1/light", "--rate", "1K", "--k", "3"), "--k"),
        (
            ("--url", "http://127.0.0.1:1/light", "--rate", "1K", "--streams-per-connection", "2"),
            "--streams-per-connection",
        ),
        (("--url", "grpc://127.0.0.1:1/light", "--rate", "1K", "--input", "x"), "NAME=FILE.npy"),
        (("--url", "grpc://127.0.0.1:1/light", "--rate", "1K", "--patience", "1min"), "--patience"),
        (("--url", "grpc://127.0.0.1:1/l", "--rate", "1K", "--generators", "2", "--connections", "1"), "--generators"),
        (("--rate", "1K", "--connections", "4"), "--connections is for a server"),
        (("--rate", "1K", "--deadline", "1s"), "--deadline is for a server"),
    ],
)
def test_mistakes_are_one_line(run: Run, arguments: tuple[str, ...], says: str):
    one_line(run("load", *arguments), 2, says)


def test_files_that_do_not_fit_are_one_line(run: Run, tmp_path: Path):
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "f8.npy", np.zeros((3, 2)))
    np.save(tmp_path / "wide.npy", np.zeros((3, 3), np.float32))
    cases = [("x=none.npy", 1, "none.npy"), (f"x={tmp_path}/text.npy", 1, "text.npy"), ("y=a.npy", 2, "no input 'y'")]
    cases += [(f"x={tmp_path}/f8.npy", 2, "float64"), (f"x={tmp_path}/wide.npy", 2, "[3, 3]")]
    with http_peer(lambda *_: 200) as peer:
        for given, status, says in cases:
            one_line(run("load", "--url", peer.url, "--rate", 100, "--input", given), status, says)
    with http_peer(lambda *_: 200, [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]) as peer:
        one_line(run("load", "--url", peer.url, "--rate", 100), 2, "--input x=FILE.npy")
    with http_peer(lambda *_: 200, [{"name": "x", "datatype": "FP32", "shape": [-1, 1 << 40]}]) as peer:
        one_line(run("load", "--url", peer.url, "--rate", 100), 2, "--queries-per-request")
    with http_peer(lambda *_: 200, [{"name": "x", "datatype": "FP32", "shape": [2]}]) as peer:
        done = run("load", "--url", peer.url, "--rate", 100, "--queries-per-request", 2)
        one_line(done, 2, "--queries-per-request")
        assert peer.asked == 0


def test_nothing_but_failures_is_a_failure(run: Run):
    with http_peer(lambda *_: 400) as peer:
        done = run("load", "--url", peer.url, "--rate", 100, "--duration", "200ms")
    one_line(done, 1, "no request was answered")
    assert "as the test says: 400" in done.stdout
