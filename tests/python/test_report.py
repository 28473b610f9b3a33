"""The page of plots: complete, self-contained, and with everything from the results."""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import Run
from ladder_content import content

from headrace import DataError, UsageError, report

pytest.importorskip("matplotlib")

from headrace.report import grid_plots

_VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and collects the references of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href", "data", "action"}:
                self.references.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def parsed(path: Path) -> tuple[str, Page]:
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return text, page


def test_the_page_is_whole_and_refers_to_nothing_outside(tmp_path: Path):
    path = tmp_path / "report.html"
    report.write([content(), content()], path)
    text, page = parsed(path)
    assert len(page.ids) == len(set(page.ids))
    assert page.references
    for reference in page.references:
        assert reference.startswith("#")
        assert reference[1:] in page.ids
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    for outside in ("http:", "https:", "@import", "url(http", "//www"):
        assert outside not in text


def test_every_section_is_there(tmp_path: Path):
    path = tmp_path / "report.html"
    report.write([content()], path)
    text, page = parsed(path)
    sections = ["all", "single", "throughput", "p99", "latency", "measured", "batches", "stages", "timeline"]
    for section in sections:
        assert f"c1-{section}" in page.ids
    assert page.tags.count("svg") == 7
    for words in (
        "NVIDIA H100",
        "commit abc1234",
        "headrace ladder --operator light",
        "2026-11-22",
        "Headrace's own",
    ):
        assert words in text
    for words in ("1 single", "14 dispatched", "43,868,000", "81.7%", "rung 12: a graph launch costs more"):
        assert words in text
    assert "prefers-color-scheme: dark" in text


def test_older_and_partial_results_have_fewer_sections(tmp_path: Path):
    path = tmp_path / "report.html"
    thin = content()
    for key in ("single", "batches"):
        del thin[key]
    for entry in thin["profile"]:
        entry["tried"], entry["samples"] = [], []
        entry["stages_us"] = dict.fromkeys(entry["stages_us"], 0.0)
    report.write([thin], path)
    _, page = parsed(path)
    assert "c1-all" in page.ids
    assert not {"c1-single", "c1-batches", "c1-stages", "c1-timeline"} & set(page.ids)


def test_a_single_table_alone(tmp_path: Path):
    path = tmp_path / "report.html"
    alone = content()
    for key in ("profile", "roofs", "batches"):
        del alone[key]
    report.write([alone], path)
    _, page = parsed(path)
    assert "c1-single" in page.ids
    assert "c1-throughput" in page.ids
    assert "c1-all" not in page.ids


def test_figures_without_a_ladder_are_a_table(tmp_path: Path):
    path = tmp_path / "report.html"
    floors = content() | {"topic": "floors"}
    for key in ("profile", "single", "roofs", "batches", "setup"):
        del floors[key]
    report.write([floors], path)
    text, page = parsed(path)
    assert "c1-figures" in page.ids
    assert "ladder.light.qps" in text
    assert "not.verified" not in text


def grid_content(**changed: object) -> dict:
    """Two shapes on one and on two devices, and a small grid."""
    about = {"devices": 2, "shape": "4000x500", "steps": 50, "one_seconds": 0.1, "cells_per_second": 1.9e9}
    about |= {"memory_gb_per_s": 120.0, "bytes_per_cell": 48.0, "verified": True, **changed}
    shapes = [about, about | {"shape": "500x4000"}]
    rows = [
        {"id": f"grid.fdtd2d.efficiency.{one['shape']}", "value": 0.95, "unit": "fraction", "conditions": one}
        for one in shapes
    ]
    for count, rate in ((1, 2e9), (2, 3e9)):
        small = {"devices": count, "shape": "20x10", "cells_per_second": rate, "roof_cells_per_second": count * 4e9}
        rows.append({"id": f"grid.small.seconds{count}", "value": 1.0, "unit": "s", "conditions": small})
    where = content()["machine"]
    return {"topic": "grid", "machine": where, "commit": None, "date": "today", "command": "grid.py", "rows": rows}


