"""Operators in a user's file, as the command line names them: FILE.py, FILE.py:NAME, or a shared object, FILE.so."""

import importlib.machinery
import importlib.util
import linecache
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType

from headrace._core import Operator, load_library
from headrace.errors import Errc, Error, MissingFileError, UsageError
from headrace.operators.compiled_operator import CompiledOperator

# Every module gets a new name: replacing a module of the same name would orphan its operators.
_numbers = count()


@dataclass(frozen=True)
class FoundOperator:
    """An operator found in a file."""

    operator: Operator
    at: str
    """FILE.py, FILE.py:NAME or FILE.so, for load_again()."""


def is_file(text: str) -> bool:
    """Whether an operator's name refers to a file."""
    return text.rpartition(":")[0].endswith(".py") or text.endswith((".py", ".so"))


def load_operator(text: str) -> Operator:
    """The operator FILE.py:NAME: an Operator, or a function under @operator that takes no arrays.

    The file is run, as by import. NAME may be omitted if the file has a single operator; names that it imported from
    elsewhere, and names that begin with an underscore, do not count then. FILE.so is a shared object with one operator.

    Raises:
        UsageError: for a malformed name, a file without such an operator, and a file that raises an exception; the
            message has its line. For a shared object, as load_library().
    """
    if not is_file(text):
        raise UsageError(f"'{text}' is neither FILE.py nor FILE.py:NAME nor FILE.so")
    if text.endswith(".so"):
        return load_library(text)
    file, name = (text, "") if text.endswith(".py") else text.rsplit(":", 1)
    module = _run(Path(file))
    named = vars(module) if name else _own(module)
    found = {key: made for key, value in named.items() if (made := _made(value)) is not None}
    if name:
        if name not in found:
            has = f"it has {', '.join(found)}" if found else _none(module)
            raise UsageError(f"{file} has no operator {name}: {has}", Errc.not_found)
        return found[name]
    if len(found) != 1:
        has = (
            f"several operators: give one of {', '.join(f'{file}:{key}' for key in found)}" if found else _none(module)
        )
        raise UsageError(f"{file} has {has}", Errc.not_found)
    return next(iter(found.values()))


def find_operators(text: str) -> dict[str, Operator]:
    """Every operator of FILE.py:NAME, FILE.py, FILE.so or FOLDER, by name, in the order of files and lines.

    A FOLDER stands for its *.py and *.so. Names that a file imported from elsewhere, and names that begin with an
    underscore, do not count. Files of a folder without a function under @operator, and shared objects that export no
    operator, are skipped.

    Raises:
        UsageError: as load_operator(), and if there is no operator at all, or if two have the same name; it names the
            file.
    """
    return {name: found.operator for name, found in locate_operators(text).items()}


def locate_operators(text: str) -> dict[str, FoundOperator]:
    """Like find_operators(), with the file of each operator."""
    if not Path(text).is_dir():
        return {name: FoundOperator(operator, text) for name, operator in _of_file(text).items()}
    operators: dict[str, FoundOperator] = {}
    for path in sorted(path for path in Path(text).iterdir() if path.suffix in {".py", ".so"}):
        found = _of_folder(path)
        for name, operator in found.items():
            if name in operators:
                raise UsageError(f"{operators[name].at} and {path} both have an operator {name}")
            operators[name] = FoundOperator(operator, str(path))
    if not operators:
        raise UsageError(
            f"there is no operator in {text}: none of its *.py has a function under @headrace.operator, and none of "
            "its *.so exports one"
        )
    return operators


def load_again(at: str, name: str) -> Operator:
    """Reloads an operator from its file in its present state.

    A Python file is run again; modules that it imports keep their first state.

    Args:
        at: FoundOperator.at.
        name: name of the operator.

    Raises:
        UsageError: as find_operators(), if the file no longer has it, and for a shared object that has changed.
    """
    found = _of_file(at)
    if name not in found:
        raise UsageError(f"{at} has no operator {name} any more: it has {', '.join(found)}", Errc.not_found)
    return found[name]


def _of_file(text: str) -> dict[str, Operator]:
    """The operators of FILE.py, FILE.py:NAME or FILE.so."""
    if text.endswith(".so"):
        return _in_library(Path(text))
    if not text.endswith(".py"):
        return {text.rpartition(":")[2]: load_operator(text)}
    found, module = _all_of(Path(text))
    if not found:
        raise UsageError(f"{text} has {_none(module)}", Errc.not_found)
    return found


def _of_folder(path: Path) -> dict[str, Operator]:
    """The operators of one file of a folder; none if the file does not use Headrace."""
    if path.suffix == ".so":
        try:
            return _in_library(path)
        except UsageError as error:
            if error.code == Errc.not_found:
                return {}
            raise
    found, module = _all_of(path)
    if not found and any(isinstance(value, CompiledOperator) for value in _own(module).values()):
        raise UsageError(f"{path} has {_none(module)}", Errc.not_found)
    return found


def _in_library(path: Path) -> dict[str, Operator]:
    made = load_library(path)
    return {made.name: made}


def _own(module: ModuleType) -> dict[str, object]:
    """The names that a file defines itself."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not (isinstance(value, CompiledOperator) and value.module != module.__name__)
    }


def _all_of(path: Path) -> tuple[dict[str, Operator], ModuleType]:
    """The operators of a file, and its module. Errors name the file."""
    try:
        module = _run(path)
        found = {name: made for name, value in _own(module).items() if (made := _made(value)) is not None}
    except Error as error:
        if str(path) in str(error):
            raise
        raise UsageError(f"{path}: {error}", error.code, error.native) from error
    return found, module


def _made(value: object) -> Operator | None:
    if isinstance(value, CompiledOperator):
        return None if value.state else value()
    return value if isinstance(value, Operator) else None


def _none(module: ModuleType) -> str:
    for key, value in vars(module).items():
        if isinstance(value, CompiledOperator) and value.state:
            arrays = ", ".join(f"{name}=..." for name in value.state)
            return f"no operator yet, because {key} takes arrays: write served = {key}({arrays}) in the file"
    return "no operator: decorate a function with @headrace.operator"


class _AsItIs(importlib.machinery.SourceFileLoader):
    """Reads a file in its present state: Python's cached byte code is checked by seconds and size only."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    linecache.checkcache(str(path))  # so that messages quote the present source
    name = f"headrace_operators_{next(_numbers)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsItIs(name, str(path)))
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where Python looks for it; Python empties it at exit
    sys.path.insert(0, str(path.parent.resolve()))  # files beside it can be imported, as when Python runs it
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except SystemExit as error:
        raise UsageError(f"{path}{_line(path, error)} ended the program by calling sys.exit() or exit()") from error
    except Exception as error:
        line = _line(path, error)
        raise UsageError(f"{path}{line}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def _line(path: Path, error: BaseException) -> str:
    """The last line of the file in an exception's traceback, such as ":12"."""
    line = ""
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
