"""The page made from the results files of a folder: `headrace results render`."""

from pathlib import Path

from headrace.errors import DataError
from headrace.profiles import STAGES, Json
from headrace.results import accepted, describe, share_of_roof
from headrace.tables import figure as figure_text
from headrace.text import read_json


def _line(figure: Json) -> str:
    roof = figure.get("roof")
    least, most = figure["spread"]
    cells = [
        f"`{figure['id']}`",
        f"{figure_text(figure['value'])} {figure['unit']}",
        f"{figure_text(roof)} ({figure['roof_is']})" if roof else "-",
        f"{share_of_roof(figure):.1%}" if roof else "-",
        f"{figure_text(least)} to {figure_text(most)}, {figure['samples']}",
        describe(figure["conditions"]),
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
    lines += [_line(figure) for figure in content["rows"] if accepted(figure)]
    disturbed = [figure for figure in content["rows"] if figure["conditions"].get("disturbed")]
    lines += [""] if disturbed else []
    lines += [f"- `{figure['id']}` is no result: {figure['conditions']['disturbed']}" for figure in disturbed]
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
            sections.append(_section(path, read_json(path)))
        except KeyError as error:
            raise DataError(f"{path}: not a results file: it lacks {error}") from None
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise DataError(f"{path}: not a results file: {error}") from None
    return "\n\n".join(sections) + "\n"
