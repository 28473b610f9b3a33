"""Records the files that a host compiler read for a source, so that a restarted program need not run the compiler.

A manifest lists the files that the compiler read, with their sizes and times, and the key of the resulting code. Its
own key can be computed without the compiler. The direct mode of ccache works in the same way:
https://ccache.dev/manual/latest.html#_the_direct_mode
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence

from headrace.operators import code_cache
from headrace.operators.source_text import GENERATED

#: A file of the user's, which may be a different one in another folder.
QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"', re.MULTILINE)
_TIME = re.compile(r"__(?:DATE|TIME|TIMESTAMP)__")
#: The marker with which compilers begin or resume a file: # 12 "/usr/include/math.h" 3 4
_MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_NAMED_IN_TEXT = re.compile(r'^[ \t]*#[ \t]*line[ \t]+\d+[ \t]+"(.*)"', re.MULTILINE)
#: Variables that affect what compilers read or produce.
_VARIABLES = ("PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH")
_KIND = "files"
#: File times come from a clock that may lag by this much.
_CLOCK_NS = 20_000_000


def key_of(text: str, compiler: Sequence[str], options: Sequence[str]) -> str | None:
    """The key of a source's manifest, from the text, the compiler, its options and the processor.

    None if these do not determine the code: the text includes a file in quotes, or depends on the time.
    """
    if QUOTED_INCLUDE.search(text) or _TIME.search(text):
        return None
    processor = _processor()
    if processor is None:
        return None
    variables = [os.environ.get(name) for name in _VARIABLES]
    parts = (text, list(compiler), list(options), _programs(compiler), variables, processor)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find(key: str) -> str | None:
    """The key of the code, if all files that the compiler read are unchanged."""
    content = code_cache.read(key, _KIND)
    if content is None:
        return None
    made, files = json.loads(content)
    return str(made) if all(_stamp(path) == stamp for path, stamp in files.items()) else None


def keep(key: str, made: str, text: str, preprocessed: str, began_ns: int) -> None:
    """Keeps the key of the code compiled from a text.

    Does nothing if a file can no longer be found, or may have changed after the compiler started to read.

    Args:
        key: key of the manifest.
        made: key of the code.
        text: input of the compiler.
        preprocessed: the text after the preprocessor.
        began_ns: time before the compiler started, in ns since 1970.
    """
    own = {GENERATED, *_NAMED_IN_TEXT.findall(text)}
    files: dict[str, list[int]] = {}
    for path in {found for found in _MARKER.findall(preprocessed) if not found.startswith("<")} - own:
        stamp = _stamp(path)
        if not os.path.isabs(path) or stamp is None or max(stamp[1:]) > began_ns - _CLOCK_NS:  # noqa: PTH117
            return
        files[path] = stamp
    code_cache.write(key, json.dumps([made, files]).encode(), _KIND)


def _stamp(path: str) -> list[int] | None:
    """What changes with a file: its size, and the times of its content and its inode."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a hundred files
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _programs(compiler: Sequence[str]) -> list[tuple[str, list[int]]]:
    """The files that the words of a command may name: with ccache, the compiler is the next one on the path."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    places = [os.path.join(folder, word) for word in compiler for folder in folders]  # noqa: PTH118
    found = {os.path.realpath(place) for place in places}
    return [(path, stamp) for path in sorted(found) if (stamp := _stamp(path)) is not None]


def _processor() -> str | None:
    """The processor as Linux describes its first core; None if that cannot be read."""
    lines = []
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            for line in file:
                if not line.strip():
                    break
                if not any(word in line.lower() for word in ("mhz", "bogomips")):  # these values are measured
                    lines.append(line)
    except OSError:
        return None
    return "".join(lines) or None
