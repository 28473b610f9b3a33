"""The cost of a request in `headrace serve`, compared with gRPC C++: wire.grpc.cpu_us and its relatives.

    python bench/wire_speed.py [--device cpu] [--requests 200K] [--threads 1] [--save docs/results/wire.<machine>.json]

h2load (nghttp2) sends queries of 1 KiB over the loopback, each with an answer of 64 bytes: with gRPC over 4 connections
of 64 streams and over 64 of one stream, and with HTTP/1.1 with binary tensors over 64 connections. The operator is
`light` with next to no arithmetic. Processor time is that of the server only, including the engine, from the
scheduler's counts for its threads. The peer (bench/grpc_peer) answers without an engine; it needs protoc, gRPC's plugin
and libgrpc++, and is left out, with a message, if they are missing. Servers take turns. Every request must be answered
with success: h2load counts replies and their bytes, and the statistics of `headrace serve` count the answers
themselves. Exit status: 0; 1 when a reply was wrong or missing; 2 for wrong use.
"""

import argparse
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from headrace import Device, Error, UsageError, results
from headrace.cli.options import count
from headrace.profiles import Json
from wire_served import Server

_QUERY_BYTES, _ANSWER_BYTES = 1024, 64
_CASES = {"": (4, 64), ".64x1": (64, 1)}
_VARINT = 128  # values of a byte of a number, besides the continuation bit
_PEERS = ("cq", "callback")
_HERE = Path(__file__).parent


class NoFigureError(Exception):
    """The reason why a figure has no row."""


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    length, size = b"", len(content)
    while size >= _VARINT:
        length += bytes([size % _VARINT + _VARINT])
        size //= _VARINT
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def _grpc_request() -> bytes:
    """A ModelInferRequest of one query, with gRPC's prefix."""
    shape = _field(3, b"\x01\x80\x02")
    tensor = _field(1, b"query") + _field(2, b"UINT32") + shape
    message = _field(1, b"light") + _field(5, tensor) + _field(7, bytes(i % 251 for i in range(_QUERY_BYTES)))
    return struct.pack(">BI", 0, len(message)) + message


