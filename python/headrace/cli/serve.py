"""`headrace serve`: operators for other processes, by the Open Inference Protocol."""

import ipaddress
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headrace import Device, Engine, Operator, Plan, UsageError, base
from headrace.cli import options, show
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.cli.grouped import grouped
from headrace.cli.serve_options import Engines, Limits
from headrace.interrupts import Stop
from headrace.operators import files
from headrace.profiles import Json, plan_as_dict
from headrace.text import printable

if TYPE_CHECKING:
    from headrace.wire import Model, Server, ServerStatistics, Tensor

_LOOK_SECONDS = 0.1
_DRAIN_SECONDS = 10.0
_PORT_MAX = 65535
_GRPC_PORT = 8001  # as Triton has it
_SHIPPED = tuple(name for name in options.OperatorName if name != options.OperatorName.retrieval)
_TOTALS = ("connections", "connections_refused", "requests", "failed", "refused")


@dataclass(frozen=True)
class _Source:
    """An operator, and what of the command line it comes from."""

    operator: Operator
    given: str


@dataclass(frozen=True)
class _Served:
    """What is served where."""

    url: str
    grpc: str | None
    device: Device
    plan: Plan
    sources: dict[str, _Source]
    models: "list[Model]"

    def print(self, *, as_json: bool) -> None:
        """Prints a table of the models, or a line of JSON."""
        if as_json:
            print(json.dumps(self._as_dict()), flush=True)
            return
        table = show.plain_table()
        for heading in ("model", "inputs", "outputs", "from"):
            table.add_column(heading, overflow="fold")
        for model in self.models:
            given = printable(self.sources[model.name].given)
            cells = (model.name, _written(model.inputs), _written(model.outputs), given)
            table.add_row(*(Text(cell) for cell in cells))
        console = show.stdout()
        also = f" and {self.grpc} (gRPC)" if self.grpc is not None else ""
        title = f"Serving on {self.url}{also}, by {self.device.name} and plan {self.plan.name}. Ctrl-C ends it."
        console.print(title, markup=False, soft_wrap=True)
        console.print(table)

    def _as_dict(self) -> Json:
        return {
            "url": self.url,
            "grpc": self.grpc,
            "device": self.device.name,
            "plan": plan_as_dict(self.plan),
            "models": [
                {
                    "name": model.name,
                    "version": model.version,
                    "from": self.sources[model.name].given,
                    "inputs": _as_list(model.inputs),
                    "outputs": _as_list(model.outputs),
                }
                for model in self.models
            ],
        }


def _written(tensors: "list[Tensor]") -> str:
    return "\n".join(f"{printable(one.name)} {one.datatype} {one.shape or ''}".rstrip() for one in tensors)


def _as_list(tensors: "list[Tensor]") -> list[Json]:
    return [{"name": one.name, "datatype": one.datatype, "shape": one.shape} for one in tensors]


def _of_word(word: str, dense: Dense) -> dict[str, Operator]:
    """The operators that a word of the command line stands for, by name."""
    if word in _SHIPPED:
        return {word: options.make_operator(word, dense=dense.of(word))}
    if files.is_file(word) or Path(word).is_dir():
        return files.find_operators(word)
    if word == options.OperatorName.retrieval:
        raise UsageError(
            "retrieval needs an index: write served = headrace.retrieval(headrace.Index.load('FILE')) in a FILE.py, "
            "and serve that"
        )
    raise UsageError(
        f"there is no operator '{printable(word)}': choose {', '.join(_SHIPPED)}, FILE.py:NAME, FILE.py, FILE.so or a "
        "folder"
    )


def _find(words: list[str], dense: Dense) -> dict[str, _Source]:
    found: dict[str, _Source] = {}
    dense.require_some_of(words)
    for word in words:
        for name, operator in _of_word(word, dense).items():
            if name in found:
                first = printable(found[name].given)
                raise UsageError(f"{first} and {printable(word)} both have an operator {name}: give one of them alone")
            found[name] = _Source(operator, word)
    return found


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        message = f"'{text}' is no address of IPv4 or IPv6, such as 127.0.0.1, 0.0.0.0 or ::1"
        raise typer.BadParameter(message) from None


def _at(address: str, port: int) -> str:
    """Where programs on this machine reach the server."""
    at = ipaddress.ip_address(address)
    host = "localhost" if at.is_unspecified else f"[{at}]" if isinstance(at, ipaddress.IPv6Address) else str(at)
    return f"{host}:{port}"


