"""Makes the C++ reference, a page for each public header, from Doxygen's XML. Doxygen's warnings are errors."""

import posixpath
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from doxygen_text import code_text, markdown

FOLDER = "reference/cpp"
MODULES = {
    "base": "Results and errors, the clock, bytes, files",
    "device": "Devices, streams, memory, copies, kernels",
    "measure": "Arrivals, latencies, roofs, links",
    "serve": "Queries to kernels: engines, clients, plans, the ladder",
    "fetch": "Columns of files to a device, and queries over them",
    "ingest": "Packets to frames",
    "grid": "Domains over several devices",
    "operators": "The operators that ship with Headrace",
}
_HIDDEN = re.compile(r"(^|::)(detail|@\d+|std)(::|$)")
_LINE_MAX = 100


@dataclass
class Symbol:
    """A class with its members, or a member of a namespace."""

    element: Element
    name: str
    header: str
    line: int
    kind: str
    short: str  # without namespaces
    anchor: str = ""
    members: list["Symbol"] = field(default_factory=list)


def run_doxygen(root: Path, folder: Path) -> list[Element]:
    """Doxygen's output for every class, namespace and file.

    Raises:
        RuntimeError: when Doxygen warns about a comment.
    """
    setup = (root / "scripts/docsite/Doxyfile").read_text(encoding="utf-8") + f"\nOUTPUT_DIRECTORY = {folder}\n"
    done = subprocess.run(["doxygen", "-"], cwd=root, input=setup, capture_output=True, text=True, check=True)
    if done.stderr.strip():
        raise RuntimeError(f"Doxygen warns:\n{done.stderr}")
    files = sorted((folder / "xml").glob("*.xml"))
    return [found for file in files for found in ElementTree.parse(file).getroot().iter("compounddef")]


def _place(element: Element) -> tuple[str, int]:
    where = element.find("location")
    return ("", 0) if where is None else (where.attrib["file"], int(where.attrib.get("line", "0")))


def _name(element: Element, tag: str) -> str:
    return re.sub(r"\s*([<>,])\s*", r"\1", element.findtext(tag) or "")


def _members(element: Element) -> Iterator[Symbol]:
    """The public members of a class, or all of a namespace or file."""
    for member in element.iter("memberdef"):
        if member.attrib["prot"] == "public" and member.attrib["kind"] != "friend":
            header, line = _place(member)
            name = _name(member, "name")
            yield Symbol(member, name, header, line, member.attrib["kind"], name)


def read_symbols(compounds: list[Element]) -> dict[str, list[Symbol]]:
    """The public symbols of each header, in the order of declaration."""
    headers: dict[str, dict[str, Symbol]] = defaultdict(dict)
    spaces = {_name(one, "compoundname") + "::" for one in compounds if one.attrib["kind"] == "namespace"}
    for compound in compounds:
        name = _name(compound, "compoundname")
        if _HIDDEN.search(name):
            continue
        if compound.attrib["kind"] in {"class", "struct", "union", "concept"}:
            header, line = _place(compound)
            if compound.attrib.get("prot", "public") != "public":
                continue
            space = max((one for one in spaces if name.startswith(one)), key=len, default="")
            symbol = Symbol(compound, name, header, line, compound.attrib["kind"], name.removeprefix(space))
            symbol.members = sorted(_members(compound), key=lambda member: member.line)
            headers[header][compound.attrib["id"]] = symbol
        elif compound.attrib["kind"] in {"namespace", "file"}:
            for symbol in _members(compound):
                qualified = symbol.element.findtext("qualifiedname") or symbol.name
                if not _HIDDEN.search(qualified) and not _is_macro_of_file(symbol):
                    headers[symbol.header].setdefault(symbol.element.attrib["id"], symbol)
    return {
        header: sorted(symbols.values(), key=lambda symbol: symbol.line)
        for header, symbols in sorted(headers.items())
        if header.startswith("headrace/")
    }


def _is_macro_of_file(symbol: Symbol) -> bool:
    return symbol.kind == "define" and not symbol.name.startswith("HEADRACE_")


def _anchored(symbols: list[Symbol]) -> list[Symbol]:
    """Gives each symbol of a page, and each member, a unique anchor."""
    used: dict[str, int] = {}
    flat: list[Symbol] = []
    for symbol in symbols:
        for one in (symbol, *symbol.members):
            name = symbol.short if one is symbol else f"{symbol.short}.{one.name}"
            base = re.sub(r"[^A-Za-z0-9.~]+", "-", name).strip("-").lower() or "operator"
            used[base] = used.get(base, 0) + 1
            one.anchor = base if used[base] == 1 else f"{base}-{used[base]}"
            flat.append(one)
    return flat


