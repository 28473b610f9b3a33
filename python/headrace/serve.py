"""Runs queries on kernels within a latency bound: engines and clients, plans, the ladder, load and the tuner.

>>> from headrace import operators, serve
>>> index = operators.Index.build(["an apple", "an apple pie"])
>>> with serve.Engine("cpu", operators.retrieval(index)) as engine, engine.connect() as client:
...     answers, status = client.ask_many(index.compile_many(["apple", "apple AND pie"]))
>>> answers["hits"].tolist()
[2, 1]
"""

from headrace._core import (
    AsyncClient,
    Capacity,
    Client,
    Completions,
    Engine,
    EngineStatistics,
    LadderProgress,
    LadderResult,
    LoadSession,
    Operator,
    Plan,
    PlanLoad,
    PlanSearch,
    Rung,
    RungResult,
    StageSample,
    StageTimes,
    TunedPlan,
    TunerProgress,
    find_rung,
    ladder,
    load,
    plan_cache_file,
    rungs,
    same_as,
    search_plan,
    tune,
)
from headrace.serve_arrays import answer_into

__all__ = [
    "AsyncClient",
    "Capacity",
    "Client",
    "Completions",
    "Engine",
    "EngineStatistics",
    "LadderProgress",
    "LadderResult",
    "LoadSession",
    "Operator",
    "Plan",
    "PlanLoad",
    "PlanSearch",
    "Rung",
    "RungResult",
    "StageSample",
    "StageTimes",
    "TunedPlan",
    "TunerProgress",
    "answer_into",
    "find_rung",
    "ladder",
    "load",
    "plan_cache_file",
    "rungs",
    "same_as",
    "search_plan",
    "tune",
]
