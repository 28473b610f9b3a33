"""The cases of bench/copy_batch.py, and the row of each with the roofs of the same run."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import headrace
from headrace import Device, results
from headrace.measure import CopyRoofs, CopyRuns
from headrace.profiles import Json
from host_copy import copy_rates
from row_by_row import is_whole

KIB = 1024
MIB = 1024 * KIB
ROUTES = ("automatic", "engine", "batch_call", "merged", "gather")
LAYOUTS = ("contiguous", "scattered_source", "scattered")
# For routes with one call per copy, this many copies show the cost of one.
_ONE_BY_ONE = ("engine", "batch_call")
_ONE_BY_ONE_MAX = 16384
_BATCH = 64
_LINGER = 1e-3  # longer than the checks between two batches of a run


@dataclass(frozen=True)
class Case:
    """One measurement: its copies, and the ids of its rows."""

    ids: tuple[str, ...]
    copy_bytes: int
    count: int
    layout: str = "contiguous"
    odd: bool = False
    source: str = "pinned"
    route: str = "automatic"
    repeats: int = 1
    linger: float = 0.0  # seconds that a kernel stays after a short batch
    latency: bool = False  # the row is in microseconds instead of GB/s
    roof: str = "engine"


@dataclass
class Bench:
    """State that all cases share."""

    device: Device
    total_bytes: int
    runs: int
    latency_runs: int
    sizes: list[int]
    routes: list[str]
    threads: int
    slot_bytes: int
    stores: str
    _roofs: CopyRoofs | None = field(default=None, repr=False)
    _host_rates: list[float] = field(default_factory=list, repr=False)

    def roofs(self) -> CopyRoofs:
        """The roofs of this run, measured once."""
        if self._roofs is None:
            self._roofs = headrace.measure.copy_roofs(self.device, self.total_bytes, self.runs)
        return self._roofs

    def host_rates(self) -> list[float]:
        """GB/s of the threads that stage pageable memory, measured once."""
        if not self._host_rates:
            self._host_rates = copy_rates(self.threads, self.runs, self.total_bytes)
        return self._host_rates

    def measure(self, case: Case) -> CopyRuns:
        """Runs a case."""
        return headrace.measure.copy_batch(
            self.device,
            copy_bytes=case.copy_bytes,
            count=case.count,
            layout=case.layout,
            odd=case.odd,
            source=case.source,
            route=case.route,
            threads=self.threads,
            slot_bytes=self.slot_bytes,
            stores=self.stores,
            linger=case.linger,
            repeats=case.repeats,
            runs=self._runs_of(case),
        )

    def _runs_of(self, case: Case) -> int:
        return self.latency_runs if case.latency else self.runs

    def cases(self) -> Iterator[Case]:
        """The headline figures, then every size, layout and route."""
        large = self.total_bytes
        yield Case(("link.pinned",), large // 4, 1, repeats=8)
        yield Case(("link.pageable",), large, 1, source="pageable")
        yield Case(("link.pageable.driver",), large, 1, source="pageable", route="engine")
        yield Case(("link.pageable.small",), KIB, large // KIB, "scattered", source="pageable")
        yield Case(("link.batch64.us",), KIB, _BATCH, "scattered", latency=True)
        yield Case(("link.batch64.lingering.us",), KIB, _BATCH, "scattered", latency=True, linger=_LINGER)
        yield Case(("link.batch64.contiguous.us",), KIB, _BATCH, latency=True)
        named = {(KIB, "scattered"): "link.batch1k", (4 * KIB, "scattered"): "link.batch4k"}
        named[KIB, "contiguous"] = "link.batch.contiguous"
        for size in self.sizes:
            for layout in LAYOUTS:
                for odd in (False, True):
                    for route in self.routes:
                        yield self._of_grid(size, layout, named, odd=odd, route=route)

    def _of_grid(self, size: int, layout: str, named: dict[tuple[int, str], str], *, odd: bool, route: str) -> Case:
        ids = [f"link.batch.{size}.{layout}.{'odd' if odd else 'aligned'}.{route}"]
        asked = named.get((size, layout))
        if asked and not odd and route == "automatic":
            ids.insert(0, asked)
        count = self.total_bytes // size
        # Contiguous copies are merged to one, whatever the route.
        if route in _ONE_BY_ONE and layout != "contiguous":
            count = min(count, _ONE_BY_ONE_MAX)
        roof = "engine" if layout == "contiguous" or route in ("engine", "merged") else "kernel"
        return Case(tuple(ids), size, max(1, count), layout, odd, route=route, roof=roof)

    def rows(self, case: Case) -> list[Json]:
        """The rows of a case; none if the device does not support the route."""
        found = self.measure(case)
        if not is_whole(found.supported, len(found.seconds), self._runs_of(case)):
            return []
        about: Json = {
            "copy_bytes": case.copy_bytes,
            "copies": case.count,
            "layout": case.layout,
            "odd": case.odd,
            "source": case.source,
            "route": case.route,
            "repeats": case.repeats,
        }
        if case.source == "pageable":
            about |= {"threads": self.threads or "automatic", "slot_bytes": self.slot_bytes, "stores": self.stores}
        if case.linger:
            about["linger_us"] = case.linger * 1e6
        about["verified"] = found.verified
        if case.latency:
            values = [seconds * 1e6 for seconds in found.seconds]
            about["p99_us"] = sorted(values)[int(0.99 * (len(values) - 1))]
            # Cost of a single call that moves the same bytes in one piece, enqueued and waited for.
            alone = headrace.measure.copy_roofs(self.device, found.bytes, self.latency_runs)
            about["one_kernel_us"] = found.bytes / median(alone.kernel) * 1e6
            about["one_engine_copy_us"] = found.bytes / median(alone.engine) * 1e6
            return [results.row(identity, values, "us", None, about) for identity in case.ids]
        rates = [found.bytes / seconds / 1e9 for seconds in found.seconds]
        return [results.row(identity, rates, "GB/s", self._roof(case), about) for identity in case.ids]

    def _roof(self, case: Case) -> tuple[float, str]:
        roofs = self.roofs()
        if case.roof == "kernel":
            return median(roofs.kernel) / 1e9, "kernel that streams through pinned memory"
        engine = (median(roofs.engine) / 1e9, "one large copy by the engine")
        if case.source != "pageable" or case.route != "automatic":
            return engine
        return min(engine, (median(self.host_rates()), "threads that copy on the host"))

    def roof_rows(self) -> list[Json]:
        """The roofs as rows."""
        roofs = self.roofs()
        about: dict[str, Any] = {"bytes": self.total_bytes, "verified": True}
        pairs = (("link.roof.engine", roofs.engine), ("link.roof.kernel", roofs.kernel))
        made = [results.row(name, [rate / 1e9 for rate in rates], "GB/s", None, about) for name, rates in pairs]
        staging: dict[str, Any] = about | {"threads": self.threads or "automatic"}
        return [*made, results.row("link.roof.host", self.host_rates(), "GB/s", None, staging)]
