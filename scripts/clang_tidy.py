"""Runs clang-tidy on files of a build, and leaves out those that passed before.

Usage: python scripts/clang_tidy.py CLANG_TIDY BUILD ENVIRONMENT FOLDER...

Checks the files in these folders that BUILD/compile_commands.json compiles. A file that passed is not checked again
while its text, the text of every header of the repository or the build that it includes, its command, the
configuration, clang-tidy and ENVIRONMENT are the same: a text that says which libraries are installed, whose headers
are not looked into. What has passed is remembered in headrace/clang-tidy under $XDG_CACHE_HOME (~/.cache), for 30 days
after it was last of use. Exits with 1 where clang-tidy finds something, which is printed.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
_DAYS_KEPT = 30


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


class Headers:
    """The headers of the repository, and of a build in it, that files include."""

    def __init__(self, root: Path, folders: tuple[Path, ...]) -> None:
        self._root = root
        self._folders = folders
        self._included: dict[Path, list[Path]] = {}

    def of(self, source: Path) -> list[Path]:
        """The source, and all that it includes, directly or not, in the order of their paths."""
        found = {source}
        waiting = [source]
        while waiting:
            for header in self._directly(waiting.pop()):
                if header not in found:
                    found.add(header)
                    waiting.append(header)
        return sorted(found)

    def _directly(self, path: Path) -> list[Path]:
        if path not in self._included:
            names = [name.decode() for name in _INCLUDE.findall(_text(path))]
            self._included[path] = [found for name in names if (found := self._find(path, name)) is not None]
        return self._included[path]

    def _find(self, by: Path, name: str) -> Path | None:
        for folder in (by.parent, *self._folders):
            candidate = Path(os.path.normpath(folder / name))
            if candidate.is_relative_to(self._root) and candidate.is_file():
                return candidate
        return None


@cache
def _headers(root: Path, folders: tuple[Path, ...]) -> Headers:
    return Headers(root, folders)


def _key(root: Path, entry: dict[str, str], common: bytes) -> str:
    """A name for everything that what clang-tidy says of a file depends on."""
    words = shlex.split(entry["command"])
    folders = [word[2:] for word in words if word.startswith("-I")]
    folders += [words[i + 1] for i, word in enumerate(words) if word == "-isystem"]
    inside = tuple(path for folder in folders if (path := Path(entry["directory"], folder)).is_relative_to(root))
    hashed = hashlib.sha256(common)
    hashed.update(entry["command"].replace(str(root), "").encode())
    for path in _headers(root, inside).of(Path(entry["file"])):
        hashed.update(f"\0{path.relative_to(root)}\0".encode() + hashlib.sha256(_text(path)).digest())
    return hashed.hexdigest()


def main() -> int:
    """Checks what has changed."""
    tidy, build, environment, *folders = sys.argv[1:]
    root = Path.cwd()
    passed = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "headrace", "clang-tidy")
    passed.mkdir(parents=True, exist_ok=True)
    for old in passed.iterdir():
        if old.stat().st_mtime < time.time() - _DAYS_KEPT * 86400:
            old.unlink(missing_ok=True)
    version = subprocess.run([tidy, "--version"], check=True, capture_output=True).stdout
    common = b"\0".join([version, Path(".clang-tidy").read_bytes(), environment.encode()])
    wanted = tuple(root / folder for folder in folders)
    entries = [
        entry
        for entry in json.loads(Path(build, "compile_commands.json").read_text())
        if any(Path(entry["file"]).is_relative_to(folder) for folder in wanted)
    ]
    if not entries:
        print(f"{build} compiles no file in {' '.join(folders)}")
        return 1

    def check(entry: dict[str, str]) -> tuple[bool, str]:
        """Whether the file was checked now, and what clang-tidy found in it."""
        mark = passed / _key(root, entry, common)
        if mark.exists():
            mark.touch()
            return False, ""
        done = subprocess.run(
            [tidy, "-p", build, "--quiet", entry["file"]], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return True, done.stdout + done.stderr
        mark.touch()
        return True, ""

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(check, entries))
    findings = [finding for _, finding in results if finding]
    print("".join(findings), end="")
    print(f"{sum(checked for checked, _ in results)} of {len(entries)} files checked, {len(findings)} with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
