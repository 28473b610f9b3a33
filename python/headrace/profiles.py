"""Data that a ladder's results file keeps besides its rows, for the report: plans, loads, stages, samples."""

import math
from collections.abc import Sequence
from typing import Any

from headrace import quiet
from headrace._core import Capacity, LadderResult, LoadResult, Plan, PlanSearch, Roofs, RungResult, StageSample
from headrace.units import MICROSECONDS

Json = dict[str, Any]

STAGES = ("queue", "host", "copy_in", "kernel", "copy_out", "notify")
TRIED = ("incoming", "measured", "mean_us", "p50_us", "p99_us", "gave_up")
SAMPLE = ("at_us", "queue", "host", "copy_in", "kernel", "copy_out")
CAPACITY = ("threads", "streams_per_thread", "batch_max", "per_second")

_TRIED_MOST = 60
_SAMPLES_MOST = 24
_DIGITS = 6


def short(value: float) -> float:
    """A figure rounded to the digits that a measurement supports."""
    return float(f"{value:.{_DIGITS}g}")


def _micro(seconds: float) -> float:
    return short(seconds * MICROSECONDS)


def thin(items: Sequence[Any], most: int) -> list[Any]:
    """At most `most` items, evenly spaced, including the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def roof_of(roofs: Roofs, generators: int) -> tuple[float, str]:
    """The lowest roof and its name, for this number of generator threads."""
    found = {
        "compute": roofs.compute,
        "link to device": roofs.link_in,
        "link to host": roofs.link_out,
        "generator": roofs.generator * generators,
    }
    name = min(found, key=lambda key: found[key])
    return found[name], name


def roofs_as_dict(roofs: Roofs) -> Json:
    """Roofs in queries per second, for JSON."""
    names = ("link_in", "link_out", "compute", "generator", "generators", "lowest", "lowest_name")
    return {name: getattr(roofs, name) for name in names}


def plan_as_dict(plan: Plan) -> Json:
    """All fields of a plan; times in microseconds."""
    names = (
        "name",
        "schedule",
        "threads",
        "streams_per_thread",
        "streams",
        "allocator",
        "host_memory",
        "binding",
        "first_processor",
        "batch_max",
        "doorbell",
        "blocks",
        "block_threads",
        "workers",
        "share",
        "answer_inline",
        "slots",
        "in_flight_max",
        "clients_max",
    )
    times = {
        "batch_age_us": plan.batch_age,
        "latency_max_us": plan.latency_max,
        "spin_us": plan.spin,
        "hang_after_us": plan.hang_after,
    }
    return {name: getattr(plan, name) for name in names} | {name: _micro(value) for name, value in times.items()}


def load_as_dict(load: LoadResult) -> Json:
    """A load's figures: rates per second, times in microseconds."""
    counts = ("refused_counted", "refused", "failed", "wrong", "answered", "windows", "stable", "complete", "gave_up")
    latency = {name: _micro(getattr(load.latency, name)) for name in ("mean", "p50", "p90", "p99", "p999", "max")}
    return {
        "incoming_per_second": load.incoming_per_second,
        "measured_per_second": load.measured_per_second,
        "latency_us": latency | {"count": load.latency.count},
        "latency_is_of": "admitted queries" if load.refused_counted else "all queries",
        # None: the percentile is among the refused, which count as later than any answer.
        "p99_offered_us": _micro(load.p99_offered) if math.isfinite(load.p99_offered) else None,
        "lateness_us": {"p99": _micro(load.lateness_p99), "max": _micro(load.lateness_max)},
        **{name: getattr(load, name) for name in counts},
        "interrupted": load.interrupted,
        "disturbed": load.disturbed,
        "machine": quiet.activity_as_dict(load.machine),
    }


def disturbed_of(load: LoadResult | None, roof: float, roof_is: str, roofs_disturbed: str = "") -> str:
    """Why a load's figures, or their share of the roof, are not valid results; empty if they are."""
    if load is None:
        return ""
    above = quiet.above_roof(load.measured_per_second / roof, f"{roof_is} roof") if roof else ""
    return load.disturbed or above or roofs_disturbed


