"""A server for other processes: operators behind the Open Inference Protocol (KServe v2), as used by Triton's clients.

>>> import json, urllib.request
>>> from headrace import operators, serve, wire
>>> engine = serve.Engine("cpu", operators.light())
>>> with wire.Server([wire.model(engine)], http_port=0) as server:
...     with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/v2/models/light") as answer:
...         described = json.load(answer)
>>> engine.stop()
>>> [(one["name"], one["datatype"], one["shape"]) for one in described["inputs"] + described["outputs"]]
[('query', 'UINT32', [-1, 256]), ('answer', 'UINT64', [-1, 8])]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from headrace._core import (
    DataType,
    DurationHistogram,
    Model,
    ModelRequest,
    ModelStatistics,
    Outcomes,
    PriorityStatistics,
    ProtocolStatistics,
    RequestTrace,
    Server,
    ServerStatistics,
    StageHistograms,
    Tensor,
    built_with_wire,
)
from headrace.dtypes import answer_dtype_of, read_dtype, write_dtype
from headrace.errors import Errc, UsageError
from headrace.operators.compiled_operator import maker_of
from headrace.serve import Engine, Operator

__all__ = [
    "DataType",
    "DurationHistogram",
    "Model",
    "ModelRequest",
    "ModelStatistics",
    "Outcomes",
    "PriorityStatistics",
    "ProtocolStatistics",
    "RequestTrace",
    "Server",
    "ServerStatistics",
    "StageHistograms",
    "Tensor",
    "model",
]

_BATCH_MAX = 1024

# Names of DataType, by NumPy kind and size in bytes.
_TYPES = {
    "b1": "boolean",
    **{f"u{size}": f"uint{8 * size}" for size in (1, 2, 4, 8)},
    **{f"i{size}": f"int{8 * size}" for size in (1, 2, 4, 8)},
    **{f"f{size}": f"fp{8 * size}" for size in (2, 4, 8)},
}
# Shipped operators whose queries consist of words; see headrace/operators/ in C++.
_WORDS = {"light", "reference"}
_BYTES = "SV"  # kinds of byte strings and of untyped bytes


def require_wire() -> None:
    """Raises UsageError if this build has no server."""
    if not built_with_wire:
        raise UsageError(
            "this build has no server: install Boost and nlohmann-json (Debian: libboost-dev, nlohmann-json3-dev) and "
            "build Headrace again",
            Errc.not_supported,
        )


def _text_of(dtype: np.dtype[Any]) -> str:
    """The type as text; empty if it has none, as when its fields are not in the order of their names."""
    try:
        return write_dtype(dtype)
    except ValueError:
        return ""


def model(
    engine: Engine,
    name: str | None = None,
    query: DTypeLike | None = None,
    answer: DTypeLike | None = None,
    *,
    version: str = "1",
    batch_max: int = _BATCH_MAX,
    waiting_max: int = 0,
) -> Model:
    """The model that serves an engine; its tensors follow from the types of the operator's queries and answers.

    A type with fields has a tensor per field, named after the field; a nested field is named "outer.inner". Any other
    type is one tensor, "query" or "answer". A shape in the type is the shape of the tensor. Byte strings (S) and
    untyped bytes (V) are arrays of UINT8.

    Args:
        engine: answers the queries. Stop it after the server.
        name: name for clients; default: the operator's.
        query: NumPy type of a query. Default: the operator's own, which operators in Python know, as do those in shared
            objects that describe their fields; queries of `light` and `reference` are words (uint32), and those of
            others are bytes.
        answer: NumPy type of an answer. Default: the operator's own.
        version: version of the model.
        batch_max: maximum number of queries per request.
        waiting_max: maximum number of queries that wait for slots, per thread of the server; 0: the server's.

    Raises:
        UsageError: for a type whose size differs from that of the operator's queries or answers, and for a field that
            cannot be a tensor of the protocol, which the error names.
    """
    operator = engine.operator
    of_query = query_dtype(operator) if query is None else query
    inputs = _tensors(operator, "query", of_query, operator.query_bytes)
    of_answer = answer_dtype_of(operator.answer_type, operator.answer_bytes) if answer is None else answer
    outputs = _tensors(operator, "answer", of_answer, operator.answer_bytes)
    return Model(
        engine,
        inputs,
        outputs,
        name=operator.name if name is None else name,
        version=version,
        batch_max=batch_max,
        waiting_max=waiting_max,
        query_type=_text_of(np.dtype(of_query)),
        answer_type=_text_of(np.dtype(of_answer)),
    )


def query_dtype(operator: Operator) -> np.dtype[Any]:
    """The type of a complete query; bytes if the operator's queries have no type."""
    made = maker_of(operator)
    if made is not None:
        return made[0].query
    if operator.query_type:
        return read_dtype(operator.query_type)
    if operator.name in _WORDS:
        return np.dtype((np.uint32, (operator.query_bytes // 4,)))
    return np.dtype((np.uint8, (operator.query_bytes,)))


def _tensors(operator: Operator, what: str, given: DTypeLike, size: int) -> list[Tensor]:
    dtype = np.dtype(given)
    of = f"operator {operator.name}: {what}"
    if dtype.itemsize != size:
        raise UsageError(f"{of} has {size} bytes, but those of type {dtype} have {dtype.itemsize}")
    return list(_parts(of, what, "", dtype, 0))


def _parts(of: str, what: str, path: str, dtype: np.dtype[Any], offset: int) -> Iterator[Tensor]:
    """The tensors of a field, or of the whole type if the path is empty."""
    shape, base = dtype.shape, dtype.base
    field = f"field '{path}'" if path else "it"
    if base.names is not None:
        if shape:
            raise UsageError(
                f"{of}: {field} is an array of records, whose parts are not contiguous, unlike a tensor's: "
                "make it a record of arrays"
            )
        assert base.fields is not None
        for name in base.names:
            inner, begin = base.fields[name][:2]
            yield from _parts(of, what, f"{path}.{name}" if path else name, inner, offset + begin)
        return
    kind = "uint8" if base.kind in _BYTES else _TYPES.get(f"{base.kind}{base.itemsize}")
    if base.kind in _BYTES:
        shape = (*shape, base.itemsize)
    if kind is None or not _little(base):
        known = "bool, integers and fractions (float16, 32, 64) in little-endian order, S and V"
        raise UsageError(f"{of}: {field} has type {base.str}, which a tensor's elements cannot have: use {known}")
    if 0 in shape:
        raise UsageError(f"{of}: {field} has no elements")
    yield Tensor(path or what, DataType[kind], list(shape), offset=offset)


def _little(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 1 or dtype.kind in _BYTES or dtype.str[0] == "<"
