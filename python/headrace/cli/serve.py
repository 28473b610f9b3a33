"""`headrace serve`: serves operators to other processes over the Open Inference Protocol."""

import ipaddress
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from headrace import Device, Engine, Plan, UsageError, base, interrupts
from headrace.cli import options, serve_supervised, show
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.cli.grouped import grouped
from headrace.cli.notify import notify
from headrace.cli.serve_models import Changes, ServedModels
from headrace.cli.serve_options import Engines, Limits, Rings
from headrace.cli.serve_security import Reading, Security, tell_of_certificate, warn_of_others
from headrace.cli.serve_shown import Served, Source
from headrace.cli.serve_tracing import Traces
from headrace.exporter import FILE_SECONDS, Exporter
from headrace.interrupts import Stop
from headrace.operators import files
from headrace.profiles import Json
from headrace.serve_log import LOOK_SECONDS, LogForm, ServerLog
from headrace.text import printable

if TYPE_CHECKING:
    from headrace.serve_traces import Tracing
    from headrace.wire import Server, ServerStatistics

_LOOK_SECONDS = 0.1
_DRAIN_SECONDS = 10.0
_UNRESPONSIVE_SECONDS = 2.0
_PORT_MAX = 65535
_GRPC_PORT = 8001  # Triton's port
_SHIPPED = tuple(name for name in options.OperatorName if name != options.OperatorName.retrieval)
_TOTALS = ("connections", "connections_refused", "requests", "failed", "refused")


def _of_word(word: str, dense: Dense) -> dict[str, Source]:
    """The operators of one word of the command line, by name."""
    if word in _SHIPPED:
        return {word: Source(options.make_operator(word, dense=dense.of(word)), word)}
    if files.is_file(word) or Path(word).is_dir():
        return {name: Source(found.operator, word, found.at) for name, found in files.locate_operators(word).items()}
    if word == options.OperatorName.retrieval:
        raise UsageError(
            "retrieval needs an index: write served = headrace.retrieval(headrace.Index.load('FILE')) in a FILE.py "
            "and serve that file"
        )
    raise UsageError(
        f"there is no operator '{printable(word)}': choose {', '.join(_SHIPPED)}, FILE.py:NAME, FILE.py, FILE.so or a "
        "folder"
    )


def _find(words: list[str], dense: Dense) -> dict[str, Source]:
    found: dict[str, Source] = {}
    dense.require_some_of(words)
    for word in words:
        for name, source in _of_word(word, dense).items():
            if name in found:
                first = printable(found[name].given)
                raise UsageError(f"{first} and {printable(word)} both have an operator {name}: serve only one of them")
            found[name] = source
    return found


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        message = f"'{text}' is not an IPv4 or IPv6 address, such as 127.0.0.1, 0.0.0.0 or ::1"
        raise typer.BadParameter(message) from None


def _at(address: str, port: int) -> str:
    """Address of the server for programs on this machine."""
    at = ipaddress.ip_address(address)
    host = "localhost" if at.is_unspecified else f"[{at}]" if isinstance(at, ipaddress.IPv6Address) else str(at)
    return f"{host}:{port}"


def _changed(plan: Plan, changes: Changes) -> Plan:
    """The plan with these values, as far as it has them."""
    plan = plan.copy()
    for name, value in changes.items():
        if name != "waiting_max":
            setattr(plan, name, value)
    return plan


def _grpc_port(text: str | None) -> int | None:
    """Parses the port of --grpc; None disables gRPC."""
    if text is None:
        return _GRPC_PORT if base.built_with_grpc else None
    if text == "none":
        return None
    if not (text.isdecimal() and text.isascii() and int(text) <= _PORT_MAX):
        raise typer.BadParameter(f"'{text}' is neither a port, 0 to {_PORT_MAX}, nor none", param_hint="--grpc")
    return int(text)


def _export(target: str | None, server: "Server", device: Device, tracing: "Tracing | None") -> Exporter | None:
    if target is None:
        return None
    from headrace.serve_metrics import ServerCollector  # noqa: PLC0415 # few servers are asked for metrics

    return Exporter(target, ServerCollector(server, device, tracing))


