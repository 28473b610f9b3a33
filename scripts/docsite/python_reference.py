"""Makes the Python reference, a page for each module. mkdocstrings writes them from the sources and the stub."""

from collections.abc import Iterator
from pathlib import Path

import griffe

FOLDER = "reference/python"
PACKAGE = "headrace"

# The modules that users import from. Every name of the root is defined in one of them.
_MODULES = {
    "serve": "Serving queries",
    "operators": "Operators, indexes, sparse matrices",
    "fetch": "Columns, and queries over them",
    "ingest": "Packets to frames",
    "grid": "Grids",
    "grid.scenes": "Scenes in Python",
    "grid.solver": "The solver of scenes",
    "grid.gprmax": "gprMax's files",
    "span": "Data larger than the device",
    "wire": "A server for other processes",
    "measure": "Links, memory and roofs, measured",
    "device": "Devices, topology, occupancy",
    "each": "One program over many inputs",
    "base": "Sizes, and what a build has",
    "errors": "Errors",
}


def _exports(module: griffe.Module) -> list[str]:
    if module.exports is None:
        raise RuntimeError(f"{module.path} has no __all__")
    return [str(export) for export in module.exports]


def undocumented(member: griffe.Object | griffe.Alias) -> Iterator[str]:
    """A class with its public methods, or a function: yields those without a docstring."""
    one = member.final_target if isinstance(member, griffe.Alias) else member
    if one.kind not in {griffe.Kind.CLASS, griffe.Kind.FUNCTION}:
        return
    if not one.docstring:
        yield f"{one.filepath}:{one.lineno}: {one.path} has no docstring"
    for name, inner in one.members.items():
        if not name.startswith("_") and not inner.is_alias:
            yield from undocumented(inner)


def _page(title: str, intro: str, paths: list[str]) -> str:
    return "\n\n".join([f"# {title}", intro, *(f"::: {path}" for path in paths)]) + "\n"


def _introduction(module: griffe.Module) -> tuple[str, str]:
    """The text of a module's docstring, and its example as a block of code."""
    text, mark, example = (module.docstring.value if module.docstring else "").partition(">>>")
    return text.strip(), f"```pycon\n{mark} {example.strip()}\n```" if mark else ""


def _homes(package: griffe.Module, exports: dict[str, list[str]]) -> dict[str, str]:
    """The module that defines each name of the root.

    Raises:
        RuntimeError: for a name that is in none of them, or in several.
    """
    homes = {}
    for name in _exports(package):
        found = [module for module, names in exports.items() if name in names]
        if name == "__version__":
            continue
        if len(found) != 1:
            raise RuntimeError(
                f"{PACKAGE}.{name} must be in the __all__ of exactly one module, but is in: {', '.join(found)}"
            )
        homes[name] = found[0]
    return homes


def pages(root: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The pages by their places, and their part of the navigation.

    Raises:
        RuntimeError: when a module has no __all__, a name of the root is not in exactly one module, or a class,
            function or method has no docstring.
    """
    package = griffe.load(PACKAGE, search_paths=[str(root / "python")])
    assert isinstance(package, griffe.Module)
    exports = {name: _exports(package[name]) for name in _MODULES}
    bare = [one for module, names in exports.items() for name in names for one in undocumented(package[module][name])]
    if bare:
        raise RuntimeError("\n".join(bare))
    made: dict[str, str] = {}
    navigation: list[dict[str, str]] = []
    rows = ["| module | | names |", "|---|---|---|"]
    for module, title in _MODULES.items():
        path, file = f"{PACKAGE}.{module}", f"{PACKAGE}-{module.replace('.', '-')}"
        text, example = _introduction(package[module])
        names = exports[module]
        intro = "\n\n".join(filter(None, [text, example, f"Import these from `{path}`."]))
        made[f"{FOLDER}/{file}.md"] = _page(path, intro, [f"{path}.{name}" for name in names])
        navigation.append({path: f"{FOLDER}/{file}.md"})
        rows.append(f"| [`{path}`]({file}.md) | {title} | {', '.join(f'`{name}`' for name in names)} |")
    text, example = _introduction(package)
    homes = _homes(package, exports)
    links = ["| name | see |", "|---|---|"]
    for name, module in homes.items():
        path, file = f"{PACKAGE}.{module}.{name}", f"{PACKAGE}-{module.replace('.', '-')}"
        links.append(f"| `{PACKAGE}.{name}` | [`{path}`]({file}.md#{path}) |")
    parts = ["# Python reference", text, example, "## The names of `headrace`", "\n".join(links), "## Modules"]
    made[f"{FOLDER}/index.md"] = "\n\n".join([*parts, "\n".join(rows)]) + "\n"
    return made, [{"Overview": f"{FOLDER}/index.md"}, *navigation]
