"""Every verb as a user runs it: its output, and that --json prints nothing else."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import Run

import headrace
from headrace.baselines import Fts5, PythonLoop

pytestmark = pytest.mark.whole_machine

# Wide enough for a busy machine.
QUICK = ("--bound", "10s", "--window", "10ms", "--tolerance", "0.01")


def test_index_and_query(run: Run, tmp_path: Path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("an apple\nan apple pie\n")
    index = tmp_path / "a.hridx"
    built = run("index", "build", corpus, index, "--json")
    assert built.returncode == 0, built.stderr
    assert json.loads(built.stdout)["documents"] == 2
    assert built.stderr == ""

    found = run("query", index, "apple NOT pie", "--corpus", corpus)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "1 of 2 documents\n         0  an apple\n"
    found = run("query", index, "apple", "--json", "--device", "cpu")
    assert json.loads(found.stdout) == {"query": "apple", "hits": 2, "offset": 0, "ids": [0, 1]}


def test_an_unknown_term_is_no_error(run: Run, index_file: Path):
    found = run("query", index_file, "unicorn")
    assert found.returncode == 0
    assert found.stdout == "0 of 5 documents\n"


def test_a_syntax_error_is_pointed_at(run: Run, index_file: Path):
    failed = run("query", index_file, "käse AND )")
    assert failed.returncode == 2
    first, text, caret = failed.stderr.splitlines()
    assert first.startswith("headrace: error: query, position 10")
    assert text == "  käse AND )"
    assert caret == "           ^"
    assert failed.stdout == ""


def test_ladder_table(run: Run):
    done = run("ladder", "--rung", "1", "--rung", "stream-ordered", "--steps", "8", *QUICK)
    assert done.returncode == 0, done.stderr
    for word in ("average", "p99", "streams", "roof", "queries/s", "threads", "1 single", "Roofs", "generator"):
        assert word in done.stdout
    assert "rung 2: same as rung 1 here" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    assert done.stderr.startswith("This will take about ")
    assert "quiet" in done.stdout or "DISTURBED" in done.stdout


def test_ladder_json_and_save(run: Run, tmp_path: Path):
    machine = json.loads(run("ladder", "--rung", "2", "--json", "--steps", "1").stdout)["machine"]["name"]
    path = tmp_path / f"first.{machine}.json"
    done = run("ladder", "--rung", "1", "--steps", "8", "--samples", "2", "--json", "--save", path, *QUICK)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content == json.loads(path.read_text())
    assert content["topic"] == "first"
    assert content["command"].startswith("headrace ladder --rung 1")
    row = next(row for row in content["rows"] if row["id"] == "ladder.light.rung01.qps")
    assert row["samples"] == 2
    assert row["spread"][0] <= row["value"] <= row["spread"][1]
    assert row["roof"] > 0
    assert row["conditions"]["verified"] is True
    assert any(row["id"] == "first.generator.per_thread" for row in content["rows"])

    rendered = run("results", "render", tmp_path)
    assert rendered.returncode == 0, rendered.stderr
    assert "`ladder.light.rung01.qps`" in (tmp_path / "README.md").read_text()
    assert run("results", "render", tmp_path, "--check").returncode == 0
    (tmp_path / "README.md").write_text("old")
    stale = run("results", "render", tmp_path, "--check")
    assert stale.returncode == 1
    assert "out of date" in stale.stderr


def test_load(run: Run, tmp_path: Path):
    done = run("load", "--rate", "2K", "--plan", "1", "--duration", "200ms", "--steps", "8")
    assert done.returncode == 0, done.stderr
    for word in ("incoming queries/s", "latency, p99.9", "generator late", "refused", "stage kernel", "Roofs"):
        assert word in done.stdout
    trace = tmp_path / "trace"
    trace.write_text("# seconds\n0.001\n0.003\n")
    done = run("load", "--arrivals", "trace", "--trace", trace, "--duration", "200ms", "--steps", "8", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["load"]["incoming_per_second"] == pytest.approx(667, rel=0.3)
    assert answer["load"]["wrong"] == 0


def test_load_of_a_pool_that_answers_inline(run: Run):
    asked = ("load", "--rate", "200", "--duration", "200ms", "--steps", "8", "--answer-inline")
    done = run(*asked, "--plan", "dispatched", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["plan"]["answer_inline"] is True
    assert answer["load"]["wrong"] == 0
    refused = run(*asked, "--plan", "persistent")
    assert refused.returncode == 2
    assert "answer_inline is available with schedule 'dispatched', not with 'persistent'" in refused.stderr


def test_retrieval_through_load(run: Run, index_file: Path):
    done = run(
        "load", "--operator", "retrieval", "--index", index_file, "--rate", "1K", "--duration", "200ms", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["load"]["wrong"] == 0


def test_soak(run: Run):
    done = run("soak", "--minutes", "0.02", "--rate", "2K", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, (report, done.stderr)
    assert report["faults"] == []
    assert report["submitted"] == report["back"] > 1000


def test_a_kept_index_of_an_older_library_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The older library may split words differently: answers would be wrong, and the run would fail."""
    from headrace.cli import run as verb  # noqa: PLC0415
    from headrace.cli.show import stdout  # noqa: PLC0415

    corpus, library = tmp_path / "dict", tmp_path / "library.so"
    corpus.mkdir()
    for part in ("noun", "verb", "adj", "adv"):
        (corpus / f"data.{part}").write_text(f"00000001 03 n 01 word 0 000 | a gloss of a {part}\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(verb._core, "__file__", str(library))
    library.write_bytes(b"rules of before")
    index, older = verb.wordnet_index(corpus, stdout())
    assert older is not None
    headrace.Index.build(["another"]).save(older)
    assert verb.wordnet_index(corpus, stdout())[0].document_count == 1, "kept"
    library.write_bytes(b"rules of today")
    again, newer = verb.wordnet_index(corpus, stdout())
    assert again.document_count == index.document_count == 4
    assert newer != older
    assert list(older.parent.iterdir()) == [newer]


def test_run_does_the_main_job_and_reuses_its_index(run: Run, tmp_path: Path):
    first = run("run", "--time", "25s", XDG_CACHE_HOME=str(tmp_path), COLUMNS="80")
    assert first.returncode == 0, first.stderr
    shown = first.stdout
    assert "117,659 glosses" in shown
    assert "built in" in shown
    for question in ("apple AND NOT pie", "violin AND bow", "whale AND (baleen OR blubber)"):
        assert question in shown
    assert "a bow used in playing the violin" in shown
    assert "Verified: the answers to 300 random queries" in shown
    for way in ("A Python loop", "FTS5", "Headrace: "):
        assert way in shown
    assert "The best rate" in shown
    assert "machine was quiet" in shown or "DISTURBED" in shown
    commands = [line.strip() for line in shown.splitlines() if line.startswith("  ") and " -m headrace " in line]
    assert next(command.split(" -m headrace ")[1].split()[0] for command in commands) == "query"
    for command in commands:
        if " query " in command or "--help" in command:
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert done.stdout

    (kept,) = (tmp_path / "headrace").glob("*.hridx")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    from headrace.cli import run as verb  # noqa: PLC0415
    from headrace.cli.show import stdout  # noqa: PLC0415
    from headrace.corpus import WORDNET  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path))
        index, path = verb.wordnet_index(WORDNET, stdout())
        assert index.document_count == 117659
        assert path == kept
        assert kept.read_bytes() == whole
        patch.setenv("XDG_CACHE_HOME", "/proc/no-cache")
        assert verb.wordnet_index(WORDNET, stdout())[1] is None