def _wait_and_drain(
    server: "Server",
    stop: Stop,
    reading: Reading,
    limit: float | None,
    exporter: Exporter | None,
    log: ServerLog | None,
    worker: serve_supervised.Worker | None,
) -> bool:
    """Waits for Ctrl-C or SIGTERM, then until all requests in progress are answered; returns whether they were.

    A second signal ends the waiting. Meanwhile the metrics file is rewritten regularly, the log continues, and
    certificates and tokens are reread on request.
    """
    limit = _DRAIN_SECONDS if limit is None else limit
    try:
        written = looked = time.monotonic()
        while not stop.asked:
            time.sleep(_LOOK_SECONDS)
            reading.look(server)
            now = time.monotonic()
            if exporter is not None and now - written >= FILE_SECONDS:
                exporter.write()
                written = now
            if log is not None and now - looked >= LOOK_SECONDS:
                log.look(server)
                looked = now
        if worker is None or not worker.replaced.is_set():
            notify("STOPPING=1")
        if log is not None:
            log.write("draining", limit_seconds=limit)
        else:
            show.stderr().print(
                f"Finishing requests in progress, for at most {limit:g} s.", markup=False, soft_wrap=True
            )
        return server.drain(limit)
    except KeyboardInterrupt:
        return False


def _log_end(log: ServerLog, server: "Server", seconds: float, *, drained: bool) -> None:
    log.look(server, all_of_it=True)
    done = server.statistics()
    totals = {name: getattr(done, name) for name in _TOTALS}
    log.write("ended", "info" if drained else "warning", **totals, seconds=round(seconds, 3), drained=drained)


def _print_totals(
    done: "ServerStatistics", seconds: float, restarts: int | None, *, drained: bool, as_json: bool
) -> None:
    if as_json:
        totals: Json = {name: getattr(done, name) for name in _TOTALS}
        if restarts is not None:
            totals["restarts"] = restarts
        typer.echo(json.dumps(totals | {"seconds": seconds, "drained": drained}))
        return
    console = show.stdout()
    console.print(
        f"{done.requests:,} requests in {show.minutes(seconds)}: {done.failed:,} failed, {done.refused:,} of them "
        f"refused for lack of room. {done.connections:,} connections, {done.connections_refused:,} refused.",
        markup=False,
        soft_wrap=True,
    )
    if restarts:
        console.print(
            f"The server was restarted {restarts} times; the counts are those since the last restart.", soft_wrap=True
        )
    if not drained:
        console.print("Requests in progress were abandoned.", markup=False, soft_wrap=True)


def _leave(tracing: "Tracing | None", *, drained: bool) -> NoReturn:
    """Ends the process even while a model is loading, which cannot be stopped."""
    if tracing is not None:
        tracing.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if drained else interrupts.status())


