"""Requests per second that `headrace serve` answers within a p99, for each way in: wire.grpc.qps and its relatives.

    python bench/wire_rates.py [--device cuda:0] [--plan dispatched] [--save docs/results/wire-rates.<machine>.json]

An open load of `headrace load --url`, on the same machine, asks `light` with queries of 1 KiB and answers of 64 bytes.
Rates rise, or fall, until the p99 from the scheduled arrival exceeds the bound or a request is not answered, and then
converge on the highest sustained rate. That rate is run --samples times for the row. The ways in are:

  wire.grpc.qps           gRPC, 64 streams on each of several connections, p99 2 ms
  wire.grpc.64x1.qps      gRPC, 64 connections of one request, p99 2 ms
  wire.grpc.batch64.qps   gRPC, 64 queries a request, p99 2 ms; queries a second
  wire.http.qps           HTTP/1.1, 64 connections, binary tensors, p99 2 ms
  wire.shm.qps            shared memory, client processes of one thread, p99 0.1 ms
  wire.shm.p50            shared memory, one client at 50,000 queries a second: the round trip while neither side sleeps
  wire.shm.idle.p50       the same at 2,000 queries a second, where both sides sleep between queries

The roof of a rate is what TCP over loopback carries in messages of the same size, with as many under way and as many
threads, when nothing reads them (loopback_echo.c). With --triton ADDRESS (its gRPC address, and --triton-http its
HTTP address), a Triton server with a model `light` of the same sizes is measured in turn; its rates are in the rows'
conditions. A few answers of each way are compared with the host's, and the server's statistics must count as many
answers as the clients. Exit status: 0; 1 when an answer was wrong or no rate could be found; 2 for wrong use.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import headrace
import row_by_row
from headrace import Error, UsageError, results
from headrace.profiles import Json
from wire_served import Server

_QUERY_BYTES = 1024
_ANSWER_BYTES = 64
_FRAMING_BYTES = 96  # of a protocol, in a request and in a reply: about what gRPC adds
_STREAMS = 64  # requests under way on a connection of wire.grpc.qps
_KEPT = 0.999  # share of the requests that must be answered
_FINE = 1.04  # precision of the search for the highest rate
_TRIES = 3  # consecutive failed loads before a rate counts as not sustained: the host itself pauses now and then
_LEAST = 200.0  # queries per second; a lower rate does not count
_SHM_NAME = "headrace-wire-rates"
# Queries per second of one client through shared memory, by row: --shm-spin ends after 50 us without work.
_LONE_RATES = {"wire.shm.p50": 50_000.0, "wire.shm.idle.p50": 2_000.0}


@dataclass(frozen=True)
class Way:
    """A way in, and how to ask through it."""

    identity: str
    url: str  # with {grpc}, {http} and {shm}
    bound: float  # seconds
    unit: str = "requests/s"
    options: tuple[str, ...] = ()
    queries: int = 1  # per request
    processes: int = 1  # client processes
    generators: int = 1  # threads per client
    first: float = 20_000.0  # requests per second, the start of the search
    under_way: int = 0  # most requests under way over TCP


@dataclass
class Servers:
    """Addresses of a server."""

    name: str
    places: dict[str, str]
    statistics: str | None = None
    failures: list[str] = field(default_factory=list)

    def answered(self) -> int | None:
        """Number of answered queries from the server's statistics; None if it has none of ours."""
        if self.statistics is None:
            return None
        with urllib.request.urlopen(self.statistics) as reply:
            stats: Json = json.load(reply)["model_stats"][0]
        return int(stats["inference_count"])


@dataclass(frozen=True)
class Result:
    """Result of a load over all clients."""

    per_second: float  # answered requests
    p50: float
    p99: float
    requests: dict[str, int]
    late: float  # p99 of the lateness of the generators, in seconds
    refused_p99: float  # seconds until a refusal was there

    @property
    def answered_share(self) -> float:
        """Share of requests that were answered."""
        return self.requests["answered"] / max(sum(self.requests.values()), 1)