def test_baselines_answer_as_headrace_does():
    texts = ["an apple", "an apple pie", "a pie in the sky", "banana bread", "blue sky"]
    index = headrace.Index.build(texts)
    loop, base = PythonLoop(texts), Fts5(texts)
    for query in (
        "apple",
        "apple AND NOT pie",
        "(pie OR bread) AND NOT (apple OR banana)",
        "sky AND NOT blue AND NOT x",
    ):
        right = index.query(query).hits
        assert loop.answer(query) == right, query
        assert index.matches(query).size == right, query
        if "NOT (" not in query:
            assert base.answer(query) == right, query


def test_query_lists_all_that_match(run: Run, tmp_path: Path):
    corpus, index = tmp_path / "lines.txt", tmp_path / "lines.hridx"
    corpus.write_text("".join(f"even line {i}\n" if i % 2 == 0 else f"odd line {i}\n" for i in range(100)))
    assert run("index", "build", corpus, index).returncode == 0
    few = json.loads(run("query", index, "even AND NOT 4", "--json").stdout)
    every = json.loads(run("query", index, "even AND NOT 4", "--all", "--json").stdout)
    assert few["hits"] == every["hits"] == 49
    assert len(few["ids"]) == 15
    assert every["ids"] == [i for i in range(0, 100, 2) if i != 4]
    assert run("query", index, "even", "--all", "--corpus", corpus).stdout.count("even line") == 50


def test_help_and_version_have_short_forms(run: Run):
    assert run("-V").stdout == run("--version").stdout
    assert run("-h").stdout == run("--help").stdout == run("help").stdout
    assert "--spacing" not in run("grid", "fdtd", "-h").stdout
    assert "SCENE.toml" in run("help", "grid", "fdtd").stdout
    unknown = run("help", "grid", "flow")
    assert unknown.returncode == 2
    assert "there is no command 'grid flow'" in unknown.stderr
