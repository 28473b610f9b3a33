"""Checks that docs/environment.md names every HEADRACE_* variable that the sources read, and no other.

Usage: python scripts/docsite/environment.py
"""

import re
import sys
from pathlib import Path

# The forms in which C++, Python and shell read a variable, with its name as a literal or as a constant's value.
_READS = (
    re.compile(r'(?:getenv|environ\.get|getenv_or|variable)\(\s*"(HEADRACE_\w+)"'),
    re.compile(r'environ\[\s*"(HEADRACE_\w+)"'),
    re.compile(r'^\s*_?\w+\s*=\s*"(HEADRACE_\w+)"', re.MULTILINE),
    re.compile(r"\$\{(HEADRACE_\w+)"),
    re.compile(r'env\s*=\s*"(HEADRACE_\w+)"'),
    re.compile(r'constexpr[^;=]*=\s*"(HEADRACE_\w+)"'),
)
_FOLDERS = ("src", "include", "operators", "python", "bench", "scripts", "tests", ".ci")
_NAMED = re.compile(r"^\|\s*`(HEADRACE_\w+)`", re.MULTILINE)
_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".py", ".sh", ".toml", ""}


def read_by_sources(root: Path) -> dict[str, str]:
    """The variables that are read, each with a file that reads it."""
    found: dict[str, str] = {}
    files = [path for folder in _FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in _SUFFIXES]
    for path in [*files, root / "pyproject.toml"]:
        if path.is_file() and path != Path(__file__):
            text = path.read_text(encoding="utf-8", errors="replace")
            for pattern in _READS:
                for name in pattern.findall(text):
                    found.setdefault(name, path.relative_to(root).as_posix())
    return found


def problems(root: Path) -> list[str]:
    """Problems of the page: missing variables, and variables that nothing reads."""
    named = set(_NAMED.findall((root / "docs/environment.md").read_text(encoding="utf-8")))
    read = read_by_sources(root)
    return [
        *(f"docs/environment.md does not name {name}, which {read[name]} reads" for name in sorted(set(read) - named)),
        *(f"docs/environment.md names {name}, which nothing reads" for name in sorted(named - set(read))),
    ]


def check(root: Path) -> None:
    """Raises RuntimeError if the page and the sources differ."""
    found = problems(root)
    if found:
        raise RuntimeError("\n".join(found))


if __name__ == "__main__":
    wrong = problems(Path(__file__).parents[2])
    print("\n".join(wrong) or "every variable is documented")
    sys.exit(1 if wrong else 0)
