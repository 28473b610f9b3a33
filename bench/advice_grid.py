"""Judges the adviser's choices against every cell measured by `headrace oversubscribe --json`.

Usage: advice_grid.py CELLS.json... [--rates FILE] [--constants FILE] [--missed N] [--json] [--save FILE] [--fit FILE]

For each combination of pattern, operation and factor, the adviser is asked as if nothing had been measured, and the
rate of its choice in that cell is compared with the best of all strategies there. Prints the share of cells within 5%
of the best, the worst loss, and the missed cells. A strategy that was not run, or not verified, is not a candidate.

--fit FILE finds the constants and random rates with which the model predicts these cells best, and writes them for
--rates and --constants. Do not judge a fit only by the machine it was made from: check another machine too.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headrace
from headrace import DataError, Device, Error, advice, results
from headrace.profiles import Json
from headrace.span import AccessProfile, AdviceConstants, MemoryRates
from headrace.text import read_json

WITHIN = 0.05
GIGA = 1e9
NOT_FITTED = "on-demand"  # its cells include only first touches, which the adviser counts as preparation
OPERATIONS = ("read", "write", "read-modify-write")
CONSTANTS = (
    "dealt_overlap",
    "front_overlap",
    "span_link",
    "managed_link",
    "managed_device",
    "eviction",
    "fault_bytes",
    "device_cache_hits",
    "host_cache_hits",
    "simpler",
)


@dataclass(frozen=True)
class Key:
    """The properties that all strategies of a cell share."""

    pattern: str
    rows: str
    operation: str
    factor: float
    bytes: int
    budget_bytes: int
    more: tuple[tuple[str, Any], ...] = ()

    def words(self) -> str:
        """Text such as "zipf-rows scattered, read, factor 2"."""
        rows = f" {self.rows}" if self.pattern == "zipf-rows" else ""
        more = "".join(f", {name} {value}" for name, value in self.more)
        return f"{self.pattern}{rows}, {self.operation}, factor {self.factor:g}{more}"


@dataclass
class Judged:
    """One cell: the choice, and the best strategy."""

    key: Key
    chosen: str
    best: str
    loss: float  # relative to the best rate
    rates: dict[str, float] = field(repr=False)


def _first(cell: Json, *names: str) -> Any:  # noqa: ANN401
    return next((cell[name] for name in names if cell.get(name) is not None), None)


def _flat(cell: Json) -> Json:
    """Flattens nested members by one level."""
    flat: Json = {}
    for name in ("cell", "conditions"):
        inner = cell.get(name)
        flat |= inner if isinstance(inner, dict) else {}
    return flat | cell


def _rate(cell: Json) -> float | None:
    value = _first(cell, "bytes_per_second", "rate", "value")
    giga = _first(cell, "gb_per_s", "gigabytes_per_second", "GB/s")
    if value is None and giga is not None:
        value = giga * GIGA
    unit = cell.get("unit")
    if value is not None and unit == "GB/s" and "bytes_per_second" not in cell:
        value *= GIGA
    return float(value) if value else None


def _key(cell: Json, budget: int | None) -> Key:
    pattern = str(_first(cell, "pattern")).replace("_", "-")
    factor = float(_first(cell, "factor"))
    budget = _first(cell, "budget_bytes", "budget") or budget
    data = _first(cell, "data_bytes", "bytes")
    if data is None and budget is None:
        raise DataError("a cell has neither bytes nor a budget")
    data = int(data) if data is not None else int(factor * int(budget or 0))
    # The page size that the pattern draws is part of the work; the page size of managed memory and the launch shape may
    # be chosen by each strategy.
    shared = ["page_bytes"] if pattern == "random-warp" else []
    return Key(
        pattern,
        str(_first(cell, "rows", "order") or "ordered") if pattern == "zipf-rows" else "",
        str(_first(cell, "operation") or "read").replace("_", "-"),
        factor,
        data,
        int(budget) if budget is not None else max(1, int(data / factor)),
        tuple((name, cell[name]) for name in shared if cell.get(name) is not None),
    )


def _cells_of(content: Json) -> list[Json]:
    for name in ("cells", "results", "rows"):
        found = content.get(name)
        if isinstance(found, list) and any(isinstance(cell, dict) and "strategy" in _flat(cell) for cell in found):
            return [_flat(cell) for cell in found if isinstance(cell, dict) and "strategy" in _flat(cell)]
    raise DataError("there are no cells: this is not the output of headrace oversubscribe --json")


def measured(content: Json) -> dict[Key, dict[str, float]]:
    """Rates by cell and strategy, in bytes per second. If a strategy was tried in several forms, the best counts."""
    budget = _first(content, "budget_bytes", "budget")
    found: dict[Key, dict[str, float]] = {}
    for cell in _cells_of(content):
        try:
            key, rate = _key(cell, budget), _rate(cell)
            strategy = str(cell["strategy"]).replace("_", "-")
        except (TypeError, ValueError) as error:
            raise DataError(f"a cell cannot be read ({error}): {json.dumps(cell)[:200]}") from error
        if rate is None or cell.get("verified") is False:
            continue
        rates = found.setdefault(key, {})
        rates[strategy] = max(rate, rates.get(strategy, 0.0))
    return found


def _per_second(content: Json, name: str) -> float | None:
    """The rate in bytes per second, stored under the name itself or under its variant in GB per second."""
    giga = content.get(f"{name}_gb_per_s")
    value = content.get(name) if giga is None else giga * GIGA
    return float(value) if value else None


def rates_in(content: Json, start: MemoryRates) -> MemoryRates:
    """`start` updated with the file's own measurements: its rates or its roofs."""
    if isinstance(content.get("rates"), dict):
        start = advice.rates_from_dict(content["rates"])
    rates = MemoryRates(start)
    roofs = content.get("roofs")
    if isinstance(roofs, dict):
        roofs = [{"operation": name, **value} for name, value in roofs.items() if isinstance(value, dict)]
    for roof in roofs if isinstance(roofs, list) else []:
        operation = str(roof.get("operation", "")).replace("-", "_")
        if operation.replace("_", "-") not in OPERATIONS:
            continue
        for name, source in (("device", "on_device"), ("link", "over_link")):
            if speed := _per_second(roof, source):
                setattr(getattr(rates, name), operation, speed)
    rates.prefetch = _per_second(content, "copy_to_device") or rates.prefetch
    return rates


