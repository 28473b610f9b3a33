"""The figures of the grid, each with its id and its measurement."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

import grid_check
from grid_run import (
    Case,
    NoFigureError,
    Settings,
    Shape,
    Timed,
    Work,
    choose,
    fdtd_work,
    jacobi_work,
    timed,
    timed_in_turn,
)
from headrace import results
from headrace.profiles import Json

KILO = 1000
_CHECKED_LAYERS = 10  # maximum: a small domain has no room for more
_PAIR = 2
_SCALED = (2, 4, 8)  # numbers of devices for strong and weak scaling

Make = Callable[[], Json]


@dataclass(frozen=True)
class Scale:
    """Sizes and durations; tests make them small."""

    plane: Shape
    splits: tuple[Shape, ...]
    small: Shape
    space: Shape
    jacobi: Shape
    steps: int
    spaces: tuple[Shape, ...] = ()  # for the efficiency in three dimensions; `space` if empty
    small_steps: int = 1400
    samples: int = 5
    layers: int = 10
    # Two devices may exchange less often; their passes do one step, as those of one device do.
    redundants: tuple[int, ...] = (1, 2, 4, 8)
    small_redundants: tuple[int, ...] = (1, 2, 4, 8, 16)
    # Here a pass over memory does this many steps too.
    blocked_redundants: tuple[int, ...] = (2, 4, 8, 16)
    jacobi_redundants: tuple[int, ...] = (1, 2, 4, 8, 16)
    pushes: tuple[str, ...] = ("store", "copy")

    @staticmethod
    def of(*, on_gpu: bool) -> "Scale":
        """The sizes of the published figures, or sizes that a CPU completes in reasonable time."""
        if on_gpu:
            splits = ((16000, 16000), (4000, 32000), (32000, 4000))
            return Scale(
                (16000, 16000),
                splits,
                (2000, 1000),
                (768, 768, 768),
                (20480, 20480),
                50,
                ((768, 768, 768), (1024, 768, 768)),
            )
        splits = ((1000, 1000), (250, 2000), (2000, 250))
        return Scale((1000, 1000), splits, (2000, 1000), (96, 96, 96), (1000, 1000), steps=20)

    def but(self, **given: object) -> "Scale":
        """Replaces the given sizes; None keeps a size. Given redundant layers apply to all figures."""
        chosen = {name: value for name, value in given.items() if value is not None}
        if "redundants" in chosen:
            for name in ("small_redundants", "blocked_redundants", "jacobi_redundants"):
                chosen[name] = chosen["redundants"]
        return replace(self, **chosen)  # type: ignore[arg-type]


@dataclass
class Bench:
    """State that all figures share."""

    settings: Settings
    scale: Scale
    say: Callable[[str], None] = print
    _of_one: dict[tuple[str, Shape, int], Timed] = field(default_factory=dict)

    def figures(self) -> list[tuple[str, Make]]:
        """Every figure in order, by its id."""
        scale = self.scale
        made: list[tuple[str, Make]] = [
            ("grid.fdtd2d.cells", partial(self._cells, "grid.fdtd2d.cells", "fdtd", scale.plane)),
            ("grid.fdtd2d.blocked.cells", self._blocked),
        ]
        for shape in scale.splits:
            identity = f"grid.fdtd2d.efficiency.{'x'.join(map(str, shape))}"
            made.append((identity, partial(self._efficiency, identity, "fdtd", shape)))
        for shape in scale.splits:
            identity = f"grid.fdtd2d.blocked.efficiency.{'x'.join(map(str, shape))}"
            made.append((identity, partial(self._blocked_efficiency, identity, "fdtd", shape)))
        return [
            *made,
            ("grid.small.seconds1", partial(self._small, 1)),
            ("grid.small.seconds2", partial(self._small, _PAIR)),
            ("grid.fdtd3d.cells", partial(self._cells, "grid.fdtd3d.cells", "fdtd", scale.space)),
            *self._spaces(),
            ("grid.jacobi.cells", self._jacobi),
            (
                "grid.jacobi.efficiency",
                partial(self._blocked_efficiency, "grid.jacobi.efficiency", "jacobi", scale.jacobi),
            ),
            *self._scaling(),
            ("grid.cpu.cells", self._cpu),
        ]

    def _spaces(self) -> list[tuple[str, Make]]:
        made: list[tuple[str, Make]] = []
        for shape in self.scale.spaces or (self.scale.space,):
            identity = f"grid.fdtd3d.efficiency.{'x'.join(map(str, shape))}"
            make = partial(self._held_against_one, identity, "fdtd", shape, _PAIR, self.scale.redundants)
            made.append((identity, make))
        return made

    def _scaling(self) -> list[tuple[str, Make]]:
        """Strong: the domain of one device over several. Weak: the same domain per device, along the last axis."""
        scale = self.scale
        kinds = (
            ("fdtd2d", "fdtd", scale.plane, scale.blocked_redundants),
            ("jacobi", "jacobi", scale.jacobi, scale.jacobi_redundants),
            ("fdtd3d", "fdtd", scale.space, scale.redundants),
        )
        made: list[tuple[str, Make]] = []
        for name, kind, shape, redundants in kinds:
            for count in _SCALED:
                strong, weak = f"grid.{name}.strong.{count}", f"grid.{name}.weak.{count}"
                made.append((strong, partial(self._held_against_one, strong, kind, shape, count, redundants)))
                made.append((weak, partial(self._held_against_one, weak, kind, shape, count, redundants, grows=True)))
        return made

    def _held_against_one(
        self, identity: str, kind: str, shape: Shape, count: int, redundants: tuple[int, ...], *, grows: bool = False
    ) -> Json:
        """The speed relative to `count` times that of one device; in the plane with several steps per pass."""
        passes = "always" if len(shape) == _PAIR else "automatic"
        several = replace(self._on(count), passes=passes)
        whole = (*shape[:-1], shape[-1] * count) if grows else shape
        make = self._make(kind, shape)
        one = choose(make, replace(self._on(1), passes=passes), redundants, ("automatic",), self.say)
        # Slabs along the last axis push longer rows than parts with the least surface, which "best" makes.
        slabs = (*(1 for _ in shape[:-1]), count)
        cuts = ("best", slabs) if several.cut == "best" and count > _PAIR else (several.cut,)
        all_of_them = choose(self._make(kind, whole), several, redundants, self.scale.pushes, self.say, cuts)
        cases = [Case(make, one, shape), Case(self._make(kind, whole), all_of_them, whole)]
        alone, together = timed_in_turn(cases, self.scale.steps, self.scale.samples)
        for found, case in ((alone, cases[0]), (together, cases[1])):
            found.about["verified"] = self._is_right(kind, case.shape, case.settings)
        return _efficiency_row(identity, alone, together, count)

    def _blocked_efficiency(self, identity: str, kind: str, shape: Shape) -> Json:
        scale = self.scale
        redundants = scale.jacobi_redundants if kind == "jacobi" else scale.blocked_redundants
        return self._held_against_one(identity, kind, shape, _PAIR, redundants)

    def _on(self, count: int) -> Settings:
        devices = self.settings.devices
        if len(devices) < count:
            raise NoFigureError(f"it takes {count} devices, but there is only {devices[0].name}")
        if count == 1:
            return replace(self.settings, devices=devices[:1], cut="best")
        return replace(self.settings, devices=devices[:count])

    def _layers(self, shape: Shape) -> int:
        """Planes are closed boxes, because the figures are about the plain scheme."""
        return 0 if len(shape) == _PAIR else self.scale.layers

    def _make(self, kind: str, shape: Shape) -> Callable[[Settings], Work]:
        if kind == "jacobi":
            return partial(jacobi_work, shape=shape)
        return partial(fdtd_work, shape=shape, layers=self._layers(shape))

    def _is_right(self, kind: str, shape: Shape, settings: Settings) -> bool:
        if kind == "jacobi":
            return grid_check.jacobi_is_right(settings)
        return grid_check.fdtd_is_right(len(shape), settings, min(self._layers(shape), _CHECKED_LAYERS))

    def _timed(self, kind: str, shape: Shape, settings: Settings, steps: int) -> Timed:
        verified = self._is_right(kind, shape, settings)
        found = timed(Case(self._make(kind, shape), settings, shape), steps, self.scale.samples)
        found.about["verified"] = verified
        return found

    def _one(self, kind: str, shape: Shape, steps: int) -> Timed:
        key = (kind, shape, steps)
        if key not in self._of_one:
            self._of_one[key] = self._timed(kind, shape, self._on(1), steps)
        return self._of_one[key]

    def _chosen(self, kind: str, shape: Shape, steps: int, redundants: tuple[int, ...], settings: Settings) -> Timed:
        """Chooses the fastest number of steps between exchanges and per pass."""
        make = self._make(kind, shape)
        return self._timed(kind, shape, choose(make, settings, redundants, self.scale.pushes, self.say), steps)

    def _blocked(self) -> Json:
        settings = replace(self._on(1), passes="always")
        scale = self.scale
        found = self._chosen("fdtd", scale.plane, scale.steps, scale.blocked_redundants, settings)
        return _rate_row("grid.fdtd2d.blocked.cells", found)

    def _jacobi(self) -> Json:
        scale = self.scale
        found = self._chosen("jacobi", scale.jacobi, scale.steps, scale.jacobi_redundants, self._on(1))
        return _rate_row("grid.jacobi.cells", found)

    def _cells(self, identity: str, kind: str, shape: Shape) -> Json:
        return _rate_row(identity, self._one(kind, shape, self.scale.steps))

    def _efficiency(self, identity: str, kind: str, shape: Shape) -> Json:
        self._on(_PAIR)
        steps = self.scale.steps
        pair = replace(self._on(_PAIR), pass_steps=1)
        make = self._make(kind, shape)
        chosen = choose(make, pair, self.scale.redundants, self.scale.pushes, self.say)
        cases = [Case(make, self._on(1), shape), Case(make, chosen, shape)]
        one, two = timed_in_turn(cases, steps, self.scale.samples)
        for found, case in ((one, cases[0]), (two, cases[1])):
            found.about["verified"] = self._is_right(kind, shape, case.settings)
        return _efficiency_row(identity, one, two)

    def _small(self, count: int) -> Json:
        shape, steps = self.scale.small, self.scale.small_steps
        found = self._chosen("fdtd", shape, steps, self.scale.small_redundants, self._on(count))
        # A roof is a rate; the row's own rate is among the conditions.
        about = found.about | {"cells_per_second": median(found.rates), "roof_cells_per_second": found.roof}
        return results.row(f"grid.small.seconds{count}", found.seconds, "s", None, about)

    def _cpu(self) -> Json:
        devices = self.settings.devices
        if devices[0].kind.name != "cpu":
            raise NoFigureError("it is a figure of CPU devices: name them with --device cpu:0 --device cpu:1")
        shape, steps = self.scale.small, self.scale.steps
        count = min(len(devices), _PAIR)
        found = self._chosen("fdtd", shape, steps, self.scale.small_redundants, self._on(count))
        return _rate_row("grid.cpu.cells", found)


def _rate_row(identity: str, found: Timed) -> Json:
    roof = (found.roof, f"memory, {found.step_bytes / found.cells:.4g} bytes a cell")
    return results.row(identity, found.rates, "cells/s", roof, found.about)


def _efficiency_row(identity: str, one: Timed, several: Timed, count: int = _PAIR) -> Json:
    alone = median(one.rates)
    about = several.about | {
        "one_seconds": median(one.seconds),
        "several_seconds": median(several.seconds),
        "cells_per_second": median(several.rates),
        "verified": one.about["verified"] and several.about["verified"],
    }
    shares = [rate / (count * alone) for rate in several.rates]
    return results.row(identity, shares, "fraction", (1.0, f"{count} devices, each as fast as one alone"), about)
