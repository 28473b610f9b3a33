"""Writes man/headrace.1, the manual page of the command line, from the Typer app.

Usage: .venv/bin/python scripts/man_page.py [FILE]

The package must be built. The page is committed, like those in docs/commands, so that CMake and a wheel can install it;
a test compares it with the app. Run this after changing a command.
"""

import re
import sys
from pathlib import Path
from typing import Any

import typer.main

from headrace import __version__
from headrace.cli import app

FILE = Path(__file__).parents[1] / "man/headrace.1"
# Written by hand: facts that hold for every command. The tables of docs/cli.md and docs/environment.md say the same.
_STATUSES = (
    ("0", "The command did what was asked."),
    ("1", "It failed: a file could not be read or written, a device failed, or nothing could be measured."),
    ("2", "It was called wrongly: with an option, a name or a value that can never work."),
    ("130, 143", "Ctrl-C or SIGTERM ended it. What had been measured was printed and saved."),
)
_VARIABLES = (
    ("HEADRACE_DEVICES", "cpu or cuda: list only the devices of that kind."),
    ("HEADRACE_CPU_MEMORY", "The memory of the CPU devices, such as 64MiB; by default that of the machine."),
    ("HEADRACE_TRACEBACK", "1 prints Python's traceback below an error."),
    ("XDG_CACHE_HOME", "Where indexes and tuned plans are kept, in the folder headrace; by default ~/.cache."),
)


def roff(text: str) -> str:
    """Text for roff: on one line, with escaped backslashes and minus signs that can be copied, and without requests."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("~", "\\(ti")
    line = line.replace("^", "\\(ha").replace('"', "\\(dq")
    return f"\\&{line}" if line.startswith((".", "'")) else line


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a help text, each on one line."""
    return [roff(paragraph) for paragraph in text.strip().split("\n\n") if paragraph.strip()]


def entry(term: str, text: str) -> list[str]:
    """A tagged paragraph: a term in bold, and its description."""
    return [".TP", f"\\fB{roff(term)}\\fR", roff(text)]


def parameters(context: Any) -> list[str]:  # noqa: ANN401 - Typer names no public type for it
    """The arguments and options of a command."""
    lines = []
    for parameter in context.command.params:
        if not parameter.hidden:
            lines += entry(*parameter.get_help_record(context))
    return lines


def usage(context: Any) -> str:  # noqa: ANN401
    """The usage of a command, with its name in bold."""
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"\\fB{roff(context.command_path)}\\fR {roff(pieces)}".rstrip()


def section(context: Any) -> list[str]:  # noqa: ANN401
    """A command's purpose, usage and parameters, and those of the commands below it."""
    text, _, example = (context.command.help or "").strip().partition("Example: ")
    lines = [f".SS {roff(context.command_path)}", usage(context)]
    for paragraph in paragraphs(text):
        lines += [".PP", paragraph]
    lines += parameters(context)
    if example:
        lines += [".PP", "Example:", ".PP", ".RS 4", f"\\fC{roff(example)}\\fR", ".RE"]
    for name, below in getattr(context.command, "commands", {}).items():
        if not below.hidden:
            lines += section(type(context)(below, info_name=name, parent=context))
    return lines


def page() -> str:
    """The whole page."""
    command = typer.main.get_command(app)
    top = typer.Context(command, info_name="headrace")
    about, _, _ = (command.help or "").partition("Example: ")
    version = re.match(r"\d+\.\d+\.\d+", __version__)
    lines = [
        '.\\" Made by scripts/man_page.py from the command line itself: change the command, not this page.',
        f'.TH HEADRACE 1 "" "Headrace {version[0] if version else __version__}" "User Commands"',
        *(".nh", ".ad l"),  # names of options are not broken, and lines are not stretched
        ".SH NAME",
        "headrace \\- keeps GPUs fed: with queries, columns, packets and borders of grids",
        ".SH SYNOPSIS",
        usage(top),
        ".SH DESCRIPTION",
        *paragraphs(about),
        ".PP",
        roff("Options that take a duration need a unit (100us, 0.5ms, 10s); rates may be short (20K, 1.5M)."),
        roff("With --json a command prints JSON and nothing else on its standard output."),
        ".SH OPTIONS",
        *parameters(top),
        *entry("-h, --help", "Show the help of any command and exit."),
        ".SH COMMANDS",
    ]
    for name, below in sorted(command.commands.items()):  # type: ignore[attr-defined]
        if not below.hidden:
            lines += section(type(top)(below, info_name=name, parent=top))
    lines.append(".SH EXIT STATUS")
    for status, text in _STATUSES:
        lines += entry(status, text)
    lines.append(".SH ENVIRONMENT")
    for name, text in _VARIABLES:
        lines += entry(name, text)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the page."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(), encoding="utf-8")
    print(f"{file}: {len(page().splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
