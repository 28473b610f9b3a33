"""The C++ files that a build compiles, their dependencies, and which of them passed a check before.

A build with HEADRACE_UNITY compiles the files of a folder as one; here they are the original files, with the command of
their unit. Passed checks are remembered in headrace/CHECK under $XDG_CACHE_HOME (~/.cache), for 30 days after their
last use.
"""

import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
_MEMBER = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
_DAYS_KEPT = 30


@dataclass(frozen=True)
class Unit:
    """A compilation unit: the files, and the words of the command without its input and output."""

    directory: str
    words: tuple[str, ...]
    files: tuple[Path, ...]

    def command(self, source: Path, *options: str) -> list[str]:
        """The command for another input."""
        return [*self.words, *options, str(source)]


def units(build: Path, folders: Iterable[Path]) -> list[Unit]:
    """The units of a build that consist of files in these folders."""
    wanted = tuple(folders)
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        files = _files(Path(entry["file"]))
        if all(any(file.is_relative_to(folder) for folder in wanted) for file in files):
            found.append(Unit(entry["directory"], tuple(_words(entry)), files))
    return found


def _files(source: Path) -> tuple[Path, ...]:
    """The files that CMake joined in a source, or the source itself."""
    if source.name.startswith("unity_") and source.parent.name == "Unity":
        return tuple(Path(name) for name in _MEMBER.findall(source.read_text()))
    return (source,)


def _words(entry: dict[str, str]) -> list[str]:
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word == "-o":
            next(words)
        elif word != "-c" and not word.endswith("ccache") and Path(entry["directory"], word) != Path(entry["file"]):
            kept.append(word)
    return kept


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


class _Headers:
    """The headers of the repository, and of a build in it, that files include."""

    def __init__(self, root: Path, folders: tuple[Path, ...]) -> None:
        self._root = root
        self._folders = folders
        self._included: dict[Path, list[Path]] = {}

    def of(self, sources: Iterable[Path]) -> list[Path]:
        """The sources and everything they include, directly or not, ordered by path."""
        waiting = list(sources)
        found = set(waiting)
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
def _headers(root: Path, folders: tuple[Path, ...]) -> _Headers:
    return _Headers(root, folders)


def _key(root: Path, unit: Unit, common: bytes) -> str:
    """A key for everything that affects the outcome of a check."""
    folders = [word[2:] for word in unit.words if word.startswith("-I")]
    folders += [unit.words[i + 1] for i, word in enumerate(unit.words) if word == "-isystem"]
    inside = tuple(path for folder in folders if (path := Path(unit.directory, folder)).is_relative_to(root))
    hashed = hashlib.sha256(common)
    hashed.update(shlex.join(unit.words).replace(str(root), "").encode())
    for file in unit.files:
        hashed.update(f"\0{file.relative_to(root)}".encode())
    for path in _headers(root, inside).of(unit.files):
        hashed.update(f"\0{path.relative_to(root)}\0".encode() + hashlib.sha256(_text(path)).digest())
    return hashed.hexdigest()


def check_changed(name: str, common: bytes, all_units: list[Unit], check: Callable[[Unit], str]) -> int:
    """Checks changed units, one per processor at a time; prints the findings of check().

    A unit that passed is not checked again while its files, the headers of the repository or the build that they
    include, its command and `common` are unchanged. Returns an exit status: 1 if something was found.
    """
    root = Path.cwd()
    passed = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "headrace", name)
    passed.mkdir(parents=True, exist_ok=True)
    for old in passed.iterdir():
        if old.stat().st_mtime < time.time() - _DAYS_KEPT * 86400:
            old.unlink(missing_ok=True)

    def check_one(unit: Unit) -> tuple[int, str]:
        """Number of files checked now, and the findings."""
        mark = passed / _key(root, unit, common)
        finding = "" if mark.exists() else check(unit)
        checked = 0 if mark.exists() else len(unit.files)
        if not finding:
            mark.touch()
        return checked, finding

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(check_one, all_units))
    findings = [finding for _, finding in results if finding]
    files = sum(len(unit.files) for unit in all_units)
    print("".join(findings), end="")
    print(f"{sum(checked for checked, _ in results)} of {files} files checked, {len(findings)} with findings")
    return 1 if findings or not files else 0
