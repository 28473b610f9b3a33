"""`headrace serve --supervise`: a process that starts the server, watches it, and restarts it when it fails."""

import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from types import FrameType

from headrace.cli import show
from headrace.errors import Error
from headrace.interrupts import Stop
from headrace.serve_log import ServerLog

#: Tells the server process where to write its ports, how many servers preceded it, and on which socket it is polled.
_VARIABLE = "HEADRACE_SERVE_WORKER"
_LOOK_SECONDS = 0.1
_UNREADY_SECONDS = 0.3
"""A server that reports a failed engine is restarted if it still does after this time."""
_GRACE_SECONDS = 1.0
"""Time for requests to a failed server's other models."""
_WAIT_FIRST, _WAIT_MOST = 0.1, 10.0
_PR_SET_PDEATHSIG = 1
_REPLACED = signal.SIGUSR1


@dataclass(frozen=True)
class Worker:
    """What the server process knows about the supervisor."""

    descriptor: int
    restarts: int
    watcher: int
    """The socket on which the supervisor polls the server's health."""
    replaced: threading.Event = field(default_factory=threading.Event)
    """Set when another server takes this one's place, so that its totals are not needed."""

    def __post_init__(self) -> None:
        """Installs the handler of the signal that sets it."""
        signal.signal(_REPLACED, self._replace)

    def _replace(self, _number: int, _frame: FrameType | None) -> None:
        self.replaced.set()
        os.kill(os.getpid(), signal.SIGTERM)

    def say(self, http_port: int, grpc_port: int | None) -> None:
        """Tells the supervisor that the server is ready, and at which ports."""
        content = json.dumps({"http": http_port, "grpc": grpc_port})
        with os.fdopen(self.descriptor, "w") as told:
            told.write(content)


def this_worker() -> Worker | None:
    """The data passed to a supervised process, if this is one. It is removed, so that children do not get it."""
    numbers = os.environ.pop(_VARIABLE, "").split(":")
    if len(numbers) != len(("descriptor", "restarts", "watcher")) or not all(one.isdecimal() for one in numbers):
        return None
    descriptor, restarts, watcher = map(int, numbers)
    return Worker(descriptor, restarts, watcher)


def supervise(
    arguments: list[str], unresponsive_after: float, log: ServerLog | None = None, *, reloads: bool = False
) -> int:
    """Runs `headrace serve` with these arguments until it ends by itself or is told to; returns its exit status.

    The server is restarted, at the ports that it had, when it dies, when a model can no longer answer, or when it shows
    no sign of life for `unresponsive_after` seconds. A server that has never been ready is not restarted: its arguments
    are wrong. Ctrl-C and SIGTERM are passed on to the server, which drains; so is SIGHUP if it `reloads` files.
    Restarts are reported in `log`, or else as text.
    """
    return _Supervisor(arguments, unresponsive_after, log, reloads=reloads).run()


