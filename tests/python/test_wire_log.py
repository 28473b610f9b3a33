"""The log of `headrace serve`: its events, its rate limit, and that no event is lost."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO, cast

import pytest

from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from test_wire_command import PORTS, command, get
from test_wire_metrics import eventually
from wire_serving import SECONDS

from headrace import wire
from headrace.serve_log import LINES_MOST, LogForm, ServerLog

BAD = b'{"inputs": []}'
OUTCOMES = ("answered", "invalid", "refused", "late", "cancelled", "failed")


def ask_wrong(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}/v2/models/light/infer", BAD, timeout=SECONDS)
    refused.value.close()
    assert refused.value.code == 400


def fake_server(**invalid: int) -> wire.Server:
    """A server whose models have this many invalid HTTP requests."""

    def outcomes(count: int) -> SimpleNamespace:
        return SimpleNamespace(**{one: count if one == "invalid" else 0 for one in OUTCOMES})

    def protocol(count: int) -> SimpleNamespace:
        return SimpleNamespace(requests=outcomes(count), queries=outcomes(0))

    models = [
        SimpleNamespace(
            name=name,
            version="1",
            loaded=True,
            ready=True,
            http=protocol(count),
            grpc=protocol(0),
            shm=protocol(0),
        )
        for name, count in invalid.items()
    ]
    done = SimpleNamespace(connections_refused=0, unauthorized=0, handshakes_failed=0)
    return cast("wire.Server", SimpleNamespace(model_statistics=lambda: models, statistics=lambda: done))


@pytest.fixture
def out() -> Iterator[TextIO]:
    with tempfile.TemporaryFile("w+") as file:
        yield file


def written(out: TextIO) -> str:
    """Reads and empties the file."""
    out.seek(0)
    found = out.read()
    out.seek(0)
    out.truncate()
    return found


def logged(out: TextIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(out).splitlines()]


def test_the_life_of_a_server_is_told_as_json():
    with command("light", "--log", "json", "--connections", 3) as (process, said):
        for _ in range(5):
            ask_wrong(said["url"])
        assert get(f"{said['url']}/v2/health/ready") is None
        port = int(said["url"].rpartition(":")[2])
        with contextlib.ExitStack() as stack:
            for _ in range(6):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=SECONDS)
    lines = [json.loads(line) for line in err.splitlines()]
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    by_event = {event: [one for one in lines if one["event"] == event] for event in {one["event"] for one in lines}}
    assert (lines[0]["event"], lines[0]["url"], lines[0]["pid"]) == ("started", said["url"], process.pid)
    assert [(one["model"], one["from"]) for one in by_event["model_ready"]] == [("light", "light")]
    told = by_event["requests"]
    assert {(one["model"], one["protocol"], one["outcome"], one["level"]) for one in told} == {
        ("light", "http", "invalid", "info")
    }
    assert sum(one["requests"] for one in told) == 5
    assert by_event["draining"][0]["limit_seconds"] == 10
    end = lines[-1]
    assert (end["event"], end["drained"], end["requests"], end["failed"]) == ("ended", True, 6, 5)
    refused = sum(one["connections"] for one in by_event.get("connections_refused", []))
    assert refused == end["connections_refused"]


def test_connections_that_give_way_are_told_while_the_server_runs():
    with command("light", "--log", "text", "--connections", 1) as (process, said), contextlib.ExitStack() as stack:
        port = int(said["url"].rpartition(":")[2])
        for _ in range(3):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
        assert process.stderr is not None
        told = 0
        while told < 2:
            line = process.stderr.readline()
            assert line, "the log ended"
            found = re.fullmatch(r"\S+Z warning connections_refused connections=(\d+)\n", line)
            told += int(found[1]) if found else 0
        assert told == 2


def test_each_event_is_one_line_of_text(out: TextIO):
    log = ServerLog(LogForm.text, out.fileno())
    log.write("started", url="http://127.0.0.1:8000", path='a b\nc="d"', nothing="", grpc=None, drained=True, pid=7)
    assert re.sub(r"^\S+Z ", "", written(out)) == (
        'info started url=http://127.0.0.1:8000 path="a b\\nc=\\"d\\"" nothing="" grpc=null drained=true pid=7\n'
    )


def test_a_look_writes_few_lines_and_none_is_lost(out: TextIO):
    log = ServerLog(LogForm.json, out.fileno())
    names = {f"m{i}": i + 1 for i in range(3 * LINES_MOST - 5)}
    told: dict[str, int] = {}
    for expected in (LINES_MOST, LINES_MOST, LINES_MOST - 5, 0):
        log.look(fake_server(**names))
        lines = logged(out)
        assert len(lines) == expected
        for line in lines:
            told[line["model"]] = told.get(line["model"], 0) + line["requests"]
    assert told == names
    more = {name: count + 10 for name, count in names.items()}
    log.look(fake_server(**more), all_of_it=True)  # as at the end
    assert {one["model"]: one["requests"] for one in logged(out)} == dict.fromkeys(names, 10)


def test_an_engine_that_fails_is_told_once(out: TextIO):
    log = ServerLog(LogForm.json, out.fileno())
    server = fake_server(light=0)
    log.look(server)
    server.model_statistics()[0].ready = False  # type: ignore[misc]
    log.look(server)
    log.look(server)
    assert [(one["event"], one["level"], one["model"]) for one in logged(out)] == [("model_failed", "error", "light")]
    model = server.model_statistics()[0]
    model.loaded = False  # type: ignore[misc]
    log.look(server)
    assert logged(out) == []  # it was unloaded
    model.loaded = True  # type: ignore[misc]
    log.look(server)
    assert [one["event"] for one in logged(out)] == ["model_failed"]  # another engine, which has failed too


def test_a_log_that_cannot_be_written_harms_no_request():
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "serve", "light", "--log", "json", "--device", "cpu", *PORTS, "--json"],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
        )
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            ask_wrong(url)
            eventually(lambda: get(f"{url}/v2/health/ready") is None)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["requests"] >= 2
