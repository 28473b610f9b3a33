"""Turns the loads tried for a rung into a curve, plus the points that were given up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from headrace.profiles import TRIED, Json

_SAME_RATE = 1.02

INCOMING, MEASURED, MEAN, P50, P99 = (
    TRIED.index(name) for name in ("incoming", "measured", "mean_us", "p50_us", "p99_us")
)
_GAVE_UP = TRIED.index("gave_up")


@dataclass
class Curve:
    """Loads by incoming rate: completed ones, merged if they had the same rate, and those given up."""

    number: int
    name: str
    points: list[list[float]] = field(default_factory=list)
    given_up: list[list[float]] = field(default_factory=list)
    best: list[float] | None = None

    def column(self, index: int) -> list[float]:
        """One figure of every point."""
        return [point[index] for point in self.points]


def _merged(loads: Sequence[list[float]]) -> list[list[float]]:
    groups: list[list[list[float]]] = []
    for load in sorted(loads, key=lambda one: one[INCOMING]):
        if groups and load[INCOMING] <= groups[-1][0][INCOMING] * _SAME_RATE:
            groups[-1].append(load)
        else:
            groups.append([load])
    return [[median(column) for column in zip(*group, strict=True)] for group in groups]


def curve(entry: Json) -> Curve:
    """The curve of a rung."""
    number, name = entry["rung"].split(maxsplit=1)
    made = Curve(int(number), name)
    tried = [load for load in entry.get("tried", []) if load[INCOMING] > 0 and load[P99] > 0]
    made.points = _merged([load for load in tried if not load[_GAVE_UP]])
    made.given_up = [load for load in tried if load[_GAVE_UP]]
    load = entry.get("load")
    if load:
        late = load["latency_us"]
        made.best = [
            load["incoming_per_second"],
            load["measured_per_second"],
            late["mean"],
            late["p50"],
            late["p99"],
            0,
        ]
        if not made.points:
            made.points = [made.best]
    return made


def curves(entries: Sequence[Json]) -> list[Curve]:
    """The curves of the rungs with any load."""
    found = [curve(entry) for entry in entries]
    return [one for one in found if one.points]
