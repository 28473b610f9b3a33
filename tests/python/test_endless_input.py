"""Inputs without an end, such as /dev/zero and pipes: one line about a limit, and no more memory than that."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Run

from headrace import DataError, corpus, free_memory, text
from headrace.each.commands import gather_inputs

LIMIT = 1 << 20


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (text, corpus):
        monkeypatch.setattr(module, "READ_BYTES_MAX", LIMIT)


@pytest.mark.parametrize(
    "words",
    [
        ("index", "build", "/dev/zero", "x.hridx"),
        ("index", "build", "--format", "jsonl", "/dev/zero", "x.hridx"),
        ("grid", "fdtd", "/dev/zero", "--no-roof"),
        ("grid", "convert", "/dev/zero", "-o", "x.toml"),
        ("results", "report", "/dev/zero"),
        ("each", "--inputs-from", "/dev/zero", "--logs", "logs", "--", "true"),
    ],
)
def test_an_endless_file_is_one_line_about_a_limit(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)
    done = run(*words, HEADRACE_DEVICES="cpu")
    assert done.returncode == 1
    assert done.stderr.startswith("headrace: error: /dev/zero: ")
    assert done.stderr.endswith("more than 256 MiB, which is the limit\n")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def fifo(path: Path, content: bytes) -> Path:
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


@pytest.mark.usefixtures("low_limit")
def test_a_pipe_of_any_length_up_to_the_limit_is_read(tmp_path: Path):
    lines = b"some words\n" * (LIMIT // 11)
    assert gather_inputs([], [str(fifo(tmp_path / "a", lines))]) == ["some words"] * (LIMIT // 11)
    assert len(text.read_bytes(fifo(tmp_path / "b", bytes(LIMIT)))) == LIMIT
    (tmp_path / "c").write_bytes(bytes(LIMIT + 1))
    with pytest.raises(DataError, match="more than 1 MiB"):
        text.read_bytes(tmp_path / "c")


@pytest.mark.usefixtures("low_limit")
def test_lines_up_to_the_limit_are_documents(tmp_path: Path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"first\n" + b"x " * (LIMIT // 2 - 1) + b"y\n" + b"last")
    assert [len(line) for line in corpus.documents(path)] == [5, LIMIT - 1, 4]
    path.write_bytes(b"first\n" + b"x" * (LIMIT + 1))
    with pytest.raises(DataError, match="line 2 has more than 1 MiB"):
        list(corpus.documents(path))


def test_line_ends_of_other_systems_are_those_of_text_files(tmp_path: Path):
    path = tmp_path / "ends.txt"
    path.write_bytes(b"a\r\nb\rc\n")
    assert text.read_utf8(path) == "a\nb\nc\n" == path.read_text(encoding="utf-8")


def test_lines_without_an_end_are_an_error_before_memory_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine that has 200 MiB left, and less the more this process holds."""
    held = free_memory.resident_bytes()
    monkeypatch.setattr(free_memory, "free_bytes", lambda: max((200 << 20) - (free_memory.resident_bytes() - held), 0))
    path = tmp_path / "endless"
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError), path.open("wb") as file:
            while True:
                file.write(b"some more words and words\n" * 4096)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(DataError, match=r"endless: an index of it takes more memory than there is: [0-9,]+ documents"):
        corpus.build_index(path)
    writer.join()


def test_memory_that_suffices_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "many.txt"
    path.write_bytes(b"a\n" * (2 * 65536))
    monkeypatch.setattr(free_memory, "free_bytes", lambda: None)  # nothing tells how much there is
    assert corpus.build_index(path).document_count == 2 * 65536
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 1 << 30)
    assert corpus.build_index(path).document_count == 2 * 65536


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="ascii")


MEMINFO = "MemTotal: 4096 kB\nMemAvailable: 1000 kB\nSwapTotal: 0 kB\nSwapFree: 24 kB\n"
SECOND = "0::/a/b\n"
FIRST = "4:memory:/a/b\n3:cpu:/\n0::/\n"


@pytest.mark.parametrize(
    ("proc", "groups", "free"),
    [
        ({}, {}, None),
        ({"meminfo": "MemTotal: 4096 kB\n"}, {}, None),
        ({"meminfo": MEMINFO}, {}, 1024 << 10),
        (
            {"meminfo": MEMINFO, "self/cgroup": SECOND},
            {"a/b/memory.max": "max\n", "a/b/memory.current": "7\n"},
            1024 << 10,
        ),
        ({"meminfo": MEMINFO, "self/cgroup": SECOND}, {"a/memory.max": "5000\n", "a/memory.current": "4000\n"}, 1000),
        ({"self/cgroup": SECOND}, {"memory.max": "5000\n", "memory.current": "6000\n"}, 0),
        (
            {"self/cgroup": SECOND},
            {
                "a/b/memory.max": "5000\n",
                "a/b/memory.current": "4000\n",
                "a/b/memory.stat": "anon 1\ninactive_file 300\nactive_file 20\n",
            },
            1320,
        ),
        (
            {"self/cgroup": FIRST},
            {
                "memory/a/b/memory.limit_in_bytes": "5000\n",
                "memory/a/b/memory.usage_in_bytes": "4000\n",
                "memory/a/b/memory.stat": "inactive_file 7\ntotal_inactive_file 300\ntotal_active_file 20\n",
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "memory/memory.usage_in_bytes": "4000\n",
            },
            1320,
        ),
    ],
)
def test_free_memory_is_the_least_of_the_machine_and_the_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    proc: dict[str, str],
    groups: dict[str, str],
    free: int | None,
):
    write_files(tmp_path / "proc", proc)
    write_files(tmp_path / "groups", groups)
    monkeypatch.setattr(free_memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path / "groups")
    assert free_memory.free_bytes() == free
