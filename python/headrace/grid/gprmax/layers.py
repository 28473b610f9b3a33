"""Reads and writes the absorbing layers: their thickness and their grading.

The layers of gprMax with one pole (Giannopoulos, IEEE Transactions on Antennas and Propagation 60, 2012) have the
stretch of a scene's layers, kappa + sigma / (alpha + j omega eps0), so its profiles become numbers of `[domain.cpml]`.
"""

import json
import math

from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Model, Profile, once
from headrace.grid.solver.scene import LIGHT, VACUUM_PERMEABILITY
from headrace.grid.spacing import is_even

_SIDES = 6
_CELLS = 10  # gprMax's default thickness
_WORDS = 12  # of #pml_cfs: kind, direction, minimum and maximum of alpha, kappa and sigma
_ORDERS = {
    name: order
    for order, name in enumerate(("constant", "linear", "quadratic", "cubic", "quartic", "quintic", "sextic"))
}
_DIRECTIONS = ("forward", "reverse")
_FLAT = 1e-9  # exponent of a profile that is constant up to the wall, where no field needs it


def _cells(model: Model, command: Command) -> None:
    command.expect(1, _SIDES)
    once(command, model.layers)
    cells = [count for index in range(len(command.words)) if (count := command.whole(index)) is not None]
    if len(cells) != len(command.words):
        raise command.error("the thickness of layers must be a whole number of cells")
    model.layers = (command, cells * (_SIDES // len(cells)))


def _profile(command: Command, first: int) -> Profile:
    kind, direction, most = command.words[first], command.words[first + 1], command.words[first + 3]
    if kind.lower() not in _ORDERS:
        raise command.error(f"there is no profile '{kind}'; there are {', '.join(_ORDERS)}")
    if direction.lower() not in _DIRECTIONS:
        raise command.error(f"'{direction}' is neither forward nor reverse")
    optimal = most.lower() == "none" and first == _WORDS - 4
    return Profile(
        _ORDERS[kind.lower()],
        direction.lower() == "forward",
        command.number(first + 2),
        None if optimal else command.number(first + 3),
    )


def _grading(model: Model, command: Command) -> None:
    command.expect(_WORDS)
    alpha, kappa, sigma = (_profile(command, first) for first in (0, 4, 8))
    model.grading.append((command, alpha, kappa, sigma))


def text_of(model: Model, shape: list[int]) -> str:
    """The absorbing layers for the scene's text; in two dimensions there are none across z."""
    command, cells = model.layers or (model.domain or model.spacing, [_CELLS] * _SIDES)
    assert command is not None
    place: Command = command if isinstance(command, Command) else command[0]
    pairs = [(cells[axis], cells[axis + 3]) for axis in range(2 if model.flat else 3)]
    for letter, (low, high), count in zip("xyz", pairs, shape, strict=False):
        if count <= low + high:
            both = f"{low} cells" if low == high else f"{low} and {high} cells"
            raise place.error(f"absorbing layers of {both} at both ends leave nothing of {count} cells along {letter}")
    if not any(side for pair in pairs for side in pair):
        return "cpml = 0\n"
    same = len({side for pair in pairs for side in pair}) == 1
    keys = {"cells": pairs[0][0] if same else json.dumps(pairs)} | _keys(model)
    return "\n[domain.cpml]\n" + "".join(f"{name} = {value}\n" for name, value in keys.items())


def _keys(model: Model) -> dict[str, float]:
    """The grading that gprMax has, in the terms of a scene: that of the file, or its default."""
    usual: dict[str, float] = {"order": 4, "sigma": 1, "kappa": 1, "alpha": 0}
    if not model.grading:
        return usual
    command, alpha, kappa, sigma = model.grading[0]
    if len(model.grading) > 1:
        model.findings.note(
            f"{model.grading[1][0].place}: layers with two poles are not supported: they have gprMax's default grading"
        )
        return usual
    found = _of_profiles(model, alpha, kappa, sigma)
    if found is None:
        model.findings.note(
            f"{command.place}: such profiles are not supported: the layers have gprMax's default grading. Supported: "
            "sigma forward from 0; kappa forward from 1, or constant 1; alpha constant, or reverse from 0; in cells "
            "that are no cubes, sigma to None and no alpha"
        )
        return usual
    return found


def _of_profiles(model: Model, alpha: Profile, kappa: Profile, sigma: Profile) -> dict[str, float] | None:
    """The keys for these profiles, or None if layers cannot have them."""
    if not sigma.forward or sigma.least != 0 or sigma.order == 0:
        return None
    stretched = kappa.least != 1 or kappa.most != 1
    if stretched and (not kappa.forward or kappa.least != 1 or kappa.order == 0):
        return None
    level = alpha.order == 0 or alpha.least == alpha.most
    if level and alpha.least != alpha.most:
        return None
    if not level and (alpha.forward or alpha.least != 0):
        return None
    # A scene has these in units that differ between axes if spacings do.
    if not is_even(model.cell_in_scene) and (sigma.most is not None or alpha.most):
        return None
    unit = 0.8 * (sigma.order + 1) / (LIGHT * VACUUM_PERMEABILITY * model.cell[0])
    keys: dict[str, float] = {
        "order": sigma.order,
        "sigma": 1 if sigma.most is None else sigma.most / unit,
        "kappa": kappa.most or 1,
    }
    if stretched:
        keys["kappa_order"] = kappa.order
    keys["alpha"] = (alpha.most or 0) / unit
    if keys["alpha"]:
        keys["alpha_order"] = _FLAT if level else alpha.order
    return keys if all(math.isfinite(value) for value in keys.values()) else None


READERS: dict[str, Reader] = {"pml_cells": _cells, "pml_cfs": _grading}
