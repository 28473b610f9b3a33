"""`headrace doctor`: finds what is wrong with this machine, and how to fix it."""

import json
from dataclasses import asdict

import typer

from headrace import doctor as examination
from headrace.cli import options, show
from headrace.cli.errors import STATUS_FAILURE
from headrace.doctor import DeviceFacts, Finding, MachineFacts
from headrace.units import GIGA

_LINES_MOST = 10


def lines(facts: MachineFacts, findings: list[Finding]) -> list[str]:
    """At most ten lines, worst first."""
    absent = examination.no_gpu(facts)
    said = [absent] if absent else []
    if not findings:
        return [*said, *(_healthy(one) for one in facts.devices[: _LINES_MOST - 1]), "Nothing is wrong."]
    most = _LINES_MOST - len(said)
    shown = [finding.line for finding in findings[:most]]
    if len(findings) > most:
        shown[-1] = f"and {len(findings) - most + 1} more: headrace doctor --json lists them"
    return [*said, *shown]


def _healthy(one: DeviceFacts) -> str:
    if one.pinned_rate is None:
        return f"{one.name} ({one.model})"
    roof = f" of {one.link_rate / GIGA:.3g}" if one.link_rate else ""
    return f"{one.name} ({one.model}): {one.pinned_rate / GIGA:.3g}{roof} GB/s from pinned memory"


def doctor(as_json: options.JsonOption = False) -> None:
    """Check this machine for problems and show how to fix them, in at most ten lines.

    Exit status: 0 if there is no problem, 1 otherwise. A missing GPU is not a problem.

    Example: headrace doctor
    """
    with show.progress_bar("Looking") as bar:
        facts = examination.gather(bar)
    findings = examination.examine(facts)
    if as_json:
        known = asdict(facts) | {"process_nodes": sorted(facts.process_nodes)}
        found = [asdict(one) for one in findings]
        typer.echo(
            json.dumps(
                {
                    "healthy": not findings,
                    "no_gpu": examination.no_gpu(facts) or None,
                    "findings": found,
                    "facts": known,
                },
                indent=2,
            )
        )
    else:
        console = show.stdout()
        for line in lines(facts, findings):
            console.print(line, markup=False, soft_wrap=True)
    if findings:
        raise typer.Exit(STATUS_FAILURE)
