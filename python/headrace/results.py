"""The common form of all measured figures: `--save` writes it, and `headrace results` makes pages of it."""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from headrace import _core, outputs, quiet
from headrace._core import Device, LadderResult, LoadResult, Plan, RungResult
from headrace.errors import UsageError
from headrace.profiles import Json, disturbed_of, load_as_dict, roof_of
from headrace.quiet import Watch

NAMED_RUNGS_FROM = 12  # lower rungs are named by number
_TIMES = ("s", "ms", "us", "ns")
_LINE = 110
_FIRST_BOUND = 0.5e-3
_TIGHT_BOUND = 0.1e-3


def cpu_model() -> str:
    """The processor's name as given by its vendor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine(device: Device) -> Json:
    """The machine that a figure was measured on. `name` is like h100-16 or cpu-2: device model and number of cores."""
    cores = len(os.sched_getaffinity(0))
    properties = device.properties
    model = re.search(r"\b([A-Za-z]+\d+[A-Za-z]*)\b", properties.name) if device.kind.name == "cuda" else None
    kind = model.group(1).lower() if model else device.kind.name
    return {
        "name": f"{kind}-{cores}",
        "device": properties.name,
        "driver": properties.driver,
        "cuda": properties.runtime,
        "cpu": cpu_model(),
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


def built() -> dict[str, str]:
    """Build facts of the extension: `commit`, `processor` (-march), `cuda`, `cuda_architectures`; only known ones."""
    try:
        # The build puts this file beside the extension. The Python files of an editable install are elsewhere.
        text = Path(_core.__file__).with_name("_build.json").read_text(encoding="utf-8")
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def commit() -> str | None:
    """The commit of this package, followed by -dirty if files differed.

    In a working copy of Headrace this is the checked-out commit; for an installed package, the commit it was built
    from. If neither is known, it is HEADRACE_COMMIT from the environment, or None.
    """
    # A virtual environment often lies inside an unrelated repository, which does not track this file.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is not None:
        revision = _git("rev-parse", "--short", "HEAD")
        return f"{revision}-dirty" if _git("status", "--porcelain", "--untracked-files=no") else revision
    return built().get("commit") or os.environ.get("HEADRACE_COMMIT")


def _command() -> str:
    """The command line, with files reduced to their names: their folders mean nothing elsewhere."""
    program = Path(sys.argv[0])
    name = program.name if program.suffix == ".py" and program.name != "__main__.py" else "headrace"
    return shlex.join([name, *(Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:])])


def document(topic: str, device: Device, rows: list[Json], watch: Watch | None = None, **more: Any) -> Json:  # noqa: ANN401
    """A complete results file. Rows that are above their roof, or from a machine that was not quiet, are marked.

    Args:
        topic: subject of the file.
        device: the measured device.
        rows: from row(), measured while `watch` watched.
        watch: observed the machine during the measurement.
        more: further members.
    """
    disturbed = watch.stop() if watch else ""
    for figure in rows:
        above = quiet.above_roof(share_of_roof(figure), figure["roof_is"]) if figure.get("roof") else ""
        reason = figure["conditions"].get("disturbed") or above or disturbed
        if reason:
            figure["conditions"] = figure["conditions"] | {"disturbed": reason}
    if watch:
        more["quiet"] = watch.as_dict()
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
    """One figure: the median of `values`, each from its own measurement."""
    figure: Json = {"id": identity, "value": median(values), "unit": unit}
    if roof:
        figure |= {"roof": roof[0], "roof_is": roof[1]}
    return figure | {"spread": [min(values), max(values)], "samples": len(values), "conditions": conditions}


def accepted(figure: Json) -> bool:
    """Whether a row counts as a result: it was verified on a quiet machine."""
    about = figure["conditions"]
    return about.get("verified") is not False and not about.get("disturbed")


def share_of_roof(figure: Json) -> float:
    """How close a row is to its roof: 1.0 at the roof, which is a lower bound if the figure is a time."""
    share: float = figure["value"] / figure["roof"]
    return 1 / share if figure["unit"] in _TIMES else share


def rung_name(rung: RungResult) -> str:
    """How ids name a rung: rung01 to rung11, later ones by their own id."""
    number = rung.rung.number
    return f"rung{number:02d}" if number < NAMED_RUNGS_FROM else rung.rung.id


def conditions(plan: Plan, load: LoadResult, generators: int, shared: Json) -> Json:
    """The conditions of a measurement, as in every row."""
    figures = load_as_dict(load)
    latency = figures["latency_us"]
    choices = {"threads": plan.threads, "streams_per_thread": plan.streams_per_thread}
    if plan.schedule == "dispatched":  # clients are the only threads
        choices = {name: getattr(plan, name) for name in ("workers", "answer_inline") if getattr(plan, name)}
    if plan.batch_max > 1:
        choices["batch_max"] = plan.batch_max
    return {
        "schedule": plan.schedule,
        **choices,
        "slots": plan.slots,
        "mean_us": latency["mean"],
        "p50_us": latency["p50"],
        "p99_us": latency["p99"],
        "generator_late_p99_us": figures["lateness_us"]["p99"],
        "incoming": load.incoming_per_second,
        **shared,
        "generators": generators,
        "verified": load.wrong == 0 and load.failed == 0 and load.answered > 0,
    }


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def describe(about: Json) -> str:
    """Conditions as text for a table cell."""
    return ", ".join(
        f"{name} {_short(value)}" for name, value in about.items() if name not in ("verified", "disturbed")
    )


def _best_ids(operator: str, device: Device, bound: float) -> list[str]:
    """Ids that the best rung's figure also counts under."""
    ids = []
    if operator == "light" and device.kind.name == "cpu" and bound == _FIRST_BOUND:
        ids.append("first.light.qps")
    if operator == "light" and bound == _TIGHT_BOUND:
        ids.append("ladder.light.qps")
    return ids


