"""Clients load and unload models while others ask: --model-control."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

import tritonclient.http as over_http
from test_wire_command import command
from tritonclient.utils import InferenceServerException
from wire_serving import SECONDS, Replies, request

if _core.built_with_grpc:
    import tritonclient.grpc as over_grpc
    import tritonclient.grpc.aio as over_aio

needs_grpc = pytest.mark.skipif(not _core.built_with_grpc, reason="built without gRPC")

OPERATOR = """
import headrace


@headrace.operator(query="i8", answer="i8")
def times(_group, query, answer):
    answer[0] = {version} * query[0]


@headrace.operator(query="i8", answer="i8")
def less(_group, query, answer):
    answer[0] = query[0] - {version}
"""
#: Blocks until something is written to the pipe beside the file.
HELD = "open(__file__ + '.pipe').read()\n"
FIRST = 10
REPLACEMENTS = 6


class Operators:
    """The file of operators that is served."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "operators.py"
        self.pipe = folder / "operators.py.pipe"
        self.write(FIRST)

    def write(self, version: int, more: str = "") -> None:
        """All versions have two digits, so neither size nor second distinguishes them."""
        self.path.write_text(OPERATOR.format(version=version) + more)

    def hold(self, version: int) -> None:
        """Writes a version that does not load before release()."""
        self.pipe.unlink(missing_ok=True)
        os.mkfifo(self.pipe)
        self.write(version, HELD)

    def held(self) -> int:
        """The pipe for release(), once the file is running."""
        return os.open(self.pipe, os.O_WRONLY)  # waits for its reader


@pytest.fixture
def operators(tmp_path: Path) -> Operators:
    return Operators(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operators, dict[str, Any]]]:
    """A server for tests that leave it with the first version of its file, loaded or not."""
    operators = Operators(tmp_path_factory.mktemp("shared"))
    with command(operators.path, "--model-control") as (_, said):
        yield operators, said


def client_of(said: dict[str, Any]) -> over_http.InferenceServerClient:
    return over_http.InferenceServerClient(said["url"].removeprefix("http://"), network_timeout=SECONDS)


def tensors(of: Any, number: int) -> list[Any]:
    """The inputs of a query, for the client module `of`."""
    query = of.InferInput("query", [1], "INT64")
    query.set_data_from_numpy(np.array([number]))
    return [query]


def ask(client: Any, of: Any = over_http, model: str = "times", number: int = 1) -> int:
    return int(client.infer(model, tensors(of, number)).as_numpy("answer")[0])


def states(client: Any) -> list[tuple[str, str, str]]:
    return [(one["name"], one["state"], one["reason"]) for one in client.get_model_repository_index()]


def refusal(act: Callable[[], object]) -> InferenceServerException:
    with pytest.raises(InferenceServerException) as caught:
        act()
    return caught.value


class Versions:
    """The version requested last, and the version loaded last."""

    def __init__(self) -> None:
        self.begun = self.done = FIRST

    def asks(self, ask_one: Callable[[], int], wrong: list[str], stop: threading.Event) -> int:
        """Asks until `stop`: answers must be those of the loaded version, or of one being loaded."""
        count = 0
        while not stop.is_set():
            least = self.done
            try:
                version = ask_one()
            except Exception as error:  # no request may fail
                wrong.append(repr(error))
                return count
            if not least <= version <= self.begun:
                wrong.append(f"{version} is not within {least} to {self.begun}")
            count += 1
        return count


def askers(said: dict[str, Any]) -> list[Callable[[Callable[[Callable[[], int]], None]], None]]:
    """Each calls its argument with a function that asks through one client."""

    def http(go: Callable[[Callable[[], int]], None]) -> None:
        with client_of(said) as client:  # created in the asking thread, as gevent requires
            go(lambda: ask(client))

    def grpc(go: Callable[[Callable[[], int]], None]) -> None:
        with over_grpc.InferenceServerClient(said["grpc"]) as client:
            go(lambda: ask(client, over_grpc))

    def aio(go: Callable[[Callable[[], int]], None]) -> None:
        with asyncio.Runner() as runner:
            client = over_aio.InferenceServerClient(said["grpc"])

            async def many() -> int:
                done = await asyncio.gather(*(client.infer("times", tensors(over_grpc, 1)) for _ in range(8)))
                answers = {int(one.as_numpy("answer")[0]) for one in done}
                return min(answers)

            go(lambda: runner.run(many()))
            runner.run(client.close())

    return [http, grpc, aio] if _core.built_with_grpc else [http]


