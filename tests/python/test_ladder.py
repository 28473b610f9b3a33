"""Loads and climbs from Python. Bounds are so wide that a busy machine keeps within them."""

import pytest

import headrace
from headrace import LoadSession, Plan, UsageError

WIDE = 10.0


def test_load():
    seen: list[int] = []
    done = headrace.load(
        "cpu",
        headrace.light(steps=8),
        Plan(threads=1),
        rate=2000,
        window=0.05,
        windows_max=4,
        stable_windows=4,
        progress=lambda window, _measured, _p99: seen.append(window),
    )
    assert seen == [1, 2, 3, 4]
    assert done.load.windows == 4
    assert done.load.incoming_per_second == pytest.approx(2000, rel=0.3)
    assert done.load.wrong == done.load.failed == 0
    assert 0 < done.load.latency.p50 <= done.load.latency.p99 <= done.load.latency.max < WIDE
    assert done.load.latency.count > 0
    assert not done.load.interrupted
    assert headrace.sustains(done.load, WIDE) == (done.load.measured_per_second >= 0.99 * done.load.incoming_per_second)
    assert done.roofs.lowest == min(
        done.roofs.link_in, done.roofs.link_out, done.roofs.compute, done.roofs.generator * done.roofs.generators
    )


def test_a_trace_repeats():
    done = headrace.load(
        "cpu",
        headrace.light(steps=8),
        arrivals="trace",
        trace=[0.001, 0.002, 0.003],
        window=0.05,
        windows_max=3,
        generators=1,
    )
    assert done.load.incoming_per_second == pytest.approx(1000, rel=0.2)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "a load needs a rate"),
        ({"rate": 0}, "a rate must be above 0"),
        ({"rate": -5}, "a rate must be above 0"),
        ({"rate": float("nan")}, "a rate must be above 0"),
        ({"rate": 1e12}, "more than 1 generator thread can make"),
        ({"rate": 1000, "arrivals": "bursty"}, "bursty"),
        ({"arrivals": "trace"}, "needs a trace"),
        ({"arrivals": "trace", "trace": [2.0, 1.0]}, "ascend"),
        ({"rate": 1000, "window": 0}, "window"),
        ({"rate": 1000, "generators": 0}, "generators must be 1 to 64"),
        ({"rate": 1000, "stable_windows": 0}, "windows"),
    ],
)
def test_bad_loads(settings: dict[str, object], says: str):
    with pytest.raises(UsageError, match=says):
        headrace.load("cpu", headrace.light(steps=1), **settings)


def test_ladder_calls_back_and_returns_the_same():
    progress: list[headrace.LadderProgress] = []
    finished: list[headrace.RungResult] = []
    climb = headrace.ladder(
        "cpu",
        headrace.light(steps=8),
        rungs=[1, 2],
        bound=WIDE,
        window=0.02,
        rank_tolerance=0.01,
        progress=progress.append,
        finished=finished.append,
    )
    assert [result.rung.number for result in climb.rungs] == [1, 2]
    assert [result.rung.number for result in finished] == [1, 2]
    assert progress[0].rung == 0
    assert {now.rung for now in progress} == {0, 1}
    first, second = climb.rungs
    assert (first.load is None) == bool(first.note)
    assert second.load is None
    assert "same as rung 1" in second.note
    assert not climb.interrupted


def test_an_exception_in_a_callback_ends_the_climb():
    def fail(_now: headrace.LadderProgress) -> None:
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        headrace.ladder("cpu", headrace.light(steps=8), rungs=[1], progress=fail)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bound": 0}, "bound"),
        ({"bound": -1}, "bound must be"),
        ({"rungs": [99]}, "no rung '99'"),
        ({"arrivals": "trace"}, "poisson or constant"),
        ({"generators": 65}, "generators must be 1 to 64"),
    ],
)
def test_bad_ladders(settings: dict[str, object], says: str):
    with pytest.raises(UsageError, match=says):
        headrace.ladder("cpu", headrace.light(steps=1), **settings)


def test_a_session_takes_one_load_after_the_other():
    session = LoadSession("cpu", headrace.light(steps=8), Plan(threads=1), generators=2)
    back = sum(
        session.run(rate=rate, window=0.02, windows_max=2, stable_windows=2, warm_up=0).answered for rate in (500, 2000)
    )
    statistics = session.statistics()
    assert back == statistics.submitted == statistics.answered > 0
    session.stop()
    assert session.run(rate=1000, window=0.02, windows_max=1, stable_windows=1).refused > 0


def test_rungs():
    assert [rung.number for rung in headrace.rungs()] == list(range(1, len(headrace.rungs()) + 1))
    assert headrace.find_rung("page-locked").number == headrace.find_rung("7").number == 7
    assert headrace.same_as(headrace.find_rung("1"), "cpu") == ""


def test_samples_needed():
    assert headrace.samples_needed(0.99) == 9508
