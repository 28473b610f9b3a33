"""`headrace load`: puts one load on a plan or on a server."""

import json
import math
from enum import StrEnum
from typing import Annotated

import typer

import headrace
from headrace import Plan, UsageError, tables
from headrace.cli import load_url, load_url_show, options, show
from headrace.cli.dense_options import Dense
from headrace.cli.errors import STATUS_INTERRUPTED
from headrace.cli.grouped import grouped
from headrace.cli.load_security import RemoteSecurity
from headrace.cli.load_url import Remote
from headrace.profiles import STAGES, Json, disturbed_of, load_as_dict, plan_as_dict, roofs_as_dict
from headrace.serve import PlanLoad

_LATENCIES_MOST = 50e6  # each latency takes 8 bytes, together with its lateness


class Arrivals(StrEnum):
    """Arrival process of queries."""

    poisson = "poisson"
    constant = "constant"
    trace = "trace"


def make_plan(rung: str, **fields: object) -> Plan:
    """A rung's plan with the given fields replaced."""
    plan = headrace.serve.find_rung(rung).plan
    for name, value in fields.items():
        if value is not None:
            setattr(plan, name, value)
            plan.name = "custom"
    return plan


def _as_dict(operator: str, device: str, plan: Plan, done: PlanLoad) -> Json:
    return {
        "operator": operator,
        "device": device,
        "plan": plan_as_dict(plan),
        "load": load_as_dict(done.load),
        "stages_us": {name: getattr(done.stages, name) * 1e6 for name in STAGES},
        "roofs": roofs_as_dict(done.roofs),
    }


def _refused(done: PlanLoad) -> str:
    return (
        f"{done.load.refused:,} queries were refused because all slots were taken (--slots); latencies cover admitted "
        "queries only."
    )


def _windows(seconds: float | None, rate: float | None) -> dict[str, float | int]:
    """Windows that fill the given time and all count; without a time, windows until three are stable."""
    if seconds is None:
        return {}
    if rate is not None and rate * seconds > _LATENCIES_MOST:
        raise UsageError(
            f"{rate:,.0f} queries/s for {seconds:g} s are more latencies than fit ({_LATENCIES_MOST:,.0f}): "
            "lower --duration, or use headrace soak"
        )
    count = max(1, min(20, math.floor(seconds / 0.1)))
    return {"window": seconds / count, "windows_max": count, "stable_windows": count}


def _doing(rate: float | None, trace: str | None) -> str:
    return f"{tables.rate(rate)} queries/s" if rate else f"Trace {trace}"


def _load_server(
    remote: Remote,
    security: RemoteSecurity,
    arrivals: str,
    rate: float | None,
    trace: str | None,
    seed: int,
    generators: int,
    windows: dict[str, float | int],
    *,
    as_json: bool,
) -> None:
    with show.progress_bar(_doing(rate, trace)) as bar:
        asked = load_url.run(
            remote,
            security,
            arrivals=arrivals,
            rate=rate,
            trace=headrace.measure.read_trace(trace) if trace else [],
            seed=seed,
            generators=generators,
            windows=windows,
            progress=lambda window: bar(window / windows.get("windows_max", 12)),
        )
    load_url_show.show_result(asked, as_json=as_json)


