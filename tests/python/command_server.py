"""Runs the command line in children of a process that has loaded it, which saves half a second per command.

A child differs from a newly started command in one way: Python and the package are already loaded. Tests of loading,
signals and limits start the command itself.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_MESSAGE_MOST = 1 << 20
_READ_EARLY = ("LD_", "PYTHON", "ASAN_", "TSAN_", "UBSAN_", "OMP_", "OPENBLAS_", "NUMBA_", "MALLOC_")
"""Prefixes of variables that a process reads before it runs the command."""


def _inherited(environment: Mapping[str, str]) -> object:
    """Inherited state of a process that a message cannot carry."""
    early = {name: value for name, value in environment.items() if name.startswith(_READ_EARLY)}
    mask = os.umask(0)
    os.umask(mask)
    namespaces = [Path(f"/proc/thread-self/ns/{name}").readlink() for name in ("net", "mnt", "user")]
    ignored = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is signal.SIG_IGN]
    return early, mask, namespaces, ignored, os.geteuid()


class CommandServer:
    """A process that has loaded the command line and runs commands on request, one at a time."""

    def __init__(self) -> None:
        self._inherited = _inherited(os.environ)
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MESSAGE_MOST)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def runs(self, environment: Mapping[str, str]) -> bool:
        """Whether a command with these variables behaves here like a newly started one."""
        return _inherited(environment) == self._inherited

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs `headrace WORDS` in the current folder, and waits.

        Raises:
            subprocess.TimeoutExpired: when it takes longer; it is killed then.
        """
        with self._lock, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as error:
            asked = {"words": list(words), "environment": dict(environment), "folder": str(Path.cwd())}
            socket.send_fds(self._socket, [json.dumps(asked).encode()], [output.fileno(), error.fileno()])
            pid = int(self._socket.recv(_MESSAGE_MOST))
            self._socket.settimeout(timeout)
            try:
                status = int(self._socket.recv(_MESSAGE_MOST))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                self._socket.recv(_MESSAGE_MOST)
                raise subprocess.TimeoutExpired(["headrace", *words], timeout) from None
            self._socket.settimeout(None)
            said = []
            for file in (output, error):
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess(["headrace", *words], status, *said)

    def close(self) -> None:
        """Ends the process."""
        self._socket.close()
        self._process.wait()


def _load() -> None:
    """Imports everything that a verb may import."""
    from importlib import import_module  # noqa: PLC0415 # in the server alone

    import pyarrow.parquet  # noqa: F401, PLC0415 # likewise

    from headrace import cli  # noqa: PLC0415 # likewise

    for file in sorted(Path(cli.__file__).parent.glob("*.py")):
        if file.stem != "__init__":
            import_module(f"headrace.cli.{file.stem}")


def _become(asked: dict[str, object], output: int, error: int) -> None:
    """Gives this child the state of a newly started command."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(error, 2)
    os.close(output)
    os.close(error)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[arg-type] # of JSON
    module = str(Path(sys.modules["headrace"].__file__ or "").with_name("__main__.py"))
    sys.argv = [module, *asked["words"]]  # type: ignore[misc] # of JSON
    sys.orig_argv = [sys.executable, "-m", "headrace", *sys.argv[1:]]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # see headrace/starting.py


def _serve(asking: socket.socket) -> int:
    """Forks a child for each message; in that child, returns its status."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(asking, _MESSAGE_MOST, 2)
        if not message:
            return 0
        pid = os.fork()
        if pid == 0:
            _become(json.loads(message), *descriptors)
            from headrace.cli import main  # noqa: PLC0415 # loaded already

            return main()
        for descriptor in descriptors:
            os.close(descriptor)
        asking.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    _load()
    with socket.socket(fileno=int(sys.argv[1])) as _asking:
        _asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MESSAGE_MOST)
        _status = _serve(_asking)
    sys.exit(_status)
