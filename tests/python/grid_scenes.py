"""Scenes for the tests of the grid's solver, with changes."""

from pathlib import Path

from headrace.grid.solver import Scene, parse_scene

PATH = Path("scene.toml")

FLAT = """
title = "Small"

[domain]
size = [0.4, 0.3]
spacing = 0.01
cpml = 0

[time]
steps = 150

[[materials]]
id = "sand"
permittivity = 4.0
conductivity = 0.01

[[objects]]
id = "ground"
type = "half_space"
axis = "y"
below = 0.1
material = "sand"

[[sources]]
position = [0.2, 0.2]
waveform = "ricker"
frequency = 0.5e9

[[receivers]]
id = "near"
position = [0.25, 0.2]
fields = ["ez", "hx"]

[snapshots]
interval = 0.5e-9

[scan]
step = [0.05, 0.0]
count = 3
"""


def flat(*changes: tuple[str, str]) -> Scene:
    """The scene with each old text replaced by a new one."""
    return parse_scene(changed(*changes), PATH)


def changed(*changes: tuple[str, str]) -> str:
    text = FLAT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
