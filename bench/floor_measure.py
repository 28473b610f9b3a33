"""How special figures are measured: candidate plans, the search, and the ceiling of the generator."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from statistics import median

import headrace
from headrace import Device, Error, Operator, Plan, results
from headrace.measure import LoadResult
from headrace.profiles import STAGES, Json
from headrace.serve import PlanSearch

CEILING_OVER_CLAIM = 1.2
_UNREACHABLE = 1e9
_COARSE = 2.5
_ROUGH_TRIES = 3
_ROUGH_RESOLUTION = 0.03
_RESIDENT = {"light": 512, "retrieval": 512, "reference": 64}  # kernels, of one block and of 32, that fit any large GPU

_LINK_BOUND = {"light"}  # operators whose blocks wait for the link rather than for arithmetic
_SLOTS = 512  # this many queries of 1 KiB fit in a core's own cache
# Blocks per query and threads per block to try on a GPU besides the operator's own (0, 0).
_SHAPES = {"reference": [(1, 1024), (2, 1024)], "retrieval": [(0, 256), (0, 512)], "light": [(0, 64)]}
_SAMPLE_EVERY = 1024  # one in this many queries records stage times


class NoFigureError(Exception):
    """The reason why a figure has no row."""


@dataclass(frozen=True)
class Scale:
    """Duration and precision of measurements; tests make it small."""

    bound: float
    tight_bound: float
    window: float
    tolerance: float
    confirmations: int
    tries: int
    resolution: float
    idle_rate: float
    high_rate: float
    reference_steps: int


@dataclass(frozen=True)
class Candidate:
    """A plan, and the number of generator threads that feed it."""

    plan: Plan
    generators: int


@dataclass
class Bench:
    """State that all figures share."""

    device: Device
    scale: Scale
    rungs: list[str] = field(default_factory=list)
    generators: list[int] = field(default_factory=list)
    say: Callable[[str], None] = print
    claims: list[tuple[float, int, Operator]] = field(default_factory=list)  # rate, generators, operator
    _ceilings: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def generator_counts(self) -> list[int]:
        """Numbers of generator threads to try: half of the cores, and all but one or two."""
        if self.generators:
            return self.generators
        cores = len(os.sched_getaffinity(0))
        return sorted({max(1, count) for count in (cores // 2, cores - 2, cores - 1)})

    def pool_sizes(self, operator: Operator, *, idle: bool = False) -> list[int]:
        """Numbers of resident blocks to try: as many as fit, or only enough to keep the link busy if that is the limit.

        Reads that wait for the link also delay those of block 0, so fewer blocks may answer sooner.
        """
        multiprocessors = self.device.properties.multiprocessor_count
        if self.device.kind.name == "cpu" or operator.name not in _LINK_BOUND:
            return [0]
        if idle:
            return [multiprocessors, 3 * multiprocessors]
        return [multiprocessors * 9 // 4, 3 * multiprocessors, 4 * multiprocessors]

    def candidates(self, operator: Operator, *, one_thread: bool = False, idle: bool = False) -> list[Candidate]:
        """Candidate plans for the best. If clients are the only threads, there is one for each number of them.

        Args:
            operator: Operator of the queries.
            one_thread: All queries come from one client.
            idle: Queries also come one at a time: tries few blocks with the operator's preferred number of threads,
                with and without `answer_inline`.
        """
        one_thread = one_thread or idle
        cores = len(os.sched_getaffinity(0))
        found: list[Candidate] = []
        for name in self.rungs or ["dispatched", "persistent"]:
            rung = headrace.serve.find_rung(name)
            if rung.plan.schedule == "dispatched":
                found += self._dispatched(operator, rung.plan, one_thread=one_thread, idle=idle)
                continue
            generators = 1 if one_thread else max(1, cores // 4)
            for threads in [1] if one_thread else sorted({max(1, cores // 4), max(1, cores // 2)}):
                plan = rung.plan
                plan.threads = threads
                if rung.many_streams:
                    plan.streams_per_thread = max(1, _RESIDENT.get(operator.name, 64) // threads)
                found.append(Candidate(plan, generators))
        return found

    def _dispatched(self, operator: Operator, of_rung: Plan, *, one_thread: bool, idle: bool) -> list[Candidate]:
        found = []
        counts = [1] if one_thread else self.generator_counts()
        sizes = self.pool_sizes(operator, idle=idle)
        shapes = [(0, 0)] if idle else self.shapes(operator)
        inline = [False, True] if idle else [False]
        for workers, (blocks, threads), count, answer_inline in product(sizes, shapes, counts, inline):
            plan = of_rung.copy()
            plan.workers, plan.blocks, plan.block_threads = workers, blocks, threads
            plan.answer_inline = answer_inline
            plan.slots, plan.sample_stages_every = _SLOTS, _SAMPLE_EVERY
            plan.clients_max = count  # block 0 reads a line for each possible client
            found.append(Candidate(plan, count))
        return found

    def shapes(self, operator: Operator) -> list[tuple[int, int]]:
        """Blocks per query and threads per block to try; 0 is the operator's own."""
        own = [(0, 0)]
        return own if self.device.kind.name == "cpu" else own + _SHAPES.get(operator.name, [])

    def search(self, operator: Operator, candidates: Iterable[Candidate], bound: float) -> PlanSearch:
        """The rate of the best candidate: all are searched roughly, and the best is then confirmed.

        Raises:
            NoFigureError: when no candidate sustains any rate.
        """
        reasons = []
        best: tuple[float, Candidate] | None = None
        for candidate in candidates:
            try:
                found = self._search(operator, candidate, bound, rough=True)
            except Error as error:
                reasons.append(f"{candidate.plan.name}: {error}")
                continue
            if not found.confirmed:
                reasons.append(f"{candidate.plan.name}: {found.note}")
                continue
            rate = found.confirmed[0].measured_per_second
            if best is None or rate > best[0]:
                best = (rate, candidate)
        if best is None:
            raise NoFigureError("; ".join(dict.fromkeys(reasons)) or "no plan to try")
        confirmations = self.scale.confirmations
        found = self._search(operator, best[1], bound, rough=False, confirmations=confirmations, start=best[0])
        if not found.confirmed:
            raise NoFigureError(found.note)
        return found

    def slow(self, operator: Operator, candidate: Candidate, bound: float) -> PlanSearch:
        """The rate of a candidate so slow that each load takes seconds: found roughly, then confirmed like others.

        Raises:
            NoFigureError: when it sustains no rate.
        """
        found = self._search(operator, candidate, bound, rough=True, confirmations=self.scale.confirmations)
        if not found.confirmed:
            raise NoFigureError(found.note)
        return found

    def _search(
        self,
        operator: Operator,
        candidate: Candidate,
        bound: float,
        *,
        rough: bool,
        confirmations: int = 1,
        start: float = 0.0,
    ) -> PlanSearch:
        return headrace.serve.search_plan(
            self.device,
            operator,
            candidate.plan,
            bound=bound,
            generators=candidate.generators,
            start=start,
            confirmations=confirmations,
            tries=min(_ROUGH_TRIES, self.scale.tries) if rough else self.scale.tries,
            resolution=max(_ROUGH_RESOLUTION, self.scale.resolution) if rough else self.scale.resolution,
            window=self.scale.window / 2 if rough else self.scale.window,
            rank_tolerance=min(0.01, self.scale.tolerance * (_COARSE if rough else 1)),
        )

    def ceiling(self, operator: Operator, generators: int) -> float:
        """Arrivals per second that this many generator threads make of the operator's queries without any work."""
        key = (operator.query_bytes, operator.answer_bytes, generators)
        if key not in self._ceilings:
            plan = Plan(schedule="none", clients_max=generators, binding="cores")
            session = headrace.serve.LoadSession(self.device, operator, plan, generators=generators)
            window = min(0.05, self.scale.window)
            load = session.run(rate=_UNREACHABLE, warm_up=0.02, window=window, windows_max=6)
            self._ceilings[key] = load.measured_per_second
        return self._ceilings[key]

    def forget_ceilings(self) -> None:
        """Forces the next ceiling to be measured again."""
        self._ceilings.clear()

    def hardware_roof(self, operator: Operator) -> tuple[float, str]:
        """The lowest limit of the device and its link."""
        roofs = headrace.measure.roofs(self.device, operator)
        found = {"compute": roofs.compute, "link to device": roofs.link_in, "link to host": roofs.link_out}
        name = min(found, key=lambda key: found[key])
        return found[name], name

    def claim(self, identity: str, operator: Operator, found: PlanSearch, bound: float) -> Json:
        """A row for the rate found, capped if the generator could not have made 1.2 times as much."""
        values = [load.measured_per_second for load in found.confirmed]
        ceiling = self.ceiling(operator, found.generators)
        most = ceiling / CEILING_OVER_CLAIM
        about = self.conditions(
            found.plan, found.confirmed, found.generators, {"bound_us": bound * 1e6} | self.confirmed(found)
        )
        about["generator_ceiling"] = ceiling
        if median(values) > most:
            about |= {"measured": median(values), "capped": "the generator's ceiling divided by 1.2"}
        capped = [min(value, most) for value in values]
        self.claims.append((median(capped), found.generators, operator))
        return results.row(identity, capped, "queries/s", self.hardware_roof(operator), about)

    def confirmed(self, found: PlanSearch) -> Json:
        """How often, and for how long, a rate was tried; every row states this."""
        return {
            "tries": self.scale.tries,
            "loads": found.loads,
            "sustained": len(found.confirmed),
            "load_seconds": round(median(load.measured_for for load in found.confirmed), 3),
        }

    def conditions(self, plan: Plan, loads: list[LoadResult], generators: int, more: Json) -> Json:
        """A row's conditions from the loads behind it: those of the typical load, verified only if all are."""
        ranked = sorted(loads, key=lambda load: load.measured_per_second)
        about = results.conditions(plan, ranked[len(ranked) // 2], generators, {"arrivals": "poisson", **more})
        about["verified"] = all(load.wrong == load.failed == 0 < load.answered for load in loads)
        return about

    def steady(
        self, operator: Operator, candidates: Iterable[Candidate], rate: float, by: str = "p99"
    ) -> tuple[Candidate, list[LoadResult], Json]:
        """Several loads at one rate for the candidate with the lowest latency `by`, and the times of its stages.

        Raises:
            NoFigureError: when no candidate keeps up.
        """
        best: tuple[float, Candidate, list[LoadResult], Json] | None = None
        reasons = []
        for candidate in candidates:
            try:
                loads, stages = self._loads(operator, candidate, rate)
            except Error as error:
                reasons.append(f"{candidate.plan.name}: {error}")
                continue
            kept_up = [load for load in loads if headrace.measure.sustains(load, 1.0)]
            if len(kept_up) < len(loads):
                reasons.append(f"{candidate.plan.name}: {rate:,.0f} queries/s are not sustained")
                continue
            late = {name: median(getattr(load.latency, name) for load in loads) for name in ("p50", "p99")}
            about = self.conditions(candidate.plan, loads, candidate.generators, {"stages_us": stages})
            self.say(f"  p50 {late['p50'] * 1e6:.2f} us, p99 {late['p99'] * 1e6:.2f} us: {results.describe(about)}")
            if best is None or late[by] < best[0]:
                best = (late[by], candidate, loads, stages)
        if best is None:
            raise NoFigureError("; ".join(dict.fromkeys(reasons)))
        return best[1:]

    def _loads(self, operator: Operator, candidate: Candidate, rate: float) -> tuple[list[LoadResult], Json]:
        samples = headrace.measure.samples_needed(0.99, self.scale.tolerance)
        window = max(self.scale.window, 1.05 * samples / (3 * rate))
        session = headrace.serve.LoadSession(self.device, operator, candidate.plan, generators=candidate.generators)
        loads = [
            session.run(rate=rate, seed=1 + number, window=window, windows_max=6, samples=samples)
            for number in range(self.scale.confirmations)
        ]
        stages = session.statistics().stages
        return loads, {stage: round(getattr(stages, stage) * 1e6, 2) for stage in STAGES}
