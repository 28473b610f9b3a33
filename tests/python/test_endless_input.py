"""Endless inputs, such as /dev/zero and pipes: one line about a limit, and bounded memory."""

import os
import resource
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Run

from headrace import DataError, corpus, text
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


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def test_lines_without_an_end_are_an_error_before_memory_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine with 200 MiB left, minus what this process holds."""
    held = resident_bytes()
    left = lambda: SimpleNamespace(free_bytes=max((200 << 20) - (resident_bytes() - held), 0))  # noqa: E731
    monkeypatch.setattr(corpus, "host_memory", left)
    path = tmp_path / "endless"
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError), path.open("wb") as file:
            while True:
                file.write(b"some more words and words\n" * 4096)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(DataError, match=r"endless: its index needs more memory than there is: [0-9,]+ documents"):
        corpus.build_index(path)
    writer.join()


def test_memory_that_suffices_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "many.txt"
    path.write_bytes(b"a\n" * (2 * 65536))
    monkeypatch.setattr(corpus, "host_memory", lambda: SimpleNamespace(free_bytes=1 << 30))
    assert corpus.build_index(path).document_count == 2 * 65536
