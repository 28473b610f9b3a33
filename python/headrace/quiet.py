"""Tells whether the machine was quiet during a measurement: a figure from a disturbed machine is not a result."""

from collections.abc import Iterable
from typing import Any

from headrace._core import MachineActivity, MachineWatch

Json = dict[str, Any]

ABOVE_ROOF = 1.05  # share of a roof beyond measurement noise
ROOFS_DIFFER = 0.15  # difference between two measurements of a roof, as a share of the higher; see kRoofsDiffer


class Watch:
    """Watches the machine from construction on; callers can add further reasons to distrust the figures.

    Attributes:
        reasons: why the machine was not quiet, apart from the reasons of note().
    """

    def __init__(self) -> None:
        self._watch = MachineWatch()
        self._activity: MachineActivity | None = None
        self.reasons: list[str] = []

    def add(self, reason: str) -> None:
        """Adds a reason, unless it is empty."""
        if reason and reason not in self.reasons:
            self.reasons.append(reason)

    def roofs(self, name: str, values: Iterable[float]) -> None:
        """Adds a reason when measurements of one roof, in any unit, differ by more than ROOFS_DIFFER."""
        found = [value for value in values if value > 0]
        if found and min(found) < (1 - ROOFS_DIFFER) * max(found):
            self.add(f"the {name} roof read {found[0]:.3g}, then {found[-1]:.3g}")

    def stop(self) -> str:
        """Stops watching; returns why the machine was not quiet, or nothing."""
        if self._activity is None:
            self._activity = self._watch.lap()
            self.add(self._activity.disturbed)
        return "; ".join(self.reasons)

    def as_dict(self) -> Json:
        """The observations for JSON: `disturbed` is empty when the machine was quiet; the others are shares of time."""
        disturbed = self.stop()
        assert self._activity is not None
        return {"disturbed": disturbed} | activity_as_dict(self._activity)


def activity_as_dict(activity: MachineActivity) -> Json:
    """Shares of the processors' time, for JSON."""
    return {name: round(getattr(activity, name), 4) for name in ("others", "steal", "waiting", "runnable")}


def above_roof(share: float, roof_is: str) -> str:
    """Why a share of a roof is implausible, or nothing."""
    if share <= ABOVE_ROOF:
        return ""
    return f"{share:.0%} of what the {roof_is} allows: that was measured while the machine was disturbed"


def share_text(share: float, disturbed: str, digits: int = 1) -> str:
    """A share of a roof as text for a table: "disturbed" when it cannot be trusted."""
    return "disturbed" if disturbed or share > ABOVE_ROOF else f"{share:.{digits}%}"


def line(disturbed: str) -> str:
    """The line to print next to figures."""
    if not disturbed:
        return "The machine was quiet while this was measured."
    return f"DISTURBED: {disturbed}. Do not take these figures as results; measure again on a quiet machine."