def _rung_row(prefix: str, found: list[tuple[RungResult, LadderResult]], shared: Json) -> Json:
    values = [result.load.measured_per_second for result, _ in found if result.load is not None]
    middle = median(values)
    typical, climb = min(found, key=lambda pair: abs(pair[0].load.measured_per_second - middle))  # type: ignore[union-attr]
    assert typical.load is not None
    about = {"rung": typical.rung.id} | conditions(typical.plan, typical.load, typical.generators, shared)
    if typical.note:
        about["note"] = typical.note
    roof = roof_of(climb.roofs, typical.generators)
    disturbed = disturbed_of(typical.load, *roof, climb.roofs_disturbed)
    if disturbed:
        about["disturbed"] = disturbed
    return row(f"{prefix}.{rung_name(typical)}.qps", values, "queries/s", roof, about)


def ladder_rows(
    climbs: Sequence[LadderResult], operator: str, device: Device, bound: float, shared: Json, *, single: bool = False
) -> list[Json]:
    """The rows of repeated climbs: one per rung, the best rung's under its further ids, and the generator's.

    `single` means climbs with one engine thread, whose rows are named `ladder.<operator>.single.<rung>.qps`.
    """
    by_rung: dict[int, list[tuple[RungResult, LadderResult]]] = {}
    for climb in climbs:
        for result in climb.rungs:
            if result.load is not None:
                by_rung.setdefault(result.rung.number, []).append((result, climb))
    prefix = f"ladder.{operator}.single" if single else f"ladder.{operator}"
    rows = [_rung_row(prefix, found, shared) for _, found in sorted(by_rung.items())]
    if single:
        return rows
    if rows:
        best = max(rows, key=lambda figure: figure["value"])
        rows += [best | {"id": identity} for identity in _best_ids(operator, device, bound)]
    ceiling = [climb.roofs.generator for climb in climbs]
    on_cpu = device.kind.name == "cpu" and operator == "light"
    identity = "first.generator.per_thread" if on_cpu else f"ladder.{operator}.generator.per_thread"
    rows.append(
        row(identity, ceiling, "arrivals/s", None, {"against": "an engine that does nothing", "verified": True})
    )
    return rows


def dumps(content: Json) -> str:
    """A results file as text: indented, but lists of numbers and short objects take one line each."""
    return _text(content, 0) + "\n"


def _text(value: Any, depth: int) -> str:  # noqa: ANN401
    flat = json.dumps(value)
    if not isinstance(value, dict | list) or not value or (len(flat) <= _LINE and _is_flat(value)):
        return flat
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{outer}}}"
    return "[\n" + ",\n".join(inner + _text(part, depth + 1) for part in value) + f"\n{outer}]"


def _is_flat(value: Json | list[Any]) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return not any(isinstance(part, dict | list) for part in parts)


def save(path: Path, content: Json) -> None:
    """Writes a results file atomically."""
    outputs.write(path, dumps(content))


def topic_of(path: Path, device: Device) -> str:
    """The topic named by `<topic>.<machine>.json`; call it before the measurement whose results go there.

    Raises:
        UsageError: when the name does not have that form, or names another machine.
        SystemError: when the file cannot be written.
    """
    name = machine(device)["name"]
    topic, _, rest = path.name.partition(".")
    if not topic or rest != f"{name}.json":
        raise UsageError(f"results of this machine go to <topic>.{name}.json, not {path.name}")
    outputs.check(path)
    return topic
