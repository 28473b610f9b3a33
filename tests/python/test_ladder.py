"""Loads and climbs from Python, with bounds so wide that a busy machine keeps within them."""

import math

import pytest

import headrace
from headrace import Device, Plan, UsageError, climbing
from headrace.serve import LoadSession

pytestmark = pytest.mark.whole_machine

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
    # The complete rule: 1% may be missing, and the queries in flight at either end may differ like a Poisson count.
    seconds = 4 * 0.05
    missing = (done.load.incoming_per_second - done.load.measured_per_second) * seconds
    in_flight = done.load.incoming_per_second * done.load.latency.mean
    allowed = 0.01 * done.load.incoming_per_second * seconds + 4 * math.sqrt(in_flight) + 1
    assert headrace.measure.sustains(done.load, WIDE) == (missing <= allowed)
    assert not headrace.measure.sustains(done.load, 1e-9)
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
        ({"rate": 1e12}, "more than 1 generator thread can generate"),
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
    progress: list[headrace.serve.LadderProgress] = []
    finished: list[headrace.serve.RungResult] = []
    climb = headrace.serve.ladder(
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
    def fail(_now: headrace.serve.LadderProgress) -> None:
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        headrace.serve.ladder("cpu", headrace.light(steps=8), rungs=[1], progress=fail)


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
        headrace.serve.ladder("cpu", headrace.light(steps=1), **settings)


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
    assert [rung.number for rung in headrace.serve.rungs()] == list(range(1, len(headrace.serve.rungs()) + 1))
    assert headrace.serve.find_rung("page-locked").number == headrace.serve.find_rung("7").number == 7
    assert headrace.serve.same_as(headrace.serve.find_rung("1"), "cpu") == ""


def test_samples_needed():
    assert headrace.measure.samples_needed(0.99) == 9508


def test_a_plan_is_searched_and_confirmed():
    found = headrace.serve.search_plan(
        "cpu",
        headrace.light(steps=8),
        headrace.serve.find_rung("6").plan,
        bound=WIDE,
        confirmations=2,
        most=20_000,
        start=5_000,
        window=0.02,
        rank_tolerance=0.01,
    )
    assert len(found.confirmed) == 2, found.note
    assert 2 <= found.loads <= len(found.tried)
    assert found.note == ""
    assert found.capacity > 0
    assert found.generators == 1
    assert all(headrace.measure.sustains(load, WIDE) for load in found.confirmed)
    assert len(found.tried) > len(found.confirmed)
    rates = [load.incoming_per_second for load in found.tried]
    assert rates == sorted(rates)
    assert max(rates) < 1.5 * 20_000  # within the random variation of a short window


def test_a_bound_that_no_rate_keeps_says_why():
    found = headrace.serve.search_plan(
        "cpu", headrace.light(steps=8), bound=1e-9, start=2000, window=0.02, rank_tolerance=0.01, confirmations=3
    )
    assert found.confirmed == []
    assert "no rate keeps p99 within" in found.note
    assert found.tried


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bound": 0}, "bound"),
        ({"arrivals": "trace"}, "poisson or constant"),
        ({"generators": 0}, "generators must be 1 to 64"),
        ({"confirmations": 0}, "confirmations"),
        ({"tries": 0}, "tries must be 1 to 1000"),
        ({"resolution": 0}, "resolution"),
        ({"window": 0}, "window"),
    ],
)
def test_bad_searches(settings: dict[str, object], says: str):
    with pytest.raises(UsageError, match=says):
        headrace.serve.search_plan("cpu", headrace.light(steps=1), **settings)


def test_a_plan_has_every_choice():
    plan = Plan(
        schedule="persistent", streams_per_thread=4, batch_max=8, batch_age=1e-5, doorbell="barrier", hang_after=0.5
    )
    plan.workers, plan.blocks, plan.block_threads, plan.answer_inline = 12, 2, 64, True
    copy = plan.copy()
    assert (copy.schedule, copy.streams_per_thread, copy.batch_max, copy.doorbell) == ("persistent", 4, 8, "barrier")
    assert (copy.batch_age, copy.hang_after) == (pytest.approx(1e-5), 0.5)
    assert (copy.workers, copy.blocks, copy.block_threads, copy.answer_inline) == (12, 2, 64, True)
    assert Plan.from_json(copy.to_json()).answer_inline
    assert Plan(answer_inline=True).answer_inline
    assert not Plan().answer_inline
    assert copy.parallelism == 4
    with pytest.raises(UsageError, match="words, barrier"):
        plan.doorbell = "bell"


def test_batch_sizes_are_swept():
    settings = climbing.Settings(bound=WIDE, window=0.01, rank_tolerance=0.01)
    shares: list[float] = []
    swept = climbing.sweep_batches(
        Device.parse("cpu"), headrace.light(steps=8), settings, [1, 2], Plan(), 1, progress=shares.append
    )
    assert [batch["batch_max"] for batch in swept] == [1, 2]
    assert [batch["plan"]["batch_max"] for batch in swept] == [1, 2]
    assert shares == [0.5, 1.0]
    assert all(batch["capacity"] > 0 for batch in swept)


def test_statistics_keep_some_samples():
    session = LoadSession("cpu", headrace.light(steps=8), Plan(threads=1))
    session.run(rate=5000, window=0.05, windows_max=2, stable_windows=2)
    recent = session.statistics().recent
    assert [sample.submitted for sample in recent] == sorted(sample.submitted for sample in recent)
    assert all(sample.whole >= sample.queue >= 0 for sample in recent)
    assert len(recent) <= 32
