"""Operators that are Python functions, on every device: one body for CPU devices and GPUs."""

import gc
import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headrace
from headrace import operator, operators
from headrace.cli import app
from headrace.operators.check import check

RANDOM = np.random.default_rng(7)
SERVING = [rung for rung in headrace.serve.rungs() if rung.plan.schedule != "none"]
TABLE = RANDOM.integers(-9, 10, (40, 16)).astype(np.float32)  # sums of integers are the same in any order
DEVICES = [device.name for device in headrace.Device.list()]


@pytest.fixture(params=DEVICES)
def device(request, tmp_path, monkeypatch):
    """The name of a device; code compiled for it is kept in the test's own cache."""
    if request.param.startswith("cuda"):
        pytest.importorskip("numba_cuda")
        pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return request.param


def queries_of(index):
    return np.random.default_rng(index).integers(-9, 10, 16).astype(np.float32)


@operator(query=("f4", 16), answer=[("total", "f4"), ("best", "f4")], sample=queries_of, threads=64)
def products(group, query, answer, rows):
    """The sum of the products with all rows, and the largest of them."""
    kept = group.shared(64, np.float32)
    total, best = np.float32(0), np.float32(-np.inf)
    for i in range(group.rank, len(rows), group.size):
        found = np.float32(0)
        for k in range(len(query)):
            found += rows[i, k] * query[k]
        total += found
        best = max(best, found)
    kept[group.rank] = best
    group.sync()
    total = group.sum(total)
    if group.rank == 0:
        for i in range(group.size):
            best = max(best, kept[i])
        answer.total, answer.best = total, best


@operator(query="i8", answer="i8", sample=lambda index: index)
def picky(_group, query, answer):
    """Twice the query, except for 7."""
    if query[0] == 7:
        raise ValueError("seven")
    answer[0] = 2 * query[0]


@operator(query=("f4", 8), answer=("f4", 8), sample=lambda index: np.random.default_rng(index).random(8, np.float32))
def rounded(group, query, answer, factor):
    """Products and sums of fractions: equal bits show that each is rounded separately."""
    for i in range(group.thread, 8, group.thread_count):
        found = query[i]
        for k in range(8):
            found = found * factor + query[k] / (query[i] + np.float32(1))
        answer[i] = math.sqrt(found)


def test_answers_are_those_of_numpy_under_every_schedule(device):
    queries = np.stack([queries_of(index) for index in range(70)])
    scores = queries @ TABLE.T
    for rung in SERVING:
        with headrace.Engine(device, products(rows=TABLE), rung.plan) as engine, engine.connect() as client:
            answers, status = client.ask_many(queries)
        assert not status.any(), rung.id
        assert answers["total"].tolist() == scores.sum(axis=1).tolist(), rung.id
        assert answers["best"].tolist() == scores.max(axis=1).tolist(), rung.id


SOURCE = """
struct Best { float of[64]; };
bool products(Group group, const Query& query, Answer& answer, Array<float, 2> rows) {
  float total = 0;
  float best = -INFINITY;
  for (uint64_t i = group.rank(); i < rows.shape(0); i += group.size()) {
    float found = 0;
    for (uint64_t k = 0; k < rows.shape(1); ++k) found += rows(i, k) * query[k];
    total += found;
    best = std::fmax(best, found);
  }
  auto& kept = group.shared<Best>();
  kept.of[group.rank()] = best;
  group.sync();
  total = group.sum(total);
  for (uint32_t i = 0; i < group.size(); ++i) best = std::fmax(best, kept.of[i]);
  if (group.any(query[0] == 100)) return false;
  if (group.rank() == 0) answer = {total, best};
  return true;
}
"""


def products_in_source():
    return operators.from_source(
        SOURCE,
        "products",
        query=("f4", 16),
        answer=[("total", "f4"), ("best", "f4")],
        state=["rows"],
        sample=queries_of,
        reference=lambda query, rows: ((rows @ query).sum(), (rows @ query).max()),
        threads=64,
    )


