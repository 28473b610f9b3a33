"""Writes requirements/*.lock: what requirements/*.txt name and pull in, with the hashes of all their files.

Run it after changing a requirement: python scripts/lock_requirements.py. It installs pip-tools in a temporary folder,
queries the package index, and takes minutes. Locked versions stay unless a .txt file names another or --upgrade is
given.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "requirements"
# Each purpose is installed together with these, whose packages its own file omits.
INSTALLED_WITH = {"run": (), "test": ("run",), "lint": ("run", "test"), "docs": ("run",), "wheel": ("run",)}
PURPOSES = tuple(INSTALLED_WITH)
PIP_TOOLS = "pip-tools==7.6.2"
HEADER = "# Exact versions, and the hashes of all their files in the index. Made by scripts/lock_requirements.py.\n"


def name_of(requirement: str) -> str:
    """The name of a package in the index's spelling."""
    return re.split(r"[\s=<>!~\[;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def named_by(purpose: str) -> list[str]:
    """The packages that a .txt file names, with their versions."""
    lines = (FOLDER / f"{purpose}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def compile_all(*, upgrade: bool) -> str:
    """The output of pip-compile for all purposes together, with hashes and the packages that pull in others."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", PIP_TOOLS], check=True)
        output = Path(folder, "all.lock")
        if not upgrade:
            locks = [FOLDER / f"{purpose}.lock" for purpose in PURPOSES]
            output.write_text("".join(lock.read_text(encoding="utf-8") for lock in locks if lock.exists()))
        wanted = Path(folder, "all.in")
        wanted.write_text("\n".join(line for purpose in PURPOSES for line in named_by(purpose)), encoding="utf-8")
        options = ["--quiet", "--generate-hashes", "--allow-unsafe", "--strip-extras", "--output-file", output]
        subprocess.run([python, "-m", "piptools", "compile", *options, wanted], check=True)
        return output.read_text(encoding="utf-8")


def parse(text: str) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The lines of each package without comments, and the packages that each pulls in."""
    blocks: dict[str, str] = {}
    pulls: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(("#", "-")) or not line.strip():
            continue
        if not line.startswith(" "):
            name = name_of(line)
            blocks[name] = ""
        comment = re.match(r"\s+#\s+(?:via\s+)?(\S+)$", line)
        if comment:
            pulls.setdefault(name_of(comment[1]), set()).add(name)
        elif not line.lstrip().startswith("#"):
            blocks[name] += f"{line}\n"
    return blocks, pulls


def closure(names: list[str], pulls: dict[str, set[str]]) -> set[str]:
    """The packages and everything that they pull in."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += pulls.get(name, ())
    return found


def main() -> int:
    """Writes the files; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest version of everything that no .txt file pins"
    )
    upgrade = parser.parse_args().upgrade
    blocks, pulls = parse(compile_all(upgrade=upgrade))
    locked: dict[str, set[str]] = {}
    for purpose, others in INSTALLED_WITH.items():
        mine = closure([name_of(line) for line in named_by(purpose)], pulls)
        mine -= set().union(*(locked[other] for other in others))
        text = HEADER + "".join(blocks[name] for name in sorted(mine))
        (FOLDER / f"{purpose}.lock").write_text(text, encoding="utf-8")
        locked[purpose] = mine
        print(f"requirements/{purpose}.lock: {len(mine)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
