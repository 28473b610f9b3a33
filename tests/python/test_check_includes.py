"""The include check finds a planted violation of each kind, and the repository has none."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "check_includes.py"

TREE = {
    "include/headrace/base/error.hpp": "",
    "include/headrace/device/device.hpp": '#include "headrace/base/error.hpp"\n',
    "include/headrace/serve/engine.hpp": '#include "headrace/device/device.hpp"\n',
    "include/headrace/fetch/detail/column.hpp": '#include "headrace/device/device.hpp"\n',
    "src/base/spin.hpp": "",
    "src/fetch/spinning.cpp": '#include "base/spin.hpp"\n',
    "python/bindings/engine.hpp": '#include "headrace/serve/engine.hpp"\n#include "device/backend.hpp"\n',
    "src/device/backend.hpp": '#include "headrace/device/device.hpp"\n',
    "src/device/cuda/stream.cpp": "#include <cuda_runtime.h>\n",
    "src/device/cuda/copy.hpp": '#include "device/backend.hpp"\n',
    "src/device/cpu/tasks.hpp": '#include "device/backend.hpp"\n',
    "src/device/copies/batch.hpp": '#include "device/cpu/tasks.hpp"\n',
    "src/device/copies.cpp": '#include "device/copies/batch.hpp"\n',
    "operators/light/light.cu": '#include <cuda/atomic>\n#include "headrace/serve/engine.hpp"\n',
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


@pytest.mark.parametrize(
    ("file", "include", "says"),
    [
        ("src/base/clock.cpp", '"headrace/device/device.hpp"', "'base' may not include 'device'"),
        ("include/headrace/device/more.hpp", '"headrace/serve/engine.hpp"', "'device' may not include 'serve'"),
        ("src/serve/engine.cpp", '"headrace/fetch/detail/column.hpp"', "'serve' may not include 'fetch'"),
        ("src/fetch/column.cpp", '"headrace/serve/engine.hpp"', "'fetch' may not include 'serve'"),
        ("src/serve/engine.cpp", '"python/bindings/engine.hpp"', "'serve' may not include 'python'"),
        ("operators/light/light.cpp", '"headrace/fetch/detail/column.hpp"', "'operators' may not include 'fetch'"),
        ("src/fetch/levels.cpp", '"device/backend.hpp"', "private to 'device'"),
        ("bench/more.cpp", '"device/backend.hpp"', "private to 'device'"),
        ("examples/columns.cpp", '"headrace/fetch/detail/column.hpp"', "is not for users: include the public header"),
        ("examples/columns.cpp", '"src/device/backend.hpp"', "private src/device/backend.hpp"),
        ("src/measure/roof.cpp", "<headrace/serve/engine.hpp>", "'measure' may not include 'serve'"),
        ("include/headrace/device/more.hpp", '"device/backend.hpp"', "private src/device/backend.hpp"),
        ("src/device/copy.cpp", "<cuda_runtime.h>", "CUDA headers belong in"),
        ("include/headrace/device/more.hpp", "<cuda/atomic>", "CUDA headers belong in"),
        ("src/surprise/new.cpp", '"headrace/base/error.hpp"', "'surprise' is not a module known to"),
        ("src/base/clock.cpp", '"headrace/base/clok.hpp"', "no such file"),
        ("src/device/cpu/more.cpp", '"device/copies/batch.hpp"', "device/cpu and device/copies include each other"),
    ],
)
def test_a_planted_violation_is_found(tree: Path, file: str, include: str, says: str):
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(f"#pragma once\n\n  #  include {include}\n", encoding="utf-8")
    result = check(tree)
    assert result.returncode == 1
    assert says in result.stdout
    assert f"{file}:3:" in result.stdout


def test_a_kind_of_device_is_named_by_the_device_module_and_the_bindings_only(tree: Path):
    for name in ("src/device/list.cpp", "python/bindings/kinds.cpp", "src/serve/kinds.cpp"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("\nbool on_cpu = kind == DeviceKind::cpu;\n", encoding="utf-8")
    result = check(tree)
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "src/serve/kinds.cpp:2: DeviceKind::cpu: ask DeviceProperties what a device can do"
    ]


def test_folders_in_a_circle_of_three_are_found(tree: Path):
    (tree / "src/device/cpu/lists.cpp").write_text('#include "device/cuda/copy.hpp"\n', encoding="utf-8")
    assert check(tree).returncode == 0
    (tree / "src/device/cuda/batch.cpp").write_text('#include "device/copies/batch.hpp"\n', encoding="utf-8")
    result = check(tree)
    assert result.returncode == 1
    for place in ("src/device/cpu/lists.cpp:1:", "src/device/cuda/batch.cpp:1:", "src/device/copies/batch.hpp:2:"):
        assert f"\n{place}" in f"\n{result.stdout}"


def test_a_header_that_is_included_twice_is_found(tree: Path):
    (tree / "src/base/twice.cpp").write_text("#include <vector>\n#include <string>\n#include <vector>\n")
    result = check(tree)
    assert result.returncode == 1
    assert "src/base/twice.cpp:3: #include <vector>: the file already includes it" in result.stdout
