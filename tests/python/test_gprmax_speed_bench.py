"""bench/gprmax_speed.py: its scenes, and what its rows say."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from programs import load_program

from headrace.errors import UsageError

GIVEN = SimpleNamespace(steps=1, samples=3, threads=2)


@pytest.fixture
def speed() -> Any:
    return load_program("bench/gprmax_speed.py")


def test_both_programs_get_the_same_domain_with_layers(speed: Any, tmp_path: Any):
    for case, dimensions in zip(speed._CASES, (2, 3), strict=True):
        scene = speed._scene(tmp_path, case.text(7))
        assert scene.steps == 7
        assert np.prod(scene.shape) == case.cells
        assert (scene.dimensions, len(scene.sources), len(scene.receivers)) == (dimensions, 1, 1)
        assert scene.cpml == 10


@pytest.mark.parametrize(("wrong", "verified"), [(0.0, True), (0.1, False)])
def test_a_row_is_the_ratio_of_the_times_between_the_runs(
    speed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, *, wrong: float, verified: bool
):
    trace = np.sin(np.arange(300))
    theirs, ours = iter([5.0, 9.0] * 3), iter([1.0, 2.0] * 3)
    monkeypatch.setattr(speed, "_theirs", lambda *_: (next(theirs), trace))
    monkeypatch.setattr(speed, "_ours", lambda _: (next(ours), trace[:200] + wrong))
    row = speed._row(speed.Case("2d", (50, 50, 1), 100), GIVEN, tmp_path)
    assert row["value"] == 4
    assert row["conditions"]["cells_per_second"] == 200 * 2500
    assert row["conditions"]["peer_cells_per_second"] == 200 * 2500 / 4
    assert row["conditions"]["verified"] is verified


def test_times_that_say_nothing_are_an_error(speed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    trace = np.ones(10)
    monkeypatch.setattr(speed, "_theirs", lambda *_: (1.0, trace))
    monkeypatch.setattr(speed, "_ours", lambda _: (1.0, trace))
    with pytest.raises(UsageError, match="choose more --steps"):
        speed._row(speed.Case("2d", (50, 50, 1), 100), GIVEN, tmp_path)
