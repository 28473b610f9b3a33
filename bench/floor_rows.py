"""The special figures, one function each; each returns its rows or the reason why there are none."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import headrace
from floor_measure import Bench, Candidate, NoFigureError
from headrace import Index, Operator, results
from headrace.profiles import Json
from headrace.serve import PlanSearch

_TORCH_SECONDS = 120

__all__ = ["NoFigureError", "figures"]

Make = Callable[[Bench], list[Json]]


class _Reference:
    """The rows of `reference`; its highest rate is found once for all of them."""

    def __init__(self) -> None:
        self._found: PlanSearch | None = None
        self._compute: float = 0.0

    def _operator(self, bench: Bench) -> Operator:
        return headrace.operators.reference(steps=bench.scale.reference_steps)

    def _best(self, bench: Bench) -> tuple[PlanSearch, list[float], Json]:
        operator = self._operator(bench)
        if self._found is None:
            self._found = bench.search(operator, bench.candidates(operator), bench.scale.bound)
        found = self._found
        rates = [load.measured_per_second for load in found.confirmed]
        more = {"bound_us": bench.scale.bound * 1e6} | bench.confirmed(found)
        about = bench.conditions(found.plan, found.confirmed, found.generators, more)
        return found, rates, about | {"queries_per_second": median(rates), "steps": bench.scale.reference_steps}

    def _roof(self, bench: Bench) -> float:
        self._compute = self._compute or headrace.measure.roofs(bench.device, self._operator(bench)).compute
        return self._compute

    def share(self, bench: Bench) -> list[Json]:
        """The rate, and its share of the compute roof."""
        found, rates, about = self._best(bench)
        operator = self._operator(bench)
        compute = self._roof(bench)
        shares = [rate / compute for rate in rates]
        return [
            bench.claim("ladder.reference.qps", operator, found, bench.scale.bound),
            results.row(
                "ladder.reference.share", shares, "fraction", (1.0, "compute"), about | {"compute_roof": compute}
            ),
        ]

    def gain(self, bench: Bench) -> list[Json]:
        """The rate divided by that of the first rung."""
        _, rates, about = self._best(bench)
        first = bench.slow(self._operator(bench), Candidate(headrace.serve.find_rung("1").plan, 1), bench.scale.bound)
        start = median([load.measured_per_second for load in first.confirmed])
        late = first.confirmed[0].latency
        about |= {
            "first_rung": start,
            "first_rung_mean_us": late.mean * 1e6,
            "first_rung_p99_us": late.p99 * 1e6,
        }
        roof = (self._roof(bench) / start, "compute over the first rung")
        return [results.row("ladder.reference.gain", [rate / start for rate in rates], "ratio", roof, about)]


def _light(bench: Bench, identity: str, *, query_bytes: int = 1024, one_thread: bool = False) -> list[Json]:
    operator = headrace.light(query_bytes=query_bytes)
    bound = bench.scale.tight_bound
    found = bench.search(operator, bench.candidates(operator, one_thread=one_thread), bound)
    row = bench.claim(identity, operator, found, bound)
    return [row]


def _idle(bench: Bench) -> list[Json]:
    operator = headrace.light()
    candidates = bench.candidates(operator, idle=True)
    chosen, loads, stages = bench.steady(operator, candidates, bench.scale.idle_rate, by="p50")
    about = bench.conditions(chosen.plan, loads, chosen.generators, {"stages_us": stages})
    return [
        results.row("ladder.light.idle.p50", [load.latency.p50 * 1e6 for load in loads], "us", None, about),
        results.row("ladder.light.idle.p99", [load.latency.p99 * 1e6 for load in loads], "us", None, about),
    ]


def _at_high_rate(bench: Bench) -> list[Json]:
    operator = headrace.light()
    chosen, loads, stages = bench.steady(operator, bench.candidates(operator), bench.scale.high_rate)
    about = bench.conditions(chosen.plan, loads, chosen.generators, {"stages_us": stages})
    return [results.row("ladder.light.at25m.p99", [load.latency.p99 * 1e6 for load in loads], "us", None, about)]


def _retrieval(bench: Bench, identity: str, path: Path | None) -> list[Json]:
    if path is None:
        raise NoFigureError("no index was given")
    index = Index.load(path)
    operator = headrace.retrieval(index)
    found: PlanSearch = bench.search(operator, bench.candidates(operator), bench.scale.bound)
    row = bench.claim(identity, operator, found, bench.scale.bound)
    row["conditions"] |= {"documents": index.document_count, "terms": index.term_count}
    return [row]


def _generator(bench: Bench) -> list[Json]:
    """The ceiling for the threads and queries of the highest claim, or of light if there was none."""
    operator: Operator = headrace.light()
    claimed, generators = 0.0, bench.generator_counts()[-1]
    if bench.claims:
        claimed, generators, operator = max(bench.claims, key=lambda claim: claim[0])
    ceilings = []
    for _ in range(bench.scale.confirmations):
        bench.forget_ceilings()
        ceilings.append(bench.ceiling(operator, generators))
    about = {
        "against": "an engine that does nothing",
        "generators": generators,
        "query_bytes": operator.query_bytes,
        "highest_claim": claimed,
        "verified": True,
    }
    if claimed:
        about["over_claim"] = median(ceilings) / claimed
    return [results.row("ladder.generator.qps", ceilings, "arrivals/s", None, about)]


def _torch(bench: Bench) -> list[Json]:
    """Runs in a separate process, so that two users of the device do not share one context."""
    program = Path(__file__).parent / "torch_loop.py"
    device = "cpu" if bench.device.kind.name == "cpu" else "cuda"
    command = [sys.executable, str(program), "--device", device, "--bound", f"{bench.scale.bound * 1e6}us"]
    command += ["--seconds", str(5 * bench.scale.window), "--samples", str(bench.scale.confirmations), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TORCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise NoFigureError(f"it took more than {_TORCH_SECONDS} s") from None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()
        raise NoFigureError(last[-1] if last else f"exit status {done.returncode}")
    rows: list[Json] = json.loads(done.stdout)
    return rows


def figures(wordnet: Path | None, zipf: Path | None) -> list[tuple[list[str], Make]]:
    """Every figure in order, with the ids of its rows.

    Figures that a busy host spoils come first, so that such a run can be ended early; the generator's come after those
    that claim a rate.
    """
    light, retrieval, reference = "ladder.light", "ladder.retrieval", _Reference()
    return [
        ([f"{light}.idle.p50", f"{light}.idle.p99"], _idle),
        ([f"{light}64.qps"], partial(_light, identity=f"{light}64.qps", query_bytes=64)),
        ([f"{light}.one_thread.qps"], partial(_light, identity=f"{light}.one_thread.qps", one_thread=True)),
        ([f"{light}.qps"], partial(_light, identity=f"{light}.qps")),
        ([f"{light}.at25m.p99"], _at_high_rate),
        (["ladder.reference.qps", "ladder.reference.share"], reference.share),
        (["ladder.reference.gain"], reference.gain),
        ([f"{retrieval}.wordnet.qps"], partial(_retrieval, identity=f"{retrieval}.wordnet.qps", path=wordnet)),
        ([f"{retrieval}.zipf10m.qps"], partial(_retrieval, identity=f"{retrieval}.zipf10m.qps", path=zipf)),
        (["ladder.generator.qps"], _generator),
        (["ladder.torch.qps", "ladder.torch_graph.qps"], _torch),
    ]
