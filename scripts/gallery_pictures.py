"""Draws the pictures of docs/gallery.md and the tutorials that commands make; most of its minutes go into the scan.

Usage: .venv/bin/python scripts/gallery_pictures.py [FOLDER]
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from headrace.report import style

ROOT = Path(__file__).parents[1]
RADAR = ROOT / "examples/radar.toml"
LADDER = ROOT / "docs/results/ladder-light.h100-16.json"
SVG = "http://www.w3.org/2000/svg"


def headrace(*arguments: str | Path) -> None:
    """Runs the command; raises CalledProcessError when it fails."""
    subprocess.run([sys.executable, "-m", "headrace", *map(str, arguments)], check=True)


def save(source: Path, target: Path) -> None:
    """Saves a picture with a palette of 256 colours, in a third of the bytes."""
    Image.open(source).convert("RGB").quantize(256).save(target, optimize=True)


def draw_fields(work: Path, folder: Path) -> None:
    """Fields of the radar scene and of the tutorial's scene, and the radar's scan."""
    scene = re.search(r"```toml [^\n]*\n(.*?)^```$", (ROOT / "docs/tutorials/grid.md").read_text("utf-8"), re.M | re.S)
    assert scene is not None
    pulse = work / "pulse.toml"
    pulse.write_text(scene[1], encoding="utf-8")
    for file, at, name in ((RADAR, "7ns", "gallery-radar.png"), (pulse, "1.5ns", "tutorial-pulse.png")):
        headrace("grid", "fdtd", file, "--no-roof", "--png", work / name, "--at", at)
        save(work / name, folder / name)
    headrace("grid", "fdtd", RADAR, "--no-roof", "--scan", "--png", work / "gallery-scan.png")
    save(work / "gallery-scan.png", folder / "gallery-scan.png")


def draw_ladder(work: Path, folder: Path) -> None:
    """The first plot of a ladder's report as a separate file, in the colours of a light page."""
    headrace("results", "report", LADDER, "-o", work / "report.html")
    plot = re.search(r"<svg .*?</svg>", (work / "report.html").read_text("utf-8"), re.S)
    assert plot is not None
    text = plot[0].replace("<svg ", f'<svg xmlns="{SVG}" font-family="sans-serif" ', 1)
    for colour, variable in style.variables().items():
        text = text.replace(variable, colour)
    (folder / "gallery-ladder.svg").write_text(f"{text}\n", encoding="utf-8")


def main() -> int:
    """Draws all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures"
    with tempfile.TemporaryDirectory() as work:
        draw_ladder(Path(work), folder)
        draw_fields(Path(work), folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