@contextlib.contextmanager
def asked_meanwhile(said: dict[str, Any], versions: Versions) -> Iterator[tuple[list[int], list[str]]]:
    """Clients ask all the time; yields how often each did, and what went wrong."""
    stop, counts, wrong = threading.Event(), list[int](), list[str]()

    def run(asker: Callable[[Callable[[Callable[[], int]], None]], None]) -> None:
        asker(lambda ask_one: counts.append(versions.asks(ask_one, wrong, stop)))

    threads = [threading.Thread(target=run, args=(asker,)) for asker in askers(said)]
    for thread in threads:
        thread.start()
    try:
        yield counts, wrong
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def threads_of(process: "subprocess.Popen[str]") -> int:
    """The server's threads, including those of its engines."""
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))


def test_a_model_that_is_replaced_while_clients_ask_loses_no_request(operators: Operators):
    with command(operators.path, "--model-control", "--threads", 2) as (process, said):
        client, versions = client_of(said), Versions()
        assert ask(client) == FIRST
        before = threads_of(process)
        with asked_meanwhile(said, versions) as (counts, wrong):
            for version in range(FIRST + 1, FIRST + 1 + REPLACEMENTS):
                operators.write(version)
                versions.begun = version
                client.load_model("times")
                versions.done = version
                assert ask(client) == version
        assert wrong == []
        assert len(counts) == len(askers(said))
        assert min(counts) > 20
        assert ask(client, model="less") == 1 - FIRST  # it was not loaded
        until = time.monotonic() + SECONDS
        while threads_of(process) > before and time.monotonic() < until:
            time.sleep(0.01)
        assert threads_of(process) == before  # the engines of earlier versions have ended
        counted = client.get_inference_statistics("times")["model_stats"][0]
        assert counted["inference_stats"]["success"]["count"] >= sum(counts) + REPLACEMENTS
        assert counted["inference_stats"]["fail"]["count"] == 0


