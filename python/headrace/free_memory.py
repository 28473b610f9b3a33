"""How much memory this process may still take: of the machine, and of the control groups that it is in."""

import resource
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_FILES = (  # of cgroup 2, then of cgroup 1: the limit, what is used, and the counts of pages that can be dropped
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
)


def resident_bytes() -> int:
    """The memory that this process holds."""
    return int((_PROC / "self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def free_bytes() -> int | None:
    """The memory that can be taken before the kernel ends a process, swap included; None where nothing tells it."""
    found = [value for value in (_machine(), *map(_left_in, _groups())) if value is not None]
    return min(found, default=None)


def _fields(path: Path, scale: int = 1) -> dict[str, int]:
    """The numbers of a file with a name and a number on each line; none where it cannot be read."""
    try:
        lines = [line.replace(":", " ").split() for line in path.read_text(encoding="ascii").splitlines()]
    except (OSError, ValueError):
        return {}
    return {words[0]: int(words[1]) * scale for words in lines if len(words) > 1 and words[1].isdecimal()}


def _machine() -> int | None:
    memory = _fields(_PROC / "meminfo", 1 << 10)
    return memory["MemAvailable"] + memory.get("SwapFree", 0) if "MemAvailable" in memory else None


def _groups() -> Iterator[Path]:
    """The folders of the groups that count the memory of this process, and of those above them."""
    try:
        lines = (_PROC / "self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _GROUPS / "memory" if controllers else _GROUPS
        group = root / path.lstrip("/")  # which a container does not see under that name, but the root it does
        yield from (root, *(one for one in (group, *group.parents) if root in one.parents))


def _left_in(group: Path) -> int | None:
    """What a group may still take; None where it has no limit. Swap is left out: not every group may use it."""
    for limit, used, droppable in _FILES:
        try:
            most = int((group / limit).read_text(encoding="ascii"))
            now = int((group / used).read_text(encoding="ascii"))
        except (OSError, ValueError):  # "max" is no number
            continue
        pages = _fields(group / "memory.stat")
        return max(most - now + sum(pages.get(name, 0) for name in droppable), 0)
    return None
