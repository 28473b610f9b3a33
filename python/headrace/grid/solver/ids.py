"""Ids of a scene's tables: unique names, and names of materials."""

import re
from collections.abc import Iterable

from headrace.grid.solver.keys import Keys, nearest
from headrace.grid.solver.scene import Material


def unique(entries: Iterable[tuple[Keys, str]], taken: Iterable[str] = ()) -> None:
    """Refuses a duplicate id, or one that cannot be the name of a data set."""
    seen = set(taken)
    for keys, name in entries:
        if not re.fullmatch(r"[\w.-]*\w[\w.-]*", name):
            raise keys.error(f"'{name}' must consist of letters, digits, '_', '-' and '.' only", "id")
        if name in seen:
            raise keys.error(f"there is already a '{name}'", "id")
        seen.add(name)


def known_material(keys: Keys, key: str, name: str, materials: dict[str, Material]) -> None:
    """Refuses an unknown material."""
    if name not in materials:
        raise keys.error(f"there is no material '{name}'{nearest(name, materials)}", key)
