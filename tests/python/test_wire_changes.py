"""Shares and bounds of models change while clients ask: Server.change(), and load requests with a configuration."""

import contextlib
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import Errc, Plan, UsageError, _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

import tritonclient.http as over_http
from test_wire_command import command, get
from test_wire_model_control import Operators, client_of, refusal
from tritonclient.utils import InferenceServerException
from wire_serving import SECONDS, Replies, connect, request, serving, waits

if _core.built_with_grpc:
    import tritonclient.grpc as over_grpc

needs_grpc = pytest.mark.skipif(not _core.built_with_grpc, reason="built without gRPC")

POOL = Plan(schedule="dispatched", host_memory="mapped", share=0.5, slots=64)
CHANGES = 300
LOAD = "/v2/repository/models/times/load"
HOUR = 3_600_000_000  # microseconds


@headrace.operator(query="i8", answer="i8")
def tenfold(_group, query, answer):
    answer[0] = 10 * query[0]


def config_of(**members: object) -> str:
    """A configuration with these share, in_flight_max, timeout and waiting."""
    policy = {
        name: members[key]
        for key, name in (("timeout", "default_timeout_microseconds"), ("waiting", "max_queue_size"))
        if key in members
    }
    parameters = {name: {"string_value": str(members[name])} for name in ("share", "in_flight_max") if name in members}
    return json.dumps(
        ({"dynamic_batching": {"default_queue_policy": policy}} if policy else {})
        | ({"parameters": parameters} if parameters else {})
    )


def tensors(of: Any, numbers: list[int]) -> list[Any]:
    query = of.InferInput("query", [len(numbers)], "INT64")
    query.set_data_from_numpy(np.array(numbers))
    return [query]


def in_force(client: Any, model: str) -> tuple[float, int, int, int]:
    """The share, in_flight_max, timeout and waiting that a client of HTTP sees."""
    config = client.get_model_config(model)
    policy = config["dynamic_batching"]["default_queue_policy"]
    parameters = {name: one["string_value"] for name, one in config["parameters"].items()}
    return (
        float(parameters["share"]),
        int(parameters["in_flight_max"]),
        policy["default_timeout_microseconds"],
        policy["max_queue_size"],
    )


class Asker:
    """A thread that asks for ever, and notes what is wrong."""

    def __init__(self, ask: Callable[[list[int]], list[int]], first: int) -> None:
        self.count, self.wrong = 0, list[str]()
        self._ask, self._first, self._stop = ask, first, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = self._first
        while not self._stop.is_set():
            asked = [number, -number, number + 1]
            number += 2
            try:
                answers = self._ask(asked)
            except Exception as error:  # no request may fail
                self.wrong.append(repr(error))
                return
            if answers != [10 * one for one in asked]:
                self.wrong.append(f"{asked} was answered with {answers}")
            self.count += 1

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


@contextlib.contextmanager
def asked_meanwhile(url: str, grpc: str | None) -> Iterator[list[Asker]]:
    """Two clients of each protocol ask all the time."""
    with contextlib.ExitStack() as stack:
        asks: list[Callable[[list[int]], list[int]]] = []
        for _ in range(2):

            def raw(numbers: list[int]) -> list[int]:
                tensor = {"name": "query", "datatype": "INT64", "shape": [len(numbers)], "data": numbers}
                body = json.dumps({"inputs": [tensor]}).encode()
                sent = urllib.request.Request(f"{url}/v2/models/tenfold/infer", body)
                with urllib.request.urlopen(sent, timeout=SECONDS) as answer:
                    return list(json.load(answer)["outputs"][0]["data"])

            asks.append(raw)
            if grpc is not None:
                client = stack.enter_context(over_grpc.InferenceServerClient(grpc))
                asks.append(
                    lambda numbers, client=client: (  # type: ignore[misc]
                        client.infer("tenfold", tensors(over_grpc, numbers)).as_numpy("answer").tolist()
                    )
                )
        askers = [Asker(ask, 1_000_000 * number) for number, ask in enumerate(asks)]
        try:
            yield askers
        finally:
            for asker in askers:
                asker.end()