@grouped
def serve(  # noqa: PLR0915 - a list of steps
    operators: Annotated[
        list[str],
        typer.Argument(
            metavar="OPERATOR",
            help="Operators: light, reference, mlp, topk, lookup, FILE.py:NAME, FILE.py (every operator in it), "
            "FILE.so, or a folder (every operator in its *.py and *.so).",
        ),
    ],
    address: Annotated[
        str,
        typer.Option(
            "--address",
            parser=_address,
            metavar="ADDRESS",
            help="Address to listen on; 0.0.0.0 or :: means every interface.",
        ),
    ] = "127.0.0.1",
    http: Annotated[
        int, typer.Option("--http", min=0, max=65535, metavar="PORT", help="HTTP port; 0 takes any free port.")
    ] = 8000,
    grpc: Annotated[
        str | None,
        typer.Option(
            "--grpc",
            metavar="PORT",
            help="gRPC port; 0 takes any free port, none disables gRPC. Default: 8001 if the build has gRPC.",
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", min=1, max=256, help="Number of threads that read requests and write replies.")
    ] = 1,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve a status page with a query form at /.")] = True,
    drain: Annotated[
        float | None,
        typer.Option(
            "--drain",
            parser=options.duration,
            metavar="TIME",
            help="After Ctrl-C, time limit for requests in progress. Default: 10s.",
        ),
    ] = None,
    *,
    engines: Engines,
    limits: Limits,
    rings: Rings,
    security: Security,
    traces: Traces,
    dense: Dense,
    prometheus: options.PrometheusOption = None,
    supervise: Annotated[
        bool,
        typer.Option("--supervise", help="Watch the server from a separate process and restart it when it fails."),
    ] = False,
    unresponsive_after: Annotated[
        float | None,
        typer.Option(
            "--unresponsive-after",
            parser=options.duration,
            metavar="TIME",
            help="With --supervise: restart the server after this long without a sign of life. Default: 2s.",
        ),
    ] = None,
    log: Annotated[
        LogForm | None,
        typer.Option("--log", help="Log events to standard error, one per line, as text or as JSON."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Serve operators to other processes over HTTP and gRPC, by the Open Inference Protocol (KServe v2).

    Triton's clients work unchanged.

    Ctrl-C or SIGTERM stops the server once all requests in progress are answered; a second one stops it at once.

    With --shm, processes of the same user on this machine can also send queries through shared memory, without a system
    call per query: headrace.Client("shm://NAME/MODEL").

    With --tls-certificate and --tls-key the server speaks TLS. With --tls-clients it accepts only clients with a
    certificate, and with --token-file only requests with a token. SIGHUP reloads these files.

    With --supervise the server is restarted, at the same ports, when it dies, hangs or has a model whose engine failed.

    With --json, the first line lists the models and their addresses, and the last line has the totals.

    Example: headrace serve light my_operators.py --http 8000
    """
    from headrace import wire  # noqa: PLC0415 # only this command needs it

    wire.require_wire()
    events = None if log is None else ServerLog(log)
    worker = serve_supervised.this_worker()
    secured = security.arguments(address)
    if unresponsive_after is not None and not supervise:
        raise UsageError("--unresponsive-after needs --supervise")
    if supervise and worker is None:
        # Passes the arguments on unchanged: the server process parses them itself.
        limit = _UNRESPONSIVE_SECONDS if unresponsive_after is None else unresponsive_after
        raise typer.Exit(serve_supervised.supervise(sys.argv[1:], limit, events, reloads=security.takes_hangup))
    grpc_port = _grpc_port(grpc)
    sources = _find(operators, dense)
    device, plan = options.find_device(engines.device), engines.made(threads + rings.threads, len(sources))
    with ExitStack() as stack:
        served = ServedModels(
            sources,
            lambda operator, changes: Engine(device, operator, _changed(plan, changes)),
            lambda engine, name, waiting: wire.model(engine, name, batch_max=limits.queries, waiting_max=waiting),
        )
        stack.callback(served.close)
        server = stack.enter_context(
            wire.Server(
                served.models(),
                address=address,
                http_port=http,
                grpc_port=grpc_port,
                threads=threads,
                page=page,
                watcher=-1 if worker is None else worker.watcher,
                traces_max=traces.kept,
                **limits.arguments(),  # type: ignore[arg-type]
                **rings.arguments(),  # type: ignore[arg-type]
                **secured,
            )
        )
        stack.callback(served.end)
        tracing = traces.start(server, stack)
        exporter = _export(prometheus, server, device, tracing)
        if exporter is not None:
            stack.callback(exporter.close)
        began = time.monotonic()
        url = f"{'https' if security.has_tls else 'http'}://{_at(address, server.http_port)}"
        at_grpc = None if server.grpc_port is None else _at(address, server.grpc_port)
        metrics = None if exporter is None else exporter.address
        shown = Served(url, at_grpc, rings.url, f"{url}/" if page else None, metrics, device, plan, sources, security)
        with Stop() as stop, Reading(security, events) as reading:
            if limits.model_control:  # before the server is announced
                served.control(server, events)
            if worker is not None:
                worker.say(server.http_port, server.grpc_port)
            if worker is None or worker.restarts == 0:
                shown.print(served.models(), as_json=as_json)
            if events is not None:
                shown.log(events, served.models())
            notify(f"READY=1\nSTATUS=Serving on {url}")
            warn_of_others(address, security, limits, events)
            tell_of_certificate(server, events)
            drained = _wait_and_drain(server, stop, reading, drain, exporter, events, worker)
        ended = served.end()
        if worker is not None and worker.replaced.is_set():
            return
        server.stop()
        done, seconds = server.statistics(), time.monotonic() - began
        if events is not None:
            _log_end(events, server, seconds, drained=drained)
        restarts = None if worker is None else worker.restarts
        _print_totals(done, seconds, restarts, drained=drained, as_json=as_json)
        if not ended:
            _leave(tracing, drained=drained)
    if not drained:
        raise typer.Exit(STATUS_INTERRUPTED)
