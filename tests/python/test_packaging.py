"""Files in packaging/: the dashboard queries existing metrics, the unit and the container start a server."""

import configparser
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from test_wire_command import PORTS
from test_wire_metrics import GRPC_PORT, measured, scrape
from wire_serving import SECONDS, third

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
ADDED = {"instance", "job"}  # labels that Prometheus adds


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PACKAGING / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return found


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def expressions(board: dict[str, Any]) -> list[str]:
    """Queries of panels and of variables."""
    of_panels = [target["expr"] for panel in panels(board) for target in panel["targets"]]
    variables = [one for one in board["templating"]["list"] if one["type"] == "query"]
    return of_panels + [one["query"]["query"] for one in variables]


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(board: dict[str, Any]):
    with measured(third(), grpc_port=GRPC_PORT) as (_, address):
        labels_of: dict[str, set[str]] = {}
        for name, labels in scrape(address):
            labels_of.setdefault(name, set()).update(dict(labels))
    asked = set()
    for expression in expressions(board):
        names = re.findall(r"\b(?:headrace|nv|process)_\w+", expression)
        assert names, expression
        unknown = [name for name in names if name not in labels_of]
        assert unknown == [], expression
        known = set.union(ADDED, *(labels_of[name] for name in names))
        used = set(re.findall(r"(\w+)\s*(?:=~|!=|=)", expression))
        for group in re.findall(r"by \(([^)]*)\)", expression):
            used |= set(filter(None, re.split(r"[\s,]+", group)))
        used |= set(re.findall(r"label_values\(.*, (\w+)\)", expression))
        assert used <= known, expression
        asked |= set(names)
    assert len(asked) > 12


def test_the_legends_of_the_dashboard_name_labels_of_their_queries(board: dict[str, Any]):
    for panel in panels(board):
        for target in panel["targets"]:
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                grouped = re.findall(r"by \(([^)]*)\)", target["expr"])
                assert not grouped or label in grouped[0], (panel["title"], label)


def test_the_panels_of_the_dashboard_lie_side_by_side(board: dict[str, Any]):
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for cell in ((at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])):
            assert cell not in taken, (panel["title"], taken.get(cell))
            taken[cell] = panel["title"]
    variables = {one["name"] for one in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([*panels(board)])))
    assert used - {"__rate_interval"} == variables


def service() -> dict[str, list[str]]:
    """The section [Service] of the unit, with all values of each key."""
    found: dict[str, list[str]] = {}
    text = (PACKAGING / "headrace.service").read_text(encoding="utf-8").partition("[Service]\n")[2].partition("\n[")[0]
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def served(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """The JSON in which a process describes what it serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path):
    unit = (PACKAGING / "headrace.service").read_text(encoding="utf-8")
    program = tmp_path / "headrace"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    installed = unit.replace("/opt/headrace/bin/headrace", str(program))
    assert installed != unit
    (tmp_path / "headrace.service").write_text(installed)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "headrace.service"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_is_one_of_systemd():
    """Also checked without systemd."""
    parser = configparser.ConfigParser(strict=False, delimiters="=", interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read(PACKAGING / "headrace.service")
    assert parser.sections() == ["Unit", "Service", "Install"]
    found = service()
    assert found["DynamicUser"] == found["NoNewPrivileges"] == ["yes"]
    assert found["ProtectSystem"] == ["strict"]
    assert found["CapabilityBoundingSet"] == [""]


def test_the_command_of_the_unit_tells_systemd_when_it_is_ready_and_when_it_stops(tmp_path: Path):
    found = service()
    assert found["Type"] == ["notify"]
    # As by systemd: $NAME without braces becomes several words.
    values = {"OPERATORS": "light", "OPTIONS": " ".join(("--json", "--device", "cpu", *PORTS))}
    words = found["ExecStart"][0].split()
    assert words[0].endswith("/headrace")
    arguments = [word for one in words[1:] for word in (values[one[1:]].split() if one[0] == "$" else [one])]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SECONDS)
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        try:
            ready = manager.recv(4096).decode().splitlines()
            url = served(process)["url"]
            assert ready == ["READY=1", f"STATUS=Serving on {url}"]
            with urllib.request.urlopen(f"{url}/v2/health/ready", timeout=SECONDS) as answer:
                assert answer.status == 200
            process.send_signal(getattr(signal, found.get("KillSignal", ["SIGTERM"])[0]))
            assert manager.recv(4096) == b"STOPPING=1"
            process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "again"),
    [(("heavy",), 2, False), (("light", "--address", "192.0.2.1"), 1, True)],
)
def test_the_unit_starts_again_after_what_may_pass_alone(arguments: tuple[str, ...], status: int, *, again: bool):
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "serve", *arguments, "--device", "cpu", *PORTS],
        check=False,
        capture_output=True,
        text=True,
    )
    found = service()
    assert done.returncode == status, done.stderr
    assert (str(status) in found["RestartPreventExitStatus"][0].split()) != again
    assert found["Restart"] == ["on-failure"]


def test_the_unit_leaves_more_time_for_the_end_than_the_server_takes():
    source = (PACKAGING.parent / "python/headrace/cli/serve.py").read_text(encoding="utf-8")
    drain = re.search(r"^_DRAIN_SECONDS = ([0-9.]+)$", source, re.MULTILINE)
    assert drain is not None
    assert int(service()["TimeoutStopSec"][0]) > 2 * float(drain[1])


def test_the_container_serves():
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    entry, command = (json.loads(value) for value in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.MULTILINE))
    assert entry == ["headrace"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *command, "--json", "--device", "cpu", *PORTS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = served(process)["url"]
        with urllib.request.urlopen(f"{url}/v2/models/light", timeout=SECONDS) as answer:
            assert json.load(answer)["name"] == "light"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    copied = re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE)
    assert copied == ["."]  # the whole repository; .dockerignore excludes build outputs
