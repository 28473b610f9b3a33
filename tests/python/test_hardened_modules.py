"""Link options of the extension modules: no table of addresses is writable after loading."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace import _core


def _modules() -> list[Path]:
    """Paths of _core, and of _mpi where it was built."""
    found = importlib.util.find_spec("headrace._mpi")
    return [Path(_core.__file__)] + ([] if found is None or found.origin is None else [Path(found.origin)])


def _readelf(option: str, path: Path) -> str:
    tool = shutil.which("readelf")
    if tool is None:
        pytest.skip("there is no readelf here: install binutils")
    return subprocess.run([tool, option, "--wide", path], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("module", _modules(), ids=lambda path: path.name.split(".")[0])
def test_tables_of_addresses_are_read_only(module: Path):
    assert re.search(r"^ *GNU_RELRO ", _readelf("--program-headers", module), re.MULTILINE)
    assert re.search(r"\(FLAGS(_1)?\).*\bNOW\b", _readelf("--dynamic", module))


@pytest.mark.parametrize("module", _modules(), ids=lambda path: path.name.split(".")[0])
def test_no_memory_is_both_written_and_run(module: Path):
    headers = _readelf("--program-headers", module)
    stack = re.search(r"^ *GNU_STACK +(?:0x\w+ +){5}(\S+)", headers, re.MULTILINE)
    assert stack is not None
    assert "E" not in stack[1]
    loads = re.findall(r"^ *LOAD +(?:0x\w+ +){5}([RWE ]+?) +0x", headers, re.MULTILINE)
    assert loads
    assert not [flags for flags in loads if "W" in flags and "E" in flags]


@pytest.mark.parametrize("module", _modules(), ids=lambda path: path.name.split(".")[0])
def test_only_the_entry_is_exported(module: Path):
    symbols = re.findall(r"(?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", _readelf("--dyn-syms", module))
    assert [name.split("@")[0] for name in symbols] == [f"PyInit_{module.name.split('.')[0]}"]


@pytest.mark.parametrize(
    "check", ["__stack_chk_fail", r"__\w+_chk", "__glibcxx_assert_fail"], ids=["stack", "fortify", "library"]
)
def test_host_code_checks_itself(check: str):
    symbols = _readelf("--dyn-syms", Path(_core.__file__))
    assert re.search(rf" UND \S*{check}\S*(@|$| )", symbols, re.MULTILINE)
