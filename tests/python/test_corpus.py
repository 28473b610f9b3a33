"""Corpora in files, valid and invalid."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import DataError, UsageError
from headrace.corpus import Format, build_index, documents, guess, locate, read_text

TEXTS = ["an apple", "", "Käse und Brot"]


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_every_format_gives_the_same(tmp_path: Path):
    text = write(tmp_path, "a.txt", "\n".join(TEXTS).encode())
    lines = write(tmp_path, "a.jsonl", "\n".join(json.dumps({"text": text}) for text in TEXTS).encode())
    parquet = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": TEXTS}), parquet)
    for path in (text, lines, parquet):
        assert read_text(path) == TEXTS
        assert build_index(path).query("käse AND brot").hits in (0, 1)  # only ASCII letters are lower-cased
        assert build_index(path).document_count == 3


def test_wordnet_has_117659_glosses():
    count = sum(1 for _ in documents(locate("wordnet")))
    assert count == 117659


def test_progress_ends_where_it_should(tmp_path: Path):
    seen: list[float] = []
    path = write(tmp_path, "a.txt", b"line\n" * 10000)
    assert len(list(documents(path, progress=seen.append))) == 10000
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 1


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"fine\nb\xff\n", "line or record 2.*UTF-8"),
        ("a.txt", b"", "empty"),
        ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "line 2: no text in field 'text'"),
        ("a.jsonl", b'{"text": 3}\n', "line 1: no text"),
        ("a.jsonl", b"[1]\n", "line 1"),
        ("a.jsonl", b"{oops\n", "line 1: not JSON"),
        ("a.jsonl", b'{"text": "a"}\n' + b"[" * 100_000, "line 2: .*nested too deeply"),
        ("a.jsonl", b'{"text": "a", "n": ' + b"9" * 5000 + b"}\n", "line 1: .*too many digits"),
        ("a.jsonl", b'{"text": "\xff"}\n', "line 1: not UTF-8"),
        ("a.parquet", b"not parquet at all", "not Parquet"),
    ],
)
def test_bad_corpora(tmp_path: Path, name: str, content: bytes, says: str):
    path = write(tmp_path, name, content)
    with pytest.raises(DataError, match=says) as error:
        build_index(path)
    assert str(path) in str(error.value)


def test_parquet_fields(tmp_path: Path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": ["a", None], "year": [1, 2]}), path)
    with pytest.raises(UsageError, match="no field 'text'; it has body, year"):
        build_index(path)
    with pytest.raises(UsageError, match="'year' holds int64"):
        build_index(path, field="year")
    with pytest.raises(DataError, match="row 1: field 'body' is null"):
        build_index(path, field="body")


def test_folders_and_files(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*data"):
        build_index(tmp_path)
    with pytest.raises(UsageError, match="is a folder"):
        build_index(tmp_path, Format.text)
    with pytest.raises(UsageError, match="is a file"):
        build_index(write(tmp_path, "a.txt", b"a"), Format.wordnet)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        locate("nowhere")
    assert guess(Path("a.PARQUET")) is Format.parquet


def test_wordnet_missing_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headrace.corpus.WORDNET", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="wordnet-base"):
        locate("wordnet")