@grouped
def load(
    context: typer.Context,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", parser=options.rate, metavar="RATE", help="Queries per second, such as 20000, 20K or 1.5M."
        ),
    ] = None,
    operator: options.OperatorOption = options.OperatorName.light,
    index: options.IndexOption = None,
    device: options.DeviceOption = "best",
    plan: Annotated[
        str,
        typer.Option("--plan", help="Start from the plan of a rung, by number or id; the options below override it."),
    ] = "7",
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", help="Schedule: blocking, pipelined, async, graph, persistent, dispatched or none."),
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="Number of engine threads.")] = None,
    streams_per_thread: Annotated[
        int | None,
        typer.Option(
            "--streams-per-thread", min=1, help="Streams in flight per thread; persistent: kernels per thread."
        ),
    ] = None,
    allocator: Annotated[
        str | None, typer.Option("--allocator", help="Allocator: per-query, stream-ordered or pool.")
    ] = None,
    host_memory: Annotated[
        str | None, typer.Option("--host-memory", help="Memory of the slots: pageable, pinned, mapped or managed.")
    ] = None,
    streams: Annotated[str | None, typer.Option("--streams", help="Streams: shared or per-thread.")] = None,
    binding: Annotated[str | None, typer.Option("--binding", help="Binding of engine threads: none or cores.")] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch", min=1, help="Close a batch at this many queries, or at --batch-age if that comes first."
        ),
    ] = None,
    batch_age: Annotated[
        float | None,
        typer.Option(
            "--batch-age",
            parser=options.duration,
            metavar="TIME",
            help="Close a batch when its first query has waited this long.",
        ),
    ] = None,
    doorbell: Annotated[
        str | None, typer.Option("--doorbell", help="persistent: type of doorbell, words or barrier.")
    ] = None,
    plan_blocks: Annotated[
        int | None,
        typer.Option("--plan-blocks", min=0, help="Blocks per query; 0 uses the operator's number."),
    ] = None,
    plan_block_threads: Annotated[
        int | None,
        typer.Option("--plan-block-threads", min=0, help="Threads per block; 0 uses the operator's number."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=0, help="dispatched: number of resident blocks; 0 uses as many as fit."),
    ] = None,
    answer_inline: Annotated[
        bool | None,
        typer.Option(
            "--answer-inline", help="dispatched: the block that hands queries out answers lone queries inline."
        ),
    ] = None,
    hang_after: Annotated[
        float | None,
        typer.Option(
            "--hang-after",
            parser=options.duration,
            metavar="TIME",
            help="Time without progress after which a resident kernel is abandoned.",
        ),
    ] = None,
    slots: Annotated[
        int | None, typer.Option("--slots", min=1, help="Maximum number of queries in flight; a power of two.")
    ] = None,
    arrivals: Annotated[
        Arrivals,
        typer.Option("--arrivals", help="Gaps between queries: poisson (random), constant, or trace (see --trace)."),
    ] = Arrivals.poisson,
    trace: Annotated[
        str | None, typer.Option("--trace", help="File of arrival times in seconds, one per line.")
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            parser=options.duration,
            metavar="TIME",
            help="Duration, such as 5s. Default: until the figures are stable.",
        ),
    ] = None,
    seed: options.SeedOption = 1,
    generators: options.GeneratorsOption = 1,
    steps: options.StepsOption = None,
    query_bytes: options.QueryBytesOption = None,
    answer_bytes: options.AnswerBytesOption = None,
    blocks: options.BlocksOption = None,
    block_threads: options.BlockThreadsOption = None,
    *,
    dense: Dense,
    remote: Remote,
    security: RemoteSecurity,
    as_json: options.JsonOption = False,
) -> None:
    """Put one load on one plan, or on a server (--url), and show its throughput and latency.

    Example: headrace load --rate 20K --plan page-locked --threads 2
    """
    load_url.require_options(context, remote)
    if (arrivals is Arrivals.trace) != (trace is not None):
        raise UsageError("--arrivals trace and --trace FILE go together")
    if arrivals is not Arrivals.trace and rate is None:
        raise UsageError("a load needs --rate, such as 20K (or --arrivals trace --trace FILE)")
    if arrivals is Arrivals.trace and rate is not None:
        raise UsageError("a trace sets its own rate: leave out --rate")
    windows = _windows(duration, rate)
    if remote.url is not None:
        _load_server(remote, security, str(arrivals), rate, trace, seed, generators, windows, as_json=as_json)
        return
    chosen = options.find_device(device)
    made = make_plan(
        plan,
        schedule=schedule,
        threads=threads,
        streams_per_thread=streams_per_thread,
        batch_max=batch,
        batch_age=batch_age,
        doorbell=doorbell,
        blocks=plan_blocks,
        block_threads=plan_block_threads,
        workers=workers,
        answer_inline=answer_inline,
        hang_after=hang_after,
        allocator=allocator,
        host_memory=host_memory,
        streams=streams,
        binding=binding,
        slots=slots,
    )
    op = options.make_operator(
        operator,
        index,
        steps=steps,
        query_bytes=query_bytes,
        answer_bytes=answer_bytes,
        blocks=blocks,
        block_threads=block_threads,
        dense=dense,
    )
    with show.progress_bar(_doing(rate, trace)) as bar:
        done = headrace.load(
            chosen,
            op,
            made,
            rate=rate,
            arrivals=str(arrivals),
            seed=seed,
            trace=headrace.measure.read_trace(trace) if trace else [],
            generators=generators,
            progress=lambda window, _measured, _p99: bar(window / windows.get("windows_max", 12)),
            **windows,  # type: ignore[arg-type]
        )
    roof = (done.roofs.lowest, done.roofs.lowest_name)
    disturbed = disturbed_of(done.load, *roof, done.roofs_disturbed)
    if as_json:
        typer.echo(json.dumps(_as_dict(op.name, chosen.name, made, done) | {"disturbed": disturbed}, indent=2))
    else:
        console = show.stdout()
        console.print(f"{op.name} on {chosen.name}: {made!r}", markup=False, soft_wrap=False)
        console.print(show.load_table(done, disturbed))
        show.print_quiet(console, disturbed)
        if done.load.refused:
            console.print(_refused(done), markup=False, soft_wrap=True)
        for line in show.roof_lines(done.roofs):
            console.print(line, markup=False)
    if done.load.interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