def _http_request() -> tuple[bytes, int]:
    """The same in the form of the binary extension, and the length of its JSON."""
    about = {
        "inputs": [
            {
                "name": "query",
                "datatype": "UINT32",
                "shape": [1, _QUERY_BYTES // 4],
                "parameters": {"binary_data_size": _QUERY_BYTES},
            }
        ],
        "parameters": {"binary_data_output": True},
    }
    head = json.dumps(about).encode()
    return head + bytes(i % 251 for i in range(_QUERY_BYTES)), len(head)


@dataclass
class Serving:
    """A server in a separate process.

    Attributes:
        pid: the process.
        grpc_port: its port for gRPC.
        http_port: its port for HTTP, which the peer does not have.
        stats: the address of its statistics, likewise.
    """

    pid: int
    grpc_port: int
    http_port: int | None = None
    stats: str | None = None

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far."""
        tasks = Path(f"/proc/{self.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9

    def answered(self) -> int | None:
        """Successfully answered queries from its statistics; None for the peer, which has none."""
        if self.stats is None:
            return None
        with urllib.request.urlopen(self.stats) as reply:
            stats: Json = json.load(reply)["model_stats"][0]
        return int(stats["inference_count"])


@contextmanager
def _headrace(folder: Path, device: str, plan: str, threads: int) -> Iterator[Serving]:
    with closing(Server(folder, "--threads", str(threads), device=device, plan=plan)) as server:
        yield Serving(server.pid, server.grpc, server.http, server.stats)


def _build_peer(folder: Path) -> Path:
    """The peer's program."""
    plugin = shutil.which("grpc_cpp_plugin")
    if plugin is None or shutil.which("protoc") is None:
        raise NoFigureError("no peer: protoc and grpc_cpp_plugin are not installed")
    sources = _HERE / "grpc_peer"
    tools = [f"--cpp_out={folder}", f"--grpc_out={folder}", f"--plugin=protoc-gen-grpc={plugin}"]
    subprocess.run(["protoc", *tools, f"-I{sources}", "infer.proto"], check=True)
    libraries = subprocess.run(
        ["pkg-config", "--libs", "grpc++", "protobuf"], check=True, capture_output=True, text=True
    )
    made = [str(path) for path in sorted(folder.glob("*.cc"))]
    program = folder / "peer"
    command = ["g++", "-std=c++20", "-O3", "-march=native", f"-I{folder}", str(sources / "peer.cpp"), *made]
    subprocess.run([*command, "-o", str(program), *libraries.stdout.split()], check=True)
    return program


@contextmanager
def _peer(program: Path, way: str) -> Iterator[Serving]:
    with subprocess.Popen([str(program), way], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Serving(process.pid, int(process.stdout.readline()))
        process.stdin.close()


@dataclass
class Load:
    """What h2load sent and received."""

    per_second: float
    cpu_us: float
    verified: bool


@dataclass
class Kind:
    """A protocol and its requests."""

    name: str
    arguments: list[str] = field(default_factory=list)


def _grpc_kind(body: Path) -> Kind:
    headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    return Kind("grpc", ["-d", str(body), *headers])


def _http_kind(body: Path, json_bytes: int) -> Kind:
    length = f"Inference-Header-Content-Length: {json_bytes}"
    return Kind("http", ["--h1", "-d", str(body), "-H", length, "-H", "content-type: application/octet-stream"])


def _load(serving: Serving, kind: Kind, requests: int, shape: tuple[int, int], clients: int) -> Load:
    connections, streams = shape
    port = serving.grpc_port if kind.name == "grpc" else serving.http_port
    path = "inference.GRPCInferenceService/ModelInfer" if kind.name == "grpc" else "v2/models/light/infer"
    command = ["h2load", "-n", str(requests), "-c", str(connections), "-m", str(streams), "-t", str(clients)]
    answered = serving.answered()
    before = serving.cpu_seconds()
    done = subprocess.run(
        [*command, *kind.arguments, f"http://127.0.0.1:{port}/{path}"], check=True, capture_output=True, text=True
    )
    cpu = serving.cpu_seconds() - before
    rate = re.search(r"finished in .*?, ([0-9.]+) req/s", done.stdout)
    came = re.search(r"(\d+) succeeded, (\d+) failed", done.stdout)
    data = re.search(r"\((\d+)\) data", done.stdout)
    if rate is None or came is None or data is None:
        raise UsageError(f"the output of h2load cannot be read:\n{done.stdout}")
    verified = (int(came[1]), int(came[2])) == (requests, 0) and int(data[1]) >= requests * _ANSWER_BYTES
    if answered is not None:
        verified = verified and (serving.answered() or 0) - answered == requests
    return Load(float(rate[1]), cpu / requests * 1e6, verified)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plan", default="caller", help="plan of the engine, by rung")
    parser.add_argument("--requests", type=count, default=200_000, help="number of requests in a sample")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="threads of the server's front end")
    parser.add_argument("--clients", type=int, default=1, help="threads of h2load")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    if given.samples < 1 or given.requests < 1:
        parser.error("--samples and --requests must be at least 1")
    if shutil.which("h2load") is None:
        parser.error("h2load is not installed (nghttp2-client)")
    return given


def _measured(given: argparse.Namespace, folder: Path) -> dict[tuple[str, str, str], list[Load]]:
    """Loads by server, protocol and case, taken in turn."""
    body = folder / "query.grpc"
    body.write_bytes(_grpc_request())
    binary, json_bytes = _http_request()
    (folder / "query.http").write_bytes(binary)
    grpc, http = _grpc_kind(body), _http_kind(folder / "query.http", json_bytes)
    found: dict[tuple[str, str, str], list[Load]] = {}
    with ExitStack() as stack:
        servers = {"headrace": stack.enter_context(_headrace(folder, given.device, given.plan, given.threads))}
        try:
            program = _build_peer(folder)
            servers |= {way: stack.enter_context(_peer(program, way)) for way in _PEERS}
        except NoFigureError as reason:
            print(f"wire_speed: {reason}", file=sys.stderr)
        for sample in range(given.samples + 1):
            for case, shape in _CASES.items():
                for name, serving in servers.items():
                    load = _load(serving, grpc, given.requests, shape, given.clients)
                    if sample > 0:  # the first sample warms up
                        found.setdefault((name, "grpc", case), []).append(load)
            load = _load(servers["headrace"], http, given.requests, (64, 1), given.clients)
            if sample > 0:
                found.setdefault(("headrace", "http", ""), []).append(load)
    return found


def _rows(found: dict[tuple[str, str, str], list[Load]], given: argparse.Namespace) -> list[Json]:
    rows = []
    for (name, way, case), loads in found.items():
        if name != "headrace":
            continue
        shape = (64, 1) if way == "http" else _CASES[case]
        about: dict[str, Any] = {
            "connections": shape[0],
            "streams": shape[1],
            "requests": given.requests,
            "query_bytes": _QUERY_BYTES,
            "answer_bytes": _ANSWER_BYTES,
            "threads": given.threads,
            "plan": given.plan,
            "requests_per_second": median(load.per_second for load in loads),
            "verified": all(load.verified for load in loads),
        }
        costs = [load.cpu_us for load in loads]
        rows.append(results.row(f"wire.{way}.cpu_us{case}", costs, "us", None, about))
        peers = {peer: found[peer, way, case] for peer in _PEERS if (peer, way, case) in found}
        if not peers:
            continue
        best = min(peers, key=lambda peer: median(load.cpu_us for load in peers[peer]))
        ratios = [theirs.cpu_us / ours for theirs, ours in zip(peers[best], costs, strict=True)]
        theirs = {f"{peer}_us": median(load.cpu_us for load in loads) for peer, loads in peers.items()}
        theirs |= {f"{peer}_per_second": median(load.per_second for load in loads) for peer, loads in peers.items()}
        rows.append(results.row(f"wire.grpc.vs_grpcpp{case}", ratios, "ratio", None, about | theirs))
    return rows


def main() -> int:
    """Runs the program."""
    given = _parse()
    try:
        device = Device.parse(given.device)
        topic = results.topic_of(given.save, device) if given.save else "wire"
        with tempfile.TemporaryDirectory() as folder:
            rows = _rows(_measured(given, Path(folder)), given)
    except Error as error:
        print(f"wire_speed: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    for row in rows:
        print(f"{row['id']:<28} {row['value']:8.3g} {row['unit']:<6} {results.describe(row['conditions'])}")
    if given.save:
        results.save(given.save, results.document(topic, device, rows))
    return 0 if all(row["conditions"]["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
