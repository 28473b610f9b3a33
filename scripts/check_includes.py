"""Checks that includes point in one direction, as defined in docs/decisions/0001.

base <- device <- measure <- {serve, fetch, ingest, grid} <- wire <- {python, bench}; operators build on serve. Public
headers and their details include no private headers, and no module includes the private headers of another, except that
those of base are for all, and that the bindings, which are compiled in this tree, may include any. Examples are
compiled against an installed library like users' programs, so they include only public headers (docs/decisions/0086).
Inside a module, folders do not include each other in a circle; the module's own folder, above them, is exempt. CUDA's
own headers are included only where device code or the CUDA host API is used. Only the device module and the bindings
name a kind of device; other code asks DeviceProperties what a device can do (docs/decisions/0077). No file includes a
header twice.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

FEEDERS = ("serve", "fetch", "ingest", "grid")

# module -> the modules that it may include, besides itself
ALLOWED: dict[str, set[str]] = {"base": set(), "device": {"base"}, "measure": {"base", "device"}}
ALLOWED |= {feeder: {"base", "device", "measure"} for feeder in FEEDERS}
ALLOWED["wire"] = {"base", "device", "measure", *FEEDERS}
ALLOWED["operators"] = {"base", "device", "measure", "serve"}
ALLOWED["python"] = set(ALLOWED)
ALLOWED["bench"] = set(ALLOWED) - {"python"}

# Headers at the top of include/headrace, by their module.
TOP_HEADERS = {"config.hpp": "base", "cuda.hpp": "device"} | {f"{name}.hpp": name for name in ("device", *FEEDERS)}
TOP_HEADERS |= {"operators.hpp": "operators", "wire.hpp": "wire"}
GENERATED = {"headrace/config.hpp"}

ROOTS = ("include", "src", ".")
SUFFIXES = {".hpp", ".cpp", ".cuh", ".cu"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
KIND = re.compile(r"\bDeviceKind::\w+")
CUDA_HEADER = re.compile(
    r"^(?:cuda[\w./]*|cub/.*|thrust/.*|cooperative_groups.*|nvml\.h|nvtx3/.*|nvrtc\.h|curand.*"
    r"|(?:driver|vector|device|texture|surface)_(?:types|functions)\.h|device_launch_parameters\.h)$"
)


def module_of(path: Path) -> str | None:
    """The module of a file (relative to the repository); None if any direction is allowed."""
    parts = path.parts
    if parts[:2] == ("include", "headrace"):
        return TOP_HEADERS.get(parts[2]) if len(parts) == 3 else parts[2]  # noqa: PLR2004
    if parts[0] == "src" and len(parts) > 2:  # noqa: PLR2004
        return parts[1]
    if parts[:2] == ("python", "bindings"):
        return "python"
    return parts[0] if parts[0] in ("operators", "bench") else None


def may_include_cuda(path: Path) -> bool:
    """Whether a file is device code, the CUDA device, or the one public header with native handles."""
    if path.parts[:3] == ("src", "device", "cuda") or path.suffix in {".cu", ".cuh"}:
        return True
    return path == Path("include/headrace/cuda.hpp") or path.parts[0] in ("tests", "bench")


def resolve(root: Path, path: Path, name: str) -> Path | None:
    """The file of this repository that an include names, relative to it."""
    for folder in (path.parent, *map(Path, ROOTS)):
        found = (root / folder / name).resolve()
        if found.is_file() and found.is_relative_to(root):
            return found.relative_to(root)
    return None


def direction_complaint(here: str, there: str) -> str | None:
    """Why module `here` may not include module `there`, or None."""
    for module in (here, there):
        if module not in ALLOWED:
            return f"'{module}' is not a module known to scripts/check_includes.py"
    if here == there or there in ALLOWED[here]:
        return None
    return f"'{here}' may not include '{there}', only {', '.join(sorted(ALLOWED[here])) or 'itself'}"


def is_detail(path: Path) -> bool:
    """Whether a header is installed because others need it, and not for users to include by name."""
    return path.parts[:2] == ("include", "headrace") and "detail" in path.parts


def outsider_complaint(path: Path, target: Path) -> str | None:
    """Why an installed header or an example may not include a file, or None."""
    if target.parts[0] not in ("include", "examples"):
        return f"a public header or an example includes the private {target}"
    if path.parts[0] == "examples" and is_detail(target):
        return f"{target} is not for users: include the public header that includes it"
    return None


def complaint(root: Path, path: Path, name: str, quoted: bool) -> str | None:
    """What is wrong with one include, or None."""
    if CUDA_HEADER.match(name) and not may_include_cuda(path):
        return "CUDA headers belong in src/device/cuda, *.cu, *.cuh and include/headrace/cuda.hpp"
    target = resolve(root, path, name)
    if target is None:
        return "there is no such file in this repository" if quoted and name not in GENERATED else None
    if path.parts[0] in ("include", "examples") and (why := outsider_complaint(path, target)):
        return why
    here, there = module_of(path), module_of(target)
    if here is None or there is None:
        return None
    if target.parts[0] == "src" and there not in (here, "base") and here != "python":
        return f"'{here}' includes {target}, which is private to '{there}'"
    return direction_complaint(here, there)


def subfolder_of(path: Path) -> str | None:
    """The folder inside a module that a file belongs to, such as "device/cpu", in include/ and src/ alike."""
    inside = path.parts[2:] if path.parts[:2] == ("include", "headrace") else path.parts[1:]
    if path.parts[0] not in ("include", "src") or len(inside) < 3:  # noqa: PLR2004
        return None
    return "/".join(inside[:2])


class Folders:
    """Which folders inside a module include which others, each with the first such include."""

    def __init__(self) -> None:
        self._includes: dict[str, dict[str, str]] = {}

    def add(self, path: Path, target: Path, place: str) -> None:
        """Records an include of `target` by `path`, found at `place`."""
        here, there = subfolder_of(path), subfolder_of(target)
        if here and there and here != there and module_of(path) == module_of(target):
            self._includes.setdefault(here, {}).setdefault(there, place)

    def _way(self, here: str, there: str) -> list[str] | None:
        """The includes through which a folder reaches another, or None."""
        ways: dict[str, list[str]] = {here: []}
        waiting = [here]
        for folder in waiting:
            for following, place in self._includes.get(folder, {}).items():
                if following not in ways:
                    ways[following] = [*ways[folder], place]
                    waiting.append(following)
        return ways.get(there)

    def complaints(self) -> Iterator[str]:
        """Every include by which a folder reaches one that leads back to it."""
        for here, reached in sorted(self._includes.items()):
            for there, place in sorted(reached.items()):
                back = self._way(there, here)
                if back is not None:
                    yield f"{place}: {here} and {there} include each other; the way back: {', '.join(back)}"


def names_of_kinds(path: Path, text: str) -> Iterator[str]:
    """Every place outside the device module that compares or names kinds of devices."""
    if module_of(path) in ("device", "python", None):
        return
    for match in KIND.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: {match[0]}: ask DeviceProperties what a device can do"


def violations(root: Path) -> Iterator[str]:
    """Every include in the wrong direction, as "file:line: include: why"."""
    root = root.resolve()
    folders = Folders()
    for folder in ("include", "src", "operators", "python/bindings", "bench", "tests", "examples"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root)
            text = file.read_text(encoding="utf-8")
            yield from names_of_kinds(path, text)
            seen = set()
            for match in INCLUDE.finditer(text):
                name = match[1] or match[2]
                place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}"
                if name in seen:
                    yield f"{place}: the file already includes it"
                seen.add(name)
                why = complaint(root, path, name, quoted=match[1] is not None)
                if why is not None:
                    yield f"{place}: {why}"
                target = resolve(root, path, name)
                if target is not None:
                    folders.add(path, target, place)
    yield from folders.complaints()


def main() -> int:
    """Checks the repository of this script, or the given folder."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(violations(root))
    print("\n".join(found) if found else "includes point one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
