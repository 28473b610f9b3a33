"""Reads commands of the model as a whole and of its materials."""

import json
import math
from collections.abc import Callable

from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Model, once

Reader = Callable[[Model, Command], None]

_BEST_CONDUCTOR = 1e10  # S/m, as for pec


def _title(model: Model, command: Command) -> None:
    model.title = command.words[0]


def _domain(model: Model, command: Command) -> None:
    command.expect(3)
    once(command, model.domain)
    size = command.numbers(0, 3)
    if min(size) <= 0:
        raise command.error(f"{min(size):g} m is not above 0")
    model.domain = (command, size)


def _spacing(model: Model, command: Command) -> None:
    command.expect(3)
    once(command, model.spacing)
    steps = command.numbers(0, 3)
    if min(steps) <= 0:
        raise command.error(f"{min(steps):g} m is not above 0")
    # Numbers that differ by their last digits are the same.
    model.spacing = (command, [steps[0] if math.isclose(one, steps[0], rel_tol=1e-9) else one for one in steps])


def _window(model: Model, command: Command) -> None:
    command.expect(1)
    once(command, model.window)
    iterations = command.whole(0)
    if iterations is not None:
        if iterations < 1:
            raise command.error("the number of iterations must be 1 or more, not 0")
        # gprMax counts time 0, when all fields are 0, as its first iteration.
        model.window = (command, f"steps = {max(1, iterations - 1)}")
        return
    seconds = command.number(0)
    if seconds <= 0:
        raise command.error(f"{seconds:g} s is not above 0")
    model.window = (command, f"window = {seconds!r}")


def _courant(model: Model, command: Command) -> None:
    command.expect(1)
    factor = command.number(0)
    if not 0 < factor <= 1:
        raise command.error(f"{factor:g} is out of range: it must be above 0 and at most 1")
    model.courant = factor


def _material(model: Model, command: Command) -> None:
    command.expect(5)
    # An infinite conductivity is allowed: gprMax makes it a perfect conductor.
    best = command.words[1].lower() in ("inf", "+inf", "infinity")
    permittivity, permeability, loss = command.number(0), command.number(2), command.number(3)
    conductivity = _BEST_CONDUCTOR if best else command.number(1)
    name = command.words[4]
    if name in model.materials or name in ("pec", "free_space"):
        raise command.error(f"there is already a material '{name}'")
    model.materials[name] = ""
    if loss != 0:
        raise command.error(f"the solver does not support a magnetic loss of {loss:g} Ohm/m")
    for value, what in ((permittivity, "permittivity"), (permeability, "permeability")):
        if value <= 0:
            raise command.error(f"a {what} of {value:g} is not above 0")
    if conductivity < 0:
        raise command.error(f"a conductivity of {conductivity:g} S/m is below 0")
    if permeability != 1:
        model.magnetic.add(name)
    called = json.dumps(model.name_for("material", name), ensure_ascii=False)
    model.materials[name] = (
        f"[[materials]]\nid = {called}\npermittivity = {permittivity!r}\n"
        f"permeability = {permeability!r}\nconductivity = {conductivity!r}\n"
    )


READERS: dict[str, Reader] = {
    "title": _title,
    "domain": _domain,
    "dx_dy_dz": _spacing,
    "time_window": _window,
    "time_step_stability_factor": _courant,
    "material": _material,
}
