"""A fictitious results file of a complete ladder, for tests of tables and reports."""

from typing import Any

RUNGS = [
    # number, id, queries/s, p99 us, schedule, threads, streams a thread, batch, generators
    (1, "single", 3.7e3, 410.0, "blocking", 1, 1, 1, 1),
    (7, "page-locked", 207e3, 216.0, "blocking", 8, 1, 1, 1),
    (9, "pipelined", 420e3, 300.0, "pipelined", 4, 4, 1, 1),
    (11, "persistent", 15e6, 73.0, "persistent", 8, 64, 1, 4),
    (12, "graph", 350e3, 250.0, "graph", 4, 4, 1, 1),
    (13, "batched", 6.2e6, 330.0, "pipelined", 4, 4, 32, 1),
    (14, "dispatched", 44e6, 91.0, "dispatched", 1, 1, 1, 10),
]
ROOFS = {
    "link_in": 53.7e6,
    "link_out": 860e6,
    "compute": 610e6,
    "generator": 7.07e6,
    "generators": 1,
    "lowest": 7.07e6,
    "lowest_name": "generator",
}


def load(rate: float, p99: float) -> dict[str, Any]:
    """A load that kept up."""
    return {
        "incoming_per_second": rate,
        "measured_per_second": rate * 0.997,
        "latency_us": {"mean": p99 / 3, "p50": p99 / 4, "p90": p99 / 2, "p99": p99, "p999": p99 * 2, "max": p99 * 4},
    }


def entry(rung: tuple[Any, ...]) -> dict[str, Any]:
    """A rung in the form of profiles.rung_as_dict()."""
    number, identity, rate, p99, schedule, threads, streams, batch, generators = rung
    many = generators > 1
    return {
        "rung": f"{number} {identity}",
        "number": number,
        "id": identity,
        "generators": generators,
        "plan": {
            "name": identity,
            "schedule": schedule,
            "threads": threads,
            "streams_per_thread": streams,
            "streams": "shared" if number == 1 else "per-thread",
            "batch_max": batch,
        },
        "load": load(rate, p99),
        "roof": 53.7e6 if many else 7.07e6,
        "roof_is": "link to device" if many else "generator",
        "stages_us": {"queue": 9.0, "host": 11.0, "copy_in": 2.5, "kernel": 4.0, "copy_out": 3.0, "notify": 1.5},
        "capacity": {str(threads): rate * 1.1},
        "capacities": [[threads, streams, batch, rate * 1.1]],
        "tried": [
            [rate * share, rate * min(share, 1.03), p99 * share / 3, p99 * share / 4, p99 * share, int(share > 1.1)]
            for share in (0.35, 0.7, 0.7, 0.9, 1.0, 1.05, 1.5)
        ],
        "samples": [[number * 100.0, 9.0 + number, 11.0, 2.5, 4.0, 3.0] for number in range(12)],
        "note": "a graph launch costs more than three calls" if identity == "graph" else "",
    }


def content() -> dict[str, Any]:
    """The complete file, with both tables and batch sizes."""
    profile = [entry(rung) for rung in RUNGS]
    rows = [
        {
            "id": identity,
            "value": 44e6,
            "unit": "queries/s",
            "roof": 53.7e6,
            "roof_is": "link to device",
            "spread": [43e6, 45e6],
            "samples": 3,
            "conditions": {"schedule": "dispatched", "bound_us": 500.0, "verified": verified},
        }
        for identity, verified in (("ladder.light.qps", True), ("not.verified", False))
    ]
    return {
        "topic": "ladder-light",
        "machine": {
            "name": "h100-16",
            "device": "NVIDIA H100",
            "driver": "580",
            "cuda": "13.0",
            "cpu": "Xeon",
            "cores": 16,
            "kernel": "6.18",
        },
        "commit": "abc1234",
        "date": "2026-11-22T10:00:00Z",
        "command": "headrace ladder --operator light --tables both",
        "rows": rows,
        "setup": {
            "operator": "light",
            "query_bytes": 1024,
            "answer_bytes": 64,
            "device": "cuda:0",
            "bound_us": 500.0,
            "arrivals": "poisson",
        },
        "seconds": 312.0,
        "roofs": ROOFS,
        "profile": profile,
        "single": {"roofs": ROOFS, "seconds": 150.0, "profile": [entry(rung) for rung in RUNGS]},
        "batches": [
            {"batch_max": size, "capacity": 4e5 * size, "load": load(3e5 * size, 100.0 + size), "note": ""}
            for size in (1, 2, 4, 8)
        ],
    }
