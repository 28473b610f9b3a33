"""Operators in a user's Python file, as the command line names them: FILE.py or FILE.py:NAME."""

import importlib.util
import sys
from itertools import count
from pathlib import Path
from types import ModuleType

from headrace._core import Operator
from headrace.errors import Errc, Error, MissingFileError, UsageError
from headrace.operators.python_operator import PythonOperator

# A module keeps the name that it has: one that replaced it would leave its operators to nobody.
_numbers = count()


def is_file(text: str) -> bool:
    """Whether a name of an operator is one of a file."""
    return text.rpartition(":")[0].endswith(".py") or text.endswith(".py")


def load_operator(text: str) -> Operator:
    """The operator that FILE.py:NAME names: an Operator, or a function under @operator that takes no arrays.

    The file is run, as import does. NAME may be left out where there is one operator in the file.

    Raises:
        UsageError: for a name of another form, where the file has no such operator, and where it raises an exception;
            the message has its line.
    """
    if not is_file(text):
        raise UsageError(f"'{text}' is neither FILE.py nor FILE.py:NAME")
    file, name = (text, "") if text.endswith(".py") else text.rsplit(":", 1)
    module = _run(Path(file))
    found = {key: made for key, value in vars(module).items() if (made := _made(value)) is not None}
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


def _made(value: object) -> Operator | None:
    if isinstance(value, PythonOperator):
        return None if value.state else value()
    return value if isinstance(value, Operator) else None


def _none(module: ModuleType) -> str:
    for key, value in vars(module).items():
        if isinstance(value, PythonOperator):
            arrays = ", ".join(f"{name}=..." for name in value.state)
            return f"no operator yet, for {key} takes arrays: write served = {key}({arrays}) in the file"
    return "no operator: write a function under @headrace.operator"


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"headrace_operators_{next(_numbers)}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where Python looks for it, and empties it at the end
    sys.path.insert(0, str(path.parent.resolve()))  # what lies beside it can be imported, as where Python runs it
    try:
        spec.loader.exec_module(module)
    except Error:
        raise
    except Exception as error:
        line = _line(path, error)
        raise UsageError(f"{path}{line}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def _line(path: Path, error: Exception) -> str:
    """The last line of the file that an exception came from, as ":12"."""
    line = ""
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
