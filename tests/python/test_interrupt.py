"""Ctrl-C: the results so far are printed, and the status is 130."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def interrupted(*arguments: str, when: str, by: signal.Signals = signal.SIGINT) -> subprocess.CompletedProcess[str]:
    """Runs the command line on a terminal, and sends `by`, like Ctrl-C, once `when` appears there."""
    reader, writer = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *arguments],
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "50"},
    )
    os.close(writer)
    seen = ""
    sent = False
    limit = time.monotonic() + 300
    while True:
        try:
            seen += os.read(reader, 65536).decode(errors="replace")
        except OSError:  # Linux reports EIO once the other side is closed
            break
        if not sent and when in seen:
            process.send_signal(by)
            sent = True
        assert time.monotonic() < limit, seen
    os.close(reader)
    assert sent, seen
    assert process.stdout is not None
    with process.stdout as stdout:
        output = stdout.read()
    return subprocess.CompletedProcess(arguments, process.wait(300), output, seen)


# Ctrl-C comes during a rung that follows a completed one.
CLIMB = (
    "ladder",
    "--device",
    "cpu",
    "--steps",
    "8",
    "--rung",
    "1",
    "--rung",
    "3",
    "--bound",
    "10s",
    "--window",
    "10ms",
    "--tolerance",
    "0.01",
)


@pytest.mark.whole_machine
def test_ladder_prints_what_it_has():
    result = interrupted(*CLIMB, when="Rung 3")
    assert result.returncode == 130
    assert "1 single" in result.stdout
    assert "Roofs" in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.whole_machine
def test_ladder_json_says_so():
    result = interrupted(*CLIMB, "--json", when="Rung 3")
    assert result.returncode == 130
    content = json.loads(result.stdout)
    assert content["interrupted"] is True
    assert any(row["id"] == "ladder.light.rung01.qps" for row in content["rows"])


@pytest.mark.whole_machine
def test_what_is_whole_is_saved_when_it_is_terminated(tmp_path: Path):
    machine = f"cpu-{len(os.sched_getaffinity(0))}"
    path = tmp_path / f"ladder.{machine}.json"
    result = interrupted(*CLIMB, "--save", str(path), when="Rung 3", by=signal.SIGTERM)
    assert result.returncode == 143
    assert any(row["id"] == "ladder.light.rung01.qps" for row in json.loads(path.read_text())["rows"])


@pytest.mark.whole_machine
def test_nothing_is_saved(tmp_path: Path):
    machine = f"cpu-{len(os.sched_getaffinity(0))}"
    path = tmp_path / f"ladder.{machine}.json"
    result = interrupted(*CLIMB, "--save", str(path), when="Rung 1")
    assert result.returncode == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.whole_machine
@pytest.mark.parametrize(
    ("verb", "when"), [(("load", "--duration", "20s"), " 5%"), (("soak", "--minutes", "5"), "queries/s")]
)
def test_long_verbs(verb: tuple[str, ...], when: str):
    result = interrupted(*verb, "--rate", "1K", when=when)
    assert result.returncode == 130
    assert result.stdout != ""


def test_a_call_that_does_not_look_at_signals_is_left_at_once():
    began = time.monotonic()
    result = interrupted("link", "--full", "--device", "cpu", "--json", when="0%")
    assert result.returncode == 130
    assert json.loads(result.stdout)["interrupted"] is True
    assert time.monotonic() - began < 60  # the complete run takes minutes


def test_ask_many_raises_and_the_client_lives_on():
    code = """
import signal, threading, headrace
operator = headrace.operators.reference(steps=20000)
with headrace.Engine("cpu", operator) as engine, engine.connect() as client:
    queries = operator.sample(20000)
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    try:
        client.ask_many(queries)
    except KeyboardInterrupt:
        print("raised", client.in_flight, client.ask(queries[0]).size)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "raised 0 4096\n", done.stderr
