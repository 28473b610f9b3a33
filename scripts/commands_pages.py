"""Writes docs/commands/: a page for each command with its usage, arguments, options and defaults, from the Typer app.

Usage: .venv/bin/python scripts/commands_pages.py [FOLDER]

The package must be built. The pages are committed, so that they can be read without a build; a test compares them with
the app. Run this after changing a command.
"""

import re
import sys
from pathlib import Path
from typing import Any

import typer.main

from headrace.cli import app

FOLDER = Path(__file__).parents[1] / "docs/commands"
NOTE = "<!-- Made by scripts/commands_pages.py from the command line itself: change the command, not this page. -->\n"
BRACKET = re.compile(r"\s*\[([^\[\]]*)\]$")
DEFAULT = re.compile(r"(?:^|; )default: (.*?)(?=; |$)")


def cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    escaped = text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;").replace("*", "\\*")
    return " ".join(escaped.split())


def code(text: str) -> str:
    """Code for a cell of a Markdown table; bars are escaped, because they would end the cell."""
    return "`" + text.replace("|", "\\|") + "`"


def row(parameter: Any, context: Any) -> str:  # noqa: ANN401 - Typer names no public type for its parameters
    """A row of the table: the parameter's notation, its meaning, its default and its limits."""
    declaration, text = parameter.get_help_record(context)
    bracket = BRACKET.search(text)
    extra = bracket[1] if bracket else ""
    meaning = text[: bracket.start()] if bracket else text
    found = DEFAULT.search(extra)
    default = found[1] if found else ""
    limits = DEFAULT.sub("", extra).strip("; ")
    if not meaning.strip():
        raise SystemExit(f"{context.command_path} {declaration}: the option has no help text")
    described = cell(meaning) + (f" ({code(limits)})" if "x" in limits else f" **{limits}**" if limits else "")
    return f"| {code(declaration)} | {described} | {code(default) if default else ''} |"


def table(title: str, rows: list[str]) -> str:
    """A table with a title, or nothing if there are no rows."""
    return "\n".join([f"**{title}**\n", f"| {title.lower()[:-1]} | meaning | default |", "|---|---|---|", *rows, ""])


def section(context: Any, level: int) -> str:  # noqa: ANN401
    """A command's purpose, usage and parameters, and those of the commands below it."""
    command = context.command
    words = (command.help or "").strip()
    body, _, example = words.partition("Example: ")
    lines = [f"{'#' * level} {context.command_path}", ""]
    lines += ["\n\n".join(cell(paragraph) for paragraph in body.strip().split("\n\n")), ""]
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines += ["```text", usage, "```", ""]
    if example:
        lines += ["Example:", "", "```sh", " ".join(example.split()), "```", ""]
    shown = [parameter for parameter in command.params if not parameter.hidden]
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        rows = [row(parameter, context) for parameter in shown if parameter.param_type_name == kind]
        if rows:
            lines.append(table(title, rows))
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            lines.append(section(type(context)(below, info_name=name, parent=context), level + 1))
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    command = typer.main.get_command(app)
    top = typer.Context(command, info_name="headrace")
    made: dict[str, str] = {}
    listed: dict[str, list[str]] = {}
    for name, below in command.commands.items():  # type: ignore[attr-defined]
        context = type(top)(below, info_name=name, parent=top)
        made[f"headrace-{name}.md"] = f"{section(context, 1).rstrip()}\n\n{NOTE}"
        first = cell((below.help or "").strip().split("\n\n")[0])
        listed.setdefault(str(below.rich_help_panel), []).append(
            f"| [`headrace {name}`](headrace-{name}.md) | {first} |"
        )
    lines = [
        NOTE,
        "# Commands",
        "",
        "Every command with all its options and defaults. [The command line](../cli.md) says how",
    ]
    lines += ["they are used, and what exit statuses mean.", ""]
    for panel, rows in listed.items():
        lines += [f"## {panel}", "", "| command | does |", "|---|---|", *sorted(rows), ""]
    own = [row(parameter, top) for parameter in command.params if not parameter.hidden]
    lines += ["## Options of headrace itself", "", "| option | meaning | default |", "|---|---|---|", *own]
    lines += ["| `-h`, `--help` | Show the help of any command and exit. | |", "", NOTE]
    made["README.md"] = "\n".join(lines)
    return made


def main() -> int:
    """Writes the pages, and removes those of removed commands."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