class _Supervisor:
    def __init__(
        self, arguments: list[str], unresponsive_after: float, log: ServerLog | None, *, reloads: bool
    ) -> None:
        self._arguments = arguments
        self._log = log
        self._unresponsive_after = unresponsive_after
        self._restarts = 0
        self._ports: list[str] = []
        self._wait = _WAIT_FIRST
        self._reloads = reloads
        self._reload_asked = False

    def run(self) -> int:
        if self._reloads:
            signal.signal(signal.SIGHUP, self._note_reload)
        with Stop() as stop:
            while True:
                process, told, asks = self._start()
                try:
                    why = self._watch(process, told, asks, stop)
                except KeyboardInterrupt:  # the second signal
                    process.send_signal(signal.SIGTERM)
                    return _status(process.wait())
                finally:
                    os.close(told)
                    asks.close()
                if why is None:
                    return _status(process.wait())
                if stop.asked:
                    return _status(process.returncode)
                self._restarts += 1
                if self._log is not None:
                    self._log.write("restarting", "error", restarts=self._restarts, message=why)
                else:
                    show.stderr().print(f"{why}: restarting it.", markup=False, soft_wrap=True)
                self._sleep(stop)

    def _note_reload(self, _number: int, _frame: FrameType | None) -> None:
        self._reload_asked = True

    def _start(self) -> tuple["subprocess.Popen[bytes]", int, socket.socket]:
        """Starts a server; also returns the descriptor that it writes its ports to, and the socket for its health."""
        told, tell = os.pipe()
        asks, asked = socket.socketpair()  # no other process can connect to it
        parent = os.getpid()
        # The last occurrence of an option counts: here the ports of the first server.
        command = [sys.executable, "-m", "headrace", *self._arguments, *self._ports]
        try:
            process = subprocess.Popen(
                command,
                env=os.environ | {_VARIABLE: f"{tell}:{self._restarts}:{asked.fileno()}"},
                pass_fds=(tell, asked.fileno()),
                start_new_session=True,  # Ctrl-C in a terminal reaches only this process, which passes it on
                preexec_fn=lambda: _prepare(parent, reloads=self._reloads),  # noqa: PLW1509 # there is one thread
            )
        except OSError as error:
            os.close(told)
            asks.close()
            raise Error(f"the server cannot be started: {error.strerror}") from error
        finally:
            os.close(tell)
            asked.close()
        os.set_blocking(told, False)
        return process, told, asks

    def _watch(self, process: "subprocess.Popen[bytes]", told: int, asks: socket.socket, stop: Stop) -> str | None:
        """Watches a server until it ends; returns the reason to restart it, or None."""
        health: _Health | None = None
        asked = False
        while process.poll() is None:
            if stop.asked and not asked:
                process.send_signal(signal.SIGTERM)
                asked = True
            if self._reload_asked:
                self._reload_asked = False
                process.send_signal(signal.SIGHUP)
            if health is None:
                health = self._health(told, asks)
            elif not asked and (why := health.wrong()) is not None:
                _end(process, 0.0 if health.hangs else _GRACE_SECONDS)
                return why
            time.sleep(_LOOK_SECONDS)
        if health is None:  # it may have become ready since the last look
            health = self._health(told, asks)
        if asked or (health is None and self._restarts == 0) or process.returncode == 0:
            return None
        if process.returncode in {128 + signal.SIGINT, 128 + signal.SIGTERM}:  # the signal went to the server directly
            return None
        return f"The server ended with {_how(process.returncode)}"

    def _health(self, told: int, asks: socket.socket) -> "_Health | None":
        """The health connection, once the server has said that it is ready."""
        try:
            content = os.read(told, 4096)
        except BlockingIOError:
            return None
        if not content:  # the server ended before it was ready
            return None
        where = json.loads(content)
        grpc = "none" if where["grpc"] is None else str(where["grpc"])
        self._ports = ["--http", str(where["http"]), "--grpc", grpc]
        self._wait = _WAIT_FIRST
        return _Health(asks, self._unresponsive_after)

    def _sleep(self, stop: Stop) -> None:
        """Sleeps longer each time a server ends before it was ready."""
        until = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, _WAIT_MOST)
        while time.monotonic() < until and not stop.asked:
            time.sleep(min(_LOOK_SECONDS, self._wait))


class _Health:
    """Polls a server's health over their private socket, independent of certificates and tokens."""

    def __init__(self, asks: socket.socket, unresponsive_after: float) -> None:
        asks.settimeout(unresponsive_after)
        self._connection = http.client.HTTPConnection("server")
        self._connection.auto_open = 0
        self._connection.sock = asks
        self._answered = time.monotonic()
        self._unresponsive_after = unresponsive_after
        self._unready_since: float | None = None
        self.hangs = False
        """Whether the server shows no sign of life: it would answer nothing while others wait for it."""

    def wrong(self) -> str | None:
        """The reason to restart the server, if there is one."""
        try:
            self._connection.request("GET", "/v2/health/ready")
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            if time.monotonic() - self._answered < self._unresponsive_after:
                return None
            self.hangs = True
            return f"The server has given no sign of life for {self._unresponsive_after:g} s"
        now = self._answered = time.monotonic()
        if answer.status == http.client.OK:
            self._unready_since = None
        elif self._unready_since is None:
            self._unready_since = now
        elif now - self._unready_since >= _UNREADY_SECONDS:
            return "The server has a model whose engine has failed"
        return None


def _end(process: "subprocess.Popen[bytes]", grace: float) -> None:
    process.send_signal(_REPLACED)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _prepare(parent: int, *, reloads: bool) -> None:
    """Runs in the new process: makes it drain and end when the supervisor is killed.

    SIGHUP is ignored until the server `reloads` files, because it has not read them yet.
    """
    if reloads:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)


def _how(status: int) -> str:
    return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"


def _status(status: int) -> int:
    return status if status >= 0 else 128 - status