VALUES = list(
    islice(
        zip(
            cycle([0.25, 1.0, 0.5]), cycle([1, 0, 7, 64]), cycle([SECONDS, 0, 3600]), cycle([4096, 64, 1 << 20, 0, 100])
        ),
        CHANGES,
    )
)


@pytest.mark.parametrize("shm", [False, True], ids=["", "shm"])
def test_hundreds_of_changes_lose_no_query(shm: bool):
    options: dict[str, Any] = {"grpc_port": 0 if _core.built_with_grpc else None, "threads": 2}
    if shm:
        options["shm"] = f"changes-{time.monotonic_ns()}"
    with contextlib.ExitStack() as stack:
        server, (engine,) = stack.enter_context(serving(tenfold(), plan=POOL, **options))
        asked, ended = list[int](), set[Errc | None]()
        if shm:
            client = stack.enter_context(headrace.Client(f"shm://{options['shm']}/tenfold"))
            stop = threading.Event()

            def ask_through_shm() -> None:
                numbers = np.arange(1000)
                while not stop.is_set():
                    answers, status = client.ask_many(numbers)
                    assert answers[status == 0].tolist() == (10 * numbers[status == 0]).tolist()
                    ended.update(map(Errc.of_status, status.tolist()))
                    asked.append(len(numbers))

            thread = threading.Thread(target=ask_through_shm)
            thread.start()
        url = f"http://127.0.0.1:{server.http_port}"
        grpc = None if server.grpc_port is None else f"127.0.0.1:{server.grpc_port}"
        with asked_meanwhile(url, grpc) as askers:
            for share, in_flight_max, latency_max, waiting_max in VALUES:
                server.change(
                    "tenfold",
                    share=share,
                    in_flight_max=in_flight_max,
                    latency_max=latency_max,
                    waiting_max=waiting_max,
                )
                plan, told = engine.plan, server.model_statistics()[0]
                assert (plan.share, plan.in_flight_max, plan.latency_max) == (share, in_flight_max, latency_max)
                assert told.share == share
                assert told.in_flight_max == (in_flight_max or plan.slots)
                assert told.waiting_max == (waiting_max or 4096)
            while min(asker.count for asker in askers) < 10 and not any(asker.wrong for asker in askers):
                time.sleep(0.01)
        if shm:
            stop.set()
            thread.join()
            assert asked
            assert ended == {None}
        assert [asker.wrong for asker in askers] == [[] for _ in askers]
        told = server.model_statistics()[0]
        done = sum(asker.count for asker in askers)
        assert told.http.requests.answered + told.grpc.requests.answered == done
        assert told.shm.requests.answered == sum(asked)
        for counted in (told.http, told.grpc, told.shm):
            assert counted.requests.refused + counted.requests.late + counted.requests.failed == 0
        answered = engine.statistics()
        assert answered.submitted == answered.answered == 3 * done + sum(asked)


