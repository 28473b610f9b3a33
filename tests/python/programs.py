"""Loads a program of the repository as a module, in the same way as Python loads a script."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load_program(path: str) -> ModuleType:
    """The module of `path`, relative to the repository. Imports find files beside the program."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(file.parent)
        patch.setitem(sys.modules, file.stem, module)  # dataclasses look up their module while it is being loaded
        spec.loader.exec_module(module)
    return module
