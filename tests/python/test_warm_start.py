"""Programs that start again with a warm cache of code: what they neither import nor compile, and still find."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import UsageError
from headrace.operators import code_cache, compile_source, from_source, source_manifest
from headrace.operators.versions import version_of

Start = Callable[..., str]
TWICE = "void twice(Group, const Query& query, Answer& answer) { answer = 2 * query; }"
SAY = """
import sys

before = set(sys.modules)  # what packages import as Python starts, such as numba-cuda's

def say(*modules):
    print([name for name in modules if name in sys.modules and name not in before])
"""
IN_PYTHON = """
from say import say
import numpy as np, headrace

@headrace.operator(query="i8", answer="i8")
def twice(group, query, answer):
    answer[0] = 2 * query[0]

served = twice()
say("numba", "numba.cuda", "importlib.metadata")
"""
ON_CPU = (
    IN_PYTHON
    + """
with headrace.Engine("cpu", served) as engine, engine.connect() as client:
    print(client.ask(np.int64(21)))
say("numba")
"""
)
# The compilers of the CUDA packages are replaced: the test is about when they are called.
ON_GPU = (
    IN_PYTHON
    + """
from headrace.operators import compile_cuda

compile_cuda.function_kernels = lambda _capability: b"kernels"
compile_cuda.version_of = lambda _package: "1"
compile_cuda.to_ltoir = lambda *_: print("compiled") or b"code"
compile_cuda.link = lambda codes, _capability, _kernels, **_more: b"linked " + b" ".join(codes)
print(twice._for_cuda((), 90, ()))
say("numba")
"""
)
OF_SOURCE = f"""
from say import say
import numpy as np, headrace

served = headrace.operators.from_source("{TWICE}", "twice", query="i8", answer="i8")()
with headrace.Engine("cpu", served) as engine, engine.connect() as client:
    print(client.ask(np.int64(21)))
say("subprocess", "numba")
"""
PLAIN = """
from say import say
import headrace

