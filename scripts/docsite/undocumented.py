"""Finds public C++ symbols without a comment in Doxygen's output for the public headers.

Usage: python scripts/docsite/undocumented.py

Every class, concept, function, enumeration and its values, alias, variable and macro needs a comment. A function needs
none if the language or another comment states its contract: destructors, copies and moves, comparisons, defaulted or
deleted functions, and overrides of functions that the base documents. Headers in detail/ are not public.
"""

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from cpp_reference import Symbol, read_symbols, run_doxygen

_COMPARISON = re.compile(r"operator(==|!=|<=>)$")
_GENERATED = re.compile(r"=\s*(default|delete)$")


def _is_described(element: Element) -> bool:
    texts = (element.find(tag) for tag in ("briefdescription", "detaileddescription"))
    return any("".join(text.itertext()).strip() for text in texts if text is not None)


def _copies_or_moves(symbol: Symbol, owner: str) -> bool:
    parameters = symbol.element.findall("param/type")
    if symbol.name not in {owner, "operator="} or len(parameters) != 1:
        return False
    given = "".join(parameters[0].itertext()).replace(" ", "")
    return given in {f"const{owner}&", f"{owner}const&", f"{owner}&&"}


def _needs_none(symbol: Symbol, owner: str) -> bool:
    if symbol.kind != "function":
        return False
    return bool(
        symbol.name.startswith("~")
        or _COMPARISON.match(symbol.name)
        or _GENERATED.search((symbol.element.findtext("argsstring") or "").strip())
        or symbol.element.find("reimplements") is not None
        or _copies_or_moves(symbol, re.sub(r"<.*", "", owner).rpartition("::")[2])
    )


def _undocumented(symbol: Symbol, owner: str = "") -> Iterator[str]:
    name = f"{owner}::{symbol.name}" if owner else symbol.short
    where = f"include/{symbol.header}:{symbol.line}"
    if not _is_described(symbol.element) and not _needs_none(symbol, owner):
        yield f"{where}: {symbol.kind} {name} has no comment"
    for value in symbol.element.findall("enumvalue"):
        if not _is_described(value):
            yield f"{where}: value {name}::{value.findtext('name')} has no comment"
    for member in symbol.members:
        yield from _undocumented(member, symbol.short)


def problems(headers: dict[str, list[Symbol]]) -> list[str]:
    """The symbols of public headers that have no comment, each with its file and line."""
    public: Iterable[list[Symbol]] = (its for header, its in headers.items() if "/detail/" not in header)
    return [problem for symbols in public for symbol in symbols for problem in _undocumented(symbol)]


def check(headers: dict[str, list[Symbol]]) -> None:
    """Raises RuntimeError if a public symbol has no comment."""
    found = problems(headers)
    if found:
        raise RuntimeError("\n".join(found))


def main() -> int:
    """Checks the headers of the repository of this script."""
    with tempfile.TemporaryDirectory() as folder:
        found = problems(read_symbols(run_doxygen(Path(__file__).parents[2], Path(folder))))
    print("\n".join(found) or "every public symbol has a comment")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
