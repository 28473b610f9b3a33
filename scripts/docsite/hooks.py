"""Hooks for MkDocs: they add generated pages, and adapt links and tables written for a code host."""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import cpp_reference  # noqa: E402
import environment  # noqa: E402
import python_reference  # noqa: E402
import undocumented  # noqa: E402

# Pages of the repository outside docs/, and their places in the site.
PROJECT = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "HACKING.md": "hacking.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "src/README.md": "architecture.md",
}
FOLDERS = {"docs/decisions": "decisions/index.md", "docs/results": "results/README.md", "examples": "gallery.md"}
_SOURCES = {".hpp": "cpp", ".cpp": "cpp", ".cu": "cuda", ".cuh": "cuda", ".py": "python", ".sh": "bash"}
_SOURCES |= {".toml": "toml", ".lock": "text", ".txt": "text", ".json": "json"}

_FENCE = re.compile(r"(^ *(```|~~~).*?^ *\2 *$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_LIST_AFTER_TEXT = re.compile(r"^((?![ ]*(?:[-*]|\d+\.) |\s*$|[ ]).+)\n(?=(?:[-*]|\d+\.) )", re.MULTILINE)

_sources: dict[str, str] = {}  # files that pages link to, which become pages, by their place in the repository


def _fill(navigation: Any, parts: dict[str, list[Any]]) -> Any:  # noqa: ANN401 - as YAML has it
    """The navigation, with generated pages inserted where mkdocs.yml names them."""
    if isinstance(navigation, str):
        return parts.get(navigation, navigation)
    if isinstance(navigation, dict):
        return {title: _fill(below, parts) for title, below in navigation.items()}
    return [_fill(below, parts) for below in navigation]


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ")


def _decisions() -> tuple[str, list[Any]]:
    files = sorted((ROOT / "docs/decisions").glob("*.md"))
    rows = [f"| {int(path.name[:4])} | [{re.sub(r'^[0-9]+[.] ', '', _title(path))}]({path.name}) |" for path in files]
    intro = "Short records of what was decided, in which circumstances, and what follows."
    text = "\n".join(["# Decisions", "", intro, "", "| | decision |", "|---|---|", *rows, ""])
    return text, ["decisions/index.md", *(f"decisions/{path.name}" for path in files)]


def _mentioned() -> set[str]:
    """Files of the repository that pages link to and that are not pages themselves."""
    found = set()
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in PROJECT)]:
        place = path.relative_to(ROOT).as_posix()
        for _, _, link in _LINK.findall(path.read_text(encoding="utf-8")):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link.partition("#")[0]))
            if not re.match(r"[a-z]+:", link) and (ROOT / target).is_file() and not target.startswith("docs/"):
                found.add(target)
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generates the pages, and completes the navigation."""
    environment.check(ROOT)
    _sources.clear()
    made: dict[str, str] = {}
    reference = cpp_reference.Reference(ROOT)
    undocumented.check(reference.headers)
    made |= reference.pages()
    python_pages, python_navigation = python_reference.pages(ROOT)
    made |= python_pages
    made["decisions/index.md"], decisions = _decisions()
    headers = {f"include/{header}": cpp_reference.page_of(header) for header in reference.headers}
    for name in sorted(_mentioned() - set(PROJECT)):
        if name in headers:
            _sources[name] = headers[name]
            continue
        _sources[name] = f"source/{name}.md"
        language = _SOURCES.get(Path(name).suffix, "text")
        text = (ROOT / name).read_text(encoding="utf-8").rstrip()
        made[f"source/{name}.md"] = f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n````{language}\n{text}\n````\n"
    cpp_navigation: list[Any] = [f"{cpp_reference.FOLDER}/index.md"]
    for module in cpp_reference.MODULES:
        below = [cpp_reference.page_of(header) for header in reference.in_module(module)]
        cpp_navigation.append({module: [f"{cpp_reference.FOLDER}/{module}/index.md", *below]})
    cpp_navigation += [cpp_reference.page_of(one) for one in reference.headers if one.count("/") == 1]
    commands = sorted(path.name for path in (ROOT / "docs/commands").glob("headrace-*.md"))
    parts = {
        "<cpp>": cpp_navigation,
        "<python>": python_navigation,
        "<decisions>": decisions,
        "<commands>": ["commands/README.md", *(f"commands/{name}" for name in commands)],
    }
    config.nav = _fill(config.nav, parts)
    config.extra["made"] = made
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and those of the repository outside docs/."""
    for place, text in config.extra.pop("made").items():
        files.append(File.generated(config, place, content=text))
    for name, place in PROJECT.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def _repository_place(source: str) -> str:
    """The place in the repository of a page of the site."""
    for name, place in PROJECT.items():
        if place == source:
            return name
    return f"docs/{source}"


def _relinked(text: str, source: str) -> str:
    """Redirects links to files outside docs/ to their pages; links to files without a page become text."""
    place = _repository_place(source)

    def relink(match: re.Match[str]) -> str:
        mark, words, link = match.groups()
        path, hash_mark, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or not path:
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        if target in PROJECT:
            led = PROJECT[target]
        elif target in FOLDERS:
            led = FOLDERS[target]
        elif target in _sources:
            led = _sources[target]
        elif (ROOT / target).is_dir():
            return words if words.startswith("`") else f"`{words}`"
        elif target.startswith("docs/"):
            led = target.removeprefix("docs/")
        else:
            return match[0]  # MkDocs reports it as broken
        if led == source:  # a page of the site that represents the folder it links to
            return words
        return f"{mark}[{words}]({posixpath.relpath(led, posixpath.dirname(source) or '.')}{hash_mark}{anchor})"

    return _LINK.sub(relink, text)


def _for_this_dialect(text: str) -> str:
    """Adapts to Python-Markdown: a list needs an empty line before it; bars in code of tables are not escaped."""
    lines = [
        _CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in text.split("\n")
    ]
    return _LIST_AFTER_TEXT.sub(r"\1\n\n", "\n".join(lines))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs's
    """A page's text adapted for the site; code blocks stay unchanged."""
    source = page.file.src_uri
    if source.startswith(("decisions/", "results/")) or source == PROJECT["CHANGELOG.md"]:
        page.meta["search"] = {"boost": 0.5}  # a search for a name should find its reference first
    made = source.startswith(("reference/", "source/")) or source == "decisions/index.md"
    text = []
    at = 0
    for fence in [*_FENCE.finditer(markdown), None]:
        words = markdown[at : fence.start() if fence else None]
        text.append(_for_this_dialect(words if made else _relinked(words, source)))
        if fence:
            text.append(fence[0])
            at = fence.end()
    return "".join(text)
