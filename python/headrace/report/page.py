"""The page: a chapter per results file, each with its tables and plots."""

from collections.abc import Callable, Sequence
from html import escape

from headrace import quiet, tables
from headrace.profiles import STAGES, Json
from headrace.report import grid_plots, plots, stage_plots, style, svg
from headrace.report.curves import curves
from headrace.results import describe, share_of_roof

_STYLE = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main, header { max-width: 1120px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 36px; }
h1 { font-size: 27px; margin: 0 0 4px; font-weight: 650; }
h2 { font-size: 21px; margin: 44px 0 2px; font-weight: 650; }
h3 { font-size: 16px; margin: 0 0 2px; font-weight: 650; }
p { margin: 0 0 10px; max-width: 104ch; } .faint { color: var(--faint); font-size: 13.5px; }
code { font: 12.5px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
nav { margin: 10px 0 0; font-size: 14px; } nav a { color: var(--accent); margin-right: 16px; text-decoration: none; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
section { padding: 18px 20px; margin: 16px 0; }
.plot { overflow-x: auto; } svg { display: block; width: 100%; min-width: 720px; height: auto; }
svg text { font-family: system-ui, sans-serif; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; margin-bottom: 8px; } .plot + .wide { margin-top: 14px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th { text-align: right; font-weight: 600; color: var(--faint); vertical-align: bottom; white-space: pre; }
th, td { padding: 3px 6px; } th:last-child, td:last-child { padding-right: 0; }
td { text-align: right; border-top: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.text, th.text { text-align: left; white-space: normal; }
tr.past td { color: var(--faint); font-style: italic; padding-top: 12px; text-align: left; }
tr.none td { color: var(--faint); }
i.dot { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 8px; }
footer { max-width: 1120px; margin: 0 auto; padding: 8px 20px 40px; }
"""


_ABOUT = "conditions"  # the only text column
_TEXT = ' class="text"'


# The texts of a page: its title, its subject, and how it was measured.
_LADDER = (
    "ladder",
    "Queries per second that each technique sustains with p99 latency within a bound, beside what the hardware allows.",
    "Latency is counted from the scheduled arrival. Every answer was compared with the host's. Roofs were measured "
    "alone, in the same run.",
)
_FIGURES = (
    "figures",
    "Measured figures, beside what the hardware allows.",
    "Results were verified, and roofs were measured in the same run.",
)


def _has_ladder(content: Json) -> bool:
    return bool(content.get("setup") or content.get("profile") or content.get("single"))


def _css() -> str:
    light, dark = (style.css_variables(dark=kind) for kind in (False, True))
    return _STYLE.replace("LIGHT", light).replace("DARK", dark)


def _section(identity: str, title: str, words: str, body: str) -> str:
    return f'<section id="{identity}"><h3>{escape(title)}</h3><p class="faint">{escape(words)}</p>{body}</section>'


def _plot(drawn: str) -> str:
    return f'<div class="plot">{drawn}</div>'


def _dot(rung: str) -> str:
    colour = style.variables()[style.rung_colour(int(rung.split(maxsplit=1)[0]))]
    return f'<i class="dot" style="background:{colour}"></i>'


def _rows(entries: Sequence[Json], width: int, cells: Callable[[Json], list[str]]) -> str:
    lines = []
    own = False
    for entry in entries:
        if not own and tables.is_own(entry):
            own = True
            lines.append(f'<tr class="past"><td colspan="{width}">{tables.OWN_TITLE}</td></tr>')
        kind = "" if entry.get("load") else ' class="none"'
        figures = "".join(f"<td>{escape(cell)}</td>" for cell in cells(entry))
        lines.append(f"<tr{kind}><td>{_dot(entry['rung'])}{escape(entry['rung'])}</td>{figures}</tr>")
    return "".join(lines)


def _table(headings: Sequence[str], rows: str) -> str:
    head = "".join(f"<th{_TEXT if heading == _ABOUT else ''}>{escape(heading)}</th>" for heading in headings)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _ladder_table(entries: list[Json]) -> str:
    shown = tables.columns(entries, narrow=False)
    rows = _rows(entries, len(shown) + 1, lambda entry: [tables.cells(entry)[column.key] for column in shown])
    table = _table(["rung", *(column.heading.replace("-\n", "") for column in shown)], rows)
    return table + "".join(f'<p class="faint">{escape(note)}</p>' for note in tables.notes(entries))


def _stage_table(entries: list[Json]) -> str:
    headings = ["rung", *(f"{stage.replace('_', ' ')}, us" for stage in STAGES)]
    return _table(headings, _rows(entries, len(headings), tables.stage_cells))


def _share(row: Json, disturbed: str) -> str:
    return quiet.share_text(share_of_roof(row), disturbed)


def _figures_table(rows: Sequence[Json]) -> str:
    lines = []
    for row in rows:
        if row["conditions"].get("verified") is False:
            continue
        roof, disturbed = row.get("roof"), row["conditions"].get("disturbed", "")
        why = f"; no result, the machine was disturbed: {disturbed}" if disturbed else ""
        cells = [
            f"<td><code>{escape(row['id'])}</code></td>",
            f"<td>{tables.figure(row['value'])} {escape(row['unit'])}</td>",
            f"<td>{tables.figure(roof)}</td><td>{_share(row, disturbed)}</td>" if roof else "<td>-</td><td>-</td>",
            f'<td class="text faint">{escape(describe(row["conditions"]) + why)}</td>',
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return _table(["figure", "achieved", "roof", "share", _ABOUT], "".join(lines))


def _heading(content: Json, identity: str) -> str:
    where, setup = content["machine"], content.get("setup")
    title = content["topic"]
    words = ""
    if setup:
        title = f"{setup['operator']}, {setup['query_bytes']} B in and {setup['answer_bytes']} B out"
        words = f"p99 within {tables.micro(setup['bound_us'])}, {setup['arrivals']} arrivals, on {setup['device']}. "
    driver = f", driver {where['driver']}, CUDA {where['cuda']}" if where.get("driver") else ""
    words += f"{where['device']}{driver}; {where['cpu']}, {where['cores']} cores, Linux {where['kernel']}."
    about = f"{content['date']}, commit {content['commit'] or 'unknown'}"
    return (
        f'<h2 id="{identity}">{escape(title)}</h2><p>{escape(words)}</p>'
        f'<p class="faint">{escape(about)}: <code>{escape(content["command"])}</code></p>'
    )


def _table_sections(content: Json, identity: str, entries: list[Json], single: list[Json]) -> list[str]:
    made = []
    for key, found, title in (("all", entries, "All threads"), ("single", single, "Single thread")):
        if not found:
            continue
        seconds = content["single"].get("seconds") if key == "single" else content.get("seconds")
        words = "The highest rate that each rung sustains with p99 within the bound, every answer verified."
        if key == "single":
            words += " One engine thread and one generator in every rung."
        words += f" Climbed in {seconds:.0f} s." if seconds else ""
        made.append(_section(f"{identity}-{key}", title, words, _ladder_table(found)))
    return made


def _load_sections(content: Json, identity: str, entries: list[Json], single: list[Json]) -> list[str]:
    bound_us = _bound_us(content)
    made = []
    roofs = content.get("roofs") or content["single"]["roofs"]
    if any(entry.get("load") for entry in entries):
        words = "A diamond marks the rate of one engine thread." if single and single is not entries else ""
        drawn = plots.throughput_bars(entries, [] if single is entries else single, roofs)
        made.append(_section(f"{identity}-throughput", "Throughput per rung", words, _plot(drawn)))
    found = curves(entries)
    if found:
        made += [
            _section(
                f"{identity}-p99",
                "p99 latency against incoming throughput",
                "Every load that ran to its end. A number marks a rung at the highest rate that it sustains.",
                _plot(plots.latency_overview(found, bound_us)),
            ),
            _section(
                f"{identity}-latency",
                "Latency against incoming throughput",
                "From the scheduled arrival to the answer: p99 solid, mean dashed, p50 dotted; the bound in red.",
                _plot(plots.latency_panels(found, bound_us)),
            ),
            _section(
                f"{identity}-measured",
                "Measured against incoming throughput",
                "On the diagonal, every incoming query is answered. A full dot is the highest rate sustained within "
                "the bound; a hollow dot is a load that was given up early, measured over part of a window.",
                _plot(plots.throughput_panels(found)),
            ),
        ]
    return made


def _bound_us(content: Json) -> float:
    setup = content.get("setup")
    if setup:
        return float(setup["bound_us"])
    return float(next(row["conditions"]["bound_us"] for row in content["rows"] if "bound_us" in row["conditions"]))


def _time_sections(content: Json, identity: str, entries: list[Json]) -> list[str]:
    made = []
    if content.get("batches"):
        made.append(
            _section(
                f"{identity}-batches",
                "Batch size",
                "The same plan with different maximum batch sizes.",
                _plot(plots.batch_impact(content["batches"], _bound_us(content))),
            )
        )
    with_stages = [entry for entry in entries if tables.has_stages(entry)]
    if with_stages:
        words = "Queries sampled at the best rate. Copies and kernel are timed by the device's clock; host is the rest."
        body = _plot(stage_plots.breakdown(with_stages)) + _stage_table(with_stages)
        made.append(_section(f"{identity}-stages", "Where the time goes", words, body))
    with_samples = [entry for entry in entries if entry.get("samples")]
    if with_samples:
        words = "The last queries sampled at the best rate, one per line. Host time is drawn before the copy in."
        body = _plot(stage_plots.timelines(with_samples))
        made.append(_section(f"{identity}-timeline", "Queries through the stages", words, body))
    return made


def _grid_sections(content: Json, identity: str) -> list[str]:
    made = []
    rates = grid_plots.with_rates(content["rows"])
    if rates:
        words = "Cells that each grid advances per second, beside what the memory of its devices allows."
        drawn = svg.inline(grid_plots.rates(rates), "cells per second")
        made.append(_section(f"{identity}-rates", "Cells per second", words, _plot(drawn)))
    return made + _scaling_section(content, identity)


def _scaling_section(content: Json, identity: str) -> list[str]:
    found = grid_plots.scalings(content["rows"])
    if not found:
        return []
    words = (
        "Cells per second over the number of devices, and the efficiency of each grid: its share of that number "
        "times one device."
    )
    drawn = svg.inline(grid_plots.scaling(found), "scaling over devices")
    return [_section(f"{identity}-scaling", "Several devices", words, _plot(drawn))]


def _chapter(content: Json, identity: str) -> str:
    entries = [entry for entry in content.get("profile", []) if "load" in entry]  # older files have none
    single = content.get("single", {}).get("profile", [])
    shown = entries or single
    parts = [_heading(content, identity)]
    if shown:
        parts += _table_sections(content, identity, entries, single)
        parts += _load_sections(content, identity, shown, single)
        parts += _time_sections(content, identity, shown)
    else:
        parts += _grid_sections(content, identity)
        parts.append(
            _section(f"{identity}-figures", "Figures", "Each figure beside its roof.", _figures_table(content["rows"]))
        )
    return "".join(parts)


def _name(content: Json) -> str:
    return str(content["setup"]["operator"] if content.get("setup") else content["topic"])


def page(contents: Sequence[Json]) -> str:
    """The complete page. Contents are results files; ladders get plots, others a table of their figures."""
    names = [(f"c{number}", _name(content)) for number, content in enumerate(contents, start=1)]
    links = "".join(f'<a href="#{identity}">{escape(name)}</a>' for identity, name in names)
    with svg.styled():
        chapters = [_chapter(content, identity) for content, (identity, _) in zip(contents, names, strict=True)]
    machines = ", ".join(sorted({content["machine"]["name"] for content in contents}))
    title, words, foot = _LADDER if any(_has_ladder(content) for content in contents) else _FIGURES
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Headrace {title}, {escape(machines)}</title><style>{_css()}</style></head><body>"
        f"<header><h1>Headrace: the {title} on {escape(machines)}</h1>"
        f'<p class="faint">{words}</p>{f"<nav>{links}</nav>" if len(contents) > 1 else ""}</header>'
        f"<main>{''.join(chapters)}</main>"
        f'<footer class="faint">{foot}</footer></body></html>\n'
    )
