"""Measures parts of a scene's layout before its run: the cut by speed, redundant layers, and the push."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.grid.solver import memory
from headrace.grid.solver.model import Layout
from headrace.grid.solver.poles import values_of
from headrace.grid.solver.scene import Scene

if TYPE_CHECKING:
    from headrace.grid.choice import Trial

# Trials take some 130 steps on one device and 400 on several: a shorter run does not recover their cost.
LEAST_STEPS = 4000


@dataclass(frozen=True)
class Chosen:
    """A complete layout, and the trials behind it."""

    layout: Layout
    trials: "tuple[Trial, ...]" = ()

    @property
    def seconds_per_step(self) -> float | None:
        """Time of the fastest trial; None without trials."""
        return min((one.seconds_per_step for one in self.trials if one.seconds_per_step is not None), default=None)


def choose(
    scene: Scene, layout: Layout, *, redundant: int | None, push: str | None, by_speed: bool, steps: int
) -> Chosen:
    """Replaces None in the layout, by trials on its devices if a run of this many steps is worth them.

    Without trials there is an exchange each step, and the library chooses the push. With several ranks there are no
    trials; a cut by speed covers all of them.

    Raises:
        DeviceError: when there is not enough memory for the scene.
    """
    memory.check(scene, replace(layout, redundant=redundant or 1))
    # Slabs exchange nothing, and may do any number of steps in a pass.
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
        polarisation=scene.polarisation,
        ranks=layout.ranks,
        magnetic_walls=scene.walls_named(),
        periodic=scene.periodic_named(),
    )
    weights = tuple(solver.speeds) if by_speed else None
    return Chosen(
        replace(known, weights=weights, redundant=solver.redundant, push=solver.push if tried else known.push),
        tuple(solver.trials),
    )