def _grpc_port(text: str | None) -> int | None:
    """The port that --grpc names; None to do without."""
    if text is None:
        return _GRPC_PORT if base.built_with_grpc else None
    if text == "none":
        return None
    if not (text.isdecimal() and text.isascii() and int(text) <= _PORT_MAX):
        raise typer.BadParameter(f"'{text}' is neither a port, 0 to {_PORT_MAX}, nor none", param_hint="--grpc")
    return int(text)


def _wait_and_drain(server: "Server", stop: Stop, limit: float) -> bool:
    """Waits for Ctrl-C or SIGTERM, then until all requests that have begun are answered; whether they were.

    A second signal ends the waiting.
    """
    try:
        while not stop.asked:
            time.sleep(_LOOK_SECONDS)
        show.stderr().print(f"Answering what has begun, for {limit:g} s at most.", markup=False, soft_wrap=True)
        return server.drain(limit)
    except KeyboardInterrupt:
        return False


def _print_totals(done: "ServerStatistics", seconds: float, *, drained: bool, as_json: bool) -> None:
    if as_json:
        totals: Json = {name: getattr(done, name) for name in _TOTALS}
        typer.echo(json.dumps(totals | {"seconds": seconds, "drained": drained}))
        return
    console = show.stdout()
    console.print(
        f"{done.requests:,} requests in {show.minutes(seconds)}: {done.failed:,} failed, {done.refused:,} of these for "
        f"want of room. {done.connections:,} connections, and {done.connections_refused:,} refused.",
        markup=False,
        soft_wrap=True,
    )
    if not drained:
        console.print("Requests that had begun were given up.", markup=False, soft_wrap=True)


@grouped
def serve(
    operators: Annotated[
        list[str],
        typer.Argument(
            metavar="OPERATOR",
            help="light, reference, mlp, topk, FILE.py:NAME, FILE.py for every operator in it, FILE.so, or a folder "
            "for those of its *.py and *.so.",
        ),
    ],
    address: Annotated[
        str,
        typer.Option(
            "--address", parser=_address, metavar="ADDRESS", help="Listen here; 0.0.0.0 or :: is every interface."
        ),
    ] = "127.0.0.1",
    http: Annotated[
        int, typer.Option("--http", min=0, max=65535, metavar="PORT", help="Port for HTTP; 0 takes any that is free.")
    ] = 8000,
    grpc: Annotated[
        str | None,
        typer.Option(
            "--grpc",
            metavar="PORT",
            help="Port for gRPC; 0 takes any that is free, none does without. Default: 8001, where the build has gRPC.",
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", min=1, max=256, help="Threads that read requests and write replies.")
    ] = 1,
    drain: Annotated[
        float | None,
        typer.Option(
            "--drain",
            parser=options.duration,
            metavar="TIME",
            help="After Ctrl-C, how long requests that have begun may take. Default: 10s.",
        ),
    ] = None,
    *,
    engines: Engines,
    limits: Limits,
    dense: Dense,
    as_json: options.JsonOption = False,
) -> None:
    """Serve operators to other processes over HTTP and gRPC, by the Open Inference Protocol (KServe v2).

    Clients of Triton work with it unchanged.

    Ctrl-C or SIGTERM ends it once all requests that have begun are answered, and a second one at once.

    With --json, a line says what is served where, and another one at the end has the totals.

    Example: headrace serve light my_operators.py --http 8000
    """
    from headrace import wire  # noqa: PLC0415 # only this command needs it

    wire.require_wire()
    grpc_port = _grpc_port(grpc)
    device, plan = options.find_device(engines.device), engines.made(threads)
    sources = _find(operators, dense)
    with ExitStack() as stack:
        models = []
        for name, source in sources.items():
            engine = stack.enter_context(Engine(device, source.operator, plan))
            models.append(wire.model(engine, name, batch_max=limits.queries))
        server = stack.enter_context(
            wire.Server(
                models,
                address=address,
                http_port=http,
                grpc_port=grpc_port,
                threads=threads,
                **limits.arguments(),  # type: ignore[arg-type]
            )
        )
        began = time.monotonic()
        url = f"http://{_at(address, server.http_port)}"
        at_grpc = None if server.grpc_port is None else _at(address, server.grpc_port)
        served = _Served(url, at_grpc, device, plan, sources, models)
        with Stop() as stop:
            served.print(as_json=as_json)
            if not ipaddress.ip_address(address).is_loopback:
                warning = (
                    f"Whoever reaches {address} may ask: nothing is encrypted, and nobody has to say who they are."
                )
                show.stderr().print(warning, markup=False, soft_wrap=True)
            drained = _wait_and_drain(server, stop, _DRAIN_SECONDS if drain is None else drain)
        server.stop()
        _print_totals(server.statistics(), time.monotonic() - began, drained=drained, as_json=as_json)
    if not drained:
        raise typer.Exit(STATUS_INTERRUPTED)
