"""Synthetic corpora: in Python, and headrace index synthetic."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from test_interrupt import interrupted

import headrace
from headrace import Index, UsageError


def test_the_same_for_any_number_of_threads(tmp_path: Path):
    files = []
    for threads in (1, 2, 5):
        path = tmp_path / f"{threads}.hridx"
        Index.synthetic(documents=30_000, terms=2_000, threads=threads).save(path)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]
    assert Index.load(tmp_path / "1.hridx").document_count == 30_000


def test_frequencies_fall_as_zipf_says():
    index = Index.synthetic(documents=100_000, terms=1_000, length=4)
    total = sum(1 / k for k in range(1, 1001))
    for k in (1, 2, 5, 10, 100, 1000):
        p = 1 / (k * total)
        share = 1 - (1 - p) ** 2 * np.exp(-2 * p)  # 2 + Poisson(2) words
        # A document that has drawn a single word so far draws again, which makes others slightly more frequent.
        assert index.postings(f"w{k:04}").size == pytest.approx(
            100_000 * share, rel=0.05 + 5 / np.sqrt(100_000 * share)
        )


def test_queries_are_right():
    index = Index.synthetic(documents=5_000, terms=300, length=6, seed=3)
    sets = {k: set(index.postings(f"w{k:03}").tolist()) for k in (1, 2, 40, 200)}
    expected = sorted((sets[1] | sets[40]) - sets[2] | sets[200])
    hits = index.query("(w001 OR w040) AND NOT w002 OR w200")
    assert hits.hits == len(expected)
    assert hits.ids == expected[:15]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"documents": 0}, "documents must be 1 to 4294967294, not 0"),
        ({"documents": 1 << 32}, "documents must be less than 2"),
        ({"terms": 1}, "terms must be 2 to"),
        ({"length": 1.0}, "length must be 2 to 500, not 1"),
        ({"length": float("nan")}, "length must be"),
        ({"exponent": 9.0}, "exponent must be 0 to 4, not 9"),
    ],
)
def test_out_of_range(values: dict[str, float], says: str):
    with pytest.raises(UsageError, match=says):
        Index.synthetic(**{"documents": 100, "terms": 10, **values})  # type: ignore[arg-type]


def test_more_than_memory_holds():
    with pytest.raises(headrace.SystemError, match=r"takes .* GiB of memory, but only .* are available"):
        Index.synthetic(documents=4_000_000_000, terms=1_000, length=500)


def test_an_error_in_the_progress_callback_stops_it():
    def fail(_: float) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        Index.synthetic(documents=3_000_000, terms=1_000, progress=fail)


def test_command_line(run: Run, tmp_path: Path):
    output = tmp_path / "a.hridx"
    done = run("index", "synthetic", "--documents", "20K", "--terms", "1.5K", "--length", "5", "--json", output)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["documents"], facts["terms"]) == (20_000, 1_500)
    assert facts["bytes"] == output.stat().st_size
    queries = run("query", output, "w0001 AND w0002", "--json")
    assert queries.returncode == 0, queries.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--documents", "10Q"), "not a whole number"),
        (("--documents", "1.23456"), "not a whole number"),
        (("--documents", "5G"), "less than 2"),
        (("--documents", "4G", "--length", "400"), "GiB of memory"),
        (("--length", "501"), "less than or equal to 500"),
        (("--surprise",), "No such option"),
    ],
)
def test_bad_command_lines(run: Run, tmp_path: Path, arguments: tuple[str, ...], says: str):
    done = run("index", "synthetic", *arguments, tmp_path / "a.hridx")
    assert done.returncode != 0
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path):
    # A limit on file size simulates a full disk: Python ignores its signal, and write() fails.
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
import sys
from headrace.cli import main
sys.argv = ["headrace", "index", "synthetic", "--documents", "100K", "--terms", "1K", "{tmp_path}/a.hridx"]
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_outlives_a_full_disk(tmp_path: Path):
    path = tmp_path / "a.hridx"
    Index.synthetic(documents=10, terms=10).save(path)
    before = path.read_bytes()
    code = f"""
import resource
from headrace import Index
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
Index.synthetic(documents=100_000, terms=1_000).save("{path}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert "File too large" in done.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_leaves_nothing(tmp_path: Path):
    result = interrupted(
        "index", "synthetic", "--documents", "50M", "--threads", "1", str(tmp_path / "a.hridx"), when="%"
    )
    assert result.returncode == 130
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []
