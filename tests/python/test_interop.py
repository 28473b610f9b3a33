"""Headrace's objects with NumPy, Arrow, pickle, logging and notebooks."""

import copy
import inspect
import logging
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headrace
from headrace import Errc, Placement, Plan, Span, Table, UsageError, _core, col, grid, ingest


def table(**columns: object) -> Table:
    return Table.from_arrow(pa.table(columns or {"a": [1, 2, 3], "s": ["x", "y", None]}), device="cpu")


def test_every_public_class_has_a_text_and_a_table_for_notebooks() -> None:
    bare = [
        kind.__name__
        for module in (headrace, ingest, grid, _core)
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__.startswith("headrace") and kind.__repr__ is object.__repr__
    ]
    assert bare == []


def test_texts_say_what_there_is() -> None:
    with headrace.Engine("cpu", headrace.light()) as engine, engine.connect() as client:
        client.ask(engine.operator.sample(1))
        statistics = engine.statistics()
        assert repr(statistics).startswith("EngineStatistics(submitted=1, answered=1, failed=0")
        assert "<tr><th>answered</th><td>1</td></tr>" in statistics._repr_html_()
        assert repr(client).startswith("Client(in_flight=0, oldest=1, query_dtype=dtype(")
    assert repr(client) == "Client()"  # closed, so nothing can be read
    assert repr(grid.Jacobi((8, 8), devices=["cpu:0"])).startswith("Jacobi(shape=(8, 8), cells=64, steps_done=0")
    with table() as rows:
        html = rows.filter(col("a") > 1)._repr_html_()
        assert "&gt;" in html
        assert "<th>filter</th>" in html
        assert "<th>a</th><td>int64</td>" in rows._repr_html_()
        assert repr(rows.fetch()["a"]) == "DeviceColumn(a: int64, 3 values in 1 chunks)"


def test_numpy_takes_what_the_host_can_read() -> None:
    with table(a=[1.5, 2.5]) as rows:
        fetched = rows.fetch()
        values = fetched["a"].chunks[0].values
        seen = np.asarray(values)
        assert seen.tolist() == [1.5, 2.5]
        assert np.shares_memory(seen, values.numpy())
        assert np.asarray(fetched["a"]).tolist() == [1.5, 2.5]
        assert np.asarray(values, dtype=np.float32).dtype == np.float32
        assert not np.shares_memory(np.array(values, copy=True), seen)
        with pytest.raises(ValueError, match="without a copy"):
            np.asarray(values, dtype=np.int8, copy=False)
        for whole in (rows, rows.limit(1), fetched):
            with pytest.raises(UsageError, match="is not an array"):
                np.asarray(whole)
    span = Span("cpu:0", 4096, Placement.all("host"))
    assert np.asarray(span).shape == (4096,)
    frames = ingest.synthetic(1000, frame="50KB", to="cpu:0", packets=50)
    assert [np.asarray(frame).shape for frame in frames] == [(50_000,)]


def test_of_an_array_on_another_device_numpy_gets_an_error() -> None:
    class Far:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    with pytest.raises(UsageError, match="a Far on cuda:1 is not a NumPy array"):
        headrace.display.as_array(Far())


def test_queries_and_tables_are_arrow_streams() -> None:
    with table() as rows:
        query = rows.filter(col("a") > 1)
        expected = pa.table({"a": [2, 3], "s": ["y", None]})
        assert pa.table(query).to_pydict() == expected.to_pydict()
        assert pa.table(rows).to_pydict() == rows.to_arrow().to_pydict() == {"a": [1, 2, 3], "s": ["x", "y", None]}
        assert pa.table(rows.fetch()).to_pydict() == rows.to_arrow().to_pydict()
        assert pa.chunked_array(rows.fetch()["a"]).to_pylist() == [1, 2, 3]
        again = Table.from_arrow(query, device="cpu")  # a result is also a table
        assert again.agg(col("a").sum()).to_arrow().column(0).to_pylist() == [5]


def test_pandas_and_polars() -> None:
    pandas = pytest.importorskip("pandas")
    with table() as rows:
        frame = rows.filter(col("a") > 1).to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        assert frame["a"].tolist() == [2, 3]
    polars = pytest.importorskip("polars")
    with table() as rows:
        assert polars.DataFrame(rows.limit(1))["a"].to_list() == [1]
        assert rows.to_polars()["a"].to_list() == [1, 2, 3]


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with table() as rows, pytest.raises(UsageError, match="pip install polars"):
        rows.to_polars()


