"""Packed index files: the same index in fewer bytes, compared with SQLite's FTS5."""

import json
import sqlite3
from pathlib import Path

import pytest
from conftest import Run

from headrace import Index
from headrace.corpus import documents, locate


@pytest.fixture(scope="module")
def glosses() -> list[str]:
    """WordNet's."""
    return [one.decode() if isinstance(one, bytes) else one for one in documents(locate("wordnet"))]


@pytest.mark.parametrize("frequencies", [False, True])
def test_a_packed_file_is_the_same_index(tmp_path: Path, glosses: list[str], frequencies: bool):
    index = Index.build(glosses, frequencies=frequencies)
    index.save(tmp_path / "mapped.hridx")
    index.save(tmp_path / "packed.hridx", packed=True)
    loaded = Index.load(tmp_path / "packed.hridx")
    loaded.save(tmp_path / "again.hridx")
    assert (tmp_path / "again.hridx").read_bytes() == (tmp_path / "mapped.hridx").read_bytes()
    packed, mapped = ((tmp_path / f"{name}.hridx").stat().st_size for name in ("packed", "mapped"))
    assert packed < 0.4 * mapped
    for query in ("dog", "water AND NOT sea", "animal OR plant"):
        assert loaded.matches(query).tolist() == index.matches(query).tolist()
        if frequencies:
            assert loaded.rank(query).scores.tolist() == index.rank(query).scores.tolist()


def test_a_packed_file_is_as_small_as_that_of_fts5(tmp_path: Path, glosses: list[str]):
    """Without positions and document lengths, FTS5 stores the same as an index without frequencies."""
    connection = sqlite3.connect(tmp_path / "fts.db")
    try:
        connection.execute(
            "create virtual table t using fts5(x, content='', detail=none, columnsize=0, "
            "tokenize='unicode61 remove_diacritics 0')"
        )
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no FTS5")
    connection.executemany("insert into t(rowid, x) values (?, ?)", enumerate(glosses))
    connection.execute("insert into t(t) values ('optimize')")
    connection.commit()
    connection.execute("vacuum")
    connection.close()
    Index.build(glosses).save(tmp_path / "packed.hridx", packed=True)
    assert (tmp_path / "packed.hridx").stat().st_size < 1.1 * (tmp_path / "fts.db").stat().st_size


def test_the_command_line_packs(run: Run, tmp_path: Path):
    (tmp_path / "corpus.txt").write_text("a cat\na dog\n")
    packed, made_up = tmp_path / "packed.hridx", tmp_path / "made-up.hridx"
    done = run("index", "build", tmp_path / "corpus.txt", packed, "--packed", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == packed.stat().st_size
    assert json.loads(run("query", packed, "dog", "--json").stdout)["ids"] == [1]
    done = run("index", "synthetic", made_up, "--documents", "1000", "--terms", "100", "--packed")
    assert done.returncode == 0, done.stderr
    assert Index.load(made_up).document_count == 1000
    packed.write_bytes(packed.read_bytes()[:-1])
    done = run("query", packed, "dog")
    assert done.returncode == 1
    assert "truncated" in done.stderr
    assert "Traceback" not in done.stderr
