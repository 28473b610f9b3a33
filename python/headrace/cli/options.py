"""Options shared by several verbs, and their parsers."""

import math
import re
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headrace import Device, Index, Operator, UsageError, light, outputs, retrieval
from headrace.cli.dense_options import Dense
from headrace.operators import files, reference
from headrace.text import printable, shortened

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_BLOCK_THREADS = 128
_SECONDS_MOST = 1e9  # some 31 years, the limit in C++
_COUNT_MOST = (1 << 63) - 1
_NUMBER = r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"


def duration(text: str) -> float:
    """Parses seconds such as "0.5ms", "100us" or "10s"; above 0 and at most 10^9."""
    match = re.fullmatch(rf"{_NUMBER}\s*(ns|us|ms|s|min)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise typer.BadParameter(f"'{text}' is not a time above 0 with a unit, such as 100us, 0.5ms or 10s")
    value = float(match[1])
    # Dividing by a whole number gives the exact float of the literal 0.0005, which multiplication may miss.
    seconds = value / round(1 / _SECONDS[match[2]]) if _SECONDS[match[2]] < 1 else value * _SECONDS[match[2]]
    if not 0 < seconds <= _SECONDS_MOST:
        raise typer.BadParameter(f"a time must be above 0 and at most {_SECONDS_MOST:g} s, not {shortened(text)}")
    return seconds


def rate(text: str) -> float:
    """Parses queries per second such as "20000", "20K" or "1.5M"; above 0."""
    match = re.fullmatch(rf"{_NUMBER}\s*([kKmMgG]?)", text.strip())
    if match is None:
        raise typer.BadParameter(f"'{text}' is not a rate in queries/s, such as 20000, 20K or 1.5M")
    value = float(match[1]) * _SCALE[match[2].lower()]
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"a rate must be above 0 queries/s, and a number, not {shortened(text)}")
    return value


