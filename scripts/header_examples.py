"""Compiles the example at the beginning of each public header, so that it stays correct.

Usage: header_examples.py INCLUDE... [HEADER...]

A public header, include/headrace/<module>/*.hpp or one of those above, begins after `#pragma once` with a comment: its
purpose, then an example, indented by four spaces. The headers of the first folder INCLUDE are checked; an installed
prefix has one such folder, a checkout has include/ and that of a configured build, which contains config.hpp. An
example includes only its header and the standard headers below. In it, text from `struct` or `template` to the matching
`};`, and macros named HEADRACE_..., are at file scope; everything else is the body of a function. Umbrellas, which only
include a module's headers, need no example. If headers are named, as headrace/device/ring.hpp, only those are checked.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

OPENING = re.compile(r"\A#pragma once\n\n((?://(?: [^\n]*)?\n)+)\n")
AT_FILE_SCOPE = ("struct ", "template ")
STANDARD = ("chrono", "cstdio", "memory", "optional", "span", "string", "utility", "vector")
COMPILER = os.environ.get("CXX", "g++")
OPTIONS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-x", "c++", "-"]
GENERATED = "headrace/config.hpp"
# Requirements of headers that some machines lack; without them, the example is not compiled.
NEEDS = {"headrace/cuda.hpp": "cuda_runtime_api.h"}


def is_umbrella(header: str) -> bool:
    """Whether a header only includes those of a module."""
    return header.count("/") == 1 and header not in NEEDS


def public_headers(include: Path) -> list[str]:
    """The headers that programs include, by the names that they use."""
    found = (path.relative_to(include) for path in sorted((include / "headrace").rglob("*.hpp")))
    return [str(path) for path in found if "detail" not in path.parts and str(path) != GENERATED]


def split_opening(text: str) -> tuple[list[str], dict[int, str]]:
    """A header's opening comment: the lines of its purpose, and those of its example with their numbers."""
    opening = OPENING.match(text)
    lines = {number: line[3:] for number, line in enumerate(opening[1].splitlines(), start=3)} if opening else {}
    return (
        [line for line in lines.values() if line and not line.startswith("    ")],
        {number: line[4:] for number, line in lines.items() if line.startswith("    ")},
    )


def program(header: str, example: dict[int, str]) -> str:
    """The translation unit of an example; its errors refer to the header's lines."""
    file: list[str] = []
    body: list[str] = []
    inside = False
    for number, line in example.items():
        inside = inside or line.startswith(AT_FILE_SCOPE)
        place = file if inside or line.startswith("HEADRACE_") else body
        place += [f'#line {number} "{header}"', line]
        inside = inside and not line.startswith("};")
    includes = [f'#include "{header}"', *(f"#include <{name}>" for name in STANDARD)]
    return "\n".join([*includes, *file, "void example() {", *body, "}", ""])


def compile_error(code: str, includes: list[Path]) -> str | None:
    """The compiler's first error, if there is one."""
    command = [COMPILER, *OPTIONS, *(f"-I{include}" for include in includes)]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr)


def complaint(header: str, includes: list[Path]) -> str | None:
    """The problem with a header's opening, if there is one."""
    purpose, example = split_opening((includes[0] / header).read_text(encoding="utf-8"))
    if not purpose:
        return "it does not open with its purpose: put a comment after #pragma once"
    if not example:
        return None if is_umbrella(header) else "its opening comment has no example: indent one by four spaces"
    if header in NEEDS and compile_error(f"#include <{NEEDS[header]}>\n", includes):
        print(f"{header}: not compiled, because there is no {NEEDS[header]}")
        return None
    return compile_error(program(header, example), includes)


def main() -> int:
    """Compiles the examples and prints how many passed."""
    if len(sys.argv) == 1:
        sys.exit("usage: header_examples.py INCLUDE... [HEADER...]")
    includes = [Path(argument).resolve() for argument in sys.argv[1:] if not argument.endswith(".hpp")]
    headers = [argument for argument in sys.argv[1:] if argument.endswith(".hpp")] or public_headers(includes[0])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        complaints = list(threads.map(partial(complaint, includes=includes), headers))
    failed = [(header, found) for header, found in zip(headers, complaints, strict=True) if found]
    for header, found in failed:
        print(found if found.startswith(f"{header}:") else f"{header}: {found}", file=sys.stderr)
    print(f"{len(headers) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
