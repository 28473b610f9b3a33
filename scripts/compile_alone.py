"""Compiles each file of a build alone, to find files that rely on the includes of their neighbours.

Usage: python scripts/compile_alone.py BUILD ENVIRONMENT FOLDER...

A build with HEADRACE_UNITY compiles the files of a folder as one, and would not notice. The build's compiler reads each
file in these folders without producing an object (-fsyntax-only), except the first of a unit, which has no neighbour
before it and which every compilation of the unit therefore checks; files that passed before are skipped. Exits with 1
if a file does not compile. ENVIRONMENT as in clang_tidy.py.
"""

import dataclasses
import subprocess
import sys
from pathlib import Path

from sources import Unit, check_changed, units


def check(unit: Unit) -> str:
    """The compiler's message for a file that does not compile."""
    command = unit.command(unit.files[0], "-fsyntax-only")
    done = subprocess.run(command, cwd=unit.directory, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr or f"{unit.files[0]}: the compiler ended with status {done.returncode}\n"
    return "" if done.returncode == 0 else said


def main() -> int:
    """Compiles what has changed."""
    build, environment, *folders = sys.argv[1:]
    joined = units(Path(build), [Path.cwd() / folder for folder in folders])
    alone = [dataclasses.replace(unit, files=(file,)) for unit in joined for file in unit.files[1:]]
    return check_changed("compile-alone", environment.encode(), alone, check)


if __name__ == "__main__":
    sys.exit(main())
