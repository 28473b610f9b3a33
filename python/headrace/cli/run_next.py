"""The commands that `headrace run` prints at its end: each works when pasted in the same terminal."""

import importlib.util
import shlex
import shutil
import sys
from pathlib import Path

_RADAR = Path("examples/radar.toml")


def program() -> str:
    """How to call this program from here: by name if the shell finds it, else by path."""
    called = Path(sys.argv[0]).absolute()
    found = shutil.which("headrace")
    if found is not None and Path(found).absolute() == called:
        return "headrace"
    if called.name != "headrace" or not called.exists():
        return f"{shlex.quote(sys.executable)} -m headrace"
    here = Path.cwd()
    return shlex.quote(str(called.relative_to(here) if called.is_relative_to(here) else called))


def next_steps(index: Path | None) -> list[tuple[str, str]]:
    """Commands, and what each does."""
    name = program()
    steps = []
    if index is not None:
        steps.append(
            (f'{name} query {shlex.quote(str(index))} "whale AND NOT fish" --corpus wordnet', "run a query of your own")
        )
    steps.append((f"{name} tune --budget 60s", "find the best plan for small queries on this machine"))
    if _RADAR.exists():
        drawn = importlib.util.find_spec("matplotlib") is not None
        picture = " --png radar.png" if drawn else ""
        steps.append((f"{name} grid fdtd {_RADAR}{picture}", "simulate a ground radar, here on the same devices"))
    steps.append((f"{name} doctor", "find what slows a GPU down on this machine"))
    steps.append((f"{name} --help", "everything else"))
    return steps