def test_grids_on_one_device_and_on_several_are_a_plot(tmp_path: Path):
    found = grid_plots.scalings(grid_content()["rows"])
    assert [one.name for one in found] == ["FDTD, 2D, 4000x500", "FDTD, 2D, 500x4000", "FDTD, 2D, 20x10"]
    assert found[0].rates == {1: pytest.approx(1e9), 2: 1.9e9}
    assert found[0].roofs == {1: pytest.approx(1.25e9), 2: pytest.approx(2.5e9)}
    assert found[0].efficiency == {2: pytest.approx(0.95)}
    assert found[2].roofs == {1: 4e9, 2: 8e9}
    assert found[2].efficiency == {2: pytest.approx(0.75)}
    path = tmp_path / "report.html"
    report.write([grid_content()], path)
    text, page = parsed(path)
    assert "c1-scaling" in page.ids
    assert "svg" in page.tags
    assert "75.0%" in text


def test_grids_without_a_pair_of_counts_have_no_plot(tmp_path: Path):
    only_one = [row for row in grid_content()["rows"] if row["id"] == "grid.small.seconds1"]
    assert grid_plots.scalings(only_one) == []
    assert grid_plots.scalings(grid_content(verified=False)["rows"][:2]) == []
    path = tmp_path / "report.html"
    report.write([grid_content() | {"rows": only_one}], path)
    text, page = parsed(path)
    assert "c1-scaling" not in page.ids
    assert "grid.small.seconds1" in text


def test_a_file_of_an_older_version_is_a_table(tmp_path: Path):
    path = tmp_path / "report.html"
    kept = {"rung", "stages_us", "capacity", "note"}
    older = content() | {"profile": [{key: entry[key] for key in kept} for entry in content()["profile"]]}
    for key in ("single", "batches", "setup"):
        del older[key]
    report.write([older], path)
    _, page = parsed(path)
    assert "c1-figures" in page.ids
    assert "c1-all" not in page.ids


def test_text_is_escaped(tmp_path: Path):
    path = tmp_path / "report.html"
    report.write([content() | {"command": "headrace <script>alert(1)</script>"}], path)
    _, page = parsed(path)
    assert "script" not in page.tags


def test_bad_files_are_named(tmp_path: Path):
    bad = tmp_path / "bad.json"
    for text, says in (
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "not a results file"),
        ('{"rows": []}', "lacks 'topic'"),
    ):
        bad.write_text(text)
        with pytest.raises(DataError, match=rf"bad\.json: .*{says}"):
            report.read(bad)
    broken = content()
    broken["profile"][0]["load"] = {"p99": 1}
    with pytest.raises(DataError, match="cannot be made"):
        report.write([broken], tmp_path / "report.html")
    with pytest.raises(DataError, match="lone surrogate"):
        report.write([content() | {"command": "\ud800"}], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_matplotlib_missing_is_said_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="pip install matplotlib"):
        report.check(tmp_path / "report.html")


def test_from_the_command_line(run: Run, tmp_path: Path):
    saved, path = tmp_path / "ladder.json", tmp_path / "report.html"
    saved.write_text(json.dumps(content()))
    done = run("results", "report", saved, saved, "-o", path)
    assert done.returncode == 0, done.stderr
    _, page = parsed(path)
    assert {"c1-all", "c2-all"} <= set(page.ids)
    missing = run("results", "report", tmp_path / "none.json", "-o", path)
    assert missing.returncode == 1
    assert "none.json" in missing.stderr
    assert "Traceback" not in missing.stderr
    nowhere = run("results", "report", saved, "-o", tmp_path / "no" / "report.html")
    assert nowhere.returncode == 1
    assert "no folder" in nowhere.stderr


def test_from_a_live_climb(run: Run, tmp_path: Path):
    path = tmp_path / "report.html"
    quick = ("--bound", "10s", "--window", "20ms", "--tolerance", "0.01", "--steps", "8")
    done = run("ladder", "--rung", "6", "--tables", "both", "--report", path, *quick)
    assert done.returncode == 0, done.stderr
    assert "one engine thread" in done.stdout
    _, page = parsed(path)
    assert {"c1-all", "c1-single", "c1-throughput"} <= set(page.ids)