def test_source_answers_as_numpy_under_every_schedule(device):
    found = list(check(products_in_source()(rows=TABLE), device, 70))
    assert {one.plan: one.difference for one in found if one.difference is not None} == {}
    assert len(found) > len(SERVING)


def test_what_source_refuses_is_never_an_answer(device):
    refused = queries_of(3)
    refused[0] = 100
    with headrace.Engine(device, products_in_source()(rows=TABLE)) as engine, engine.connect() as client:
        assert client.ask(queries_of(3))["best"] == (TABLE @ queries_of(3)).max()
        with pytest.raises(headrace.DeviceError, match="operator products could not answer this query"):
            client.ask(refused)


def test_every_schedule_answers_alike(device):
    found = list(check(products(rows=TABLE), device, 70))
    assert {one.plan: one.difference for one in found if one.difference is not None} == {}
    assert len(found) > len(SERVING)


def test_fractions_have_the_bits_that_they_have_on_the_host(device):
    made = rounded(factor=np.float32(0.37))
    asked = made.sample(100)
    with headrace.Engine(device, made) as engine, engine.connect() as client:
        answers, status = client.ask_many(asked)
    assert not status.any()
    assert answers.tobytes() == made.answer_on_host(asked).tobytes()


@pytest.mark.parametrize("rung", SERVING, ids=lambda r: r.id)
def test_what_raised_is_never_an_answer(device, rung):
    with headrace.Engine(device, picky(), rung.plan) as engine, engine.connect() as client:
        assert client.ask(np.array([21])) == 42
        with pytest.raises(headrace.DeviceError, match="operator picky could not answer this query"):
            client.ask(np.array([7]))
        answers, status = client.ask_many(np.arange(3))
        assert {str(headrace.Errc.of_status(int(one))) for one in status} == {"device fault"}
        assert not answers.any()
    with headrace.Engine(device, picky(), rung.plan) as engine, engine.connect() as client:
        assert client.ask(np.array([21])) == 42, "the device itself has not failed"


@pytest.mark.parametrize("count", [1, 20])
def test_arrays_numbers_and_records_reach_the_function(device, count):
    names = [f"a{index}" for index in range(count)]
    source = f"def many(group, query, answer, bias, points, {', '.join(names)}):\n    answer[0] = query.x + bias"
    source += f" + points[query.n].b{''.join(f' + {name}[1, query.n]' for name in names)}\n"
    scope: dict = {}
    exec(source, scope)
    many = operator(query=np.dtype([("x", "f8"), ("n", "i4")], align=True), answer="f8")(scope["many"])
    points = np.array([(1.5, 2.0), (2.5, 3.0)], [("a", "f8"), ("b", "f8")])
    tables = {name: np.arange(4.0).reshape(2, 2)[:, ::-1] + index for index, name in enumerate(names)}
    asked = np.array([(0.5, 0), (1.5, 1)], many.query)
    with headrace.Engine(device, many(bias=0.25, points=points, **tables)) as engine, engine.connect() as client:
        answers, _ = client.ask_many(asked)
    wanted = [x + 0.25 + points["b"][n] + sum(table[1, n] for table in tables.values()) for x, n in asked]
    assert answers.tolist() == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "u8", "f4"])
def test_a_sum_over_the_threads_is_exact(device, kind):
    @operator(query=(kind, 100), answer=("f8", 3), threads=96)
    def three(group, query, answer):
        total = 0
        for i in range(group.rank, len(query), group.size):
            total += query[i]
        total = group.sum(total)
        ones = group.sum(query[group.rank % 100])
        first = group.broadcast(query[group.rank % 100])
        if group.rank == 0:
            answer[0], answer[1], answer[2] = total, ones, first

    asked = RANDOM.integers(1, 100, (5, 100)).astype(kind)
    with headrace.Engine(device, three()) as engine, engine.connect() as client:
        answers, _ = client.ask_many(asked)
    assert answers[:, 0].tolist() == asked.sum(axis=1, dtype=float).tolist()
    assert answers[:, 2].tolist() == asked[:, 0].tolist()
    if device.startswith("cuda"):
        assert answers[:, 1].tolist() == asked[:, :96].sum(axis=1, dtype=float).tolist()


