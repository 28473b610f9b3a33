"""Mistakes of users: one line that names the mistake, the right status, and no half-written file."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Run

import headrace


def assert_error(result: subprocess.CompletedProcess[str], status: int, says: str) -> None:
    assert result.returncode == status, (result.stdout, result.stderr)
    assert result.stderr.startswith("headrace: error: ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ladder --device toaster", "toaster"),
        ("ladder --device cuda:77", "cuda:77"),
        ("ladder --rung 99", "no rung '99'"),
        ("ladder --rung moon", "1 single"),
        ("ladder --operator heavy", "heavy"),
        ("ladder --operator retrieval", "needs --index"),
        ("ladder --index x", "no --index"),
        ("ladder --blocks 4", "light has no --blocks"),
        ("ladder --steps 0", "steps must be"),
        ("ladder --steps -1", "must not be negative"),
        ("ladder --bound 0ms", "above 0"),
        ("ladder --bound 3", "with a unit"),
        ("ladder --nonsense", "--nonsense"),
        ("ladder --arrivals trace", "trace"),
        ("ladder --generators 0", "--generators"),
        ("ladder --save x.json", "x.json"),
        ("load", "--rate"),
        ("load --rate 0", "above 0"),
        ("load --rate -5", "above 0"),
        ("load --rate fast", "fast"),
        ("load --rate 900G", "generator thread"),
        ("load --rate 1K --plan moon", "no rung 'moon'"),
        ("load --rate 1K --allocator malloc", "per-query"),
        ("load --rate 1K --slots 3", "power of two"),
        ("load --rate 1K --trace x", "go together"),
        ("load --rate 1M --duration 10min", "headrace soak"),
        ("load --arrivals trace", "go together"),
        ("soak --rate 0", "above 0"),
        ("soak --share 2", "--share"),
        ("index", "Missing command"),
        ("index build one", "output"),
        ("index build one two --format html", "html"),
    ],
)
def test_usage(run: Run, line: str, says: str):
    assert_error(run(*line.split()), 2, says)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "nowhere"), (b"", "empty"), (b"a\n\xff\n", "record 2")],
)
def test_index_build_fails_and_leaves_nothing(run: Run, tmp_path: Path, content: bytes | None, says: str):
    source = tmp_path / ("nowhere" if content is None else "corpus.txt")
    if content is not None:
        source.write_bytes(content)
    folder = tmp_path / "out"
    folder.mkdir()
    assert_error(run("index", "build", source, folder / "a.hridx"), 1, says)
    assert list(folder.iterdir()) == []


def test_index_build_to_nowhere(run: Run, tmp_path: Path):
    source = tmp_path / "corpus.txt"
    source.write_text("a\n")
    assert_error(run("index", "build", source, tmp_path / "no" / "a.hridx"), 1, "no folder")
    assert_error(run("index", "build", source, tmp_path), 2, "is a folder")


def test_index_build_keeps_the_old_file_when_it_fails(run: Run, tmp_path: Path, index_file: Path):
    old = tmp_path / "a.hridx"
    old.write_bytes(index_file.read_bytes())
    source = tmp_path / "corpus.txt"
    source.write_bytes(b"\xff")
    assert run("index", "build", source, old).returncode == 1
    assert old.read_bytes() == index_file.read_bytes()


def test_bad_indexes(run: Run, tmp_path: Path, index_file: Path):
    whole = index_file.read_bytes()
    bad = tmp_path / "bad.hridx"
    assert_error(run("query", bad, "a"), 1, "No such file")
    for content in (whole[:-8], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:], b"GIF89a"):
        bad.write_bytes(content)
        assert_error(run("query", bad, "a"), 1, "bad.hridx")


def test_a_newer_index(run: Run, tmp_path: Path, index_file: Path):
    newer = bytearray(index_file.read_bytes())
    newer[8:12] = (6).to_bytes(4, "little")
    path = tmp_path / "newer.hridx"
    path.write_bytes(newer)
    assert_error(run("query", path, "a"), 1, "version 6")


def test_too_many_terms(run: Run, index_file: Path):
    words = " ".join(f"w{number}" for number in range(33))
    done = run("query", index_file, words)
    assert done.returncode == 2
    assert "with 'w32' the query has more than 32 terms" in done.stderr.splitlines()[0]


def test_the_wrong_corpus(run: Run, tmp_path: Path, index_file: Path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("only one\n")
    assert_error(run("query", index_file, "banana", "--corpus", corpus), 2, "fewer documents")
    corpus.write_text("neither has it\n" * 5)  # long enough
    assert_error(run("query", index_file, "banana", "--corpus", corpus), 2, "does not match: it is not the corpus")


def test_a_corpus_that_is_no_text_or_would_move_the_cursor(run: Run, tmp_path: Path, index_file: Path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(b"an apple\xff\n" * 5)
    assert_error(
        run("query", index_file, "apple", "--corpus", corpus), 1, "corpus.txt, document 0: not UTF-8 at byte 8"
    )
    joined = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\u00a0apple"  # Persian, with a non-joiner and NBSP
    corpus.write_text(f"apple \x1b]0;title\x07 \u202eabc\napple\n{joined}\n", encoding="utf-8")
    index = tmp_path / "escapes.hridx"
    assert run("index", "build", corpus, index).returncode == 0
    done = run("query", index, "apple", "--corpus", corpus, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)
    assert joined in done.stdout


ODD = "9" * 26


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "query {index} apple --offset 18446744073709551616",
            "'18446744073709551616' has a number that is out of range",
        ),
        ("query {index} apple --device \udcff", "is not valid UTF-8"),
        (f"ladder --steps {ODD}", "out of range"),
        (f"load --rate {'9' * 400}", "a rate must be above 0 queries/s"),
        ("load --rate 1K --duration 1e400s", "at most 1e+09 s"),
        ("each --timeout 99999999999s -- true ::: a", "at most 1e+09 s"),
        (f"each -- echo {{{{{'1' * 5000}}}}} ::: a", "but an input has 1 part(s)"),
        (f"index synthetic x.hridx --documents {'9' * 5000}", "is more than"),
        ("index synthetic x.hridx --length inf", "--length"),
        ("ingest send udp 127.0.0.1:9 --number-width -1", "--number-width"),
        (f"ingest model --merge {'9' * 5000}", "--merge takes whole numbers"),
        (f"ingest model --target {'9' * 400}", "not a rate"),
    ],
)
def test_numbers_without_end_and_bytes_that_are_no_text(run: Run, index_file: Path, line: str, says: str):
    words = [word.format(index=index_file) for word in line.split()]
    assert_error(run(*words, HEADRACE_DEVICES="cpu"), 2, says)


def test_a_file_whose_name_is_no_text_is_named(run: Run, tmp_path: Path):
    failed = run("query", os.fsencode(tmp_path / "a").decode() + "\udcff.hridx", "apple", HEADRACE_DEVICES="cpu")
    assert_error(failed, 1, "a\ufffd.hridx")
    with pytest.raises(headrace.MissingFileError, match="a\udcff\\.hridx"):
        headrace.Index.load(tmp_path / "a\udcff.hridx")


def test_a_page_of_results_that_is_no_text_is_not_current(run: Run, tmp_path: Path):
    (tmp_path / "README.md").write_bytes(b"\xff")
    assert_error(run("results", "render", tmp_path, "--check"), 1, "README.md is out of date")
    assert run("results", "render", tmp_path).returncode == 0
    assert run("results", "render", tmp_path, "--check").returncode == 0


def test_a_bad_trace(run: Run, tmp_path: Path):
    trace = tmp_path / "trace"
    trace.write_text("0.1\nsoon\n")
    assert_error(run("load", "--arrivals", "trace", "--trace", trace), 1, "soon")
    assert_error(run("load", "--arrivals", "trace", "--trace", tmp_path / "none"), 1, "none")


def test_a_device_that_runs_out_of_memory(run: Run):
    failed = run("load", "--rate", "1K", "--device", "cpu", HEADRACE_CPU_MEMORY="1MiB")
    assert_error(failed, 1, "memory")


def test_a_memory_limit_that_is_none(run: Run):
    assert run("load", "--rate", "1K", HEADRACE_CPU_MEMORY="plenty").returncode == 2