def test_a_model_that_is_unloaded_while_clients_ask_answers_or_says_so(operators: Operators):
    with command(operators.path, "--model-control", "--threads", 2) as (_, said):
        client, stop, wrong, ends = client_of(said), threading.Event(), list[str](), list[int]()

        def run(asker: Callable[[Callable[[Callable[[], int]], None]], None]) -> None:
            asker(until_stopped)

        def until_stopped(ask_one: Callable[[], int]) -> None:
            while not stop.is_set():
                try:
                    ends.append(ask_one())
                except InferenceServerException as error:
                    ends.append(0)
                    if error.status() not in {"404", "StatusCode.NOT_FOUND"} or "not loaded" not in error.message():
                        wrong.append(repr((error.status(), error.message())))

        threads = [threading.Thread(target=run, args=(asker,)) for asker in askers(said)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            client.unload_model("times")
            assert refusal(lambda: ask(client)).status() == "404"
            client.load_model("times")
            assert ask(client) == FIRST
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert set(ends) == {0, FIRST}


def test_the_index_says_what_is_loaded_and_why_another_is_not(operators: Operators):
    with command(operators.path, "--model-control") as (process, said):
        client = client_of(said)
        assert "model_repository" in client.get_server_metadata()["extensions"]
        client.unload_model("times")
        assert states(client) == [("times", "UNAVAILABLE", "unloaded"), ("less", "READY", "")]
        assert client.is_server_ready()
        assert not client.is_model_ready("times")
        assert client.is_model_ready("less")
        error = refusal(lambda: client.get_model_metadata("times"))
        assert (error.status(), error.message()) == ("404", "model 'times' is not loaded: unloaded")
        listed = json.loads(raw(said, request("/v2/repository/index", b'{"ready":true}')).body)
        assert [one["name"] for one in listed] == ["less"]
        client.unload_model("times")  # repeating it is not an error
        operators.write(FIRST, "x = (\n")
        assert refusal(lambda: client.load_model("times")).status() == "500"
        assert "SyntaxError" in {name: why for name, _, why in states(client)}["times"]
        operators.write(FIRST + 1)
        client.load_model("times")
        assert [state for _, state, _ in states(client)] == ["READY", "READY"]
        assert ask(client) == FIRST + 1
        assert [one["name"] for one in client.get_inference_statistics()["model_stats"]] == ["times", "less"]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert json.loads(out)["drained"]
    assert re.search(r"^Unloaded times\.$", err, re.MULTILINE)
    assert re.search(r"^times could not be loaded: .*operators.py.*SyntaxError: .*$", err, re.MULTILINE)
    assert re.search(r"^Loaded times in [\d.]+ s\.$", err, re.MULTILINE)


@needs_grpc
def test_the_same_over_grpc(operators: Operators):
    with (
        command(operators.path, "--model-control") as (_, said),
        over_grpc.InferenceServerClient(said["grpc"]) as client,
    ):
        operators.write(FIRST + 1)
        client.load_model("times")
        assert ask(client, over_grpc) == FIRST + 1
        client.unload_model("times")
        assert not client.is_model_ready("times")
        assert client.is_model_ready("less")
        index = client.get_model_repository_index().models
        assert [(one.name, one.state, one.reason) for one in index] == [
            ("times", "UNAVAILABLE", "unloaded"),
            ("less", "READY", ""),
        ]
        assert refusal(lambda: ask(client, over_grpc)).status() == "StatusCode.NOT_FOUND"
        assert refusal(lambda: client.is_model_ready("nobody")).status() == "StatusCode.NOT_FOUND"
        operators.write(FIRST, "raise ValueError('on purpose')\n")
        error = refusal(lambda: client.load_model("times"))
        assert error.status() == "StatusCode.INTERNAL"
        assert error.message().endswith("ValueError: on purpose")
        error = refusal(lambda: client.load_model("times", config="[]"))
        assert error.status() == "StatusCode.INVALID_ARGUMENT"
        assert "config" in error.message()


@needs_grpc
def test_a_call_of_grpc_whose_deadline_passes_ends_and_the_load_goes_on(operators: Operators):
    with (
        command(operators.path, "--model-control") as (_, said),
        over_grpc.InferenceServerClient(said["grpc"]) as client,
    ):
        operators.hold(FIRST + 1)
        error = refusal(lambda: client.load_model("times", client_timeout=0.2))
        assert error.status() == "StatusCode.DEADLINE_EXCEEDED"
        assert ask(client, over_grpc) == FIRST
        os.close(operators.held())
        wait_until(lambda: ask(client, over_grpc) == FIRST + 1)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("x = (\n", "SyntaxError"),
        ("import nowhere_at_all\n", "ModuleNotFoundError"),
        ("exit(3)\n", "ended the program"),
        ("del times\n", "no operator times any more: it has less"),
        ("times = 3\nless = 4\n", "no operator"),
        ("@headrace.operator(query='i8', answer='i8')\ndef times(g, q, a):\n    a[0] = nobody(q[0])\n", "nobody"),
        ("@headrace.operator(query='c8', answer='i8')\ndef times(g, q, a):\n    a[0] = 1\n", "<c8"),
    ],
)
def test_a_version_that_cannot_be_loaded_leaves_the_present_one(
    shared: tuple[Operators, dict[str, Any]], more: str, says: str
):
    operators, said = shared
    client = client_of(said)
    client.load_model("times")
    operators.write(FIRST + 1, more)
    error = refusal(lambda: client.load_model("times"))
    operators.write(FIRST)
    assert error.status() == "500"
    assert says in error.message()
    assert "\n" not in error.message()
    assert ask(client) == FIRST
    assert states(client)[0] == ("times", "READY", "")


