"""What benchmarks of `headrace serve` share: a server whose memory they watch, and a client that compares answers."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import headrace
from headrace import UsageError
from headrace.profiles import Json

_QUERY_BYTES = 1024
_OPERATOR = """import headrace
light = headrace.light(query_bytes={}, threads=1, steps={})
"""
_COMPARED = 64  # different queries
_COMPARE_SECONDS = 0.02  # between two compared answers


_INFER = "/v2/models/light/infer"


def _body(query: NDArray[np.uint8]) -> bytes:
    """A request with one query as JSON."""
    words = query.view("<u4")
    tensor = {"name": "query", "datatype": "UINT32", "shape": [1, len(words)], "data": words.tolist()}
    return json.dumps({"inputs": [tensor]}).encode()


def short_connection(port: int, *, reads: bool) -> None:
    """Asks one query by HTTP on a connection of its own; one that does not read leaves before the answer.

    Raises:
        OSError: the connection failed.
        ValueError: the answer was no success.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", _INFER, _body(np.zeros(_QUERY_BYTES, np.uint8)))
        if reads and (status := connection.getresponse().status) != http.HTTPStatus.OK:
            raise ValueError(f"status {status}")
    except http.client.HTTPException as error:
        raise ValueError(str(error)) from error
    finally:
        connection.close()


class Server:
    """`headrace serve` of `light`, in a process of its own.

    Args:
        folder: where the file of the operator goes.
        options: further ones of the command.
        device: what it runs on.
        plan: of its engine, by rung.
        steps: how long a query takes, in steps of `light`.

    Attributes:
        http: its port for HTTP.
        grpc: its port for gRPC.
        stats: the address of the model's statistics.
    """

    def __init__(self, folder: Path, *options: str, device: str = "cpu", plan: str = "caller", steps: int = 1) -> None:
        operator = folder / "light_only.py"
        operator.write_text(_OPERATOR.format(_QUERY_BYTES, steps))
        command = [sys.executable, "-m", "headrace", "serve", f"{operator}:light", "--device", device, "--json"]
        command += ["--plan", plan, "--http", "0", "--grpc", "0", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise UsageError("`headrace serve` did not start")
        said: Json = json.loads(line)
        self.http = int(said["url"].rpartition(":")[2])
        self.grpc = int(said["grpc"].rpartition(":")[2])
        self.stats = f"{said['url']}/v2/models/light/stats"

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def resident(self) -> int:
        """Bytes of memory that it has touched."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def descriptors(self) -> int:
        """Files and sockets that it has open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def settle(self, descriptors: int, seconds: float) -> None:
        """Waits until it has no more open descriptors than these, for at most so long, and a moment longer."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.descriptors > descriptors:
            time.sleep(0.1)
        time.sleep(0.5)

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait()


class Comparer(threading.Thread):
    """Asks a server by HTTP and through shared memory, and compares every answer with the host's.

    Args:
        port: of the server's HTTP.
        url: of its model in shared memory.
    """

    def __init__(self, port: int, url: str) -> None:
        super().__init__(daemon=True)
        self._port, self._url = port, url
        self._ends = threading.Event()
        operator = headrace.light(query_bytes=_QUERY_BYTES, threads=1, steps=1)
        self._queries = np.random.default_rng(1).integers(0, 256, (_COMPARED, _QUERY_BYTES), np.uint8)
        self._answers = [bytes(operator.answer_on_host(query)) for query in self._queries]
        self.compared = 0
        self.failures: list[str] = []

    def run(self) -> None:
        """Compares until finish()."""
        try:
            with headrace.Client(self._url) as client:
                while not self._ends.wait(_COMPARE_SECONDS):
                    place = self.compared % _COMPARED
                    if np.asarray(client.ask(self._queries[place])).tobytes() != self._answers[place]:
                        self.failures.append(f"shm: the answer to query {place} is wrong")
                    if self._by_http(place) != self._answers[place]:
                        self.failures.append(f"http: the answer to query {place} is wrong")
                    self.compared += 1
        except (headrace.Error, OSError, http.client.HTTPException, ValueError, LookupError) as error:
            self.failures.append(f"a compared query failed: {type(error).__name__}: {error}")

    def finish(self) -> None:
        """Ends it, and waits."""
        self._ends.set()
        self.join()

    def _by_http(self, place: int) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("POST", _INFER, _body(self._queries[place]))
            output = json.loads(connection.getresponse().read())["outputs"][0]
        finally:
            connection.close()
        return np.array(output["data"], output["datatype"].lower().replace("uint", "<u").replace("64", "8")).tobytes()
