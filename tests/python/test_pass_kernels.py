"""Kernels of passes keep what they need in registers: one that does not is right too, but a third slower on a GPU."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cubin import Cubin, read

from headrace import _core

_CUDA = 190  # the machine in a cubin's header
_FEW_BYTES = 160  # a copy of a kernel's arguments takes three times as many
# Four steps of Ez in a plane, in single precision: what most users run.
_MAIN = "SweepKernelINS2_6Fdtd2dIfLb0ELb0ELb0EEELi4E"


def _cubins() -> Iterator[Cubin]:
    """Those that the extension carries."""
    code = Path(_core.__file__).read_bytes()
    for at in (found.start() for found in re.finditer(rb"\x7fELF\x02", code)):
        if int.from_bytes(code[at + 18 : at + 20], "little") == _CUDA:
            yield read(code[at:])


def test_passes_have_little_local_memory():
    stacks = {name: size for cubin in _cubins() for name, size in cubin.stack_bytes.items() if "SweepKernel" in name}
    if not stacks:
        pytest.skip("this build has no kernels for GPUs, or only compressed ones")
    assert {name: size for name, size in stacks.items() if size > _FEW_BYTES} == {}
    assert [size for name, size in stacks.items() if _MAIN in name] == [0]
