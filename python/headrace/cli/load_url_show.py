"""Results of `headrace load --url`, for people and for programs."""

import json
import math
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from headrace.cli import show
from headrace.cli.errors import STATUS_FAILURE, STATUS_INTERRUPTED, report
from headrace.cli.load_url import Asked
from headrace.profiles import Json, load_as_dict
from headrace.tables import latency, rate
from headrace.text import printable
from headrace.units import MICROSECONDS

if TYPE_CHECKING:
    from headrace._core import LatencySummary, PriorityLoad

OUTCOMES = ("answered", "refused", "late", "failed", "lost", "unsent")
PRIORITIES = ("high", "normal")


def as_dict(asked: Asked) -> Json:
    """The content of --json: rates per second, of requests; times in microseconds."""
    load = load_as_dict(asked.done.load) | {"refusal_us": _latencies(asked.done.load.refusal)}
    if asked.done.load.unanswered_counted:
        load["latency_is_of"] = "answered requests"
    priorities = {}
    if asked.done.priorities is not None:
        priorities = {"priorities": {name: _priority(getattr(asked.done.priorities, name)) for name in PRIORITIES}}
    return {
        "url": asked.remote.url,
        "model": asked.place.model,
        "connections": asked.connections,
        "streams_per_connection": asked.streams,
        "queries_per_request": asked.remote.queries_per_request,
        "requests": asked.outcomes,
        **priorities,
        "load": load | {"unanswered_counted": asked.done.load.unanswered_counted},
        "connections_lost": asked.done.connections_lost,
        "failure": asked.done.failure,
        "refusal": asked.done.refusal,
        "disturbed": asked.disturbed,
    }


def _priority(load: "PriorityLoad") -> Json:
    """Outcomes of the requests of one priority, over the whole run."""
    return {name: getattr(load, name) for name in OUTCOMES} | {"latency_us": _latencies(load.latency)}


def _latencies(summary: "LatencySummary") -> Json:
    micro = {name: getattr(summary, name) * MICROSECONDS for name in ("mean", "p50", "p90", "p99", "p999", "max")}
    return {"count": summary.count} | micro


def _priorities_table(asked: Asked) -> Table:
    """A table with a column per priority."""
    loads = {name: getattr(asked.done.priorities, name) for name in PRIORITIES}
    table = Table("requests by priority, whole run", *(f"{name}" for name in loads))
    for column in table.columns[1:]:
        column.justify = "right"
    for outcome in OUTCOMES:
        table.add_row(outcome, *(f"{getattr(load, outcome):,}" for load in loads.values()))
    for name in ("p50", "p99", "max"):
        figures = (latency(getattr(load.latency, name)) if load.answered else "-" for load in loads.values())
        table.add_row(f"latency, {'highest' if name == 'max' else name}", *figures)
    return table


def _table(asked: Asked) -> Table:
    """A table with a line per figure."""
    load, queries = asked.done.load, asked.remote.queries_per_request
    late, of = load.latency, " of those answered" if load.unanswered_counted else ""
    offered = latency(load.p99_offered) if math.isfinite(load.p99_offered) else "more than any answer's"
    rows = [
        ("connections", f"{asked.connections:,}"),
        ("streams per connection", f"{asked.streams:,}"),
        ("queries per request", f"{queries:,}"),
        ("incoming requests/s", rate(load.incoming_per_second)),
        ("answered requests/s", rate(load.measured_per_second)),
        *([("answered queries/s", rate(load.measured_per_second * queries))] if queries > 1 else []),
        (f"latency, average{of}", latency(late.mean)),
        (f"latency, p50{of}", latency(late.p50)),
        (f"latency, p90{of}", latency(late.p90)),
        (f"latency, p99{of}", latency(late.p99)),
        *([("latency, p99, unanswered as slowest", offered)] if load.unanswered_counted else []),
        (f"latency, p99.9{of}", latency(late.p999)),
        (f"latency, highest{of}", latency(late.max)),
        ("latencies", f"{late.count:,}"),
        *([("refused after, p99", latency(load.refusal.p99))] if load.refusal.count else []),
        ("generator late, p99", latency(load.lateness_p99)),
        ("generator late, most", latency(load.lateness_max)),
        *((name, f"{count:,}") for name, count in asked.outcomes.items()),
        ("windows", f"{load.windows}{'' if load.stable else ', not stable'}"),
    ]
    table = Table(show_header=False)
    table.add_column("what")
    table.add_column("figure", justify="right")
    for name, figure in rows:
        table.add_row(name, figure)
    return table


def _notes(asked: Asked) -> list[str]:
    """Notes that a reader of the table needs."""
    done, ended = asked.done, asked.outcomes
    notes = []
    if ended["refused"]:
        said = f" ({printable(done.refusal)})" if done.refusal else ""
        notes.append(f"{ended['refused']:,} requests were refused{said}: p99 covers admitted ones only.")
    if ended["late"]:
        notes.append(f"{ended['late']:,} requests missed their deadline and have no latency.")
    if ended["failed"]:
        notes.append(
            f"{ended['failed']:,} requests failed. The server's message for the first: {printable(done.failure)}"
        )
    if ended["lost"]:
        notes.append(f"{ended['lost']:,} requests were lost with their connection, or never answered.")
    if ended["unsent"]:
        notes.append(
            f"{ended['unsent']:,} requests were still waiting for a stream when the load ended: the server did not "
            "keep up, or there are too few --connections."
        )
    if done.connections_lost:
        notes.append(f"{done.connections_lost:,} connections ended during the load and were reopened.")
    return notes


def show_result(asked: Asked, *, as_json: bool) -> None:
    """Prints the results, and exits with a non-zero status if the load was stopped or nothing was answered."""
    if as_json:
        typer.echo(json.dumps(as_dict(asked), indent=2))
    else:
        console = show.stdout()
        console.print(f"{asked.place.model} at {asked.place.authority} ({asked.place.scheme})", markup=False)
        console.print(_table(asked))
        if asked.done.priorities is not None:
            console.print(_priorities_table(asked))
        if asked.local:
            console.print("Server and load share this machine.", markup=False, style="dim")
        if asked.disturbed or not asked.local:
            show.print_quiet(console, asked.disturbed)
        for note in _notes(asked):
            console.print(note, markup=False, soft_wrap=True)
    if asked.done.load.interrupted:
        raise typer.Exit(STATUS_INTERRUPTED)
    if asked.outcomes["answered"] == 0:
        report(f"no request was answered by {asked.place.authority}")
        raise typer.Exit(STATUS_FAILURE)
