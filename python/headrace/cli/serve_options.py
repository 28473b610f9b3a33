"""Options of `headrace serve`: the plan of the engines, and the limits of clients."""

from dataclasses import dataclass
from typing import Annotated

import typer

import headrace
from headrace import Plan, UsageError
from headrace.cli import options
from headrace.cli.load import make_plan


@dataclass(frozen=True)
class Engines:
    """The engines, one for each operator."""

    device: options.DeviceOption = "best"
    plan: Annotated[str, typer.Option("--plan", help="Start from the plan of a rung, by number or id.")] = "7"
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule", help="Schedule: blocking, pipelined, async, graph, persistent, dispatched or caller."
        ),
    ] = None
    engine_threads: Annotated[
        int | None, typer.Option("--engine-threads", min=1, max=1024, help="Number of threads per engine.")
    ] = None
    host_memory: Annotated[
        str | None, typer.Option("--host-memory", help="Memory of the slots: pageable, pinned, mapped or managed.")
    ] = None
    binding: Annotated[
        str,
        typer.Option("--binding", help="Binding of engine threads: none or cores (the engines share the cores)."),
    ] = "none"
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch", min=1, help="Close a batch at this many queries, or at --batch-age if that comes first."
        ),
    ] = None
    batch_age: Annotated[
        float | None,
        typer.Option(
            "--batch-age",
            parser=options.duration,
            metavar="TIME",
            help="Close a batch when its first query has waited this long.",
        ),
    ] = None
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots", min=1, help="Maximum queries in flight per engine and server thread (--threads); a power of two."
        ),
    ] = None

    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            metavar="PART",
            help="dispatched: share of the device for each engine, such as 0.4. Default: equal shares for all "
            "operators.",
        ),
    ] = None

    latency_max: Annotated[
        float | None,
        typer.Option(
            "--latency-max",
            parser=options.duration,
            metavar="TIME",
            help="Refuse requests that would take longer, and end those that do. Default: no bound.",
        ),
    ] = None

    def made(self, threads: int, operators: int) -> Plan:
        """The plan of each engine, for this number of engines and of server threads that are their clients."""
        plan = make_plan(
            self.plan,
            schedule=self.schedule,
            threads=self.engine_threads,
            host_memory=self.host_memory,
            batch_max=self.batch,
            batch_age=self.batch_age,
            slots=self.slots,
        )
        if plan.schedule == "none":
            raise UsageError("schedule none answers no queries: it is for measuring what feeds an engine")
        plan.binding = self.binding
        plan.clients_max = max(plan.clients_max, threads)
        if self.latency_max is not None:
            plan.latency_max = self.latency_max
        if plan.schedule == "dispatched":
            plan.share = 1 / operators if self.share is None else self.share
        elif self.share is not None:
            raise UsageError(f"--share is for plans whose blocks stay on the device (dispatched), not {plan.schedule}")
        return plan


@dataclass(frozen=True)
class Rings:
    """Clients of the same machine and user, through shared memory."""

    shm: Annotated[
        str | None,
        typer.Option(
            "--shm",
            metavar="NAME",
            help="Also serve this user's processes on this machine through shared memory, at shm://NAME/MODEL.",
        ),
    ] = None
    shm_threads: Annotated[
        int | None,
        typer.Option(
            "--shm-threads", min=1, max=256, help="--shm: number of threads that serve its clients. Default: 1."
        ),
    ] = None
    shm_clients: Annotated[
        int | None,
        typer.Option(
            "--shm-clients", min=1, max=1 << 20, help="--shm: maximum number of concurrent clients. Default: 64."
        ),
    ] = None
    shm_slots: Annotated[
        int | None,
        typer.Option(
            "--shm-slots", min=1, max=1 << 16, help="--shm: maximum queries in flight per client. Default: 4096."
        ),
    ] = None
    shm_spin: Annotated[
        float | None,
        typer.Option(
            "--shm-spin",
            parser=options.duration,
            metavar="TIME",
            help="--shm: how long an idle thread polls for queries before it sleeps. Default: 50us.",
        ),
    ] = None

    @property
    def url(self) -> str | None:
        """Prefix of the URLs of clients."""
        return None if self.shm is None else f"shm://{self.shm}"

    @property
    def threads(self) -> int:
        """Number of threads that are clients of every engine."""
        return 0 if self.shm is None else self.shm_threads or 1

    def arguments(self) -> dict[str, str | int | float]:
        """The given options as arguments of headrace.wire.Server."""
        given: dict[str, str | int | float | None] = {
            "shm": self.shm,
            "shm_threads": self.shm_threads,
            "shm_clients_max": self.shm_clients,
            "shm_slots_max": self.shm_slots,
            "shm_spin": self.shm_spin,
        }
        known = {name: value for name, value in given.items() if value is not None}
        if self.shm is None and known:
            option = next(iter(known)).removesuffix("_max").replace("_", "-")
            raise UsageError(f"--{option} is for clients of shared memory: it needs --shm NAME")
        return known


