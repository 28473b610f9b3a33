"""The ladder's two tables as text cells, for the terminal and the report."""

from dataclasses import dataclass

from headrace import quiet
from headrace.profiles import STAGES, Json

NONE = "-"
_THOUSAND = 1000
_LAST_KNOWN = 11  # rungs up to this one are known techniques; see docs/ladder.md
OWN_TITLE = "Headrace's own"


def rate(per_second: float) -> str:
    """Text such as "123,456": a whole number, because further digits are noise."""
    return f"{per_second:,.0f}"


def short_rate(per_second: float) -> str:
    """Text such as "123 K" or "1.69 M"."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if per_second >= scale * 0.9995:
            return f"{per_second / scale:.3g} {unit}"
    return f"{per_second:.3g}"


def latency(seconds: float) -> str:
    """Text such as "85.2 us", "1.25 ms" or "2.1 s"."""
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < _THOUSAND:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def figure(value: float) -> str:
    """A figure of any unit: a whole number from a thousand on, else three digits."""
    return f"{value:,.0f}" if abs(value) >= _THOUSAND else f"{value:.3g}"


def micro(value_us: float) -> str:
    """A time given in microseconds, formatted as by latency()."""
    return latency(value_us / 1e6)


def is_own(entry: Json) -> bool:
    """Whether a rung is one of Headrace's own techniques."""
    return int(entry["rung"].split()[0]) > _LAST_KNOWN


@dataclass(frozen=True)
class Column:
    """A column: its key, its heading of one or two lines, and whether a narrow table includes it."""

    key: str
    heading: str
    narrow: bool = True


_COLUMNS = (
    Column("mean", "average"),
    Column("p50", "p50", narrow=False),
    Column("p99", "p99"),
    Column("throughput", "queries/s"),
    Column("threads", "threads"),
    Column("streams", "streams\n/thread"),
    Column("batch", "batch"),
    Column("generators", "gene-\nrators"),
    Column("parallelism", "paral-\nlelism"),
    Column("roof", "roof"),
    Column("roof_is", "which", narrow=False),
    Column("share", "share\nof roof"),
)


def cells(entry: Json) -> dict[str, str]:
    """A rung's figures by column; empty without a load."""
    load = entry.get("load")
    if load is None:
        return {column.key: NONE for column in _COLUMNS}
    plan = entry["plan"]
    on_host = plan["schedule"] != "dispatched"  # where clients are the only threads
    at_once = plan["threads"] * plan["streams_per_thread"] * plan["batch_max"]
    if plan["streams"] == "shared":
        at_once = plan["batch_max"]
    roof, disturbed = entry.get("roof"), entry.get("disturbed", "")
    return {
        "mean": micro(load["latency_us"]["mean"]),
        "p50": micro(load["latency_us"]["p50"]),
        "p99": micro(load["latency_us"]["p99"]),
        "throughput": rate(load["measured_per_second"]) + ("!" if disturbed else ""),
        "threads": str(plan["threads"]) if on_host else NONE,
        "streams": str(plan["streams_per_thread"]) if on_host else NONE,
        "batch": str(plan["batch_max"]),
        "generators": str(entry["generators"]),
        "parallelism": str(at_once) if on_host else NONE,
        "roof": short_rate(roof) if roof else NONE,
        "roof_is": entry["roof_is"] if roof else NONE,
        "share": quiet.share_text(load["measured_per_second"] / roof, disturbed) if roof else NONE,
    }


def columns(entries: list[Json], *, narrow: bool) -> list[Column]:
    """The columns that a table of these rungs needs; batches and generators only if some rung has several."""
    found = [entry for entry in entries if entry.get("load")]
    needless = set()
    if all(entry["plan"]["batch_max"] == 1 for entry in found):
        needless.add("batch")
    if all(entry["generators"] == 1 for entry in found):
        needless.add("generators")
    if not any(entry.get("roof") for entry in found):
        needless |= {"roof", "roof_is", "share"}
    return [column for column in _COLUMNS if column.key not in needless and (column.narrow or not narrow)]


def has_stages(entry: Json) -> bool:
    """Whether stage times were sampled for some of the rung's queries."""
    return bool(entry.get("load")) and any(entry["stages_us"][stage] for stage in STAGES)


def stage_cells(entry: Json) -> list[str]:
    """The mean microseconds of each stage."""
    if not has_stages(entry):
        return [NONE] * len(STAGES)
    return [f"{entry['stages_us'][stage]:.1f}" for stage in STAGES]


def notes(entries: list[Json]) -> list[str]:
    """Reasons why rungs have no figures, and remarks on those that have."""
    said = []
    for entry in entries:
        number = entry["rung"].split()[0]
        if entry.get("disturbed"):
            said.append(f"rung {number}!: no result, the machine was disturbed: {entry['disturbed']}")
        if entry["note"]:
            said.append(f"rung {number}: {entry['note']}")
    return said


def time_unit(seconds: float) -> tuple[str, float]:
    """A suitable unit for a time, and its length in seconds."""
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12), ("fs", 1e-15))
    return next((one for one in units if abs(seconds) >= one[1]), ("as", 1e-18))


def short_time(seconds: float) -> str:
    """A time in a suitable unit, such as "2.335 fs"."""
    unit, size = time_unit(seconds)
    return f"{seconds / size:.4g} {unit}"
