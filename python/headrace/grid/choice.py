"""Parts of a layout that are chosen by measurement: cuts by speed; redundant layers and the push by trials."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace._core import FdtdOptions, Ranks
from headrace.errors import UsageError

MEASURED = "measured"

# Complete cycles of at least this many steps are timed, three times after one untimed cycle.
_STEPS = 8


class Trial(NamedTuple):
    """One choice that was tried."""

    redundant: int
    push: str
    seconds_per_step: float | None  # best of three; None if it could not run
    why_not: str  # "" if it could


def take_trials(options: FdtdOptions, redundant: int | str, push: str) -> list[Trial]:
    """Sets the options that are "measured" to the fastest choices; returns the trials, none if nothing is measured.

    Raises:
        UsageError: for another word, and with several ranks.
    """
    if isinstance(redundant, str) and redundant != MEASURED:
        raise UsageError(f'redundant must be "{MEASURED}" or a number of steps, not "{redundant}"')
    if MEASURED not in {redundant, push}:
        return []
    layers = None if isinstance(redundant, str) else redundant
    tried = options.tune(layers, None if push == MEASURED else push, _STEPS)
    return [Trial(*one) for one in tried]


def take_speeds(
    options: FdtdOptions, cut: str | Sequence[int], weights: Sequence[float] | None, ranks: Ranks | None
) -> list[float]:
    """Sets slabs by weights or measured speeds, which it returns; returns nothing for other cuts.

    Raises:
        UsageError: for weights together with a cut, or invalid weights.
    """
    if weights is None and cut != MEASURED:
        return []
    if weights is not None and cut != "best":
        raise UsageError("weights cut slabs along the last axis: leave out cut")
    if weights is None:
        speeds = options.measure_speeds(_STEPS)
        if ranks:
            texts = ranks.gather(",".join(f"{speed:.6g}" for speed in speeds))
            speeds = [float(speed) for text in texts for speed in text.split(",")]
    else:
        speeds = [float(weight) for weight in weights]
    options.weigh(speeds)
    return speeds
