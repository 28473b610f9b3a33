"""Runs clang-tidy on files of a build, except those that passed before.

Usage: python scripts/clang_tidy.py CLANG_TIDY BUILD ENVIRONMENT FOLDER...

Checks the files in these folders that BUILD/compile_commands.json compiles. Files that the build compiles as one unit
are concatenated, because most of the time goes into their common includes; the analyzer only examines functions of the
main file, so they cannot be included instead. Findings are printed with the names and lines of the original files.
ENVIRONMENT is a text that identifies the installed libraries, whose headers are not checked: when it changes,
everything is checked again. Exits with 1 if clang-tidy finds something.
"""

import bisect
import json
import re
import subprocess
import sys
from pathlib import Path

from sources import Unit, check_changed, units


class Joined:
    """Files concatenated into one file."""

    def __init__(self, path: Path, files: tuple[Path, ...]) -> None:
        self.path = path
        self._files = files
        self._before: list[int] = []  # lines before each file
        lines: list[str] = []
        for file in files:
            self._before.append(len(lines))
            lines += file.read_text().splitlines()
        path.write_text("\n".join(lines) + "\n")

    def where(self, said: str) -> str:
        """Maps a tool's output on the joined file to the original files."""

        def of_file(match: re.Match[str]) -> str:
            line = int(match[1])
            which = bisect.bisect_left(self._before, line) - 1
            return f"{self._files[which]}:{line - self._before[which]}"

        return re.sub(re.escape(str(self.path)) + r":(\d+)", of_file, said)


def main() -> int:
    """Checks what has changed."""
    tidy, build, environment, *folders = sys.argv[1:]
    all_units = units(Path(build), [Path.cwd() / folder for folder in folders])
    joined_folder = Path.cwd() / build / "joined"
    joined_folder.mkdir(exist_ok=True)
    joined: dict[Unit, Joined | None] = {}
    commands = []
    for number, unit in enumerate(all_units):
        file = unit.files[0]
        joined[unit] = None
        options: list[str] = []
        if len(unit.files) > 1:
            one = joined[unit] = Joined(joined_folder / f"{file.parent.name}_{number}.cpp", unit.files)
            options = [f"-iquote{folder}" for folder in sorted({str(each.parent) for each in unit.files})]
            file = one.path
        commands.append({"directory": unit.directory, "file": str(file), "arguments": unit.command(file, *options)})
    (joined_folder / "compile_commands.json").write_text(json.dumps(commands))

    def check(unit: Unit) -> str:
        one = joined[unit]
        source = unit.files[0] if one is None else one.path
        done = subprocess.run(
            [tidy, "-p", str(joined_folder), "--quiet", str(source)], capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr or f"{source}: clang-tidy ended with status {done.returncode}\n"
        return "" if done.returncode == 0 else (said if one is None else one.where(said))

    version = subprocess.run([tidy, "--version"], check=True, capture_output=True).stdout
    common = b"\0".join([version, Path(".clang-tidy").read_bytes(), Path(__file__).read_bytes(), environment.encode()])
    return check_changed("clang-tidy", common, all_units, check)


if __name__ == "__main__":
    sys.exit(main())
