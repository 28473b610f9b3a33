"""The adviser: its binding, the files that it reads, and what the verb prints."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import DataError, SystemError, UsageError, advice  # noqa: A004
from headrace.span import AccessProfile, AdviceConstants, MemoryRates

GIB = 1 << 30
PAGE = 2 << 20
H100 = ("--gpu", "H100", "--device", "cpu")


def choice(*arguments: object, **more: object) -> str:
    return headrace.span.advise(
        AccessProfile(*arguments, **more), headrace.span.find_memory_rates("H100"), "cpu"
    ).strategy


def test_choices():
    assert choice(2 * GIB, GIB) == "interleaved"
    assert choice(2 * GIB, GIB, reuse=1) == "zero-copy"
    assert choice(2 * GIB, GIB, "zipf-rows", order="scattered") == "by-budget"
    assert choice(2 * GIB, GIB, "hot-tenth", "read-modify-write") == "by-budget"
    assert choice(4 * PAGE, PAGE, "random-warp", heat=[1, 9000, 1, 1]) == "by-budget"


def test_an_advice_is_whole():
    found = headrace.span.advise(AccessProfile(GIB, 2 * GIB), headrace.span.find_memory_rates("H100"), "cpu")
    assert {one.strategy for one in found.forecasts} == set(headrace.span.access_strategies())
    assert found.forecasts[0].strategy == found.strategy
    assert "fit in" in found.because
    assert "headrace::" in found.cpp
    assert found.python.startswith("import headrace\n")
    compile(found.python, "pasted", "exec")
    assert [place.name for place in found.placement.pages(3)] == ["cpu:0"] * 3
    assert all(one.bytes_per_second > 0 and 0 <= one.host_share <= 1 for one in found.forecasts)


def test_a_span_placed_as_advised():
    span = headrace.Span.advised("cpu", AccessProfile(8 * PAGE, 4 * PAGE), headrace.span.find_memory_rates("H100"))
    assert {use.place.name: use.page_count for use in span.statistics().places} == {"cpu:0": 4, "host": 4}
    assert headrace.Span.advised("cpu", AccessProfile(PAGE, PAGE)).bytes == PAGE


@pytest.mark.parametrize("pattern", ["grid-stride", "zipf-rows"])
@pytest.mark.parametrize("reuse", [1, math.inf])
@pytest.mark.parametrize("factor", [1, 2])
def test_the_code_works_as_pasted(pattern: str, reuse: float, factor: int):
    profile = AccessProfile(8 * PAGE, 8 * PAGE // factor, pattern, reuse=reuse)
    found = headrace.span.advise(profile, headrace.span.find_memory_rates("H100"), "cpu")
    names: dict = {}
    exec(found.python.replace("counts = ...", "counts = [*range(8)]"), names)
    assert names["data"].bytes == 8 * PAGE
    names["data"].release()


@pytest.mark.parametrize(
    ("arguments", "more", "says"),
    [
        ((0, GIB), {}, "bytes must be above 0"),
        ((GIB, 0), {}, "budget_bytes must be above 0"),
        ((GIB, GIB, "zigzag"), {}, "grid-stride"),
        ((GIB, GIB, "grid-stride", "erase"), {}, "read-modify-write"),
        ((GIB, GIB), {"reuse": 0}, "reuse must be above 0"),
        ((GIB, GIB), {"reuse": math.nan}, "reuse must be above 0"),
        ((GIB, GIB), {"order": "sorted"}, "scattered"),
        ((GIB, GIB), {"heat": [1, 2]}, "counts for 2"),
    ],
)
def test_a_profile_that_can_never_be(arguments: tuple, more: dict, says: str):
    with pytest.raises(UsageError, match=says):
        AccessProfile(*arguments, **more)


def test_rates_survive_a_file():
    for known in headrace.span.known_memory_rates():
        content = json.loads(json.dumps(advice.rates_as_dict(known)))
        assert advice.rates_as_dict(advice.rates_from_dict(content)) == content
    rates = headrace.measure.memory_rates("cpu")
    assert rates.one_memory
    assert advice.rates_from_dict(advice.rates_as_dict(rates)).device.read == rates.device.read
    copied = MemoryRates(rates)
    copied.device.read = 1.0
    assert rates.device.read != 1.0


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"speed": 1},
        {"device": 5},
        {"device": {"read": 1}},
        {"device": {"read": 0, "write": 1, "read_modify_write": 1}},
        {"prefetch": "fast"},
        {"faults": {"grid_stride": 1, "block_stride": 1, "random": -1}},
    ],
)
def test_rates_that_are_none(content: object):
    with pytest.raises(DataError, match="memory rates"):
        advice.rates_from_dict(content)


def test_constants_change_the_choice():
    constants = AdviceConstants()
    constants.span_link = 0.5
    constants.managed_link = 1.0
    profile = AccessProfile(2 * GIB, GIB, reuse=math.inf)
    assert (
        headrace.span.advise(profile, headrace.span.find_memory_rates("H100"), "cpu", constants).strategy
        == "prefetched"
    )


def test_counts_of_both_kinds_of_file(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.array([3, 0, 7], dtype=np.uint32))
    (tmp_path / "b.json").write_text("[3, 0, 7]")
    assert advice.read_counts(tmp_path / "a.npy") == advice.read_counts(tmp_path / "b.json") == [3, 0, 7]


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "[1, -1]", "[1, 0.5]", "[true]", '["1"]', "[[1]]", "[1e400]", "null", "[1" + "0" * 400 + "]"],
)
def test_json_that_is_no_counts(tmp_path: Path, text: str):
    path = tmp_path / "counts.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"counts\.json"):
        advice.read_counts(path)


def test_npy_that_is_no_counts(tmp_path: Path):
    path = tmp_path / "counts.npy"
    for wrong in (np.zeros((2, 2)), np.array([1.5]), np.array([-1]), np.array(["a"]), np.array([np.nan]), np.array([])):
        np.save(path, wrong)
        with pytest.raises(DataError, match=r"counts\.npy"):
            advice.read_counts(path)
    for text in (b"", b"\x93NUMPY\x01\x00", b"counts"):
        path.write_bytes(text)
        with pytest.raises(DataError, match=r"counts\.npy"):
            advice.read_counts(path)
    np.savez(tmp_path / "several.npz", a=np.array([1]))
    (tmp_path / "several.npz").rename(path)
    with pytest.raises(DataError, match="of one array"):
        advice.read_counts(path)
    with pytest.raises(SystemError, match=r"none\.npy"):
        advice.read_counts(tmp_path / "none.npy")


def test_the_verb(run: Run):
    done = run("advise", "zipf-rows", "--factor", "2", "--rows", "scattered", *H100)
    assert done.returncode == 0, done.stderr
    chosen = next(line for line in done.stdout.splitlines() if line.lstrip().startswith("*"))
    assert "by-budget" in chosen
    assert 'Device::parse("cuda:0")' in done.stdout
    for word in (
        "2 times the",
        "row H100 of the built-in table",
        "C++:",
        "Python:",
        "rebalance",
        "zero-copy",
        "over the link",
    ):
        assert word in done.stdout
    assert done.stderr == ""


def test_the_verb_measures_and_prints_json(run: Run, tmp_path: Path):
    done = run("advise", "grid-stride", "--bytes", "64MiB", "--budget", "32MiB", "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["rates_from"] == "measured in this run"
    assert content["rates"]["device"]["read"] > 0
    assert content["profile"]["factor"] == 2
    assert content["strategy"] == content["forecasts"][0]["strategy"]
    (tmp_path / "rates.json").write_text(done.stdout)
    again = run(
        "advise", "grid-stride", "--factor", "2", "--rates", tmp_path / "rates.json", "--device", "cpu", "--json"
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["rates"] == content["rates"]


def test_counts_decide(run: Run, tmp_path: Path):
    counts = np.ones(64, dtype=np.int64)
    counts[40:48] = 10_000
    np.save(tmp_path / "counts.npy", counts)
    done = run("advise", "--heat", tmp_path / "counts.npy", "--factor", "4", *H100, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["strategy"] == "by-budget"
    assert content["profile"]["bytes"] == 64 * PAGE
    assert content["profile"]["budget_bytes"] == 16 * PAGE
    assert content["forecasts"][0]["host_share"] < 0.01


def test_managed_memory_beyond_the_device_is_refused(run: Run):
    done = run("advise", "block-stride", "--factor", "1.5", *H100, "--reuse", "inf")
    assert done.returncode == 0, done.stderr
    assert "prefetched: refused, managed memory beyond" in done.stdout


def broken_files() -> dict[str, bytes]:
    """Files that are not lists of counts, despite their names."""
    array, archive, one = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(array, np.arange(20))
    np.savez(archive, np.arange(20))
    np.save(one, np.int64(3))
    good = array.getvalue()
    return {
        "nothing": b"",
        "half a header": good[:40],
        "half the counts": good[:-30],
        "a header without its end": good.replace(b"}", b" "),
        "a header of nonsense": good.replace(b"descr", b"\xff\xfe\x00\n'"),
        "more counts than there is memory": good.replace(b"(20,)", b"(20000000000000000,)"),
        "an archive": archive.getvalue(),
        "half an archive": archive.getvalue()[:100],
        "one number": one.getvalue(),
        "text": b"1 2 3",
    }


@pytest.mark.parametrize("text", ["[1, 2", "[" * 100_000, "[" + "9" * 5000 + "]"])
def test_what_is_no_json_is_named(tmp_path: Path, text: str):
    path = tmp_path / "counts.json"
    path.write_text(text)
    with pytest.raises(headrace.DataError, match="counts\\.json: not JSON"):
        advice.read_counts(path)


def test_rates_that_no_number_holds_are_refused():
    for value in (float("inf"), 10**400, float("nan"), -1):
        with pytest.raises(headrace.DataError, match="numbers above 0"):
            advice.rates_from_dict({"device": {"read": value, "write": 1.0, "read_modify_write": 1.0}})


@pytest.mark.parametrize("name", broken_files())
def test_a_broken_file_of_counts_is_named(tmp_path: Path, name: str):
    path = tmp_path / "counts.npy"
    path.write_bytes(broken_files()[name])
    with pytest.raises(headrace.DataError, match="counts\\.npy") as raised:
        advice.read_counts(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ((), 2, "--heat FILE"),
        (("zigzag", "--factor", "2", *H100), 2, "grid-stride"),
        (("grid-stride", *H100), 2, "the size of the data is missing"),
        (("grid-stride", "--factor", "0", *H100), 2, "above 0"),
        (("grid-stride", "--factor", "-1", *H100), 2, "above 0"),
        (("grid-stride", "--factor", "nan", *H100), 2, "above 0"),
        (("grid-stride", "--factor", "2", "--bytes", "1GiB", "--budget", "1GiB", *H100), 2, "leave out one"),
        (("grid-stride", "--factor", "2", "--bytes", "one"), 2, "one"),
        (("grid-stride", "--factor", "2", "--budget", "0"), 2, "1 byte or more"),
        (("grid-stride", "--factor", "2", "--operation", "erase", *H100), 2, "read-modify-write"),
        (("grid-stride", "--factor", "2", "--reuse", "0", *H100), 2, "reuse must be above 0"),
        (("zipf-rows", "--factor", "2", "--rows", "sorted", *H100), 2, "scattered"),
        (("grid-stride", "--factor", "2", "--gpu", "toaster"), 2, "H100"),
        (("grid-stride", "--factor", "2", "--gpu", "H100", "--rates", "x"), 2, "not both"),
        (("grid-stride", "--factor", "2", "--device", "cuda:99"), 2, "cuda:99"),
        (("--heat", "/nowhere/counts.npy", "--factor", "2", *H100), 1, "counts.npy"),
        (("--heat", __file__, "--factor", "2", *H100), 1, "test_advise.py"),
        (("grid-stride", "--factor", "2", "--rates", __file__), 1, "test_advise.py"),
    ],
)
def test_errors(run: Run, arguments: tuple[object, ...], status: int, says: str):
    failed = run("advise", *arguments)
    assert failed.returncode == status, failed.stderr
    assert says in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert failed.stdout == ""
