"""Makes the page from the results files of a folder: `headrace results render`."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace.errors import DataError
from headrace.profiles import STAGES, Json
from headrace.results import accepted, describe, share_of_roof
from headrace.tables import figure as figure_text
from headrace.text import read_json

ABOUT = "about.toml"  # in the folder: describes what the files of each topic measure
_HEAD = """# Results

This page has every measured figure with its roof. It is made from the JSON files beside it and `about.toml` by
`headrace results render`; do not edit it.

- A row is the median of its samples. *Spread* is the least and the greatest of them.
- The *roof* is the limit that the hardware, or the program named in the row, sets for the same work. It was measured in
  the same run. *Share* is figure / roof, or roof / figure if the figure is a time.
- *Conditions* are the settings and further measurements of a row. Those with one value in the whole file stand above
  its table, and apply to the rows to which they can.
- Figures whose answers were not right are left out. A figure that was measured while the machine was disturbed is not a
  result: it is listed below the table with the reason ([how figures are measured](../measure.md)).
- To repeat a figure, check out the commit and run the command. Scripts are in `bench/`."""


def _shared(figures: list[Json]) -> Json:
    """Conditions that several figures share, with the same value wherever they occur."""
    found: dict[str, list[Any]] = {}
    for figure in figures:
        for name, value in figure["conditions"].items():
            found.setdefault(name, []).append(value)
    return {name: values[0] for name, values in found.items() if 1 < len(values) == values.count(values[0])}


def _line(figure: Json, shared: Json) -> str:
    roof = figure.get("roof")
    least, most = figure["spread"]
    cells = [
        f"`{figure['id']}`",
        f"{figure_text(figure['value'])} {figure['unit']}",
        f"{figure_text(roof)} ({figure['roof_is']})" if roof else "-",
        f"{share_of_roof(figure):.1%}" if roof else "-",
        f"{figure_text(least)} to {figure_text(most)}, {figure['samples']}",
        describe({name: value for name, value in figure["conditions"].items() if name not in shared}),
    ]
    return f"| {' | '.join(cells)} |"


def _profile_lines(entries: list[Json]) -> list[str]:
    """The profile as a table: stages of the queries sampled at the best rate, and capacity by thread count."""
    counts = sorted({count for entry in entries for count in entry["capacity"]}, key=int)
    headings = ["rung", *(f"{stage.replace('_', ' ')}, us" for stage in STAGES)]
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
        times = [f"{entry['stages_us'][stage]:.1f}" for stage in STAGES]
        rates = [figure_text(entry["capacity"][count]) if count in entry["capacity"] else "" for count in counts]
        lines.append(f"| {' | '.join([entry['rung'], *times, *rates])} |")
    notes = [f"- rung {entry['rung']}: {entry['note']}" for entry in entries if entry["note"]]
    return [*lines, *([""] if notes else []), *notes]


def _machine(where: Json) -> str:
    """A machine as a table row."""
    cells = (where["name"], where["device"], where["driver"] or "-", where["cuda"] or "-", where["cpu"])
    return f"| {' | '.join(cells)} | {where['cores']} | {where['kernel']} |"


def _machines(all_of: Iterable[Json]) -> str:
    rows = sorted({_machine(where) for where in all_of})
    return "\n".join(["| machine | device | driver | CUDA | processor | cores | Linux |", f"|{'---|' * 7}", *rows])


def _section(path: Path, content: Json, about: Json) -> str:
    figures = [figure for figure in content["rows"] if accepted(figure)]
    shared = _shared(figures)
    topic = content["topic"]
    lines = [
        f"## {topic} on {content['machine']['name']}",
        "",
        *((about[topic], "") if topic in about else ()),
        f"{content['machine']['device']}, {content['date'][:10]}, commit {content['commit']}: `{content['command']}` "
        f"([{path.name}]({path.name}))",
        "",
        *((f"Conditions of all rows to which they apply: {describe(shared)}", "") if describe(shared) else ()),
        "| id | achieved | roof | share | spread, samples | conditions |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(figure, shared) for figure in figures]
    disturbed = [figure for figure in content["rows"] if figure["conditions"].get("disturbed")]
    lines += [""] if disturbed else []
    lines += [f"- `{figure['id']}` is no result: {figure['conditions']['disturbed']}" for figure in disturbed]
    if content.get("profile"):
        lines += _profile_lines(content["profile"])
    return "\n".join(lines)


def _read_about(folder: Path) -> Json:
    path = folder / ABOUT
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def render(folder: Path) -> str:
    """The page that shows every results file of a folder.

    Raises:
        DataError: naming the invalid file, and what it lacks.
    """
    sections, machines = [], []
    about = _read_about(folder)
    for path in sorted(folder.glob("*.json")):
        try:
            content = read_json(path)
            machines.append(content["machine"])
            sections.append(_section(path, content, about))
        except KeyError as error:
            raise DataError(f"{path}: not a results file: it lacks {error}") from None
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise DataError(f"{path}: not a results file: {error}") from None
    return "\n\n".join([_HEAD, _machines(machines), *sections]) + "\n"
