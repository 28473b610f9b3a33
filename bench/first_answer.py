"""Measures the time from a program's start until it prints its first answer: operators.first_answer.cold and .warm.

    python bench/first_answer.py [--device cuda:0] [--samples 5] [--save docs/results/first-answer.<machine>.json]

Each sample starts a new Python that makes an operator, asks it one query, checks the answer and prints a line; the time
ends when that line is read. A cold start has an empty cache folder; a warm one has the folder filled by a cold start.
The time that Python takes to print a line and nothing else, measured next to each sample, is subtracted. What the
process still does after its answer, such as closing the GPU, is in the condition `exit_s`.

Rows without a further name are for an operator in Python; .source is C++ source text and .built_in is `light`. The very
first start, which also reads Python's and CUDA's files from disk, is `first_s` in the conditions and does not count as
a sample. Exit status: 0; 1 when an answer was wrong or a program failed; 2 for wrong use.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import row_by_row
from headrace import Device, Error, results
from headrace.profiles import Json

_START = """
import sys

import numpy as np

import headrace
"""
_OPERATORS = {
    "": """
@headrace.operator(query=[("point", "f4", 3), ("scale", "f4")], answer="f4")
def stretched(group, query, answer):
    total = 0.0
    for i in range(3):
        total += query.point[i]
    answer[0] = query.scale * total

operator = stretched()
query, expected = np.array(((1, 2, 3), 0.5), [("point", "f4", 3), ("scale", "f4")]), 3
""",
    ".source": """
operator = headrace.operators.from_source(
    \"\"\"
    void stretched(Group, const Query& query, Answer& answer) {
      answer = query.scale * (query.point[0] + query.point[1] + query.point[2]);
    }
    \"\"\",
    "stretched",
    query=[("point", "f4", 3), ("scale", "f4")],
    answer="f4",
)()
query, expected = np.array(((1, 2, 3), 0.5), [("point", "f4", 3), ("scale", "f4")]), 3
""",
    ".built_in": """
operator = headrace.light(query_bytes=64, threads=32, steps=8)
query = operator.sample(1)[0]
expected = operator.answer_on_host(query[None])[0]
""",
}
_ASK = """
plan = headrace.serve.find_rung(sys.argv[2]).plan
with headrace.Engine(sys.argv[1], operator, plan) as engine, engine.connect() as client:
    if not (client.ask(query) == expected).all():
        sys.exit("a wrong answer")
    print("answered", flush=True)
"""
_LIMIT_SECONDS = 300.0


class _Run(NamedTuple):
    """Seconds of a program until its first line, and until its end."""

    line: float
    end: float


def _run(command: list[str], cache: Path) -> _Run:
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        watchdog = threading.Timer(_LIMIT_SECONDS, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            printed = time.perf_counter() - began
            out, err = process.communicate()
            ended = time.perf_counter() - began
        finally:
            watchdog.cancel()
    if process.returncode != 0 or not line:
        raise Error(f"a program failed: {(err or line + out).strip() or f'status {process.returncode}'}")
    return _Run(printed, ended)


class _Program:
    """A program that asks an operator one query."""

    def __init__(self, text: str, given: argparse.Namespace, folder: Path) -> None:
        path = folder / "program.py"
        path.write_text(_START + text + _ASK)
        self._command = [sys.executable, str(path), given.device, given.rung]
        self._folder = folder

    def sample(self) -> tuple[_Run, _Run]:
        """Times of a cold and a warm start, without Python's own."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            cache = Path(name)
            python = median(_run([sys.executable, "-c", "print(1, flush=True)"], cache).line for _ in range(3))
            cold, warm = (_run(self._command, cache) for _ in range(2))
            return _Run(cold.line - python, cold.end - python), _Run(warm.line - python, warm.end - python)


def _rows(device: Device, given: argparse.Namespace) -> Iterator[Json]:
    given.device = device.name
    for name, text in _OPERATORS.items():
        with tempfile.TemporaryDirectory() as folder:
            program = _Program(text, given, Path(folder))
            first, _ = program.sample()
            samples = [program.sample() for _ in range(given.samples)]
        for temperature, runs in zip(("cold", "warm"), zip(*samples, strict=True), strict=True):
            lines = [run.line for run in runs]
            row_by_row.say(f"{temperature}{name}: {median(lines):.3f} s, the first start {first.line:.3f} s")
            about: Json = {
                "rung": given.rung,
                "first_s": first.line,
                "exit_s": median(run.end - run.line for run in runs),
                "verified": True,
            }
            yield results.row(f"operators.first_answer.{temperature}{name}", lines, "s", None, about)


def main() -> int:
    """Measures, and prints or saves the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="best")
    parser.add_argument("--rung", default="page-locked", help="rung that answers, by number or id")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    return row_by_row.run("first-answer", given, lambda device: _rows(device, given))


if __name__ == "__main__":
    sys.exit(main())