def page_of(header: str) -> str:
    """The page of a header."""
    return f"{FOLDER}/{header.removeprefix('headrace/').replace('.', '-')}.md"


def _tidy(code: str) -> str:
    code = re.sub(r"<\s+", "<", code)
    code = re.sub(r"(?<=[\w*&>\])])\s+>(?!=)", ">", code)
    code = re.sub(r"\s+([&*]+)\s*(?=[\w.])", r"\1 ", code)
    return re.sub(r"\s+([&*]+)(?=[,>)]|$)", r"\1", " ".join(code.split()))


def _template(element: Element) -> str:
    given = element.find("templateparamlist")
    if given is None:
        return ""
    parameters = []
    for one in given:
        words = [code_text(part) for part in (one.find("type"), one.find("declname")) if part is not None]
        default = one.find("defval")
        parameters.append(" ".join(words) + (f" = {code_text(default)}" if default is not None else ""))
    requires = element.find("requiresclause")
    clause = f"\n    requires {_tidy(code_text(requires))}" if requires is not None else ""
    return f"template <{_tidy(', '.join(parameters))}>{clause}\n"


def _function(member: Element) -> str:
    words = [
        word
        for word, on in (
            ("static", member.attrib.get("static") == "yes"),
            ("explicit", member.attrib.get("explicit") == "yes"),
            ("virtual", member.attrib.get("virt") == "virtual"),
        )
        if on
    ]
    kind = member.find("type")
    head = " ".join([*words, code_text(kind) if kind is not None else "", member.findtext("name") or ""])
    head, arguments = _tidy(head), _tidy(member.findtext("argsstring") or "()")
    if len(head) + len(arguments) <= _LINE_MAX or arguments.startswith("()"):
        return f"{_template(member)}{head}{arguments};"
    parameters = []
    for one in member.findall("param"):
        words = [code_text(part) for part in (one.find("type"), one.find("declname")) if part is not None]
        default = one.find("defval")
        parameters.append(_tidy(" ".join(words)) + (f" = {_tidy(code_text(default))}" if default is not None else ""))
    after = arguments[arguments.rfind(")") + 1 :]
    return f"{_template(member)}{head}(\n    " + ",\n    ".join(parameters) + f"){after};"


def _initial(member: Element) -> str:
    given = member.find("initializer")
    value = _tidy(code_text(given)) if given is not None else ""
    return f" {value}" if 0 < len(value) <= _LINE_MAX else ""


def _class(symbol: Symbol) -> str:
    element = symbol.element
    bases = ", ".join(_tidy(code_text(base)) for base in element.findall("basecompoundref"))
    return f"{_template(element)}{symbol.kind} {symbol.name}" + (f" : {bases};" if bases else ";")


def _concept(symbol: Symbol) -> str:
    given = symbol.element.find("initializer")
    return _tidy(code_text(given)) if given is not None else f"concept {symbol.name};"


def _enumeration(symbol: Symbol) -> str:
    strong = " class" if symbol.element.attrib.get("strong") == "yes" else ""
    kind = _type(symbol.element)
    return f"enum{strong} {symbol.name}" + (f" : {kind};" if kind else ";")


def _macro(symbol: Symbol) -> str:
    names = [code_text(part) for part in symbol.element.iter("defname")]
    return f"#define {symbol.name}" + (f"({', '.join(names)})" if names else "")


def _variable(symbol: Symbol) -> str:
    element = symbol.element
    after = element.findtext("argsstring") or ""
    return f"{_template(element)}{_type(element)} {symbol.name}{after}{_initial(element)};"


def _alias(symbol: Symbol) -> str:
    return f"{_template(symbol.element)}using {symbol.name} = {_type(symbol.element)};"


def _type(element: Element) -> str:
    kind = element.find("type")
    return _tidy(code_text(kind)) if kind is not None else ""


_DECLARATIONS: dict[str, Callable[[Symbol], str]] = {
    "function": lambda symbol: _function(symbol.element),
    "variable": _variable,
    "typedef": _alias,
    "enum": _enumeration,
    "define": _macro,
    "concept": _concept,
}


def declaration(symbol: Symbol) -> str:
    """The declaration of a symbol."""
    return _DECLARATIONS.get(symbol.kind, _class)(symbol)


