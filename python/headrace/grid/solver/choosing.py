"""What of a scene's layout is measured before its run: the cut by speed, redundant layers, and the push."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.grid.solver import memory
from headrace.grid.solver.model import Layout
from headrace.grid.solver.poles import values_of
from headrace.grid.solver.scene import Scene

if TYPE_CHECKING:
    from headrace.grid.choice import Trial

# Trials are some 130 steps on one device and 400 on several: a shorter run does not win them back.
LEAST_STEPS = 4000


@dataclass(frozen=True)
class Chosen:
    """A layout with nothing left open, and what was tried for it."""

    layout: Layout
    trials: "tuple[Trial, ...]" = ()

    @property
    def seconds_per_step(self) -> float | None:
        """The time of the quickest; None where nothing was tried."""
        return min((one.seconds_per_step for one in self.trials if one.seconds_per_step is not None), default=None)


def choose(
    scene: Scene, layout: Layout, *, redundant: int | None, push: str | None, by_speed: bool, steps: int
) -> Chosen:
    """Fills in what is None, by trials on the layout's devices where a run of so many steps is worth them.

    Without trials there is an exchange each step, and the push is left to the library. Over several ranks there are
    none; a cut by speed is of all of them.

    Raises:
        DeviceError: when there is no memory for the scene.
    """
    memory.check(scene, replace(layout, redundant=redundant or 1))
    # Slabs exchange nothing, and do as many steps in a pass as they like.
    slabs = memory.in_slabs(scene, layout)
    tried = steps >= LEAST_STEPS and layout.ranks is None and not slabs
    known = replace(layout, redundant=redundant or 1, push=push or "automatic")
    if not by_speed and not (tried and (redundant is None or push is None)):
        return Chosen(known)
    from headrace.grid import Fdtd  # noqa: PLC0415 - loads the extension

    solver = Fdtd(
        scene.shape,
        scene.spacing,
        dt=scene.dt,
        devices=list(layout.devices),
        cut="measured" if by_speed else layout.cut,
        redundant="measured" if tried and redundant is None else known.redundant,
        push="measured" if tried and push is None else known.push,
        mode=layout.mode,
        wait_limit=layout.wait_limit,
        device_memory=layout.device_memory,
        visit_steps=layout.visit_steps,
        cpml=scene.layers,
        precision=scene.precision,
        averaging=scene.averaging,
        per_component=scene.smoothing,
        pole_values=values_of(scene),
        ranks=layout.ranks,
    )
    weights = tuple(solver.speeds) if by_speed else None
    return Chosen(
        replace(known, weights=weights, redundant=solver.redundant, push=solver.push if tried else known.push),
        tuple(solver.trials),
    )
