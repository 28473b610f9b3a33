"""SECURITY.md names a test for each limit, and all of them exist."""

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_page_names_exists():
    page = (_ROOT / "SECURITY.md").read_text(encoding="utf-8")
    of_python = re.findall(r"`(test_\w+\.py)::(test_\w+)`", page)
    of_cpp = re.findall(r"`([A-Z]\w+)\.([A-Z]\w+)`", page.replace("`Suite.Test`", ""))
    assert len(of_python) > 10
    assert len(of_cpp) > 10
    missing = [
        f"{file}::{name}"
        for file, name in of_python
        if f"def {name}(" not in (_ROOT / "tests/python" / file).read_text(encoding="utf-8")
    ]
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((_ROOT / "tests").rglob("*.cpp")))
    known = set(re.findall(r"\bTEST(?:_P|_F)?\((\w+),\s*(\w+)\)", sources))
    missing += [f"{suite}.{name}" for suite, name in of_cpp if (suite, name) not in known]
    assert not missing