class Reference:
    """Writes the pages of headers, with links between them."""

    def __init__(self, root: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.headers = read_symbols(run_doxygen(root, Path(folder)))
        public = {path.relative_to(root / "include").as_posix() for path in (root / "include").rglob("*.*pp")}
        public |= {path.relative_to(root / "include").as_posix() for path in (root / "include").rglob("*.cuh")}
        for header in public:
            self.headers.setdefault(header, [])  # its content is only in namespaces for the library's own use
        self._places: dict[str, tuple[str, str]] = {}
        for header, symbols in self.headers.items():
            for symbol in _anchored(symbols):
                self._places[symbol.element.attrib["id"]] = (page_of(header), symbol.anchor)

    def pages(self) -> dict[str, str]:
        """The text of each page by its place in the site."""
        made = {page_of(header): self._header(header) for header in self.headers}
        for module in MODULES:
            made[f"{FOLDER}/{module}/index.md"] = self._module(module)
        made[f"{FOLDER}/index.md"] = self._all()
        return made

    def in_module(self, module: str) -> list[str]:
        """The headers of a module."""
        return sorted(header for header in self.headers if header.startswith(f"headrace/{module}/"))

    def _text(self, element: Element, page: str) -> str:
        def link(reference: str) -> str | None:
            place = self._places.get(reference)
            if place is None:
                return None
            return f"{posixpath.relpath(place[0], posixpath.dirname(page))}#{place[1]}"

        texts = (element.find(tag) for tag in ("briefdescription", "detaileddescription"))
        return "\n\n".join(found for one in texts if one is not None and (found := markdown(one, link)))

    def _rows(self, title: str, symbols: list[tuple[str, Element, str]], page: str) -> list[str]:
        """A table of fields or of an enumeration's values; the third item of each is its anchor."""
        lines = [f"| {title} | |", "|---|---|"]
        for code, element, anchor in symbols:
            escaped = code.replace("|", "\\|")
            mark = f'<span id="{anchor}"></span>' if anchor else ""
            words = " ".join(self._text(element, page).split()).replace("|", "\\|")
            lines.append(f"| {mark}`{escaped}` | {words} |")
        return [*lines, ""]

    def _enum(self, element: Element, page: str) -> list[str]:
        values = [((one.findtext("name") or "") + _initial(one), one, "") for one in element.findall("enumvalue")]
        return self._rows("value", values, page)

    def _symbol(self, symbol: Symbol, page: str, level: int, title: str) -> list[str]:
        lines = [f"{'#' * level} {title} {{ #{symbol.anchor} }}", "", "```cpp", declaration(symbol), "```", ""]
        lines += [self._text(symbol.element, page), ""]
        if symbol.kind == "enum":
            lines += self._enum(symbol.element, page)
        fields = [member for member in symbol.members if member.kind == "variable"]
        if fields:
            rows = [(declaration(member).rstrip(";"), member.element, member.anchor) for member in fields]
            lines += self._rows("field", [(" ".join(code.split()), one, anchor) for code, one, anchor in rows], page)
        for member in symbol.members:
            if member.kind != "variable":
                lines += self._symbol(member, page, level + 1, f"`{member.name}`")
        return lines

    def _header(self, header: str) -> str:
        page = page_of(header)
        lines = [f"# {header.removeprefix('headrace/')}", "", "```cpp", f'#include "{header}"', "```", ""]
        if not self.headers[header]:
            lines += ["This header has no symbols for users: other headers include it.", ""]
        for symbol in self.headers[header]:
            lines += self._symbol(symbol, page, 2, f"`{symbol.short}`")
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))

    def _row(self, header: str, page: str) -> str:
        target = posixpath.relpath(page_of(header), posixpath.dirname(page))
        names = dict.fromkeys(symbol.short for symbol in self.headers[header])
        shown = ", ".join(f"`{name}`".replace("|", "\\|") for name in names)
        return f"| [{header.removeprefix('headrace/')}]({target}) | {shown} |"

    def _module(self, module: str) -> str:
        page = f"{FOLDER}/{module}/index.md"
        rows = [self._row(header, page) for header in self.in_module(module)]
        return "\n".join(
            [f"# {module}", "", f"{MODULES[module]}.", "", "| header | declares |", "|---|---|", *rows, ""]
        )

    def _all(self) -> str:
        lines = ["# C++ reference", "", "A page for each public header, made from its comments. [Get started from C++]"]
        lines[-1] += "(../../readme.md#from-c) says how to build against the library."
        lines += ["", "| module | for |", "|---|---|"]
        lines += [f"| [`{module}`]({module}/index.md) | {words} |" for module, words in MODULES.items()]
        others = [header for header in self.headers if header.count("/") == 1]
        lines += [
            "",
            "| header | declares |",
            "|---|---|",
            *(self._row(one, f"{FOLDER}/index.md") for one in others),
            "",
        ]
        return "\n".join(lines)
