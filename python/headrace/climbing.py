"""Climbs a ladder for its two tables and its batch sizes, and builds the results file."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import headrace
from headrace import Device, Operator, Plan, results
from headrace.profiles import Json, batch_as_dict, profile, roofs_as_dict
from headrace.quiet import Watch
from headrace.serve import LadderProgress, LadderResult, RungResult

BATCHED = "batched"
_MOST_STREAMS = 4


@dataclass(frozen=True)
class Settings:
    """Settings that all climbs of a ladder share."""

    bound: float
    arrivals: str = "poisson"
    seed: int = 1
    generators: int = 1
    threads_max: int = 0
    window: float = 0.1
    rank_tolerance: float = 0.002
    rungs: Sequence[int] = ()

    def conditions(self) -> Json:
        """The settings as conditions of a row."""
        return {"bound_us": self.bound * 1e6, "arrivals": self.arrivals, "seed": self.seed}


@dataclass
class Climbs:
    """Repeated climbs of one ladder, and their total time."""

    single: bool
    done: list[LadderResult] = field(default_factory=list)
    seconds: float = 0.0
    watch: Watch = field(default_factory=Watch)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last climb."""
        return bool(self.done) and self.done[-1].interrupted

    @property
    def has_figures(self) -> bool:
        """Whether any rung has figures."""
        return any(rung.load is not None for climb in self.done for rung in climb.rungs)


def climb(
    device: Device,
    operator: Operator,
    settings: Settings,
    samples: int = 1,
    *,
    single: bool = False,
    progress: Callable[[LadderProgress], None] | None = None,
    finished: Callable[[RungResult], None] | None = None,
) -> Climbs:
    """Repeats the climb, until Ctrl-C; `single` keeps to one engine thread and one generator."""
    climbs = Climbs(single)
    began = time.monotonic()
    while len(climbs.done) < samples and not climbs.interrupted:
        climbs.done.append(
            headrace.serve.ladder(
                device,
                operator,
                bound=settings.bound,
                rungs=list(settings.rungs),
                arrivals=settings.arrivals,
                seed=settings.seed,
                generators=1 if single else settings.generators,
                single_thread=single,
                threads_max=settings.threads_max,
                window=settings.window,
                rank_tolerance=settings.rank_tolerance,
                progress=progress,
                finished=finished,
            )
        )
    climbs.seconds = time.monotonic() - began
    climbs.watch.stop()
    return climbs


def batched_plan(climbs: Sequence[Climbs]) -> tuple[Plan, int]:
    """The plan whose batch size is varied, and its generators: those of the best climb, else the rung's own plan."""
    for one in climbs:
        for result in one.done[-1].rungs if one.done else []:
            if result.rung.id == BATCHED and result.load is not None:
                return result.plan, result.generators
    plan = headrace.serve.find_rung(BATCHED).plan
    plan.streams_per_thread = _MOST_STREAMS
    return plan, 1


def sweep_batches(
    device: Device,
    operator: Operator,
    settings: Settings,
    sizes: Sequence[int],
    plan: Plan,
    generators: int,
    *,
    progress: Callable[[float], None] | None = None,
) -> list[Json]:
    """The rate that one plan sustains with each batch size."""
    found: list[Json] = []
    for number, size in enumerate(sizes):
        tried = plan.copy()
        tried.batch_max = size
        best = headrace.serve.search_plan(
            device,
            operator,
            tried,
            bound=settings.bound,
            arrivals=settings.arrivals,
            seed=settings.seed,
            generators=generators,
            window=settings.window,
            rank_tolerance=settings.rank_tolerance,
        )
        found.append(batch_as_dict(size, best))
        if progress:
            progress((number + 1) / len(sizes))
        if best.note == "interrupted":
            break
    return found


def setup(device: Device, operator: Operator, settings: Settings) -> Json:
    """What was climbed, for the heading of a report."""
    return {
        "operator": operator.name,
        "query_bytes": operator.query_bytes,
        "answer_bytes": operator.answer_bytes,
        "device": device.name,
        "bound_us": settings.bound * 1e6,
        "arrivals": settings.arrivals,
    }


def document(
    topic: str,
    device: Device,
    operator: Operator,
    settings: Settings,
    all_threads: Climbs | None,
    single: Climbs | None,
    batches: Sequence[Json] = (),
) -> Json:
    """The results file of these climbs."""
    rows: list[Json] = []
    more: Json = {"setup": setup(device, operator, settings), "interrupted": False}
    for climbs in (all_threads, single):
        if climbs is None or not climbs.done:
            continue
        rows += results.ladder_rows(
            climbs.done, operator.name, device, settings.bound, settings.conditions(), single=climbs.single
        )
        about: dict[str, Any] = {
            "roofs": roofs_as_dict(climbs.done[-1].roofs),
            "seconds": round(climbs.seconds, 1),
            "quiet": climbs.watch.as_dict(),
            "profile": profile(climbs.done),
        }
        more |= {"single": about} if climbs.single else about
        more["interrupted"] = more["interrupted"] or climbs.interrupted
    if batches:
        more["batches"] = list(batches)
    return results.document(topic, device, rows, **more)
