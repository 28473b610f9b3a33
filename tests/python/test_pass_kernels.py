"""Kernels of passes keep what they need in registers: one that does not is right too, but a third slower on a GPU."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cubin import Cubin, read

from headrace import _core

_CUDA = 190  # the machine in a cubin's header
# Four steps of Hz in a plane look coefficients up in two tables, which leaves no room for everything.
_TOO_LARGE = "Fdtd2dTe"


def _cubins() -> Iterator[Cubin]:
    """Those that the extension carries."""
    code = Path(_core.__file__).read_bytes()
    for at in (found.start() for found in re.finditer(rb"\x7fELF\x02", code)):
        if int.from_bytes(code[at + 18 : at + 20], "little") == _CUDA:
            yield read(code[at:])


def test_passes_have_no_local_memory():
    stacks = {name: size for cubin in _cubins() for name, size in cubin.stack_bytes.items() if "SweepKernel" in name}
    if not stacks:
        pytest.skip("this build has no kernels for GPUs, or only compressed ones")
    passes = {name: size for name, size in stacks.items() if _TOO_LARGE not in name}
    assert any("Fdtd2d" in name for name in passes)
    assert any("Jacobi" in name for name in passes)
    assert {name: size for name, size in passes.items() if size > 0} == {}