def profile_of(key: Key) -> AccessProfile:
    """Cells are measured with all data in place, so preparation is excluded."""
    return AccessProfile(
        key.bytes,
        key.budget_bytes,
        key.pattern,
        key.operation,
        reuse=math.inf,
        order=key.rows or "ordered",
    )


def judge(
    cells: dict[Key, dict[str, float]], rates: MemoryRates, constants: AdviceConstants, device: Device
) -> list[Judged]:
    """Every cell with more than one strategy: the adviser's first choice among those run, and the best."""
    found = []
    for key, by_strategy in cells.items():
        if len(by_strategy) < 2:  # noqa: PLR2004 - a choice
            continue
        ranked = [one.strategy for one in headrace.span.advise(profile_of(key), rates, device, constants).forecasts]
        chosen = next(strategy for strategy in ranked if strategy in by_strategy)
        best = max(by_strategy, key=lambda strategy: by_strategy[strategy])
        found.append(Judged(key, chosen, best, 1 - by_strategy[chosen] / by_strategy[best], by_strategy))
    if not found:
        raise DataError("no cell has two strategies that were run and verified")
    return found


def rows_of(judged: Sequence[Judged]) -> list[Json]:
    """The figures under the ids of the results."""
    within = sum(one.loss <= WITHIN for one in judged) / len(judged)
    worst = max(judged, key=lambda one: one.loss)
    about = {"cells": len(judged), "verified": True}
    lost = about | {"cell": worst.key.words(), "chosen": worst.chosen, "best": worst.best}
    return [
        results.row("span.advice.within5", [within], "fraction", (1.0, "every cell"), about),
        results.row("span.advice.worst", [worst.loss], "fraction", None, lost),
    ]


def _constants_from(path: Path) -> AdviceConstants:
    content = read_json(path)
    content = content.get("constants", content) if isinstance(content, dict) else None
    if not isinstance(content, dict) or content.keys() - set(CONSTANTS):
        raise DataError(f"{path} must be an object of {', '.join(CONSTANTS)}")
    constants = AdviceConstants()
    for name, value in content.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise DataError(f"{path}: {name} must be a number")
        setattr(constants, name, float(value))
    return constants