@dataclass(frozen=True)
class Limits:
    """What clients may use."""

    queries: Annotated[
        int, typer.Option("--queries", min=1, max=1 << 20, help="Maximum number of queries per request.")
    ] = 1024
    connections: Annotated[
        int | None,
        typer.Option(
            "--connections",
            min=1,
            max=1 << 20,
            help="Maximum number of concurrent connections; beyond it, the one idle longest is closed. Default: 4096.",
        ),
    ] = None
    waiting: Annotated[
        int | None,
        typer.Option(
            "--waiting",
            min=1,
            max=1 << 30,
            help="Maximum queries per model and server thread (--threads) that wait for engine slots. Default: 4096.",
        ),
    ] = None
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="SIZE", help="Maximum size of a request's first line and headers. Default: 16KiB."
        ),
    ] = None
    body: Annotated[
        str | None,
        typer.Option("--body", metavar="SIZE", help="Maximum size of a request's tensors and JSON. Default: 64MiB."),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Maximum memory of all requests and replies together. Default: 1GiB."
        ),
    ] = None
    request_time: Annotated[
        float | None,
        typer.Option(
            "--request-time",
            parser=options.duration,
            metavar="TIME",
            help="Maximum time from a request's first byte to its last. Default: 30s.",
        ),
    ] = None
    idle: Annotated[
        float | None,
        typer.Option(
            "--idle",
            parser=options.duration,
            metavar="TIME",
            help="Maximum time between requests, and without progress of a reply. Default: 75s.",
        ),
    ] = None

    shared_memory: Annotated[
        bool,
        typer.Option(
            "--shared-memory",
            help="Let clients register POSIX shared memory for their tensors. Any client can then make the server "
            "read and write every object in /dev/shm that the server may open.",
        ),
    ] = False
    cuda_shared_memory: Annotated[
        bool,
        typer.Option(
            "--cuda-shared-memory",
            help="Let clients register GPU memory for their tensors. Any client can then make the server read and "
            "write GPU memory that processes share, and one that frees its memory too early can make the GPU fail.",
        ),
    ] = False
    shared_memory_max: Annotated[
        str | None,
        typer.Option(
            "--shared-memory-max",
            metavar="SIZE",
            help="Maximum size of all registered memory together, of both kinds. Default: 16GiB.",
        ),
    ] = None

    model_control: Annotated[
        bool,
        typer.Option(
            "--model-control",
            help="Let clients load, change and unload models. Any client can then make the server rerun the files it "
            "was given, take models away from other clients, and change the shares and bounds of models.",
        ),
    ] = False

    def arguments(self) -> dict[str, int | float]:
        """The given options as arguments of headrace.wire.Server."""
        if self.shared_memory_max is not None and not (self.shared_memory or self.cuda_shared_memory):
            raise UsageError("--shared-memory-max needs --shared-memory or --cuda-shared-memory")
        given: dict[str, int | float | None] = {
            "connections_max": self.connections,
            "waiting_max": self.waiting,
            "head_bytes_max": _size(self.head, "--head"),
            "body_bytes_max": _size(self.body, "--body"),
            "memory_max": _size(self.memory, "--memory"),
            "request_max": self.request_time,
            "idle_max": self.idle,
            "shared_memory": self.shared_memory,
            "cuda_shared_memory": self.cuda_shared_memory,
            "model_control": self.model_control,
            "shared_memory_max": _size(self.shared_memory_max, "--shared-memory-max"),
        }
        return {name: value for name, value in given.items() if value is not None}


def _size(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    count = headrace.base.parse_bytes(text)
    if count == 0:
        raise UsageError(f"{option} must be at least 1 byte")
    return count