def test_clients_change_a_model_while_others_ask(tmp_path: Path):
    file = tmp_path / "tens.py"
    file.write_text(
        "import headrace\n\n\n@headrace.operator(query='i8', answer='i8')\n"
        "def tenfold(_group, query, answer):\n    answer[0] = 10 * query[0]\n"
    )
    with command(file, "--model-control", "--threads", 2, "--plan", "dispatched", "--slots", 64) as (_, said):
        client = client_of(said)
        with asked_meanwhile(said["url"], said["grpc"]) as askers:
            for number, (share, in_flight_max, latency_max, waiting_max) in enumerate(VALUES[:100]):
                config = config_of(
                    share=share, in_flight_max=in_flight_max, timeout=latency_max * 1_000_000, waiting=waiting_max
                )
                client.load_model("tenfold", config=config)
                if number % 10 == 0:
                    expected = (share, in_flight_max or 64, latency_max * 1_000_000, waiting_max or 4096)
                    assert in_force(client, "tenfold") == expected
                if number % 50 == 0:
                    client.load_model("tenfold")  # a new engine, with the same bounds
                    assert in_force(client, "tenfold") == expected
            while min(asker.count for asker in askers) < 10 and not any(asker.wrong for asker in askers):
                time.sleep(0.01)
        assert [asker.wrong for asker in askers] == [[] for _ in askers]
        counted = client.get_inference_statistics("tenfold")["model_stats"][0]["inference_stats"]
        assert counted["success"]["count"] == sum(asker.count for asker in askers)
        assert counted["fail"]["count"] == 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server for tests that leave its model `times` with the bounds of the command line."""
    operators = Operators(tmp_path_factory.mktemp("shared"))
    with command(operators.path, "--model-control", "--plan", "dispatched", "--latency-max", "20min") as (_, said):
        yield said


START = (0.5, 1024, 1_200_000_000, 4096)


@needs_grpc
def test_a_configuration_shows_what_is_in_force_and_can_be_sent_back(shared: dict[str, Any]):
    client = client_of(shared)
    assert in_force(client, "times") == START
    with over_grpc.InferenceServerClient(shared["grpc"]) as other:
        config = other.get_model_config("times", as_json=True)["config"]
        assert config["dynamic_batching"]["default_queue_policy"] == {
            "default_timeout_microseconds": "1200000000",
            "allow_timeout_override": True,
            "max_queue_size": 4096,
        }
        assert config["parameters"] == {"share": {"string_value": "0.5"}, "in_flight_max": {"string_value": "1024"}}
        config["parameters"]["share"]["string_value"] = "0.25"
        config["dynamic_batching"]["default_queue_policy"]["default_timeout_microseconds"] = "250000000"
        other.load_model("times", config=json.dumps(config))
    assert in_force(client, "times") == (0.25, 1024, 250_000_000, 4096)
    config = client.get_model_config("times")
    config["parameters"]["share"]["string_value"] = "0.5"
    config["dynamic_batching"]["default_queue_policy"]["default_timeout_microseconds"] = 1_200_000_000
    client.load_model("times", config=json.dumps(config))
    assert in_force(client, "times") == START
    assert in_force(client, "less") == START


def test_changes_stay_with_a_name_that_is_unloaded_and_loaded(shared: dict[str, Any]):
    client = client_of(shared)
    client.load_model("times", config=config_of(share=0.25, waiting=7))
    client.unload_model("times")
    client.load_model("times")
    assert in_force(client, "times") == (0.25, 1024, 1_200_000_000, 7)
    client.unload_model("times")
    client.load_model("times", config=config_of(share=0.5, waiting=0, in_flight_max=3))
    assert in_force(client, "times") == (0.5, 3, 1_200_000_000, 4096)
    client.load_model("times", config=config_of(in_flight_max=0))
    assert in_force(client, "times") == START


def policy(**members: object) -> dict[str, object]:
    return {"dynamic_batching": {"default_queue_policy": members}}


def parameter(name: str, value: object) -> dict[str, object]:
    return {"parameters": {name: {"string_value": value}}}


WRONG: list[tuple[object, str]] = [
    (parameter("share", "nan"), "share must be above 0"),
    (parameter("share", "-0.5"), "share must be above 0"),
    (parameter("share", "0"), "share must be above 0"),
    (parameter("share", "1.5"), "share must be above 0"),
    (parameter("share", "1e999"), "parameters.share"),
    (parameter("share", "inf"), "share must be above 0"),
    (parameter("share", "half"), "parameters.share"),
    (parameter("share", ""), "parameters.share"),
    (parameter("share", "0.5 "), "parameters.share"),
    (parameter("share", 0.5), "string_value"),
    ({"parameters": {"share": 0.5}}, "string_value"),
    ({"parameters": {"share": {"string_value": "0.5", "more": 1}}}, "string_value"),
    ({"parameters": []}, '"parameters" must be an object'),
    (parameter("slots", "4"), "parameters.slots"),
    (parameter("in_flight_max", "-1"), "parameters.in_flight_max"),
    (parameter("in_flight_max", "1.5"), "parameters.in_flight_max"),
    (parameter("in_flight_max", "1025"), "in_flight_max must be at most the 1024 slots"),
    (parameter("in_flight_max", "99999999999999999999"), "parameters.in_flight_max"),
    (policy(default_timeout_microseconds=-1), "default_timeout_microseconds"),
    (policy(default_timeout_microseconds=1.5), "default_timeout_microseconds"),
    (policy(default_timeout_microseconds=HOUR + 1), "0 to 3600000000"),
    (policy(default_timeout_microseconds=1 << 64), "default_timeout_microseconds"),
    (policy(default_timeout_microseconds=True), "default_timeout_microseconds"),
    (policy(default_timeout_microseconds=None), "default_timeout_microseconds"),
    (policy(default_timeout_microseconds="soon"), "default_timeout_microseconds"),
    (policy(max_queue_size=-1), "max_queue_size"),
    (policy(max_queue_size=1 << 40), "max_queue_size"),
    (policy(max_queue_size=[1]), "max_queue_size"),
    (policy(allow_timeout_override=False), "allow_timeout_override"),
    (policy(timeout_action="DELAY"), "late requests are refused"),
    (policy(timeout=1), "is not known here"),
    ({"dynamic_batching": {"max_queue_delay_microseconds": 5}}, "engines are made for their batches"),
    ({"dynamic_batching": {"preferred_batch_size": [4]}}, "preferred_batch_size"),
    ({"dynamic_batching": 1}, "dynamic_batching"),
    ({"dynamic_batching": {"default_queue_policy": []}}, "default_queue_policy"),
    ({"max_batch_size": 2048}, "max_batch_size"),
    ({"name": "less"}, '"name" cannot change'),
    ({"input": []}, '"input" cannot change'),
    ({"output": [{"name": "answer", "data_type": "TYPE_FP32", "dims": [1]}]}, '"output" cannot change'),
    ({"instance_group": [{"count": 2}]}, "instance_group"),
    ([], "JSON object"),
    (1, "JSON object"),
]


@pytest.mark.parametrize(("config", "says"), WRONG)
def test_wrong_configurations_are_refused_by_name(shared: dict[str, Any], config: object, says: str):
    client = client_of(shared)
    right = {"parameters": {"share": {"string_value": "0.125"}}}
    merged = right | config if isinstance(config, dict) and "parameters" not in config else config
    error = refusal(lambda: client.load_model("times", config=json.dumps(merged)))
    assert error.status() == "400"
    assert says in error.message()
    assert "\n" not in error.message()
    if _core.built_with_grpc:
        with over_grpc.InferenceServerClient(shared["grpc"]) as other:
            error = refusal(lambda: other.load_model("times", config=json.dumps(merged)))
            assert error.status() == "StatusCode.INVALID_ARGUMENT"
            assert says in error.message()
    assert in_force(client, "times") == START


@pytest.mark.parametrize(
    ("target", "parameters", "status", "says"),
    [
        (LOAD, {"config": "{"}, 400, "JSON object"),
        (LOAD, {"config": "[" * 60_000}, 400, "JSON object"),
        (LOAD, {"config": {}}, 400, "must be text"),
        (LOAD, {"config": None}, 400, "must be text"),
        (LOAD, {"config": 1}, 400, "must be text"),
        (LOAD.replace("load", "unload"), {"config": "{}"}, 400, "config"),
        (LOAD.replace("times", "nobody"), {"config": "{}"}, 404, "nobody"),
    ],
)
def test_wrong_parameters_are_refused(shared: dict[str, Any], target: str, parameters: object, status: int, says: str):
    body = json.dumps({"parameters": parameters}).encode()
    sent = urllib.request.Request(f"{shared['url']}{target}", body)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(sent, timeout=SECONDS)
    with refused.value as reply:
        assert reply.status == status
        assert says in json.load(reply)["error"]
    assert in_force(client_of(shared), "times") == START


@needs_grpc
def test_a_configuration_over_grpc_has_the_same_limit_of_its_size(shared: dict[str, Any]):
    with over_grpc.InferenceServerClient(shared["grpc"]) as client:
        error = refusal(lambda: client.load_model("times", config=" " * (129 << 10)))
        assert "128 KiB" in error.message()


def test_a_share_without_room_is_an_error_and_changes_nothing(tmp_path: Path):
    operators = Operators(tmp_path)
    with command(operators.path, "--model-control") as (_, said):  # not a plan with shares
        client = client_of(said)
        error = refusal(lambda: client.load_model("times", config=config_of(share=0.5, waiting=5)))
        assert error.status() == "400"
        assert "share is available with schedule 'dispatched', not with 'blocking'" in error.message()
        assert in_force(client, "times") == (1, 1024, 0, 4096)
        client.load_model("times", config=config_of(share=1, waiting=5))
        assert in_force(client, "times") == (1, 1024, 0, 5)


def test_changes_need_what_loads_need(tmp_path: Path):
    operators = Operators(tmp_path)
    token = "0123456789abcdef"
    tokens = tmp_path / "tokens"
    tokens.write_text(token)
    tokens.chmod(0o600)
    body = json.dumps({"parameters": {"config": config_of(waiting=5)}}).encode()

    def status(said: dict[str, Any], headers: dict[str, str]) -> int:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(said["url"] + LOAD, body, headers), timeout=SECONDS
            ) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with command(operators.path) as (_, said):
        assert status(said, {}) == 501
    with command(operators.path, "--model-control", "--token-file", tokens) as (_, said):
        right = {"Authorization": f"Bearer {token}"}
        assert status(said, {}) == 401
        assert status(said, {"Authorization": "Bearer fedcba9876543210"}) == 401
        assert status(said, right | {"Origin": "http://127.0.0.1"}) == 403
        config = urllib.request.Request(f"{said['url']}/v2/models/times/config", headers=right)
        assert get(config)["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 4096
        assert status(said, right) == 200
        assert get(config)["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 5


def slow_body(microseconds: int, timeout: int | None = None) -> bytes:
    tensor = {"name": "query", "datatype": "INT64", "shape": [1], "data": [microseconds]}
    parameters = {} if timeout is None else {"parameters": {"timeout": timeout}}
    return request("/v2/models/waits/infer", json.dumps({"inputs": [tensor]} | parameters).encode())


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_a_bound_holds_for_requests_that_arrive_after_it():
    with serving(waits(), grpc_port=0 if _core.built_with_grpc else None, shm=f"bound-{time.monotonic_ns()}") as (
        server,
        (engine,),
    ):
        with connect(server) as early, connect(server) as late:
            early.sendall(slow_body(1_500_000))
            wait_until(lambda: engine.statistics().submitted == 1)
            server.change("waits", latency_max=0.2)
            late.sendall(slow_body(0, timeout=60_000_000))  # behind the first one, and a longer timeout does not help
            reply = Replies(late).next()
            assert reply.status == 504
            assert "the model's bound" in json.loads(reply.body)["error"]
            assert Replies(early).next().status == 200  # it has no deadline
        with headrace.Client(f"shm://{server.shm}/waits") as client:
            assert client.ask(np.int64(5)) == 5
            with pytest.raises(headrace.Error) as refused:
                client.ask(np.int64(400_000))
            assert refused.value.code == Errc.deadline_exceeded
        if _core.built_with_grpc:
            with over_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
                error = refusal(lambda: client.infer("waits", tensors(over_grpc, [400_000]), client_timeout=60))
                assert error.status() == "StatusCode.DEADLINE_EXCEEDED"
        server.change("waits", latency_max=0)
        with connect(server) as peer:
            peer.sendall(slow_body(400_000))
            assert Replies(peer).next().status == 200


def test_a_lower_bound_of_the_line_drops_nobody_and_holds_for_the_rest():
    plan = Plan(slots=1)
    with serving(waits(), plan=plan) as (server, (engine,)), contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(server)) for _ in range(12)]
        peers[0].sendall(slow_body(1_000_000))
        wait_until(lambda: engine.statistics().submitted == 1)
        for peer in peers[1:]:
            peer.sendall(slow_body(1000))
        wait_until(lambda: server.model_statistics()[0].queries_waiting == 11)
        server.change("waits", waiting_max=3)
        with connect(server) as another:
            another.sendall(slow_body(1))
            reply = Replies(another).next()
            assert reply.status == 429
            assert server.model_statistics()[0].queries_waiting == 11
        assert [Replies(peer).next().status for peer in peers] == [200] * 12
        with connect(server) as another:
            another.sendall(slow_body(1))
            assert Replies(another).next().status == 200


def test_a_lower_limit_of_the_engine_keeps_the_rest_in_line():
    plan = Plan(slots=64)
    with serving(waits(), plan=plan) as (server, (engine,)), contextlib.ExitStack() as stack:
        server.change("waits", in_flight_max=2)
        peers = [stack.enter_context(connect(server)) for _ in range(10)]
        peers[0].sendall(slow_body(500_000))
        wait_until(lambda: engine.statistics().submitted == 1)
        for peer in peers[1:]:
            peer.sendall(slow_body(1000))
        wait_until(lambda: server.model_statistics()[0].queries_waiting == 8)
        assert engine.statistics().submitted == 2
        server.change("waits", in_flight_max=0)  # those in line go on once one is back
        assert [Replies(peer).next().status for peer in peers] == [200] * 10


def test_models_that_are_not_there_and_values_that_cannot_be_are_errors():
    with serving(tenfold(), plan=POOL) as (server, (engine,)):
        with pytest.raises(UsageError, match="there is no model 'nobody'") as unknown:
            server.change("nobody", waiting_max=3)
        assert unknown.value.code == Errc.not_found
        for wrong, says in (
            ({"share": float("nan")}, "share must be above 0"),
            ({"share": -1.0}, "share must be above 0"),
            ({"in_flight_max": 65}, "at most the 64 slots"),
            ({"latency_max": 3601.0}, "latency_max must be 0 to 3600"),
            ({"latency_max": -1.0}, "latency_max"),
            ({"latency_max": float("nan")}, "latency_max"),
            ({"waiting_max": (1 << 30) + 1}, "waiting_max must be at most"),
        ):
            with pytest.raises(UsageError, match=says):
                server.change("tenfold", **({"share": 0.25, "waiting_max": 9} | wrong))
        for wrong in ({"waiting_max": -1}, {"in_flight_max": 1.5}, {"share": "half"}):
            with pytest.raises(TypeError):
                server.change("tenfold", **wrong)  # type: ignore[arg-type]
        assert (engine.plan.share, server.model_statistics()[0].waiting_max) == (0.5, 4096)
        server.unload("tenfold")
        with pytest.raises(UsageError, match="is not loaded"):
            server.change("tenfold", waiting_max=3)
        told = server.model_statistics()[0]
        assert (told.share, told.in_flight_max, told.latency_max, told.waiting_max) == (0, 0, 0, 0)
        engine.stop()


def test_metrics_and_the_log_tell_what_changed(tmp_path: Path):
    operators = Operators(tmp_path)
    with command(operators.path, "--model-control", "--plan", "dispatched", "--prometheus", "0", "--log", "json") as (
        process,
        said,
    ):
        client = client_of(said)
        client.load_model("times", config=config_of(share=0.25, in_flight_max=9, timeout=1_500_000, waiting=77))
        with urllib.request.urlopen(said["prometheus"], timeout=SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        told = {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in lines if 'model="times"' in line}
        assert told["headrace_serve_model_share"] == 0.25
        assert told["headrace_serve_model_in_flight_max"] == 9
        assert told["headrace_serve_model_latency_max_seconds"] == 1.5
        assert told["headrace_serve_model_waiting_max"] == 77
        client.unload_model("times")
        with urllib.request.urlopen(said["prometheus"], timeout=SECONDS) as answer:
            assert 'headrace_serve_model_share{model="times"' not in answer.read().decode()
        process.terminate()
        _, err = process.communicate(timeout=SECONDS)
    changed = [json.loads(line) for line in err.splitlines() if '"model_changed"' in line]
    assert len(changed) == 1
    names = ("model", "share", "in_flight_max", "latency_max", "waiting_max")
    assert [changed[0][name] for name in names] == ["times", 0.25, 9, 1.5, 77]


def test_a_program_gets_the_changes_that_clients_ask_for():
    with serving(tenfold(), plan=POOL, model_control=True) as (server, _):
        asked = list[InferenceServerException | None]()

        def ask() -> None:
            with over_http.InferenceServerClient(f"127.0.0.1:{server.http_port}", network_timeout=SECONDS) as client:
                client.load_model("tenfold", config=config_of(share=0.25, timeout=1000))
                asked.append(None)

        thread = threading.Thread(target=ask)
        thread.start()
        made = server.next_model_request(SECONDS)
        assert made is not None
        assert made.load
        assert made.change == {"share": 0.25, "latency_max": 0.001}
        server.change(made.model, **made.change)  # type: ignore[arg-type]
        server.end_model_request(made)
        thread.join()
        assert asked == [None]
        assert server.model_statistics()[0].share == 0.25
