"""The one form of every measured figure: written by `--save`, and made into a page by `headrace results render`."""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from headrace._core import Device, LadderResult, Roofs, RungResult
from headrace.errors import DataError, UsageError

Json = dict[str, Any]

_NAMED_RUNGS_FROM = 12
_MICRO = 1e6
_FIRST_BOUND = 0.5e-3
_TIGHT_BOUND = 0.1e-3


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine(device: Device) -> Json:
    """What a figure was measured on. `name` is like h100-16 or cpu-2: the device's model and the number of cores."""
    cores = len(os.sched_getaffinity(0))
    properties = device.properties
    model = re.search(r"\b([A-Za-z]+\d+[A-Za-z]*)\b", properties.name) if device.kind.name == "cuda" else None
    kind = model.group(1).lower() if model else device.kind.name
    return {
        "name": f"{kind}-{cores}",
        "device": properties.name,
        "driver": properties.driver,
        "cuda": properties.runtime,
        "cpu": _cpu_model(),
        "cores": cores,
        "kernel": ".".join(platform.release().split(".")[:2]),
    }


def _git(*arguments: str) -> str | None:
    try:
        folder = Path(__file__).parent
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit() -> str | None:
    """The commit that the package lies in, with -dirty behind it where files differ.

    Outside a repository it is what HEADRACE_COMMIT in the environment says, or None.
    """
    revision = _git("rev-parse", "--short", "HEAD")
    if revision is None:
        return os.environ.get("HEADRACE_COMMIT")
    return f"{revision}-dirty" if _git("status", "--porcelain", "--untracked-files=no") else revision


def _command() -> str:
    """The command that was called, with files by name alone: where they lay says nothing elsewhere."""
    return shlex.join(["headrace", *(Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:])])


def document(topic: str, device: Device, rows: list[Json], **more: Any) -> Json:  # noqa: ANN401
    """The whole of a results file."""
    return {
        "topic": topic,
        "machine": machine(device),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": _command(),
        "rows": rows,
        **more,
    }


def row(identity: str, values: Sequence[float], unit: str, roof: tuple[float, str] | None, conditions: Json) -> Json:
    """One figure: the median of `values`, each from a measurement of its own."""
    figure: Json = {"id": identity, "value": median(values), "unit": unit}
    if roof:
        figure |= {"roof": roof[0], "roof_is": roof[1]}
    return figure | {"spread": [min(values), max(values)], "samples": len(values), "conditions": conditions}


def roofs_as_dict(roofs: Roofs) -> Json:
    """Roofs in queries per second, for JSON."""
    names = ("link_in", "link_out", "compute", "generator", "generators", "lowest", "lowest_name")
    return {name: getattr(roofs, name) for name in names}


def rung_name(rung: RungResult) -> str:
    """How ids name a rung: rung01 to rung11 for those of the seed document, those after by their own id."""
    number = rung.rung.number
    return f"rung{number:02d}" if number < _NAMED_RUNGS_FROM else rung.rung.id


def _conditions(result: RungResult, shared: Json) -> Json:
    load = result.load
    assert load is not None
    plan = result.plan
    return {
        "rung": result.rung.id,
        "schedule": plan.schedule,
        "threads": plan.threads,
        "streams_per_thread": plan.streams_per_thread,
        "slots": plan.slots,
        "mean_us": load.latency.mean * _MICRO,
        "p50_us": load.latency.p50 * _MICRO,
        "p99_us": load.latency.p99 * _MICRO,
        "generator_late_p99_us": load.lateness_p99 * _MICRO,
        "incoming": load.incoming_per_second,
        **shared,
        "verified": load.wrong == 0 and load.failed == 0,
    }


def _best_ids(operator: str, device: Device, bound: float) -> list[str]:
    """The ids under which the best rung's figure counts."""
    ids = []
    if operator == "light" and device.kind.name == "cpu" and bound == _FIRST_BOUND:
        ids.append("first.light.qps")
    if operator == "light" and bound == _TIGHT_BOUND:
        ids.append("ladder.light.qps")
    return ids


def ladder_rows(climbs: list[LadderResult], operator: str, device: Device, bound: float, shared: Json) -> list[Json]:
    """The rows of repeated climbs: one a rung, the best rung's under the ids that ask for it, and the generator's."""
    roof = (median(climb.roofs.lowest for climb in climbs), climbs[-1].roofs.lowest_name)
    by_rung: dict[int, list[RungResult]] = {}
    for climb in climbs:
        for result in climb.rungs:
            if result.load is not None:
                by_rung.setdefault(result.rung.number, []).append(result)
    rows = []
    best: Json | None = None
    for results in by_rung.values():
        values = [result.load.measured_per_second for result in results if result.load is not None]
        typical = min(results, key=lambda result: abs(result.load.measured_per_second - median(values)))  # type: ignore[union-attr]
        name = f"ladder.{operator}.{rung_name(typical)}.qps"
        rows.append(row(name, values, "queries/s", roof, _conditions(typical, shared)))
        if best is None or rows[-1]["value"] > best["value"]:
            best = rows[-1]
    if best is not None:
        rows += [best | {"id": identity} for identity in _best_ids(operator, device, bound)]
    ceiling = [climb.roofs.generator for climb in climbs]
    identity = "first.generator.per_thread" if device.kind.name == "cpu" else "ladder.generator.qps"
    rows.append(
        row(identity, ceiling, "arrivals/s", None, {"against": "an engine that does nothing", "verified": True})
    )
    return rows