def test_a_file_that_is_gone_leaves_the_present_version(shared: tuple[Operators, dict[str, Any]]):
    operators, said = shared
    client = client_of(said)
    client.load_model("times")
    operators.path.unlink()
    try:
        assert "there is no file" in refusal(lambda: client.load_model("times")).message()
        assert ask(client) == FIRST
    finally:
        operators.write(FIRST)
    client.load_model("times")
    assert ask(client) == FIRST


def raw(said: dict[str, Any], content: bytes) -> Any:
    with connection(said) as peer:
        peer.sendall(content)
        return Replies(peer).next()


def connection(said: dict[str, Any]) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(said["url"].rpartition(":")[2])), timeout=SECONDS)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


LOAD = "/v2/repository/models/times/load"


@pytest.mark.parametrize(
    ("target", "body", "status", "says"),
    [
        ("/v2/repository/models/nobody/load", b"{}", 404, "nobody"),
        ("/v2/repository/models/nobody/unload", b"{}", 404, "nobody"),
        ("/v2/repository/models/times/reload", b"{}", 404, "nothing"),
        ("/v2/repository/mine/models/times/load", b"{}", 404, "nothing"),
        (LOAD, b'{"parameters":{"config":{}}}', 400, "config"),
        (LOAD, b'{"parameters":{"file:1/model.py":"eA=="}}', 400, "file:1/model.py"),
        ("/v2/repository/models/times/unload", b'{"parameters":{"unload_dependents":true}}', 400, "unload_dependents"),
        (LOAD, b'{"parameters":[1]}', 400, "parameters"),
        (LOAD, b"[1]", 400, "object"),
        (LOAD, b"{", 400, "object"),
        (LOAD, b" " * (129 << 10), 413, "128 KiB"),
        ("/v2/repository/index", b"[", 400, "object"),
    ],
)
def test_wrong_requests_are_refused_by_name(
    shared: tuple[Operators, dict[str, Any]], target: str, body: bytes, status: int, says: str
):
    _, said = shared
    reply = raw(said, request(target, body))
    assert reply.status == status
    assert says in json.loads(reply.body)["error"]
    assert raw(said, request(target, method="GET")).status in {404, 405}


def test_the_parameter_that_clients_of_triton_always_send_is_taken(shared: tuple[Operators, dict[str, Any]]):
    _, said = shared
    for act in ("unload", "load"):
        target = f"/v2/repository/models/times/{act}"
        assert raw(said, request(target, b'{"parameters":{"unload_dependents":false}}')).status == 200


def test_models_are_neither_loaded_nor_unloaded_unless_that_is_turned_on(operators: Operators):
    with command(operators.path) as (_, said):
        client = client_of(said)
        assert "model_repository" not in client.get_server_metadata()["extensions"]
        for act in (client.load_model, client.unload_model):
            error = refusal(lambda act=act: act("times"))  # type: ignore[misc]
            assert error.status() == "501"
            assert "--model-control" in error.message()
        if _core.built_with_grpc:
            with over_grpc.InferenceServerClient(said["grpc"]) as other:
                error = refusal(lambda: other.load_model("times"))
                assert error.status() == "StatusCode.UNIMPLEMENTED"
                assert "--model-control" in error.message()
        assert ask(client) == FIRST


def test_web_pages_may_not_load_models(shared: tuple[Operators, dict[str, Any]]):
    _, said = shared
    client_of(said).load_model("times")
    for act in ("load", "unload"):
        target = f"/v2/repository/models/times/{act}"
        assert raw(said, request(target, b"{}", headers="Origin: http://127.0.0.1\r\n")).status == 403
    assert ask(client_of(said)) == FIRST


def test_loads_at_the_same_time_come_one_after_the_other(operators: Operators):
    with command(operators.path, "--model-control", "--threads", 2) as (_, said):
        operators.write(FIRST + 1)
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(connection(said)) for _ in range(6)]
            for peer, model in zip(peers, ("times", "less") * 3, strict=True):
                peer.sendall(request(f"/v2/repository/models/{model}/load", b"{}"))
            assert [Replies(peer).next().status for peer in peers] == [200] * 6
        client = client_of(said)
        assert ask(client) == FIRST + 1
        assert ask(client, model="less") == -FIRST


