"""`headrace load --url`: puts a load on a server of the Open Inference Protocol, or on one through shared memory."""

import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from headrace import UsageError, _core
from headrace.cli import options
from headrace.cli.load_security import RemoteSecurity
from headrace.errors import SystemError  # noqa: A004 - the name that C++ has
from headrace.text import printable
from headrace.wire import require_wire

_MODEL = re.compile(r"[A-Za-z0-9._-]+")
_PORT_MOST = 65535
_SLOTS = 256  # for shm://
_PATIENCE_MOST = 25.0  # less than the time that any load gets to end
_SHM = "shm"
_PROTOCOLS = {"grpc": "grpc", "grpcs": "grpc", "http": "http", "https": "http"}  # protocol of each scheme
_CONNECTIONS = {"grpc": 4, "http": 64}
_STREAMS = {"grpc": 64, "http": 1}
_FORM = "grpc://HOST:PORT/MODEL, http://HOST:PORT/MODEL or shm://NAME/MODEL; grpcs:// and https:// for TLS"
# Options of the command that apply to a server too.
_SHARED = {"rate", "arrivals", "trace", "duration", "seed", "generators", "as_json"}


@dataclass(frozen=True)
class Remote:
    """A server instead of an engine (--url)."""

    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help=f"Put the load on a server: {_FORM} (KServe v2: Headrace, Triton)."),
    ] = None
    connections: Annotated[
        int | None,
        typer.Option(
            "--connections",
            min=1,
            max=10_000,
            help="Number of connections. Default: 4 for gRPC, 64 for HTTP, one per generator for shm://.",
        ),
    ] = None
    streams_per_connection: Annotated[
        int | None,
        typer.Option(
            "--streams-per-connection",
            min=1,
            max=1 << 16,
            help="Calls in flight per connection. Default: 64 for gRPC, 256 for shm://.",
        ),
    ] = None
    queries_per_request: Annotated[
        int, typer.Option("--queries-per-request", min=1, max=1 << 20, help="Queries per request.")
    ] = 1
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE.npy",
            help="Take an input of the model from the rows of a .npy file; may be repeated. Other inputs are random.",
        ),
    ] = None
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            parser=options.duration,
            metavar="TIME",
            help="Deadline per request, which the server is told.",
        ),
    ] = None
    high_share: Annotated[
        float,
        typer.Option(
            "--high-share", min=0, max=1, help="Share of requests that get high priority, at random, such as 0.2."
        ),
    ] = 0.0
    patience: Annotated[
        float,
        typer.Option(
            "--patience",
            parser=options.duration,
            metavar="TIME",
            help="Give up on a server that is unreachable or silent for this long.",
        ),
    ] = "10s"  # type: ignore[assignment]


def require_options(context: typer.Context, remote: Remote) -> None:
    """Raises UsageError for an option that --url does not support, or that needs --url."""
    names = set(Remote.__dataclass_fields__) | set(RemoteSecurity.__dataclass_fields__)
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name == "url" or source is None or source.name != "COMMANDLINE":
            continue
        if remote.url is None and parameter.name in names:
            raise UsageError(f"{parameter.opts[0]} is for a server: it needs --url {_FORM}")
        if remote.url is not None and parameter.name not in names | _SHARED:
            raise UsageError(f"{parameter.opts[0]} is for an engine in this process: leave out either it or --url")


@dataclass(frozen=True)
class Place:
    """The parts of a URL.

    Attributes:
        addresses: numeric addresses, in the order to try them.
    """

    scheme: str
    authority: str
    host: str
    port: int
    model: str
    addresses: list[str] = field(default_factory=list)

    @property
    def protocol(self) -> str:
        """The protocol of the scheme, without TLS: grpc, http or shm."""
        return _PROTOCOLS.get(self.scheme, self.scheme)

    @property
    def local(self) -> bool:
        """Whether the server runs on this machine."""
        return any(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in self.addresses)


