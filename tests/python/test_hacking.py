"""Everything named in HACKING.md and CONTRIBUTING.md exists: files, folders, make targets, presets, source names."""

import json
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("HACKING.md", "CONTRIBUTING.md")
MADE = ("build/", ".venv/", "dist/")  # created by builds
ENDINGS = "cpp|hpp|cu|cuh|py|pyi|sh|md|toml|yml|yaml|json|txt|lock|cmake|in|svg"
CODE = re.compile(r"`([^`]+)`")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(rf"(?<![\w/.$<-])((?:[\w.*-]+/)+(?:[\w.*-]+)?|[\w*-]+\.(?:{ENDINGS}))(?![\w/>])")
NAME = re.compile(r"\b(k[A-Z]\w+|[A-Z][a-z]+(?:[A-Z][a-z0-9]*)+|headrace_[a-z]+)\b")
SLOT = {"F.svg"}  # stands for the reader's file
CONVENTION = {"PascalCase"}  # not a name in the sources


def tracked() -> list[str]:
    """Files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def absent(text: str, files: list[str]) -> list[str]:
    """Paths in the code of a page that are neither files nor folders of the repository."""
    there = set(files) | {f"{parent}/" for file in files for parent in Path(file).parents}
    names = {Path(file).name for file in files}
    missing = []
    for code in CODE.findall(FENCE.sub("", text)):
        for path in PATH.findall(code):
            if path in SLOT or path.startswith(MADE):
                continue
            wanted = there if "/" in path else names
            if not any(fnmatchcase(one.rstrip("/"), path.rstrip("/")) for one in wanted):
                missing.append(path)
    return missing


@pytest.mark.parametrize("page", PAGES)
def test_every_path_is_there(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    files = tracked()
    assert absent(text, files) == []
    for path in re.findall(r"\]\(([^):#]+)\)", text):
        assert (ROOT / path).exists(), path


def test_an_absent_path_is_found():
    text = "`scripts/wheel.sh`, `src/*/engine.cpp`, `src/serve/`, `gone.py`, `src/gone/` and `python scripts/gone.sh`."
    files = ["scripts/wheel.sh", "src/serve/engine.cpp"]
    assert absent(text, files) == ["gone.py", "src/gone/", "scripts/gone.sh"]


@pytest.mark.parametrize("page", PAGES)
def test_targets_presets_and_names_are_there(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    codes = " ".join(CODE.findall(text))
    assert set(re.findall(r"\bmake ([a-z]+)", codes)) <= targets
    presets = {one["name"] for one in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    assert set(re.findall(r"--preset ([a-z]+)", codes)) <= presets
    ends = (".cpp", ".hpp", ".cu", ".py", ".txt", ".cmake")
    sources = "\n".join(
        (ROOT / file).read_text(encoding="utf-8", errors="replace")
        for file in tracked()
        if file.endswith(ends) and (ROOT / file).is_file() and file != "tests/python/test_hacking.py"
    )
    assert [name for name in set(NAME.findall(codes)) - CONVENTION if not re.search(rf"\b{name}\b", sources)] == []
