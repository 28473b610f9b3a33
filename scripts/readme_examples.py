"""Runs the README's examples as written.

Usage: readme_examples.py README FOLDER CMAKE_PREFIX

Every fenced block (cpp, python or sh) that follows the line `<!-- ci: run -->` is written to FOLDER and run: C++ is
built against the Headrace installed in CMAKE_PREFIX, Python with this interpreter, sh with bash at the repository's
root and .venv/bin on the PATH. Fails if one fails, or if a C++ or a Python example is missing.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^<!-- ci: run -->\n+```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REQUIRED = {"cpp", "python"}

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(readme LANGUAGES CXX)
find_package(headrace REQUIRED)
add_executable(example example.cpp)
target_link_libraries(example PRIVATE headrace::headrace)
"""


def run(command: list[str | Path], folder: Path) -> None:
    """Runs a command in a folder; raises CalledProcessError when it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PATH": path})


def run_cpp(code: str, folder: Path, prefix: Path) -> None:
    """Builds and runs a C++ program against the installed library."""
    (folder / "example.cpp").write_text(code, encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    configure = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"]
    run([*configure, "--log-level=WARNING"], folder)
    run(["cmake", "--build", "build"], folder)
    run([folder / "build" / "example"], folder)


def main() -> int:
    """Runs every marked block and says how many passed."""
    readme, folder, prefix = (Path(argument).resolve() for argument in sys.argv[1:])
    blocks = BLOCK.findall(readme.read_text(encoding="utf-8"))
    missing = REQUIRED - {language for language, _ in blocks}
    if missing:
        print(f"{readme}: no runnable example in {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    failed = 0
    for number, (language, code) in enumerate(blocks, start=1):
        place = folder / str(number)
        place.mkdir(parents=True)
        print(f"README example {number} ({language})", flush=True)
        try:
            if language == "cpp":
                run_cpp(code, place, prefix)
            elif language == "python":
                (place / "example.py").write_text(code, encoding="utf-8")
                run([sys.executable, "example.py"], place)
            elif language == "sh":
                run(["bash", "-euo", "pipefail", "-c", code], readme.parent)
            else:
                raise ValueError(f"no way to run {language}")
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"README example {number} failed: {error}", file=sys.stderr)
            failed += 1
    print(f"{len(blocks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
