"""A folder of files with operators in Python."""

from pathlib import Path

DOUBLE = """
import headrace


@headrace.operator(query="i8", answer="i8")
def double(group, query, answer):
    answer[0] = 2 * query[0]


@headrace.operator(query=[("x", "f4")], answer=[("y", "f4")])
def scaled(group, query, answer, factor):
    answer.y = query.x * factor


by_three = scaled(factor=3.0)
_hidden = scaled(factor=4.0)
"""
NEGATE = """
import headrace
from double import double


@headrace.operator(query="i8", answer="i8")
def negate(group, query, answer):
    answer[0] = -query[0]
"""


def operator_folder(at: Path) -> Path:
    """Writes double.py, negate.py, which imports it, and files without operators."""
    made = at / "operators"
    made.mkdir()
    (made / "double.py").write_text(DOUBLE)
    (made / "negate.py").write_text(NEGATE)
    (made / "nothing.py").write_text("import numpy\n")
    (made / "notes.txt").write_text("no Python")
    return made
