"""The models of `headrace serve`: their engines, and how clients load, change and unload them (--model-control)."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace import Engine, Operator
from headrace.cli import show
from headrace.cli.serve_shown import Source
from headrace.errors import DeviceError, Errc, Error, UsageError
from headrace.operators import files
from headrace.serve_log import ServerLog
from headrace.text import printable

if TYPE_CHECKING:
    from headrace.wire import Model, ModelRequest, Server

_LOOK_SECONDS = 0.1
_LEFT_SECONDS = 10.0
"""How long a load waits for replaced engines to end, whose room on the device it may need."""
_END_SECONDS = 1.0

Changes = dict[str, float]
"""Arguments of headrace.wire.Server.change()."""


class ServedModels:
    """The engines of a server, by model name.

    Args:
        sources: operators by name; reloaded ones take their place.
        make_engine: makes an engine for an operator, with these changes of the plan.
        make_model: makes a model from an engine, a name, and the number of queries that may wait (0: the server's).
    """

    def __init__(
        self,
        sources: dict[str, Source],
        make_engine: Callable[[Operator, Changes], Engine],
        make_model: "Callable[[Engine, str, int], Model]",
    ) -> None:
        self._sources = sources
        self._make_engine = make_engine
        self._make_model = make_model
        self._engines: dict[str, Engine] = {}
        self._left: list[Engine] = []  # engines that requests may still wait for
        self._small: dict[str, float] = {}  # shares owed to models once the replaced engine has stopped
        self._changes: dict[str, Changes] = {}  # what clients have changed, which lasts until the server ends
        self._log: ServerLog | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def models(self) -> "list[Model]":
        """A model for each operator, whose engine starts at the first call."""
        for name, source in self._sources.items():
            if name not in self._engines:
                self._engines[name] = self._make_engine(source.operator, {})
        return [self._make_model(engine, name, 0) for name, engine in self._engines.items()]

    def control(self, server: "Server", log: ServerLog | None) -> None:
        """Handles clients' requests to load, change and unload models in its own thread, until end()."""
        self._log = log
        # A daemon thread: a file that runs forever cannot be ended.
        self._thread = threading.Thread(target=self._run, args=(server,), name="headrace-models", daemon=True)
        self._thread.start()

    def end(self) -> bool:
        """Stops handling requests; returns whether none is in progress. Call it before the server stops."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Stops the engines. Call it after the server has stopped."""
        for engine in (*self._left, *self._engines.values()):
            engine.stop()

    def _run(self, server: "Server") -> None:
        while not self._ended.is_set():
            request = server.next_model_request(_LOOK_SECONDS)
            self._stop_left(server)
            if request is not None:
                self._answer(server, request)

    def _answer(self, server: "Server", request: "ModelRequest") -> None:
        began = time.monotonic()
        try:
            act = self._act(server, request)
        except Exception as error:  # whatever the file raises is reported to the client that asked for the load
            failure = " ".join(_why(error).split())
            server.end_model_request(request, failure)
            self._tell_failure(request, failure)
            return
        server.end_model_request(request)
        self._tell(request, act, time.monotonic() - began)

    def _act(self, server: "Server", request: "ModelRequest") -> str:
        """Does what a client asks for, and returns how the log calls it."""
        if not request.load:
            self._unload(server, request.model)
            return "unloaded"
        if request.change is not None and request.model in self._engines:
            self._change(server, request.model, request.change)
            return "changed"
        self._load(server, request.model, request.change or {})
        return "loaded"

    def _change(self, server: "Server", name: str, change: Changes) -> None:
        server.change(name, **change)  # type: ignore[arg-type] # whole numbers where it takes no others
        if "share" in change:
            self._small.pop(name, None)
        self._changes[name] = self._changes.get(name, {}) | change

    def _load(self, server: "Server", name: str, change: Changes | None = None) -> None:
        self._await_left(server)
        changes = self._changes.get(name, {}) | (change or {})
        source = self._sources[name]
        if source.at is not None:
            source = replace(source, operator=files.load_again(source.at, name))
        former = self._engines.get(name)
        share = None if former is None else self._small.pop(name, former.plan.share)
        engine = self._start(source.operator, changes, former)
        try:
            server.load(self._make_model(engine, name, int(changes.get("waiting_max", 0))))
        except BaseException:
            engine.stop()
            if former is not None and share is not None and former.plan.share != share:
                former.change(share=share)
            raise
        self._engines[name], self._sources[name], self._changes[name] = engine, source, changes
        if former is not None:
            self._left.append(former)
        if share is not None and engine.plan.share < share:
            self._small[name] = share

    def _start(self, operator: Operator, changes: Changes, former: Engine | None) -> Engine:
        """Starts an engine beside the one it replaces, which gives up half of its share if there is no room."""
        try:
            return self._make_engine(operator, changes)
        except UsageError as error:
            if error.code != Errc.full or former is None or former.plan.schedule != "dispatched":
                raise
        share = former.plan.share
        former.change(share=share / 2)
        try:
            return self._make_engine(operator, changes | {"share": share / 2})
        except BaseException:
            former.change(share=share)
            raise

    def _unload(self, server: "Server", name: str) -> None:
        if server.unload(name):
            self._left.append(self._engines.pop(name))

    def _stop_left(self, server: "Server") -> None:
        """Stops replaced engines that no request waits for."""
        for engine in [one for one in self._left if not server.uses(one)]:
            self._left.remove(engine)
            engine.stop()
        if self._left:
            return
        for name, share in self._small.items():
            if name in self._engines:
                with suppress(Error):  # another program has taken the room, so the model keeps its present share
                    self._engines[name].change(share=share)
        self._small.clear()

    def _await_left(self, server: "Server") -> None:
        until = time.monotonic() + _LEFT_SECONDS
        while self._left and time.monotonic() < until and not self._ended.is_set():
            self._stop_left(server)
            if self._left:
                time.sleep(_LOOK_SECONDS / 10)

    def _tell(self, request: "ModelRequest", act: str, seconds: float) -> None:
        change: dict[str, Any] = request.change or {}
        if self._log is not None:
            self._log.write(f"model_{act}", model=request.model, seconds=round(seconds, 3), **change)
            return
        took = f" in {seconds:.2f} s" if act == "loaded" else ""
        changes = ", ".join(f"{name} {value:g}" for name, value in change.items())
        done = f"{act.capitalize()} {request.model}{took}{': ' if changes else ''}{changes}."
        show.stderr().print(done, markup=False, soft_wrap=True)

    def _tell_failure(self, request: "ModelRequest", failure: str) -> None:
        changes = request.change is not None and request.model in self._engines
        act = "change" if changes else "load" if request.load else "unload"
        if self._log is not None:
            self._log.write(f"model_{act}_failed", "error", model=request.model, message=failure)
            return
        done = "changed" if changes else f"{act}ed"
        message = f"{request.model} could not be {done}: {printable(failure)}"
        show.stderr().print(message, markup=False, soft_wrap=True)


def _why(error: Exception) -> str:
    """Why a model could not be loaded, worded for a client."""
    text = str(error) or type(error).__name__
    if isinstance(error, DeviceError) or (isinstance(error, UsageError) and error.code == Errc.full):
        text += ". If the device has no room for both the present and the new engine, unload the model first"
    return text