def read_url(url: str) -> Place:
    """Parses --url.

    Raises:
        UsageError: for a malformed URL.
        SystemError: for a host without an address.
    """
    shown = printable(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"--url {shown}: {error}; a URL is {_FORM}") from None
    if parts.scheme == _SHM:  # the client that connects reports other errors
        return Place(_SHM, parts.netloc, "", 0, parts.path.removeprefix("/"))
    if parts.scheme not in _PROTOCOLS:
        raise UsageError(f"--url {shown} does not begin with grpc://, http:// or shm://: a URL is {_FORM}")
    if parts.username is not None or parts.query or parts.fragment or not host or not port:
        raise UsageError(f"--url {shown} is not of the form {_FORM}")
    model = parts.path.removeprefix("/")
    if not _MODEL.fullmatch(model):
        raise UsageError(f"--url {shown} names no model: a URL is {_FORM}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise SystemError(f"looking up {printable(host)}: {getattr(error, 'strerror', None) or error}") from None
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    return Place(parts.scheme, authority, host, port, model, addresses)


def _files(words: list[str] | None) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for word in words or []:
        name, equals, path = word.partition("=")
        if not name or not equals or not path:
            raise UsageError(f"--input {printable(word)} is not NAME=FILE.npy")
        if name in files:
            raise UsageError(f"--input {printable(name)} is given twice")
        files[name] = Path(path)
    return files


def _described(place: Place, security: RemoteSecurity, patience: float) -> tuple[Any, list[Any]]:
    """The endpoint at the first address that answers, and the model's inputs."""
    failed: SystemError | None = None
    for address in place.addresses:
        endpoint = _core.ServerEndpoint(
            grpc=place.protocol == "grpc",
            address=address,
            port=place.port,
            authority=place.authority,
            model=place.model,
            patience=patience,
        )
        security.secure(endpoint, place.host, tls=place.scheme != place.protocol, local=place.local)
        try:
            return endpoint, _core.describe_model(endpoint)
        except SystemError as error:
            failed = failed or error
    assert failed is not None
    raise failed


@dataclass(frozen=True)
class Asked:
    """A load on a server.

    Attributes:
        done: results of the load.
        local: whether the server runs on this machine.
    """

    place: Place
    remote: Remote
    connections: int
    streams: int
    done: Any
    local: bool

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of requests by outcome, over the whole run."""
        load = self.done.load
        answered = load.answered - load.failed - load.wrong
        return {"answered": answered} | {
            name: getattr(load, name) for name in ("refused", "late", "failed", "lost", "unsent")
        }

    @property
    def disturbed(self) -> str:
        """Why the figures are not results. The load of a server on this machine does not count as a reason."""
        load = self.done.load
        return "" if self.local and load.disturbed == load.machine.disturbed else str(load.disturbed)


def run(
    remote: Remote,
    security: RemoteSecurity,
    *,
    arrivals: str,
    rate: float | None,
    trace: list[float],
    seed: int,
    generators: int,
    windows: dict[str, float | int],
    progress: Callable[[int], None],
) -> Asked:
    """Gets the model's description, makes requests, and runs the load.

    Args:
        remote: options of the server.
        security: options for TLS and tokens.
        arrivals: poisson, constant or trace.
        rate: queries per second; None for a trace, whose arrivals are requests.
        trace: arrival times in seconds.
        seed: seed of arrivals and random inputs.
        generators: number of generator threads.
        windows: windows to measure, as for load().
        progress: called with the number of each finished window.
    """
    require_wire()
    from headrace.cli.load_inputs import make_requests  # noqa: PLC0415 - needs names that builds without a server lack

    assert remote.url is not None
    files = _files(remote.inputs)
    place = read_url(remote.url)
    if remote.patience > _PATIENCE_MOST:
        raise UsageError(f"--patience must be at most {_PATIENCE_MOST:g} s, not {remote.patience:g} s")
    if place.scheme == _SHM:
        if security != RemoteSecurity():
            raise UsageError(
                "options for TLS and tokens are for grpc(s):// and http(s)://: shared memory takes neither"
            )
        return _run_rings(
            place,
            remote,
            files,
            {"arrivals": arrivals, "rate": rate, "trace": trace, "seed": seed} | windows,
            generators,
            progress,
        )
    if remote.streams_per_connection is not None and place.protocol == "http":
        raise UsageError("--streams-per-connection is for gRPC: an HTTP/1.1 connection carries one request at a time")
    connections = remote.connections or max(_CONNECTIONS[place.protocol], generators)
    streams = remote.streams_per_connection or _STREAMS[place.protocol]
    if connections < generators:
        raise UsageError(f"--connections {connections} are too few for --generators {generators}: each needs its own")
    endpoint, inputs = _described(place, security, remote.patience)
    requests = make_requests(inputs, files, queries=remote.queries_per_request, seed=seed)
    done = _core.load_server(
        endpoint,
        requests,
        connections=connections,
        streams=streams,
        deadline=remote.deadline,
        high_share=remote.high_share,
        generators=generators,
        rate=None if rate is None else rate / remote.queries_per_request,
        arrivals=arrivals,
        seed=seed,
        trace=trace,
        progress=lambda window, _measured, _p99: progress(window),
        **windows,  # type: ignore[arg-type]
    )
    return Asked(place, remote, connections, streams, done, place.local)


def _run_rings(
    place: Place,
    remote: Remote,
    files: dict[str, Path],
    load: dict[str, Any],
    generators: int,
    progress: Callable[[int], None],
) -> Asked:
    """The same through shared memory: each generator has a ring, and each request is one query.

    Args:
        place: server, and optionally the model.
        remote: options of the server.
        files: a file per input.
        load: arrivals and windows.
        generators: number of generator threads.
        progress: called with the number of each finished window.
    """
    from headrace.cli.load_inputs import make_requests  # noqa: PLC0415 - as in run()

    assert remote.url is not None
    if remote.queries_per_request > 1:
        raise UsageError("--queries-per-request is for grpc:// and http://: in shared memory each request is a query")
    if remote.connections not in {None, generators}:
        raise UsageError("--connections is for grpc:// and http://: with shm:// each generator has one connection")
    if remote.high_share > 0:
        raise UsageError("--high-share is for gRPC and HTTP: queries through shared memory have no priority")
    slots = remote.streams_per_connection or _SLOTS
    described = _core.describe_ring(remote.url)
    requests = make_requests(described.inputs, files, queries=1, seed=load["seed"])
    offsets = {one.name: one.offset for one in described.inputs}
    queries = []
    for request in requests:
        query = bytearray(described.query_bytes)
        for tensor in request:
            query[offsets[tensor.name] : offsets[tensor.name] + len(tensor.content)] = tensor.content
        queries.append(bytes(query))
    done = _core.load_rings(
        remote.url,
        queries,
        slots=slots,
        deadline=remote.deadline,
        patience=remote.patience,
        generators=generators,
        progress=lambda window, _measured, _p99: progress(window),
        **load,
    )
    return Asked(replace(place, model=described.model), remote, generators, slots, done, local=True)