def load(servers: Servers, way: Way, rate: float, given: argparse.Namespace, more: tuple[str, ...] = ()) -> Result:
    """One open load, from `way.processes` clients that share the rate."""
    command = [sys.executable, "-m", "headrace", "load", "--url", way.url.format(**servers.places), "--json"]
    command += ["--rate", f"{rate * way.queries / way.processes:.0f}", "--duration", f"{given.seconds}s"]
    command += ["--generators", str(way.generators), "--patience", "5s", *way.options, *more]
    running = [
        subprocess.Popen([*command, "--seed", str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(way.processes)
    ]
    found = []
    for process in running:
        out, err = process.communicate()
        if not out.strip().startswith("{"):
            raise UsageError(f"{' '.join(command)}: {err.strip() or out.strip()}")
        found.append(json.loads(out))
    loads = [one["load"] for one in found]
    return Result(
        sum(load["measured_per_second"] for load in loads),
        median(load["latency_us"]["p50"] for load in loads) / 1e6,
        max(load["latency_us"]["p99"] for load in loads) / 1e6,
        {name: sum(one["requests"][name] for one in found) for name in found[0]["requests"]},
        max(load["lateness_us"]["p99"] for load in loads) / 1e6,
        max(load["refusal_us"]["p99"] for load in loads) / 1e6,
    )


def _keeps(way: Way, result: Result) -> bool:
    return result.p99 <= way.bound and result.answered_share >= _KEPT


def highest(attempt: Callable[[float], Result], way: Way) -> float | None:
    """The highest sustained rate, within _FINE; None if there is none."""
    low, high, rate = 0.0, math.inf, way.first / way.queries
    while high / max(low, 1.0) > _FINE:
        if any(_keeps(way, attempt(rate)) for _ in range(_TRIES)):
            low = rate
        else:
            high = rate
        rate = 2 * low if math.isinf(high) else math.sqrt(low * high) if low > 0 else high / 2
        if rate < _LEAST / way.queries:
            return None
    return low


def _ways(given: argparse.Namespace) -> list[Way]:
    begins: dict[str, Any] = {"generators": given.generators, "first": given.first}
    wide: dict[str, Any] = {
        "options": ("--connections", str(given.connections)),
        "under_way": _STREAMS * given.connections,
        **begins,
    }
    narrow = {"options": ("--connections", "64"), "under_way": 64, **begins}
    singly = narrow | {"options": (*narrow["options"], "--streams-per-connection", "1")}
    batches = wide | {"options": (*wide["options"], "--queries-per-request", "64"), "queries": 64, "unit": "queries/s"}
    return [
        Way("wire.grpc.qps", "grpc://{grpc}/light", 2e-3, **wide),
        Way("wire.grpc.64x1.qps", "grpc://{grpc}/light", 2e-3, **singly),
        Way("wire.grpc.batch64.qps", "grpc://{grpc}/light", 2e-3, **batches),
        Way("wire.http.qps", "http://{http}/light", 2e-3, **narrow),
        Way("wire.shm.qps", "shm://{shm}/light", 1e-4, "queries/s", processes=given.processes,
            first=4e6 if given.device.startswith("cuda") else 2e5),
    ]  # fmt: skip


@contextmanager
def _serving(given: argparse.Namespace, folder: Path) -> Iterator[Servers]:
    options = ["--threads", str(given.threads), "--shm", _SHM_NAME, "--shm-threads", str(given.shm_threads)]
    with closing(Server(folder, *options, "--queries", "64", device=given.device, plan=given.plan)) as server:
        places = {"grpc": f"127.0.0.1:{server.grpc}", "http": f"127.0.0.1:{server.http}", "shm": _SHM_NAME}
        yield Servers("headrace", places, server.stats)


def _check(servers: Servers, given: argparse.Namespace) -> None:
    """Compares answers of the server with those of the host, through shared memory and HTTP."""
    op = headrace.light(query_bytes=_QUERY_BYTES, threads=1, steps=1)
    queries = np.random.default_rng(1).integers(0, 256, (256, _QUERY_BYTES), np.uint8)
    expected = np.stack([np.frombuffer(bytes(op.answer_on_host(query)), np.uint8) for query in queries])
    with headrace.Client(f"shm://{servers.places['shm']}/light") as client:
        answers, status = client.ask_many(queries)
    if np.any(status) or not np.array_equal(np.ascontiguousarray(answers).view(np.uint8).reshape(256, -1), expected):
        servers.failures.append("an answer through shared memory was wrong")
    row = [int(word) for word in queries[0].view("<u4")]
    body = {"inputs": [{"name": "query", "datatype": "UINT32", "shape": [1, len(row)], "data": row}]}
    request = urllib.request.Request(
        f"http://{servers.places['http']}/v2/models/light/infer", json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request) as reply:
        output: Json = json.load(reply)["outputs"][0]
    if np.array(output["data"], f"<u{64 // len(output['data'])}").tobytes() != expected[0].tobytes():
        servers.failures.append("an answer over HTTP was wrong")
    if given.verbose:
        print(f"checked: {servers.failures or 'right'}", file=sys.stderr)


def _measure(servers: Servers, way: Way, given: argparse.Namespace) -> list[Result]:
    """Loads at the highest sustained rate, --samples of them; none if no rate is sustained."""

    def attempt(rate: float) -> Result:
        before = servers.answered()
        result = load(servers, way, rate, given)
        if before is not None and (servers.answered() or 0) - before < result.requests["answered"] * way.queries:
            servers.failures.append(f"{way.identity}: the server counts fewer answers than its clients")
        if given.verbose:
            print(
                f"{servers.name} {way.identity} {rate:,.0f}/s: p99 {result.p99 * 1e6:,.0f} us, {result.requests}, "
                f"late {result.late * 1e6:,.0f} us",
                file=sys.stderr,
            )
        return result

    rate = highest(attempt, way)
    while rate is not None and rate > 1:
        samples = [attempt(rate) for _ in range(given.samples)]
        if sum(_keeps(way, one) for one in samples) * 2 > len(samples):
            return samples
        rate /= _FINE
    return []


def _roof(way: Way, given: argparse.Namespace, folder: Path) -> tuple[float, str]:
    """Queries a second that loopback carries, and what that is."""
    echo = folder / "loopback_echo"
    if not echo.exists():
        source = Path(__file__).with_name("loopback_echo.c")
        command = ["cc", "-O2", "-pthread", "-o", str(echo), str(source)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise Error(f"compiling {source.name}: {built.stderr.strip()}")
    pairs = min(given.threads, given.generators)
    under_way = max(way.under_way // pairs, 1)
    sizes = [size * way.queries + _FRAMING_BYTES for size in (_QUERY_BYTES, _ANSWER_BYTES)]
    command = [str(echo), *map(str, sizes), str(under_way), str(pairs), f"{given.seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Error(f"loopback_echo: {done.stderr.strip()}")
    return float(done.stdout) * way.queries, f"loopback without a protocol, {pairs} x {under_way} under way"


def _about(way: Way, samples: list[Result], given: argparse.Namespace) -> Json:
    return {
        "p99_us": median(one.p99 for one in samples) * 1e6,
        "p50_us": median(one.p50 for one in samples) * 1e6,
        "generator_late_p99_us": median(one.late for one in samples) * 1e6,
        "bound_us": way.bound * 1e6,
        "plan": given.plan,
        "threads": given.shm_threads if "shm" in way.url else given.threads,
        "clients": way.processes * way.generators,
        "query_bytes": _QUERY_BYTES,
        "arrivals": "poisson",
    }


def _rows(ours: Servers, triton: Servers | None, given: argparse.Namespace, folder: Path) -> Iterator[Json]:
    _check(ours, given)
    for way in _ways(given):
        if given.only and not any(way.identity.startswith(word) for word in given.only):
            continue
        samples = _measure(ours, way, given)
        if not samples:
            row_by_row.say(f"{way.identity}: no rate keeps p99 within {way.bound * 1e3:g} ms")
            continue
        rates = [one.per_second * way.queries for one in samples]
        about = _about(way, samples, given)
        if triton is not None and "shm" not in way.url:
            peer = _measure(triton, way, given)
            if peer:
                about |= {
                    "triton_per_second": median(one.per_second * way.queries for one in peer),
                    "triton_p99_us": median(one.p99 for one in peer) * 1e6,
                }
        roof = _roof(way, given, folder) if way.under_way else None
        yield results.row(way.identity, rates, way.unit, roof, about | {"verified": not ours.failures})
    for identity, rate in _LONE_RATES.items():
        if given.only and not any(identity.startswith(word) for word in given.only):
            continue
        lone = Way(identity, "shm://{shm}/light", 1.0, "us")
        loads = [load(ours, lone, rate, given) for _ in range(given.samples)]
        about = {"rate": rate, "p99_us": median(one.p99 for one in loads) * 1e6, "plan": given.plan}
        values = [one.p50 * 1e6 for one in loads]
        yield results.row(identity, values, "us", None, about | {"verified": not ours.failures})


def _measured(given: argparse.Namespace) -> Iterator[Json]:
    triton = None
    if given.triton:
        triton = Servers("triton", {"grpc": given.triton, "http": given.triton_http})
    with tempfile.TemporaryDirectory() as folder, _serving(given, Path(folder)) as ours:
        try:
            yield from _rows(ours, triton, given, Path(folder))
        finally:
            for why in ours.failures:
                row_by_row.say(f"wire_rates: {why}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plan", default="caller", help="plan of the engine, by rung")
    parser.add_argument("--threads", type=int, default=1, help="server threads for HTTP and gRPC")
    parser.add_argument("--shm-threads", type=int, default=1, help="server threads for shared memory")
    parser.add_argument("--generators", type=int, default=1, help="client threads")
    parser.add_argument("--connections", type=int, default=4, help="connections of wire.grpc.qps and batch64")
    parser.add_argument("--first", type=float, default=20_000.0, help="requests a second at which a search begins")
    parser.add_argument("--processes", type=int, default=4, help="client processes of wire.shm.qps")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of a load")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="measure only ids with this prefix; may be repeated"
    )
    parser.add_argument("--triton", metavar="HOST:PORT", help="gRPC address of a Triton server to measure in turn")
    parser.add_argument("--triton-http", metavar="HOST:PORT")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    parser.add_argument("--verbose", action="store_true", help="print every load")
    given = parser.parse_args()
    if given.samples < 1 or min(given.threads, given.generators, given.processes, given.connections) < 1:
        parser.error("counts must be at least 1")
    if (given.triton is None) != (given.triton_http is None):
        parser.error("--triton and --triton-http go together: give both")
    return given


def main() -> int:
    """Runs the program."""
    given = _parse()
    return row_by_row.run("wire-rates", given, lambda _device: _measured(given))


if __name__ == "__main__":
    sys.exit(main())
