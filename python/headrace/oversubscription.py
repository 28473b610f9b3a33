"""Interprets oversubscription cells: as JSON, and as the claimed figures."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from statistics import median

from headrace._core import OversubscriptionReport, OversubscriptionResult
from headrace.profiles import Json
from headrace.results import row
from headrace.units import GIGA

SEQUENTIAL = ("grid-stride", "block-stride")
_OPERATIONS = {"read": "", "write": ".write", "read-modify-write": ".rmw"}  # suffix of an id
_GAIN_FACTOR = 2.0


def pattern_name(cell: Json) -> str:
    """The pattern, with the order of rows if it has one: "random-warp", "zipf-rows, scattered"."""
    return f"{cell['pattern']}, {cell['rows']}" if "rows" in cell else str(cell["pattern"])


def _cell(result: OversubscriptionResult) -> Json:
    cell = result.cell
    made: Json = {"pattern": cell.pattern}
    if cell.pattern == "zipf-rows":
        made["rows"] = cell.rows
    made |= {
        "operation": cell.operation,
        "strategy": cell.strategy,
        "factor": cell.factor,
        "page_bytes": cell.page_bytes,
        "threads": cell.threads,
        "synchronised": cell.synchronised,
        "data_bytes": result.data_bytes,
    }
    if not result.times:
        return made | {"note": result.note}
    return made | {
        "blocks": result.blocks,
        "touched_bytes": result.touched_bytes,
        "device_bytes": result.device_bytes,
        "host_bytes": result.host_bytes,
        "gb_per_s": result.bytes_per_second / GIGA,
        "roof_gb_per_s": result.roof / GIGA,
        "runs_gb_per_s": [result.touched_bytes / seconds / GIGA for seconds in result.times],
        "verified": result.verified,
    }


def as_dict(report: OversubscriptionReport) -> Json:
    """A complete report: budget, roofs and cells. A cell without gb_per_s was not run, and its note says why."""
    roofs = [
        {
            "operation": roofs.operation,
            "on_device_gb_per_s": roofs.on_device / GIGA,
            "over_link_gb_per_s": roofs.over_link / GIGA,
        }
        for roofs in report.roofs
    ]
    made: Json = {"budget_bytes": report.budget_bytes, "roofs": roofs}
    if report.copy_to_device:
        made["copy_to_device_gb_per_s"] = report.copy_to_device / GIGA
    return made | {"cells": [_cell(result) for result in report.cells]}


def measured(cells: Iterable[Json]) -> list[Json]:
    """The cells with a valid figure."""
    return [cell for cell in cells if cell.get("verified")]


def best(cells: Iterable[Json]) -> Json | None:
    """The fastest cell."""
    return max(cells, key=lambda cell: cell["gb_per_s"], default=None)


def _conditions(cell: Json, budget_bytes: int) -> Json:
    kept = ("operation", "strategy", "factor", "page_bytes", "threads", "synchronised", "blocks", "gb_per_s")
    about = {"pattern": pattern_name(cell)} | {key: cell[key] for key in kept}
    return about | {"budget_bytes": budget_bytes, "verified": True}


def _interleaved_share(cells: Sequence[Json], budget_bytes: int) -> list[Json]:
    """The worst of the sequential cells above factor 1, each with its best launch shape."""
    groups: dict[tuple[str, str, float], list[Json]] = {}
    for cell in cells:
        if cell["strategy"] == "interleaved" and cell["pattern"] in SEQUENTIAL and cell["factor"] > 1:
            groups.setdefault((cell["pattern"], cell["operation"], cell["factor"]), []).append(cell)
    found = [one for group in groups.values() if (one := best(group))]
    if not found:
        return []
    worst = min(found, key=lambda cell: cell["gb_per_s"] / cell["roof_gb_per_s"])
    shares = [gb_per_s / worst["roof_gb_per_s"] for gb_per_s in worst["runs_gb_per_s"]]
    about = _conditions(worst, budget_bytes) | {"roof_gb_per_s": worst["roof_gb_per_s"], "cells": len(found)}
    return [row("span.interleaved.share", shares, "fraction", (1.0, "memory and link together"), about)]


def _drawn_bytes(cell: Json) -> int:
    """The page size that random-warp draws, which makes it a different pattern; 0 for other patterns."""
    return int(cell["page_bytes"]) if cell["pattern"] == "random-warp" else 0


def _gain(
    identity: str,
    cells: Sequence[Json],
    budget_bytes: int,
    ours: Callable[[Json], bool],
    theirs: Callable[[Json], bool],
    operation: str = "read",
) -> list[Json]:
    """The ratio of our best to their best at factor 2; for random-warp, where both draw pages of the same size."""
    at_two = [cell for cell in cells if cell["factor"] == _GAIN_FACTOR and cell["operation"] == operation]
    won = None
    for drawn in {_drawn_bytes(cell) for cell in at_two}:
        same = [cell for cell in at_two if _drawn_bytes(cell) == drawn]
        better, plain = best(filter(ours, same)), best(filter(theirs, same))
        if (
            better
            and plain
            and (won is None or better["gb_per_s"] * won[1]["gb_per_s"] > won[0]["gb_per_s"] * plain["gb_per_s"])
        ):
            won = (better, plain)
    if won is None:
        return []
    better, plain = won
    against = median(plain["runs_gb_per_s"])
    about = _conditions(better, budget_bytes) | {"over": plain["strategy"], "over_gb_per_s": plain["gb_per_s"]}
    return [row(identity, [gb_per_s / against for gb_per_s in better["runs_gb_per_s"]], "ratio", None, about)]


def rows(content: Json) -> list[Json]:
    """The claimed figures whose cells were run and verified, from the content of as_dict()."""
    cells, budget_bytes = measured(content["cells"]), content["budget_bytes"]
    made = _interleaved_share(cells, budget_bytes)
    for order, operation in product(("ordered", "scattered"), _OPERATIONS):
        of_order = [cell for cell in cells if cell.get("rows") == order]
        made += _gain(
            f"span.budget.zipf_{order}{_OPERATIONS[operation]}.gain",
            of_order,
            budget_bytes,
            lambda cell: cell["strategy"] == "by-budget",
            lambda cell: cell["strategy"] == "interleaved",
            operation,
        )
    random = [cell for cell in cells if cell["pattern"] == "random-warp"]
    made += _gain(
        "span.random_warp.gain",
        random,
        budget_bytes,
        lambda cell: cell["strategy"] != "zero-copy",
        lambda cell: cell["strategy"] == "zero-copy",
    )
    return made