def test_blocks_share_a_query(device):
    @operator(query="i8", answer=("i8", 100), threads=32, blocks=3)
    def spread(group, query, answer):
        for i in range(group.thread, 100, group.thread_count):
            answer[i] = query[0] + i

    for rung in SERVING:
        plan = rung.plan
        plan.answer_inline = False
        with headrace.Engine(device, spread(), plan) as engine, engine.connect() as client:
            answers, status = client.ask_many(np.arange(20))
        assert not status.any(), rung.id
        assert np.array_equal(answers, np.arange(20)[:, None] + np.arange(100)), rung.id


def test_engines_one_after_the_other_and_at_once_use_one_operator(device):
    made = products(rows=TABLE)
    query = queries_of(3)
    for _ in range(2):
        with headrace.Engine(device, made) as one, headrace.Engine(device, made) as other:
            for engine in (one, other):
                with engine.connect() as client:
                    assert client.ask(query)["best"] == (TABLE @ query).max()
        gc.collect()


def resident_plan():
    return next(rung.plan for rung in SERVING if rung.id == "dispatched")


def test_code_is_not_loaded_beside_a_resident_kernel(device):
    if not device.startswith("cuda"):
        pytest.skip("a CPU device loads no code")
    made = products(rows=TABLE)
    with headrace.Engine(device, picky(), resident_plan()) as engine, engine.connect() as client:
        with pytest.raises(headrace.DeviceError, match="a resident kernel is running"):
            headrace.Engine(device, made)
        assert client.ask(np.array([21])) == 42
    with headrace.Engine(device, made) as engine, engine.connect() as client:
        assert client.ask(queries_of(3))["best"] == (TABLE @ queries_of(3)).max()


def test_an_operator_may_go_while_another_has_a_resident_kernel(device):
    gone, stays = products(rows=TABLE), picky()
    with headrace.Engine(device, gone) as engine, engine.connect() as client:
        client.ask(queries_of(3))
    with headrace.Engine(device, stays, resident_plan()) as other, other.connect() as asking:
        del engine, client, gone
        gc.collect()
        assert asking.ask(np.array([21])) == 42


@pytest.mark.parametrize(("blocks", "threads"), [(0, 256), (2, 0)])
def test_a_plan_does_not_change_the_threads_that_shared_arrays_are_sized_by(device, blocks, threads):
    plan = headrace.Plan()
    plan.blocks, plan.block_threads = blocks, threads
    with pytest.raises(headrace.UsageError, match="operator products was made for 1 blocks of 64 threads, not"):
        headrace.Engine(device, products(rows=TABLE), plan)
    plan.blocks, plan.block_threads = 1, 64
    with headrace.Engine(device, products(rows=TABLE), plan) as engine, engine.connect() as client:
        assert client.ask(queries_of(3))["best"] == (TABLE @ queries_of(3)).max()


def test_a_load_is_checked_and_finds_nothing_wrong(device):
    done = headrace.load(device, products(rows=TABLE), headrace.Plan(), rate=500, window=0.1, windows_max=3)
    assert (done.load.wrong, done.load.failed) == (0, 0)
    assert done.load.answered > 0


