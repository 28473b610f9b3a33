"""Runs the Python blocks of an input file in a process with few rights: `headrace grid convert --trust`."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.errors import SystemError, UsageError  # noqa: A004

SECONDS = 60  # of processor time; the wall-clock limit is a little longer
_MEMORY = 2 << 30  # bytes
_OUTPUT = 64 << 20  # bytes
_CHILD = Path(__file__).with_name("child.py")


def runner(path: Path, count: int, seconds: int = SECONDS) -> Callable[[list[tuple[int, str]]], list[str]]:
    """The function that runs the blocks of a file, for a model with `count` runs.

    The process has an empty environment and folder, no network if the system allows that, and if this process is root,
    an unprivileged user. It changes no files (by Landlock; without Landlock it runs only for root), starts no processes
    and ends after `seconds` of processor time. It can still read files that everybody may read, so do not run untrusted
    code.
    """

    def run(blocks: list[tuple[int, str]]) -> list[str]:
        request = {
            "blocks": [{"line": line, "code": code} for line, code in blocks],
            "inputfile": str(path),
            "number_model_runs": count,
            "limits": {"seconds": seconds, "memory": _MEMORY, "output": _OUTPUT},
        }
        answer = _ask(path, json.dumps(request).encode(), seconds)
        if "error" in answer:
            raise UsageError(f"{path}:{answer['line']}: #python: {answer['error']}")
        return [str(one) for one in answer["printed"]]

    return run


@contextmanager
def _empty_folder() -> Iterator[Path]:
    """A temporary folder for the blocks; creating it needs no file descriptor, because there may be none."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        try:
            folder.rmdir()
        except OSError:  # the folder is not empty
            shutil.rmtree(folder, ignore_errors=True)


def _ask(path: Path, request: bytes, seconds: int) -> dict[str, Any]:
    with _empty_folder() as folder:
        command = [sys.executable, "-I", "-S", "-B", str(_CHILD), *_packages()]
        try:
            # The child limits its own processor time; this timeout is for a child that only waits.
            done = subprocess.run(
                command,
                input=request,
                capture_output=True,
                cwd=folder,
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"},
                timeout=seconds + 30,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"{path}: its Python blocks did not end within {seconds + 30} s") from None
        except OSError as error:
            cause = error.strerror or error
            raise SystemError(
                f"{path}: its Python blocks need a separate process, which cannot be started: {cause}",
                native=error.errno or 0,
            ) from error
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    if done.returncode < 0:
        raise UsageError(
            f"{path}: its Python blocks were ended by signal {-done.returncode}; they may use "
            f"{seconds} s of processor time and {_MEMORY >> 30} GiB of memory"
        )
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise UsageError(f"{path}: its Python blocks failed: {said[-1] if said else f'status {done.returncode}'}")


def _packages() -> list[str]:
    """The folder of NumPy, which blocks often use."""
    import numpy as np  # noqa: PLC0415

    return [str(Path(np.__file__).parents[1])]
