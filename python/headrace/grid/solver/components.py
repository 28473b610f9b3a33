"""Reads which components of E and H the tables of a scene name."""

from collections.abc import Sequence

from headrace.grid.solver.keys import Keys
from headrace.grid.solver.scene import FIELDS, main_field


def read_component(keys: Keys, key: str, fields: Sequence[str], choices: Sequence[str], default: str) -> str:
    """One of `choices` out of the scene's fields.

    Raises:
        UsageError: for another one, saying so if it belongs to the other polarisation.
    """
    _check_polarisation(keys, key, (keys.text(key, default),), fields)
    return keys.choice(key, choices, default)


def read_components(keys: Keys, key: str, fields: Sequence[str]) -> tuple[str, ...]:
    """Distinct fields of these, by default the main one.

    Raises:
        UsageError: as read_component() does.
    """
    if keys.is_list(key):
        _check_polarisation(keys, key, keys.names(key, None), fields)
    return keys.words(key, fields, (main_field(fields),))


def _check_polarisation(keys: Keys, key: str, names: Sequence[str], fields: Sequence[str]) -> None:
    absent = [name for name in names if name in FIELDS and name not in fields]
    if not absent:
        return
    here, there = ("te", "tm") if "hz" in fields else ("tm", "te")
    raise keys.error(
        f"there is no '{absent[0]}' with polarisation = \"{here}\", only {', '.join(fields)}; "
        f'[domain] polarisation = "{there}" has it',
        key,
    )
