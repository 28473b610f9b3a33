"""`headrace each`: one program over many inputs, each in a process that sees one GPU."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace import UsageError
from headrace.cli import options, show
from headrace.cli.errors import STATUS_FAILURE
from headrace.each import (
    Again,
    Command,
    Outcome,
    Report,
    Rules,
    Runner,
    Slot,
    combine,
    cpu_slots,
    gather_inputs,
    gpu_slots,
)
from headrace.each.runner import Ending
from headrace.each.slots import gpu_count
from headrace.text import printable

_NEVER_RAN = (Ending.not_run, Ending.interrupted)


def _slots(devices: str | None, slots: int | None, per_device: int | None) -> list[Slot]:
    """The slots that processes run on."""
    names = None if devices is None else [name.strip() for name in devices.split(",")]
    on_cpu = names == ["cpu"] or (names is None and slots is not None)
    here = 0 if on_cpu else gpu_count()
    if names is None and here == 0:
        on_cpu = True
    if on_cpu and per_device is not None:
        raise UsageError("--slots-per-device is for GPUs; processes on the CPU have --slots")
    if not on_cpu and slots is not None:
        raise UsageError("--slots is for processes on the CPU; GPUs have --slots-per-device")
    return cpu_slots(slots) if on_cpu else gpu_slots(names, per_device or 1, here)


def _summary(report: Report, command: Command, slots: list[Slot], logs: Path) -> dict[str, Any]:
    return {
        "command": list(command.words),
        "devices": sorted({slot.device for slot in slots}),
        "slots": len(slots),
        "logs": str(logs),
        "seconds": report.seconds,
        "inputs": len(report.outcomes),
        "succeeded": report.count(Ending.ok),
        "failed": len(report.failures),
        "not_finished": report.count(*_NEVER_RAN),
        "interrupted_by": report.interrupted_by.name if report.interrupted_by else None,
        "resumed": sum(outcome.resumed for outcome in report.outcomes),
        "results": [
            outcome.as_dict() | {"input": outcome.text, "parts": list(outcome.parts), "last_lines": outcome.last_lines}
            for outcome in report.outcomes
        ],
    }


def _print(report: Report, logs: Path) -> None:
    console = show.stdout()
    for outcome in report.failures:
        line = f"{printable(outcome.text)}: {outcome.describe()}; {printable(str(outcome.stderr))}"
        console.print(line, markup=False, soft_wrap=True)
    unfinished = report.count(*_NEVER_RAN)
    more = f", {unfinished} not finished" if unfinished else ""
    resumed = sum(outcome.resumed for outcome in report.outcomes)
    earlier = f" ({resumed} of them earlier)" if resumed else ""
    console.print(
        f"{len(report.outcomes)} inputs: {report.count(Ending.ok)} succeeded{earlier}, {len(report.failures)} "
        f"failed{more}, in {report.seconds:.1f} s; logs in {printable(str(logs))}",
        markup=False,
        soft_wrap=True,
    )


class _Display:
    """The progress bar, with failures printed above it."""

    def __init__(self, bar: show.Bar, inputs: int) -> None:
        self._bar = bar
        self._inputs = inputs
        self._failed = 0

    def finished(self, outcome: Outcome) -> None:
        if outcome.ending in (Ending.ok, Ending.interrupted):
            return
        self._failed += 1
        tries = f" after {outcome.attempts} attempts" if outcome.attempts > 1 else ""
        self._bar.say(f"{printable(outcome.text)} on {outcome.device}: {outcome.describe()}{tries}")
        for line in outcome.last_lines:
            self._bar.say(f"  | {printable(line)}")

    def changed(self, done: int, running: int) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.describe(f"{done} of {self._inputs} done, {running} running{failed}")
        self._bar(done / self._inputs)


def each(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM [ARGUMENTS] [::: INPUTS]...",
            help="Program to run. {} is the input (appended if absent), {device} its device such as cuda:1, {index} "
            "its number from 0. Several ::: run every combination; {1}, {2} are its parts.",
            show_default=False,
        ),
    ] = None,
    inputs_from: Annotated[
        list[str] | None,
        typer.Option(
            "--inputs-from",
            metavar="FILE",
            help="Read inputs from a file, one per line; - reads stdin. May be repeated.",
        ),
    ] = None,
    null: Annotated[
        bool,
        typer.Option("--null", "-0", help="Inputs of --inputs-from are separated by NUL bytes instead of newlines."),
    ] = False,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--glob",
            metavar="PATTERN",
            help="Use the files that match as inputs, such as 'data/**/*.vtk'. May be repeated.",
        ),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices", metavar="NAMES", help="Devices to use: cuda:0,cuda:1 or cpu. Default: every GPU, else the CPU."
        ),
    ] = None,
    slots_per_device: Annotated[
        int | None, typer.Option("--slots-per-device", min=1, max=1024, help="Number of processes that share a GPU.")
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option("--slots", min=1, max=4096, help="Number of concurrent processes on the CPU; they see no GPU."),
    ] = None,
    logs: Annotated[
        Path,
        typer.Option(
            "--logs", readable=False, help="Folder for the stdout and stderr of each input; created if missing."
        ),
    ] = Path("each-logs"),
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Run only the inputs that have not succeeded in the run whose logs are in --logs."
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace the logs of an earlier run; without this option, existing logs are an error.",
        ),
    ] = False,
    retries: Annotated[
        int, typer.Option("--retries", min=0, help="Maximum number of retries of an input that fails.")
    ] = 0,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", parser=options.duration, metavar="TIME", help="Time limit of each attempt."),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            parser=options.duration,
            metavar="TIME",
            help="Time from SIGINT to SIGTERM, and from SIGTERM to SIGKILL.",
        ),
    ] = "5s",  # type: ignore[assignment]
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--stop-on-failure", help="After a failure, start the remaining inputs or start no more."
        ),
    ] = True,
    as_json: options.JsonOption = False,
) -> None:
    """Run a program once for each input; each process sees one GPU and has its own logs.

    Example: headrace each --logs logs -- ./simulate --out {index}.vtk {} ::: a.json b.json c.json
    """
    if resume and overwrite:
        raise UsageError("--resume continues the logs that --overwrite replaces: give only one of them")
    if null and not inputs_from:
        raise UsageError("-0 needs --inputs-from")
    again = Again.resume if resume else Again.overwrite if overwrite else Again.refuse
    command, sources = Command.split(words or [])
    first = gather_inputs(sources[0] if sources else [], inputs_from or [], pattern or [], null=null)
    inputs = combine([first, *sources[1:]])
    chosen = _slots(devices, slots, slots_per_device)
    rules = Rules(retries, timeout, not keep_going, grace)
    with show.progress_bar("Starting") as bar:
        display = _Display(bar, len(inputs))
        runner = Runner(command, inputs, chosen, logs, rules, again, finished=display.finished, changed=display.changed)
        report = runner.run()
    if as_json:
        typer.echo(json.dumps(_summary(report, command, chosen, logs), indent=2))
    else:
        _print(report, logs)
    if report.interrupted_by is not None:
        raise typer.Exit(128 + report.interrupted_by)
    if report.count(Ending.ok) < len(report.outcomes):
        raise typer.Exit(STATUS_FAILURE)