say("numba", "subprocess", "tempfile", "importlib.metadata", "headrace.operators.code_cache")
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate cache for each test, also used by programs that it starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_source, "_loaded", {})
    return tmp_path / "cache" / "headrace" / "code"


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Runs a program as a process, and returns its output; keyword arguments are its environment."""
    (tmp_path / "say.py").write_text(SAY)

    def run(text: str, **environment: str) -> str:
        (tmp_path / "program.py").write_text(text)
        done = subprocess.run(
            [sys.executable, tmp_path / "program.py"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_importing_headrace_imports_no_compiler(start: Start):
    assert start(PLAIN) == "[]\n"


def test_a_function_is_compiled_for_the_host_when_an_engine_needs_it(start: Start):
    assert start(ON_CPU).startswith("['numba', ")
    assert start(ON_CPU) == "[]\n42\n['numba']\n"


def test_code_for_a_gpu_is_found_without_numba(start: Start):
    cold = start(ON_GPU)
    assert cold.startswith("['numba', ")
    assert cold.endswith("\ncompiled\nb'linked kernels code'\n['numba']\n")
    assert start(ON_GPU) == "[]\nb'linked kernels code'\n[]\n"
    checking = start(ON_GPU, NUMBA_BOUNDSCHECK="1")
    assert checking == "[]\ncompiled\nb'linked kernels code'\n[]\n", "it is other code"
    assert start(ON_GPU, NUMBA_BOUNDSCHECK="1") == start(ON_GPU, NUMBA_BOUNDSCHECK="0")


@pytest.mark.parametrize("damaged", [b"", b"headrace code 1\n", b"x" * 100])
def test_where_the_cache_is_damaged_a_function_is_compiled_at_the_call(start: Start, cache: Path, damaged: bytes):
    start(IN_PYTHON)
    (file,) = cache.glob("*.compiled")
    file.write_bytes(damaged)
    assert start(IN_PYTHON).startswith("['numba'")
    assert file.read_bytes() != damaged
    assert start(IN_PYTHON) == "[]\n"


def test_a_function_that_has_changed_is_compiled_at_the_call(start: Start):
    start(IN_PYTHON)
    assert start(IN_PYTHON.replace("2 *", "3 *")).startswith("['numba'")


def test_what_cannot_be_told_is_compiled_at_the_call(start: Start, tmp_path: Path):
    (tmp_path / "mine.py").write_text("FACTOR = 2\n")
    text = IN_PYTHON.replace("import numpy", "import mine\nimport numpy").replace("2 *", "mine.FACTOR *")
    assert start(text).startswith("['numba'")
    assert start(text).startswith("['numba'")


def unknown(_group, query, answer):
    answer[0] = query[0]
    answer[0] = nowhere + query[0]  # noqa: F821


def test_a_mistake_is_found_at_the_call_each_time(cache: Path):
    made = headrace.operator(query="i8", answer="i8")(unknown)
    line = unknown.__code__.co_firstlineno + 2
    for _ in range(2):
        with pytest.raises(UsageError, match=rf"^{__file__}:{line}: operator unknown cannot be compiled: .*nowhere"):
            made()
    assert not cache.exists(), "what has not been compiled is not noted as such"


def test_a_mistake_that_the_cache_hid_is_found_when_an_engine_starts(monkeypatch):
    made = headrace.operator(query="i8", answer="i8")(unknown)
    monkeypatch.setattr("headrace.operators.compile.compiled_before", lambda *_, **_more: True)
    served = made()
    for use in (lambda: headrace.Engine("cpu", served), lambda: served.answer_on_host(np.array([1]))):
        with pytest.raises(UsageError, match=rf"^{__file__}:\d+: operator unknown cannot be compiled: .*nowhere"):
            use()


def test_engines_that_start_at_the_same_time_compile_once(monkeypatch):
    compiled = []
    monkeypatch.setattr("headrace.operators.compile.compiled_before", lambda *_, **_more: True)
    original = headrace.operators.PythonOperator._for_host
    monkeypatch.setattr(
        headrace.operators.PythonOperator, "_for_host", lambda *given: compiled.append(1) or original(*given)
    )

    @headrace.operator(query="i8", answer="i8")
    def negative(_group, query, answer):
        answer[0] = -query[0]

    served = negative()
    found: list[int] = []

    def ask(number: int) -> None:
        with headrace.Engine("cpu", served) as engine, engine.connect() as client:
            found.append(int(client.ask(np.int64(number))))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [-3, -2, -1, 0]
    assert len(compiled) == 1


def test_source_that_has_been_compiled_starts_no_compiler(start: Start):
    assert start(OF_SOURCE) == "42\n['subprocess']\n"
    assert start(OF_SOURCE) == "42\n[]\n"


def source(text: str | Path = TWICE) -> int:
    """An engine's answer to 21, in a process that has loaded nothing yet."""
    compile_source._loaded.clear()
    return int(from_source(text, "twice", query="i8", answer="i8")().answer_on_host(np.array([21]))[0])


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records what compilers are asked for: E for the includes of a source, c for code."""
    asked: list[str] = []
    original = compile_source._run

    def count(name, command, text):
        asked.append("E" if "-E" in command else "c")
        return original(name, command, text)

    monkeypatch.setattr(compile_source, "_run", count)
    return asked


def test_the_compiler_is_asked_where_a_file_that_it_read_is_another(commands, tmp_path: Path, monkeypatch):
    folder = tmp_path / "include"
    folder.mkdir()
    header = folder / "factor.hpp"
    header.write_text("constexpr int kFactor = 2;\n")
    old = header.stat().st_mtime_ns - 10**9
    os.utime(header, ns=(old, old))
    monkeypatch.setattr(source_manifest, "_CLOCK_NS", -(10**9))  # although it is that new
    monkeypatch.setenv("CPATH", str(folder))
    text = "#include <factor.hpp>\n" + TWICE.replace("2 *", "kFactor *")
    assert [source(text), source(text)] == [42, 42]
    assert commands == ["E", "E", "c"]
    header.write_text("constexpr int kFactor = 3;\n")
    os.utime(header, ns=(old, old))
    assert source(text) == 63
    assert commands == ["E", "E", "c"] * 2
    header.unlink()
    with pytest.raises(UsageError, match=r":1: operator twice cannot be compiled: .*factor\.hpp"):
        source(text)


def test_a_file_that_is_as_new_as_the_compilation_is_not_relied_on(commands, tmp_path: Path, monkeypatch):
    (tmp_path / "factor.hpp").write_text("constexpr int kFactor = 2;\n")
    monkeypatch.setenv("CPATH", str(tmp_path))
    monkeypatch.setattr(source_manifest, "_CLOCK_NS", 10**12)
    text = "#include <factor.hpp>\n" + TWICE.replace("2 *", "kFactor *")
    assert [source(text), source(text)] == [42, 42]
    assert commands == ["E", "E", "c", "E", "E"]


def test_a_text_that_tells_the_time_is_asked_for_each_time(commands):
    assert [source("// __TIME__\n" + TWICE), source("// __TIME__\n" + TWICE)] == [42, 42]
    assert commands == ["E", "E", "c", "E", "E"]


def test_a_file_beside_the_source_that_hides_the_one_which_was_read_is_found(tmp_path: Path, monkeypatch):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "factor.hpp").write_text("constexpr int kFactor = 2;\n")
    monkeypatch.setenv("CPATH", str(tmp_path / "include"))
    monkeypatch.setattr(source_manifest, "_CLOCK_NS", -(10**12))  # although it is new
    file = tmp_path / "twice.cu"
    file.write_text('#include "factor.hpp"\n' + TWICE.replace("2 *", "kFactor *"))
    assert [source(file), source(file)] == [42, 42]
    (tmp_path / "factor.hpp").write_text("constexpr int kFactor = 3;\n")
    assert source(file) == 63


@pytest.mark.parametrize(("kind", "again"), [("files", ["E", "E"]), ("so", ["c"])])
def test_damaged_files_are_made_anew(kind: str, again: list[str], commands, cache: Path):
    source()
    (file,) = cache.glob(f"*.{kind}")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    commands.clear()
    assert source() == 42
    assert commands == again
    commands.clear()
    assert source() == 42
    assert commands == []


@pytest.mark.parametrize("change", ["CXX", "PATH", "processor"])
def test_another_compiler_or_processor_is_another_manifest(change: str, tmp_path: Path, monkeypatch):
    key = source_manifest.key_of(TWICE, ["c++"], ["-O3"])
    assert key == source_manifest.key_of(TWICE, ["c++"], ["-O3"])
    assert key != source_manifest.key_of(TWICE, ["c++"], ["-O2"])
    given = ["c++"]
    if change == "CXX":
        given = ["clang++"]
    elif change == "PATH":
        (tmp_path / "c++").write_text("#!/bin/sh\n")
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        first = source_manifest.key_of(TWICE, given, ["-O3"])
        assert first != key
        (tmp_path / "c++").write_text("#!/bin/sh\nexec g++\n")
        key = first
    else:
        monkeypatch.setattr(source_manifest, "_processor", lambda: "another")
    other = source_manifest.key_of(TWICE, given, ["-O3"])
    assert other not in {None, key}
    monkeypatch.setattr(source_manifest, "_processor", lambda: None)
    assert source_manifest.key_of(TWICE, given, ["-O3"]) is None


def test_versions_are_those_that_pip_knows(tmp_path: Path, monkeypatch):
    installed = {one.name: one.version for one in metadata.distributions() if one.name}
    assert len(installed) > 10
    assert {name: version_of(name) for name in installed} == {name: metadata.version(name) for name in installed}
    assert version_of("headrace-has-no-such-package") is None
    (tmp_path / "numba_cuda-9.9.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert version_of("numba-cuda") != "9.9", "what an uninstalled package leaves is none"
    (tmp_path / "numba_cuda-9.9.dist-info" / "METADATA").write_text("Name: numba-cuda\nVersion: 9.9\n")
    assert version_of("numba-cuda") == "9.9" == metadata.version("numba-cuda")
    assert code_cache.read("nothing", "compiled") is None
