"""Checks the three kinds of headers defined in docs/decisions/0086.

Public headers, include/headrace/<module>/*.hpp and the umbrellas above them, are those that users include by name.
There are at most PUBLIC_MOST, so that each new one is a deliberate choice. Details, include/headrace/<module>/detail/,
are installed because a public header or another module needs them; a detail used only by its own module belongs in
src/. An umbrella includes every public header of its module except those that need more than the library (APART).
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from check_includes import INCLUDE, SUFFIXES, module_of, resolve

PUBLIC_MOST = 70
APART = {"headrace/grid/mpi.hpp", "headrace/operators/library.hpp"}
WITHOUT_UMBRELLA = {"base", "measure"}


def included(root: Path, file: Path) -> set[Path]:
    """The files of this repository that a file includes."""
    path = file.relative_to(root)
    names = (match[1] or match[2] for match in INCLUDE.finditer(file.read_text(encoding="utf-8")))
    return {target for target in (resolve(root, path, name) for name in names) if target is not None}


def reached(starts: set[Path], includes: dict[Path, set[Path]]) -> set[Path]:
    """Everything that `starts` include, at any depth, and themselves."""
    found, waiting = set(starts), list(starts)
    while waiting:
        following = includes.get(waiting.pop(), set()) - found
        found |= following
        waiting += following
    return found


def umbrella_complaints(public: set[Path], includes: dict[Path, set[Path]]) -> Iterator[str]:
    """Public headers that the umbrella of their module does not include."""
    for header in sorted(public):
        module = header.parts[2]
        if len(header.parts) < 4 or module in WITHOUT_UMBRELLA:  # noqa: PLR2004
            continue
        umbrella = Path("include/headrace") / f"{module}.hpp"
        if header not in includes.get(umbrella, set()) and str(header.relative_to("include")) not in APART:
            yield f"{umbrella} does not include {header}"


def complaints(root: Path) -> Iterator[str]:
    """All problems with the headers of a repository."""
    files = [
        file
        for folder in ("include", "src", "operators", "bench")
        for file in sorted((root / folder).rglob("*"))
        if file.suffix in SUFFIXES
    ]
    includes = {file.relative_to(root): included(root, file) for file in files}
    headers = {path for path in includes if path.parts[0] == "include"}
    public = {path for path in headers if "detail" not in path.parts}
    if len(public) > PUBLIC_MOST:
        yield f"{len(public)} public headers, but at most {PUBLIC_MOST} may be: see docs/decisions/0086"
    elsewhere = {
        target
        for path, targets in includes.items()
        for target in targets
        if path.parts[0] != "include" and module_of(path) != module_of(target)
    }
    needed = reached(public | (elsewhere & headers), includes)
    for header in sorted(headers - needed):
        yield f"{header} is used only by its own module: move it to src/"
    yield from umbrella_complaints(public, includes)


def main() -> int:
    """Checks the repository of this script, or the given folder."""
    root = (Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(complaints(root))
    print("\n".join(found) if found else "headers are public, details, or private")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