def tried_as_rows(tried: Sequence[LoadResult]) -> list[list[float]]:
    """Loads as rows with the columns TRIED."""
    return [
        [
            short(load.incoming_per_second),
            short(load.measured_per_second),
            _micro(load.latency.mean),
            _micro(load.latency.p50),
            _micro(load.latency.p99),
            int(load.gave_up),
        ]
        for load in thin(tried, _TRIED_MOST)
    ]


def samples_as_rows(samples: Sequence[StageSample]) -> list[list[float]]:
    """The last sampled queries as rows with the columns SAMPLE; `at_us` counts from the first, all in microseconds."""
    last = sorted(samples, key=lambda sample: sample.submitted)[-_SAMPLES_MOST:]
    return [
        [
            _micro(sample.submitted - last[0].submitted),
            *(_micro(getattr(sample, stage)) for stage in SAMPLE[1:]),
        ]
        for sample in last
    ]


def _capacity_rows(capacities: Sequence[Capacity]) -> list[list[float]]:
    return [[getattr(one, name) for name in CAPACITY[:-1]] + [short(one.per_second)] for one in capacities]


def _best_by_threads(capacities: Sequence[Capacity]) -> dict[str, float]:
    best: dict[str, float] = {}
    for one in capacities:
        count = str(one.threads)
        best[count] = max(best.get(count, 0.0), one.per_second)
    return best


def rung_as_dict(result: RungResult, roofs: Roofs | None, roofs_disturbed: str = "") -> Json:
    """A rung with all that a report needs; without roofs while it is still being climbed."""
    roof, roof_is = roof_of(roofs, result.generators) if roofs else (0.0, "")
    return {
        "rung": f"{result.rung.number} {result.rung.id}",
        "number": result.rung.number,
        "id": result.rung.id,
        "title": result.rung.title,
        "generators": result.generators,
        "plan": plan_as_dict(result.plan),
        "load": load_as_dict(result.load) if result.load else None,
        "roof": roof,
        "roof_is": roof_is,
        "disturbed": disturbed_of(result.load, roof, roof_is, roofs_disturbed),
        "stages_us": {stage: _micro(getattr(result.stages, stage)) for stage in STAGES},
        "capacity": _best_by_threads(result.capacities),
        "capacities": _capacity_rows(result.capacities),
        "tried": tried_as_rows(result.tried),
        "samples": samples_as_rows(result.samples),
        "note": result.note,
    }


def _typical(results: list[RungResult]) -> RungResult:
    """The result with the median rate, or any if none has a rate."""
    with_load = [result for result in results if result.load is not None]
    if not with_load:
        return results[-1]
    ranked = sorted(with_load, key=lambda result: result.load.measured_per_second if result.load else 0.0)
    return ranked[(len(ranked) - 1) // 2]


def profile(climbs: Sequence[LadderResult]) -> list[Json]:
    """Every rung of repeated climbs, from the climb with its median rate."""
    by_rung: dict[int, list[RungResult]] = {}
    roofs: dict[int, tuple[Roofs, str]] = {}
    for climb in climbs:
        for result in climb.rungs:
            by_rung.setdefault(result.rung.number, []).append(result)
            roofs[result.rung.number] = (climb.roofs, climb.roofs_disturbed)
    return [rung_as_dict(_typical(results), *roofs[number]) for number, results in sorted(by_rung.items())]


def batch_as_dict(batch_max: int, found: PlanSearch) -> Json:
    """Results of one batch size: the rate sustained within the bound, and its cost."""
    load = found.confirmed[0] if found.confirmed else None
    return {
        "batch_max": batch_max,
        "plan": plan_as_dict(found.plan),
        "generators": found.generators,
        "capacity": short(found.capacity),
        "load": load_as_dict(load) if load else None,
        "note": found.note,
    }