class Fit:
    """A search for constants that no single measurement gives.

    Moves each constant in turn up or down in ever smaller steps, and keeps a move that brings predictions closer to the
    measurements.
    """

    SHARES = ("dealt_overlap", "front_overlap", "eviction", "device_cache_hits", "host_cache_hits", "link_beyond_reach")
    SCALES = ("span_link", "managed_link", "managed_device", "fault_bytes", "link_reach_bytes", "cache")
    RANDOM = tuple(
        f"{place}.{name}"
        for place in ("device_random", "link_random")
        for name in ("read", "write", "read_modify_write")
    )

    def __init__(
        self, cells: dict[Key, dict[str, float]], rates: MemoryRates, constants: AdviceConstants, device: Device
    ) -> None:
        self.cells, self.device = cells, device
        self.rates, self.constants = MemoryRates(rates), AdviceConstants(constants)
        if not math.isfinite(self.rates.link_reach_bytes):
            self.rates.link_reach_bytes = 2.0 * max(key.bytes for key in cells)

    def error(self) -> float:
        """Mean of |log(predicted / measured)| over all measured cells."""
        total, count = 0.0, 0
        for key, by_strategy in self.cells.items():
            for one in headrace.span.advise(profile_of(key), self.rates, self.device, self.constants).forecasts:
                if one.strategy in by_strategy and one.strategy != NOT_FITTED:
                    total += abs(math.log(one.bytes_per_second / by_strategy[one.strategy]))
                    count += 1
        return total / max(1, count)

    def _owner(self, name: str) -> tuple[Any, str]:
        kind, _, inner = name.partition(".")
        if inner:
            return getattr(self.rates, kind), inner
        return (self.rates if hasattr(self.rates, name) else self.constants), name

    def _moved(self, name: str, value: float, step: float) -> Iterable[float]:
        if name in self.SHARES:
            least = 0.01 if name in ("eviction", "link_beyond_reach") else 0.0
            return min(1.0, value + step), max(least, value - step)
        return value * (1 + step), value / (1 + step)

    def run(self) -> float:
        """Returns the remaining error."""
        best, step = self.error(), 0.5
        while step > 0.01:  # noqa: PLR2004 - finer than measurements repeat
            before = best
            for name in (*self.SHARES, *self.SCALES, *self.RANDOM):
                owner, inner = self._owner(name)
                for value in self._moved(name, getattr(owner, inner), step):
                    old = getattr(owner, inner)
                    setattr(owner, inner, value)
                    now = self.error()
                    if now < best:
                        best = now
                    else:
                        setattr(owner, inner, old)
            if best > before * 0.999:
                step /= 2
        return best

    def as_dict(self) -> Json:
        """The content for --rates and --constants."""
        return {
            "rates": advice.rates_as_dict(self.rates),
            "constants": {name: getattr(self.constants, name) for name in CONSTANTS},
        }


def _report(judged: Sequence[Judged], rows: list[Json], most: int) -> None:
    within, worst = rows
    share, loss = within["value"], worst["value"]
    print(f"{len(judged)} cells; within 5% of the best in {share:.1%}; worst loss {loss:.1%}")
    missed = sorted((one for one in judged if one.loss > WITHIN), key=lambda one: -one.loss)
    for one in missed[:most]:
        reached = f"{one.rates[one.chosen] / GIGA:.4g} of {one.rates[one.best] / GIGA:.4g} GB/s"
        print(f"  {one.loss:6.1%}  {one.key.words()}: chose {one.chosen}, best is {one.best}: {reached}")
    if len(missed) > most:
        print(f"  and {len(missed) - most} more")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path, nargs="+")
    parser.add_argument("--rates", type=Path)
    parser.add_argument("--gpu", default="H100", help="row of the built-in table for files that name no rates")
    parser.add_argument("--constants", type=Path)
    parser.add_argument("--missed", type=int, default=20, help="maximum number of missed cells to list")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--fit", type=Path)
    return parser.parse_args()


def _start_rates(arguments: argparse.Namespace) -> MemoryRates:
    if arguments.rates is None:
        return headrace.span.find_memory_rates(arguments.gpu)
    content = read_json(arguments.rates)
    return advice.rates_from_dict(content.get("rates", content) if isinstance(content, dict) else content)


def run(arguments: argparse.Namespace) -> None:
    """Runs the program; Headrace's exceptions are passed on."""
    device = Device.parse("cpu")  # only the number of pages matters
    start = _start_rates(arguments)
    constants = _constants_from(arguments.constants) if arguments.constants else AdviceConstants()
    judged: list[Judged] = []
    content: Json = {}
    fit: Fit | None = None
    for path in arguments.cells:
        content = read_json(path)
        if not isinstance(content, dict):
            raise DataError(f"{path} is not a JSON object")
        cells = measured(content)
        rates = start if arguments.rates else rates_in(content, start)
        if arguments.fit:
            fit = Fit(cells, rates, constants, device)
            left = fit.run()
            print(f"fitted to {path.name}: predictions are off by {math.expm1(left):.1%} on average", file=sys.stderr)
            rates, constants = fit.rates, fit.constants
        judged += judge(cells, rates, constants, device)
    if fit is not None:
        results.save(arguments.fit, fit.as_dict())
    rows = rows_of(judged)
    document = results.document("advice", device, rows)
    document["machine"] = content.get("machine", document["machine"])
    if arguments.save:
        results.save(arguments.save, document)
    if arguments.json:
        print(json.dumps(document, indent=2))
    else:
        _report(judged, rows, arguments.missed)


def main() -> int:
    """Exit status 0, or 1 if a file cannot be used."""
    try:
        run(_arguments())
    except Error as error:
        print(f"advice_grid: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