def test_bounds_are_checked_where_numba_is_told_to(device, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
            import numpy as np, headrace

            @headrace.operator(query="i8", answer="i8")
            def pick(group, query, answer, rows):
                answer[0] = rows[query[0]]

            with headrace.Engine("{device}", pick(rows=np.arange(10))) as engine, engine.connect() as client:
                print(client.ask(np.array([9])))
                try:
                    client.ask(np.array([10]))
                except headrace.DeviceError as error:
                    print(error.code)
        """)
    )
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "9\ndevice fault\n"), done.stderr


def each_counted(group, query, answer):
    """Number of this thread's numbers, and their sum."""
    count, total = 0, 0
    for i in group.each(query[0]):
        count += 1
        total += i
    answer[0] = group.sum(count)
    answer[1] = group.sum(total)


def test_each_number_is_one_threads(device):
    made = operator(query="u4", answer=("i8", 2), threads=96)(each_counted)()
    counts = np.array([0, 1, 31, 95, 96, 97, 5000], np.uint32)
    for rung in SERVING:
        with headrace.Engine(device, made, rung.plan) as engine, engine.connect() as client:
            answers, status = client.ask_many(counts)
            assert not status.any()
            assert [tuple(map(int, one)) for one in answers] == [(n, n * (n - 1) // 2) for n in map(int, counts)]


def rounding(group, query, answer):  # noqa: ARG001
    """The rounding error of a product if it is fused with the difference; else 0."""
    answer[0] = query.x * query.y - query.product


def test_products_and_sums_are_fused_where_that_is_asked_for(device):
    types = {"query": [("x", "f8"), ("y", "f8"), ("product", "f8")], "answer": "f8"}
    x, y = 1 + 2.0**-30, 1 - 2.0**-31
    asked = np.array((x, y, x * y), types["query"])
    lost = -(2.0**-61)  # of 1 + 2^-31 - 2^-61
    for contract, expected in ((False, 0), (True, lost), (False, 0)):
        made = operator(**types, contract=contract)(rounding)()
        for rung in SERVING:
            with headrace.Engine(device, made, rung.plan) as engine, engine.connect() as client:
                assert client.ask(asked) == expected, (contract, rung.id)


def test_arrays_of_a_gpu_are_used_where_they_lie(device):
    if not device.startswith("cuda"):
        pytest.skip("no GPU")
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(int(device.partition(":")[2])):
        rows = cupy.asarray(TABLE)
        cupy.cuda.get_current_stream().synchronize()
        query = queries_of(5)
        made = products(rows=rows)
        with headrace.Engine(device, made) as engine, engine.connect() as client:
            assert client.ask(query)["best"] == (TABLE @ query).max()
            rows *= 2
            cupy.cuda.get_current_stream().synchronize()
            assert client.ask(query)["best"] == 2 * (TABLE @ query).max()
        with pytest.raises(headrace.UsageError, match="not contiguous"):
            products(rows=cupy.asarray(TABLE)[:, ::2])
    with pytest.raises(headrace.DeviceError, match=f"rows lies in the memory of {device} and cannot be read on a CPU"):
        headrace.Engine("cpu", made)


def test_threads_that_cannot_be_are_refused():
    for threads, blocks in ((0, 1), (1025, 1), (32, 0)):
        made = operator(query="i8", answer="i8", threads=threads, blocks=blocks)(picky.function)
        with pytest.raises(headrace.UsageError, match=f"operator picky: {blocks} blocks of {threads} threads"):
            made()


FILE = """
from headrace import operator, operators

@operator(query="i8", answer="i8", sample=lambda i: i, reference=lambda query, factor: query * factor)
def times(group, query, answer, factor):
    answer[0] = query[0] * factor

served = times(factor=3)
"""


def test_the_command_line_checks_and_loads_a_file(device, tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    runner = CliRunner()
    done = runner.invoke(app, ["check", str(file), "--device", device, "--queries", "20", "--json"])
    assert done.exit_code == 0, done.output
    assert all(one["difference"] is None for one in json.loads(done.stdout)["plans"])
    arguments = ["--operator", f"{file}:served", "--device", device, "--rate", "500", "--duration", "300ms", "--json"]
    done = runner.invoke(app, ["load", *arguments])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["operator"] == "times"
