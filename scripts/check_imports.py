"""Checks that python/headrace has no circular imports.

Every import counts, including those for type checkers and those within functions: in any circle, no file can be
understood without the others. Imports of the enclosing packages do not count.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "headrace"


def modules(folder: Path) -> dict[str, Path]:
    """The files of the package by the names of their modules."""
    found = {}
    for file in sorted((folder / PACKAGE).rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(name: str, file: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports: `from headrace import tables` imports headrace.tables."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        wanted: list[str] = []
        if isinstance(node, ast.Import):
            wanted = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            below = [f"{node.module}.{one.name}" for one in node.names]
            wanted = [one if one in known or one == f"{PACKAGE}._core" else node.module for one in below]
        yield from (one for one in wanted if one in known and one != name)


def cycle(imports: dict[str, list[str]]) -> list[str] | None:
    """The first circle as its modules in order, with the first repeated at the end; None if there is none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str] | None:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return None
        for one in imports[name]:
            found = visit(one, [*way, name])
            if found is not None:
                return found
        done.add(name)
        return None

    return next((found for name in sorted(imports) if (found := visit(name, [])) is not None), None)


def main() -> int:
    """Checks the package beside this script, or that in the given folder."""
    known = modules(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "python")
    imports = {name: sorted(set(imported(name, file, known))) for name, file in known.items()}
    found = cycle(imports)
    print(f"circular import: {' -> '.join(found)}" if found else "there are no circular imports")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
