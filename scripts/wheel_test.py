"""Installs a wheel where there is neither a compiler nor any of its libraries, and runs wheel_check.py there.

Usage: PYTHON scripts/wheel_test.py WHEEL HOUSE FOLDER

PYTHON is the interpreter that the wheel is for, HOUSE a folder with the wheels of its dependencies, and FOLDER is
created anew. If this process may change its root, FOLDER becomes a root with this Python, the shared libraries that
Python's own modules are linked to, glibc and the C++ compiler's libraries, and nothing else. Otherwise the test runs in
a fresh virtual environment with an empty PATH, and says so.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

CHECK = Path(__file__).with_name("wheel_check.py")
# What every manylinux wheel may expect of a system, except zlib and X11: parts of glibc, libraries of the compiler.
EXPECTED = (
    *("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2"),
    *("libstdc++.so.6", "libgcc_s.so.1"),
)
LEFT_OUT = ("test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "turtledemo", "config-*", "*.a")
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def linked_to(files: list[Path]) -> set[Path]:
    """The shared libraries that files are linked to, including the dependencies of these and the loader."""
    done = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False)
    return {Path(path) for path in _LIBRARY.findall(done.stdout)}


def expected_libraries() -> set[Path]:
    """The files of EXPECTED, as found by the loader."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, path in re.findall(r"^\s*(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", listed, re.MULTILINE):
        found.setdefault(name, Path(path))
    return {found[name] for name in EXPECTED}


def make_root(root: Path) -> Path:
    """Fills a folder with this Python and the libraries it is linked to. Returns the interpreter's path in it."""
    interpreter = Path(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined] # of the venv, its origin
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))
    shutil.copytree(
        library, root / library.relative_to("/"), symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT, "_tkinter*")
    )
    modules = list((root / library.relative_to("/") / "lib-dynload").glob("*.so"))
    for path in {interpreter, *linked_to([interpreter, *modules]), *expected_libraries()}:
        to = root / path.relative_to("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)  # links are replaced by their targets
    bundled_pips = Path("/usr/share/python-wheels")  # Debian's Python takes pip from there
    if str(library).startswith("/usr/lib") and bundled_pips.is_dir():
        shutil.copytree(bundled_pips, root / bundled_pips.relative_to("/"))
    for name in ("proc", "sys", "dev", "tmp"):
        (root / name).mkdir(exist_ok=True)
    return interpreter


def enter() -> list[str] | None:
    """The command prefix that enters another root, or None if this process may not."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", *rights, "--mount"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        return None
    script = 'for f in proc sys dev; do mount --rbind /$f "$0/$f" || exit 1; done; exec chroot "$0" "$@"'
    return [*command, "sh", "-c", script]


def processor_seconds() -> float:
    """Processor time of the children that have ended; on a busy machine it says more than elapsed time."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Returns the exit status of the check."""
    wheel, house, folder = (Path(name).resolve() for name in sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir(parents=True)
    entered = enter()
    if entered:
        interpreter, inside, prefix = make_root(root), Path("/"), [*entered, str(root)]
        print("in a root folder with nothing but Python and what it is linked to")
    else:
        interpreter, inside, prefix = Path(sys._base_executable), root, []  # type: ignore[attr-defined]
        print("CHROOT IS NOT POSSIBLE HERE: testing in a fresh environment with an empty PATH instead")
    shutil.copytree(house, root / "house")
    shutil.copy2(wheel, root / "house")
    shutil.copy2(CHECK, root / "check.py")
    (root / "home").mkdir()
    environment = {"PATH": str(inside / "venv/bin"), "HOME": str(inside / "home"), "LC_ALL": "C.UTF-8"}

    def run(*command: str | Path) -> int:
        # The tools that change the root are found on this process's PATH.
        kept = [f"{name}={value}" for name, value in environment.items()]
        inner = [*command]
        if prefix:
            inner = [
                interpreter,
                "-c",
                "import os, sys; os.execve(sys.argv[2], sys.argv[2:], "
                "dict(line.split('=', 1) for line in sys.argv[1].split(chr(10))))",
                "\n".join(kept),
                *command,
            ]
        return subprocess.run(
            [*prefix, *map(str, inner)], env=os.environ if prefix else environment, cwd=folder, check=False
        ).returncode

    python = inside / "venv/bin/python"
    if run(interpreter, "-m", "venv", inside / "venv"):
        raise SystemExit("no virtual environment could be made")
    started, before = time.monotonic(), processor_seconds()
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-cache-dir"]
    if run(python, *install, "--find-links", inside / "house", inside / "house" / wheel.name):
        raise SystemExit("pip could not install the wheel")
    took = (time.monotonic() - started, processor_seconds() - before)
    status = run(python, inside / "check.py", *map(str, took))
    shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
