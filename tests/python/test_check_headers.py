"""The check of headers finds each kind of misplaced header, and the repository has none."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "check_headers.py"

TREE = {
    "include/headrace/base/error.hpp": "",
    "include/headrace/serve.hpp": '#include "headrace/serve/engine.hpp"\n',
    "include/headrace/serve/engine.hpp": '#include "headrace/serve/detail/lane.hpp"\n',
    "include/headrace/serve/detail/lane.hpp": '#include "headrace/serve/detail/place.hpp"\n',
    "include/headrace/serve/detail/place.hpp": "",
    "include/headrace/device/detail/peer.hpp": "",
    "include/headrace/grid.hpp": "",
    "include/headrace/grid/mpi.hpp": "",
    "src/grid/link.cpp": '#include "headrace/device/detail/peer.hpp"\n',
}


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#pragma once\n" + text, encoding="utf-8")
    return tmp_path


def test_the_repository_is_clean():
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


def test_a_clean_tree_passes(tree: Path):
    result = check(tree)
    assert result.returncode == 0, result.stdout


def test_a_detail_of_one_module_belongs_in_its_sources(tree: Path):
    (tree / "include/headrace/device/detail/code.hpp").write_text("#pragma once\n", encoding="utf-8")
    (tree / "src/device").mkdir(parents=True)
    (tree / "src/device/code.cpp").write_text('#include "headrace/device/detail/code.hpp"\n', encoding="utf-8")
    result = check(tree)
    assert result.returncode == 1
    assert result.stdout == (
        "include/headrace/device/detail/code.hpp is used only by its own module: move it to src/\n"
    )


def test_an_umbrella_covers_its_module(tree: Path):
    (tree / "include/headrace/serve/plan.hpp").write_text("#pragma once\n", encoding="utf-8")
    result = check(tree)
    assert result.returncode == 1
    assert result.stdout == "include/headrace/serve.hpp does not include include/headrace/serve/plan.hpp\n"


def test_public_headers_are_counted(tree: Path):
    lines = []
    for number in range(66):
        (tree / f"include/headrace/base/more{number}.hpp").write_text("#pragma once\n", encoding="utf-8")
        lines.append(number)
    result = check(tree)
    assert result.returncode == 1
    assert result.stdout.startswith("71 public headers, but at most 70 may be")
