"""The tuner's results in the common form of measured figures."""

import json
from typing import Any

from headrace._core import Roofs, TunedPlan
from headrace.results import row
from headrace.units import MICROSECONDS

Json = dict[str, Any]


def as_dict(found: TunedPlan) -> Json:
    """A plan that the tuner found, for JSON."""
    return {
        "plan": json.loads(found.plan.to_json()),
        "generators": found.generators,
        "per_second": found.per_second,
        "p99_us": found.p99 * MICROSECONDS,
        "seconds": found.took,
        "space": found.space,
        "looked_at": found.looked_at,
        "searched": found.searched,
        "cached": found.cached,
        "note": found.note,
    }


def against(found: TunedPlan, sweep: TunedPlan) -> Json:
    """The tuned plan's rate and time as shares of those of an exhaustive sweep."""
    return {
        "share_of_exhaustive": found.per_second / sweep.per_second if sweep.per_second else None,
        "time_of_exhaustive": found.took / sweep.took if sweep.took else None,
        "exhaustive_qps": sweep.per_second,
        "exhaustive_seconds": sweep.took,
        "exhaustive_plans": sweep.space,
    }


def rows(operator: str, found: TunedPlan, sweep: TunedPlan | None, roofs: Roofs, shared: Json) -> list[Json]:
    """The row of a tuned plan, if it was measured."""
    load = found.load
    if load is None:
        return []
    plan = found.plan
    conditions = {
        "schedule": plan.schedule,
        "threads": plan.threads,
        "streams_per_thread": plan.streams_per_thread,
        "host_memory": plan.host_memory,
        "slots": plan.slots,
        "p50_us": load.latency.p50 * MICROSECONDS,
        "p99_us": load.latency.p99 * MICROSECONDS,
        **shared,
        "generators": found.generators,
        "seconds": found.took,
        "plans": found.space,
        "cached": found.cached,
        **(against(found, sweep) if sweep else {}),
        "verified": load.wrong == 0 and load.failed == 0,
    }
    if load.disturbed:
        conditions["disturbed"] = load.disturbed
    roof = (roofs.lowest, roofs.lowest_name)
    return [row(f"ladder.{operator}.tuned.qps", [load.measured_per_second], "queries/s", roof, conditions)]
