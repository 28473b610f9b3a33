"""Compiles each file of a build alone, so that one that leans on what its neighbours include is found.

Usage: python scripts/compile_alone.py BUILD ENVIRONMENT FOLDER...

A build with HEADRACE_UNITY compiles files of a folder as one, and would not notice. Each file in these folders is read
by the build's compiler without making an object of it (-fsyntax-only); those that passed before are left out. Exits
with 1 where a file does not compile. ENVIRONMENT as in clang_tidy.py.
"""

import dataclasses
import subprocess
import sys
from pathlib import Path

from sources import Unit, check_changed, units


def check(unit: Unit) -> str:
    """What the compiler says of a file that does not compile."""
    command = unit.command(unit.files[0], "-fsyntax-only")
    done = subprocess.run(command, cwd=unit.directory, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr or f"{unit.files[0]}: the compiler ended with status {done.returncode}\n"
    return "" if done.returncode == 0 else said


def main() -> int:
    """Compiles what has changed."""
    build, environment, *folders = sys.argv[1:]
    joined = units(Path(build), [Path.cwd() / folder for folder in folders])
    alone = [dataclasses.replace(unit, files=(file,)) for unit in joined if len(unit.files) > 1 for file in unit.files]
    return check_changed("compile-alone", environment.encode(), alone, check)


if __name__ == "__main__":
    sys.exit(main())
