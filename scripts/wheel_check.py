"""Checks an installed wheel of Headrace from the inside: scripts/wheel_test.py runs it in the wheel's environment.

Usage: python wheel_check.py SECONDS PROCESSOR_SECONDS   (what pip took to install it)

It needs Headrace and its dependencies, and no file of the repository. The exit status is 1 if anything is wrong.
"""

import importlib.metadata
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "nvcc", "cmake", "ninja", "make", "ld")
NOTES = """The pump in hall 2 runs hot, bearing replaced
Leak at the pump in hall 3, seal ordered
The pump in hall 3 runs again, new seal
"""
ANSWER = """2 of 3 documents
         0  The pump in hall 2 runs hot, bearing replaced
         2  The pump in hall 3 runs again, new seal
"""


def headrace(*arguments: str | Path) -> str:
    """The output of the command."""
    done = subprocess.run(["headrace", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"headrace {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"
    return done.stdout


def no_compiler() -> None:
    """Checks that no compiler is available here."""
    found = [name for name in COMPILERS if shutil.which(name)]
    assert not found, f"on the PATH: {found}"


def first_answer(folder: Path) -> None:
    """The command line indexes a few notes, and answers."""
    (folder / "notes.txt").write_text(NOTES, encoding="utf-8")
    headrace("index", "build", folder / "notes.txt", folder / "notes.hridx")
    answer = headrace("query", folder / "notes.hridx", "pump AND NOT leak", "--corpus", folder / "notes.txt")
    assert answer == ANSWER, answer


def answers_in_python() -> None:
    """Queries an index directly, with words by ICU and stems by libstemmer, and through an engine."""
    import headrace as package  # noqa: PLC0415 - after the first answer has been timed

    index = package.Index.build(["an apple", "an apple pie", "Die STRASSE"])
    assert list(index.query("apple AND NOT pie").ids) == [0]
    assert list(index.query("straße").ids) == [2]
    assert list(package.Index.build(["he was running"], stem="english").query("runs").ids) == [0]
    operator = package.retrieval(index)
    with package.Engine("cpu", operator) as engine, engine.connect() as client:
        answers, status = client.ask_many(index.compile_many(["apple", "pie"]))
    assert not status.any()
    assert [int(answer["hits"]) for answer in answers] == [2, 1]


def columns(folder: Path) -> None:
    """Fetches a column of a Parquet file through threads of oneTBB."""
    import pyarrow  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    import headrace as package  # noqa: PLC0415

    path = folder / "numbers.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"number": list(range(1000))}), path)
    assert package.base.built_with_fetch
    told = json.loads(headrace("fetch", path, "--to", "cpu", "--json"))
    assert told, "no figures"


# Python's own modules may have loaded system libraries that the wheel does not have: OpenSSL is one.
LOADED_WITH_THE_PACKAGE = """
import hashlib, json, pathlib, re, ssl
def mapped():
    return set(re.findall(r" (/\\S+\\.so\\S*)$", pathlib.Path("/proc/self/maps").read_text(), re.MULTILINE))
before = mapped()
import headrace
print(json.dumps(sorted(mapped() - before)))
"""


def own_libraries() -> None:
    """Checks that the wheel's libraries are loaded from the wheel, and have their licences there and in NOTICE."""
    import headrace as package  # noqa: PLC0415

    bundled = Path(package.__file__).parents[1] / "headrace.libs"
    names = {path.name.split("-")[0] for path in bundled.glob("*.so*")}
    needed = {"libfmt", "libhwloc", "libicuuc", "libnghttp2", "libssl", "libtbb", "libxxhash", "libzstd"}
    assert needed | {"libcrypto", "libicudata"} <= names, names
    mapped = {Path(path) for path in re.findall(r" (/\S+\.so\S*)$", Path("/proc/self/maps").read_text(), re.MULTILINE)}
    ours = {path for path in mapped if path.parent == bundled}
    assert {path.name.split("-")[0] for path in ours} == names, f"not loaded: {names} of {sorted(map(str, ours))}"
    loaded = subprocess.run([sys.executable, "-c", LOADED_WITH_THE_PACKAGE], capture_output=True, text=True, check=True)
    others = {Path(path) for path in json.loads(loaded.stdout)} - ours
    strangers = [path for path in others if path.name.split(".so")[0].split("-")[0] in names and path.parent != bundled]
    assert not strangers, f"libraries of the system instead of the wheel's: {strangers}"
    files = importlib.metadata.files("headrace") or []
    licences = {path.stem: path for path in files if path.parent.name == "bundled"}
    notice = next(path for path in files if path.name == "NOTICE").read_text()
    for name in sorted(names):
        assert name in licences, f"{name} is in the wheel without its licence"
        assert len(licences[name].read_text()) > 100, f"the licence of {name} is empty"  # noqa: PLR2004
        assert re.search(rf"\b{name}\b", notice), f"NOTICE does not name {name}"


def version_and_devices() -> None:
    """Checks that the version has the facts of a bug report, that a device exists without a GPU, and a manual page."""
    lines = headrace("--version").splitlines()
    assert lines[0] == f"headrace {importlib.metadata.version('headrace')}"
    assert [line.split()[0] for line in lines[1:]] == ["commit", "CUDA", "CPU"], lines
    print("\n".join(f"    {line}" for line in lines))
    assert '"cpu:0"' in headrace("devices", "--json")
    page = Path(sys.prefix, "share/man/man1/headrace.1")
    assert ".SS headrace index build" in page.read_text(encoding="utf-8"), page


def main() -> int:
    """Runs every check; the first answer comes first, because its time counts from the download."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.monotonic()
        checks: list[Callable[[], None]] = [
            lambda: first_answer(folder),
            no_compiler,
            answers_in_python,
            lambda: columns(folder),
            own_libraries,
            version_and_devices,
        ]
        for number, check in enumerate(checks):
            try:
                check()
            except Exception:  # the other checks run nevertheless
                failed += 1
                traceback.print_exc()
            if number == 0:
                usage = resource.getrusage(resource.RUSAGE_CHILDREN)
                took = float(sys.argv[1]) + time.monotonic() - started
                processor = float(sys.argv[2]) + usage.ru_utime + usage.ru_stime
                print(f"first answer {took:.1f} s after the download, with {processor:.1f} s of processor time")
    print(f"wheel: {len(checks) - failed} checks passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
