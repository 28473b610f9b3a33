"""What headrace.wire.model() makes of an engine: tensors of NumPy types."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import UsageError, _core

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from wire_serving import halve, serving, third

from headrace import wire


def parts(tensors: list[wire.Tensor]) -> list[tuple[str, str, list[int], int]]:
    return [(one.name, one.datatype, one.shape, one.offset) for one in tensors]


def test_operators_that_ship_with_headrace():
    index = headrace.Index.build(["an apple", "an apple pie"])
    for operator, query, answer in (
        (headrace.light(query_bytes=64), [("query", "UINT32", [16], 0)], [("answer", "UINT64", [8], 0)]),
        (
            headrace.operators.reference(query_bytes=8, answer_bytes=10),
            [("query", "UINT32", [2], 0)],
            [("answer", "UINT8", [10], 0)],
        ),
        (
            headrace.retrieval(index),
            [("query", "UINT8", [headrace.retrieval(index).query_bytes], 0)],
            [("hits", "UINT32", [], 0), ("ids", "UINT32", [15], 4)],
        ),
    ):
        with headrace.Engine("cpu", operator) as engine:
            model = wire.model(engine)
        assert (model.name, model.version, model.batch_max) == (operator.name, "1", 1024)
        assert parts(model.inputs) == query
        assert parts(model.outputs) == answer


def test_operators_in_python_know_their_types():
    with headrace.Engine("cpu", halve()) as engine:
        model = wire.model(engine)
        assert model.engine is engine
    assert parts(model.inputs) == [("x", "FP32", [3], 0), ("n", "INT64", [], 12)]
    assert parts(model.outputs) == [("y", "FP64", [3], 0), ("n", "INT64", [], 24), ("large", "BOOL", [], 32)]
    assert repr(model.inputs[0]) == "Tensor('x', FP32, [3], offset=0)"
    with headrace.Engine("cpu", third()) as engine:
        model = wire.model(engine, "a.b-c_1", version="2", batch_max=5)
    assert (model.name, model.version, model.batch_max) == ("a.b-c_1", "2", 5)
    assert parts(model.inputs) == [("query", "FP64", [], 0)]
    assert parts(model.outputs) == [("answer", "FP64", [], 0)]


def test_types_that_are_given_go_before_those_of_the_operator():
    with headrace.Engine("cpu", headrace.light(query_bytes=32)) as engine:
        model = wire.model(
            engine,
            query=[("a", [("b", "<f4", (2, 2)), ("c", [("d", "<i2", 3)])]), ("S", "S2"), ("V", "V2", 4)],
            answer=("<f2", (4, 8)),
        )
    assert parts(model.inputs) == [
        ("a.b", "FP32", [2, 2], 0),
        ("a.c.d", "INT16", [3], 16),
        ("S", "UINT8", [2], 22),
        ("V", "UINT8", [4, 2], 24),
    ]
    assert parts(model.outputs) == [("answer", "FP16", [4, 8], 0)]


def test_an_aligned_type_leaves_its_gaps_out():
    with headrace.Engine("cpu", headrace.light(query_bytes=16)) as engine:
        model = wire.model(engine, query=np.dtype([("a", "u1"), ("b", "<i8")], align=True))
    assert parts(model.inputs) == [("a", "UINT8", [], 0), ("b", "INT64", [], 8)]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ([("a", "<c8"), ("b", "<f8")], "field 'a' has type <c8"),
        ([("a", "<f8"), ("b", [("c", ">f8")])], "field 'b.c' has type >f8"),
        ([("a", "<f8"), ("b", "<M8[s]")], "field 'b' has type <M8[s]"),
        ([("a", "<U4")], "field 'a' has type <U4"),
        ("<f16", "it has type <f16"),
        ([("a", [("x", "<f4")], 4)], "field 'a' is an array of records"),
        (([("x", "<f4")], 4), "it is an array of records"),
        ([("a", "<f8", 2), ("b", "u1", 0)], "field 'b' has no elements"),
        ("<f8", "query has 16 bytes, but those of type float64 have 8"),
        ([("a", "<f8", 3)], "have 24"),
        ([("a.b", "<f8"), ("a", [("b", "<f8")])], "'a.b'"),
    ],
)
def test_types_that_cannot_be_tensors_are_refused_by_field(query: Any, says: str):
    with headrace.Engine("cpu", headrace.light(query_bytes=16)) as engine, pytest.raises(UsageError) as caught:
        wire.model(engine, query=query)
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b", "ä", "a b", ".."])
def test_names_that_no_path_can_have_are_refused(name: str):
    with headrace.Engine("cpu", third()) as engine, pytest.raises(UsageError, match="name"):
        wire.model(engine, name)


def test_tensors_that_lie_elsewhere_are_refused():
    kinds = wire.DataType
    with headrace.Engine("cpu", third()) as engine:
        answer = [wire.Tensor("answer", kinds.fp64)]
        for tensors in (
            [],
            [wire.Tensor("a", kinds.fp64, [2])],
            [wire.Tensor("a", kinds.fp32, offset=5)],
            [wire.Tensor("a", kinds.fp32), wire.Tensor("b", kinds.fp32, offset=2)],
            [wire.Tensor("a", kinds.fp32), wire.Tensor("a", kinds.fp32, offset=4)],
            [wire.Tensor("a", kinds.fp32, [-1])],
        ):
            with pytest.raises(UsageError, match="model third"):
                wire.Model(engine, tensors, answer, name="third")


def test_a_server_refuses_what_it_cannot_serve():
    with headrace.Engine("cpu", third(), headrace.Plan(clients_max=2)) as engine:
        model = wire.model(engine)
        with pytest.raises(UsageError, match="called 'third'"):
            wire.Server([model, model], http_port=0)
        with pytest.raises(UsageError):
            wire.Server([], http_port=0)
        with pytest.raises(UsageError):
            wire.Server([model], http_port=0, threads=3)
        with pytest.raises(UsageError, match="idle_max"):
            wire.Server([model], http_port=0, idle_max=-1)
        with wire.Server([model], http_port=0, threads=2):  # nothing above has kept a client
            pass


def test_a_port_and_an_address_that_cannot_be_had():
    with serving(third()) as (server, engines):
        model = wire.model(engines[0])
        with pytest.raises(headrace.SystemError, match=str(server.http_port)):
            wire.Server([model], http_port=server.http_port)
        with pytest.raises(headrace.SystemError):
            wire.Server([model], http_port=0, address="192.0.2.1")
        with pytest.raises(UsageError, match="nowhere"):
            wire.Server([model], http_port=0, address="nowhere")


def test_a_server_that_was_stopped_leaves_port_and_engine_to_others():
    with headrace.Engine("cpu", third()) as engine:
        model = wire.model(engine)
        for _ in range(20):
            with wire.Server([model], http_port=0) as server:
                port = server.http_port
            with wire.Server([model], http_port=port) as server:
                assert server.http_port == port
        server.stop()  # repeating it does nothing
        assert server.statistics().connections_open == 0


def test_an_engine_lives_as_long_as_its_model_and_no_longer():
    class Kept:
        """An object that can be watched."""

    kept = Kept()
    engine = headrace.Engine("cpu", third())
    engine.operator.kept = kept  # type: ignore[attr-defined]
    watched = weakref.ref(kept)
    server = wire.Server([wire.model(engine)], http_port=0)
    del kept, engine
    gc.collect()
    assert watched() is not None
    server.stop()
    del server
    gc.collect()
    assert watched() is None


def test_a_model_is_replaced_and_unloaded_by_the_program():
    with headrace.Engine("cpu", third()) as first, headrace.Engine("cpu", halve()) as second:
        with wire.Server([wire.model(first, "a")], http_port=0) as server:
            assert server.uses(first)
            assert not server.uses(second)
            server.load(wire.model(second, "a"))
            while server.uses(first):
                pass
            assert server.uses(second)
            server.load(wire.model(first, "b"))  # a new name
            assert [(one.name, one.loaded, one.ready) for one in server.model_statistics()] == [
                ("a", True, True),
                ("b", True, True),
            ]
            assert server.unload("a", "not needed")
            assert not server.unload("a")
            assert [(one.loaded, one.ready) for one in server.model_statistics()] == [(False, False), (True, True)]
            assert server.next_model_request(0) is None
        with pytest.raises(UsageError, match="stopped"):
            server.load(wire.model(second, "a"))
        assert not server.uses(first)
