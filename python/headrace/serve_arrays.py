"""Queries and answers that lie on an engine's device already: answer_into()."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace import _core
from headrace._core import Engine
from headrace.cuda_arrays import cuda_array
from headrace.errors import UsageError

_CUDA = "cuda"


@dataclass(frozen=True)
class _Array:
    address: int
    rows: int
    nbytes: int
    stream: object
    """What the array's library says about the stream that fills it; None if it says nothing."""


def answer_into(engine: Engine, queries: Any, answers: Any, *, stream: Any = None) -> None:  # noqa: ANN401 - any library's
    """Answers queries that lie on the engine's device, and writes the answers there, without a trip through the host.

    On a GPU both are arrays of CuPy, PyTorch, Numba or any other library with `__cuda_array_interface__`, and the work
    is enqueued on the caller's stream: it begins after what was enqueued there before, and what is enqueued after it
    finds the answers. The call does not wait; keep both arrays until the stream has come past it. On a CPU device they
    are NumPy arrays, and the answers are there when it returns.

    It needs no client and no slot, so that limits, deadlines and statistics of the plan do not cover these queries. If
    the operator cannot answer one, the next call fails, and so do all queries of the engine (device fault).

    Args:
        engine: an engine without resident kernels (schedules `dispatched` and `persistent`), which leave no room.
        queries: contiguous, a query in each row: of the operator's query type, or of any type with rows as long.
        answers: contiguous and writable, a row for each query, likewise.
        stream: a stream of CuPy, PyTorch or Numba, an object with `__cuda_stream__`, or the handle as a number. By
            default the stream that `queries` names (PyTorch and CuPy name none), or else the default stream.

    Raises:
        UsageError: for arrays that do not fit, that lie elsewhere, and for a stream of another device.
        DeviceError: when the device refuses the work.
        Error: with the code stopped after stop(), and the engine's own once it has failed.

    >>> import headrace, numpy as np
    >>> source = "void twice(Group, const Query& query, Answer& answer) { answer = 2 * query; }"
    >>> twice = headrace.operators.from_source(source, "twice", query="i8", answer="i8")
    >>> answers = np.empty(3, "i8")
    >>> with headrace.Engine("cpu", twice()) as engine:
    ...     answer_into(engine, np.array([1, 2, 3]), answers)
    >>> answers.tolist()
    [2, 4, 6]
    """
    on_gpu = engine.device.kind.name == _CUDA
    find = _on_gpu if on_gpu else _on_host
    given = find("queries", queries, engine)
    told = find("answers", answers, engine, writes=True)
    operator = engine.operator
    for what, array, each in (("query", given, operator.query_bytes), ("answer", told, operator.answer_bytes)):
        if array.nbytes != array.rows * each:
            raise UsageError(
                f"{operator.name}: each {what} has {each} bytes, but {array.rows} rows have {array.nbytes} bytes in all"
            )
    if given.rows != told.rows:
        raise UsageError(f"{given.rows} queries cannot have {told.rows} answers: give an array with as many rows")
    if not on_gpu and stream is not None:
        raise UsageError(f"{engine.device.name} has no streams: leave stream= out")
    if given.rows == 0:
        return
    handle = _handle(given.stream if stream is None else stream) if on_gpu else 0
    _core.answer_into(engine, given.address, given.nbytes, told.address, told.nbytes, handle)


def _on_host(what: str, given: object, engine: Engine, *, writes: bool = False) -> _Array:
    if not isinstance(given, np.ndarray):
        raise UsageError(
            f"{what} are no NumPy array, but {type(given).__name__}; the engine is on {engine.device.name}"
        )
    if writes and not given.flags.writeable:
        raise UsageError(f"{what} are read-only")
    if given.ndim == 0 or not given.flags.c_contiguous:
        raise UsageError(f"{what} must be a contiguous array with a row for each of them")
    return _Array(given.ctypes.data, len(given), given.nbytes, None)


def _on_gpu(what: str, given: object, engine: Engine, *, writes: bool = False) -> _Array:
    found = cuda_array(given)
    if found is None:
        raise UsageError(
            f"{what} are no array of a GPU, but {type(given).__name__}; the engine is on {engine.device.name}"
        )
    if not found.shape or not found.is_contiguous:
        raise UsageError(f"{what} must be a contiguous array with a row for each of them")
    if writes and found.is_read_only:
        raise UsageError(f"{what} are read-only")
    if found.cuda not in (None, engine.device.ordinal):
        raise UsageError(f"{what} lie on cuda:{found.cuda}, the engine is on {engine.device.name}")
    return _Array(found.pointer, found.shape[0], found.nbytes, found.stream)


def _handle(stream: Any) -> int:  # noqa: ANN401
    """The handle of a stream; 0 for the default one."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):  # the protocol of cuda.core
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba
        stream = getattr(stream, name, stream)
    stream = getattr(stream, "value", stream)  # Numba's is a ctypes pointer
    if stream is None:
        return 0
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise UsageError(
            f"a stream of type {type(stream).__name__} is not known: pass its handle as a number"
        ) from None
