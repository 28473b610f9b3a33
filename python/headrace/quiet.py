"""Whether the machine was quiet while something was measured: a figure from a disturbed machine is no result."""

from collections.abc import Iterable
from typing import Any

from headrace._core import MachineActivity, MachineWatch

Json = dict[str, Any]

ABOVE_ROOF = 1.05  # a share of a roof that no noise of a measurement explains
ROOFS_DIFFER = 0.15  # two measurements of one roof, as a share of the higher; see kRoofsDiffer in ladder.hpp


class Watch:
    """Looks at the machine from its making on; further reasons to distrust the figures can be added.

    Attributes:
        reasons: why the machine was not quiet, without those of note().
    """

    def __init__(self) -> None:
        self._watch = MachineWatch()
        self._activity: MachineActivity | None = None
        self.reasons: list[str] = []

    def add(self, reason: str) -> None:
        """Adds a reason; an empty one is none."""
        if reason and reason not in self.reasons:
            self.reasons.append(reason)

    def roofs(self, name: str, values: Iterable[float]) -> None:
        """Adds a reason when measurements of one roof, in any unit, differ by more than ROOFS_DIFFER."""
        found = [value for value in values if value > 0]
        if found and min(found) < (1 - ROOFS_DIFFER) * max(found):
            self.add(f"the {name} roof read {found[0]:.3g}, then {found[-1]:.3g}")

    def stop(self) -> str:
        """Ends watching; why the machine was not quiet, or nothing."""
        if self._activity is None:
            self._activity = self._watch.lap()
            self.add(self._activity.disturbed)
        return "; ".join(self.reasons)

    def as_dict(self) -> Json:
        """What was seen, for JSON: `disturbed` is empty when the machine was quiet; the others are shares of time."""
        disturbed = self.stop()
        assert self._activity is not None
        return {"disturbed": disturbed} | activity_as_dict(self._activity)


def activity_as_dict(activity: MachineActivity) -> Json:
    """Shares of the processors' time, for JSON."""
    return {name: round(getattr(activity, name), 4) for name in ("others", "steal", "waiting", "runnable")}


def above_roof(share: float, roof_is: str) -> str:
    """Why a share of a roof cannot be: nothing where it can."""
    if share <= ABOVE_ROOF:
        return ""
    return f"{share:.0%} of what the {roof_is} allows: that was measured while the machine was disturbed"


def share_text(share: float, disturbed: str, digits: int = 1) -> str:
    """A share of a roof as a table has it: "disturbed" where it cannot be trusted."""
    return "disturbed" if disturbed or share > ABOVE_ROOF else f"{share:.{digits}%}"


def line(disturbed: str) -> str:
    """What stands beside figures."""
    if not disturbed:
        return "The machine was quiet while this was measured."
    return f"DISTURBED: {disturbed}. Do not take these figures as results; measure again on a quiet machine."