def profile(climb: LadderResult) -> list[Json]:
    """Where each rung's time goes: the mean microseconds of its stages, and what more threads bring."""
    stages = ("queue", "host", "copy_in", "kernel", "copy_out", "notify")
    return [
        {
            "rung": f"{result.rung.number} {result.rung.id}",
            "stages_us": {stage: getattr(result.stages, stage) * _MICRO for stage in stages},
            "capacity": {str(capacity.threads): capacity.per_second for capacity in result.capacities},
            "note": result.note,
        }
        for result in climb.rungs
    ]


def save(path: Path, content: Json) -> None:
    """Writes a results file whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def topic_of(path: Path, device: Device) -> str:
    """The topic that `<topic>.<machine>.json` names.

    Raises:
        UsageError: when the name is not of that form, or names another machine.
    """
    name = machine(device)["name"]
    topic, _, rest = path.name.partition(".")
    if not topic or rest != f"{name}.json":
        raise UsageError(f"results of this machine go to <topic>.{name}.json, not {path.name}")
    return topic


def _number(value: float) -> str:
    thousand = 1000
    return f"{value:,.0f}" if abs(value) >= thousand else f"{value:.3g}"


def _line(figure: Json) -> str:
    roof = figure.get("roof")
    least, most = figure["spread"]
    conditions = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figure["conditions"].items()
        if name != "verified"
    )
    cells = [
        f"`{figure['id']}`",
        f"{_number(figure['value'])} {figure['unit']}",
        f"{_number(roof)} ({figure['roof_is']})" if roof else "-",
        f"{figure['value'] / roof:.1%}" if roof else "-",
        f"{_number(least)} to {_number(most)}, {figure['samples']}",
        conditions,
    ]
    return f"| {' | '.join(cells)} |"


def _profile_lines(entries: list[Json]) -> list[str]:
    """The profile as a table: stages of the queries sampled at the best rate, and capacity by thread count."""
    counts = sorted({count for entry in entries for count in entry["capacity"]}, key=int)
    stages = ["queue", "host", "copy_in", "kernel", "copy_out", "notify"]
    headings = ["rung", *(f"{stage.replace('_', ' ')}, us" for stage in stages)]
    headings += [f"{count} thread{'' if count == '1' else 's'}" for count in counts]
    lines = [
        "",
        "Mean time in each stage at the best rate, and queries/s of so many threads when nothing bounds latency:",
        "",
        f"| {' | '.join(headings)} |",
        f"|{'---|' * len(headings)}",
    ]
    for entry in entries:
        if not entry["capacity"]:
            continue
        times = [f"{entry['stages_us'][stage]:.1f}" for stage in stages]
        rates = [_number(entry["capacity"][count]) if count in entry["capacity"] else "" for count in counts]
        lines.append(f"| {' | '.join([entry['rung'], *times, *rates])} |")
    notes = [f"- rung {entry['rung']}: {entry['note']}" for entry in entries if entry["note"]]
    return [*lines, *([""] if notes else []), *notes]


def _section(path: Path, content: Json) -> str:
    where = content["machine"]
    driver = f", driver {where['driver']}, CUDA {where['cuda']}" if where["driver"] else ""
    lines = [
        f"## {content['topic']} on {where['name']}",
        "",
        f"{where['device']}{driver}; {where['cpu']}, {where['cores']} cores, Linux {where['kernel']}. "
        f"{content['date']}, commit {content['commit']}: `{content['command']}` ([{path.name}]({path.name}))",
        "",
        "| id | achieved | roof | share | spread, samples | conditions |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(figure) for figure in content["rows"] if figure["conditions"].get("verified") is not False]
    if content.get("profile"):
        lines += _profile_lines(content["profile"])
    return "\n".join(lines)


def render(folder: Path) -> str:
    """The page that shows every results file of a folder.

    Raises:
        DataError: naming the file that is not of the form, and what it lacks.
    """
    head = (
        "# Results\n\nEvery figure beside its roof, the limit that the hardware sets for that work, measured in the "
        "same run. Made from the JSON files beside it by `headrace results render`; do not edit."
    )
    sections = [head]
    for path in sorted(folder.glob("*.json")):
        try:
            sections.append(_section(path, json.loads(path.read_text(encoding="utf-8"))))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: not JSON: {error}") from None
        except KeyError as error:
            raise DataError(f"{path}: not a results file: it lacks {error}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path}: not a results file: {error}") from None
    return "\n\n".join(sections) + "\n"