def test_more_requests_than_may_wait_are_refused_and_the_others_done(operators: Operators):
    with command(operators.path, "--model-control") as (_, said), contextlib.ExitStack() as stack:
        operators.hold(FIRST + 1)
        first = stack.enter_context(connection(said))
        first.sendall(request(LOAD, b"{}"))
        held = operators.held()
        others = [stack.enter_context(connection(said)) for _ in range(70)]
        for peer in others:
            peer.sendall(request("/v2/repository/models/less/unload", b"{}"))
        refused = [Replies(peer).next().status for peer in others[63:]]
        assert refused == [429] * 7
        os.close(held)
        assert [Replies(peer).next().status for peer in (first, *others[:63])] == [200] * 64
        assert ask(client_of(said)) == FIRST + 1


def test_a_client_that_leaves_does_not_end_a_load(operators: Operators):
    with command(operators.path, "--model-control") as (_, said):
        client = client_of(said)
        operators.hold(FIRST + 1)
        with connection(said) as peer:
            peer.sendall(request(LOAD, b"{}"))
            held = operators.held()
        assert ask(client) == FIRST  # others are answered meanwhile
        os.close(held)
        wait_until(lambda: ask(client) == FIRST + 1)
        operators.write(FIRST + 2)
        client.load_model("times")
        assert ask(client) == FIRST + 2


def test_a_signal_during_a_load_waits_for_it(operators: Operators):
    with command(operators.path, "--model-control", "--drain", "10min") as (process, said), connection(said) as peer:
        operators.hold(FIRST + 1)
        peer.sendall(request(LOAD, b"{}"))
        held = operators.held()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Finishing requests in progress")
        os.close(held)
        assert Replies(peer).next().status == 200
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert json.loads(out)["drained"]


def test_a_signal_ends_a_server_whose_load_never_ends(operators: Operators):
    with command(operators.path, "--model-control", "--drain", "100ms") as (process, said), connection(said) as peer:
        operators.hold(FIRST + 1)
        peer.sendall(request(LOAD, b"{}"))
        held = operators.held()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=SECONDS)
        os.close(held)
        assert peer.recv(1) == b""
    assert process.returncode == 143
    assert not json.loads(out)["drained"]


def test_a_supervised_server_is_started_again_with_the_files_as_they_are(operators: Operators):
    with command(operators.path, "--model-control", "--supervise") as (process, said):
        client = client_of(said)
        operators.write(FIRST + 1)
        client.load_model("times")
        client.unload_model("less")
        assert ask(client) == FIRST + 1
        operators.write(FIRST + 2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

        def answer() -> bool:
            try:
                return ask(client_of(said)) == FIRST + 2 and ask(client_of(said), model="less") == -FIRST - 1
            except Exception:  # no server listens yet, which each library reports differently
                return False

        wait_until(answer)


def test_the_log_tells_what_was_loaded_and_unloaded(operators: Operators):
    with command(operators.path, "--model-control", "--log", "json") as (process, said):
        client = client_of(said)
        client.load_model("times")
        client.unload_model("times")
        operators.write(FIRST, "1 / 0\n")
        refusal(lambda: client.load_model("times"))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    lines = [json.loads(line) for line in err.splitlines()]
    told = [line for line in lines if line["event"].startswith("model_") and line["event"] != "model_ready"]
    assert [line["event"] for line in told] == ["model_loaded", "model_unloaded", "model_load_failed"]
    assert all(line["model"] == "times" for line in told)
    assert "ZeroDivisionError" in told[2]["message"]


def test_operators_that_ship_with_headrace_are_loaded_again_too():
    with command("light", "--model-control") as (_, said):
        client = client_of(said)
        client.unload_model("light")
        assert not client.is_model_ready("light")
        client.load_model("light")
        assert client.is_model_ready("light")
