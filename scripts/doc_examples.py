"""Runs the examples of Markdown pages as written.

Usage: doc_examples.py FOLDER CMAKE_PREFIX README [TUTORIAL...]

In the README, it runs each fenced block (cpp, python or sh) that follows the line `<!-- ci: run -->`: C++ is built
against the Headrace installed in CMAKE_PREFIX, Python runs with this interpreter, sh with bash at the repository's root
and .venv/bin on the PATH. Fails if a block fails, or if there is no C++ or no Python example.

In a tutorial, it runs all blocks of these languages in order, in a separate folder and on the CPU device, where CMake
finds the Headrace of CMAKE_PREFIX. A block with a title, such as ```toml title="scene.toml", is also kept under that
name. A block of text that follows the line `<!-- ci: output -->` is the exact output of the block before it.

Pages run beside each other, one per processor.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

BLOCK = re.compile(r"(?:^<!-- ci: (run|output) -->\n+)?^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([\w.-]+)"')
REQUIRED = {"cpp", "python"}
LANGUAGES = {"cpp", "python", "sh"}

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(readme LANGUAGES CXX)
find_package(headrace REQUIRED)
add_executable(example example.cpp)
target_link_libraries(example PRIVATE headrace::headrace)
"""


def run(command: list[str | Path], folder: Path, **environment: str) -> str:
    """Runs a command in a folder and returns its output; raises CalledProcessError, which has it, when it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    done.check_returncode()
    return done.stdout


def run_cpp(code: str, folder: Path, prefix: Path, **environment: str) -> str:
    """Builds and runs a C++ program against the installed library."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "example.cpp").write_text(code, encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    configure = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"]
    run([*configure, "--log-level=WARNING"], folder)
    run(["cmake", "--build", "build"], folder)
    return run([folder / "build" / "example"], folder, **environment)


def run_block(language: str, code: str, folder: Path, prefix: Path, place: Path, **environment: str) -> str:
    """Runs a block, sh in `folder` and the others in `place`; returns its output."""
    if language == "cpp":
        return run_cpp(code, place / "cpp", prefix, **environment)
    if language == "python":
        (place / "example.py").write_text(code, encoding="utf-8")
        return run([sys.executable, "example.py"], place, **environment)
    if language == "sh":
        return run(["bash", "-euo", "pipefail", "-c", code], folder, **environment)
    raise ValueError(f"examples in {language} cannot be run")


def shown(name: str, block: Callable[[], str]) -> str:
    """The output of a block, which is printed below its name in one piece, because other pages print as well."""
    try:
        printed = block()
    except subprocess.CalledProcessError as error:
        print(f"{name}\n{error.output}", end="", flush=True)
        raise
    print(f"{name}\n{printed}", end="", flush=True)
    return printed


def run_readme(page: Path, folder: Path, prefix: Path) -> tuple[int, int]:
    """Runs the marked blocks; returns how many passed and how many failed."""
    blocks = [(language, code) for mark, language, _, code in BLOCK.findall(page.read_text("utf-8")) if mark == "run"]
    missing = REQUIRED - {language for language, _ in blocks}
    if missing:
        print(f"{page}: no runnable example in {', '.join(sorted(missing))}", file=sys.stderr)
        return 0, 1
    failed = 0
    for number, (language, code) in enumerate(blocks, start=1):
        place = folder / str(number)
        place.mkdir(parents=True)
        try:
            block = partial(run_block, language, code, page.parent, prefix, place)
            shown(f"README example {number} ({language})", block)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"README example {number} failed: {error}", file=sys.stderr)
            failed += 1
    return len(blocks) - failed, failed


def run_tutorial(page: Path, folder: Path, prefix: Path) -> tuple[int, int]:
    """Runs all blocks until one fails, because later ones may depend on it; returns as run_readme()."""
    folder.mkdir(parents=True)
    passed = 0
    printed = ""
    for mark, language, words, code in BLOCK.findall(page.read_text("utf-8")):
        title = TITLE.search(words)
        if title:
            (folder / title[1]).write_text(code, encoding="utf-8")
        name = f"{page.name} example {passed + 1} ({language})"
        try:
            if mark == "output":
                if printed != code:
                    raise ValueError(f"it prints\n{printed}but the page says\n{code}")
            elif language in LANGUAGES:
                settings = {"HEADRACE_DEVICES": "cpu", "COLUMNS": "100", "CMAKE_PREFIX_PATH": str(prefix)}
                printed = shown(name, partial(run_block, language, code, folder, prefix, folder, **settings))
                passed += 1
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"{name} failed: {error}", file=sys.stderr)
            return passed, 1
    if passed == 0:
        print(f"{page}: no example", file=sys.stderr)
    return passed, int(passed == 0)


def main() -> int:
    """Runs the pages and prints how many examples passed."""
    folder, prefix, readme, *tutorials = (Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    pages = [partial(run_readme, readme, folder / "readme", prefix)]
    pages += [partial(run_tutorial, page, folder / page.stem, prefix) for page in tutorials]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        counts = list(threads.map(lambda page: page(), pages))
    passed, failed = (sum(part) for part in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
