"""`headrace check`: whether an operator gives equal answers under every schedule, and those of its reference."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace.cli import options
from headrace.cli.dense_options import Dense
from headrace.cli.grouped import grouped
from headrace.operators.check import Checked, Difference, check, require_sample
from headrace.operators.compiled_operator import maker_of
from headrace.operators.dense import reference_of
from headrace.text import printable

_WIDTH = 60


def _shown(value: object) -> str:
    text = printable(str(value))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _result(difference: Difference | None) -> str:
    return "equal" if difference is None else f"query {difference.number} differs"


def _as_json(operator: str, device: str, found: list[Checked]) -> str:
    plans = [
        {
            "plan": one.plan,
            "queries": one.queries,
            "difference": None
            if one.difference is None
            else {
                "query": one.difference.number,
                "expected": str(one.difference.expected),
                "answered": str(one.difference.answered),
            },
        }
        for one in found
    ]
    return json.dumps({"operator": operator, "device": device, "plans": plans}, indent=2)


@grouped
def check_operator(
    operator: Annotated[
        str,
        typer.Argument(
            help="Operator: FILE.py, FILE.py:NAME if the file has several, FILE.so, or the name of one that "
            "ships with Headrace.",
            metavar="FILE",
        ),
    ],
    device: options.DeviceOption = "cpu",
    queries: Annotated[int, typer.Option("--queries", min=1, help="Number of sample queries for each plan.")] = 200,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=0, help="Relative tolerance of floating-point numbers against the reference."),
    ] = 1e-5,
    *,
    dense: Dense,
    as_json: options.JsonOption = False,
) -> None:
    """Compare the answers of an operator under every schedule with those of its reference.

    The reference of mlp, topk and lookup is NumPy in float64; that of a shared object is its answer on the host. The
    first query whose answer differs is shown. Exit status: 0 if all answers are equal, 1 otherwise.

    Example: headrace check my_operator.py
    """
    op = options.make_operator(operator, dense=dense)
    require_sample(op)
    at = options.find_device(device)
    found = list(check(op, at, queries, tolerance))
    wrong = [one for one in found if one.difference is not None]
    if as_json:
        typer.echo(_as_json(op.name, at.name, found))
    else:
        console = Console()
        table = Table("plan", "answers", title=f"{printable(op.name)} on {at.name}, {queries} queries each")
        for one in found:
            table.add_row(one.plan, _result(one.difference), style=None if one.difference is None else "red")
        console.print(table)
        for one in wrong[:1]:
            assert one.difference is not None
            reference = "the host" if maker_of(op) is None and reference_of(op) is None else "the reference"
            against = reference if one is found[0] else "one query at a time"
            console.print(f"{one.plan}, query {one.difference.number}:", markup=False)
            console.print(f"  expected by {against}: {_shown(one.difference.expected)}", markup=False)
            console.print(f"  answered: {_shown(one.difference.answered)}", markup=False)
    if wrong:
        sys.exit(1)