def test_sums_of_integers_are_integers_where_they_fit() -> None:
    great = 2**62
    with table(a=[1, 2, None], b=[great, great, great], f=[True, True, False]) as rows:
        sums = rows.agg(a=col("a").sum(), b=col("b").sum(), f=col("f").sum(), c=(col("a") * 2).sum()).to_arrow()
        assert sums.schema.types == [pa.int64(), pa.decimal128(38, 0), pa.int64(), pa.int64()]
        assert sums.to_pylist() == [{"a": 3, "b": Decimal(3 * great), "f": 2, "c": 6}]
    with table(d=pa.array([Decimal(7)], pa.decimal128(9, 0))) as rows:
        assert rows.agg(col("d").sum()).to_arrow().schema.types == [pa.decimal128(38, 0)]


def test_devices_plans_and_indexes_are_pickled() -> None:
    device = headrace.Device.parse("cpu:3")
    assert pickle.loads(pickle.dumps(device)) == device
    plan = Plan(schedule="pipelined", threads=3, batch_max=7, spin=1.5e-5)
    for same in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), copy.copy(plan)):
        assert same == plan
        same.threads = 4
        assert same != plan
    assert plan.threads == 3
    assert plan != 3
    index = headrace.Index.build(["an apple", "an apple pie"])
    copied = pickle.loads(pickle.dumps(index))
    assert copied.document_count == 2
    assert copied.query("apple AND pie", device="cpu").ids == [1]
    error = pickle.loads(pickle.dumps(UsageError("no such thing", Errc.not_found, 2)))
    assert (str(error), error.code, error.native) == ("no such thing", Errc.not_found, 2)


def test_what_was_closed_or_stopped_raises() -> None:
    rows = table()
    query = rows.agg(col("a").sum())
    held = rows.fetch()
    rows.close()
    rows.close()
    for call in (rows.fetch, rows.start, query.to_arrow, query.explain, lambda: next(rows.stream())):
        with pytest.raises(UsageError, match="the table has been closed") as error:
            call()
        assert error.value.code == Errc.stopped
    assert held["a"].to_arrow().to_pylist() == [1, 2, 3]
    with headrace.Engine("cpu", headrace.light()) as engine:
        pass
    with pytest.raises(headrace.Error, match="connecting to an engine: stopped"):
        engine.connect()


def test_the_log_is_pythons(caplog: pytest.LogCaptureFixture) -> None:
    rows = pa.table({"a": list(range(200_000))})
    levels = _core.Levels("cpu", host="pageable", device_bytes=1 << 19, slab_bytes=1 << 16)
    with caplog.at_level(logging.INFO, "headrace"):
        streamed = Table.from_arrow(rows, fragment_rows=10_000, levels=levels)
        assert streamed.agg(col("a").sum()).to_arrow().column(0).to_pylist() == [sum(range(200_000))]
    assert any(record.name.startswith("headrace.") and "windows" in record.message for record in caplog.records)


def test_the_default_device_is_the_best_everywhere() -> None:
    best = headrace.Device.parse("best").name
    assert inspect.signature(grid.Jacobi).parameters["devices"].default == ("best",)
    assert grid.Fdtd((16, 16), spacing=1e-3, cpml=3).parts[0][0] == best
    assert table().device.name == "cpu:0"
    assert Table.from_arrow(pa.table({"a": [1]})).device.name == best


@pytest.mark.parametrize(
    ("name", "nearest"), [("H1000", "H100"), ("GH200", "H200"), ("H100 PCIe", "H100"), ("AH100", "H100")]
)
def test_rates_of_gpus_that_are_only_called_alike_are_not_given(name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"no memory rates are known for '{name}'; did you mean {nearest}"):
        headrace.span.find_memory_rates(name)


@pytest.mark.parametrize("name", ["H100", "h100", "NVIDIA H100 80GB HBM3", "H100 SXM"])
def test_rates_of_a_gpu_by_its_names(name: str) -> None:
    assert headrace.span.find_memory_rates(name).name == "H100"


def test_the_loop_of_the_readme_prints_no_id_where_nothing_was_found() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    loop = text[text.index("for answer in answers:") :].split("```")[0]
    index = headrace.Index.build(["an apple"])
    operator = headrace.retrieval(index)
    with headrace.Engine("cpu", operator) as engine, engine.connect() as client:
        answers, _ = client.ask_many(index.compile_many(["pear", "apple"]))
    said: list[str] = []
    exec(
        loop,
        {"answers": answers, "print": lambda *of: said.append(str(of))},
    )
    assert len(said) == 2
    assert str(2**32 - 1) not in said[0]