def count(text: str) -> int:
    """Parses a whole number such as "20000", "20K" or "1.5M"; 0 or more."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG]?)", text.strip())
    value = Decimal(match[1]) * int(_SCALE[match[2].lower()]) if match else None
    if value is None or value != int(value):
        raise typer.BadParameter(f"'{text}' is not a whole number, such as 20000, 20K or 1.5M")
    if value > _COUNT_MOST:
        raise typer.BadParameter(f"{shortened(text)} is more than {_COUNT_MOST:,}")
    return int(value)


class OperatorName(StrEnum):
    """The shipped operators."""

    light = "light"
    reference = "reference"
    retrieval = "retrieval"
    mlp = "mlp"
    topk = "topk"
    lookup = "lookup"


class Arrivals(StrEnum):
    """Arrival processes that have a rate."""

    poisson = "poisson"
    constant = "constant"


DeviceOption = Annotated[
    str, typer.Option("--device", help="Device: cpu, cuda:0, ...; best is the first in the list of headrace devices.")
]


def _reserve_stdout(wanted: bool) -> bool:
    """Keeps the files of a command separate from the JSON that it prints."""
    outputs.reserve_standard_output(wanted)
    return wanted


JsonOption = Annotated[
    bool, typer.Option("--json", callback=_reserve_stdout, help="Print JSON and nothing else on stdout.")
]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="PORT|FILE",
        help="Export Prometheus metrics on a port (9100, 0.0.0.0:9100) or to a file (x.prom).",
    ),
]
OperatorOption = Annotated[
    str,
    typer.Option(
        "--operator",
        metavar="NAME",
        help="Operator: light, reference, retrieval, mlp, topk, lookup, FILE.py:NAME (Python) or FILE.so (C++).",
    ),
]
ShippedOption = Annotated[OperatorName, typer.Option("--operator", help="Operator that answers the queries.")]
IndexOption = Annotated[
    Path | None, typer.Option("--index", readable=False, help="retrieval: index file made by headrace index build.")
]
BoundOption = Annotated[
    float,
    typer.Option("--bound", parser=duration, metavar="TIME", help="Latency bound on p99, such as 0.5ms or 100us."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of arrivals and queries.")]
GeneratorsOption = Annotated[
    int, typer.Option("--generators", min=1, max=64, help="Threads that generate load, each with its own client.")
]
ArrivalsOption = Annotated[
    Arrivals, typer.Option("--arrivals", help="Gaps between queries: poisson (random) or constant.")
]
ThreadsMaxOption = Annotated[
    int,
    typer.Option(
        "--threads-max",
        min=0,
        max=1024,
        help="Maximum number of engine threads to try; 0 means one per remaining core.",
    ),
]
WindowOption = Annotated[
    float, typer.Option("--window", parser=duration, metavar="TIME", help="Minimum length of a measuring window.")
]
ToleranceOption = Annotated[
    float, typer.Option("--tolerance", min=0.0005, max=0.01, help="Precision of p99, as an error of its rank.")
]
ResultsOption = Annotated[
    Path | None,
    typer.Option("--save", readable=False, help="Write the results file docs/results/<topic>.<machine>.json."),
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", readable=False, help="Write a page with plots; needs matplotlib.")
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="light, reference: number of multiply-adds in a chain.")
]
QueryBytesOption = Annotated[int | None, typer.Option("--query-bytes", help="light, reference: bytes per query.")]
AnswerBytesOption = Annotated[int | None, typer.Option("--answer-bytes", help="reference: bytes per answer.")]
BlocksOption = Annotated[int | None, typer.Option("--blocks", help="reference: blocks per query.")]
BlockThreadsOption = Annotated[int | None, typer.Option("--block-threads", help="All operators: threads per block.")]


def find_device(name: str) -> Device:
    """The device of --device."""
    return Device.parse(name)


def make_operator(
    name: str,
    index: Path | None = None,
    *,
    steps: int | None = None,
    query_bytes: int | None = None,
    answer_bytes: int | None = None,
    blocks: int | None = None,
    block_threads: int | None = None,
    dense: Dense | None = None,
) -> Operator:
    """Makes the operator with the given parameters.

    Raises:
        UsageError: for a parameter that the operator does not have, retrieval without an index, or a name that is
            neither one of OperatorName nor an operator in a file.
    """
    given = {
        "steps": steps,
        "query_bytes": query_bytes,
        "answer_bytes": answer_bytes,
        "blocks": blocks,
        "threads": block_threads,
    }
    values = {parameter: value for parameter, value in given.items() if value is not None}
    of_dense = Dense() if dense is None else dense
    if files.is_file(name):
        if values or index is not None or of_dense != Dense():
            raise UsageError(f"operator {name} sets its parameters in its file: leave out their options")
        return files.load_operator(name)
    if name not in set(OperatorName):
        raise UsageError(
            f"there is no operator '{printable(name)}': choose {', '.join(OperatorName)}, FILE.py:NAME or FILE.so"
        )
    has = {
        OperatorName.light: {"steps", "query_bytes", "threads"},
        OperatorName.reference: set(given),
        OperatorName.retrieval: {"threads"},
        OperatorName.mlp: {"threads"},
        OperatorName.topk: {"threads"},
        OperatorName.lookup: {"threads"},
    }[OperatorName(name)]
    for parameter in sorted(values.keys() - has):
        option = "block-threads" if parameter == "threads" else parameter.replace("_", "-")
        raise UsageError(f"operator {name} has no --{option}")
    of_dense.require_none_but(name)
    if name != OperatorName.retrieval and index is not None:
        raise UsageError(f"operator {name} has no --index: that is for --operator retrieval")
    if any(value < 0 for value in values.values()):
        raise UsageError(f"operator {name}: parameters must not be negative")
    if name == OperatorName.light:
        return light(**values)
    if name == OperatorName.reference:
        return reference(**values)
    if name in {OperatorName.mlp, OperatorName.topk, OperatorName.lookup}:
        return of_dense.make(name, values.get("threads"))
    if index is None:
        raise UsageError("operator retrieval needs --index FILE, made by: headrace index build SOURCE FILE")
    return retrieval(Index.load(index), threads=values.get("threads", _BLOCK_THREADS))
