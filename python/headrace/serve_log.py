"""Logs the events of a server."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.wire import ModelStatistics, Server

LOOK_SECONDS = 1.0
"""Interval at which the server's counters are read."""
LINES_MOST = 20
"""Maximum number of lines per look about requests."""

_PLAIN = re.compile(r"[\w.:/@\[\]+-]+", re.ASCII)
_LEVELS = {"invalid": "info", "cancelled": "info", "refused": "warning", "late": "warning", "failed": "error"}

Value = str | int | float | bool | None
_Key = tuple[str, str, str]  # model, protocol, outcome


class LogForm(StrEnum):
    """Form of the lines."""

    text = "text"
    json = "json"


class ServerLog:
    """Writes a line for each event.

    Args:
        form: `text` writes "TIME LEVEL EVENT NAME=VALUE ..."; `json` writes one object per line, with the same names.
        descriptor: destination; standard error by default. A line that cannot be written is lost, with no other effect.
    """

    def __init__(self, form: LogForm, descriptor: int | None = None) -> None:
        self._form = form
        self._descriptor = sys.stderr.fileno() if descriptor is None else descriptor
        self._seen: dict[_Key, tuple[int, int]] = {}  # requests and queries already logged
        self._refused = 0
        self._unauthorized = 0
        self._handshakes_failed = 0
        self._failed: set[str] = set()

    def write(self, event: str, level: str = "info", **values: Value) -> None:
        """Writes one line."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._form is LogForm.json:
            line = json.dumps({"time": time, "level": level, "event": event, **values})
        else:
            line = " ".join((time, level, event, *_written(values)))
        with contextlib.suppress(OSError, ValueError):
            # Bypasses Python's buffer, which would keep text that cannot be written and fail again when the process
            # ends.
            os.write(self._descriptor, f"{line}\n".encode())

    def look(self, server: "Server", *, all_of_it: bool = False) -> None:
        """Logs the events since the last look: unanswered requests, connections, engines.

        Args:
            server: may have been stopped.
            all_of_it: also log beyond LINES_MOST. Otherwise the rest waits for a later look, which counts it.
        """
        models = server.model_statistics()
        self._tell_requests(models, None if all_of_it else LINES_MOST)
        done = server.statistics()
        refused = done.connections_refused
        if refused > self._refused:
            self.write("connections_refused", "warning", connections=refused - self._refused)
            self._refused = refused
        if done.unauthorized > self._unauthorized:
            self.write("unauthorized", "warning", requests=done.unauthorized - self._unauthorized)
            self._unauthorized = done.unauthorized
        if done.handshakes_failed > self._handshakes_failed:
            failed = done.handshakes_failed - self._handshakes_failed
            self.write("handshakes_failed", "warning", connections=failed, reason=done.handshake_failure)
            self._handshakes_failed = done.handshakes_failed
        for model in models:
            if not model.loaded or model.ready:
                self._failed.discard(model.name)
            elif not (all_of_it or model.name in self._failed):
                self._failed.add(model.name)
                self.write("model_failed", "error", model=model.name, version=model.version)

    def _tell_requests(self, models: "list[ModelStatistics]", most: int | None) -> None:
        risen = []
        for key, (requests, queries) in _unanswered(models).items():
            told = self._seen.get(key, (0, 0))
            if requests > told[0]:
                risen.append((requests - told[0], queries - told[1], key))
        risen.sort(reverse=True)
        for requests, queries, key in risen[:most]:
            told = self._seen.get(key, (0, 0))
            self._seen[key] = (told[0] + requests, told[1] + queries)
            model, protocol, outcome = key
            level = _LEVELS[outcome]
            self.write(
                "requests", level, model=model, protocol=protocol, outcome=outcome, requests=requests, queries=queries
            )


def _unanswered(models: "list[ModelStatistics]") -> dict[_Key, tuple[int, int]]:
    """Requests and queries by outcome, except answered ones."""
    return {
        (model.name, protocol, outcome): (getattr(done.requests, outcome), getattr(done.queries, outcome))
        for model in models
        for protocol, done in (("http", model.http), ("grpc", model.grpc), ("shm", model.shm))
        for outcome in _LEVELS
    }


def _written(values: Mapping[str, Value]) -> list[str]:
    """NAME=VALUE, quoted unless the value is a single word, so that any value stays on one line."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    return [f"{name}={text if _PLAIN.fullmatch(text) else json.dumps(text)}" for name, text in texts.items()]
